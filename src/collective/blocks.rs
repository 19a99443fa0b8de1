//! Data in blocks, one for each of some ranks. All builders ask here where a block lies.

use super::Shape;
use crate::schedule::Span;
use std::ops::Range;

/// Where blocks lie in what they make up. Their spans are of the output; [`Span::within`] moves them elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct Blocks {
    bytes: usize,
    block: usize,
    count: usize,
}

impl Blocks {
    /// Cuts the shape's message into `count` blocks of whole elements; the last ones may be short or empty.
    pub fn cut(shape: &Shape, count: usize) -> Blocks {
        let element = shape.elements.bytes;
        Blocks { bytes: shape.bytes, block: shape.bytes.div_ceil(count).next_multiple_of(element), count }
    }

    /// Each rank's block, rank by rank.
    pub fn by_rank(shape: &Shape) -> Blocks {
        Blocks { bytes: shape.ranks * shape.bytes, block: shape.bytes, count: shape.ranks }
    }

    /// Each rank's block, position by position from the root on.
    pub fn by_position(shape: &Shape) -> Blocks {
        Blocks::by_rank(shape)
    }

    /// The number of blocks.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The span of some blocks that follow each other.
    pub fn span(&self, blocks: Range<usize>) -> Span {
        let at = |k: usize| (k.min(self.count) * self.block).min(self.bytes);
        Span::output(at(blocks.start), at(blocks.end) - at(blocks.start))
    }

    /// The span of one block.
    pub fn one(&self, k: usize) -> Span {
        self.span(k..k + 1)
    }

    /// The blocks that are not empty in the order in which they pass one of their ranks on a ring: its own, that of the rank before it, and so on around, with how
    /// many steps each is from its own. Of a message that is shorter than the ring these are few.
    pub fn around(&self, from: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (count, filled) = (self.count, if self.block == 0 { 0 } else { self.bytes.div_ceil(self.block) });
        let blocks = (0..filled.min(from + 1)).rev().chain((from + 1..filled).rev());
        blocks.map(move |block| ((from + count - block) % count, block))
    }

    /// The span of all.
    pub fn all(&self) -> Span {
        self.span(0..self.count)
    }
}

/// Positions from the root on as ranks: one run, or two where they pass the last rank.
pub fn runs(shape: &Shape, positions: Range<usize>) -> Vec<Range<usize>> {
    let (first, len) = (shape.absolute(positions.start), positions.len());
    let before_the_end = len.min(shape.ranks - first);
    [first..first + before_the_end, 0..len - before_the_end].into_iter().filter(|run| !run.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Elements;

    #[test]
    fn blocks_cover_a_message_in_whole_elements() {
        for (bytes, count, element) in [(0, 3, 8), (8, 3, 8), (80, 7, 8), (17, 4, 1), (24, 2, 12), (24, 5, 12)] {
            let shape = Shape { elements: Elements { bytes: element, commute: true }, ..Shape::new(2, 0, bytes) };
            let blocks = Blocks::cut(&shape, count);
            let spans: Vec<Span> = (0..count).map(|k| blocks.one(k)).collect();
            assert!(spans.iter().all(|s| s.offset % element == 0 && s.len % element == 0), "{bytes} {count}");
            assert_eq!(spans.iter().map(|s| s.len).sum::<usize>(), bytes);
            assert!(spans.windows(2).all(|w| w[0].end() == w[1].offset && w[0].len >= w[1].len));
            assert_eq!(blocks.all(), Span::output(0, bytes));
            for from in 0..count {
                let all = (0..count).map(|step| (step, (from + count - step) % count));
                assert!(blocks.around(from).eq(all.filter(|&(_, block)| spans[block].len > 0)), "{bytes} {count} {from}");
            }
        }
    }

    #[test]
    fn positions_are_one_run_of_ranks_or_two() {
        let shape = Shape::new(8, 5, 1);
        let of = |positions| {
            let runs = runs(&shape, positions);
            (runs.len(), runs.into_iter().flatten().collect::<Vec<usize>>())
        };
        assert_eq!(of(0..3), (1, vec![5, 6, 7]));
        assert_eq!(of(2..4), (2, vec![7, 0]));
        assert_eq!(of(3..8), (1, vec![0, 1, 2, 3, 4]));
        assert_eq!(of(1..8), (2, vec![6, 7, 0, 1, 2, 3, 4]));
        assert_eq!(of(8..8), (0, vec![]));
    }
}
