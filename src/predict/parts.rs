//! Part after part: where ranks hear, also by way of others, from those that they send to, but few do, these are replayed by time, each such part among itself, and
//! all others one after the other. The coordinators of groups that exchange segments are such a part, and their groups hang on them.

use super::incoming::{Incoming, receive};
use super::order::OnTheWay;
use super::{Run, Way, event};
use crate::error::Result;
use crate::schedule::Schedule;
use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};

/// The ranks that are replayed by time, and what they send to others.
pub(super) struct Part {
    /// Messages to ranks whose turn has not come.
    pub later: OnTheWay,
    /// The part of each rank.
    pub of: Vec<u32>,
    /// The one whose turn it is.
    pub now: u32,
}

/// The ranks in parts, each behind all that send to it; in one are those that hear from each other. `None` where more ranks are in such parts than by themselves:
/// then their messages are near in windows of time.
fn parts(schedule: &Schedule) -> Option<Vec<Vec<u32>>> {
    let ranks = schedule.ranks();
    let sends =
        schedule.programs.iter().enumerate().flat_map(|(from, program)| program.receivers().map(move |to| (from as u32, to as u32)));
    let mut graph = DiGraph::<(), ()>::with_capacity(ranks, ranks);
    (0..ranks).for_each(|_| _ = graph.add_node(()));
    sends.for_each(|(from, to)| _ = graph.add_edge(NodeIndex::from(from), NodeIndex::from(to), ()));
    let parts = tarjan_scc(&graph).into_iter().rev().map(|part| part.into_iter().map(|rank| rank.index() as u32).collect());
    let parts: Vec<Vec<u32>> = parts.collect();
    let by_themselves = parts.iter().filter(|part| part.len() == 1).count();
    (ranks < 2 * by_themselves).then_some(parts)
}

impl Run<'_> {
    /// Replays parts of the ranks one after the other, as far as that takes no longer than `limit`, or else is false. `None` if most ranks are in parts of
    /// several, or what one does hangs on what others do at the same time.
    pub(super) fn part_after_part(&mut self, limit: f64) -> Result<Option<bool>> {
        if self.losing.is_possible() {
            return Ok(None);
        }
        let Some(parts) = parts(self.schedule) else { return Ok(None) };
        let mut of = vec![0; self.places.len()];
        for (part, number) in parts.iter().zip(0..) {
            part.iter().for_each(|&rank| of[rank as usize] = number);
        }
        (self.keeps_all, self.kept) = (true, u32::MAX);
        self.way = Way::InParts(Part { later: OnTheWay::new(self.places.len()), of, now: 0 });
        self.prepare_all(self.schedule.ops(), limit);
        let mut messages = Incoming::default();
        let mut within = true;
        for (part, number) in parts.iter().zip(0..) {
            within = match part[..] {
                [rank] => self.by_itself(rank, limit, &mut messages),
                _ => self.among_themselves(part, number, limit),
            };
            if !within || self.by_time {
                break;
            }
            part.iter().for_each(|&rank| self.put_down(rank));
        }
        if self.by_time { self.anew().map(|()| None) } else { Ok(Some(within)) }
    }

    /// Replays one rank, when all is known that comes to it.
    fn by_itself(&mut self, rank: u32, limit: f64, messages: &mut Incoming) -> bool {
        let Way::InParts(Part { later, of, now }) = std::mem::replace(&mut self.way, Way::ByTime) else { return false };
        self.way = Way::InOrder(later);
        self.look_ahead(rank, 0.0);
        self.bring(rank, f64::INFINITY, messages);
        let within = self.replay_one(rank, messages, limit, f64::INFINITY);
        if let Way::InOrder(later) = std::mem::replace(&mut self.way, Way::ByTime) {
            self.way = Way::InParts(Part { later, of, now });
        }
        within
    }

    /// Replays ranks by time, when all is known that comes to them from others.
    fn among_themselves(&mut self, ranks: &[u32], number: u32, limit: f64) -> bool {
        let mut messages = Vec::new();
        for &rank in ranks {
            let at = self.at(rank, 0);
            let Way::InParts(part) = &mut self.way else { return false };
            part.now = number;
            part.later.take(rank, &mut self.done[at..], &mut messages);
            let kind = if self.places[rank as usize].several { event::at_port } else { event::arrive };
            messages.drain(..).for_each(|(there, message)| self.queue.push(there, kind(rank, receive(message))));
            self.look_ahead(rank, 0.0);
        }
        self.replay_events(limit)
    }
}
