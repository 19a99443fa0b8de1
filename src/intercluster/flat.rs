//! Flat: the root sends to each coordinator in turn.

use super::{Heuristic, Problem};

/// Flat tree.
pub const HEURISTIC: Heuristic = Heuristic {
    name: "Flat",
    summary: "the root sends to each coordinator in turn",
    citation: "Kielmann et al. (MagPIe), PPoPP 1999",
    most_groups: usize::MAX,
    sends: |p: &Problem| (0..p.groups).filter(|&j| j != p.root).map(|j| (p.root, j)).collect(),
};
