//! All ranks at once, each for itself in windows of time as long as a message takes at least: what is sent in a window comes after it (bounded lag: Lubachevsky,
//! Communications of the ACM 32 (1989)). What a rank needs stays near for as long as a window. What comes later is kept by window, in no order (a calendar queue:
//! Brown, Communications of the ACM 31 (1988)), and of each rank is put in order when it is replayed in that. What goes through a pipe that ranks share comes
//! after the window too: when all is known that was sent in it, it goes through in that order.

use super::event::rounded;
use super::incoming::{self, Incoming};
use super::order::NONE;
use super::{Run, Way};
use crate::error::Result;
use crate::event::Event;
use crate::model::Pipe;
use crate::schedule::OpId;
use crate::topology::Link;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, hash_map::Entry};

/// Times are rounded: a window is a little shorter than what it is as long as.
const SURE: f64 = 0.99;

/// So many windows have numbers that are exact, as are the times when they end.
const MOST: f64 = (1u64 << 52) as f64;

/// Room for so many messages and ranks of a window is kept for another one: of as many ranks as hold more memory than a processor has near, one window is much larger than
/// most.
const SPARE: usize = 1 << 14;

/// A message that comes in a later window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Coming {
    pub there: f64,
    pub recv_overhead: f64,
    /// How long it keeps the port of its receiver, where others send to that too.
    pub port_in: f64,
    /// The receiver; in its window, the one to the same rank before it.
    pub to: u32,
    pub receive: OpId,
}

/// A message that goes through a pipe, which it waits for when all are known that set out in its window.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    /// When it was sent, and by whom.
    pub sent: f64,
    pub from: u32,
    /// When it could leave but for the pipe; from then until it is there.
    pub leaves: f64,
    pub on_the_way: f64,
    pub pipe: Pipe,
    /// So long it keeps that busy.
    pub busy: f64,
    /// The message; when it is there is not known yet.
    pub message: Coming,
}

/// What is known of a later window: messages that come in it, and ranks that do something in it.
#[derive(Debug, Default)]
struct Later {
    messages: Vec<Coming>,
    ranks: Vec<u32>,
}

/// The window that ranks are replayed in.
pub(super) struct Window {
    /// When it ends.
    pub end: f64,
    /// What goes through pipes.
    pub waiting: Vec<Waiting>,
    /// Windows as long begin in a second: a power of two, by which all is exact.
    per_second: f64,
    /// Those after it in which something is known to happen, by number, and their numbers.
    later: FxHashMap<u64, Later>,
    numbers: BinaryHeap<Reverse<u64>>,
    /// Room for more of them.
    spare: Vec<Later>,
    /// What comes in it.
    pub messages: Vec<Coming>,
    /// The last one to each rank, or [`NONE`].
    pub last: Vec<u32>,
}

/// The largest power of two that is no larger: the number without the bits behind its first one.
fn power_of_two(number: f64) -> f64 {
    f64::from_bits(number.to_bits() >> (f64::MANTISSA_DIGITS - 1) << (f64::MANTISSA_DIGITS - 1))
}

impl Window {
    /// Nothing is known yet of what so many ranks do, in windows no longer than this.
    fn new(ranks: usize, length: f64) -> Window {
        Window {
            end: 0.0,
            waiting: Vec::new(),
            per_second: 1.0 / power_of_two(length),
            later: FxHashMap::default(),
            numbers: BinaryHeap::new(),
            spare: Vec::new(),
            messages: Vec::new(),
            last: vec![NONE; ranks],
        }
    }

    /// The number of the window of a time, if it has one.
    #[inline]
    fn number(&self, time: f64) -> Option<u64> {
        let number = time * self.per_second;
        (number < MOST).then_some(number as u64)
    }

    /// What is known of a later window.
    #[inline]
    fn later(&mut self, number: u64) -> &mut Later {
        match self.later.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                self.numbers.push(Reverse(number));
                new.insert(self.spare.pop().unwrap_or_default())
            }
        }
    }

    /// A message comes later; false if it would not be later than this window, or so late that windows have no numbers.
    #[inline]
    pub fn add(&mut self, message: Coming) -> bool {
        let number = self.number(message.there).filter(|_| message.there >= self.end);
        number.is_some_and(|number| {
            self.later(number).messages.push(message);
            true
        })
    }

    /// Goes on to the next window in which something happens: gives the ranks that something comes to, or which do something.
    fn go_on(&mut self, ranks: &mut Vec<u32>) -> bool {
        let Some(Reverse(number)) = self.numbers.pop() else { return false };
        let mut next = self.later.remove(&number).unwrap_or_default();
        self.end = (number + 1) as f64 / self.per_second;
        ranks.clear();
        std::mem::swap(ranks, &mut next.ranks);
        next.ranks.shrink_to(SPARE);
        std::mem::swap(&mut self.messages, &mut next.messages);
        for (message, k) in self.messages.iter_mut().zip(0..) {
            let before = std::mem::replace(&mut self.last[message.to as usize], k);
            if before == NONE {
                ranks.push(message.to);
            }
            message.to = before;
        }
        next.messages.clear();
        next.messages.shrink_to(SPARE);
        self.spare.push(next);
        // of a million ranks what those need that go on together is passed in one direction
        ranks.sort_unstable();
        ranks.dedup();
        true
    }
}

impl Window {
    /// What comes to a rank in this window, in no order.
    #[inline]
    pub fn take(&mut self, rank: u32, events: &mut Vec<Event>) {
        let mut at = std::mem::replace(&mut self.last[rank as usize], NONE);
        while let Some(&Coming { there, receive, to: before, .. }) = self.messages.get(at as usize) {
            events.push((there, incoming::message(receive, at)));
            at = before;
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
        let length = self.least_on_the_way() * SURE;
        if length <= 0.0 {
            return Ok(None);
        }
        self.way = Way::InWindows(Window::new(self.places.len(), length));
        self.begin_all(self.schedule.ops(), limit);
        (0..self.places.len() as u32).for_each(|rank| self.look_at_next(rank));
        let (mut ranks, mut messages) = (Vec::new(), Incoming::default());
        let mut within = true;
        while within && self.next_window(&mut ranks) {
            within = ranks.iter().all(|&rank| self.replay_in_window(rank, &mut messages, limit));
            self.go_through_pipes();
        }
        if self.by_time {
            return self.anew().map(|()| None);
        }
        (0..self.places.len() as u32).for_each(|rank| self.put_down(rank));
        Ok(Some(within))
    }

    /// Goes on to the next window: gives the ranks that do something in it. False if none do any more.
    fn next_window(&mut self, ranks: &mut Vec<u32>) -> bool {
        let Way::InWindows(window) = &mut self.way else { return false };
        !self.by_time && window.go_on(ranks)
    }

    /// Replays a rank until the window ends; false if that takes longer than `limit`.
    fn replay_in_window(&mut self, rank: u32, messages: &mut Incoming, limit: f64) -> bool {
        let Way::InWindows(Window { end, .. }) = self.way else { return false };
        self.bring(rank, end, messages);
        self.machines[rank as usize].swap_queue(&mut self.queue);
        let within = self.replay_one(rank, messages, limit, end);
        self.machines[rank as usize].swap_queue(&mut self.queue);
        self.look_at_next(rank);
        within
    }

    /// A rank goes on in the window in which something comes up again, or may start.
    fn look_at_next(&mut self, rank: u32) {
        let Way::InWindows(window) = &mut self.way else { return };
        let machine = &self.machines[rank as usize];
        let next = machine.turn_at.min(machine.goes_on_at());
        match window.number(next) {
            Some(number) => window.later(number).ranks.push(rank),
            None if next < f64::INFINITY => self.by_time = true,
            _ => {}
        }
    }

    /// What set out in a window goes through pipes, in the order in which it was sent; it comes after the window.
    fn go_through_pipes(&mut self) {
        let Run { way: Way::InWindows(window), pipe_free, by_time, .. } = self else { return };
        let mut waiting = std::mem::take(&mut window.waiting);
        // what one rank sent at one time stays in its order; the bits of such times are in the order of their values
        let word = |(k, message): (u32, &Waiting)| {
            u128::from(message.sent.to_bits()) << 64 | u128::from(u64::from(message.from) << 32 | u64::from(k))
        };
        let mut order: Vec<u128> = (0..).zip(&waiting).map(word).collect();
        order.sort_unstable();
        for k in order.into_iter().map(|word| word as u32 as usize) {
            let Waiting { leaves, on_the_way, pipe, busy, message, .. } = waiting[k];
            let free = &mut pipe_free.entry(pipe).or_insert((0.0, 0)).0;
            let leaves = leaves.max(*free);
            *free = rounded(leaves + busy);
            *by_time |= !window.add(Coming { there: rounded(leaves + on_the_way), ..message });
        }
        waiting.clear();
        window.waiting = waiting;
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
