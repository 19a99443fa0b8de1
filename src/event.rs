//! The queue of timed events that the replay and the simulator each run their own machine on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When something happens, and what, as a word.
pub type Event = (f64, u64);

/// Events, each a word, in order of time; those of one time in order of the word, so that every run and every rank sees the same order.
#[derive(Debug)]
pub struct EventQueue {
    /// The earliest one, or [`NONE`]: of a queue with one at most, as most ranks' are, nothing is elsewhere.
    first: Event,
    /// The others, time above event: one comparison of numbers, which needs no branches.
    #[expect(clippy::box_collection, reason = "there are as many queues as ranks")]
    rest: Option<Box<BinaryHeap<Reverse<u128>>>>,
}

/// No event.
const NONE: Event = (f64::INFINITY, u64::MAX);

impl Default for EventQueue {
    fn default() -> EventQueue {
        EventQueue::with_capacity(0)
    }
}

impl EventQueue {
    /// An empty queue with room for `capacity` events.
    pub fn with_capacity(capacity: usize) -> EventQueue {
        EventQueue { first: NONE, rest: (capacity > 1).then(|| Box::new(BinaryHeap::with_capacity(capacity))) }
    }

    /// Adds an event. Times are zero or more: the bits of such floats are in the order of their values.
    #[inline]
    pub fn push(&mut self, time: f64, event: u64) {
        debug_assert!(time >= 0.0, "an event at {time}");
        let new = (time, event);
        let (earlier, later) = if word(new) < word(self.first) { (new, self.first) } else { (self.first, new) };
        self.first = earlier;
        if later.1 != NONE.1 {
            self.rest.get_or_insert_with(|| Box::new(BinaryHeap::with_capacity(1))).push(Reverse(word(later)));
        }
    }

    /// Takes the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<Event> {
        let next = self.rest.as_mut().and_then(|rest| rest.pop()).map_or(NONE, |Reverse(next)| event(next));
        let first = std::mem::replace(&mut self.first, next);
        (first.1 != NONE.1).then_some(first)
    }

    /// The earliest event.
    #[inline]
    pub fn peek(&self) -> Option<Event> {
        (self.first.1 != NONE.1).then_some(self.first)
    }
}

#[inline]
fn word((time, event): Event) -> u128 {
    u128::from(time.to_bits()) << 64 | u128::from(event)
}

#[inline]
fn event(word: u128) -> Event {
    (f64::from_bits((word >> 64) as u64), word as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_by_kind() {
        let mut queue = EventQueue::with_capacity(4);
        for (t, e) in [(2.0, 1), (0.5, 9), (2.0, 0), (1e-9, 5)] {
            queue.push(t, e);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [(1e-9, 5), (0.5, 9), (2.0, 0), (2.0, 1)]);
    }
}
