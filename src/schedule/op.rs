//! An operation, kept in few bytes.

use super::program::NONE;
use super::{Buffer, OpId, Span};

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

/// An operation in 16 bytes, but for where its span begins: predictions hold millions.
#[derive(Debug, Clone, Copy, PartialEq, Hash)]
pub(super) struct Op {
    /// How many bytes are sent, received into or written; where [`WIDE`] is set, where in `Body::words` their first one and their number are.
    len: u32,
    /// The operation that it comes after, [`NONE`], or, from [`SEVERAL`] on, where in `Body::words` those are that it comes after.
    pub after: u32,
    /// The next operation of the same lane that is no receive, the next receive of the same stream; [`NONE`] at its end.
    pub next: OpId,
    /// Kind, buffer and [`WIDE`] in the upper bits; below, its place in `Body::sends` or `Body::receives`, or where in `Body::words` its lane is, with what
    /// else there is to say of a copy, a combining or a delay.
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
    /// An operation on a span, and where that begins. What has no room in it is added to the words of its program.
    pub fn new(kind: Kind, place: u32, span: Span, after: u32, words: &mut Vec<u32>) -> (Op, u32) {
        let narrow = |bytes: usize| u32::try_from(bytes);
        let (offset, len, wide) = match (narrow(span.offset), narrow(span.len)) {
            (Ok(offset), Ok(len)) => (offset, len, 0),
            _ => {
                let at = words.len() as u32;
                words.extend([in_words(span.offset as u64), in_words(span.len as u64)].concat());
                (0, at, WIDE)
            }
        };
        (Op { len, after, next: NONE, place: (kind as u32) << KIND | (span.buffer as u32) << BUFFER | wide | place }, offset)
    }

    /// A delay.
    pub fn delay(place: u32, after: u32) -> Op {
        Op { len: 0, after, next: NONE, place: (Kind::Delay as u32) << KIND | place }
    }

    #[inline]
    pub fn place(&self) -> u32 {
        self.place & (WIDE - 1)
    }

    #[inline]
    pub fn kind(&self) -> Kind {
        KINDS[(self.place >> KIND) as usize]
    }

    /// Bytes that are sent, received into or written.
    #[inline]
    pub fn bytes(&self, words: &[u32]) -> usize {
        if self.place & WIDE == 0 { self.len as usize } else { of_words(&words[self.len as usize + 2..]) as usize }
    }

    /// What is sent, received into or written, which begins there.
    #[inline]
    pub fn span(&self, words: &[u32], offset: u32) -> Span {
        let offset = if self.place & WIDE == 0 { offset as usize } else { of_words(&words[self.len as usize..]) as usize };
        Span { buffer: buffer(self.place >> BUFFER), offset, len: self.bytes(words) }
    }

    #[inline]
    pub fn sends(&self) -> bool {
        self.kind() == Kind::Send
    }
}
