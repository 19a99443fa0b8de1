//! A reduce-scatter by recursive halving, then an allgather by recursive doubling: each rank sends and receives about twice the vector, in `2 n` messages:
//! `2 n a + 2 (P-1)/P m b + (P-1)/P m c`, and `2 a + 2 m b + m c` more where P is no power of two.

use super::super::blocks::Blocks;
use super::super::core::Core;
use super::super::halving::{Halves, halve};
use super::super::{Algorithm, Parameters, Shape};
use super::among;
use crate::schedule::Program;
use crate::topology::Rank;

/// recursive halving, then recursive doubling
pub static ALGORITHM: Algorithm = Algorithm {
    name: "rabenseifner",
    summary: "reduce-scatter by recursive halving, then an allgather by recursive doubling",
    citation: "Rabenseifner 2004; Thakur, Rabenseifner, Gropp 2005",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let core = Core::power_of_two(shape.ranks, 0);
    among(me, shape, core, |flow, vector| {
        let (position, blocks) = (core.position(me), Blocks::cut(shape, core.size));
        let mut kept = halve(flow, vector, core, me, &blocks);
        vector.settle(flow, blocks.span(kept.clone()));
        for round in (0..core.halvings()).rev() {
            let Halves { all, other } = Halves::around(kept.clone(), position, round);
            let partner = core.rank(position ^ 1 << round);
            vector.send(flow, partner, blocks.span(kept));
            flow.recv(partner, blocks.span(other));
            kept = all;
        }
    })
}
