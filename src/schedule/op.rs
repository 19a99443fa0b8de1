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

/// An operation in 20 bytes: predictions hold millions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Op {
    /// First byte of the span that is sent, received into or written, and how many there are: two words where [`WIDE`] is not set, else where in
    /// `Program::words` they are; of a delay the bits of its seconds.
    offset: u32,
    len: u32,
    /// The operation that it comes after, [`NONE`], or, from [`SEVERAL`] on, where in `Program::words` those are that it comes after.
    pub after: u32,
    /// The next operation of the same lane that is no receive, the next receive of the same stream; [`NONE`] at its end.
    pub next: OpId,
    /// Kind, buffer and [`WIDE`] in the upper bits; below, its place in `Program::sends` or `Program::receives`, where in `Program::words` that is which
    /// it reads, or the lane of a delay.
    place: u32,
}

/// A program has fewer operations.
pub(super) const SEVERAL: u32 = 1 << 31;
/// Set beside [`SEVERAL`] where they are two: their number is not kept.
pub(super) const TWO: u32 = 1 << 30;
/// Where an operation's kind begins, and its buffer.
const KIND: u32 = 29;
const BUFFER: u32 = 27;
/// Set where a span begins beyond 4 GiB, or is longer.
const WIDE: u32 = 1 << 26;
/// Places in a list that an operation can name.
pub(super) const PLACES: usize = WIDE as usize;

/// A number in two words.
pub(super) fn in_words(number: u64) -> [u32; 2] {
    [(number >> 32) as u32, number as u32]
}

/// The number in two words.
#[inline]
pub(super) fn of_words(words: &[u32]) -> u64 {
    u64::from(words[0]) << 32 | u64::from(words[1])
}

/// A buffer by its number.
pub(super) fn buffer(number: u32) -> Buffer {
    BUFFERS[number as usize % BUFFERS.len()]
}

impl Op {
    /// An operation on a span. What has no room in it is added to the words of its program.
    pub fn new(kind: Kind, place: u32, span: Span, after: u32, words: &mut Vec<u32>) -> Op {
        let narrow = |bytes: usize| u32::try_from(bytes);
        let (offset, len, wide) = match (narrow(span.offset), narrow(span.len)) {
            (Ok(offset), Ok(len)) => (offset, len, 0),
            _ => {
                let at = words.len() as u32;
                words.extend([in_words(span.offset as u64), in_words(span.len as u64)].concat());
                (at, 0, WIDE)
            }
        };
        Op { offset, len, after, next: NONE, place: (kind as u32) << KIND | (span.buffer as u32) << BUFFER | wide | place }
    }

    /// A delay.
    pub fn delay(lane: u32, seconds: f64, after: u32) -> Op {
        let [offset, len] = in_words(seconds.to_bits());
        Op { offset, len, after, next: NONE, place: (Kind::Delay as u32) << KIND | lane }
    }

    #[inline]
    pub fn place(&self) -> u32 {
        self.place & (WIDE - 1)
    }

    #[inline]
    pub fn kind(&self) -> Kind {
        KINDS[(self.place >> KIND) as usize]
    }

    /// What is sent, received into or written.
    #[inline]
    pub fn span(&self, words: &[u32]) -> Span {
        let buffer = buffer(self.place >> BUFFER);
        if self.place & WIDE == 0 {
            Span { buffer, offset: self.offset as usize, len: self.len as usize }
        } else {
            let at = &words[self.offset as usize..];
            Span { buffer, offset: of_words(at) as usize, len: of_words(&at[2..]) as usize }
        }
    }

    /// Of a delay: how long it is.
    pub fn seconds(&self) -> f64 {
        f64::from_bits(of_words(&[self.offset, self.len]))
    }

    #[inline]
    pub fn sends(&self) -> bool {
        self.kind() == Kind::Send
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
