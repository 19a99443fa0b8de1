//! What one rank does, kept in few bytes.

use super::op::{Kind, Op, Ops, SEVERAL, TWO, buffer, in_words, of_words};
use super::stream::{Building, Incoming, Stream};
use super::{Action, Buffer, Lane, OpId, Span, WINDOW};
use crate::topology::Rank;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// No operation: behind all that there are.
pub(crate) const NONE: OpId = OpId::MAX;

/// What one rank does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Program {
    pub(super) ops: Ops,
    /// What has no room in operations: of those that come after several how many, and which; what copies and combinings read; spans beyond 4 GiB.
    pub(super) words: Vec<u32>,
    /// The first and the last operation of each lane that is no receive.
    pub(super) lanes: SmallVec<[(OpId, OpId); 2]>,
    /// Streams that it sends.
    pub(super) sends: SmallVec<[Stream; 2]>,
    /// Streams that it receives.
    pub(super) receives: SmallVec<[Incoming; 1]>,
    /// What is known while it is built.
    pub(super) building: Option<Box<Building>>,
    /// The lane that operations are added to.
    pub(super) lane: Lane,
    /// How many messages are under way of streams that are added.
    pub(super) in_flight: u8,
    /// To how many peers at once sends that are added go; 0: to all.
    peers: u8,
    /// Bytes of scratch that its operations use.
    scratch: usize,
}

impl Program {
    /// An empty program.
    pub fn new() -> Program {
        Program::default()
    }

    /// An empty program that this many operations will be added to.
    pub fn with_room(operations: usize) -> Program {
        Program { ops: Ops::Own(Vec::with_capacity(operations)), ..Program::default() }
    }

    /// Adds what follows to a lane.
    pub fn in_lane(&mut self, lane: Lane) {
        self.lane = lane;
    }

    /// Lets streams that begin from here on go with at most so many messages under way (more than [`WINDOW`] are as many as that); 0: nothing
    /// is said of them.
    pub fn in_flight(&mut self, messages: usize) {
        self.in_flight = messages.min(WINDOW) as u8;
    }

    /// Lets each send that is added from here on wait until those of its lane that were added so to all but the last `peers - 1` other peers are
    /// complete; 0: it waits for none. Flows that share a port all end late, one after the other all but the last end earlier.
    pub fn peers(&mut self, peers: usize) {
        self.peers = peers.min(WINDOW) as u8;
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
        let mut lanes: Vec<Lane> = self.sends.iter().map(|stream| stream.lane).collect();
        lanes.sort_unstable();
        lanes.windows(2).any(|two| two[0] == two[1])
    }

    /// The same program with so many messages of each stream under way, as [`Program::in_flight`].
    pub fn with_in_flight(mut self, messages: usize) -> Program {
        self.in_flight(messages);
        self.streams_mut().for_each(|stream| stream.in_flight = messages.min(WINDOW) as u8);
        self
    }

    /// The same program with so many messages of each stream to or from some ranks under way.
    pub fn with_in_flight_to(mut self, is_one: impl Fn(Rank) -> bool, messages: usize) -> Program {
        let streams = self.streams_mut().filter(|stream| is_one(stream.peer as Rank));
        streams.for_each(|stream| stream.in_flight = messages.min(WINDOW) as u8);
        self
    }

    /// Its streams, at the ends that are its own.
    fn streams_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.sends.iter_mut().chain(self.receives.iter_mut().map(|incoming| &mut incoming.stream))
    }

    /// Adds an operation that comes after others of the same rank. What a copy or a combining reads is as long as what it writes.
    pub fn push(&mut self, action: Action, after: &[OpId]) -> OpId {
        let id = self.ops.len() as OpId;
        let op = match action {
            Action::Send { to, span } => {
                let place = self.join_outgoing(to as u32);
                let turn = if self.peers > 0 { self.turn(to as u32, id) } else { None };
                match turn.filter(|turn| !after.contains(turn)) {
                    Some(turn) => self.op(Kind::Send, place, span, &[after, &[turn]].concat()),
                    None => self.op(Kind::Send, place, span, after),
                }
            }
            Action::Recv { from, span } => {
                let place = self.join_incoming(from as u32, id);
                self.op(Kind::Recv, place, span, after)
            }
            Action::Copy { from, into } => self.op_that_reads(Kind::Copy, from, into, after),
            Action::Combine { left, into } => self.op_that_reads(Kind::Combine, left, into, after),
            Action::Delay { seconds } => Op::delay(self.lane.into(), seconds, self.store(after)),
        };
        self.ops.own().push(op);
        if op.kind() != Kind::Recv {
            self.join_lane(id);
        }
        id
    }

    /// An operation on a span.
    fn op(&mut self, kind: Kind, place: u32, span: Span, after: &[OpId]) -> Op {
        self.needs(span);
        let after = self.store(after);
        Op::new(kind, place, span, after, &mut self.words)
    }

    /// An operation that reads one span and writes another one.
    fn op_that_reads(&mut self, kind: Kind, from: Span, into: Span, after: &[OpId]) -> Op {
        self.needs(from);
        let place = self.words.len() as u32;
        let [high, low] = in_words(from.offset as u64);
        self.words.extend([(from.buffer as u32) << Lane::BITS | u32::from(self.lane), high, low]);
        self.op(kind, place, into, after)
    }

    /// The send that must be complete before the next one to a peer begins, since it would go to one too many at once.
    fn turn(&mut self, peer: u32, send: OpId) -> Option<OpId> {
        let (lane, peers) = (usize::from(self.lane), usize::from(self.peers));
        let lanes = &mut self.building.get_or_insert_default().last_sends;
        if lanes.len() <= lane {
            lanes.resize(lane + 1, Vec::new());
        }
        let last = &mut lanes[lane];
        last.retain(|l| l.0 != peer);
        // those before it were waited for when it began
        let turn = last.len().checked_sub(peers).map(|k| last[k].1);
        last.drain(..(last.len() + 1).saturating_sub(peers));
        last.push((peer, send));
        turn
    }

    /// Sees to it that there is as much scratch.
    fn needs(&mut self, span: Span) {
        if span.buffer == Buffer::Scratch {
            self.scratch = self.scratch.max(span.end());
        }
    }

    /// Bytes of scratch that its operations use.
    pub fn scratch(&self) -> usize {
        self.scratch
    }

    /// Keeps what an operation comes after.
    fn store(&mut self, after: &[OpId]) -> u32 {
        match after {
            [] => NONE,
            [one] => *one,
            several => {
                let at = self.words.len() as u32;
                if several.len() > 2 {
                    self.words.push(several.len() as u32);
                }
                self.words.extend_from_slice(several);
                if several.len() > 2 { SEVERAL | at } else { SEVERAL | TWO | at }
            }
        }
    }

    /// An operation is the last one of its lane.
    fn join_lane(&mut self, op: OpId) {
        let lane = usize::from(self.lane);
        if self.lanes.len() <= lane {
            self.lanes.resize(lane + 1, (NONE, NONE));
        }
        match &mut self.lanes[lane] {
            (first, last) if *first == NONE => (*first, *last) = (op, op),
            (_, last) => {
                self.ops.own()[*last as usize].next = op;
                *last = op;
            }
        }
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
        self.ops.len()
    }

    /// True if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Bytes in memory.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.ops)
            + size_of_val(self.words.as_slice())
            + size_of_val(self.lanes.as_slice())
            + size_of_val(self.sends.as_slice())
            + size_of_val(self.receives.as_slice())
    }

    /// What an operation does.
    #[inline]
    pub fn action(&self, op: usize) -> Action {
        self.act(&self.ops[op])
    }

    #[inline]
    fn act(&self, op: &Op) -> Action {
        let span = op.span(&self.words);
        match op.kind() {
            Kind::Send => Action::Send { to: self.sends[op.place() as usize].peer as Rank, span },
            Kind::Recv => Action::Recv { from: self.receives[op.place() as usize].stream.peer as Rank, span },
            Kind::Copy => Action::Copy { from: self.read(op, span.len), into: span },
            Kind::Combine => Action::Combine { left: self.read(op, span.len), into: span },
            Kind::Delay => Action::Delay { seconds: op.seconds() },
        }
    }

    /// What a copy or a combining of so many bytes reads.
    fn read(&self, op: &Op, len: usize) -> Span {
        let at = &self.words[op.place() as usize..];
        Span { buffer: buffer(at[0] >> Lane::BITS), offset: of_words(&at[1..]) as usize, len }
    }

    /// The stream of a message at this end.
    #[inline]
    fn stream_of(&self, op: &Op) -> Option<&Stream> {
        match op.kind() {
            Kind::Send => Some(&self.sends[op.place() as usize]),
            Kind::Recv => Some(&self.receives[op.place() as usize].stream),
            _ => None,
        }
    }

    /// Bytes that an operation sends, receives or writes.
    #[inline]
    pub fn bytes(&self, op: usize) -> usize {
        self.ops[op].span(&self.words).len
    }

    /// The peer of a send or receive, and how many bytes it is of.
    #[inline]
    pub fn message(&self, op: usize) -> Option<(Rank, usize)> {
        let op = &self.ops[op];
        self.stream_of(op).map(|stream| (stream.peer as Rank, op.span(&self.words).len))
    }

    /// The receiver of a send.
    #[inline]
    pub fn sends_to(&self, op: usize) -> Option<Rank> {
        let op = &self.ops[op];
        op.sends().then(|| self.sends[op.place() as usize].peer as Rank)
    }

    /// The lane of an operation.
    #[inline]
    pub fn lane(&self, op: usize) -> Lane {
        let op = &self.ops[op];
        match (self.stream_of(op), op.kind()) {
            (Some(stream), _) => stream.lane,
            (None, Kind::Delay) => op.place() as Lane,
            (None, _) => self.words[op.place() as usize] as Lane,
        }
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
        self.stream_of(&self.ops[op]).map_or(0, |stream| stream.in_flight.into())
    }

    /// The operations that one comes after.
    #[inline]
    pub fn after(&self, op: usize) -> &[OpId] {
        self.after_of(&self.ops[op])
    }

    #[inline]
    pub(super) fn after_of<'a>(&'a self, op: &'a Op) -> &'a [OpId] {
        match &op.after {
            &NONE => &[],
            one if *one < SEVERAL => std::slice::from_ref(one),
            at => {
                let words = &self.words[(at & !(SEVERAL | TWO)) as usize..];
                if at & TWO != 0 { &words[..2] } else { &words[1..][..words[0] as usize] }
            }
        }
    }

    /// The place of a message's stream among those that its program sends, or among those that it receives.
    #[inline]
    pub fn stream(&self, op: usize) -> u32 {
        self.ops[op].place()
    }

    /// Who its streams go to.
    pub fn receivers(&self) -> impl Iterator<Item = Rank> + '_ {
        self.sends.iter().map(|stream| stream.peer as Rank)
    }

    /// Of each message that it sends the place of its stream among those, and its bytes.
    pub fn sent(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        self.ops.iter().filter(|op| op.sends()).map(|op| (op.place(), op.span(&self.words).len))
    }

    /// Who each stream goes to that it sends, and how many messages of it are under way at most; 0: nothing is said.
    pub fn outgoing(&self) -> impl Iterator<Item = (Rank, usize)> + '_ {
        self.sends.iter().map(|stream| (stream.peer as Rank, stream.in_flight.into()))
    }

    /// The first receive of each stream that it receives.
    pub fn streams(&self) -> impl Iterator<Item = OpId> + '_ {
        self.receives.iter().map(|stream| stream.first)
    }

    /// The next operation of the same lane that is no receive, or the next receive of the same stream.
    #[inline]
    pub fn next(&self, op: usize) -> Option<usize> {
        Some(self.ops[op].next).filter(|&next| next != NONE).map(|next| next as usize)
    }

    /// The actions in order.
    pub fn actions(&self) -> impl Iterator<Item = Action> + '_ {
        self.ops.iter().map(|op| self.act(op))
    }

    /// The same program with other names for the ranks.
    pub fn renamed(mut self, rename: impl Fn(Rank) -> Rank) -> Program {
        self.streams_mut().for_each(|stream| stream.peer = rename(stream.peer as Rank) as u32);
        self.building = None;
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
        let base = self.ops.len() as OpId;
        let begins: FxHashSet<OpId> = other.lanes.iter().map(|l| l.0).chain(other.streams()).collect();
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
        base..self.ops.len() as OpId
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
