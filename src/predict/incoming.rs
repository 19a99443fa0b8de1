//! What comes to a rank that is replayed for itself. All messages of a while are known when it begins, and a port takes them in as they come, whatever its rank
//! does: it is known too when they are through it.

use super::event::rounded;
use super::order::NONE;
use super::{EVENTS, Run, Way, event};
use crate::event::Event;
use crate::schedule::OpId;

/// A message as an event: its receive, and where it is among those of its window, or [`NONE`]. In the order of receives.
#[inline]
pub(super) fn message(receive: OpId, at: u32) -> u64 {
    u64::from(receive) << 32 | u64::from(at)
}

/// The receive of a message.
#[inline]
pub(super) fn receive(message: u64) -> OpId {
    ((message & !event::PORT & !event::TURN) >> 32) as OpId
}

/// Messages that come to a rank, in order.
#[derive(Default)]
pub(super) struct Incoming {
    events: Vec<Event>,
    /// The first one that was not taken in.
    pub next: usize,
}

impl Incoming {
    /// The first one.
    #[inline]
    pub(super) fn first(&self) -> Option<Event> {
        self.events.get(self.next).copied()
    }
}

impl Run<'_> {
    /// Gives what comes to a rank before `end`.
    pub(super) fn bring(&mut self, rank: u32, end: f64, messages: &mut Incoming) {
        let Incoming { events, next } = messages;
        events.clear();
        *next = 0;
        let at = self.at(rank, 0);
        let several = self.places[rank as usize].several;
        if several && let Some(backlog) = &mut self.machines[(rank & self.own) as usize].backlog {
            while let Some(&(there, op)) = backlog.coming_in.front().filter(|first| first.0 < end) {
                events.push((there, message(op, NONE)));
                backlog.coming_in.pop_front();
            }
        }
        let before = events.len();
        match &mut self.way {
            Way::InOrder(on_the_way) => on_the_way.take(rank, &mut self.done[at..], events),
            Way::InWindows(window) => window.take(rank, events),
            Way::ByTime | Way::InParts(_) => {}
        }
        if events.len() > before + 1 {
            events[before..].sort_unstable_by_key(|&event| event::word(event));
        }
        if several {
            self.take_in(rank, end, before, events);
        }
    }

    /// When a message is through a port, whose last bytes reach it now.
    #[inline]
    pub(super) fn through(&mut self, rank: u32, now: f64, overhead: f64, port_in: f64) -> f64 {
        // its processor works on a message while the last bytes come in
        let free = &mut self.machines[(rank & self.own) as usize].in_free;
        let through = now.max(rounded(*free + port_in - overhead));
        *free = rounded(through + overhead);
        through
    }

    /// The overhead that the receive of a message under way will pay.
    #[inline]
    pub(super) fn overhead(&self, rank: u32, op: u32) -> f64 {
        -self.done[self.at(rank, op as usize)]
    }

    /// The overhead that the receive of a message will pay.
    #[inline]
    pub(super) fn overhead_of(&self, rank: u32, event: u64) -> f64 {
        match &self.way {
            Way::InWindows(window) if event as u32 != NONE => window.messages[event as u32 as usize].recv_overhead,
            _ => self.overhead(rank, receive(event)),
        }
    }

    /// The port of a rank takes in messages one after the other, from a place among them on; what is not through it before `end` comes later.
    fn take_in(&mut self, rank: u32, end: f64, first: usize, messages: &mut Vec<Event>) {
        let (mut kept, mut waited) = (first, 0);
        for k in first..messages.len() {
            let (now, event) = messages[k];
            let overhead = self.overhead_of(rank, event);
            let port_in = match &self.way {
                Way::InWindows(window) => window.messages[event as u32 as usize].port_in,
                _ => self.port_in_of(rank, receive(event) as usize),
            };
            let there = self.through(rank, now, overhead, port_in);
            waited += u64::from(there > now);
            // what need not wait for the port comes after all else at that time but turns
            let event = if there > now { event } else { event | event::PORT };
            // also what never comes is taken in
            if there >= end && there < f64::INFINITY {
                let at = self.at(rank, receive(event) as usize);
                self.done[at] = -overhead;
                self.machines[(rank & self.own) as usize].comes_in_later(there, receive(event), event::arrive(rank, receive(event)));
            } else {
                messages[kept] = (there, event);
                kept += 1;
            }
        }
        messages.truncate(kept);
        if !messages.is_sorted_by_key(|&event| event::word(event)) {
            messages.sort_unstable_by_key(|&event| event::word(event));
        }
        // that each waited for the port is an event of its own
        EVENTS.set(EVENTS.get() + waited);
    }
}
