//! Allreduce: the vectors of all ranks, combined element by element, reach every rank.
//!
//! All ranks get the same bits: whatever two ranks compute, they compute from the same operands in the same order, at most with the two of an operation
//! exchanged where it commutes.
//!
//! Formulas use pLogP terms and `c(m)`, the time to combine m bytes; P ranks, m bytes. Where they say `a` and `b`, they are Hockney's: a message takes `a + m b`, and
//! combining it `m c`, with `n = log2 P`.

use super::blocks::Blocks;
use super::core::Core;
use super::data_flow::DataFlow;
use super::fold::Vector;
use super::{Algorithm, Collective, Shape, Size};
use crate::schedule::{Fold, Layout, Piece, Program, Span, Specification};
use crate::topology::Rank;

mod direct;
mod direct_scatter;
mod knomial;
mod native;
pub(crate) mod rabenseifner;
pub(crate) mod recursive_doubling;
mod reduce_bcast;
pub(crate) mod ring;
pub(crate) mod segmented_ring;

/// Every allreduce algorithm.
pub const ALGORITHMS: &[&Algorithm] = &[
    &direct::ALGORITHM,
    &direct_scatter::ALGORITHM,
    &recursive_doubling::ALGORITHM,
    &knomial::ALGORITHM,
    &reduce_bcast::ALGORITHM,
    &rabenseifner::ALGORITHM,
    &ring::ALGORITHM,
    &segmented_ring::ALGORITHM,
    &native::ALGORITHM,
];

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
    places: |_| None,
    fallback: &direct::ALGORITHM,
    algorithms: ALGORITHMS,
    open_mpi: &[("linear", 1), ("nonoverlapping", 2), ("recursive_doubling", 3), ("ring", 4), ("segmented_ring", 5), ("rabenseifner", 6)],
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
    Blocks::cut(shape, shape.ranks)
}

/// Combines among the positions of a core; what is beyond them comes first and goes last.
fn among(me: Rank, shape: &Shape, core: Core, combine: impl FnOnce(&mut DataFlow, &mut Vector)) -> Program {
    let (mut flow, whole) = (DataFlow::new(), Span::output(0, shape.bytes));
    let other = core.other(me);
    if let Some(other) = other.filter(|_| !core.goes_on(me)) {
        flow.send(other, own(shape));
        flow.recv(other, whole);
        return flow.done();
    }
    let mut vector = Vector::new(shape, own(shape), whole, 0);
    if let Some(other) = other {
        vector.take_in(&mut flow, other, whole, me < other);
    }
    combine(&mut flow, &mut vector);
    vector.settle(&mut flow, whole);
    if let Some(other) = other {
        flow.send(other, whole);
    }
    flow.done()
}
