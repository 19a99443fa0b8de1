//! Traces of schedules that ran: files of JSON lines in a folder, one file a run, as `collwise bench --trace` writes them.

use crate::error::{Error, Result};
use crate::files::read_text;
use crate::topology::Rank;
use crate::units;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The version of the format that is read and written.
const FORMAT: u32 = 1;

/// A run of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// The file.
    pub file: String,
    /// What ran.
    pub head: Head,
    /// What ranks did.
    pub ops: Vec<TracedOp>,
}

/// What ran; the first line of its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The version of the format.
    pub format: u32,
    /// The collective's name.
    pub collective: String,
    /// What was done, in words.
    pub form: String,
    /// The root.
    pub root: Rank,
    /// The size.
    pub bytes: usize,
    /// The MPI library.
    pub library: String,
    /// The host of each rank.
    pub hosts: Vec<String>,
}

/// What an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A message to a peer.
    Send,
    /// One from a peer.
    Recv,
    /// Copying, combining and the like.
    Other,
}

/// One operation of a rank; a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracedOp {
    /// The rank.
    pub rank: Rank,
    /// What it is.
    pub operation: Kind,
    /// To whom or from whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Rank>,
    /// Bytes of it.
    pub bytes: usize,
    /// Seconds from the root's start, on the root's clock as far as clocks are known.
    pub start_s: f64,
    /// When the rank noticed its end.
    pub end_s: f64,
}

impl Traced {
    /// Reads all traces of a folder, in the order of their files' names.
    ///
    /// # Errors
    /// The folder cannot be read or has no trace, or [`Error::Format`] with file and line.
    pub fn read_folder(folder: &Path) -> Result<Vec<Traced>> {
        let failed = |reason: std::io::Error| Error::Io { action: "read", path: folder.into(), reason };
        let entries = std::fs::read_dir(folder).map_err(failed)?.collect::<std::io::Result<Vec<_>>>().map_err(failed)?;
        let mut files: Vec<PathBuf> =
            entries.into_iter().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "jsonl")).collect();
        files.sort();
        if files.is_empty() {
            return Err(Error::invalid(format!(
                "find a trace in {}: it has no *.jsonl; `mpirun ... collwise bench POLICY --trace FOLDER` writes one for each root and size",
                folder.display()
            )));
        }
        files.iter().map(|file| Traced::parse(&file.display().to_string(), &read_text(file)?)).collect()
    }

    /// Parses a trace.
    ///
    /// # Errors
    /// [`Error::Format`] with file and line.
    pub fn parse(file: &str, text: &str) -> Result<Traced> {
        let wrong = |line: usize, reason: String| Error::Format { file: file.into(), line: Some(line), reason };
        let mut lines = text.lines().enumerate().map(|(k, line)| (k + 1, line)).filter(|(_, line)| !line.trim().is_empty());
        let (number, first) = lines.next().ok_or_else(|| wrong(1, "the file is empty, a trace opens with what ran".into()))?;
        let head: Head =
            serde_json::from_str(first).map_err(|e| wrong(number, format!("a trace opens with what ran, and this is not it: {e}")))?;
        if head.format != FORMAT {
            return Err(wrong(number, format!("format {} is not known, this version reads format {FORMAT}", head.format)));
        }
        let ranks = head.hosts.len();
        if head.root >= ranks {
            return Err(wrong(number, format!("root {} is outside its {ranks} ranks", head.root)));
        }
        let mut ops = Vec::new();
        for (number, line) in lines {
            let op: TracedOp = serde_json::from_str(line).map_err(|e| wrong(number, format!("this is no operation: {e}")))?;
            if op.rank >= ranks || op.peer.is_some_and(|p| p >= ranks) {
                return Err(wrong(number, format!("its ranks must be below {ranks}")));
            }
            // clocks are not known so well that nothing starts before the root does
            if ![op.start_s.abs(), op.end_s.abs()].into_iter().all(units::is_time) || op.end_s < op.start_s {
                return Err(wrong(number, "start_s and end_s must be times, the end not before the start".into()));
            }
            ops.push(op);
        }
        if ops.is_empty() {
            return Err(wrong(number, "no operation follows what ran".into()));
        }
        Ok(Traced { file: file.into(), head, ops })
    }

    /// As its file holds it.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a value cannot be written, which no trace has.
    pub fn to_text(&self) -> Result<String> {
        let failed = |e: serde_json::Error| Error::invalid(format!("write a trace: {e}"));
        let mut text = serde_json::to_string(&self.head).map_err(failed)? + "\n";
        for op in &self.ops {
            text += &serde_json::to_string(op).map_err(failed)?;
            text.push('\n');
        }
        Ok(text)
    }

    /// The name of its file.
    pub fn file_name(&self) -> String {
        format!("{}-root{}-{}.jsonl", self.head.collective, self.head.root, self.head.bytes)
    }
}

impl Head {
    /// What ran, in this version's format.
    pub fn new(collective: &str, form: String, root: Rank, bytes: usize, library: String, hosts: Vec<String>) -> Head {
        Head { format: FORMAT, collective: collective.into(), form, root, bytes, library, hosts }
    }
}
