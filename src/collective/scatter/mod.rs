//! Scatter: a block of the root's for each rank.
//!
//! Formulas use the broadcast's terms for blocks of m bytes: `g(m)` gap, `L` latency, P ranks.

use super::blocks::{Blocks, runs};
use super::data_flow::DataFlow;
use super::tree::Node;
use super::{Algorithm, Collective, Shape, Size};
use crate::schedule::{Layout, Piece, Program, Span, Specification};
use crate::topology::Rank;
use std::ops::Range;

pub(crate) mod binomial;
pub(super) mod chain;
pub(super) mod flat;
pub(super) mod knomial;
mod native;
pub(super) mod segmented_chain;

/// Every scatter algorithm.
pub const ALGORITHMS: &[&Algorithm] =
    &[&flat::ALGORITHM, &chain::ALGORITHM, &segmented_chain::ALGORITHM, &binomial::ALGORITHM, &knomial::ALGORITHM, &native::ALGORITHM];

/// One that goes between coordinators too: it sends each block by itself, at its place.
pub static FLAT: &Algorithm = &flat::ALGORITHM;

/// The scatter.
pub static COLLECTIVE: Collective = Collective {
    name: "scatter",
    function: "MPI_Scatter",
    rooted: true,
    size: Size::Block,
    combines: false,
    tuned: true,
    layout,
    specification,
    places: Some,
    fallback: &binomial::ALGORITHM,
    algorithms: ALGORITHMS,
    open_mpi: &[("basic_linear", 1), ("binomial", 2), ("linear_nb", 3)],
};

/// P blocks of the root, and one for each rank to get; in place, the root's own stays where it is.
pub fn layout(shape: &Shape, rank: Rank) -> Layout {
    let is_root = rank == shape.root;
    Layout { input: if is_root { shape.ranks * shape.bytes } else { 0 }, output: if shape.in_place && is_root { 0 } else { shape.bytes } }
}

/// What a scatter is for: each rank's block, from the root.
pub fn specification(shape: &Shape) -> Specification {
    let mut specification = shape.specification(layout);
    specification.before[shape.root].push(Piece::input(shape.ranks * shape.bytes, shape.root));
    for (rank, after) in specification.after.iter_mut().enumerate() {
        after.push(Piece::output(0, layout(shape, rank).output, shape.root, rank * shape.bytes));
    }
    specification
}

/// The root's blocks where they lie.
fn given(blocks: &Blocks, ranks: Range<Rank>) -> Span {
    blocks.span(ranks).within(Span::input(0, blocks.all().len))
}

/// The root keeps its own block.
fn keep(flow: &mut DataFlow, shape: &Shape, blocks: &Blocks) {
    if !shape.in_place {
        flow.copy(given(blocks, shape.root..shape.root + 1), Span::output(0, shape.bytes));
    }
}

/// Down a tree of the positions from the root on, in which those below a node follow it: each node gets its own block and all for below in one message.
fn down(me: Rank, shape: &Shape, tree: impl Fn(usize, usize) -> Node, below: impl Fn(usize, usize) -> Range<usize>) -> Program {
    let (mut flow, v, ranks) = (DataFlow::new(), shape.relative(me), shape.ranks);
    let (node, mine) = (tree(v, ranks), below(v, ranks));
    let (places, blocks) = (Blocks::by_position(shape), Blocks::by_rank(shape));
    let held = |positions: Range<usize>, first: usize| {
        let before = places.span(0..first).len;
        let Span { offset, len, .. } = places.span(positions);
        Span::scratch(offset - before, len)
    };
    if let Some(parent) = node.parent {
        let (parent, own) = (shape.absolute(parent), Span::output(0, shape.bytes));
        if mine.len() == 1 {
            flow.recv(parent, own);
            return flow.done();
        }
        flow.recv(parent, held(mine, v));
        for &child in &node.children {
            flow.send(shape.absolute(child), held(below(child, ranks), v));
        }
        flow.copy(held(v..v + 1, v), own);
        return flow.done();
    }
    for &child in &node.children {
        let (positions, to) = (below(child, ranks), shape.absolute(child));
        match &runs(shape, positions.clone())[..] {
            [run] => drop(flow.send(to, given(&blocks, run.clone()))),
            two => {
                // it passes the last rank: its blocks do not lie in a row
                let mut next = positions.start;
                for run in two {
                    flow.copy(given(&blocks, run.clone()), held(next..next + run.len(), child));
                    next += run.len();
                }
                flow.send(to, held(positions, child));
            }
        }
    }
    keep(&mut flow, shape, &blocks);
    flow.done()
}
