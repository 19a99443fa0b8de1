//! A gather to rank 0 up a binomial tree, then a broadcast of all blocks down it: `2 n a + (P-1) m b + n P m b` with `n = log2 P`. Few messages for few bytes.

use super::super::blocks::Blocks;
use super::super::data_flow::DataFlow;
use super::super::tree::{knomial, subtree};
use super::super::{Algorithm, Parameters, Shape};
use super::given;
use crate::schedule::Program;
use crate::topology::Rank;

/// up and down a binomial tree
pub static ALGORITHM: Algorithm = Algorithm {
    name: "gather_bcast",
    summary: "a gather to rank 0 up a binomial tree, then a broadcast down it",
    citation: "Pjesivac-Grbovic et al., Cluster Computing 10 (2007)",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let (mut flow, blocks, ranks) = (DataFlow::new(), Blocks::by_rank(shape), shape.ranks);
    let (node, mine) = (knomial(me, ranks, 2), subtree(me, ranks));
    if mine.len() > 1 || node.parent.is_none() {
        flow.copy(given(shape, me), blocks.one(me));
    }
    for &child in node.children.iter().rev() {
        flow.recv(child, blocks.span(subtree(child, ranks)));
    }
    if let Some(parent) = node.parent {
        flow.send(parent, if mine.len() > 1 { blocks.span(mine) } else { given(shape, me) });
        flow.recv(parent, blocks.all());
    }
    for &child in &node.children {
        flow.send(child, blocks.all());
    }
    flow.done()
}
