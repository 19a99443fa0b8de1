//! All ranks at once, each for itself in windows of time as long as a message takes at least: what is sent in a window comes after it (bounded lag: Lubachevsky,
//! Communications of the ACM 32 (1989)). What a rank needs stays near for as long as a window, and of its events the next one alone is in a heap of all.

use super::machine::Machine;
use super::{Run, Way};
use crate::error::Result;
use crate::event::EventQueue;
use crate::topology::Link;
use rustc_hash::FxHashMap;

/// Times are rounded: a window is a little shorter than what it is as long as.
const SURE: f64 = 0.99;

/// The window that ranks are replayed in.
pub(super) struct Window {
    /// When it ends.
    pub end: f64,
    /// When each rank does something next; what it does earlier is in here too, before that.
    next: EventQueue,
}

impl Window {
    /// Something comes to a rank at a time.
    #[inline]
    pub fn look_at(&mut self, rank: u32, machine: &mut Machine, time: f64) {
        if time < machine.next {
            machine.next = time;
            self.next.push(time, rank.into());
        }
    }
}

impl Run<'_> {
    /// Replays all ranks in windows, as far as that takes no longer than `limit`, or else is false. `None` if what one does hangs on what others do at the same
    /// time.
    pub(super) fn in_windows(&mut self, limit: f64) -> Result<Option<bool>> {
        if self.progress.is_limited() || self.losing.is_possible() {
            return Ok(None);
        }
        let length = self.least_on_the_way();
        if length <= 0.0 {
            return Ok(None);
        }
        self.way = Way::InWindows(Window { end: 0.0, next: EventQueue::with_capacity(self.places.len()) });
        self.begin_all(self.schedule.ops(), limit);
        (0..self.places.len() as u32).for_each(|rank| self.look_at_next(rank));
        let mut within = true;
        while within && let Some(rank) = self.next_in_window(length) {
            let machine = rank as usize;
            std::mem::swap(&mut self.queue, &mut self.machines[machine].queue);
            let Way::InWindows(Window { end, .. }) = self.way else { break };
            within = self.replay_one(rank, &mut Vec::new(), limit, end);
            std::mem::swap(&mut self.queue, &mut self.machines[machine].queue);
            self.look_at_next(rank);
        }
        if self.by_time {
            return self.anew().map(|()| None);
        }
        (0..self.places.len() as u32).for_each(|rank| self.put_down(rank));
        Ok(Some(within))
    }

    /// The next rank that does something, in this window or the next one, which is so long.
    fn next_in_window(&mut self, length: f64) -> Option<u32> {
        let Way::InWindows(window) = &mut self.way else { return None };
        while let Some((time, rank)) = window.next.pop() {
            let machine = &mut self.machines[rank as usize];
            if machine.next != time {
                continue; // it was looked at earlier
            }
            machine.next = f64::INFINITY;
            if time >= window.end {
                window.end = time + length * SURE;
                if window.end <= time {
                    // so short a window is none among times so long
                    self.by_time = true;
                    return None;
                }
            }
            return Some(rank as u32);
        }
        None
    }

    /// A rank goes on when something is there, or may start.
    fn look_at_next(&mut self, rank: u32) {
        let machine = &mut self.machines[rank as usize];
        let there = machine.queue.peek().map_or(f64::INFINITY, |next| next.0);
        let next = there.min(machine.turn_at);
        if let Way::InWindows(window) = &mut self.way {
            window.look_at(rank, machine, next);
        }
    }

    /// Seconds from the start of any send to when its message is there, at least; 0 where some never are, or several ranks' go through one pipe.
    fn least_on_the_way(&mut self) -> f64 {
        let schedule = self.schedule;
        let (mut least, mut pipes) = (f64::INFINITY, FxHashMap::default());
        for (from, program) in schedule.programs.iter().enumerate() {
            for (stream, bytes) in program.sent() {
                let (cost, pipe) = self.cost(Link { from, to: program.to(stream) }, bytes);
                let is_shared = pipe.is_some_and(|(pipe, _)| *pipes.entry(pipe).or_insert(from) != from);
                if is_shared || cost.transit == f64::INFINITY {
                    return 0.0;
                }
                least = least.min(cost.transit - cost.recv_overhead);
            }
        }
        least
    }
}
