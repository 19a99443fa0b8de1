//! A number of positions that suits an algorithm, such as a power of two, among any number of ranks: each rank beyond it gives what it has to its
//! neighbour, and gets the result from it.
//!
//! ```text
//!   11 ranks, 8 positions:   (0 1) (2 3) (4 5) 6 7 8 9 10
//! ```

use crate::topology::Rank;
use std::ops::Range;

/// Positions of a rank or two neighbours each, in order.
#[derive(Debug, Clone, Copy)]
pub struct Core {
    /// Their number.
    pub size: usize,
    /// So many are of two ranks.
    pairs: usize,
    /// A rank that is the one of its pair that goes on; of others the lower one does.
    keeps: Rank,
}

impl Core {
    /// The largest power of two.
    pub fn power_of_two(ranks: usize, keeps: Rank) -> Core {
        Core::new(ranks, 1 << ranks.max(1).ilog2(), keeps)
    }

    /// So many positions, at least half the number of ranks.
    pub fn new(ranks: usize, size: usize, keeps: Rank) -> Core {
        Core { size, pairs: ranks - size, keeps }
    }

    /// How often the number of positions can be halved.
    pub fn halvings(&self) -> u32 {
        self.size.ilog2()
    }

    /// The ranks of some positions.
    pub fn ranks(&self, positions: Range<usize>) -> Range<Rank> {
        let begin = |position: usize| position + position.min(self.pairs);
        begin(positions.start)..begin(positions.end)
    }

    /// The rank of a position that goes on.
    pub fn rank(&self, position: usize) -> Rank {
        let ranks = self.ranks(position..position + 1);
        if ranks.contains(&self.keeps) { self.keeps } else { ranks.start }
    }

    /// A rank's position.
    pub fn position(&self, rank: Rank) -> usize {
        if rank < 2 * self.pairs { rank / 2 } else { rank - self.pairs }
    }

    /// The other rank of a rank's position.
    pub fn other(&self, rank: Rank) -> Option<Rank> {
        (rank < 2 * self.pairs).then_some(rank ^ 1)
    }

    /// True if a rank goes on.
    pub fn goes_on(&self, rank: Rank) -> bool {
        self.rank(self.position(rank)) == rank
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_a_position_and_one_of_each_goes_on() {
        for ranks in 1..40 {
            for keeps in 0..ranks {
                let core = Core::power_of_two(ranks, keeps);
                assert!(core.goes_on(keeps));
                assert_eq!(core.ranks(0..core.size), 0..ranks);
                for rank in 0..ranks {
                    let position = core.position(rank);
                    assert!(core.ranks(position..position + 1).contains(&rank));
                    let other = core.other(rank);
                    assert!(other.is_none_or(|o| core.position(o) == position && core.goes_on(o) != core.goes_on(rank)));
                    assert!(other.is_some() || core.goes_on(rank));
                }
            }
        }
    }
}
