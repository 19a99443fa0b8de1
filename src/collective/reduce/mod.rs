//! Reduce: everybody's vector, combined, at the root.
//!
//! Formulas use pLogP terms where the broadcast's do, and Hockney's where they say `a` and `b`: a message of m bytes takes `a + m b`; combining them takes `m c` or
//! `c(m)`; P ranks. Trees are the broadcast's, the other way round. Where the operation does not commute, they lead to rank 0, which then sends
//! the result to the root: one message more.

use super::data_flow::DataFlow;
use super::fold::up;
use super::tree::Node;
use super::{Algorithm, Collective, Shape, Size};
use crate::schedule::{Fold, Layout, Piece, Program, Span, Specification};
use crate::topology::Rank;

mod binary;
pub(crate) mod binomial;
mod chain;
mod flat;
mod knomial;
mod native;
pub(crate) mod rabenseifner;
mod segmented_binary;
mod segmented_binomial;
mod segmented_chain;

/// Every reduce algorithm.
pub const ALGORITHMS: &[&Algorithm] = &[
    &flat::ALGORITHM,
    &chain::ALGORITHM,
    &segmented_chain::ALGORITHM,
    &binary::ALGORITHM,
    &segmented_binary::ALGORITHM,
    &binomial::ALGORITHM,
    &segmented_binomial::ALGORITHM,
    &knomial::ALGORITHM,
    &rabenseifner::ALGORITHM,
    &native::ALGORITHM,
];

/// The reduction.
pub static COLLECTIVE: Collective = Collective {
    name: "reduce",
    function: "MPI_Reduce",
    rooted: true,
    size: Size::Message,
    combines: true,
    tuned: true,
    layout,
    specification,
    places: |a| a.mirrors,
    fallback: &binomial::ALGORITHM,
    algorithms: ALGORITHMS,
    open_mpi: &[("linear", 1), ("chain", 2), ("pipeline", 3), ("binary", 4), ("binomial", 5), ("in-order_binary", 6), ("rabenseifner", 7)],
};

/// A vector of each, and one for the root to get; in place, what the root gives lies there.
pub fn layout(shape: &Shape, rank: Rank) -> Layout {
    Layout {
        input: if given(shape, rank).buffer == crate::schedule::Buffer::Input { shape.bytes } else { 0 },
        output: if rank == shape.root { shape.bytes } else { 0 },
    }
}

/// What a reduction is for: everybody's vector, combined, at the root.
pub fn specification(shape: &Shape) -> Specification {
    let mut specification = shape.specification(layout);
    for (rank, before) in specification.before.iter_mut().enumerate() {
        before.push(Piece { buffer: given(shape, rank).buffer, ..Piece::input(shape.bytes, rank) });
    }
    specification.after[shape.root] = vec![Piece::output(0, shape.bytes, Fold::of_all(shape.ranks), 0)];
    specification
}

/// Where a rank's own vector lies.
fn given(shape: &Shape, rank: Rank) -> Span {
    if shape.in_place && rank == shape.root { Span::output(0, shape.bytes) } else { Span::input(0, shape.bytes) }
}

/// Where a rank combines: in what it gets, or in memory of its own.
fn home(shape: &Shape, rank: Rank) -> Span {
    if rank == shape.root { Span::output(0, shape.bytes) } else { Span::scratch(0, shape.bytes) }
}

/// A reduction up a tree, segment by segment.
pub(crate) fn tree_program(me: Rank, shape: &Shape, segment: usize, tree: impl Fn(usize, usize) -> Node) -> Program {
    let mut flow = DataFlow::new();
    let top = if shape.elements.commute { shape.root } else { 0 };
    up(&mut flow, me, &Shape { root: top, ..*shape }, segment, (given(shape, me), home(shape, me)), tree, |rank| rank);
    if top != shape.root {
        for segment in shape.segments(segment) {
            if me == top {
                flow.send(shape.root, segment.within(home(shape, me)));
            } else if me == shape.root {
                flow.recv(top, segment);
            }
        }
    }
    flow.done()
}
