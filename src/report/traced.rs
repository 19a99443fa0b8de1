//! Traces of what ranks did, as programs write them that run with `COLLWISE_TRACE=FOLDER`: a file a rank, a line a call.

use crate::error::{Error, Result};
use crate::files::read_text;
use crate::schedule::Action;
use crate::topology::Rank;
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
    /// The size.
    pub bytes: usize,
    /// The rank that hears from nobody, if all others do hear: of a broadcast, the root.
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
    bytes: usize,
    ranks: usize,
    actions: Vec<Action>,
    start_s: Vec<f64>,
    end_s: Vec<f64>,
}

/// The name of a rank's file.
fn rank_of(name: &str) -> Option<Rank> {
    name.strip_prefix("rank-")?.strip_suffix(".jsonl")?.parse().ok()
}

impl Traced {
    /// Reads a folder of traces: of the calls among all of its ranks, the last one of each size, which found connections open.
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
        let mut by_size: BTreeMap<usize, Traced> = BTreeMap::new();
        for k in 0..count {
            let call: Vec<&Call> = of_all.iter().map(|own| own[k]).collect();
            if call.iter().all(|c| c.bytes == call[0].bytes) {
                by_size.insert(call[0].bytes, Traced::of(&folder.display().to_string(), &call));
            }
        }
        if by_size.is_empty() {
            return Err(wrong(format!("no call is of all its {ranks} ranks: trace collectives on MPI_COMM_WORLD")));
        }
        Ok(by_size.into_values().collect())
    }

    fn of(folder: &str, calls: &[&Call]) -> Traced {
        let mut ops = Vec::new();
        for (rank, call) in calls.iter().enumerate() {
            for (k, action) in call.actions.iter().enumerate() {
                let (kind, peer) = match *action {
                    Action::Send { to, .. } => (Kind::Send, to),
                    Action::Recv { from, .. } => (Kind::Recv, from),
                    Action::Copy { .. } | Action::Combine { .. } | Action::Delay { .. } => (Kind::Other, rank),
                };
                ops.push(TracedOp { rank, kind, peer, start_s: call.start_s[k], end_s: call.end_s[k] });
            }
        }
        let hears = |rank: Rank| ops.iter().any(|op| op.rank == rank && op.kind == Kind::Recv);
        let mut silent = (0..calls.len()).filter(|&rank| !hears(rank));
        let root = silent.next().filter(|_| silent.next().is_none());
        let clocks_set = root.map_or(0, |root| set_clocks(&mut ops, calls.len(), root));
        let first = ops.iter().map(|op| op.start_s).fold(f64::INFINITY, f64::min);
        ops.iter_mut().for_each(|op| (op.start_s, op.end_s) = (op.start_s - first, op.end_s - first));
        Traced { folder: folder.into(), ranks: calls.len(), bytes: calls[0].bytes, root, ops, clocks_set }
    }
}

/// Sets the clocks of ranks by which the first message they hear was there before it was sent, so that it is there when its send ends: times are on each
/// rank's own clock, and nobody knows more. Gives how many were set.
fn set_clocks(ops: &mut [TracedOp], ranks: usize, root: Rank) -> usize {
    let (mut set, mut known, mut queue) = (0, vec![false; ranks], vec![root]);
    known[root] = true;
    while let Some(from) = queue.pop() {
        let sends: Vec<(Rank, f64, f64)> =
            ops.iter().filter(|op| op.rank == from && op.kind == Kind::Send).map(|op| (op.peer, op.start_s, op.end_s)).collect();
        for (to, start, end) in sends {
            if std::mem::replace(&mut known[to], true) {
                continue;
            }
            let heard = ops.iter().find(|op| op.rank == to && op.kind == Kind::Recv && op.peer == from).map(|op| op.end_s);
            if let Some(early) = heard.filter(|heard| *heard < start) {
                set += 1;
                ops.iter_mut()
                    .filter(|op| op.rank == to)
                    .for_each(|op| (op.start_s, op.end_s) = (op.start_s + end - early, op.end_s + end - early));
            }
            queue.push(to);
        }
    }
    set
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
        if call.start_s.iter().chain(&call.end_s).any(|t| !t.is_finite()) {
            return Err(wrong(number, "`start_s` and `end_s` must be times".into()));
        }
        let peers = call.actions.iter().filter_map(|a| match *a {
            Action::Send { to: peer, .. } | Action::Recv { from: peer, .. } => Some(peer),
            _ => None,
        });
        if let Some(peer) = peers.filter(|&peer| peer >= call.ranks).max() {
            return Err(wrong(number, format!("rank {peer} is outside its {} ranks", call.ranks)));
        }
        all.push(call);
    }
    Ok(all)
}
