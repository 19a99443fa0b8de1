//! Reading a scheduling problem from TOML.

use super::Problem;
use crate::error::{Error, Result, line_starting, parse_toml};
use crate::units;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    root: usize,
    #[serde(deserialize_with = "units::de_seconds_square")]
    gap_s: Vec<Vec<f64>>,
    #[serde(deserialize_with = "units::de_seconds_square")]
    latency_s: Vec<Vec<f64>>,
    #[serde(deserialize_with = "units::de_seconds_list")]
    local_s: Vec<f64>,
    #[serde(default, deserialize_with = "units::de_seconds_list")]
    local_busy_s: Vec<f64>,
}

impl Problem {
    /// Parses a problem: `format = 1`, `root`, square arrays `gap_s` and `latency_s`, and arrays `local_s` and, optionally,
    /// `local_busy_s` (0 if not given).
    ///
    /// ```
    /// let text = "format = 1\nroot = 0\ngap_s = [[0, 1], [1, 0]]\nlatency_s = [[0, 0.5], [0.5, 0]]\nlocal_s = [2, 3]\n";
    /// let problem = collwise::intercluster::Problem::parse("two.toml", text).unwrap();
    /// assert_eq!(collwise::intercluster::solve(&problem).best.completion, 4.5);
    /// ```
    ///
    /// # Errors
    /// [`Error::Format`] with file and line.
    pub fn parse(file: &str, text: &str) -> Result<Problem> {
        let f: File = parse_toml(file, text)?;
        let n = f.gap_s.len();
        let wrong = |key: &str, reason: String| Err(Error::Format { file: file.into(), line: line_starting(text, key, 0), reason });
        if f.format != 1 {
            return wrong("format", format!("format {} is not known, this version reads format = 1", f.format));
        }
        if n == 0 {
            return wrong("gap_s", "there must be at least one group".into());
        }
        if f.latency_s.len() != n {
            return wrong("latency_s", format!("latency_s has {} rows, gap_s has {n}", f.latency_s.len()));
        }
        if f.root >= n {
            return wrong("root", format!("root = {} is none of the {n} groups (counted from 0)", f.root));
        }
        if f.local_s.len() != n {
            return wrong("local_s", format!("local_s has {} entries for {n} groups", f.local_s.len()));
        }
        let local_busy = if f.local_busy_s.is_empty() { vec![0.0; n] } else { f.local_busy_s };
        if local_busy.len() != n {
            return wrong("local_busy_s", format!("local_busy_s has {} entries for {n} groups", local_busy.len()));
        }
        Ok(Problem { groups: n, root: f.root, gap: f.gap_s.concat(), latency: f.latency_s.concat(), local: f.local_s, local_busy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_reported_with_their_line() {
        let good = "format = 1\nroot = 0\ngap_s = [[0, 1], [1, 0]]\nlatency_s = [[0, 1], [1, 0]]\nlocal_s = [2, 3]\n";
        assert!(Problem::parse("p", good).is_ok());
        for (from, to, line, word) in [
            ("root = 0", "root = 2", 2, "none of the 2"),
            ("gap_s = [[0, 1], [1, 0]]", "gap_s = [[0, 1], [1]]", 3, "not square"),
            ("latency_s = [[0, 1], [1, 0]]", "latency_s = [[0]]", 4, "1 rows"),
            ("[2, 3]", "[2, -3]", 5, "no valid time"),
            ("[2, 3]", "[2, nan]", 5, "no valid time"),
            ("[2, 3]", "[2]", 5, "1 entries"),
            ("local_s", "lokal_s", 5, "unknown field"),
        ] {
            let e = Problem::parse("p", &good.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(e.contains(&format!("p, line {line}")) && e.contains(word), "{to}: {e}");
        }
    }
}
