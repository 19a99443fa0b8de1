//! The critical path of a replayed schedule: the operations that its last end waited for, one after the other.

use crate::model::CostModel;
use crate::predict::Replay;
use crate::schedule::{Action, Program, Schedule};
use crate::topology::{Link, Rank};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::collections::VecDeque;

/// An operation on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The rank.
    pub rank: Rank,
    /// Its operation's place in its program.
    pub op: usize,
    /// When it is on the path: of a message from when it is sent, of others from when they start.
    pub at_s: f64,
}

/// Times that differ by less are one: replays round them.
const ROUNDED_S: f64 = 2e-9;
/// A path has no more steps: pipelines have one for each segment and each rank.
const MOST: usize = 20_000;

/// From its first operation to its last. The replay does not keep what each operation waited for: it is found again, since whatever starts does so when the
/// last thing it waits for ends.
pub fn critical_path(schedule: &Schedule, replay: &Replay, model: &dyn CostModel) -> Vec<Step> {
    let ranks = 0..schedule.ranks();
    let last = ranks.flat_map(|rank| (0..schedule.programs[rank].len()).map(move |op| (rank, op))).max_by(|a, b| {
        let end = |&(rank, op): &(Rank, usize)| replay.traces[rank].end[op];
        end(a).total_cmp(&end(b)).then(b.cmp(a))
    });
    let looked = Looked::all(schedule);
    let (mut path, mut at) = (Vec::new(), last);
    while let Some((rank, op)) = at.filter(|_| path.len() < MOST) {
        let (program, trace, own) = (&schedule.programs[rank], &replay.traces[rank], &looked[rank]);
        let action = program.action(op);
        let is_receive = matches!(action, Action::Recv { .. });
        path.push(Step { rank, op, at_s: if is_receive { trace.end[op] } else { trace.start[op] } });
        at = match action {
            Action::Recv { from, .. } => own.sends[op].map(|send| {
                let cost = model.cost(Link { from, to: rank }, program.bytes(op));
                let arrives = replay.traces[from].start[send] + cost.transit;
                // where it was there before, the processor or the port was busy with something else
                let other = || last_before(own.by_end(&trace.end), &trace.end, trace.end[op]);
                let busy = Some(arrives + ROUNDED_S < trace.end[op]).filter(|late| *late).and_then(|_| other());
                busy.filter(|&k| trace.end[k] > arrives).map_or((from, send), |k| (rank, k))
            }),
            _ => {
                let start = trace.start[op];
                let known = program.after(op).iter().map(|&k| k as usize).max_by(|&a, &b| trace.end[a].total_cmp(&trace.end[b]));
                let waits = known.filter(|&k| trace.end[k] + ROUNDED_S >= start);
                waits.or_else(|| last_before(own.by_start(program, &trace.start), &trace.start, start)).or(known).map(|k| (rank, k))
            }
        };
    }
    path.reverse();
    path
}

/// What is looked for in a rank's program, found once: a path has thousands of steps through programs of thousands of operations. It goes through few ranks of
/// many, and only what these do is put in order.
struct Looked {
    /// The send that each receive takes.
    sends: Vec<Option<usize>>,
    by_end: OnceCell<Vec<usize>>,
    by_start: OnceCell<Vec<usize>>,
}

impl Looked {
    fn all(schedule: &Schedule) -> Vec<Looked> {
        // the k-th message from one rank to another is the k-th that this one receives from it
        let mut sent: FxHashMap<(Rank, Rank), VecDeque<usize>> = FxHashMap::default();
        for (rank, program) in schedule.programs.iter().enumerate() {
            for op in 0..program.len() {
                if let Some(to) = program.sends_to(op) {
                    sent.entry((rank, to)).or_default().push_back(op);
                }
            }
        }
        let mut of = |(rank, program): (Rank, &Program)| {
            let send = |op: usize| match program.action(op) {
                Action::Recv { from, .. } => sent.get_mut(&(from, rank)).and_then(VecDeque::pop_front),
                _ => None,
            };
            Looked { sends: (0..program.len()).map(send).collect(), by_end: OnceCell::new(), by_start: OnceCell::new() }
        };
        schedule.programs.iter().enumerate().map(&mut of).collect()
    }

    /// All operations, by their ends.
    fn by_end(&self, ends: &[f64]) -> &[usize] {
        self.by_end.get_or_init(|| sorted((0..ends.len()).collect(), ends))
    }

    /// All but receives, by their starts.
    fn by_start(&self, program: &Program, starts: &[f64]) -> &[usize] {
        let others = || (0..program.len()).filter(|&op| !matches!(program.action(op), Action::Recv { .. })).collect();
        self.by_start.get_or_init(|| sorted(others(), starts))
    }
}

/// Operations by these times.
fn sorted(mut operations: Vec<usize>, times: &[f64]) -> Vec<usize> {
    operations.sort_by(|&a, &b| times[a].total_cmp(&times[b]));
    operations
}

/// The last of operations, sorted by these times, that is before one.
fn last_before(sorted: &[usize], times: &[f64], before: f64) -> Option<usize> {
    sorted.partition_point(|&k| times[k] < before).checked_sub(1).map(|at| sorted[at])
}
