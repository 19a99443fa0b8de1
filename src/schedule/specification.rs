//! What a schedule is for.

use super::Buffer;
use crate::topology::Rank;
use std::ops::Range;

/// Whose values bytes are: one rank's own, or those of several ranks combined, each of them once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fold(Vec<Range<Rank>>);

impl Fold {
    /// The values of the ranks below `ranks`, combined.
    pub fn of_all(ranks: usize) -> Fold {
        Fold(std::iter::once(0..ranks).collect())
    }

    /// The ranks.
    pub fn ranks(&self) -> impl Iterator<Item = Rank> + '_ {
        self.0.iter().cloned().flatten()
    }

    /// `self op right`; `None` if a rank is in both, or if the operation does not commute and the ranks of `right` do not follow those of `self`.
    pub fn combined(&self, right: &Fold, commutes: bool) -> Option<Fold> {
        let mut all: Vec<Range<Rank>> = self.0.iter().chain(&right.0).cloned().collect();
        if commutes {
            all.sort_by_key(|r| r.start);
        }
        let mut merged: Vec<Range<Rank>> = Vec::new();
        for range in all {
            match merged.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                Some(last) if last.end > range.start || !commutes => return None,
                _ => merged.push(range),
            }
        }
        Some(Fold(merged))
    }
}

impl From<Rank> for Fold {
    fn from(rank: Rank) -> Fold {
        Fold(std::iter::once(rank..rank + 1).collect())
    }
}

/// Bytes of known values, at a place of some buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The buffer.
    pub buffer: Buffer,
    /// Their place in it.
    pub at: usize,
    /// How many.
    pub len: usize,
    /// Whose they are.
    pub of: Fold,
    /// The first one's place in those ranks' own data.
    pub from: usize,
}

impl Piece {
    /// Bytes of one rank's data from `from` on, in the output at `at`.
    pub fn output(at: usize, len: usize, of: impl Into<Fold>, from: usize) -> Piece {
        Piece { buffer: Buffer::Output, at, len, of: of.into(), from }
    }

    /// A rank's own data, the first `len` bytes of its input.
    pub fn input(len: usize, of: Rank) -> Piece {
        Piece { buffer: Buffer::Input, at: 0, len, of: of.into(), from: 0 }
    }

    /// Its bytes from `start` to `end`, which lie in it.
    #[cfg(feature = "tune")]
    pub(super) fn part(&self, start: usize, end: usize) -> Piece {
        Piece { at: start, len: end - start, from: self.from + start - self.at, ..self.clone() }
    }

    /// The place after its last byte.
    #[cfg(feature = "tune")]
    pub(super) fn end(&self) -> usize {
        self.at + self.len
    }
}

/// The sizes of a rank's buffers in bytes. Scratch is as large as its program wants ([`super::Program::scratch`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layout {
    /// What the caller gives.
    pub input: usize,
    /// What the caller gets.
    pub output: usize,
}

/// What is combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Elements {
    /// Bytes of one: what is combined begins and ends between two of them.
    pub bytes: usize,
    /// True if the operation commutes; else only values of ranks that follow each other may be combined.
    pub commute: bool,
}

impl Default for Elements {
    fn default() -> Elements {
        Elements { bytes: 1, commute: true }
    }
}

/// What a schedule is for: what lies in each rank's buffers before, and what must lie there at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Specification {
    /// By rank.
    pub layouts: Vec<Layout>,
    /// By rank.
    pub before: Vec<Vec<Piece>>,
    /// By rank.
    pub after: Vec<Vec<Piece>>,
    /// What is combined, if anything is.
    pub elements: Elements,
    /// True if no rank may end before it has heard, over others too, that every rank has begun.
    pub synchronises: bool,
}

impl Specification {
    /// Of so many ranks without any bytes.
    pub fn empty(ranks: usize) -> Specification {
        let nothing = vec![Vec::new(); ranks];
        Specification { layouts: vec![Layout::default(); ranks], before: nothing.clone(), after: nothing, ..Default::default() }
    }
}
