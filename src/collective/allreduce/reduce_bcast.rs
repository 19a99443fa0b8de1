//! A reduction to rank 0 up a binomial tree, then a broadcast down it: the sum of both, `2 n (a + m b) + n m c`.

use super::super::data_flow::DataFlow;
use super::super::fold::up;
use super::super::tree::knomial;
use super::super::{Algorithm, Parameters, Shape};
use super::own;
use crate::schedule::{Program, Span};
use crate::topology::Rank;

/// up and down a binomial tree
pub static ALGORITHM: Algorithm = Algorithm {
    name: "reduce_bcast",
    summary: "a reduction to rank 0 up a binomial tree, then a broadcast down it",
    citation: "Thakur, Rabenseifner, Gropp 2005",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let (mut flow, whole) = (DataFlow::new(), Span::output(0, shape.bytes));
    up(&mut flow, me, shape, 0, (own(shape), whole), |v, n| knomial(v, n, 2), |rank| rank);
    let node = knomial(me, shape.ranks, 2);
    if let Some(parent) = node.parent {
        flow.recv(parent, whole);
    }
    for child in node.children {
        flow.send(child, whole);
    }
    flow.done()
}
