//! A schedule is data: for each rank a [`Program`], a list of operations with the operations each comes after.
//!
//! One program feeds everything: execution over threads or MPI, prediction under any model, simulation, the validity check, the
//! GOAL export and the picture.
//!
//! Rules of execution, the same everywhere:
//! - sends and delays of a rank start in program order, each when the operations it comes after are complete;
//! - receives are posted in program order, at once if they come after nothing, and complete when their message is there;
//! - the k-th send from a to b matches the k-th receive at b from a, so that operations need no tags.

mod check;
mod goal;

use crate::topology::Rank;
use serde::{Deserialize, Serialize};

pub use check::{Matching, check, matching};
pub use goal::goal;

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

#[derive(Debug, Clone, Copy, PartialEq)]
struct Op {
    action: Action,
    /// Range in `Program::after`.
    after: (u32, u32),
}

/// What one rank does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Program {
    ops: Vec<Op>,
    after: Vec<OpId>,
}

impl Program {
    /// An empty program.
    pub fn new() -> Program {
        Program::default()
    }

    /// Adds an operation that comes after others of the same rank.
    pub fn push(&mut self, action: Action, after: &[OpId]) -> OpId {
        let start = self.after.len() as u32;
        self.after.extend_from_slice(after);
        self.ops.push(Op { action, after: (start, self.after.len() as u32) });
        self.ops.len() as OpId - 1
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

    /// What an operation does.
    pub fn action(&self, op: usize) -> Action {
        self.ops[op].action
    }

    /// The operations that one comes after.
    pub fn after(&self, op: usize) -> &[OpId] {
        let (start, end) = self.ops[op].after;
        &self.after[start as usize..end as usize]
    }

    /// The actions in order.
    pub fn actions(&self) -> impl Iterator<Item = Action> + '_ {
        self.ops.iter().map(|op| op.action)
    }

    /// The same program with other names for the ranks.
    pub fn renamed(mut self, rename: impl Fn(Rank) -> Rank) -> Program {
        for op in &mut self.ops {
            match &mut op.action {
                Action::Send { to: other, .. } | Action::Recv { from: other, .. } => *other = rename(*other),
                Action::Delay { .. } => {}
            }
        }
        self
    }

    /// Appends another program whose ranks are renamed by `rename`; its operations that come after nothing come after `after`.
    pub fn append(&mut self, other: &Program, rename: impl Fn(Rank) -> Rank, after: &[OpId]) {
        let base = self.ops.len() as OpId;
        for k in 0..other.len() {
            let deps: Vec<OpId> = other.after(k).iter().map(|d| d + base).collect();
            let action = match other.action(k) {
                Action::Send { to, span } => Action::Send { to: rename(to), span },
                Action::Recv { from, span } => Action::Recv { from: rename(from), span },
                delay => delay,
            };
            // receives bring their bytes whenever they come: only what acts must wait
            let free = deps.is_empty() && !matches!(action, Action::Recv { .. });
            self.push(action, if free { after } else { &deps });
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
        self.programs.iter().flat_map(Program::actions).filter(|a| matches!(a, Action::Send { .. })).count()
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
    (0..bytes.div_ceil(size).max(1)).map(move |k| Span::data(k * size, size.min(bytes - (k * size).min(bytes))))
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
        assert_eq!((all.after(1), all.after(2), all.after(3)), (&[][..], &[1][..], &[0][..]));
    }
}
