//! Gather: everybody's block, at the root, in the order of ranks.
//!
//! Formulas use the broadcast's terms for blocks of m bytes: `g(m)` gap, `L` latency, `os`, `or` overheads, P ranks. They are the scatter's, the other way
//! round, for a root that takes messages in as fast as it could send them.

use super::blocks::{Blocks, runs};
use super::data_flow::DataFlow;
use super::tree::Node;
use super::{Algorithm, Collective, Shape, Size};
use crate::schedule::{Layout, Piece, Program, Span, Specification};
use crate::topology::Rank;
use std::ops::Range;

pub(crate) mod binomial;
mod chain;
mod flat;
mod knomial;
mod native;
mod segmented_chain;
mod split_flat;

/// Every gather algorithm.
pub const ALGORITHMS: &[&Algorithm] = &[
    &flat::ALGORITHM,
    &split_flat::ALGORITHM,
    &chain::ALGORITHM,
    &segmented_chain::ALGORITHM,
    &binomial::ALGORITHM,
    &knomial::ALGORITHM,
    &native::ALGORITHM,
];

/// One that goes between coordinators too: it sends each block by itself, at its place.
pub static FLAT: &Algorithm = &flat::ALGORITHM;

/// The gather.
pub static COLLECTIVE: Collective = Collective {
    name: "gather",
    function: "MPI_Gather",
    rooted: true,
    size: Size::Block,
    combines: false,
    tuned: true,
    layout,
    specification,
    places: |a| a.mirrors,
    fallback: &binomial::ALGORITHM,
    algorithms: ALGORITHMS,
    open_mpi: &[("basic_linear", 1), ("binomial", 2), ("linear_sync", 3)],
};

/// A block of each, and P of them for the root to get; in place, its own lies there.
pub fn layout(shape: &Shape, rank: Rank) -> Layout {
    let is_root = rank == shape.root;
    Layout { input: if shape.in_place && is_root { 0 } else { shape.bytes }, output: if is_root { shape.ranks * shape.bytes } else { 0 } }
}

/// What a gather is for: everybody's block, at the root.
pub fn specification(shape: &Shape) -> Specification {
    let mut specification = shape.specification(layout);
    for (rank, before) in specification.before.iter_mut().enumerate() {
        let Span { buffer, offset, len } = given(shape, rank);
        before.push(Piece { buffer, at: offset, ..Piece::input(len, rank) });
    }
    specification.after[shape.root] = (0..shape.ranks).map(|rank| Piece::output(rank * shape.bytes, shape.bytes, rank, 0)).collect();
    specification
}

/// Where a rank's own block lies.
fn given(shape: &Shape, rank: Rank) -> Span {
    if shape.in_place && rank == shape.root { Blocks::by_rank(shape).one(rank) } else { Span::input(0, shape.bytes) }
}

/// Up a tree of the positions from the root on, in which those below a node follow it: each node sends its own block and all from below in one message.
fn up(me: Rank, shape: &Shape, tree: impl Fn(usize, usize) -> Node, below: impl Fn(usize, usize) -> Range<usize>) -> Program {
    let (mut flow, v, ranks) = (DataFlow::new(), shape.relative(me), shape.ranks);
    let (node, mine) = (tree(v, ranks), below(v, ranks));
    let (places, blocks) = (Blocks::by_position(shape), Blocks::by_rank(shape));
    let held = |positions: Range<usize>, first: usize| {
        let before = places.span(0..first).len;
        let Span { offset, len, .. } = places.span(positions);
        Span::scratch(offset - before, len)
    };
    if let Some(parent) = node.parent {
        let parent = shape.absolute(parent);
        if mine.len() == 1 {
            flow.send(parent, given(shape, me));
            return flow.done();
        }
        flow.copy(given(shape, me), held(v..v + 1, v));
        for &child in node.children.iter().rev() {
            flow.recv(shape.absolute(child), held(below(child, ranks), v));
        }
        flow.send(parent, held(mine, v));
        return flow.done();
    }
    flow.copy(given(shape, me), blocks.one(me));
    for &child in node.children.iter().rev() {
        let (positions, from) = (below(child, ranks), shape.absolute(child));
        match &runs(shape, positions.clone())[..] {
            [run] => drop(flow.recv(from, blocks.span(run.clone()))),
            two => {
                // it passes the last rank: its blocks do not lie in a row
                let mut next = positions.start;
                flow.recv(from, held(positions, child));
                for run in two {
                    flow.copy(held(next..next + run.len(), child), blocks.span(run.clone()));
                    next += run.len();
                }
            }
        }
    }
    flow.done()
}

/// Each rank sends its block to the root, in pieces of at most `segment` bytes (0: whole).
fn to_root(me: Rank, shape: &Shape, segment: usize) -> Program {
    let (mut flow, blocks) = (DataFlow::new(), Blocks::by_rank(shape));
    let own = given(shape, me);
    if me != shape.root {
        for part in shape.cut(own, segment) {
            flow.send(shape.root, part);
        }
        return flow.done();
    }
    flow.copy(own, blocks.one(me));
    for from in (1..shape.ranks).map(|v| shape.absolute(v)) {
        for part in shape.cut(blocks.one(from), segment) {
            flow.recv(from, part);
        }
    }
    flow.done()
}
