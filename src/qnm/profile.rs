//! A profile of MPI calls, kept by the program itself and written as a report of mpiP, for machines without mpiP.

use super::distances::{self, ProfiledDistance};
use super::used::{self, Alike, ProfiledUse};
use crate::error::{Error, Result};
pub(super) use crate::units::number as short; // mpiP writes three digits too
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt::Write;

/// The calls of one process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Its node.
    pub node: String,
    /// Seconds from the end of `MPI_Init` to the begin of `MPI_Finalize`.
    pub app_s: f64,
    /// In order of their first calls.
    pub sites: Vec<ProfiledSite>,
    /// Its collectives by communicator, in order of their first calls.
    #[serde(default)]
    pub uses: Vec<ProfiledUse>,
    /// Where they stand in that list.
    #[serde(skip)]
    pub places: HashMap<Alike, usize>,
    /// Its messages by how far their receivers are, in order of the first ones.
    #[serde(default)]
    pub distances: Vec<ProfiledDistance>,
}

/// A place that calls MPI, and what one process did there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfiledSite {
    /// Without `MPI_`.
    pub call: String,
    /// The source file.
    pub file: String,
    /// Its line.
    pub line: u32,
    /// How often.
    pub count: u64,
    /// All, longest and shortest time.
    pub seconds: [f64; 3],
    /// All bytes sent, the most and the least in one call.
    pub bytes: [f64; 3],
}

impl Profile {
    /// Notes a call from a place, such as `std::panic::Location::caller()`.
    pub fn note(&mut self, call: &str, file: &str, line: u32, seconds: f64, bytes: usize) {
        let bytes = bytes as f64;
        match self.sites.iter_mut().find(|s| s.line == line && s.call == call && s.file == file) {
            Some(site) => {
                site.count += 1;
                site.seconds = joined(site.seconds, [seconds; 3]);
                site.bytes = joined(site.bytes, [bytes; 3]);
            }
            None => self.sites.push(ProfiledSite {
                call: call.into(),
                file: file.into(),
                line,
                count: 1,
                seconds: [seconds; 3],
                bytes: [bytes; 3],
            }),
        }
    }

    fn mpi_s(&self) -> f64 {
        // a sum of none is -0.0
        self.sites.iter().map(|s| s.seconds[0]).fold(0.0, |all, one| all + one)
    }

    fn at(&self, key: &Key) -> Option<&ProfiledSite> {
        self.sites.iter().find(|s| key.is(s))
    }
}

/// Sum, most and least of two together.
fn joined(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] + b[0], a[1].max(b[1]), a[2].min(b[2])]
}

/// What makes a site the same on all processes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    file: String,
    line: u32,
    call: String,
}

impl Key {
    fn is(&self, site: &ProfiledSite) -> bool {
        self.line == site.line && self.call == site.call && self.file == site.file
    }
}

const RULE: &str = "---------------------------------------------------------------------------";

fn heading(out: &mut String, title: &str) {
    let dashes = "-".repeat(RULE.len().saturating_sub(title.len() + 6));
    let _ = writeln!(out, "{RULE}\n@--- {title} {dashes}\n{RULE}");
}

/// A text with line ends and other control characters made spaces: arguments may have them, and a report is read by its lines.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The report of all processes, by rank, in mpiP's layout.
///
/// # Errors
/// No process.
pub fn report(command: &str, profiles: &[Profile]) -> Result<String> {
    if profiles.is_empty() {
        return Err(Error::invalid("write a report of no process"));
    }
    let mut keys: Vec<Key> =
        profiles.iter().flat_map(|p| p.sites.iter().map(|s| Key { file: s.file.clone(), line: s.line, call: s.call.clone() })).collect();
    keys.sort();
    keys.dedup();
    let (app, mpi) = (profiles.iter().map(|p| p.app_s).sum::<f64>(), profiles.iter().map(Profile::mpi_s).sum::<f64>());
    let mut out = format!(
        "@ mpiP\n@ Command : {}\n@ Version                  : 3.5 (collwise {})\n@ Timer Used               : PMPI_Wtime\n",
        one_line(command),
        env!("CARGO_PKG_VERSION")
    );
    for (rank, profile) in profiles.iter().enumerate() {
        let _ = writeln!(out, "@ MPI Task Assignment      : {rank} {}", one_line(&profile.node));
    }
    out.push('\n');
    heading(&mut out, "MPI Time (seconds)");
    out.push_str("Task    AppTime    MPITime     MPI%\n");
    let mut row = |task: &str, app: f64, mpi: f64| {
        let _ = writeln!(out, "{task:>4} {:>10} {:>10} {:>8.2}", short(app), short(mpi), 100.0 * mpi / app.max(f64::MIN_POSITIVE));
    };
    profiles.iter().enumerate().for_each(|(rank, p)| row(&rank.to_string(), p.app_s, p.mpi_s()));
    row("*", app, mpi);
    heading(&mut out, &format!("Callsites: {}", keys.len()));
    out.push_str(" ID Lev File/Address        Line Parent_Funct             MPI_Call\n");
    for (k, key) in keys.iter().enumerate() {
        let _ = writeln!(out, "{:>3}   0 {:<20} {:>4} {:<24} {}", k + 1, key.file, key.line, "[unknown]", key.call);
    }
    heading(&mut out, &format!("Callsite Time statistics (all, milliseconds): {}", keys.len() * profiles.len()));
    out.push_str("Name              Site Rank  Count      Max     Mean      Min   App%   MPI%\n");
    for (k, key) in keys.iter().enumerate() {
        rows(
            profiles,
            key,
            |s| s.seconds.map(|t| t * 1e3),
            |rank, count, [sum, most, least]| {
                let name_and_rank = format!("{:<17} {:>4} {rank:>4} {count:>6}", key.call, k + 1);
                let (most, mean, least) = (short(most), short(sum / count as f64), short(least));
                let shares = (sum / 10.0 / app.max(f64::MIN_POSITIVE), sum / 10.0 / mpi.max(f64::MIN_POSITIVE));
                let _ = writeln!(out, "{name_and_rank} {most:>8} {mean:>8} {least:>8} {:>6.2} {:>6.2}", shares.0, shares.1);
            },
        );
        out.push('\n');
    }
    let sends = |key: &Key| profiles.iter().filter_map(|p| p.at(key)).any(|s| s.bytes[0] > 0.0);
    let sending = keys.iter().filter(|k| sends(k)).count();
    heading(&mut out, &format!("Callsite Message Sent statistics (all, sent bytes): {}", sending * profiles.len()));
    out.push_str("Name              Site Rank   Count       Max      Mean       Min       Sum\n");
    for (k, key) in keys.iter().enumerate().filter(|(_, k)| sends(k)) {
        rows(
            profiles,
            key,
            |s| s.bytes,
            |rank, count, [sum, most, least]| {
                let name_and_rank = format!("{:<17} {:>4} {rank:>4} {count:>7}", key.call, k + 1);
                let (most, mean, least) = (short(most), short(sum / count as f64), short(least));
                let _ = writeln!(out, "{name_and_rank} {most:>9} {mean:>9} {least:>9} {:>9}", short(sum));
            },
        );
        out.push('\n');
    }
    if let Some((count, rows)) = distances::table(profiles) {
        heading(&mut out, &format!("{} (all, sent bytes): {count}", distances::TITLE));
        out.push_str(&rows);
        out.push('\n');
    }
    if let Some((count, rows)) = used::table(profiles) {
        heading(&mut out, &format!("{} (of a process, milliseconds): {count}", used::TITLE));
        out.push_str(&rows);
        out.push('\n');
    }
    heading(&mut out, "End of Report");
    Ok(out)
}

/// A site's rows: one for each process that was there, and their sum.
fn rows(profiles: &[Profile], key: &Key, of: fn(&ProfiledSite) -> [f64; 3], mut write: impl FnMut(&str, u64, [f64; 3])) {
    let (mut count, mut all) = (0u64, [0.0, 0.0, f64::INFINITY]);
    for (rank, site) in profiles.iter().enumerate().filter_map(|(rank, p)| Some((rank, p.at(key)?))) {
        write(&rank.to_string(), site.count, of(site));
        count = count.saturating_add(site.count);
        all = joined(all, of(site));
    }
    write("*", count, all);
}
