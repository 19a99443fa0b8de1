//! In what order ranks are replayed: one after the other where each can come after all that send to it, so that what a rank needs is near, and of a
//! million ranks one has a machine; else all at once, by time or each for itself in windows of it, of those that do alike one for all.

use super::incoming::{self, Incoming};
use super::machine::{Machine, OPEN, is_complete};
use super::{EVENTS, Record, Run, Way, event};
use crate::error::Result;
use crate::event::Event;
use crate::schedule::{OpId, Schedule, alike};
use crate::topology::Rank;

/// Ranks in an order in which each comes after all that send to it, one that it sends to right behind it where that may be; those are left out that hear, also by
/// way of others, from ranks that they send to, or from such ones. Of the message streams of a schedule each end has another.
pub(super) fn senders_first(schedule: &Schedule) -> Vec<u32> {
    let mut unreceived: Vec<u32> = schedule.programs.iter().map(|program| program.streams_received() as u32).collect();
    let mut next: Vec<u32> = (0..unreceived.len() as u32).rev().filter(|&rank| unreceived[rank as usize] == 0).collect();
    let mut order = Vec::with_capacity(unreceived.len());
    while let Some(rank) = next.pop() {
        order.push(rank);
        for to in schedule.programs[rank as usize].receivers() {
            unreceived[to] -= 1;
            if unreceived[to] == 0 {
                next.push(to as u32);
            }
        }
    }
    order
}

/// Among fewer ranks what all of them need is near, and replaying them takes hardly longer than finding out which do alike.
pub(super) const FEW: usize = 64;

/// So many operations are looked at, to see who does alike, in the time of an event.
const OPERATIONS_OF_EVENT: usize = 8;

/// There is no other message.
pub(super) const NONE: u32 = u32::MAX;

/// A message that waits for its receiver's turn: when it is there, its receive, and the overhead that this will pay.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    there: f64,
    recv_overhead: f64,
    receive: OpId,
    /// The one to the same rank before it.
    before: u32,
}

/// Messages to ranks whose turn has not come.
#[derive(Debug)]
pub(super) struct OnTheWay {
    /// The last one to each rank.
    last: Vec<u32>,
    messages: Vec<Waiting>,
    /// The last place among them that is free again, as those before it are named there.
    free: u32,
}

impl OnTheWay {
    /// Nothing was sent to so many ranks.
    pub(super) fn new(ranks: usize) -> OnTheWay {
        OnTheWay { last: vec![NONE; ranks], messages: Vec::new(), free: NONE }
    }

    /// A message goes to a rank: when it is there, the overhead of its receive, and that. True if it is the only one.
    #[inline]
    pub(super) fn add(&mut self, to: Rank, there: f64, recv_overhead: f64, receive: OpId) -> bool {
        let last = &mut self.last[to];
        let is_only = *last == NONE;
        let message = Waiting { there, recv_overhead, receive, before: *last };
        if let Some(place) = self.messages.get_mut(self.free as usize) {
            *last = std::mem::replace(&mut self.free, place.before);
            *place = message;
        } else {
            self.messages.push(message);
            *last = self.messages.len() as u32 - 1;
        }
        is_only
    }

    /// It is the turn of a rank: gives what comes to it, in no order. `done`: of its operations.
    pub(super) fn take(&mut self, rank: u32, done: &mut [f64], messages: &mut Vec<Event>) {
        let mut at = std::mem::replace(&mut self.last[rank as usize], NONE);
        while let Some(message) = self.messages.get_mut(at as usize) {
            done[message.receive as usize] = -message.recv_overhead;
            messages.push((message.there, incoming::message(message.receive, NONE)));
            let before = std::mem::replace(&mut message.before, self.free);
            (self.free, at) = (at, before);
        }
    }
}

impl Run<'_> {
    /// Replays ranks one after the other, as far as that takes no longer than `limit`, or else is false. `None` if they have to be replayed by time: there
    /// is no order of them, or what one does hangs on what others do at the same time.
    pub(super) fn one_after_the_other(&mut self, order: &[u32], limit: f64) -> Result<Option<bool>> {
        if self.losing.is_possible() {
            return Ok(None);
        }
        if order.len() < self.places.len() {
            return Ok(None);
        }
        self.way = Way::InOrder(OnTheWay::new(self.places.len()));
        self.kept = if self.keeps_all { u32::MAX } else { 0 };
        self.done = if self.keeps_all { vec![OPEN; self.schedule.ops()] } else { Vec::new() };
        // with a limit it is known from here on who goes through a pipe: what a rank finds before others do might be cut off wrongly
        self.within(limit);
        let mut messages = Incoming::default();
        for &rank in order {
            if self.by_time {
                break;
            }
            let program = &self.schedule.programs[rank as usize];
            if self.kept == 0 {
                self.done.clear();
                self.done.resize(program.len(), OPEN);
            }
            let done = &self.done[self.at(rank, 0)..];
            match self.machines.first_mut() {
                Some(machine) => machine.restart(program, done),
                None => self.machines.push(Machine::new(program, done)),
            }
            self.look_ahead(rank, 0.0);
            self.bring(rank, f64::INFINITY, &mut messages);
            let within = self.replay_one(rank, &mut messages, limit, f64::INFINITY);
            if !within && !self.by_time {
                return Ok(Some(false));
            }
            self.put_down(rank);
            self.note(rank);
        }
        if self.by_time { self.anew().map(|()| None) } else { Ok(Some(true)) }
    }

    /// Keeps of a rank that was replayed when its last operation was complete, where no more is kept.
    fn note(&mut self, rank: u32) {
        if self.kept == 0 {
            let (latest, incomplete) = &mut self.latest;
            *latest = self.done.iter().copied().fold(*latest, f64::max);
            if self.done.iter().any(|&t| !is_complete(t)) {
                *incomplete = Some(incomplete.map_or(rank as Rank, |first| first.min(rank as Rank)));
            }
        }
    }

    /// As if nothing was done yet.
    pub(super) fn anew(&mut self) -> Result<()> {
        let record = self.record.take().map(|_| Record::new(self.schedule));
        let limits = std::mem::take(&mut self.limits);
        *self = Run { record, ..Run::new(self.schedule, self.model)? };
        self.hold_back(limits);
        Ok(())
    }

    /// Lets so many messages of each stream be under way ([`super::under_way::limits`]), before anything is done.
    pub(super) fn hold_back(&mut self, limits: Vec<u32>) {
        if !limits.is_empty() {
            self.progress.limit(self.schedule, &self.places, &limits);
        }
        self.limits = limits;
    }

    /// Of ranks that do alike ([`alike`]) replays one for all, as far as that takes no longer than `limit`, or else is false. `None` if few do, or if what
    /// one does hangs on what others do at the same time.
    pub(super) fn one_for_all(&mut self, limit: f64) -> Result<Option<bool>> {
        if self.model.kinds() != 1 || self.losing.is_possible() {
            return Ok(None);
        }
        let model = self.model;
        let seconds = |rank, combines, bytes| if combines { model.combine(rank, bytes) } else { model.copy(rank, bytes) };
        let Some(ones) = alike(self.schedule, &self.progress.sent, seconds) else { return Ok(None) };
        EVENTS.set(EVENTS.get() + (self.schedule.ops() / OPERATIONS_OF_EVENT) as u64);
        let mut first = 0;
        for (rank, one) in ones.into_iter().map(|one| one as usize).enumerate() {
            if one == rank {
                self.places[rank].first = first as u32;
                first += self.schedule.programs[rank].len();
            } else {
                self.places[rank] = self.places[one];
            }
        }
        self.stand_for_all = true;
        let within = self.replay_ones(first, limit);
        if self.by_time { self.anew().map(|()| None) } else { Ok(Some(within)) }
    }

    /// Replays all ranks by time, as far as that takes no longer than `limit`, or else is false.
    pub(super) fn all_at_once(&mut self, limit: f64) -> bool {
        self.replay_ones(self.schedule.ops(), limit)
    }

    /// Replays by time those ranks that stand for themselves and maybe others, which have so many operations.
    fn replay_ones(&mut self, operations: usize, limit: f64) -> bool {
        self.begin_all(operations, limit);
        let within = self.replay_events(limit);
        (0..self.places.len() as u32).for_each(|rank| self.put_down(rank));
        within
    }

    /// Lets those ranks begin that stand for themselves and maybe others, which have so many operations.
    pub(super) fn begin_all(&mut self, operations: usize, limit: f64) {
        self.prepare_all(operations, limit).into_iter().for_each(|rank| self.look_ahead(rank, 0.0));
    }

    /// Gives those ranks, before any of them begins.
    pub(super) fn prepare_all(&mut self, operations: usize, limit: f64) -> Vec<u32> {
        self.done = vec![OPEN; operations];
        self.within(limit);
        self.own = u32::MAX;
        let ones: Vec<u32> = self.places.iter().zip(0..).filter(|&(place, rank)| place.one == rank).map(|(_, rank)| rank).collect();
        let programs = self.schedule.programs.iter().zip(&self.places).take(ones.last().map_or(0, |&last| last as usize + 1));
        self.machines = programs.map(|(program, &place)| Machine::new(program, &self.done[place.first as usize..])).collect();
        ones
    }

    /// All is to be complete within `limit`.
    fn within(&mut self, limit: f64) {
        if limit < f64::INFINITY {
            self.limit = limit;
            self.weigh();
        }
    }

    /// Replays a rank until before `end`, to which these messages come, beside those in the queue; false if that takes longer than `limit`.
    pub(super) fn replay_one(&mut self, rank: u32, messages: &mut Incoming, limit: f64, end: f64) -> bool {
        let mut events = 0;
        let mut within = true;
        while within {
            let turn = self.machines[(rank & self.own) as usize].turn_at;
            // what came early comes again
            let again = self.queue.peek().map(|(time, event)| (time, incoming::message(event as OpId, NONE)));
            let next = match (messages.first(), again) {
                (Some(message), Some(again)) => Some(if event::word(again) < event::word(message) { again } else { message }),
                (one, other) => one.or(other),
            };
            // at one time messages are there before the processor turns to one
            let message = next.filter(|&(there, _)| there <= turn);
            let now = message.map_or(turn, |(there, _)| there);
            // also what never comes is taken in
            if now >= end && (now < f64::INFINITY || message.is_none()) {
                break;
            }
            events += 1;
            within = now <= limit && !self.is_over && !self.by_time;
            if !within {
                break;
            }
            match message {
                None => self.turn(rank, now),
                Some((_, event)) => {
                    let op = incoming::receive(event);
                    let overhead = self.overhead_of(rank, event);
                    if message == again {
                        self.queue.pop();
                    } else {
                        messages.next += 1;
                    }
                    self.arrive(rank, op, now, overhead);
                }
            }
        }
        EVENTS.set(EVENTS.get() + events);
        within
    }

    /// Replays what is in the queue; false if that takes longer than `limit`.
    pub(super) fn replay_events(&mut self, limit: f64) -> bool {
        let mut events = 0;
        let mut within = true;
        while let Some((now, event)) = self.queue.pop() {
            events += 1;
            within = now <= limit && !self.is_over && !self.by_time;
            if !within {
                break;
            }
            let (rank, op) = ((event & !event::TURN & !event::PORT) >> 32, event as u32);
            match event {
                turn if turn & event::TURN != 0 => self.turn(rank as u32, now),
                port if port & event::PORT != 0 => self.come_in(rank as u32, op, now),
                _ => self.arrive(rank as u32, op, now, self.overhead(rank as u32, op)),
            }
        }
        EVENTS.set(EVENTS.get() + events);
        within
    }
}
