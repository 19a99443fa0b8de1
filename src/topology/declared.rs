//! The hosts that a user declares for the ranks.

use crate::error::{Error, Result};
use crate::files::read_text;
use crate::names;
use std::path::Path;

/// Hosts (and groups) that the user declares in place of what the machines call themselves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Declared {
    /// The host of each rank.
    pub hosts: Vec<String>,
    /// The group of each rank, if declared.
    pub groups: Vec<Option<String>>,
}

impl Declared {
    /// Reads a host file.
    ///
    /// # Errors
    /// As [`Declared::parse`], or the file cannot be read.
    pub fn read(path: &Path) -> Result<Declared> {
        Declared::parse(&path.display().to_string(), &read_text(path)?)
    }

    /// Parses a host file: one line a rank, `HOST [GROUP]`; `#` starts a comment.
    ///
    /// # Errors
    /// [`Error::Format`] with the line.
    pub fn parse(file: &str, text: &str) -> Result<Declared> {
        let mut declared = Declared::default();
        for (number, line) in text.lines().enumerate() {
            let wrong = |reason: String| Error::Format { file: file.into(), line: Some(number + 1), reason };
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            words.iter().try_for_each(|word| names::check(word)).map_err(wrong)?;
            match words[..] {
                [] => continue,
                [host] => declared.push(host, None),
                [host, group] => declared.push(host, Some(group.into())),
                _ => return Err(wrong("a line holds a host and, if you like, its group: HOST [GROUP]".into())),
            }
        }
        Ok(declared)
    }

    fn push(&mut self, host: &str, group: Option<String>) {
        self.hosts.push(host.into());
        self.groups.push(group);
    }
}
