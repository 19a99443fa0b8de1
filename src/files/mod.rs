//! Reading and writing files: the only place that does.

#[cfg(feature = "tune")]
mod write;

use crate::error::{Error, Result};
#[cfg(feature = "tune")]
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
#[cfg(feature = "tune")]
use std::path::PathBuf;

#[cfg(feature = "tune")]
pub use write::{check_writable, regular_path, write_text};

/// Reads a whole text file.
///
/// # Errors
/// [`Error::Io`] with the path.
pub fn read_text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(failed("read", path))
}

/// Reads a whole text file that an accident may have left anything in: what is no text becomes marks, so that whoever reads on can name
/// the line.
///
/// # Errors
/// [`Error::Io`] with the path.
pub fn read_damaged_text(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).map_err(failed("read", path))?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

/// Reads a whole file that is no text.
///
/// # Errors
/// [`Error::Io`] with the path.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(failed("read", path))
}

/// Refuses files that are given one by one, each a run, where one stands twice: it would count as two.
///
/// # Errors
/// One does.
#[cfg(feature = "tune")]
pub fn named_once(paths: &[PathBuf]) -> Result<()> {
    let mut known = BTreeSet::new();
    match paths.iter().find(|path| !known.insert(path.canonicalize().unwrap_or_else(|_| path.to_path_buf()))) {
        Some(path) => Err(Error::invalid(format!("read {} twice: name it once, it is one run", path.display()))),
        None => Ok(()),
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |reason| Error::Io { action, path: path.into(), reason }
}
