//! Fastest Edge First: the fastest transfer from an informed coordinator to another one, whenever its port is free.

use super::{Heuristic, greedy};

/// FEF; an edge's weight is its transfer time `g + L`.
pub const HEURISTIC: Heuristic = Heuristic {
    name: "FEF",
    summary: "the fastest edge that leaves the informed set",
    citation: "Bhat, Raghavendra, Prasanna, ICDCS 1999",
    most_groups: 256,
    sends: |p| greedy(p, |_, _| 0.0, |i, j, _, _| p.transfer(i, j)),
};
