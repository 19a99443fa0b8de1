//! Tables of the page.

use crate::collective::NATIVE;
use serde::Serialize;

/// A cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// A bar beside it, as a share of the longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bar: Option<f64>,
}

/// A table.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Table {
    /// What columns are.
    pub header: Vec<String>,
    /// The rows, each with what it is of in its first cells.
    pub rows: Vec<Vec<Cell>>,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { text: text.into(), bar: None }
    }
}

impl Cell {
    /// With a bar; of what is not finite none.
    pub fn bar(text: String, share: f64) -> Cell {
        Cell { text, bar: Some(share.clamp(0.0, 1.0)).filter(|share| share.is_finite()) }
    }
}

impl Table {
    /// A table without rows.
    pub fn new(header: &[&str]) -> Table {
        Table { header: header.iter().map(|h| h.to_string()).collect(), rows: Vec::new() }
    }

    /// Adds a row of words.
    pub fn row<T: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}

/// An algorithm as pages call it.
pub fn named(algorithm: &str) -> &str {
    if algorithm == NATIVE { "the library's own" } else { algorithm }
}

/// Text from files with what is not seen in it, or turns around how it is read, as a sign that is.
pub(super) fn visible(text: &str) -> String {
    let is_hidden =
        |c: char| c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    text.replace(is_hidden, "\u{fffd}")
}

/// A share as percent.
pub fn percent(share: f64) -> String {
    match share {
        s if !s.is_finite() => "-".into(),
        s if s.abs() < 0.0995 => format!("{:.1} %", if s.abs() < 0.0005 { 0.0 } else { s * 100.0 }),
        s => format!("{:.0} %", s * 100.0),
    }
}

/// A difference as percent, without its sign: what rounds to nothing is not nothing.
pub fn difference(share: f64) -> String {
    const LEAST: f64 = 0.0005;
    if share != 0.0 && share.abs() < LEAST { "less than 0.1 %".into() } else { percent(share.abs()) }
}

/// A value in words, or a dash.
pub fn or_dash<T>(value: Option<T>, words: impl FnOnce(T) -> String) -> String {
    value.map_or("-".into(), words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_difference_is_not_none() {
        assert_eq!([0.0, 0.0004, -0.0004, 0.0006, -0.25].map(difference), ["0.0 %", "less than 0.1 %", "less than 0.1 %", "0.1 %", "25 %"]);
    }
}
