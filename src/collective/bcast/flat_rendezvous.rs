//! As `flat`, with a handshake before each message; the handshakes overlap: `(P-1) g(m) + 2 g(1) + 3L`.

use super::super::tree::{flat, rendezvous_program};
use super::super::{Algorithm, Parameters, Shape};
use crate::schedule::Program;
use crate::topology::Rank;

/// flat, with a handshake before each message
pub static ALGORITHM: Algorithm = Algorithm {
    name: "flat_rendezvous",
    summary: "flat, with a handshake before each message",
    citation: "Barchet-Estefanel, Mounie 2004, Table 1",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    rendezvous_program(me, shape, flat)
}
