//! Reading a square matrix of seconds that somebody else measured.

use super::LatencyMatrix;
use crate::error::{Error, Result};

/// Parses a matrix written as text: one row a line, entries separated by commas, semicolons or blanks; `#` starts a comment.
/// The diagonal may hold anything that is a number, or `-`.
///
/// ```
/// let m = collwise::topology::parse_matrix("two.csv", "0, 5e-5\n5e-5, 0\n").unwrap();
/// assert_eq!(m.get(0, 1), 5e-5);
/// ```
///
/// # Errors
/// [`Error::Format`] with file and line for anything that is no square matrix of positive seconds.
pub fn parse_matrix(file: &str, text: &str) -> Result<LatencyMatrix> {
    let wrong = |line: usize, reason: String| Error::Format { file: file.into(), line: Some(line), reason };
    let mut rows: Vec<(usize, Vec<f64>)> = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(i, l)| (i + 1, l)) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let row_index = rows.len();
        let words = line.split([',', ';', ' ', '\t']).map(str::trim).filter(|w| !w.is_empty());
        let entries = words.enumerate().map(|(column, word)| match word.parse::<f64>() {
            Ok(t) if t.is_finite() => Ok(t),
            _ if column == row_index => Ok(0.0),
            _ => Err(wrong(number, format!("\"{word}\" in column {} is no time in seconds", column + 1))),
        });
        rows.push((number, entries.collect::<Result<_>>()?));
    }
    let n = rows.len();
    if n < 2 {
        return Err(wrong(1, format!("a latency matrix needs at least two rows, there are {n}")));
    }
    for (i, (number, row)) in rows.iter().enumerate() {
        if row.len() != n {
            return Err(wrong(*number, format!("the matrix is not square: this row has {} entries, there are {n} rows", row.len())));
        }
        if let Some(j) = (0..n).find(|&j| j != i && (!crate::units::is_time(row[j]) || row[j] == 0.0)) {
            return Err(wrong(*number, format!("{} in column {} is no latency (seconds, above zero)", row[j], j + 1)));
        }
    }
    let rows: Vec<Vec<f64>> = rows.into_iter().map(|(_, r)| r).collect();
    LatencyMatrix::from_rows(&rows, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_line_and_column() {
        let say = |text: &str| parse_matrix("m.csv", text).unwrap_err().to_string();
        assert!(say("0 1\n1 0 2\n").contains("m.csv, line 2") && say("0 1\n1 0 2\n").contains("not square"));
        assert!(say("# c\n0 x\n1 0\n").contains("line 2: \"x\" in column 2"));
        assert!(say("0 1\n-1 0\n").contains("line 2"));
        assert!(say("0 NaN\n1 0\n").contains("NaN"));
        assert!(say("").contains("at least two rows"));
        assert!(parse_matrix("m.csv", "- 1e-3 # a\n1e-3;-\n").is_ok());
    }
}
