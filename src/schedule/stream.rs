//! The streams of a program: the messages to or from one peer in one lane.

use super::program::Program;
use super::{Lane, OpId};
use rustc_hash::FxHashMap;

/// So few streams are searched faster than looked up.
pub(super) const FEW_STREAMS: usize = 16;

/// A stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stream {
    /// Who it goes to; at its other end who it comes from.
    pub peer: u32,
    pub lane: Lane,
    /// Messages under way; 0: nothing is said.
    pub in_flight: u8,
}

/// A stream at the end where it is received.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Incoming {
    pub stream: Stream,
    pub first: OpId,
    last: OpId,
}

/// A stream's peer and lane.
pub(super) type Key = (u32, Lane);

impl Stream {
    #[inline]
    pub fn key(&self) -> Key {
        (self.peer, self.lane)
    }
}

/// What a program is built with: few programs of millions need it, and none of them for long.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Building {
    /// Where each stream is in `Program::sends` and in `Program::receives`, if they are many.
    sends: FxHashMap<Key, u32>,
    receives: FxHashMap<Key, u32>,
    /// Of each lane the last send to each peer, of those that go to few peers at once, the latest one last.
    pub last_sends: Vec<Vec<(u32, OpId)>>,
}

/// Where a stream is among those there are, or will be: behind them.
fn place(
    streams: impl ExactSizeIterator<Item = Key>,
    new: Key,
    building: &mut Option<Box<Building>>,
    known: fn(&mut Building) -> &mut FxHashMap<Key, u32>,
) -> usize {
    let len = streams.len();
    let mut streams = streams;
    if len < FEW_STREAMS {
        return streams.position(|key| key == new).unwrap_or(len);
    }
    let known = known(building.get_or_insert_default());
    if known.is_empty() {
        known.extend(streams.zip(0..));
    }
    *known.entry(new).or_insert(len as u32) as usize
}

impl Program {
    /// The stream of sends to a peer, which is new if there is none.
    pub(super) fn join_outgoing(&mut self, peer: u32) -> u32 {
        let new = Stream { peer, lane: self.lane, in_flight: self.in_flight };
        let known = place(self.sends.iter().map(Stream::key), new.key(), &mut self.building, |b| &mut b.sends);
        if known == self.sends.len() {
            self.sends.push(new);
        }
        known as u32
    }

    /// A receive is the last one of its stream, which is new if there is none.
    pub(super) fn join_incoming(&mut self, peer: u32, op: OpId) -> u32 {
        let stream = Stream { peer, lane: self.lane, in_flight: self.in_flight };
        let known = place(self.receives.iter().map(|s| s.stream.key()), stream.key(), &mut self.building, |b| &mut b.receives);
        match self.receives.get_mut(known) {
            Some(incoming) => {
                self.ops.own()[incoming.last as usize].next = op;
                incoming.last = op;
            }
            None => self.receives.push(Incoming { stream, first: op, last: op }),
        }
        known as u32
    }
}
