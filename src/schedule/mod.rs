//! A schedule is data: for each rank a [`Program`], a list of operations with the operations each comes after.
//!
//! One program feeds everything: execution over threads or MPI, prediction under any model, simulation, the validity check, the
//! GOAL export and the picture.
//!
//! Rules of execution, the same for the executor, the replay, the simulator and the check:
//! - an operation starts when all operations it comes after are complete: a send when its span may be used again, a receive when its message
//!   is there, a copy, a combining or a delay when it is over; what was not started is not complete;
//! - every operation is in a lane, lane 0 unless said otherwise; all operations of a rank but receives start in the order of their lane, one at
//!   a time, and a copy, a combining or a delay is over before anything else of its rank starts; of several lanes that may go on, the one
//!   whose turn came first in the program goes first;
//! - the messages of a sender to a receiver in one lane are a stream: the k-th send matches the k-th receive; receives are posted in the
//!   order of their stream, as soon as what they come after is complete, and wait for no lane; a message that comes before its receive is
//!   posted is taken in when that is;
//! - of each stream at most `in_flight` messages are under way, as many as [`Program::in_flight`] says, or [`WINDOW`] where it says nothing: a
//!   receive is posted when the one so many places before it in its stream is complete, with all before that, and a send starts when the one
//!   so many places before it is.
//!
//! A message that a transport sends with a handshake (a large one over MPI, any message under SMPI) moves when both its ends have started: the
//! k-th message of a stream when the one `in_flight` places before it was received. A small one leaves at once and waits in the
//! receiver's memory for its receive to be posted; that it may leave early hastens nothing, since receives are posted in order. Where a program says nothing,
//! so many of them are under way as [`in_flight_unsaid`] says: more a receiver does not keep.
//! Simulator, executor and check start sends and receives by these rules. The replay, whose models know of no handshakes, lets a message leave when
//! the one `in_flight` places before it was received, or [`in_flight_unsaid`] places where a program says nothing.
//!
//! Where execution takes time (replay and simulator), a rank's processor does one thing at a time: it starts a send, copies, combines, delays,
//! or takes in a message. It does not idle while anything may start. Messages that wait for it are taken in as they came; where a message waits and a send
//! may start, they take turns: after a message a send goes next, after a send a message. So neither starves however much there is of the other,
//! and a relay whose overheads exceed the gap passes on a segment for each that it takes in.
//!
//! Lanes let a rank pass on what comes from one sender while it waits for another.

mod alike;
mod body;
mod bounded;
mod building;
#[cfg(feature = "tune")]
mod check;
mod cursors;
mod dot;
mod eager;
mod goal;
mod matching;
#[cfg(feature = "tune")]
mod memory;
mod op;
mod pending;
mod program;
mod repeated;
mod skewed;
mod specification;
mod stream;
#[cfg(feature = "tune")]
mod symbolic;

use crate::topology::Rank;
use serde::{Deserialize, Serialize};

pub use alike::alike;
pub use bounded::{MOST_MESSAGES, MOST_SEGMENTS, pieces};
#[cfg(feature = "tune")]
pub use check::{check, completes};
pub use cursors::Cursors;
pub use dot::dot;
pub use goal::goal;
pub use matching::{Matching, Streams, matching};
pub use pending::{Next, Pending};
pub(crate) use program::NONE;
pub use program::Program;
pub use specification::{Elements, Fold, Layout, Piece, Specification};

/// Where an operation's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Buffer {
    /// What the caller gives: read only.
    Input,
    /// What the caller gets, and where one buffer is both (a broadcast's message, `MPI_IN_PLACE`) what it gives.
    Output,
    /// Bytes that are the collective's own while it runs.
    Scratch,
    /// Bytes whose value nobody reads: handshakes and acknowledgements.
    Control,
}

impl Buffer {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Buffer::Input => "input",
            Buffer::Output => "output",
            Buffer::Scratch => "scratch",
            Buffer::Control => "control messages",
        }
    }
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
    /// A span of what the caller gives.
    pub fn input(offset: usize, len: usize) -> Span {
        Span { buffer: Buffer::Input, offset, len }
    }

    /// A span of what the caller gets.
    pub fn output(offset: usize, len: usize) -> Span {
        Span { buffer: Buffer::Output, offset, len }
    }

    /// A span of the collective's own memory.
    pub fn scratch(offset: usize, len: usize) -> Span {
        Span { buffer: Buffer::Scratch, offset, len }
    }

    /// The bytes at its place in another span.
    pub fn within(self, whole: Span) -> Span {
        Span { buffer: whole.buffer, offset: whole.offset + self.offset, len: self.len }
    }

    /// The byte after its last one; one that ends where no memory can is beyond every buffer.
    pub fn end(&self) -> usize {
        self.offset.saturating_add(self.len)
    }

    /// True if a byte lies in both.
    pub fn overlaps(&self, other: &Span) -> bool {
        self.buffer == other.buffer && self.offset < other.end() && other.offset < self.end() && self.len.min(other.len) > 0
    }

    /// A control message, of at most [`CONTROL_BYTES`].
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
    /// Copy a span to another one as long, which it does not overlap.
    Copy {
        /// What is read.
        from: Span,
        /// Where it goes.
        into: Span,
    },
    /// `into := left op into`, element by element, as `MPI_Reduce_local` does it: with an operation that does not commute, `left` is of lower
    /// ranks.
    Combine {
        /// What is read.
        left: Span,
        /// The other operand, and the result.
        into: Span,
    },
    /// Keep the processor busy for some seconds.
    Delay {
        /// How long.
        seconds: f64,
    },
}

impl Action {
    /// What it reads and what it writes.
    pub fn uses(self) -> (Option<Span>, Option<Span>) {
        match self {
            Action::Send { span, .. } => (Some(span), None),
            Action::Recv { span, .. } => (None, Some(span)),
            Action::Copy { from, into } => (Some(from), Some(into)),
            Action::Combine { left, into } => (Some(left), Some(into)),
            Action::Delay { .. } => (None, None),
        }
    }
}

/// The position of an operation in its program.
pub type OpId = u32;

/// An ordered stream of operations.
pub type Lane = u16;

/// How many messages of a stream are under way where nothing else is said, and at most: enough that a pipeline's next segments find their
/// buffers posted, few enough that matching stays short. Those beyond would find no buffer, and be kept, copied and searched by the MPI
/// library (1 GiB in segments of 8 KiB took 42 times as long as in one piece).
pub const WINDOW: usize = 64;

/// Bytes that a stream may send before its receiver must have begun to receive what follows them. Small messages leave at once and wait in the
/// receiver's memory, however many there are: it keeps no more than these and what may be under way.
pub const UNANSWERED: usize = 4 << 20;

/// How many messages of so many bytes are under way in a stream where a program says nothing: [`WINDOW`], and of small ones, which leave before their
/// receives are posted, as many as make up [`UNANSWERED`].
pub fn in_flight_unsaid(bytes: usize) -> usize {
    (UNANSWERED / bytes.max(1)).max(WINDOW)
}

/// Bytes of a control message at most: whoever carries out a program keeps so many for each of its operations.
pub const CONTROL_BYTES: usize = 1;

/// A program for each rank.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schedule {
    /// By rank.
    pub programs: Vec<Program>,
}

impl Schedule {
    /// Builds each rank's program.
    pub fn build(ranks: usize, program: impl Fn(Rank) -> Program) -> Schedule {
        let mut programs = body::Sharing::with_room(ranks);
        (0..ranks).for_each(|rank| programs.push(program(rank)));
        Schedule { programs: programs.programs }
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
#[derive(Debug, Clone, Default, PartialEq)]
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
    (0..pieces(bytes, size)).map(move |k| Span::output(k * size, size.min(bytes - (k * size).min(bytes))))
}

/// Segments grow step by step where they are more than so many, and than so many times the steps: the messages that this takes more, half of the steps,
/// are few beside all, and what is looked at of a pipeline to predict it is in segments that are alike, as nearly all of it is.
const MANY: (usize, usize) = (32, 8);
/// What begins as a whole cache line stays one where segments grow.
const LINE: usize = 64;

/// As [`segments`], of which at most `in_flight` are under way at once: of many the first ones grow in so many steps. Were they alike, those that begin
/// together would end together wherever messages share a port fairly, and so would all that follow: nothing would come in while the next
/// ones' first bytes are on their way.
pub fn growing_segments(bytes: usize, segment: usize, in_flight: usize) -> impl Iterator<Item = Span> + Clone {
    let steps = in_flight.min(WINDOW);
    let steps = if pieces(bytes, segment) > MANY.0.max(MANY.1 * steps) { steps } else { 0 };
    let length = move |k: usize| (segment * k / steps).max(1).next_multiple_of(LINE).min(segment);
    let grown: usize = (1..steps).map(length).sum();
    let growing = (1..steps).scan(0, move |end, k| {
        *end += length(k);
        Some(Span::output(*end - length(k), length(k)))
    });
    growing.chain(segments(bytes - grown, segment).map(move |s| Span::output(grown + s.offset, s.len)))
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
    fn the_first_of_many_segments_grow_to_a_whole_one() {
        let lengths = |bytes, segment, in_flight| growing_segments(bytes, segment, in_flight).map(|s| s.len).collect::<Vec<_>>();
        assert_eq!(lengths(8448, 256, 2), [&[128][..], &[256; 32], &[128]].concat());
        assert_eq!(lengths(9000, 256, 4), [&[64, 128, 192][..], &[256; 33], &[168]].concat());
        assert_eq!(lengths(10_200, 300, 3), [&[128, 256][..], &[300; 32], &[216]].concat());
        for in_flight in [0, 1, 2, 4, 5, WINDOW] {
            let many = if in_flight == 5 { 40 } else { 32 };
            assert!(growing_segments(many * 256, 256, in_flight).eq(segments(many * 256, 256)), "{in_flight} at once");
            for (bytes, segment) in [(0, 0), (1000, 0), (0, 4), (100, 1), (1 << 16, 512), (100_000, 777)] {
                let end = growing_segments(bytes, segment, in_flight).fold(0, |end, span| {
                    assert_eq!(span.offset, end, "{bytes} in {segment}, {in_flight} at once");
                    span.end()
                });
                assert_eq!(end, bytes);
            }
        }
    }

    #[test]
    fn appended_operations_keep_their_order() {
        let mut local = Program::new();
        let got = local.recv(0, Span::output(0, 1), &[]);
        local.send(1, Span::output(0, 1), &[got]);
        local.send(2, Span::output(0, 1), &[]);
        let mut all = Program::new();
        let first = all.recv(9, Span::output(0, 1), &[]);
        all.append(&local, |r| r + 10, &[first]);
        assert_eq!(all.action(1), Action::Recv { from: 10, span: Span::output(0, 1) });
        // the receive waits, the first send for both, and the second one starts after it
        assert_eq!((all.after(1), all.after(2), all.after(3)), (&[0][..], &[1, 0][..], &[][..]));
    }
}
