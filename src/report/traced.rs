//! Traces of what ranks did, as programs write them that run with `COLLWISE_TRACE=FOLDER`: a file a rank, a line a call.

use crate::collective::Collective;
use crate::error::{Error, Result};
use crate::files::read_text;
use crate::schedule::Action;
use crate::topology::Rank;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A call, as all of its ranks traced it.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// The folder.
    pub folder: String,
    /// How many ranks.
    pub ranks: usize,
    /// The host of each; nothing, if the trace is of a version that did not say it.
    pub hosts: Option<Vec<String>>,
    /// What they did together; `None`: the trace is of a version that did not say it.
    pub collective: Option<&'static Collective>,
    /// The size.
    pub bytes: usize,
    /// The root, if there is one; where the trace does not say it, the rank that hears from nobody, if all others do hear.
    pub root: Option<Rank>,
    /// What ranks did, in seconds from the first start.
    pub ops: Vec<TracedOp>,
    /// How many ranks' clocks were set anew, since by them a message was there before it was sent.
    pub clocks_set: usize,
}

/// What an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A message to another rank.
    Send,
    /// One from another rank.
    Recv,
    /// Copying, combining and the like.
    Other,
}

/// One operation of a rank.
#[derive(Debug, Clone, PartialEq)]
pub struct TracedOp {
    /// The rank.
    pub rank: Rank,
    /// What it is.
    pub kind: Kind,
    /// To whom or from whom; itself where it is no message.
    pub peer: Rank,
    /// When it started.
    pub start_s: f64,
    /// When the rank noticed its end.
    pub end_s: f64,
}

/// A line of a rank's file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    #[serde(default)]
    collective: Option<&'static Collective>,
    #[serde(default)]
    root: Option<Rank>,
    bytes: usize,
    ranks: usize,
    actions: Vec<Action>,
    start_s: Vec<f64>,
    end_s: Vec<f64>,
    /// The rank's host; older versions do not say it.
    #[serde(default)]
    host: Option<String>,
    /// When its rank's clock began, by the system's; older versions do not say it.
    #[serde(default)]
    clock_began_s: Option<f64>,
}

/// The name of a rank's file.
fn rank_of(name: &str) -> Option<Rank> {
    name.strip_prefix("rank-")?.strip_suffix(".jsonl")?.parse().ok()
}

impl Traced {
    /// Reads a folder of traces: of the calls among all of its ranks, the last one of each collective, size and root, which found connections open.
    ///
    /// # Errors
    /// The folder cannot be read, has no trace, lacks a rank, or has no call of all ranks; [`Error::Format`] with file and line.
    pub fn read_folder(folder: &Path) -> Result<Vec<Traced>> {
        let failed = |reason: std::io::Error| Error::Io { action: "read", path: folder.into(), reason };
        let entries = std::fs::read_dir(folder).map_err(failed)?.collect::<std::io::Result<Vec<_>>>().map_err(failed)?;
        let named = entries.iter().filter_map(|e| Some((rank_of(e.file_name().to_str()?)?, e.path())));
        let files: BTreeMap<Rank, _> = named.collect();
        let wrong = |reason: String| Error::invalid(format!("show the traces in {}: {reason}", folder.display()));
        let again = "a program that runs with COLLWISE_TRACE=FOLDER and COLLWISE_POLICY writes one for each rank";
        let Some((&last, _)) = files.last_key_value() else { return Err(wrong(format!("it has no rank-*.jsonl; {again}"))) };
        if let Some(missing) = (0..=last).find(|rank| !files.contains_key(rank)) {
            return Err(wrong(format!("rank-{missing}.jsonl is missing, and rank-{last}.jsonl is there; {again}")));
        }
        let calls = files.values().map(|file| calls(&file.display().to_string(), &read_text(file)?)).collect::<Result<Vec<_>>>()?;
        let ranks = calls.len();
        // the k-th call of all ranks is one
        let of_all: Vec<Vec<&Call>> = calls.iter().map(|own| own.iter().filter(|call| call.ranks == ranks).collect()).collect();
        let count = of_all.iter().map(Vec::len).min().unwrap_or(0);
        let what = |call: &Call| (call.collective.map(|c| c.name), call.bytes, call.root);
        let mut last_of: BTreeMap<(Option<&str>, usize, Option<Rank>), usize> = BTreeMap::new();
        for k in (0..count).filter(|&k| of_all.iter().all(|own| what(own[k]) == what(of_all[0][k]))) {
            last_of.insert(what(of_all[0][k]), k);
        }
        if last_of.is_empty() {
            return Err(wrong(format!("no call is of all its {ranks} ranks: trace collectives on MPI_COMM_WORLD")));
        }
        let call = |k: usize| of_all.iter().map(|own| own[k]).collect::<Vec<_>>();
        Ok(last_of.into_values().map(|k| Traced::of(&folder.display().to_string(), &call(k))).collect())
    }

    fn of(folder: &str, calls: &[&Call]) -> Traced {
        let mut ops = Vec::new();
        for (rank, call) in calls.iter().enumerate() {
            // by the system's clock, from when the first rank's began: a difference is known to more digits
            let later = call.clock_began_s.zip(calls[0].clock_began_s).map_or(0.0, |(own, first)| own - first);
            for (k, action) in call.actions.iter().enumerate() {
                let (kind, peer) = match *action {
                    Action::Send { to, .. } => (Kind::Send, to),
                    Action::Recv { from, .. } => (Kind::Recv, from),
                    Action::Copy { .. } | Action::Combine { .. } | Action::Delay { .. } => (Kind::Other, rank),
                };
                ops.push(TracedOp { rank, kind, peer, start_s: call.start_s[k] + later, end_s: call.end_s[k] + later });
            }
        }
        let hears = |rank: Rank| ops.iter().any(|op| op.rank == rank && op.kind == Kind::Recv);
        let mut silent = (0..calls.len()).filter(|&rank| !hears(rank));
        let collective = calls[0].collective;
        let may_have_root = collective.is_none_or(|c| c.rooted);
        let root = calls[0].root.or_else(|| silent.next().filter(|_| may_have_root && silent.next().is_none()));
        let clocks_set = set_clocks(&mut ops, calls.len());
        let first = ops.iter().map(|op| op.start_s).fold(f64::INFINITY, f64::min);
        ops.iter_mut().for_each(|op| (op.start_s, op.end_s) = (op.start_s - first, op.end_s - first));
        let hosts = calls.iter().map(|call| call.host.clone()).collect();
        Traced { folder: folder.into(), ranks: calls.len(), hosts, collective, bytes: calls[0].bytes, root, ops, clocks_set }
    }
}

/// Clocks that run apart while a call goes on never agree: so often they are set, at most.
const MOST_ROUNDS: usize = 64;

/// Sets the clocks of ranks by which a message was there before it was sent, each by as little as may be: times are on each rank's own clock, and nobody
/// knows more. Gives how many were set.
fn set_clocks(ops: &mut [TracedOp], ranks: usize) -> usize {
    let mut sent: FxHashMap<(Rank, Rank), Vec<f64>> = FxHashMap::default();
    ops.iter().filter(|op| op.kind == Kind::Send).for_each(|op| sent.entry((op.rank, op.peer)).or_default().push(op.start_s));
    // the k-th message from one rank to another is the k-th that this one receives from it
    let mut heard: FxHashMap<(Rank, Rank), usize> = FxHashMap::default();
    let mut early: FxHashMap<(Rank, Rank), f64> = FxHashMap::default();
    for op in ops.iter().filter(|op| op.kind == Kind::Recv) {
        let stream = (op.peer, op.rank);
        let k = heard.entry(stream).or_default();
        if let Some(start) = sent.get(&stream).and_then(|all| all.get(*k)) {
            let by = early.entry(stream).or_insert(f64::NEG_INFINITY);
            *by = by.max(start - op.end_s);
        }
        *k += 1;
    }
    let mut early: Vec<((Rank, Rank), f64)> = early.into_iter().collect();
    early.sort_unstable_by_key(|(stream, _)| *stream);
    let mut late = vec![0.0f64; ranks];
    for _ in 0..ranks.min(MOST_ROUNDS) {
        let before = late.clone();
        early.iter().for_each(|&((from, to), by)| late[to] = late[to].max(late[from] + by));
        if late == before {
            break;
        }
    }
    ops.iter_mut().for_each(|op| (op.start_s, op.end_s) = (op.start_s + late[op.rank], op.end_s + late[op.rank]));
    late.iter().filter(|by| **by > 0.0).count()
}

/// The calls in a rank's file.
fn calls(file: &str, text: &str) -> Result<Vec<Call>> {
    let wrong = |line: usize, reason: String| Error::Format { file: file.into(), line: Some(line), reason };
    let mut all = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(k, line)| (k + 1, line)).filter(|(_, line)| !line.trim().is_empty()) {
        let call: Call =
            serde_json::from_str(line).map_err(|e| wrong(number, format!("this is no call as COLLWISE_TRACE writes it: {e}")))?;
        if call.actions.len() != call.start_s.len() || call.actions.len() != call.end_s.len() {
            return Err(wrong(number, "`actions`, `start_s` and `end_s` must be as long as each other".into()));
        }
        if call.start_s.iter().chain(&call.end_s).chain(&call.clock_began_s).any(|t| !t.is_finite()) {
            return Err(wrong(number, "`start_s`, `end_s` and `clock_began_s` must be times".into()));
        }
        let peers = call.actions.iter().filter_map(|a| match *a {
            Action::Send { to: peer, .. } | Action::Recv { from: peer, .. } => Some(peer),
            _ => None,
        });
        if let Some(peer) = peers.chain(call.root).filter(|&peer| peer >= call.ranks).max() {
            return Err(wrong(number, format!("rank {peer} is outside its {} ranks", call.ranks)));
        }
        all.push(call);
    }
    Ok(all)
}
