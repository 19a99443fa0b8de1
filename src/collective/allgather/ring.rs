//! Blocks go around a ring: in each of `P - 1` steps a rank sends what came last to its right neighbour: `(P-1) (a + m b)`, and no byte passes a link
//! twice.

use super::super::blocks::Blocks;
use super::super::data_flow::DataFlow;
use super::super::{Algorithm, Parameters, Shape};
use super::given;
use crate::schedule::Program;
use crate::topology::Rank;

/// blocks around a ring
pub static ALGORITHM: Algorithm = Algorithm {
    name: "ring",
    summary: "blocks go around a ring",
    citation: "Thakur, Rabenseifner, Gropp 2005",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let (mut flow, ranks, blocks) = (DataFlow::new(), shape.ranks, Blocks::by_rank(shape));
    let (next, previous) = ((me + 1) % ranks, (me + ranks - 1) % ranks);
    for step in 0..ranks - 1 {
        let (out, into) = ((me + ranks - step) % ranks, (me + ranks - step - 1) % ranks);
        flow.send(next, if step == 0 { given(shape, me) } else { blocks.one(out) });
        flow.recv(previous, blocks.one(into));
    }
    flow.copy(given(shape, me), blocks.one(me));
    flow.done()
}
