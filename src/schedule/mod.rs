//! A schedule is data: for each rank a [`Program`], a list of operations with the operations each comes after.
//!
//! One program feeds everything: execution over threads or MPI, prediction under any model, simulation, the validity check, the
//! GOAL export and the picture.
//!
//! Rules of execution, the same for the executor, the replay, the simulator and the check:
//! - an operation starts when all operations it comes after are complete: a send when its span may be used again, a receive when its message
//!   is there, a delay when it is over; what was not started is not complete;
//! - every operation is in a lane, lane 0 unless said otherwise; sends and delays of a rank start in the order of their lane, one at a time;
//!   of several lanes that may go on, the one whose turn came first in the program goes first;
//! - the messages of a sender to a receiver in one lane are a stream: the k-th send matches the k-th receive; receives are posted in the
//!   order of their stream, as soon as what they come after is complete, and wait for no lane; a message that comes before its receive is
//!   posted is taken in when that is;
//! - of each stream at most `in_flight` messages are under way, as many as [`Program::in_flight`] says, or [`WINDOW`] where it says nothing: a
//!   receive is posted when the one so many places before it in its stream is complete, with all before that, and a send starts when the one
//!   so many places before it is.
//!
//! A message that a transport sends with a handshake (a large one over MPI, any message under SMPI) moves when both its ends have started: the
//! k-th message of a stream when the one `in_flight` places before it was received. A small one leaves at once and waits in the
//! receiver's memory for its receive to be posted; that it may leave early hastens nothing, since receives are posted in order.
//! Simulator, executor and check start sends and receives by these rules. The replay, whose models know of no handshakes, lets a message leave when
//! the one `in_flight` places before it was received, and does not hold messages back where a program says nothing.
//!
//! Where execution takes time (replay and simulator), a rank's processor does one thing at a time: it starts a send, delays, or takes in a
//! message. It does not idle while anything may start. Messages that wait for it are taken in as they came; where a message waits and a send
//! may start, they take turns: after a message a send goes next, after a send a message. So neither starves however much there is of the other,
//! and a relay whose overheads exceed the gap passes on a segment for each that it takes in.
//!
//! Lanes let a rank pass on what comes from one sender while it waits for another.

mod bounded;
mod check;
mod goal;
mod matching;
mod memory;

use crate::topology::Rank;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

pub use bounded::{MOST_MESSAGES, pieces};
pub use check::{Specification, check, completes};
pub use goal::goal;
pub use matching::{Matching, Streams, matching};
pub use memory::Piece;

/// Where an operation's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Buffer {
    /// The caller's message.
    Data,
    /// Bytes whose value nobody reads: handshakes and acknowledgements.
    Control,
}

/// A span of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// The buffer.
    pub buffer: Buffer,
    /// First byte.
    pub offset: usize,
    /// Number of bytes.
    pub len: usize,
}

impl Span {
    /// A span of the caller's message.
    pub fn data(offset: usize, len: usize) -> Span {
        Span { buffer: Buffer::Data, offset, len }
    }

    /// A control message.
    pub fn control(len: usize) -> Span {
        Span { buffer: Buffer::Control, offset: 0, len }
    }
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Action {
    /// Send a span.
    Send {
        /// The receiver.
        to: Rank,
        /// What is sent.
        span: Span,
    },
    /// Receive into a span.
    Recv {
        /// The sender.
        from: Rank,
        /// Where it goes.
        span: Span,
    },
    /// Keep the processor busy for some seconds.
    Delay {
        /// How long.
        seconds: f64,
    },
}

/// The position of an operation in its program.
pub type OpId = u32;

/// What an operation is, without its place and its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Send,
    Recv,
    Delay,
}

/// An operation in 32 bytes: predictions hold millions.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Op {
    /// First byte of the span; of a delay, the bits of its seconds.
    offset: u64,
    /// Bytes of the span.
    len: u64,
    /// Where what it comes after begins in `Program::after`: it ends where the next operation's begins.
    after: u32,
    /// The next send or delay of the same lane, the next receive of the same stream; [`NONE`] at its end.
    next: OpId,
    /// Its stream in `Program::streams`; of a delay, its lane.
    stream: u32,
    kind: Kind,
    buffer: Buffer,
    /// Messages of its stream under way, this one included; 0: nothing is said.
    in_flight: u8,
}

/// An ordered stream of operations.
pub type Lane = u16;

/// No operation.
const NONE: OpId = OpId::MAX;

/// How many messages of a stream are under way where nothing else is said, and at most: enough that a pipeline's next segments find their
/// buffers posted, few enough that matching stays short. Those beyond would find no buffer, and be kept, copied and searched by the MPI
/// library (1 GiB in segments of 8 KiB took 42 times as long as in one piece).
pub const WINDOW: usize = 64;

/// So few streams are searched faster than looked up.
const FEW_STREAMS: usize = 16;

/// The messages to or from one peer in one lane.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stream {
    peer: u32,
    lane: Lane,
    receives: bool,
    first: OpId,
    last: OpId,
}

impl Stream {
    fn key(&self) -> (u32, Lane, bool) {
        (self.peer, self.lane, self.receives)
    }
}

/// What one rank does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Program {
    ops: Vec<Op>,
    after: Vec<OpId>,
    /// The first and the last send or delay of each lane.
    lanes: Vec<(OpId, OpId)>,
    streams: Vec<Stream>,
    /// Where each stream is in `streams`, while a program with many of them is built.
    stream_of: FxHashMap<(u32, Lane, bool), u32>,
    /// The lane that operations are added to.
    lane: Lane,
    /// How many messages of a stream are under way, of those that are added.
    in_flight: u8,
}

impl Program {
    /// An empty program.
    pub fn new() -> Program {
        Program::default()
    }

    /// Adds what follows to a lane.
    pub fn in_lane(&mut self, lane: Lane) {
        self.lane = lane;
    }

    /// Lets what follows go with at most so many messages of each stream under way (more than [`WINDOW`] are as many as that); 0: nothing is
    /// said of them.
    pub fn in_flight(&mut self, messages: usize) {
        self.in_flight = messages.min(WINDOW) as u8;
    }

    /// The same program with so many messages of each stream under way, as [`Program::in_flight`].
    pub fn with_in_flight(mut self, messages: usize) -> Program {
        self.in_flight(messages);
        self.ops.iter_mut().for_each(|op| op.in_flight = messages.min(WINDOW) as u8);
        self
    }

    /// Adds an operation that comes after others of the same rank.
    pub fn push(&mut self, action: Action, after: &[OpId]) -> OpId {
        let (start, id) = (self.after.len() as u32, self.ops.len() as OpId);
        self.after.extend_from_slice(after);
        let op = |kind, span: Span, stream| Op {
            offset: span.offset as u64,
            len: span.len as u64,
            after: start,
            next: NONE,
            stream,
            kind,
            buffer: span.buffer,
            in_flight: self.in_flight,
        };
        let op = match action {
            Action::Recv { from, span } => {
                let op = op(Kind::Recv, span, 0);
                Op { stream: self.join_stream(from, true, id), ..op }
            }
            Action::Send { to, span } => {
                let op = op(Kind::Send, span, 0);
                Op { stream: self.join_stream(to, false, id), ..op }
            }
            Action::Delay { seconds } => Op { offset: seconds.to_bits(), ..op(Kind::Delay, Span::control(0), u32::from(self.lane)) },
        };
        self.ops.push(op);
        if op.kind != Kind::Recv {
            self.join_lane(id);
        }
        id
    }

    /// A send or delay is the last one of its lane.
    fn join_lane(&mut self, op: OpId) {
        let lane = usize::from(self.lane);
        if self.lanes.len() <= lane {
            self.lanes.resize(lane + 1, (NONE, NONE));
        }
        match &mut self.lanes[lane] {
            (first, last) if *first == NONE => (*first, *last) = (op, op),
            (_, last) => {
                self.ops[*last as usize].next = op;
                *last = op;
            }
        }
    }

    /// An operation is the last one of its stream.
    fn join_stream(&mut self, peer: Rank, receives: bool, op: OpId) -> u32 {
        let new = Stream { peer: peer as u32, lane: self.lane, receives, first: op, last: op };
        let known = if self.streams.len() < FEW_STREAMS {
            self.streams.iter().position(|s| s.key() == new.key()).unwrap_or(self.streams.len())
        } else {
            if self.stream_of.len() != self.streams.len() {
                self.stream_of = self.streams.iter().zip(0..).map(|(s, k)| (s.key(), k)).collect();
            }
            *self.stream_of.entry(new.key()).or_insert(self.streams.len() as u32) as usize
        };
        match self.streams.get_mut(known) {
            Some(stream) => {
                if receives {
                    self.ops[stream.last as usize].next = op;
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

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// True if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Bytes in memory.
    pub fn memory(&self) -> usize {
        size_of_val(self.ops.as_slice())
            + size_of_val(self.after.as_slice())
            + size_of_val(self.lanes.as_slice())
            + size_of_val(self.streams.as_slice())
    }

    /// What an operation does.
    pub fn action(&self, op: usize) -> Action {
        self.act(&self.ops[op])
    }

    fn act(&self, op: &Op) -> Action {
        let span = Span { buffer: op.buffer, offset: op.offset as usize, len: op.len as usize };
        let peer = || self.streams[op.stream as usize].peer as Rank;
        match op.kind {
            Kind::Send => Action::Send { to: peer(), span },
            Kind::Recv => Action::Recv { from: peer(), span },
            Kind::Delay => Action::Delay { seconds: f64::from_bits(op.offset) },
        }
    }

    /// The receiver of a send.
    pub fn sends_to(&self, op: usize) -> Option<Rank> {
        let op = &self.ops[op];
        (op.kind == Kind::Send).then(|| self.streams[op.stream as usize].peer as Rank)
    }

    /// The lane of an operation.
    pub fn lane(&self, op: usize) -> Lane {
        let op = &self.ops[op];
        if op.kind == Kind::Delay { op.stream as Lane } else { self.streams[op.stream as usize].lane }
    }

    /// How many messages of its stream are under way, at most, when an operation has started; 0: nothing is said.
    pub fn in_flight_at(&self, op: usize) -> usize {
        self.ops[op].in_flight.into()
    }

    /// For each operation, the one of its stream that must be complete before it may start, since no more may be under way.
    pub fn windows(&self) -> Vec<Option<OpId>> {
        let mut streams: Vec<Vec<OpId>> = vec![Vec::new(); self.streams.len()];
        let mut window = |(k, op): (usize, &Op)| {
            let stream = streams.get_mut(op.stream as usize).filter(|_| op.kind != Kind::Delay)?;
            stream.push(k as OpId);
            let in_flight = if op.in_flight == 0 { WINDOW } else { op.in_flight.into() };
            stream.len().checked_sub(in_flight + 1).map(|before| stream[before])
        };
        self.ops.iter().enumerate().map(&mut window).collect()
    }

    /// The operations that one comes after.
    pub fn after(&self, op: usize) -> &[OpId] {
        let end = self.ops.get(op + 1).map_or(self.after.len(), |next| next.after as usize);
        &self.after[self.ops[op].after as usize..end]
    }

    /// The place of an operation's stream among those of its program.
    pub fn stream(&self, op: usize) -> u32 {
        self.ops[op].stream
    }

    /// The first operation of each stream.
    pub fn first_of_streams(&self) -> impl Iterator<Item = OpId> + '_ {
        self.streams.iter().map(|s| s.first)
    }

    /// The first receive of each stream of receives.
    pub fn streams(&self) -> impl Iterator<Item = usize> + '_ {
        self.streams.iter().filter(|s| s.receives).map(|s| s.first as usize)
    }

    /// The next send or delay of the same lane, or the next receive of the same stream.
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
        self.stream_of = FxHashMap::default();
        self
    }

    /// Appends another program whose ranks are renamed by `rename`; the first send or delay in each of its lanes comes after `after` too, and with
    /// it all that start later in that lane. Its receives wait for nothing but what they waited for: it must not receive into bytes that what
    /// is before it uses.
    pub fn append(&mut self, other: &Program, rename: impl Fn(Rank) -> Rank, after: &[OpId]) {
        let base = self.ops.len() as OpId;
        for k in 0..other.len() {
            let mut deps: Vec<OpId> = other.after(k).iter().map(|d| d + base).collect();
            let action = match other.action(k) {
                Action::Send { to, span } => Action::Send { to: rename(to), span },
                Action::Recv { from, span } => Action::Recv { from: rename(from), span },
                delay => delay,
            };
            let lane = other.lane(k);
            if other.lanes.get(usize::from(lane)).is_some_and(|&(first, _)| first as usize == k) {
                deps.extend(after);
            }
            self.in_lane(lane);
            self.in_flight = other.ops[k].in_flight;
            self.push(action, &deps);
        }
    }
}

/// What each lane of a program does next. All that run programs walk them with this.
#[derive(Debug, Clone, Default)]
pub struct Cursors {
    next: Vec<OpId>,
}

impl Cursors {
    /// At the beginning of a program.
    pub fn new(program: &Program) -> Cursors {
        let mut cursors = Cursors::default();
        cursors.restart(program);
        cursors
    }

    /// Goes to the beginning of a program.
    pub fn restart(&mut self, program: &Program) {
        self.next.clear();
        self.next.extend(program.lanes.iter().map(|l| l.0).filter(|&op| op != NONE));
    }

    /// The next send or delay of each lane that has one left, in no order.
    pub fn open(&self) -> impl Iterator<Item = usize> + '_ {
        self.next.iter().map(|&op| op as usize)
    }

    /// How many lanes have a send or delay left.
    pub fn lanes(&self) -> usize {
        self.next.len()
    }

    /// The next send or delay of one of these lanes.
    pub fn lane(&self, k: usize) -> usize {
        self.next[k] as usize
    }

    /// True if all sends and delays were started.
    pub fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    /// Goes on from a lane's next operation, which was started.
    pub fn advance(&mut self, program: &Program, op: usize) {
        if let Some(k) = self.next.iter().position(|&n| n as usize == op) {
            match program.ops[op].next {
                NONE => {
                    self.next.swap_remove(k);
                }
                next => self.next[k] = next,
            }
        }
    }
}

/// A program for each rank.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schedule {
    /// By rank.
    pub programs: Vec<Program>,
}

impl Schedule {
    /// Builds each rank's program.
    pub fn build(ranks: usize, program: impl Fn(Rank) -> Program) -> Schedule {
        Schedule { programs: (0..ranks).map(program).collect() }
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.programs.len()
    }

    /// The number of messages.
    pub fn messages(&self) -> usize {
        self.programs.iter().map(Program::messages).sum()
    }

    /// The number of operations.
    pub fn ops(&self) -> usize {
        self.programs.iter().map(Program::len).sum()
    }
}

/// When each operation of a rank started and was complete, on one clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Start times by operation.
    pub start: Vec<f64>,
    /// End times by operation.
    pub end: Vec<f64>,
}

impl Trace {
    /// A trace for so many operations, all at time 0.
    pub fn new(ops: usize) -> Trace {
        Trace { start: vec![0.0; ops], end: vec![0.0; ops] }
    }

    /// The time when the last operation was complete; 0 if there is none.
    pub fn finish(&self) -> f64 {
        self.end.iter().copied().fold(0.0, f64::max)
    }
}

/// Cuts `bytes` into segments of at most `segment` bytes, the last one short; `segment` 0 means one segment. There is always
/// at least one, so that an empty message is still a message.
pub fn segments(bytes: usize, segment: usize) -> impl Iterator<Item = Span> + Clone {
    let size = if segment == 0 { bytes.max(1) } else { segment };
    (0..pieces(bytes, size)).map(move |k| Span::data(k * size, size.min(bytes - (k * size).min(bytes))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_cover_the_message_once() {
        for (bytes, segment, want) in [(0, 0, 1), (0, 4, 1), (10, 0, 1), (10, 4, 3), (8, 4, 2), (1, 4, 1)] {
            let spans: Vec<Span> = segments(bytes, segment).collect();
            assert_eq!(spans.len(), want, "{bytes} by {segment}");
            let mut next = 0;
            for span in &spans {
                assert_eq!(span.offset, next);
                next += span.len;
            }
            assert_eq!(next, bytes);
        }
    }

    #[test]
    fn appended_operations_keep_their_order() {
        let mut local = Program::new();
        let got = local.recv(0, Span::data(0, 1), &[]);
        local.send(1, Span::data(0, 1), &[got]);
        local.send(2, Span::data(0, 1), &[]);
        let mut all = Program::new();
        let first = all.recv(9, Span::data(0, 1), &[]);
        all.append(&local, |r| r + 10, &[first]);
        assert_eq!(all.action(1), Action::Recv { from: 10, span: Span::data(0, 1) });
        // the first send waits for both, and the second one starts after it
        assert_eq!((all.after(1), all.after(2), all.after(3)), (&[][..], &[1, 0][..], &[][..]));
    }
}
