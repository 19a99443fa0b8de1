//! What one rank does, kept in few bytes, and how far it has come.

use super::op::{Kind, Op, Ops, SEVERAL};
use super::{Action, Buffer, Lane, OpId, Span, WINDOW};
use crate::topology::Rank;
use rustc_hash::{FxHashMap, FxHashSet};

/// No operation: behind all that there are.
pub(crate) const NONE: OpId = OpId::MAX;

/// What a copy or a combining reads beside what it writes, and its lane.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Read {
    buffer: Buffer,
    offset: usize,
    lane: Lane,
}

/// So few streams are searched faster than looked up.
pub(super) const FEW_STREAMS: usize = 16;

/// The messages to or from one peer in one lane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stream {
    pub peer: u32,
    pub lane: Lane,
    pub receives: bool,
    /// Messages under way; 0: nothing is said.
    in_flight: u8,
    pub first: OpId,
    last: OpId,
}

/// A stream's peer and lane, and whether it is received.
type Key = (u32, Lane, bool);

impl Stream {
    #[inline]
    pub fn key(&self) -> Key {
        (self.peer, self.lane, self.receives)
    }
}

/// What a program is built with: few programs of millions need it, and none of them for long.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Building {
    /// Where each stream is in `Program::streams`, if they are many.
    stream_of: FxHashMap<Key, u32>,
    /// Of each lane the last send to each peer, of those that go to few peers at once, the latest one last.
    last_sends: Vec<Vec<(u32, OpId)>>,
}

/// What one rank does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Program {
    pub(super) ops: Ops,
    /// What operations come after, of those that come after several: how many, and which.
    pub(super) after: Vec<OpId>,
    /// The first and the last operation of each lane that is no receive.
    pub(super) lanes: Vec<(OpId, OpId)>,
    pub(super) streams: Vec<Stream>,
    /// What copies and combinings read.
    reads: Vec<Read>,
    /// What is known while it is built.
    pub(super) building: Option<Box<Building>>,
    /// The lane that operations are added to.
    lane: Lane,
    /// How many messages are under way of streams that are added.
    in_flight: u8,
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
        let mut lanes: Vec<Lane> = self.streams.iter().filter(|s| !s.receives).map(|s| s.lane).collect();
        lanes.sort_unstable();
        lanes.windows(2).any(|two| two[0] == two[1])
    }

    /// The same program with so many messages of each stream under way, as [`Program::in_flight`].
    pub fn with_in_flight(mut self, messages: usize) -> Program {
        self.in_flight(messages);
        self.streams.iter_mut().for_each(|stream| stream.in_flight = messages.min(WINDOW) as u8);
        self
    }

    /// The same program with so many messages of each stream to or from some ranks under way.
    pub fn with_in_flight_to(mut self, is_one: impl Fn(Rank) -> bool, messages: usize) -> Program {
        let streams = self.streams.iter_mut().filter(|stream| is_one(stream.peer as Rank));
        streams.for_each(|stream| stream.in_flight = messages.min(WINDOW) as u8);
        self
    }

    /// Adds an operation that comes after others of the same rank. What a copy or a combining reads is as long as what it writes.
    pub fn push(&mut self, action: Action, after: &[OpId]) -> OpId {
        let id = self.ops.len() as OpId;
        let (kind, stream, span) = match action {
            Action::Send { to, span } => (Kind::Send, self.join_stream(to, false, id), span),
            Action::Recv { from, span } => (Kind::Recv, self.join_stream(from, true, id), span),
            Action::Copy { from, into } => (Kind::Copy, self.read(from), into),
            Action::Combine { left, into } => (Kind::Combine, self.read(left), into),
            Action::Delay { seconds } => {
                (Kind::Delay, u32::from(self.lane), Span { offset: seconds.to_bits() as usize, ..Span::control(0) })
            }
        };
        self.needs(span);
        let turn = if kind == Kind::Send && self.peers > 0 { self.turn(self.streams[stream as usize].peer, id) } else { None };
        let after = match turn.filter(|turn| !after.contains(turn)) {
            Some(turn) => self.store(&[after, &[turn]].concat()),
            None => self.store(after),
        };
        self.ops.own().push(Op::new(kind, stream, span, after));
        if kind != Kind::Recv {
            self.join_lane(id);
        }
        id
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

    /// Keeps what a copy or a combining reads.
    fn read(&mut self, span: Span) -> u32 {
        self.needs(span);
        self.reads.push(Read { buffer: span.buffer, offset: span.offset, lane: self.lane });
        self.reads.len() as u32 - 1
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
                let at = self.after.len() as u32;
                self.after.push(several.len() as u32);
                self.after.extend_from_slice(several);
                SEVERAL + at
            }
        }
    }

    /// An operation is the last one of its lane.
    fn join_lane(&mut self, op: OpId) {
        let lane = usize::from(self.lane);
        if self.lanes.len() <= lane {
            // most programs have one, and are as many as there are ranks
            self.lanes.reserve_exact(lane + 1 - self.lanes.len());
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

    /// An operation is the last one of its stream.
    fn join_stream(&mut self, peer: Rank, receives: bool, op: OpId) -> u32 {
        let new = Stream { peer: peer as u32, lane: self.lane, receives, in_flight: self.in_flight, first: op, last: op };
        let known = if self.streams.len() < FEW_STREAMS {
            self.streams.iter().position(|s| s.key() == new.key()).unwrap_or(self.streams.len())
        } else {
            let known = &mut self.building.get_or_insert_default().stream_of;
            if known.is_empty() {
                known.extend(self.streams.iter().zip(0..).map(|(s, k)| (s.key(), k)));
            }
            *known.entry(new.key()).or_insert(self.streams.len() as u32) as usize
        };
        match self.streams.get_mut(known) {
            Some(stream) => {
                if receives {
                    self.ops.own()[stream.last as usize].next = op;
                }
                stream.last = op;
            }
            None => self.streams.push(new),
        }
        known as u32
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
            + size_of_val(self.after.as_slice())
            + size_of_val(self.lanes.as_slice())
            + size_of_val(self.streams.as_slice())
            + size_of_val(self.reads.as_slice())
    }

    /// What an operation does.
    #[inline]
    pub fn action(&self, op: usize) -> Action {
        self.act(&self.ops[op])
    }

    #[inline]
    fn act(&self, op: &Op) -> Action {
        let peer = || self.streams[op.stream() as usize].peer as Rank;
        let read = || {
            let Read { buffer, offset, .. } = self.reads[op.stream() as usize];
            Span { buffer, offset, len: op.len as usize }
        };
        match op.kind() {
            Kind::Send => Action::Send { to: peer(), span: op.span() },
            Kind::Recv => Action::Recv { from: peer(), span: op.span() },
            Kind::Copy => Action::Copy { from: read(), into: op.span() },
            Kind::Combine => Action::Combine { left: read(), into: op.span() },
            Kind::Delay => Action::Delay { seconds: f64::from_bits(op.offset) },
        }
    }

    /// The peer of a send or receive, and how many bytes it is of.
    #[inline]
    pub fn message(&self, op: usize) -> Option<(Rank, usize)> {
        let op = &self.ops[op];
        op.is_message().then(|| (self.streams[op.stream() as usize].peer as Rank, op.len as usize))
    }

    /// The receiver of a send.
    #[inline]
    pub fn sends_to(&self, op: usize) -> Option<Rank> {
        let op = &self.ops[op];
        op.sends().then(|| self.streams[op.stream() as usize].peer as Rank)
    }

    /// The lane of an operation.
    #[inline]
    pub fn lane(&self, op: usize) -> Lane {
        let op = &self.ops[op];
        match op.kind() {
            Kind::Send | Kind::Recv => self.streams[op.stream() as usize].lane,
            Kind::Copy | Kind::Combine => self.reads[op.stream() as usize].lane,
            Kind::Delay => op.stream() as Lane,
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
        let op = &self.ops[op];
        if op.is_message() { self.streams[op.stream() as usize].in_flight.into() } else { 0 }
    }

    /// The operations that one comes after.
    #[inline]
    pub fn after(&self, op: usize) -> &[OpId] {
        match &self.ops[op].after {
            &NONE => &[],
            one if *one < SEVERAL => std::slice::from_ref(one),
            at => {
                let at = (at - SEVERAL) as usize;
                &self.after[at + 1..][..self.after[at] as usize]
            }
        }
    }

    /// The place of an operation's stream among those of its program.
    #[inline]
    pub fn stream(&self, op: usize) -> u32 {
        self.ops[op].stream()
    }

    /// The first operation of each stream.
    pub fn first_of_streams(&self) -> impl Iterator<Item = OpId> + '_ {
        self.streams.iter().map(|s| s.first)
    }

    /// The first receive of each stream of receives.
    pub fn streams(&self) -> impl Iterator<Item = OpId> + '_ {
        self.streams.iter().filter(|s| s.receives).map(|s| s.first)
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
        for stream in &mut self.streams {
            stream.peer = rename(stream.peer as usize) as u32;
        }
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
