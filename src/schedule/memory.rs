//! A buffer in a symbolic run: whose bytes lie where.

use super::specification::Piece;
use std::collections::BTreeMap;

impl Piece {
    /// The part of it from `start` to `end`, which lie in it.
    fn part(self, start: usize, end: usize) -> Piece {
        Piece { at: start, len: end - start, of: self.of, from: self.from + start - self.at }
    }

    fn end(&self) -> usize {
        self.at + self.len
    }
}

/// Pieces by their places; they do not overlap.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    pieces: BTreeMap<usize, Piece>,
}

impl Memory {
    pub fn new(pieces: &[Piece]) -> Memory {
        let mut memory = Memory::default();
        pieces.iter().for_each(|&p| memory.write(p));
        memory
    }

    /// Puts a piece in the place of what lies there.
    pub fn write(&mut self, piece: Piece) {
        if piece.len == 0 {
            return;
        }
        let before = self.pieces.range(..piece.at).next_back().map(|(_, p)| *p).filter(|p| p.end() > piece.at);
        let inside: Vec<Piece> = self.pieces.range(piece.at..piece.end()).map(|(_, p)| *p).collect();
        for old in before.iter().chain(&inside) {
            self.pieces.remove(&old.at);
            if old.at < piece.at {
                self.pieces.insert(old.at, old.part(old.at, piece.at));
            }
            if old.end() > piece.end() {
                self.pieces.insert(piece.end(), old.part(piece.end(), old.end()));
            }
        }
        self.pieces.insert(piece.at, piece);
    }

    /// What lies in some bytes, in as few pieces as possible; or the first byte in which nothing lies.
    pub fn read(&self, at: usize, len: usize) -> Result<Vec<Piece>, usize> {
        let (mut found, mut next): (Vec<Piece>, usize) = (Vec::new(), at);
        let first = self.pieces.range(..at).next_back().map(|(_, p)| *p).filter(|p| p.end() > at);
        for p in first.into_iter().chain(self.pieces.range(at..at + len).map(|(_, p)| *p)) {
            if p.at > next {
                return Err(next);
            }
            let p = p.part(p.at.max(at), p.end().min(at + len));
            next = p.end();
            match found.last_mut() {
                Some(last) if last.of == p.of && last.from + last.len == p.from => last.len += p.len,
                _ => found.push(p),
            }
        }
        if next < at + len { Err(next) } else { Ok(found) }
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
                memory.write(Piece { at, len, of, from });
                (0..len).for_each(|k| bytes[at + k] = Some((of, from + k)));
            }
            match memory.read(at, len) {
                Err(hole) => prop_assert!(bytes[hole].is_none() && bytes[at..hole].iter().all(Option::is_some)),
                Ok(pieces) => {
                    let read: Vec<_> = pieces.iter().flat_map(|p| (0..p.len).map(|k| Some((p.of, p.from + k)))).collect();
                    prop_assert_eq!(&read[..], &bytes[at..at + len]);
                }
            }
        }
    }
}
