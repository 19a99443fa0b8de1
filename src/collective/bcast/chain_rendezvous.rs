//! As `chain`, with a handshake on each hop: `(P-1) (g(m) + 2 g(1) + 3L)`.

use super::super::tree::{chain, rendezvous_program};
use super::super::{Algorithm, Parameters, Shape};
use crate::schedule::Program;
use crate::topology::Rank;

/// chain, with a handshake on each hop
pub static ALGORITHM: Algorithm = Algorithm {
    name: "chain_rendezvous",
    summary: "chain, with a handshake on each hop",
    citation: "Barchet-Estefanel, Mounie 2004, Table 1",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    rendezvous_program(me, shape, chain)
}
