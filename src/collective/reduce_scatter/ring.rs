//! Each block goes around a ring to its rank, and is combined at every rank that it passes: `(P-1) (a + m b + m c)`, and each rank sends to its right neighbour
//! only. The operation must commute: a block begins at the rank after its own.

use super::super::blocks::Blocks;
use super::super::data_flow::DataFlow;
use super::super::fold::places;
use super::super::{Algorithm, Parameters, Shape};
use super::given;
use crate::schedule::{Program, Span};
use crate::topology::Rank;

/// blocks around a ring
pub static ALGORITHM: Algorithm = Algorithm {
    name: "ring",
    summary: "blocks go around a ring to their ranks, combined at every rank that they pass",
    citation: "Patarasuk, Yuan, J. Parallel and Distributed Computing 69 (2009)",
    fits: |shape| shape.elements.commute,
    wants: "an operation that commutes",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let (mut flow, ranks, bytes) = (DataFlow::new(), shape.ranks, shape.bytes);
    let (blocks, result) = (Blocks::by_rank(shape), Span::output(0, bytes));
    let own = |k: usize| blocks.one(k % ranks).within(given(shape));
    let (next, previous, places) = ((me + 1) % ranks, (me + ranks - 1) % ranks, places(bytes).min(ranks));
    if ranks > 1 {
        flow.send(next, own(me + ranks - 1));
    }
    for step in 0..ranks.saturating_sub(2) {
        let come = Span::scratch(step % places * bytes, bytes);
        flow.recv(previous, come);
        flow.combine(own(me + 2 * ranks - 2 - step), come);
        flow.send(next, come);
    }
    // this rank's own block; in place, the result's bytes are sent first
    if ranks > 1 {
        let come = if shape.in_place { Span::scratch(places * bytes, bytes) } else { result };
        flow.recv(previous, come);
        if shape.in_place { flow.combine(come, own(me)) } else { flow.combine(own(me), come) }
    }
    if ranks == 1 || shape.in_place {
        flow.copy(own(me), result);
    }
    flow.done()
}
