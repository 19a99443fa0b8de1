//! What one rank is at.

use crate::event::EventQueue;
use crate::schedule::{OpId, Pending, Program};
use std::collections::{BTreeSet, VecDeque};

/// Not complete: what is, has a time, whose sign is positive.
pub(super) const OPEN: f64 = f64::NEG_INFINITY;

pub(super) fn is_complete(time: f64) -> bool {
    time.is_sign_positive()
}

/// Where what is kept of a rank is among that of all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Where its operations begin among those of all that are replayed.
    pub first: usize,
    /// Where the streams that it receives begin.
    pub receives: u32,
    /// The last one of the messages that wait for its turn.
    pub waits: u32,
    /// True if messages come from several ranks.
    pub several: bool,
    /// True if some rank may get more than one message from it.
    pub repeats: bool,
    /// The rank that is replayed for it, whose place this is: itself, or one that does alike.
    pub one: u32,
}

/// One rank's state.
pub(super) struct Machine<'a> {
    pub program: &'a Program,
    pub place: Place,
    pub cpu_free: f64,
    pub port_free: f64,
    /// When the port has taken in what came last, or never yet; `None` where all comes from one rank, which sends one message after the other.
    pub in_free: Option<f64>,
    /// Messages that come in one after the other by its port: when they are there, and their receives. Of these the first one is an event.
    pub coming_in: VecDeque<(f64, OpId)>,
    /// What may start next but receives.
    pub pending: Pending,
    /// Messages that wait for the processor, first come, first served.
    pub waiting: VecDeque<u32>,
    /// True if what the processor did last was to take in a message: then a send goes next if both may.
    pub took: bool,
    /// Messages that came before their receive was posted, behind the operation that this waits for.
    pub early: BTreeSet<(OpId, OpId)>,
    /// Its events, and when it is looked at next, where each rank is replayed for itself in windows of time.
    pub queue: EventQueue,
    pub next: f64,
    /// When something may start next; one such event is enough.
    pub turn_at: f64,
    /// The operation but receives that may start first, and when, as far as is known: whatever changes it looks ahead anew.
    pub ahead: (f64, OpId),
}

impl<'a> Machine<'a> {
    /// Nothing was done yet.
    pub(super) fn new(program: &'a Program, place: Place, done: &[f64]) -> Machine<'a> {
        Machine {
            program,
            place,
            cpu_free: 0.0,
            port_free: 0.0,
            in_free: place.several.then_some(f64::NEG_INFINITY),
            coming_in: VecDeque::new(),
            pending: Pending::new(program, |op| known(program, &done[place.first..], op)),
            waiting: VecDeque::new(),
            took: false,
            early: BTreeSet::new(),
            queue: EventQueue::with_capacity(0),
            next: f64::INFINITY,
            turn_at: f64::INFINITY,
            ahead: (f64::INFINITY, 0),
        }
    }

    /// As if it was new, of a program, with the room that it has.
    pub(super) fn restart(&mut self, program: &'a Program, place: Place, done: &[f64]) {
        (self.program, self.place) = (program, place);
        (self.cpu_free, self.port_free, self.in_free) = (0.0, 0.0, place.several.then_some(f64::NEG_INFINITY));
        self.pending.restart(program, |op| known(program, &done[place.first..], op));
        self.coming_in.clear();
        self.waiting.clear();
        self.early.clear();
        (self.took, self.turn_at, self.ahead) = (false, f64::INFINITY, (f64::INFINITY, 0));
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
