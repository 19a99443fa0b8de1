//! Allgather: everybody's block, at every rank, in the order of ranks.
//!
//! Formulas are Hockney's: a message of m bytes takes `a + m b`; P ranks, blocks of m bytes.

use super::blocks::Blocks;
use super::{Algorithm, Collective, Shape, Size};
use crate::schedule::{Layout, Piece, Span, Specification};
use crate::topology::Rank;

pub(crate) mod bruck;
mod direct;
mod gather_bcast;
mod native;
pub(crate) mod neighbour_exchange;
pub(crate) mod recursive_doubling;
pub(crate) mod ring;

/// Every allgather algorithm.
pub const ALGORITHMS: &[&Algorithm] = &[
    &recursive_doubling::ALGORITHM,
    &bruck::ALGORITHM,
    &ring::ALGORITHM,
    &neighbour_exchange::ALGORITHM,
    &gather_bcast::ALGORITHM,
    &direct::ALGORITHM,
    &native::ALGORITHM,
];

/// One that goes between coordinators too: it sends each block by itself, at its place.
pub static DIRECT: &Algorithm = &direct::ALGORITHM;
/// One that goes between coordinators too: it sends each block by itself, at its place.
pub static RING: &Algorithm = &ring::ALGORITHM;

/// The allgather.
pub static COLLECTIVE: Collective = Collective {
    name: "allgather",
    function: "MPI_Allgather",
    rooted: false,
    size: Size::Block,
    combines: false,
    tuned: true,
    layout,
    specification,
    places: |_| None,
    fallback: &bruck::ALGORITHM,
    algorithms: ALGORITHMS,
    // that of two ranks alone is left out
    open_mpi: &[("linear", 1), ("bruck", 2), ("recursive_doubling", 3), ("ring", 4), ("neighbor", 5)],
};

/// A block of each, of which it gets P; in place, its own lies there.
pub fn layout(shape: &Shape, _: Rank) -> Layout {
    Layout { input: if shape.in_place { 0 } else { shape.bytes }, output: shape.ranks * shape.bytes }
}

/// What an allgather is for: everybody's block, everywhere.
pub fn specification(shape: &Shape) -> Specification {
    let mut specification = shape.specification(layout);
    for (rank, before) in specification.before.iter_mut().enumerate() {
        let Span { buffer, offset, len } = given(shape, rank);
        before.push(Piece { buffer, at: offset, ..Piece::input(len, rank) });
    }
    specification.after.fill((0..shape.ranks).map(|rank| Piece::output(rank * shape.bytes, shape.bytes, rank, 0)).collect());
    specification
}

/// Where a rank's own block lies.
fn given(shape: &Shape, me: Rank) -> Span {
    if shape.in_place { Blocks::by_rank(shape).one(me) } else { Span::input(0, shape.bytes) }
}
