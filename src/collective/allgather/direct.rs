//! Everybody sends its block to everybody: `(P-1) max(g(m), or(m)) + L`, one latency whatever P. For short blocks among few ranks far from each other.

use super::super::blocks::Blocks;
use super::super::data_flow::DataFlow;
use super::super::{Algorithm, Parameters, Shape};
use super::given;
use crate::schedule::Program;
use crate::topology::Rank;

/// all to all at once
pub static ALGORITHM: Algorithm = Algorithm {
    name: "direct",
    summary: "everybody sends its block to everybody",
    citation: "Chan, Heimlich, Purkayastha, van de Geijn, Concurrency Computat. 19 (2007)",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let (mut flow, ranks, blocks) = (DataFlow::new(), shape.ranks, Blocks::by_rank(shape));
    let own = given(shape, me);
    for step in 1..ranks {
        flow.send((me + step) % ranks, own);
    }
    for from in (1..ranks).map(|step| (me + ranks - step) % ranks) {
        flow.recv(from, blocks.one(from));
    }
    flow.copy(own, blocks.one(me));
    flow.done()
}
