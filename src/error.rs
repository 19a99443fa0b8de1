//! The library's error type.
//!
//! Texts are fragments that read well after "failed to ...": they say what went wrong, where (file, line, rank) and what to do
//! about it.

use std::path::PathBuf;

/// What can go wrong in this library.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{action} {path}: {reason}", path = path.display())]
    Io {
        /// "read", "write" and the like.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason; part of the text, and so no source of its own.
        reason: std::io::Error,
    },
    /// A file's text is not what it should be.
    #[error("read {file}{at}: {reason}", at = line.map(|l| format!(", line {l}")).unwrap_or_default())]
    Format {
        /// The file's name as the user gave it.
        file: String,
        /// Line, counted from 1, where known.
        line: Option<usize>,
        /// What is wrong there and what would be right.
        reason: String,
    },
    /// A value given by the caller makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// Measurements are missing or cannot bear the conclusion asked of them.
    #[error("{0}")]
    Data(String),
    /// What is asked for takes more memory than is given to it.
    #[error("{0}")]
    TooLarge(String),
    /// Something failed on a rank.
    #[error("run on rank {rank}: {reason}")]
    Rank {
        /// The rank in the communicator that was used.
        rank: usize,
        /// The reason.
        reason: String,
    },
    /// A function of the MPI library failed.
    #[error("call {call} on rank {rank} of MPI_COMM_WORLD: {reason}")]
    Mpi {
        /// The rank of the process in MPI_COMM_WORLD.
        rank: usize,
        /// The function.
        call: &'static str,
        /// What it returned; `MPI_Error_class` knows its class.
        code: i32,
        /// The MPI library's own words.
        reason: String,
    },
}

/// The library's result type.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An [`Error::Invalid`] from any text.
    pub fn invalid(reason: impl Into<String>) -> Error {
        Error::Invalid(reason.into())
    }

    /// An [`Error::Data`] from any text.
    pub fn data(reason: impl Into<String>) -> Error {
        Error::Data(reason.into())
    }
}

/// Parses TOML strictly; the error carries the file's name and the line.
///
/// # Errors
/// [`Error::Format`] where the text is no TOML, has unknown keys, or holds values that the type refuses.
pub fn parse_toml<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> Result<T> {
    toml::from_str(text).map_err(|e| Error::Format {
        file: file.into(),
        line: e.span().map(|s| line_at(text, s.start)),
        reason: e.message().trim().to_string(),
    })
}

/// The line (from 1) of a byte offset.
fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|&&b| b == b'\n').count() + 1
}

/// The way to a value in a TOML text, for [`line_of`]: keys, and the numbers (from 0) of items of lists.
pub fn key_path(steps: &[&dyn std::fmt::Display]) -> Vec<String> {
    steps.iter().map(ToString::to_string).collect()
}

/// The line (from 1) of a value in a TOML text, or of as much of the way to it as is there; for errors found after parsing.
pub fn line_of(text: &str, key_path: &[String]) -> Option<usize> {
    let document = toml::de::DeTable::parse(text).ok()?;
    let (mut at, mut value) = (document.span(), toml::de::DeValue::Table(document.into_inner()));
    for step in key_path {
        // a table that only others name has no place of its own: then it is where its first entry is
        let next = match &mut value {
            toml::de::DeValue::Table(table) => table.remove(step.as_str()),
            toml::de::DeValue::Array(items) => step.parse().ok().and_then(|k: usize| items.get(k).cloned()),
            _ => None,
        };
        let Some(next) = next else { break };
        at = next.span();
        value = next.into_inner();
    }
    Some(line_at(text, at.start))
}

/// The line (from 1) of the n-th line that starts with `prefix`, for errors found after parsing.
pub fn line_starting(text: &str, prefix: &str, n: usize) -> Option<usize> {
    text.lines().enumerate().filter(|(_, l)| l.trim_start().starts_with(prefix)).nth(n).map(|(i, _)| i + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_errors_name_file_and_line() {
        #[derive(serde::Deserialize, Debug)]
        #[serde(deny_unknown_fields)]
        struct T {
            #[allow(dead_code)]
            a: f64,
        }
        let text = "a = 1.0\n\nb = 2\n";
        let e = parse_toml::<T>("f.toml", text).unwrap_err().to_string();
        assert!(e.contains("f.toml, line 3") && e.contains("unknown field `b`"), "{e}");
        assert_eq!(line_starting("[[g]]\nx\n[[g]]\n", "[[g]]", 1), Some(3));
    }

    #[test]
    fn values_are_found_in_toml() {
        let text = "x = 1\n\n[a.b]\nrows = [\n  { y = 1 },\n  { y = 2 },\n]\n\n[[g]]\nname = 1\n[g.c]\nz = [\n 1,\n 2]\n[[g]]\nname = 2\n\n[g.\"a.b\"]\nu = 1\n";
        for (steps, line) in [
            (key_path(&[&"x"]), 1),
            (key_path(&[&"a", &"b"]), 3),
            (key_path(&[&"a", &"b", &"rows"]), 4),
            (key_path(&[&"a", &"b", &"rows", &1]), 6),
            (key_path(&[&"a", &"b", &"rows", &1, &"y"]), 6),
            (key_path(&[&"a", &"b", &"rows", &1, &"gone", &"gone"]), 6),
            (key_path(&[&"g", &0]), 9),
            (key_path(&[&"g", &0, &"name"]), 10),
            (key_path(&[&"g", &0, &"c", &"z", &1]), 14),
            (key_path(&[&"g", &1]), 15),
            (key_path(&[&"g", &1, &"a.b", &"u"]), 19),
        ] {
            assert_eq!(line_of(text, &steps), Some(line), "{steps:?}");
        }
        assert_eq!(line_of("= 1", &key_path(&[&"x"])), None);
    }
}
