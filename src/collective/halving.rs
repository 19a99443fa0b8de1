//! Recursive halving: in each round partners exchange halves of what is left to each, and combine the half that they keep. Nearest partners come first,
//! so that the ranks of each value follow each other, and most bytes go the shortest way.

use super::blocks::Blocks;
use super::core::Core;
use super::data_flow::DataFlow;
use super::fold::Vector;
use crate::topology::Rank;
use std::ops::Range;

/// Combines the vectors of the positions of a core, a power of two, of which each keeps a block; says which one this rank's is.
pub fn halve(flow: &mut DataFlow, vector: &mut Vector, core: Core, me: Rank, blocks: &Blocks) -> Range<usize> {
    let (position, mut kept) = (core.position(me), 0..core.size);
    for round in 0..core.halvings() {
        let (middle, partner) = ((kept.start + kept.end) / 2, core.rank(position ^ 1 << round));
        let (low, high) = (kept.start..middle, middle..kept.end);
        let (keep, give) = if is_lower(position, round) { (low, high) } else { (high, low) };
        vector.send(flow, partner, blocks.span(give));
        vector.take_in(flow, partner, blocks.span(keep.clone()), me < partner);
        kept = keep;
    }
    kept
}

/// True if a position keeps the lower half in a round.
fn is_lower(position: usize, round: u32) -> bool {
    position >> round & 1 == 0
}

/// What was halved in a round.
pub struct Halves {
    /// Both halves.
    pub all: Range<usize>,
    /// The partner's.
    pub other: Range<usize>,
}

impl Halves {
    /// Around the half that a position kept in a round.
    pub fn around(kept: Range<usize>, position: usize, round: u32) -> Halves {
        let (start, end, len) = (kept.start, kept.end, kept.len());
        if is_lower(position, round) {
            Halves { all: start..end + len, other: end..end + len }
        } else {
            Halves { all: start - len..end, other: start - len..start }
        }
    }
}
