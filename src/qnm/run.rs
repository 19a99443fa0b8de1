//! What one run of an application tells: how often each MPI call was made, what it sent, and how long that took.

use super::among::{Part, is_said, parts};
use super::{Distance, Partners, Report, Site, partners};
use crate::error::{Error, Result};
use serde::Serialize;

/// What a run tells; seconds and numbers are means over its processes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// The report's file.
    pub file: String,
    /// What was run.
    pub command: String,
    /// Processes.
    pub ranks: usize,
    /// Seconds between the end of `MPI_Init` and the begin of `MPI_Finalize`.
    pub wall_s: f64,
    /// Seconds in MPI.
    pub mpi_s: f64,
    /// How much longer the process that computed most did so than all in the mean, in seconds; 0 where the report lists no process.
    pub imbalance_s: f64,
    /// By name of the call, those that send.
    pub calls: Vec<Call>,
    /// The same calls by name and size, ascending.
    #[serde(skip)]
    pub by_size: Vec<Call>,
    /// Messages by how far their receivers are; none where the report does not say.
    #[serde(skip)]
    pub distances: Vec<Distance>,
    /// Collectives of which the report does not say among which processes they are: they are taken to be among all.
    #[serde(skip)]
    pub undivided: Vec<String>,
    /// Seconds of reading and writing files.
    pub files_s: f64,
    /// The share of bytes sent, and of the time in MPI, that is at sites of which the report says so little that they were taken to be as
    /// those that it lists.
    pub unlisted: (f64, f64),
}

/// Calls of one name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Call {
    /// Without `MPI_`.
    pub name: String,
    /// Calls of a process.
    pub count: f64,
    /// Bytes of one call, as mpiP says them.
    pub bytes: f64,
    /// Who says so.
    pub said: Said,
    /// The processes that it is among, if not all.
    pub part: Option<Part>,
    /// The how-manieth of the parts, 1 is the one of the nearest ranks; 0 for those among all.
    pub nth: usize,
    /// The how-manieth of the sizes of such calls, where they are told apart: the least is 0.
    pub size: usize,
    /// Seconds of a process in all of them.
    pub seconds: f64,
}

/// Who says how many bytes a call sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Said {
    /// The report.
    #[default]
    Report,
    /// The user.
    User,
    /// The report, of calls that go with these.
    Match,
    /// Reports of other runs: it follows their law.
    Others,
    /// Nobody: it is taken to be what the call's time allows.
    Time,
    /// Nobody, and its time tells nothing: it is taken to be nothing.
    Nobody,
}

impl Said {
    /// True where a report, or the user, says it of this run.
    pub fn is_known(self) -> bool {
        self <= Said::Match
    }
}

/// Calls of files begin so.
const FILES: &str = "File_";

/// Times that differ by less are the same, but for how their sum was rounded.
const ROUNDED: f64 = 1e-9;

/// mpiP writes three digits: sizes that differ by less are one.
const SAME_SIZE: f64 = 0.01;

impl Call {
    /// What calls of all sizes share.
    pub(super) fn kind(&self) -> (&str, usize) {
        (&self.name, self.nth)
    }

    /// With others of the same name.
    fn add(&mut self, other: &Call) {
        let all = self.count + other.count;
        self.bytes = (self.bytes * self.count + other.bytes * other.count) / all;
        (self.count, self.seconds) = (all, self.seconds + other.seconds);
    }

    /// True if its time in MPI is its own: a collective that waits until it is done. What else sends is waited for elsewhere.
    pub fn is_waited_for(&self) -> bool {
        partners(&self.name) == Some(Partners::Anyone) && !self.name.starts_with('I')
    }
}

/// Calls whose bytes mpiP 3.5 writes nowhere.
const NEVER_SAID: [&str; 3] = ["Alltoallv", "Reduce_scatter", "Scatterv"];

/// Those of which it writes none where the buffer is in place.
const UNSAID_IN_PLACE: [&str; 3] = ["Allgather", "Allgatherv", "Alltoall"];

/// Calls that go with those of a name where there are as many: both ways of the same data, or the same with others' help.
const MATCHING: [(&str, &[&str]); 5] = [
    ("Alltoallv", &["Ialltoallv"]),
    ("Scatterv", &["Gatherv", "Igatherv"]),
    ("Reduce_scatter", &["Ireduce_scatter"]),
    ("Allgather", &["Allgatherv", "Iallgather"]),
    ("Alltoall", &["Ialltoall"]),
];

/// Bytes of the calls that go with those of a name, of which the report says none.
fn matching_bytes(report: &Report, call: &str) -> Option<f64> {
    let sum = |name: &str, of: fn(&Site) -> f64, is_said: bool| {
        let own = report.sites.iter().filter(|site| site.call == name && (site.bytes > 0.0) == is_said);
        own.map(of).sum::<f64>()
    };
    let count = |site: &Site| site.count.unwrap_or(0.0);
    let calls = sum(call, count, false);
    let (_, names) = MATCHING.iter().find(|(name, _)| *name == call)?;
    let as_many = |name: &&&str| calls > 0.0 && sum(name, count, true) == calls;
    names.iter().find(as_many).map(|name| sum(name, |site| site.bytes, true) / calls)
}

/// True for calls that send bytes of which mpiP's report says nothing. What a table of the sites that send most leaves out is little; our own
/// reports say the bytes of all calls.
fn says_no_bytes(report: &Report, site: &Site) -> bool {
    let is_one_of = |calls: &[&str]| calls.contains(&site.call.as_str());
    let is_cut = report.listed.bytes_share < 1.0;
    site.bytes == 0.0 && !report.is_own() && (is_one_of(&NEVER_SAID) || (is_one_of(&UNSAID_IN_PLACE) && !is_cut))
}

impl Run {
    /// A run from its report.
    ///
    /// # Errors
    /// The report says nowhere how often its sites were called.
    pub fn of(report: &Report) -> Result<Run> {
        let ranks = report.ranks();
        let each = 1.0 / ranks as f64;
        let sends = || report.sites.iter().filter(|site| partners(&site.call).is_some());
        let mut calls: Vec<Call> = Vec::new();
        for site in sends() {
            let Some(count) = site.count.or_else(|| alike(report, site)).filter(|c| *c > 0.0) else { continue };
            let (said, bytes) = match says_no_bytes(report, site).then(|| matching_bytes(report, &site.call)) {
                None => (Said::Report, site.bytes / count),
                Some(Some(bytes)) => (Said::Match, bytes),
                Some(None) => (Said::Time, 0.0),
            };
            for share in parts(report, site).into_iter().filter(|share| share.part.is_none_or(|part| part.ranks > 1)) {
                let (count, seconds, part) = (count * each * share.calls, site.seconds * each * share.seconds, share.part);
                let bytes = share.bytes.unwrap_or(bytes);
                let own = Call { name: site.call.clone(), count, bytes, said, part, nth: 0, size: 0, seconds };
                let is_alike = |c: &Call| c.kind() == own.kind() && c.part == part && (c.bytes - own.bytes).abs() <= SAME_SIZE * c.bytes;
                match calls.iter_mut().find(|c| is_alike(c)) {
                    None => calls.push(own),
                    Some(c) => c.add(&own),
                }
            }
        }
        // a program may send nothing
        if calls.is_empty() && sends().any(|site| site.count.is_none()) {
            return Err(Error::data(format!(
                "read {}: it says of no call site that sends how often it was called and what it sent; ask mpiP for its full report (without -c)",
                report.file
            )));
        }
        let mut known: Vec<(String, Part)> = calls.iter().filter_map(|c| Some((c.name.clone(), c.part?))).collect();
        // ranks of rows are nearer than those of columns, whichever are more
        known.sort_unstable_by(|a, b| {
            let order = |part: &Part| (part.stride.is_none(), part.stride, part.ranks, part.range);
            a.0.cmp(&b.0).then_with(|| order(&a.1).cmp(&order(&b.1)))
        });
        known.dedup();
        for call in &mut calls {
            let own = || known.iter().filter(|(name, _)| *name == call.name);
            call.nth = call.part.and_then(|part| own().position(|k| k.1 == part)).map_or(0, |k| k + 1);
        }
        calls.sort_by(|a, b| a.kind().cmp(&b.kind()).then(a.bytes.total_cmp(&b.bytes)));
        for k in 1..calls.len() {
            calls[k].size = if calls[k].kind() == calls[k - 1].kind() { calls[k - 1].size + 1 } else { 0 };
        }
        let (time, bytes) = (report.listed.time_share, report.listed.bytes_share);
        let mut by_name = one_a_kind(&calls, |_| false);
        for call in calls.iter_mut().chain(&mut by_name) {
            // bytes of a call stay as they are
            call.count /= report.listed.calls_share(call.bytes);
            call.seconds /= time;
        }
        let unknown_s: f64 = sends().filter(|site| site.count.is_none()).map(|site| site.seconds).sum();
        let all_s = (report.mean.mpi_s * ranks as f64).max(f64::MIN_POSITIVE);
        let uncounted: f64 = sends().filter(|site| site.count.is_none()).map(|site| site.bytes).sum();
        let all_bytes = sends().map(|site| site.bytes).sum::<f64>().max(f64::MIN_POSITIVE);
        let mut undivided: Vec<String> = by_name.iter().map(|c| c.name.clone()).filter(|name| !is_said(report, name)).collect();
        undivided.dedup();
        let computing: Vec<f64> = report.tasks.iter().map(|t| t.app_s - t.mpi_s).collect();
        let mean = crate::stats::mean(&computing).unwrap_or(0.0);
        Ok(Run {
            file: report.file.clone(),
            command: report.command.clone(),
            ranks,
            wall_s: report.mean.app_s,
            mpi_s: report.mean.mpi_s,
            imbalance_s: computing.iter().map(|c| c - mean).filter(|longer| *longer > ROUNDED * mean).fold(0.0, f64::max),
            calls: by_name,
            by_size: calls,
            distances: report.distances.clone(),
            undivided,
            files_s: report.sites.iter().filter(|site| site.call.starts_with(FILES)).fold(0.0, |all, site| all + site.seconds * each),
            unlisted: (1.0 - bytes * (1.0 - uncounted / all_bytes), 1.0 - time * (1.0 - unknown_s / all_s)),
        })
    }

    /// With calls of some kinds told apart by size.
    pub(super) fn told_apart(&self, which: impl Fn(&Call) -> bool) -> Run {
        Run { calls: one_a_kind(&self.by_size, which), ..self.clone() }
    }

    /// Takes calls of names of which this report does not say among which processes they are to be as in another one of as many processes, which does, if as
    /// many calls send as many bytes there.
    pub(super) fn divide_as(&mut self, other: &Run) {
        for name in std::mem::take(&mut self.undivided) {
            let own = |run: &Run| run.by_size.iter().filter(|c| c.name == name).cloned().collect::<Vec<Call>>();
            let (here, there) = (own(self), own(other));
            let sum = |calls: &[Call], of: fn(&Call) -> f64| calls.iter().map(of).sum::<f64>();
            let is_same = |of: fn(&Call) -> f64| (sum(&here, of) - sum(&there, of)).abs() <= SAME_SIZE * sum(&there, of);
            let does_the_same = is_same(|c| c.count) && is_same(|c| c.count * c.bytes) && sum(&there, |c| c.seconds) > 0.0;
            if !does_the_same || there.iter().all(|call| call.part.is_none()) || other.undivided.contains(&name) {
                self.undivided.push(name);
                continue;
            }
            let times = sum(&here, |c| c.seconds) / sum(&there, |c| c.seconds);
            self.by_size.retain(|c| c.name != name);
            self.by_size.extend(there.into_iter().map(|c| Call { seconds: c.seconds * times, ..c }));
        }
        self.by_size.sort_by(|a, b| a.kind().cmp(&b.kind()).then(a.bytes.total_cmp(&b.bytes)));
        self.calls = one_a_kind(&self.by_size, |_| false);
    }

    /// The program, without the number of processes that some have in their names (`is.A.4`).
    pub fn program(&self) -> &str {
        let name = self.command.split_whitespace().next().unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or(name);
        name.strip_suffix(&format!(".{}", self.ranks)).unwrap_or(name)
    }

    /// Takes what the user says of the bytes of calls of a name, of which the report says nothing: bytes of a call among so many processes.
    /// False if there are none.
    pub fn set_bytes(&mut self, name: &str, bytes: f64) -> bool {
        let mut any = false;
        for call in self.calls.iter_mut().chain(&mut self.by_size).filter(|c| c.name == name && matches!(c.said, Said::Match | Said::Time))
        {
            (call.bytes, call.said) = (bytes, Said::User);
            any = true;
        }
        any
    }

    /// Seconds in MPI that are not those of files, or of collectives which wait until they are done; none where the report says no call's time.
    pub fn elsewhere_s(&self) -> Option<f64> {
        let known = self.calls.iter().any(|c| c.seconds > 0.0);
        let waited: f64 = self.calls.iter().filter(|c| c.is_waited_for()).map(|c| c.seconds).sum();
        known.then(|| (self.mpi_s - self.files_s - waited).max(0.0))
    }
}

/// Calls that are in order, with those of one name as one, but for those that are told apart.
fn one_a_kind(calls: &[Call], is_told_apart: impl Fn(&Call) -> bool) -> Vec<Call> {
    let mut kinds: Vec<Call> = Vec::new();
    for call in calls {
        match kinds.last_mut().filter(|last| last.kind() == call.kind() && !is_told_apart(call)) {
            None => kinds.push(call.clone()),
            Some(last) => last.add(call),
        }
    }
    kinds
}

/// How often a site was called that a concise report does not count: as its bytes, or its time, are to those of counted sites of that call.
fn alike(report: &Report, site: &Site) -> Option<f64> {
    let counted = || report.sites.iter().filter(|s| s.call == site.call && s.count.is_some());
    let sum = |of: fn(&Site) -> f64| counted().map(of).sum::<f64>();
    let calls = sum(|s| s.count.unwrap_or(0.0));
    let (bytes, seconds) = (sum(|s| s.bytes), sum(|s| s.seconds));
    let (own, all) = if site.bytes > 0.0 && bytes > 0.0 { (site.bytes, bytes) } else { (site.seconds, seconds) };
    (all > 0.0).then(|| own / all * calls)
}
