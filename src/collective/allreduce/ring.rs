//! The vector in P blocks goes around a ring twice: combined the first time, complete the second. Each rank sends to its right neighbour only, and no more
//! than twice the vector: `2 (P-1) a + 2 (P-1)/P m b + (P-1)/P m c`. The operation must commute: a block begins at any rank.

use super::super::blocks::Blocks;
use super::super::data_flow::DataFlow;
use super::super::{Algorithm, Parameters, Shape};
use super::own;
use crate::schedule::{Program, Span};
use crate::topology::Rank;

/// blocks around a ring, twice
pub static ALGORITHM: Algorithm = Algorithm {
    name: "ring",
    summary: "P blocks go around a ring, combined the first time, complete the second",
    citation: "Patarasuk, Yuan, J. Parallel and Distributed Computing 69 (2009)",
    fits: |shape| shape.elements.commute,
    wants: "an operation that commutes",
    builder: Some(|me, shape, _: &Parameters| segmented(me, shape, 0)),
    ..Algorithm::NEW
};

/// As the ring, with blocks cut into segments, each of which goes on as soon as it was combined.
pub fn segmented(me: Rank, shape: &Shape, segment: usize) -> Program {
    let (mut flow, ranks, whole) = (DataFlow::new(), shape.ranks, Span::output(0, shape.bytes));
    let (next, previous) = ((me + 1) % ranks, (me + ranks - 1) % ranks);
    if ranks == 1 {
        flow.copy(own(shape), whole);
        return flow.done();
    }
    let blocks = Blocks::cut(shape, ranks);
    for part in shape.cut(blocks.one(me), segment) {
        flow.send(next, part.within(own(shape)));
    }
    // after this many blocks have come, the next ones are complete
    let (combined, all) = (ranks - 1, 2 * (ranks - 1));
    let twice = [0, ranks].into_iter().flat_map(|before| blocks.around(previous).map(move |(step, block)| (before + step, block)));
    for (step, block) in twice.filter(|&(step, _)| step < all) {
        for part in shape.cut(blocks.one(block), segment) {
            // what comes is combined where it lies; in place, where it does not
            let came = if shape.in_place && step < combined { part.within(Span::scratch(0, shape.bytes)) } else { part };
            flow.recv(previous, came);
            match step < combined {
                true if shape.in_place => flow.combine(came, part),
                true => flow.combine(part.within(own(shape)), part),
                false => {}
            }
            if step + 1 < all {
                flow.send(next, part);
            }
        }
    }
    flow.done()
}
