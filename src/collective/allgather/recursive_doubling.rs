//! In each round partners exchange all blocks that they have, twice as many as in the round before: `n a + (P-1) m b` with `n = log2 P`. Where P is no power of
//! two, the blocks of ranks beyond go to their neighbours first, and all blocks come from there at last: `2 a + (P+1) m b` more.

use super::super::blocks::Blocks;
use super::super::core::Core;
use super::super::data_flow::DataFlow;
use super::super::{Algorithm, Parameters, Shape};
use super::given;
use crate::schedule::Program;
use crate::topology::Rank;

/// partners exchange what they have
pub static ALGORITHM: Algorithm = Algorithm {
    name: "recursive_doubling",
    summary: "partners exchange all blocks that they have, twice as far in each round",
    citation: "Thakur, Rabenseifner, Gropp 2005",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let (mut flow, blocks, core) = (DataFlow::new(), Blocks::by_rank(shape), Core::power_of_two(shape.ranks, 0));
    let (own, position) = (given(shape, me), core.position(me));
    if let Some(other) = core.other(me) {
        if !core.goes_on(me) {
            flow.send(other, own);
            flow.recv(other, blocks.all());
            return flow.done();
        }
        flow.recv(other, blocks.one(other));
    }
    flow.copy(own, blocks.one(me));
    for round in 0..core.halvings() {
        let held = |position: usize| blocks.span(core.ranks(position >> round << round..(position >> round << round) + (1 << round)));
        let partner = position ^ 1 << round;
        flow.send(core.rank(partner), if held(position) == blocks.one(me) { own } else { held(position) });
        flow.recv(core.rank(partner), held(partner));
    }
    if let Some(other) = core.other(me) {
        flow.send(other, blocks.all());
    }
    flow.done()
}
