//! Barrier: no rank goes on before every rank has come.
//!
//! Its messages are empty; formulas use pLogP terms, `g` and `L` those of an empty message, P ranks.

use super::{Algorithm, Collective, Shape, Size};
use crate::schedule::{Layout, Specification};

pub(crate) mod dissemination;
pub(crate) mod double_ring;
pub(crate) mod flat;
mod native;
pub(crate) mod tree;

/// Every barrier algorithm.
pub const ALGORITHMS: &[&Algorithm] =
    &[&dissemination::ALGORITHM, &tree::ALGORITHM, &flat::ALGORITHM, &double_ring::ALGORITHM, &native::ALGORITHM];

/// The barrier.
pub static COLLECTIVE: Collective = Collective {
    name: "barrier",
    function: "MPI_Barrier",
    rooted: false,
    size: Size::Nothing,
    combines: false,
    tuned: true,
    layout: |_, _| Layout::default(),
    specification,
    places: |_| None,
    fallback: &dissemination::ALGORITHM,
    algorithms: ALGORITHMS,
    open_mpi: &[("linear", 1), ("double_ring", 2), ("recursive_doubling", 3), ("bruck", 4), ("tree", 6)],
};

/// Everybody to one and back, the simplest tree.
pub static FLAT: &Algorithm = &flat::ALGORITHM;

/// What a barrier is for: every rank hears from every other one.
pub fn specification(shape: &Shape) -> Specification {
    Specification { synchronises: true, ..Specification::empty(shape.ranks) }
}
