//! How a policy is laid out as text, so that people can read it: rows as wide as a screen, four significant digits, sizes with units.

use super::Policy;
use crate::error::{Error, Result};
use crate::units::bytes_in_file;
use std::fmt::Write;
use toml::{Table, Value};

/// A row of a list of rows, and an entry of a table, are at most so long; longer ones are tables of their own, a line an entry.
const ROW: usize = 160;
/// Lists go on in the next line after so much.
const LIST: usize = 140;

/// The keys of sizes of messages.
const SIZE_KEYS: [&str; 6] = ["from", "to", "at", "segment", "intra_segment", "bytes"];

/// Numbers keep so many significant digits: what is measured is not known better.
const DIGITS: usize = 4;
/// How much models err, of which standard errors are a tenth and more, keeps so many.
const ERROR_DIGITS: usize = 3;
/// So many digits have the last values of a measured table (see [`round_tables`]).
const SLOPE_DIGITS: usize = 6;

impl Policy {
    /// The policy as TOML, to be parsed by [`Policy::parse`], its numbers rounded to four significant digits, or three.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a value cannot be written, which no valid policy has.
    pub fn to_toml(&self) -> Result<String> {
        let mut file = Table::try_from(self).map_err(|e| Error::invalid(format!("write the policy: {e}")))?;
        file.iter_mut().for_each(|(key, value)| round_all(value, if key == "errors" { ERROR_DIGITS } else { DIGITS }));
        let mut out = String::new();
        entries(&mut out, "", &file);
        Ok(out)
    }
}

// numbers

/// Rounds all that is in a value to so many digits.
fn round_all(value: &mut Value, digits: usize) {
    match value {
        Value::Float(x) => *x = rounded(*x, digits),
        Value::Array(items) => items.iter_mut().for_each(|item| round_all(item, digits)),
        Value::Table(table) => {
            let of_sizes = table.contains_key("bytes");
            for (key, value) in table.iter_mut() {
                if of_sizes && key == "tables" { round_tables(value) } else { round_all(value, digits) }
            }
        }
        _ => {}
    }
}

/// Rounds the tables of a model. The line through their last two values says what larger messages take: where the sizes are close, its
/// slope is a small difference, and wants more digits.
fn round_tables(tables: &mut Value) {
    let columns = tables.as_table_mut().into_iter().flat_map(|tables| tables.iter_mut());
    let lists = columns.filter_map(|(_, column)| column.as_table_mut()).flat_map(|column| column.iter_mut());
    for values in lists.filter_map(|(_, list)| list.as_array_mut()) {
        let slope = values.len().saturating_sub(2);
        for (k, value) in values.iter_mut().enumerate() {
            if let Value::Float(x) = value {
                *x = rounded(*x, if k < slope { DIGITS } else { SLOPE_DIGITS });
            }
        }
    }
}

/// A number with so many significant digits; whole ones stay exact.
fn rounded(x: f64, digits: usize) -> f64 {
    let whole = x.fract() == 0.0 && x.abs() < 1e15;
    if whole || !x.is_finite() { x } else { format!("{x:.*e}", digits - 1).parse().unwrap_or(x) }
}

// text

/// The entries of a table, first those that stand on lines of their own, then the tables in it, under their headers.
fn entries(out: &mut String, path: &str, table: &Table) {
    let mut deep = Vec::new();
    for (name, value) in table {
        match entry(&key(name), value, path.is_empty()) {
            Some(lines) => *out += &lines,
            None => deep.push((format!("{path}{}{}", if path.is_empty() { "" } else { "." }, key(name)), value)),
        }
    }
    for (path, value) in deep {
        match value {
            Value::Table(table) => {
                let mut text = String::new();
                entries(&mut text, &path, table);
                // a table of nothing but tables is there by their headers
                let header = if text.starts_with('\n') { String::new() } else { format!("\n[{path}]\n") };
                *out += &(header + &text);
            }
            Value::Array(items) => {
                for item in items.iter().filter_map(Value::as_table) {
                    let _ = writeln!(out, "\n[[{path}]]");
                    entries(out, &path, item);
                }
            }
            _ => {}
        }
    }
}

/// An entry on lines of its own; `None` for what is a table under a header: all tables at the top, tables of tables and of lists, and what is
/// too long.
fn entry(key: &str, value: &Value, top: bool) -> Option<String> {
    let line = format!("{key} = {}\n", inline(key, value));
    let of_tables = |items: &[Value]| items.iter().any(Value::is_table);
    match value {
        Value::Table(table) => (!top && is_row(table) && line.len() <= ROW).then_some(line),
        Value::Array(items) if of_tables(items) => {
            let rows: Vec<String> = items.iter().map(|item| format!("  {},\n", inline(key, item))).collect();
            let fit = items.iter().all(|item| item.as_table().is_some_and(is_row)) && rows.iter().all(|row| row.len() <= ROW);
            (!top && fit).then(|| format!("{key} = [\n{}]\n", rows.concat()))
        }
        Value::Array(items) if line.len() > LIST => Some(format!("{key} = [\n{}]\n", list(key, items))),
        _ => Some(line),
    }
}

/// True for a table that can be a row: no tables and lists in it.
fn is_row(table: &Table) -> bool {
    table.values().all(|value| !value.is_table() && !value.is_array())
}

/// The lines of a long list, as many items on each as there is room for.
fn list(key: &str, items: &[Value]) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for item in items {
        let item = format!("{},", inline(key, item));
        if !line.is_empty() && line.len() + item.len() + 3 > LIST {
            let _ = writeln!(lines, " {line}");
            line.clear();
        }
        line += &format!(" {item}");
    }
    let _ = writeln!(lines, " {line}");
    lines
}

/// A value on one line; `key` is what it stands under.
fn inline(key: &str, value: &Value) -> String {
    match value {
        Value::Float(x) => float(*x),
        Value::Integer(n) if SIZE_KEYS.contains(&key) => usize::try_from(*n).map_or(n.to_string(), |n| size(&bytes_in_file(n))),
        Value::Array(items) => format!("[{}]", items.iter().map(|item| inline(key, item)).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let pair = |(k, v): (&String, &Value)| format!("{} = {}", self::key(k), inline(k, v));
            format!("{{ {} }}", table.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// A size: in quotes if it has a unit.
fn size(text: &str) -> String {
    if text.ends_with('B') { format!("\"{text}\"") } else { text.into() }
}

/// A key: bare if it can be.
fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if bare { name.into() } else { Value::String(name.into()).to_string() }
}

/// With an exponent where that is shorter; always a TOML float.
fn float(x: f64) -> String {
    let whole = x.fract() == 0.0 && x.abs() < 1e15;
    if whole {
        format!("{x:.1}")
    } else if (1e-3..1e7).contains(&x.abs()) {
        format!("{x}")
    } else if x.is_finite() {
        format!("{x:e}")
    } else {
        Value::Float(x).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_stay_floats() {
        for (x, want) in [
            (0.0, "0.0"),
            (1.0, "1.0"),
            (0.000137085806, "1.371e-4"),
            (8.5e-9, "8.5e-9"),
            (0.25, "0.25"),
            (53.877323, "53.88"),
            (4194304.0, "4194304.0"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(float(rounded(x, DIGITS)), want);
            assert!(matches!(toml::from_str::<Table>(&format!("x = {want}")).unwrap()["x"], Value::Float(_)));
        }
    }

    #[test]
    fn whatever_it_holds_the_text_says_the_same_in_lines_that_are_not_long() {
        let text = "format = 2\nnumbers = [1, 2]\n\n[a]\nfrom = 1536\nbytes = [1, \"64KiB\"]\nempty = {}\n[a.b.c]\nx = 1\n[[g]]\nname = 1\n\
            rows = [{ x = 1 }, { x = 2, y = \"z\" }]\nnested = [{ x = [1] }]\n[[g]]\nname = 2\n[g.\"odd key\"]\nx = 0.5\n";
        let mut table: Table = toml::from_str(text).unwrap();
        let many = |n: i64| Value::Array((0..n).map(|k| Value::Integer(k * 1000)).collect());
        let wide: Table = (0..20).map(|k| (format!("key_{k}"), Value::Float(1.5))).collect();
        table["a"].as_table_mut().unwrap().extend([
            ("many".to_string(), many(100)),
            ("wide".into(), Value::Table(wide.clone())),
            ("wide_rows".into(), Value::Array(vec![Value::Table(wide), Value::Table(Table::new())])),
        ]);
        let mut out = String::new();
        entries(&mut out, "", &table);
        let long = out.lines().find(|line| line.len() > ROW);
        assert_eq!(long, None);
        for part in [
            "\n[a]\nfrom = 1536\nbytes = [1, \"64KiB\"]\n",
            "\n[a.b]\nc = { x = 1 }\n",
            "\nrows = [\n  { x = 1 },\n  { x = 2, y = \"z\" },\n]\n",
            "\n[[g.nested]]\n",
            "\n[a.wide]\n",
            "\n[[a.wide_rows]]\n",
            "\n\"odd key\" = { x = 0.5 }\n",
        ] {
            assert!(out.contains(part), "{part} is not in {out}");
        }
        assert_eq!(toml::from_str::<Table>(&out).unwrap(), table);
    }
}
