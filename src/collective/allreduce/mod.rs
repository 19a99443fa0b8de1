//! Allreduce: the vectors of all ranks, combined element by element, reach every rank.
//!
//! Formulas use pLogP terms and `c(m)`, the time to combine m bytes; P ranks, m bytes.

use super::blocks::Blocks;
use super::{Algorithm, Collective, Shape, Size};
use crate::schedule::{Fold, Layout, Piece, Span, Specification};
use crate::topology::Rank;

mod direct;
mod direct_scatter;
mod native;

/// Every allreduce algorithm.
pub const ALGORITHMS: &[&Algorithm] = &[&direct::ALGORITHM, &direct_scatter::ALGORITHM, &native::ALGORITHM];

/// The allreduce.
pub static COLLECTIVE: Collective = Collective {
    name: "allreduce",
    function: "MPI_Allreduce",
    rooted: false,
    size: Size::Message,
    combines: true,
    tuned: true,
    layout,
    specification,
    fallback: &direct::ALGORITHM,
    algorithms: ALGORITHMS,
};

fn layout(shape: &Shape, _: Rank) -> Layout {
    Layout { input: if shape.in_place { 0 } else { shape.bytes }, output: shape.bytes }
}

/// What an allreduce is for: all vectors combined, everywhere.
pub fn specification(shape: &Shape) -> Specification {
    let mut specification = Specification { elements: shape.elements, ..Specification::empty(shape.ranks) };
    for rank in 0..shape.ranks {
        specification.layouts[rank] = layout(shape, rank);
        let given = Piece::output(0, shape.bytes, rank, 0);
        specification.before[rank] = vec![if shape.in_place { given } else { Piece::input(shape.bytes, rank) }];
        specification.after[rank] = vec![Piece::output(0, shape.bytes, Fold::of_all(shape.ranks), 0)];
    }
    specification
}

/// Where a rank's own vector lies.
fn own(shape: &Shape) -> Span {
    if shape.in_place { Span::output(0, shape.bytes) } else { Span::input(0, shape.bytes) }
}

/// The vector in as many blocks as there are ranks, of whole elements.
fn blocks(shape: &Shape) -> Blocks {
    Blocks::of_elements(shape.bytes, shape.ranks, shape.elements.bytes)
}
