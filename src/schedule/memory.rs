//! The buffers of a rank in a symbolic run: whose bytes lie where.

use super::specification::Piece;
use super::{Buffer, Span};
use std::collections::BTreeMap;

/// Pieces by their places; they do not overlap.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    pieces: BTreeMap<(Buffer, usize), Piece>,
}

impl Memory {
    pub fn new(pieces: &[Piece]) -> Memory {
        let mut memory = Memory::default();
        pieces.iter().for_each(|p| memory.write(p.clone()));
        memory
    }

    /// The pieces of which a byte lies in a span, in order.
    fn within(&self, buffer: Buffer, at: usize, end: usize) -> impl Iterator<Item = &Piece> {
        let before = self.pieces.range((buffer, 0)..(buffer, at)).next_back().map(|(_, p)| p).filter(move |p| p.end() > at);
        before.into_iter().chain(self.pieces.range((buffer, at)..(buffer, end)).map(|(_, p)| p))
    }

    /// Puts a piece in the place of what lies there.
    pub fn write(&mut self, piece: Piece) {
        if piece.len == 0 {
            return;
        }
        let buffer = piece.buffer;
        let covered: Vec<Piece> = self.within(buffer, piece.at, piece.end()).cloned().collect();
        for old in covered {
            self.pieces.remove(&(buffer, old.at));
            if old.at < piece.at {
                self.pieces.insert((buffer, old.at), old.part(old.at, piece.at));
            }
            if old.end() > piece.end() {
                self.pieces.insert((buffer, piece.end()), old.part(piece.end(), old.end()));
            }
        }
        self.pieces.insert((buffer, piece.at), piece);
    }

    /// What lies in a span, in as few pieces as possible; or the first byte in which nothing lies.
    pub fn read(&self, span: Span) -> Result<Vec<Piece>, usize> {
        let (mut found, mut next): (Vec<Piece>, usize) = (Vec::new(), span.offset);
        let end = span.end();
        for p in self.within(span.buffer, span.offset, end) {
            if p.at > next {
                return Err(next);
            }
            let p = p.part(p.at.max(span.offset), p.end().min(end));
            next = p.end();
            match found.last_mut() {
                Some(last) if last.of == p.of && last.from + last.len == p.from => last.len += p.len,
                _ => found.push(p),
            }
        }
        if next < end { Err(next) } else { Ok(found) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The same as a list of bytes that each say whose they are.
        #[test]
        fn pieces_are_bytes(writes in prop::collection::vec((0usize..40, 0usize..20, 0usize..3, 0usize..50), 0..20), at in 0usize..60, len in 0usize..30) {
            let (mut memory, mut bytes) = (Memory::default(), vec![None; 100]);
            for (at, len, of, from) in writes {
                memory.write(Piece::output(at, len, of, from));
                (0..len).for_each(|k| bytes[at + k] = Some((of, from + k)));
            }
            match memory.read(Span::output(at, len)) {
                Err(hole) => prop_assert!(bytes[hole].is_none() && bytes[at..hole].iter().all(Option::is_some)),
                Ok(pieces) => {
                    let read: Vec<_> = pieces.iter().flat_map(|p| (0..p.len).map(|k| p.of.ranks().next().map(|of| (of, p.from + k)))).collect();
                    prop_assert_eq!(&read[..], &bytes[at..at + len]);
                }
            }
        }
    }
}
