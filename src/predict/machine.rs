//! What one rank is at.

use crate::error::{Error, Result};
use crate::event::EventQueue;
use crate::schedule::{OpId, Pending, Program, Schedule};
use crate::topology::Rank;
use std::collections::{BTreeSet, VecDeque};

/// Not complete: what is, has a time, whose sign is positive.
pub(super) const OPEN: f64 = f64::NEG_INFINITY;

pub(super) fn is_complete(time: f64) -> bool {
    time.is_sign_positive()
}

/// So many operations have room in events, beside what these are.
const OPERATIONS: usize = 1 << 30;

/// Where what is kept of a rank is among that of all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Where its operations begin among those of all that are replayed.
    pub first: u32,
    /// Where the streams that it receives begin.
    pub receives: u32,
    /// The rank that is replayed for it, whose place this is: itself, or one that does alike.
    pub one: u32,
    /// True if messages come from several ranks.
    pub several: bool,
    /// True if some rank may get more than one message from it.
    pub repeats: bool,
}

/// The places of all ranks, each replayed for itself.
///
/// # Errors
/// [`Error::TooLarge`] if there are more operations than can be counted.
pub(super) fn places(schedule: &Schedule) -> Result<Vec<Place>> {
    if schedule.ops() > OPERATIONS {
        return Err(Error::TooLarge(format!("replay {} operations: {OPERATIONS} can be", schedule.ops())));
    }
    let (mut first, mut receives) = (0, 0);
    let place = |(rank, program): (Rank, &Program)| {
        let (several, repeats) =
            (program.receives_from_several(), program.has_several_lanes() || program.messages() > program.streams_sent());
        let place = Place { first, receives, one: rank as u32, several, repeats };
        (first, receives) = (first + program.len() as u32, receives + program.streams_received() as u32);
        place
    };
    Ok(schedule.programs.iter().enumerate().map(place).collect())
}

/// One rank's state. There may be a million, of which most wait for one thing.
pub(super) struct Machine {
    pub cpu_free: f64,
    pub port_free: f64,
    /// When the port has taken in what came last, or never yet.
    pub in_free: f64,
    /// What may start next but receives.
    pub pending: Pending,
    /// Messages that wait here, if any ever did.
    pub backlog: Option<Box<Backlog>>,
    /// When something may start next; one such event is enough.
    pub turn_at: f64,
    /// When the operation but receives may start that may first, as far as is known: whatever changes it looks ahead anew.
    pub ahead_at: f64,
    /// That operation.
    pub ahead: OpId,
    /// True if what the processor did last was to take in a message: then a send goes next if both may.
    pub took: bool,
}

/// Messages that wait at a rank.
#[derive(Default)]
pub(super) struct Backlog {
    /// Those that come in one after the other by its port: when they are there, and their receives. Of these the first one is an
    /// event, or, where each rank is replayed for itself in windows of time, none is: they come after the window.
    pub coming_in: VecDeque<(f64, OpId)>,
    /// Those that wait for the processor, first come, first served.
    pub waiting: VecDeque<OpId>,
    /// Those that came before their receive was posted, behind the operation that this waits for.
    pub early: BTreeSet<(OpId, OpId)>,
    /// What comes up again in a later window, where each rank is replayed for itself in windows of time.
    pub again: EventQueue,
}

const _: () = assert!(size_of::<Machine>() <= 80, "a million of them are held, and looked at in turns");

impl Machine {
    /// Nothing was done yet of a program, whose operations these are.
    pub(super) fn new(program: &Program, done: &[f64]) -> Machine {
        Machine {
            cpu_free: 0.0,
            port_free: 0.0,
            in_free: f64::NEG_INFINITY,
            pending: Pending::new(program, |op| known(program, done, op)),
            backlog: None,
            turn_at: f64::INFINITY,
            ahead_at: f64::INFINITY,
            ahead: 0,
            took: false,
        }
    }

    /// As if it was new, of a program, with the room that it has.
    pub(super) fn restart(&mut self, program: &Program, done: &[f64]) {
        (self.cpu_free, self.port_free, self.in_free) = (0.0, 0.0, f64::NEG_INFINITY);
        self.pending.restart(program, |op| known(program, done, op));
        if let Some(backlog) = &mut self.backlog {
            backlog.coming_in.clear();
            backlog.waiting.clear();
            backlog.early.clear();
        }
        (self.turn_at, self.ahead_at, self.ahead, self.took) = (f64::INFINITY, f64::INFINITY, 0, false);
    }

    /// Messages that wait here.
    #[inline]
    pub(super) fn backlog(&mut self) -> &mut Backlog {
        self.backlog.get_or_insert_default()
    }

    /// A message that came in is through the port later than in this window.
    pub(super) fn comes_in_later(&mut self, there: f64, op: OpId, event: u64) {
        let coming_in = &mut self.backlog().coming_in;
        if coming_in.back().is_none_or(|&last| last < (there, op)) {
            coming_in.push_back((there, op));
        } else {
            self.backlog().again.push(there, event);
        }
    }

    /// When the first message is there that came in, but not yet through the port, or something comes up again.
    #[inline]
    pub(super) fn goes_on_at(&self) -> f64 {
        let Some(Backlog { coming_in, again, .. }) = self.backlog.as_deref() else { return f64::INFINITY };
        let comes_in_at = coming_in.front().map_or(f64::INFINITY, |first| first.0);
        again.peek().map_or(comes_in_at, |next| comes_in_at.min(next.0))
    }

    /// Changes what comes up again with what is in this queue. A rank at which nothing does has no room for it.
    #[inline]
    pub(super) fn swap_queue(&mut self, queue: &mut EventQueue) {
        if self.backlog.is_some() || queue.peek().is_some() {
            std::mem::swap(queue, &mut self.backlog().again);
        }
    }

    /// True if a message waits for the processor.
    #[inline]
    pub(super) fn has_waiting(&self) -> bool {
        self.backlog.as_ref().is_some_and(|backlog| !backlog.waiting.is_empty())
    }

    /// The first message that waits for the processor.
    #[inline]
    pub(super) fn next_waiting(&mut self) -> Option<OpId> {
        self.backlog.as_mut()?.waiting.pop_front()
    }
}

/// When all was complete that an operation comes after, or the last one named that is not: of many the others are most likely complete when that is. `done`: of
/// the operations of its program, and maybe of others.
#[inline]
pub(super) fn known(program: &Program, done: &[f64], op: OpId) -> std::result::Result<f64, OpId> {
    program.after(op as usize).iter().rev().try_fold(0.0, |latest: f64, &d| {
        let t = done[d as usize];
        if is_complete(t) { Ok(latest.max(t)) } else { Err(d) }
    })
}
