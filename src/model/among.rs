//! A model of some of a group's ranks.

use super::{Cost, CostModel, Loss, Pipe};
use crate::topology::{Link, Rank};

/// A model for a part of its group's positions.
pub struct Among<'a> {
    /// The group's model.
    pub inner: &'a dyn CostModel,
    /// The position in the group of each rank.
    pub positions: Vec<usize>,
}

impl Among<'_> {
    fn inside(&self, link: Link) -> Link {
        Link { from: self.positions[link.from], to: self.positions[link.to] }
    }
}

impl CostModel for Among<'_> {
    fn kinds(&self) -> usize {
        self.inner.kinds()
    }

    fn kind(&self, link: Link) -> usize {
        self.inner.kind(self.inside(link))
    }

    fn loses(&self) -> bool {
        self.inner.loses()
    }

    fn cost(&self, link: Link, bytes: usize) -> Cost {
        self.inner.cost(self.inside(link), bytes)
    }

    fn pipe(&self, link: Link, bytes: usize) -> Option<(Pipe, f64)> {
        self.inner.pipe(self.inside(link), bytes)
    }

    fn port_in(&self, link: Link, bytes: usize) -> f64 {
        self.inner.port_in(self.inside(link), bytes)
    }

    fn loss(&self, link: Link, bytes: usize) -> Option<Loss> {
        self.inner.loss(self.inside(link), bytes)
    }

    fn processor(&self, rank: Rank, bytes: usize) -> f64 {
        self.inner.processor(self.positions[rank], bytes)
    }

    fn copy(&self, rank: Rank, bytes: usize) -> f64 {
        self.inner.copy(self.positions[rank], bytes)
    }

    fn combine(&self, rank: Rank, bytes: usize) -> f64 {
        self.inner.combine(self.positions[rank], bytes)
    }
}
