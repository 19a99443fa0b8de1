//! Each rank passes the whole message on to the next: `(P-1) (g(m) + L)`.

use super::super::tree::{chain, tree_program};
use super::super::{Algorithm, Parameters, Shape};
use crate::schedule::Program;
use crate::topology::Rank;

/// each rank passes the message on to the next
pub static ALGORITHM: Algorithm = Algorithm {
    name: "chain",
    summary: "each rank passes the message on to the next",
    citation: "Barchet-Estefanel, Mounie 2004, Table 1",
    builder: Some(program),
    tree: Some(|v, n, _| chain(v, n)),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    tree_program(me, shape, &Parameters::default(), chain)
}
