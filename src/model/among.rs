//! A model of some of a group's ranks.

use super::{Cost, CostModel};
use crate::topology::{Link, Rank};

/// A model for a part of its group's positions.
pub struct Among<'a> {
    /// The group's model.
    pub inner: &'a dyn CostModel,
    /// The position in the group of each rank.
    pub positions: Vec<usize>,
}

impl CostModel for Among<'_> {
    fn cost(&self, link: Link, bytes: usize) -> Cost {
        self.inner.cost(Link { from: self.positions[link.from], to: self.positions[link.to] }, bytes)
    }

    fn processor(&self, rank: Rank, bytes: usize) -> f64 {
        self.inner.processor(self.positions[rank], bytes)
    }
}
