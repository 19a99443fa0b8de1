//! What a comparison found.

use crate::collective::{COLLECTIVES, Size, bcast};
use crate::error::{Error, Result};
use crate::files::read_text;
use crate::plan::{least_between, members};
use crate::policy::CompiledPolicy;
use crate::stats;
use crate::topology::Rank;
use crate::units;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The contestant that a policy is for.
pub const ADAPTIVE: &str = "adaptive";
/// A plain two-level form, for comparison.
pub const TWO_LEVEL: &str = "two-level";

/// One way to broadcast, for one root and size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The root.
    pub root: Rank,
    /// The size.
    pub bytes: usize,
    /// The way.
    pub contestant: String,
    /// Each repetition's time.
    pub seconds: Vec<f64>,
    /// Repetitions after which some rank held a wrong byte.
    pub wrong: usize,
}

impl Row {
    /// Quartiles.
    pub fn quartiles(&self) -> [f64; 3] {
        [0.25, 0.5, 0.75].map(|q| stats::quantile(&self.seconds, q).unwrap_or(f64::NAN))
    }
}

/// A comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The collective's name; empty where an older version, which does not say it, wrote the comparison.
    #[serde(default)]
    pub collective: String,
    /// The MPI library.
    pub library: String,
    /// When it ended (UTC); empty where an older version, which does not say it, wrote the comparison.
    #[serde(default)]
    pub date: String,
    /// Each rank's host.
    pub hosts: Vec<String>,
    /// What was measured.
    pub rows: Vec<Row>,
}

impl Report {
    /// Reads what `collwise bench --json` printed.
    ///
    /// # Errors
    /// [`Error::Format`] with file and line, or the file cannot be read.
    pub fn read(path: &Path) -> Result<Report> {
        Report::parse(&path.display().to_string(), &read_text(path)?)
    }

    /// Parses what `collwise bench --json` printed.
    ///
    /// # Errors
    /// [`Error::Format`] with the file, and the line where it is known.
    pub fn parse(file: &str, text: &str) -> Result<Report> {
        let wrong = |line: Option<usize>, reason: String| Error::Format { file: file.into(), line, reason };
        let report: Report = serde_json::from_str(text)
            .map_err(|e| wrong(Some(e.line()), format!("this is no comparison as `collwise bench --json` prints it: {e}")))?;
        if report.rows.is_empty() {
            return Err(wrong(None, "it compares nothing: `rows` is empty".into()));
        }
        for row in &report.rows {
            let of = |what: String| {
                wrong(None, format!("of \"{}\" with {} from root {}: {what}", row.contestant, units::bytes(row.bytes), row.root))
            };
            if row.root >= report.hosts.len() {
                return Err(of(format!("there are {} ranks in `hosts`", report.hosts.len())));
            }
            if row.seconds.is_empty() || row.seconds.iter().any(|&t| !units::is_time(t)) {
                return Err(of("`seconds` needs at least one time, all finite and zero or more".into()));
            }
        }
        Ok(report)
    }

    /// The row of a way.
    pub fn row(&self, root: Rank, bytes: usize, contestant: &str) -> Option<&Row> {
        self.rows.iter().find(|r| r.root == root && r.bytes == bytes && r.contestant == contestant)
    }

    /// The ways, in the order of their turns.
    pub fn contestants(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        self.rows.iter().for_each(|r| {
            if !names.contains(&r.contestant) {
                names.push(r.contestant.clone())
            }
        });
        names
    }

    /// The roots and sizes.
    pub fn cases(&self) -> Vec<(Rank, usize)> {
        let mut cases: Vec<(Rank, usize)> = self.rows.iter().map(|r| (r.root, r.bytes)).collect();
        cases.dedup();
        cases
    }

    /// How many times faster one way is than another: the median of the ratios of neighbouring runs.
    pub fn speedup(&self, root: Rank, bytes: usize, of: &str, over: &str) -> Option<f64> {
        let (own, other) = (self.row(root, bytes, of)?, self.row(root, bytes, over)?);
        stats::median(&own.seconds.iter().zip(&other.seconds).map(|(a, b)| b / a).collect::<Vec<_>>())
    }

    /// The least that links allow by a policy's models, of what has one message or vector, or none: how many bytes cross where each rank has blocks for others
    /// hangs on the collective.
    pub fn bound(&self, policy: &CompiledPolicy, root: Rank, bytes: usize) -> Option<f64> {
        // older versions compared broadcasts alone
        let name = if self.collective.is_empty() { bcast::COLLECTIVE.name } else { &self.collective };
        let collective = COLLECTIVES.iter().find(|c| c.name == name).filter(|c| c.size != Size::Block)?;
        let members = members(&policy.policy, &self.hosts).ok().filter(|members| root < members.len())?;
        let bytes = if collective.sized() { bytes } else { 0 };
        Some(least_between(policy, &members, root, bytes)).filter(|t| t.is_finite() && *t > 0.0)
    }
}
