//! A message in blocks, one for each of some ranks.

use crate::schedule::Span;

/// A message cut into blocks; the last ones may be short or empty.
pub struct Blocks {
    bytes: usize,
    block: usize,
    pub count: usize,
}

impl Blocks {
    /// Cuts `bytes` into `count` blocks.
    pub fn new(bytes: usize, count: usize) -> Blocks {
        Blocks::of_elements(bytes, count, 1)
    }

    /// The same in whole elements of so many bytes.
    pub fn of_elements(bytes: usize, count: usize, element: usize) -> Blocks {
        Blocks { bytes, block: bytes.div_ceil(count).next_multiple_of(element), count }
    }

    /// The span of the blocks `first..end`.
    pub fn span(&self, first: usize, end: usize) -> Span {
        let at = |k: usize| (k.min(self.count) * self.block).min(self.bytes);
        Span::output(at(first), at(end) - at(first))
    }

    /// The span of one block.
    pub fn one(&self, k: usize) -> Span {
        self.span(k, k + 1)
    }
}
