//! Everybody sends each block to its rank, all at once, and combines what comes in the order of ranks: `(P-1) max(g(m), or(m) + c(m)) + L`, one latency
//! whatever P. For short blocks among few ranks far from each other.

use super::super::blocks::Blocks;
use super::super::data_flow::DataFlow;
use super::super::{Algorithm, Parameters, Shape};
use super::given;
use crate::schedule::{Program, Span};
use crate::topology::Rank;

/// all blocks at once
pub static ALGORITHM: Algorithm = Algorithm {
    name: "direct",
    summary: "all blocks at once to their ranks, which combine what comes",
    citation: "Chan, Heimlich, Purkayastha, van de Geijn, Concurrency Computat. 19 (2007)",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let (mut flow, ranks, bytes) = (DataFlow::new(), shape.ranks, shape.bytes);
    let (blocks, given) = (Blocks::by_rank(shape), given(shape));
    let others = || (1..ranks).map(|step| (me + step) % ranks);
    for to in others() {
        flow.send(to, blocks.one(to).within(given));
    }
    let place = |from: Rank| Span::scratch(from * bytes, bytes);
    for from in others() {
        flow.recv(from, place(from));
    }
    let own = blocks.one(me).within(given);
    if me > 0 {
        // each value is combined into the next one, and what was given is not written
        flow.copy(own, place(me));
    }
    let mut value = if me == 0 { own } else { place(0) };
    for rank in 1..ranks {
        flow.combine(value, place(rank));
        value = place(rank);
    }
    flow.copy(value, Span::output(0, bytes));
    flow.done()
}
