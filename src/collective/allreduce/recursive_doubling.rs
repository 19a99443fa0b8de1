//! In each round partners exchange all that they have, and so many ranks' vectors are in it: `n (a + m b + m c)`, and `2 a + 2 m b + m c` more where P is no
//! power of two.

use super::super::core::Core;
use super::super::{Algorithm, Parameters, Shape};
use super::among;
use crate::schedule::{Program, Span};
use crate::topology::Rank;

/// partners exchange whole vectors, twice as far in each round
pub static ALGORITHM: Algorithm = Algorithm {
    name: "recursive_doubling",
    summary: "partners exchange whole vectors, twice as far in each round",
    citation: "Thakur, Rabenseifner, Gropp 2005",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let core = Core::power_of_two(shape.ranks, 0);
    among(me, shape, core, |flow, vector| {
        let (position, whole) = (core.position(me), Span::output(0, shape.bytes));
        for round in 0..core.halvings() {
            let partner = core.rank(position ^ 1 << round);
            vector.send(flow, partner, whole);
            vector.take_in(flow, partner, whole, me < partner);
        }
    })
}
