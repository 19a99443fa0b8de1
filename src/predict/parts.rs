//! In three parts: where ranks hear, also by way of others, from those that they send to, but few do, these are replayed by time, all others one after the other,
//! before and after them. The coordinators of groups that exchange segments are such ranks, and their groups hang on them.

use super::incoming::{Incoming, receive};
use super::order::{OnTheWay, senders_first};
use super::{Run, Way, event};
use crate::error::Result;
use crate::schedule::Schedule;

/// The ranks that are replayed by time, and what they send to others.
pub(super) struct Circle {
    /// Messages to ranks whose turn has not come.
    pub later: OnTheWay,
    /// True of the ranks that hear from those that they send to, and those between such.
    pub has: Vec<bool>,
}

/// Ranks in an order in which each comes after all that send to it, but for those that hear from each other.
#[derive(Debug, Default)]
struct Parts {
    before: Vec<u32>,
    circle: Vec<u32>,
    after: Vec<u32>,
}

/// The ranks in parts. `None` where there is no circle, or more are in it than out of it: what they need is near in windows of time.
fn parts(schedule: &Schedule) -> Option<Parts> {
    let ranks = schedule.ranks();
    let before = senders_first(schedule);
    let mut is_open = vec![true; ranks];
    before.iter().for_each(|&rank| is_open[rank as usize] = false);
    // of those that are left, who sends to nobody that is
    let (mut unsent, mut senders) = (vec![0; ranks], vec![Vec::new(); ranks]);
    for (from, program) in schedule.programs.iter().enumerate().filter(|&(from, _)| is_open[from]) {
        for to in program.receivers() {
            unsent[from] += 1;
            senders[to].push(from as u32);
        }
    }
    let mut next: Vec<u32> = (0..ranks as u32).filter(|&rank| is_open[rank as usize] && unsent[rank as usize] == 0).collect();
    let mut after = Vec::new();
    while let Some(rank) = next.pop() {
        is_open[rank as usize] = false;
        after.push(rank);
        for &from in &senders[rank as usize] {
            unsent[from as usize] -= 1;
            if unsent[from as usize] == 0 {
                next.push(from);
            }
        }
    }
    after.reverse();
    let circle: Vec<u32> = (0..ranks as u32).filter(|&rank| is_open[rank as usize]).collect();
    (1..=ranks / 2).contains(&circle.len()).then_some(Parts { before, circle, after })
}

impl Run<'_> {
    /// Replays those by time that hear from each other, and all others one after the other, as far as that takes no longer than `limit`, or else is false. `None`
    /// if none or most hear from each other, or what one does hangs on what others do at the same time.
    pub(super) fn part_after_part(&mut self, limit: f64) -> Result<Option<bool>> {
        if self.losing.is_possible() {
            return Ok(None);
        }
        let Some(Parts { before, circle, after }) = parts(self.schedule) else { return Ok(None) };
        let mut has = vec![false; self.places.len()];
        circle.iter().for_each(|&rank| has[rank as usize] = true);
        (self.keeps_all, self.kept) = (true, u32::MAX);
        self.way = Way::InParts(Circle { later: OnTheWay::new(self.places.len()), has });
        self.prepare_all(self.schedule.ops(), limit);
        let mut messages = Incoming::default();
        let within = before.iter().all(|&rank| self.by_itself(rank, limit, &mut messages))
            && self.in_circle(&circle, limit)
            && after.iter().all(|&rank| self.by_itself(rank, limit, &mut messages));
        if self.by_time {
            return self.anew().map(|()| None);
        }
        (0..self.places.len() as u32).for_each(|rank| self.put_down(rank));
        Ok(Some(within))
    }

    /// Replays one rank, when all is known that comes to it.
    fn by_itself(&mut self, rank: u32, limit: f64, messages: &mut Incoming) -> bool {
        let Way::InParts(Circle { later, has }) = std::mem::replace(&mut self.way, Way::ByTime) else { return false };
        self.way = Way::InOrder(later);
        self.look_ahead(rank, 0.0);
        self.bring(rank, f64::INFINITY, messages);
        let within = self.replay_one(rank, messages, limit, f64::INFINITY);
        if let Way::InOrder(later) = std::mem::replace(&mut self.way, Way::ByTime) {
            self.way = Way::InParts(Circle { later, has });
        }
        within && !self.by_time
    }

    /// Replays by time those that hear from each other, when all is known that comes to them from others.
    fn in_circle(&mut self, ranks: &[u32], limit: f64) -> bool {
        let mut messages = Vec::new();
        for &rank in ranks {
            let at = self.at(rank, 0);
            let Way::InParts(circle) = &mut self.way else { return false };
            circle.later.take(rank, &mut self.done[at..], &mut messages);
            let kind = if self.places[rank as usize].several { event::at_port } else { event::arrive };
            messages.drain(..).for_each(|(there, message)| self.queue.push(there, kind(rank, receive(message))));
            self.look_ahead(rank, 0.0);
        }
        self.replay_events(limit) && !self.by_time
    }
}
