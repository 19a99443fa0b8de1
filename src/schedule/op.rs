//! An operation, kept in few bytes.

use super::program::NONE;
use super::{Buffer, OpId, Span};
use std::sync::Arc;

/// What an operation is, without its place and its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Send,
    Recv,
    Copy,
    Combine,
    Delay,
}

const KINDS: [Kind; 5] = [Kind::Send, Kind::Recv, Kind::Copy, Kind::Combine, Kind::Delay];
const BUFFERS: [Buffer; 4] = [Buffer::Input, Buffer::Output, Buffer::Scratch, Buffer::Control];

/// An operation in 28 bytes: predictions hold millions.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, packed(4))]
pub(super) struct Op {
    /// First byte of the span that is sent, received into or written; of a delay, the bits of its seconds.
    pub offset: u64,
    /// Bytes of the span.
    pub len: u64,
    /// The operation that it comes after, [`NONE`], or, from [`SEVERAL`] on, where in `Program::after` those are that it comes after.
    pub after: u32,
    /// The next operation of the same lane that is no receive, the next receive of the same stream; [`NONE`] at its end.
    pub next: OpId,
    /// Kind and buffer in the upper bits; below, its stream in `Program::streams`, its place in `Program::reads`, or the lane of a delay.
    stream: u32,
}

/// A program has fewer operations.
pub(super) const SEVERAL: u32 = 1 << 31;
/// Where an operation's kind begins, and its buffer.
const KIND: u32 = 29;
const BUFFER: u32 = 27;

impl Op {
    pub fn new(kind: Kind, stream: u32, span: Span, after: u32) -> Op {
        let (offset, len) = (span.offset as u64, span.len as u64);
        Op { offset, len, after, next: NONE, stream: (kind as u32) << KIND | (span.buffer as u32) << BUFFER | stream }
    }

    #[inline]
    pub fn stream(&self) -> u32 {
        self.stream & ((1 << BUFFER) - 1)
    }

    #[inline]
    pub fn kind(&self) -> Kind {
        KINDS[(self.stream >> KIND) as usize]
    }

    /// What is sent, received into or written.
    #[inline]
    pub fn span(&self) -> Span {
        let buffer = BUFFERS[(self.stream >> BUFFER) as usize % BUFFERS.len()];
        Span { buffer, offset: self.offset as usize, len: self.len as usize }
    }

    #[inline]
    pub fn sends(&self) -> bool {
        self.kind() == Kind::Send
    }

    /// True if it is one end of a message.
    #[inline]
    pub fn is_message(&self) -> bool {
        matches!(self.kind(), Kind::Send | Kind::Recv)
    }
}

/// The operations of a program: its own while it is built, then maybe those of another one that does the same with other peers.
#[derive(Debug, Clone)]
pub(super) enum Ops {
    Own(Vec<Op>),
    Shared(Arc<[Op]>),
}

impl Default for Ops {
    fn default() -> Ops {
        Ops::Own(Vec::new())
    }
}

impl std::ops::Deref for Ops {
    type Target = [Op];

    #[inline]
    fn deref(&self) -> &[Op] {
        match self {
            Ops::Own(ops) => ops,
            Ops::Shared(ops) => ops,
        }
    }
}

impl PartialEq for Ops {
    fn eq(&self, other: &Ops) -> bool {
        **self == **other
    }
}

impl Ops {
    /// To add to.
    #[inline]
    pub fn own(&mut self) -> &mut Vec<Op> {
        if let Ops::Shared(shared) = self {
            *self = Ops::Own(shared.to_vec());
        }
        match self {
            Ops::Own(ops) => ops,
            Ops::Shared(_) => unreachable!("they are its own by now"),
        }
    }

    /// The same operations, which both have from here on.
    pub fn shared(&mut self) -> Ops {
        if let Ops::Own(own) = self {
            *self = Ops::Shared(Arc::from(std::mem::take(own)));
        }
        self.clone()
    }
}
