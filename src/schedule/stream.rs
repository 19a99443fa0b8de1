//! The streams of a program: the messages to or from one peer in one lane.

use super::building::Own;
use super::{Lane, OpId};
use rustc_hash::FxHashMap;

/// So few streams are searched faster than looked up.
pub(super) const FEW_STREAMS: usize = 16;

/// A stream.
#[derive(Debug, Clone, Copy, PartialEq, Hash)]
pub(super) struct Stream {
    pub lane: Lane,
    /// Messages under way; 0: nothing is said.
    pub in_flight: u8,
}

/// A stream at the end where it is received.
#[derive(Debug, Clone, Copy, PartialEq, Hash)]
pub(super) struct Incoming {
    pub stream: Stream,
    pub first: OpId,
    last: OpId,
}

/// A stream's peer and lane.
type Key = (u32, Lane);

/// Where streams are in their lists, as far as those are long, while a program is built.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    sends: Lookup,
    receives: Lookup,
}

/// Where streams are in one list.
#[derive(Debug, Clone, Default)]
struct Lookup {
    /// So many of them are in order, as far as that was looked at.
    in_order: usize,
    /// Where each is, if they are not.
    places: FxHashMap<Key, u32>,
}

/// Where a stream is in a list, or will be: behind the others. `key`: of each place in it.
#[inline]
fn place(len: usize, key: impl Fn(usize) -> Key, new: Key, known: &mut Lookup) -> u32 {
    if len < FEW_STREAMS {
        return (0..len).find(|&k| key(k) == new).unwrap_or(len) as u32;
    }
    if known.places.is_empty() {
        // a root goes through all ranks in their order, from one behind it on: as long as it does all are new, and nothing is looked up
        let first = key(0);
        let turn = |key: Key| (key < first, key);
        let is_in_order = known.in_order == len || (0..len).is_sorted_by_key(|k| turn(key(k)));
        if is_in_order && turn(key(len - 1)) < turn(new) {
            known.in_order = len + 1;
            return len as u32;
        }
        known.places.extend((0..len).map(|k| (key(k), k as u32)));
    }
    *known.places.entry(new).or_insert(len as u32)
}

impl Own {
    /// A stream that begins now.
    fn stream(&self) -> Stream {
        Stream { lane: self.lane, in_flight: self.in_flight }
    }

    /// The stream of sends to a peer, which is new if there is none.
    pub fn join_outgoing(&mut self, peer: u32) -> u32 {
        let (to, sends) = (self.to.as_slice(), self.body.sends.as_slice());
        let known = place(to.len(), |k| (to[k], sends[k].lane), (peer, self.lane), &mut self.known.sends);
        if known as usize == self.to.len() {
            self.to.push(peer);
            let stream = self.stream();
            self.body.sends.push(stream);
        }
        known
    }

    /// A receive is the last one of its stream, which is new if there is none.
    pub fn join_incoming(&mut self, peer: u32, op: OpId) -> u32 {
        let stream = self.stream();
        let (from, receives) = (self.from.as_slice(), self.body.receives.as_slice());
        let known = place(from.len(), |k| (from[k], receives[k].stream.lane), (peer, self.lane), &mut self.known.receives);
        let receives = &mut self.body.receives;
        match receives.as_mut_slice().get_mut(known as usize) {
            Some(incoming) => {
                self.body.ops[incoming.last as usize].next = op;
                incoming.last = op;
            }
            None => {
                self.from.push(peer);
                receives.push(Incoming { stream, first: op, last: op });
            }
        }
        known
    }
}
