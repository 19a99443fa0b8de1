//! Reduce-scatter in blocks of the same size (`MPI_Reduce_scatter_block`): everybody's P blocks, combined; each rank gets its own block of the result.
//!
//! Formulas are Hockney's: a message of m bytes takes `a + m b`, combining them `m c`; P ranks, blocks of m bytes.

use super::{Algorithm, Collective, Shape, Size};
use crate::schedule::{Fold, Layout, Piece, Span, Specification};
use crate::topology::Rank;

mod direct;
mod native;
pub(crate) mod pairwise;
pub(crate) mod recursive_halving;
mod ring;

/// Every reduce-scatter algorithm.
pub const ALGORITHMS: &[&Algorithm] =
    &[&recursive_halving::ALGORITHM, &pairwise::ALGORITHM, &ring::ALGORITHM, &direct::ALGORITHM, &native::ALGORITHM];

/// One that goes between coordinators too: it sends each block by itself, at its place.
pub static DIRECT: &Algorithm = &direct::ALGORITHM;

/// The reduce-scatter.
pub static COLLECTIVE: Collective = Collective {
    name: "reduce_scatter",
    function: "MPI_Reduce_scatter_block",
    rooted: false,
    size: Size::Block,
    combines: true,
    tuned: true,
    layout,
    specification,
    places: |_| None,
    fallback: &pairwise::ALGORITHM,
    algorithms: ALGORITHMS,
    open_mpi: &[("basic_linear", 1), ("recursive_doubling", 2), ("recursive_halving", 3), ("butterfly", 4)],
};

/// P blocks of each, of which it gets one; in place, what a rank gives lies in its output, in whose beginning it gets its block.
pub fn layout(shape: &Shape, _: Rank) -> Layout {
    let all = shape.ranks * shape.bytes;
    if shape.in_place { Layout { input: 0, output: all } } else { Layout { input: all, output: shape.bytes } }
}

/// What a reduce-scatter is for: everybody's blocks, combined, one at each rank.
pub fn specification(shape: &Shape) -> Specification {
    let mut specification = shape.specification(layout);
    let given = given(shape);
    for (rank, (before, after)) in specification.before.iter_mut().zip(&mut specification.after).enumerate() {
        before.push(Piece { buffer: given.buffer, ..Piece::input(given.len, rank) });
        after.push(Piece::output(0, shape.bytes, Fold::of_all(shape.ranks), rank * shape.bytes));
    }
    specification
}

/// Where a rank's own blocks lie.
fn given(shape: &Shape) -> Span {
    let all = Span::output(0, shape.ranks * shape.bytes);
    if shape.in_place { all } else { Span::input(0, all.len) }
}
