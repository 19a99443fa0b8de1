//! As `binomial`, with a handshake on each edge; those of one node overlap.

use super::super::tree::{knomial, rendezvous_program};
use super::super::{Algorithm, Parameters, Shape};
use crate::schedule::Program;
use crate::topology::Rank;

/// binomial tree, with a handshake on each edge
pub static ALGORITHM: Algorithm = Algorithm {
    name: "binomial_rendezvous",
    summary: "binomial tree, with a handshake on each edge",
    citation: "Barchet-Estefanel, Mounie 2004, Table 1",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    rendezvous_program(me, shape, |v, n| knomial(v, n, 2))
}
