//! The critical path of a replayed schedule: the operations that its last end waited for, one after the other.

use crate::model::CostModel;
use crate::predict::Replay;
use crate::schedule::{Action, Schedule};
use crate::topology::{Link, Rank};
use rustc_hash::FxHashMap;

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
    let sends = Sends::new(schedule);
    let (mut path, mut at) = (Vec::new(), last);
    while let Some((rank, op)) = at.filter(|_| path.len() < MOST) {
        let (program, trace) = (&schedule.programs[rank], &replay.traces[rank]);
        let is_receive = matches!(program.action(op), Action::Recv { .. });
        path.push(Step { rank, op, at_s: if is_receive { trace.end[op] } else { trace.start[op] } });
        at = match program.action(op) {
            Action::Recv { from, .. } => sends.of(schedule, rank, from, op).map(|send| {
                let cost = model.cost(Link { from, to: rank }, program.bytes(op));
                let arrives = replay.traces[from].start[send] + cost.transit;
                // where it was there before, the processor or the port was busy with something else
                let other = || {
                    (0..program.len())
                        .filter(|&k| k != op && trace.end[k] < trace.end[op])
                        .max_by(|&a, &b| trace.end[a].total_cmp(&trace.end[b]))
                };
                let busy = Some(arrives + ROUNDED_S < trace.end[op]).filter(|late| *late).and_then(|_| other());
                busy.filter(|&k| trace.end[k] > arrives).map_or((from, send), |k| (rank, k))
            }),
            _ => {
                let start = trace.start[op];
                let known = program.after(op).iter().map(|&k| k as usize).max_by(|&a, &b| trace.end[a].total_cmp(&trace.end[b]));
                let sent_before = || {
                    let earlier =
                        (0..program.len()).filter(|&k| !matches!(program.action(k), Action::Recv { .. }) && trace.start[k] < start);
                    earlier.max_by(|&a, &b| trace.start[a].total_cmp(&trace.start[b]))
                };
                let waits = known.filter(|&k| trace.end[k] + ROUNDED_S >= start);
                waits.or_else(sent_before).or(known).map(|k| (rank, k))
            }
        };
    }
    path.reverse();
    path
}

/// The sends of each stream: the k-th message from one rank to another is the k-th that this one receives from it.
struct Sends {
    by_stream: FxHashMap<(Rank, Rank), Vec<usize>>,
}

impl Sends {
    fn new(schedule: &Schedule) -> Sends {
        let mut by_stream: FxHashMap<(Rank, Rank), Vec<usize>> = FxHashMap::default();
        for (rank, program) in schedule.programs.iter().enumerate() {
            for op in 0..program.len() {
                if let Some(to) = program.sends_to(op) {
                    by_stream.entry((rank, to)).or_default().push(op);
                }
            }
        }
        Sends { by_stream }
    }

    /// The send that a receive takes.
    fn of(&self, schedule: &Schedule, rank: Rank, from: Rank, op: usize) -> Option<usize> {
        let program = &schedule.programs[rank];
        let before = (0..op).filter(|&k| matches!(program.action(k), Action::Recv { from: other, .. } if other == from)).count();
        self.by_stream.get(&(from, rank))?.get(before).copied()
    }
}
