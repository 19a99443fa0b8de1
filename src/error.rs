//! The library's error type.
//!
//! Texts are fragments that read well after "failed to ...": they say what went wrong, where (file, line, rank) and what to do
//! about it.

use std::path::{Path, PathBuf};

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
        /// The reason, with the MPI library's own words where it gave any.
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

/// Reads a whole text file.
///
/// # Errors
/// [`Error::Io`] with the path.
pub fn read_text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|reason| Error::Io { action: "read", path: path.into(), reason })
}

/// Writes a file in one step: to a temporary neighbour first, renamed when complete, so that a reader or an interrupt never
/// meets half a file.
///
/// # Errors
/// [`Error::Io`] with the path.
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    let io = |reason| Error::Io { action: "write", path: path.into(), reason };
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    std::fs::write(&temporary, text).map_err(io)?;
    std::fs::rename(&temporary, path).map_err(|reason| {
        let _ = std::fs::remove_file(&temporary);
        io(reason)
    })
}

/// Finds out, before hours of measuring, whether a file could be written.
///
/// # Errors
/// [`Error::Io`] with the path.
pub fn check_writable(path: &Path) -> Result<()> {
    let mut probe = path.as_os_str().to_owned();
    probe.push(format!(".{}.tmp", std::process::id()));
    let probe = PathBuf::from(probe);
    let io = |reason| Error::Io { action: "write", path: path.into(), reason };
    if path.is_dir() {
        return Err(io(std::io::Error::new(std::io::ErrorKind::IsADirectory, "it is a folder")));
    }
    std::fs::write(&probe, "").map_err(io)?;
    std::fs::remove_file(&probe).map_err(io)
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

/// The line (from 1) of the n-th line that starts with `prefix`, for errors found after parsing.
pub fn line_starting(text: &str, prefix: &str, n: usize) -> Option<usize> {
    text.lines().enumerate().filter(|(_, l)| l.trim_start().starts_with(prefix)).nth(n).map(|(i, _)| i + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        write_text(&path, "x = 1\n").unwrap();
        write_text(&path, "x = 2\n").unwrap();
        assert_eq!(read_text(&path).unwrap(), "x = 2\n");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
        let bad = folder.path().join("no/such/folder/a.toml");
        assert!(write_text(&bad, "").unwrap_err().to_string().contains("no/such/folder"));
    }

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
}
