//! What a comparison found.

use crate::error::{Error, Result};
use crate::files::read_text;
use crate::platform::Platform;
use crate::stats;
use crate::topology::Rank;
use crate::units;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The group of a host, or of a machine that stands for a whole group and has its name.
pub(super) fn group_of_host(platform: &Platform, host: &str) -> Option<usize> {
    let of_group = platform.groups.iter().position(|g| g.name == host);
    of_group.or_else(|| platform.host_names().iter().position(|n| n == host).map(|k| platform.host_groups()[k]))
}

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

    /// What the direct way takes at least: to the farthest group, latency and the message's time on the link to it. Where links differ, a
    /// message that goes over several of them can be there before.
    pub fn bound(&self, platform: &Platform, root: Rank, bytes: usize) -> Option<f64> {
        let home = group_of_host(platform, self.hosts.get(root)?)?;
        let others = self.hosts.iter().filter_map(|h| group_of_host(platform, h)).filter(|&g| g != home);
        let there = |g: usize| {
            let link = platform.link(home, g)?;
            Some(link.latency_s + link.bandwidth_bytes_per_s.map_or(0.0, |b| bytes as f64 / b))
        };
        others.filter_map(there).reduce(f64::max)
    }
}
