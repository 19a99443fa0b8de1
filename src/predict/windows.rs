//! All ranks at once, each for itself in windows of time as long as a message takes at least: what is sent in a window comes after it (bounded lag: Lubachevsky,
//! Communications of the ACM 32 (1989)). What a rank needs stays near for as long as a window, and of its events the next one alone is in a heap of all. What
//! goes through a pipe that ranks share keeps none of them, and comes after the window: when all is known that was sent in it, it goes through in that order.

use super::event::rounded;
use super::machine::Machine;
use super::{Run, Way};
use crate::error::Result;
use crate::event::EventQueue;
use crate::model::Pipe;
use crate::topology::Link;

/// Times are rounded: a window is a little shorter than what it is as long as.
const SURE: f64 = 0.99;

/// A message that goes through a pipe, which it waits for when all are known that set out in its window.
pub(super) struct Waiting {
    /// When it could leave but for the pipe.
    pub leaves: f64,
    pub pipe: Pipe,
    /// So long it keeps that busy.
    pub busy: f64,
    /// From when it leaves until its event.
    pub on_the_way: f64,
    pub to: u32,
    pub event: u64,
}

/// The window that ranks are replayed in.
pub(super) struct Window {
    /// When it ends.
    pub end: f64,
    /// What goes through pipes, with when it was sent and by whom.
    pub waiting: Vec<(f64, u32, Waiting)>,
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
        self.way = Way::InWindows(Window { end: 0.0, waiting: Vec::new(), next: EventQueue::with_capacity(self.places.len()) });
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
        loop {
            let Way::InWindows(window) = &mut self.way else { return None };
            if !window.waiting.is_empty() && window.next.peek().is_none_or(|(time, _)| time >= window.end) {
                self.go_through_pipes();
                continue;
            }
            let (time, rank) = window.next.pop()?;
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
    }

    /// What set out in a window goes through pipes, in the order in which it was sent; it comes after the window.
    fn go_through_pipes(&mut self) {
        let Run { way: Way::InWindows(window), pipe_free, machines, by_time, .. } = self else { return };
        let mut waiting = std::mem::take(&mut window.waiting);
        // what one rank sent at one time stays in its order
        waiting.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (_, _, message) in waiting.drain(..) {
            let free = &mut pipe_free.entry(message.pipe).or_insert((0.0, 0)).0;
            let leaves = message.leaves.max(*free);
            *free = rounded(leaves + message.busy);
            let there = rounded(leaves + message.on_the_way);
            *by_time |= there < window.end;
            let machine = &mut machines[message.to as usize];
            machine.queue.push(there, message.event);
            window.look_at(message.to, machine, there);
        }
        window.waiting = waiting;
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

    /// Seconds from the start of any send to when its message is there, at least; 0 where some never are.
    fn least_on_the_way(&mut self) -> f64 {
        let schedule = self.schedule;
        let mut least = f64::INFINITY;
        for (from, program) in schedule.programs.iter().enumerate() {
            for (stream, bytes) in program.sent() {
                let (cost, _) = self.cost(Link { from, to: program.to(stream) }, bytes);
                if cost.transit == f64::INFINITY {
                    return 0.0;
                }
                least = least.min(cost.transit - cost.recv_overhead);
            }
        }
        least
    }
}
