//! The root sends the whole message to each rank in turn: `(P-1) g(m) + L`.

use super::super::tree::{flat, tree_program};
use super::super::{Algorithm, Parameters, Shape};
use crate::schedule::Program;
use crate::topology::Rank;

/// the root sends to each rank in turn
pub static ALGORITHM: Algorithm = Algorithm {
    name: "flat",
    summary: "the root sends to each rank in turn",
    citation: "Barchet-Estefanel, Mounie 2004, Table 1",
    builder: Some(program),
    tree: Some(|v, n, _| flat(v, n)),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    tree_program(me, shape, &Parameters::default(), flat)
}
