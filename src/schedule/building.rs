//! How operations are added to a program.

use super::body::{Body, Places};
use super::op::{Kind, Op, SEVERAL, TWO, in_words};
use super::program::NONE;
use super::stream::Known;
use super::{Action, Buffer, Lane, OpId, Span};
use smallvec::SmallVec;

/// A program's own, that operations can be added to.
#[derive(Debug, Clone, Default)]
pub(super) struct Own {
    pub body: Body,
    pub places: Places,
    /// Who each stream goes to that it sends.
    pub to: SmallVec<[u32; 4]>,
    /// Who each stream comes from that it receives.
    pub from: SmallVec<[u32; 4]>,
    /// The lane that operations are added to.
    pub lane: Lane,
    /// How many messages are under way of streams that are added.
    pub in_flight: u8,
    /// To how many peers at once sends that are added go; 0: to all.
    pub peers: u8,
    /// Of each lane the last send to each peer, of those that go to few peers at once, the latest one last.
    pub last_sends: Vec<Vec<(u32, OpId)>>,
    pub known: Known,
}

impl Own {
    /// Adds an operation that comes after others of the same rank. What a copy or a combining reads is as long as what it writes.
    pub fn push(&mut self, action: Action, after: &[OpId]) -> OpId {
        let id = self.body.ops.len() as OpId;
        match action {
            Action::Send { to, span } => {
                let place = self.join_outgoing(to as u32);
                match self.turn(place, id).filter(|turn| !after.contains(turn)) {
                    Some(turn) => self.add(Kind::Send, place, span, &[after, &[turn]].concat()),
                    None => self.add(Kind::Send, place, span, after),
                }
            }
            Action::Recv { from, span } => {
                let place = self.join_incoming(from as u32, id);
                self.add(Kind::Recv, place, span, after);
            }
            Action::Copy { from, into } => self.add_that_reads(Kind::Copy, from, into, after),
            Action::Combine { left, into } => self.add_that_reads(Kind::Combine, left, into, after),
            Action::Delay { seconds } => {
                let after = self.store(after);
                let place = self.body.words.len() as u32;
                let [high, low] = in_words(seconds.to_bits());
                self.body.words.extend([u32::from(self.lane), high, low]);
                self.body.ops.push(Op::delay(place, after));
                self.places.offsets.push(0);
            }
        }
        if !matches!(action, Action::Recv { .. }) {
            self.join_lane(id);
        }
        id
    }

    /// Adds an operation on a span.
    fn add(&mut self, kind: Kind, place: u32, span: Span, after: &[OpId]) {
        let after = self.store(after);
        self.needs(span);
        let (op, offset) = Op::new(kind, place, span, after, &mut self.body.words);
        self.body.ops.push(op);
        self.places.offsets.push(offset);
    }

    /// Adds an operation that reads one span and writes another one.
    fn add_that_reads(&mut self, kind: Kind, from: Span, into: Span, after: &[OpId]) {
        self.needs(from);
        let place = self.body.words.len() as u32;
        self.body.words.extend([(from.buffer as u32) << Lane::BITS | u32::from(self.lane), self.places.reads.len() as u32]);
        self.places.reads.push(from.offset as u64);
        self.add(kind, place, into, after);
    }

    /// The send that must be complete before the next one of a stream begins, since it would go to one peer too many at once.
    fn turn(&mut self, stream: u32, send: OpId) -> Option<OpId> {
        let (lane, peers) = (usize::from(self.lane), usize::from(self.peers));
        if peers == 0 {
            return None;
        }
        let lanes = &mut self.last_sends;
        if lanes.len() <= lane {
            lanes.resize(lane + 1, Vec::new());
        }
        let last = &mut lanes[lane];
        last.retain(|l| l.0 != stream);
        // those before it were waited for when it began
        let turn = last.len().checked_sub(peers).map(|k| last[k].1);
        last.drain(..(last.len() + 1).saturating_sub(peers));
        last.push((stream, send));
        turn
    }

    /// Keeps what an operation comes after.
    fn store(&mut self, after: &[OpId]) -> u32 {
        match after {
            [] => NONE,
            [one] => *one,
            several => {
                let words = &mut self.body.words;
                let at = words.len() as u32;
                if several.len() > 2 {
                    words.push(several.len() as u32);
                }
                words.extend_from_slice(several);
                if several.len() > 2 { SEVERAL | at } else { SEVERAL | TWO | at }
            }
        }
    }

    /// An operation is the last one of its lane.
    fn join_lane(&mut self, op: OpId) {
        let Own { body, lane, .. } = self;
        let lane = usize::from(*lane);
        if body.lanes.len() <= lane {
            body.lanes.resize(lane + 1, (NONE, NONE));
        }
        match &mut body.lanes.as_mut_slice()[lane] {
            (first, last) if *first == NONE => (*first, *last) = (op, op),
            (_, last) => {
                body.ops[*last as usize].next = op;
                *last = op;
            }
        }
    }

    /// Sees to it that there is as much scratch.
    fn needs(&mut self, span: Span) {
        if span.buffer == Buffer::Scratch {
            self.places.scratch = self.places.scratch.max(span.end());
        }
    }
}
