//! What one rank does, kept in few bytes.

use super::body::{Body, Parts};
use super::building::Own;
use super::op::{Kind, Op, buffer, of_words};
use super::stream::{Known, Stream};
use super::{Action, Lane, OpId, Span, WINDOW};
use crate::topology::Rank;
use rustc_hash::FxHashSet;

/// No operation: behind all that there are.
pub(crate) const NONE: OpId = OpId::MAX;

/// What one rank does.
#[derive(Debug, Clone, Default)]
pub struct Program {
    pub(super) parts: Parts,
}

impl PartialEq for Program {
    fn eq(&self, other: &Program) -> bool {
        self.parts.peers() == other.parts.peers() && self.body() == other.body() && self.parts.places() == other.parts.places()
    }
}

impl Program {
    /// An empty program.
    pub fn new() -> Program {
        Program::default()
    }

    /// An empty program that this many operations will be added to.
    pub fn with_room(operations: usize) -> Program {
        let mut program = Program::new();
        let own = program.parts.own();
        own.body.ops.reserve_exact(operations);
        own.places.offsets.reserve_exact(operations);
        program
    }

    /// What it does, but with whom, and where its spans begin.
    #[inline]
    pub(super) fn body(&self) -> &Body {
        self.parts.body()
    }

    /// Adds what follows to a lane.
    pub fn in_lane(&mut self, lane: Lane) {
        self.parts.own().lane = lane;
    }

    /// Lets streams that begin from here on go with at most so many messages under way (more than [`WINDOW`] are as many as that); 0: nothing
    /// is said of them.
    pub fn in_flight(&mut self, messages: usize) {
        self.parts.own().in_flight = messages.min(WINDOW) as u8;
    }

    /// Lets each send that is added from here on wait until those of its lane that were added so to all but the last `peers - 1` other peers are
    /// complete; 0: it waits for none. Flows that share a port all end late, one after the other all but the last end earlier.
    pub fn peers(&mut self, peers: usize) {
        self.parts.own().peers = peers.min(WINDOW) as u8;
    }

    /// The same program with sends to so many peers at once, as [`Program::peers`].
    pub fn with_peers(self, peers: usize) -> Program {
        if peers == 0 {
            return self;
        }
        let mut program = Program::new();
        program.peers(peers);
        program.append(&self, |rank| rank, &[]);
        program
    }

    /// True if it sends to several peers in one lane.
    pub fn branches(&self) -> bool {
        let mut lanes: Vec<Lane> = self.body().sends.iter().map(|stream| stream.lane).collect();
        lanes.sort_unstable();
        lanes.windows(2).any(|two| two[0] == two[1])
    }

    /// The same program with so many messages of each stream under way, as [`Program::in_flight`].
    pub fn with_in_flight(mut self, messages: usize) -> Program {
        self.in_flight(messages);
        self.with_in_flight_to(|_| true, messages)
    }

    /// The same program with so many messages of each stream to or from some ranks under way.
    pub fn with_in_flight_to(mut self, is_one: impl Fn(Rank) -> bool, messages: usize) -> Program {
        let own = self.parts.own();
        let sent = own.to.iter().zip(&mut own.body.sends);
        let received = own.from.iter().zip(own.body.receives.iter_mut().map(|incoming| &mut incoming.stream));
        let streams = sent.chain(received).filter(|&(&peer, _)| is_one(peer as Rank));
        streams.for_each(|(_, stream)| stream.in_flight = messages.min(WINDOW) as u8);
        self
    }

    /// Adds an operation that comes after others of the same rank. What a copy or a combining reads is as long as what it writes.
    pub fn push(&mut self, action: Action, after: &[OpId]) -> OpId {
        self.parts.own().push(action, after)
    }

    /// Bytes of scratch that its operations use.
    pub fn scratch(&self) -> usize {
        self.parts.places().scratch
    }

    /// Adds a send.
    pub fn send(&mut self, to: Rank, span: Span, after: &[OpId]) -> OpId {
        self.push(Action::Send { to, span }, after)
    }

    /// Adds a receive.
    pub fn recv(&mut self, from: Rank, span: Span, after: &[OpId]) -> OpId {
        self.push(Action::Recv { from, span }, after)
    }

    /// Adds a copy.
    pub fn copy(&mut self, from: Span, into: Span, after: &[OpId]) -> OpId {
        self.push(Action::Copy { from, into }, after)
    }

    /// Adds `into := left op into`.
    pub fn combine(&mut self, left: Span, into: Span, after: &[OpId]) -> OpId {
        self.push(Action::Combine { left, into }, after)
    }

    /// The number of operations.
    #[inline]
    pub fn len(&self) -> usize {
        self.body().ops.len()
    }

    /// True if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes in memory, those that it shares with others among them.
    pub fn memory(&self) -> usize {
        let (body, places) = (self.body(), self.parts.places());
        let own = if matches!(self.parts, Parts::Own(_)) { size_of::<Own>() } else { 0 };
        own + size_of_val(body.ops.as_slice())
            + size_of_val(body.words.as_slice())
            + size_of_val(body.lanes.as_slice())
            + size_of_val(body.sends.as_slice())
            + size_of_val(body.receives.as_slice())
            + size_of_val(places.offsets.as_slice())
            + size_of_val(places.reads.as_slice())
            + size_of_val(self.parts.peers().0)
            + size_of_val(self.parts.peers().1)
    }

    /// What an operation does.
    #[inline]
    pub fn action(&self, op: usize) -> Action {
        let (body, places) = (self.body(), self.parts.places());
        let (op, offset) = (&body.ops[op], places.offsets.as_slice()[op]);
        let span = op.span(&body.words, offset);
        let words = || &body.words[op.place() as usize..];
        let read = || {
            let words = words();
            Span { buffer: buffer(words[0] >> Lane::BITS), offset: places.reads[words[1] as usize] as usize, len: span.len }
        };
        match op.kind() {
            Kind::Send => Action::Send { to: self.parts.to(op.place()), span },
            Kind::Recv => Action::Recv { from: self.parts.from(op.place()), span },
            Kind::Copy => Action::Copy { from: read(), into: span },
            Kind::Combine => Action::Combine { left: read(), into: span },
            Kind::Delay => Action::Delay { seconds: f64::from_bits(of_words(&words()[1..])) },
        }
    }

    /// The stream of a message at this end.
    #[inline]
    fn stream_of(&self, op: &Op) -> Option<&Stream> {
        match op.kind() {
            Kind::Send => Some(&self.body().sends.as_slice()[op.place() as usize]),
            Kind::Recv => Some(&self.body().receives.as_slice()[op.place() as usize].stream),
            _ => None,
        }
    }

    /// Bytes that an operation sends, receives or writes.
    #[inline]
    pub fn bytes(&self, op: usize) -> usize {
        self.body().ops[op].bytes(&self.body().words)
    }

    /// The peer of a send or receive, and how many bytes it is of.
    #[inline]
    pub fn message(&self, op: usize) -> Option<(Rank, usize)> {
        let op = &self.body().ops[op];
        let peer = match op.kind() {
            Kind::Send => self.parts.to(op.place()),
            Kind::Recv => self.parts.from(op.place()),
            _ => return None,
        };
        Some((peer, op.bytes(&self.body().words)))
    }

    /// True of a send.
    #[inline]
    pub fn sends(&self, op: usize) -> bool {
        self.body().ops[op].sends()
    }

    /// The receiver of a send.
    #[inline]
    pub fn sends_to(&self, op: usize) -> Option<Rank> {
        let op = &self.body().ops[op];
        op.sends().then(|| self.parts.to(op.place()))
    }

    /// The lane of an operation.
    #[inline]
    pub fn lane(&self, op: usize) -> Lane {
        let op = &self.body().ops[op];
        self.stream_of(op).map_or_else(|| self.body().words[op.place() as usize] as Lane, |stream| stream.lane)
    }

    /// How many messages of its stream are under way, at most, when a send or receive has started: [`WINDOW`] where the program says nothing.
    #[inline]
    pub fn in_flight_at(&self, op: usize) -> usize {
        match self.in_flight_said(op) {
            0 => WINDOW,
            said => said,
        }
    }

    /// What it says of that; 0: nothing.
    #[inline]
    pub fn in_flight_said(&self, op: usize) -> usize {
        self.stream_of(&self.body().ops[op]).map_or(0, |stream| stream.in_flight.into())
    }

    /// The operations that one comes after.
    #[inline]
    pub fn after(&self, op: usize) -> &[OpId] {
        self.body().after(op)
    }

    /// The place of a message's stream among those that its program sends, or among those that it receives.
    #[inline]
    pub fn stream(&self, op: usize) -> u32 {
        self.body().ops[op].place()
    }

    /// Who its streams go to.
    pub fn receivers(&self) -> impl Iterator<Item = Rank> + '_ {
        self.parts.peers().0.iter().map(|&peer| peer as Rank)
    }

    /// Who a stream goes to that it sends.
    #[inline]
    pub fn to(&self, stream: u32) -> Rank {
        self.parts.to(stream)
    }

    /// Of each message that it sends the place of its stream among those, and its bytes.
    pub fn sent(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        let body = self.body();
        body.ops.iter().filter(|op| op.sends()).map(|op| (op.place(), op.bytes(&body.words)))
    }

    /// Who each stream goes to that it sends, and how many messages of it are under way at most; 0: nothing is said.
    pub fn outgoing(&self) -> impl Iterator<Item = (Rank, usize)> + '_ {
        self.receivers().zip(self.body().sends.iter().map(|stream| stream.in_flight.into()))
    }

    /// The first receive of each stream that it receives.
    pub fn streams(&self) -> impl Iterator<Item = OpId> + '_ {
        self.body().receives.iter().map(|stream| stream.first)
    }

    /// True if a receive is the only one of its stream.
    #[inline]
    pub fn is_alone(&self, receive: usize) -> bool {
        let body = self.body();
        let op = &body.ops[receive];
        op.next == NONE && body.receives.as_slice()[op.place() as usize].first == receive as OpId
    }

    /// The next operation of the same lane that is no receive, or the next receive of the same stream.
    #[inline]
    pub fn next(&self, op: usize) -> Option<usize> {
        Some(self.body().ops[op].next).filter(|&next| next != NONE).map(|next| next as usize)
    }

    /// The actions in order.
    pub fn actions(&self) -> impl Iterator<Item = Action> + '_ {
        (0..self.len()).map(|op| self.action(op))
    }

    /// The same program with other names for the ranks.
    pub fn renamed(mut self, rename: impl Fn(Rank) -> Rank) -> Program {
        let rename = |peer: &mut u32| *peer = rename(*peer as Rank) as u32;
        match &mut self.parts {
            Parts::Own(own) => {
                own.to.iter_mut().chain(&mut own.from).for_each(rename);
                own.known = Known::default();
            }
            Parts::Shared(shared) => shared.peers.iter_mut().for_each(rename),
        }
        self
    }

    /// Appends another program whose ranks are renamed by `rename`, and which begins when the operations `after` are complete: the first
    /// operation of each of its lanes and the first receive of each of its streams wait for them, and so do those that follow.
    pub fn append(&mut self, other: &Program, rename: impl Fn(Rank) -> Rank, after: &[OpId]) {
        self.embed(other, rename, |span| span, 0, after);
    }

    /// As [`Program::append`], of a program that works on other places, in lanes from `lane` on. Gives its operations' new numbers.
    pub fn embed(
        &mut self,
        other: &Program,
        rename: impl Fn(Rank) -> Rank,
        place: impl Fn(Span) -> Span,
        lane: Lane,
        after: &[OpId],
    ) -> std::ops::Range<OpId> {
        let base = self.len() as OpId;
        let begins: FxHashSet<OpId> = other.body().lanes.iter().map(|l| l.0).chain(other.streams()).collect();
        for k in 0..other.len() {
            let mut deps: Vec<OpId> = other.after(k).iter().map(|d| d + base).collect();
            let action = match other.action(k) {
                Action::Send { to, span } => Action::Send { to: rename(to), span: place(span) },
                Action::Recv { from, span } => Action::Recv { from: rename(from), span: place(span) },
                Action::Copy { from, into } => Action::Copy { from: place(from), into: place(into) },
                Action::Combine { left, into } => Action::Combine { left: place(left), into: place(into) },
                Action::Delay { seconds } => Action::Delay { seconds },
            };
            if begins.contains(&(k as OpId)) {
                deps.extend(after);
            }
            self.in_lane(lane + other.lane(k));
            self.in_flight(other.in_flight_said(k));
            self.push(action, &deps);
        }
        base..self.len() as OpId
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Buffer;

    #[test]
    fn what_has_no_room_in_an_operation_is_kept_beside_it() {
        let (near, far) = (Span::scratch(3, 5), Span { buffer: Buffer::Output, offset: 5 << 30, len: 9 << 30 });
        let actions = [
            Action::Send { to: 1, span: far },
            Action::Recv { from: 2, span: Span { len: 1, ..far } },
            Action::Copy { from: Span { offset: 7 << 30, ..far }, into: Span { offset: 0, ..far } },
            Action::Combine { left: near, into: Span { len: near.len, ..far } },
            Action::Delay { seconds: 1.25e-6 },
            Action::Copy { from: near, into: Span::input(9, 5) },
        ];
        let mut program = Program::new();
        program.in_lane(3);
        // each comes after all before it: none, one, two and more
        for (k, &action) in actions.iter().enumerate() {
            let after: Vec<OpId> = (0..k as OpId).collect();
            assert_eq!(program.push(action, &after), k as OpId);
        }
        for (k, &action) in actions.iter().enumerate() {
            assert_eq!((program.action(k), program.lane(k), program.after(k).len()), (action, 3, k));
            assert!(program.after(k).iter().copied().eq(0..k as OpId));
        }
    }
}
