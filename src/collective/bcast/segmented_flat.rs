//! As `flat`, segment by segment: `(P-1) k g(s) + L` for k segments of s bytes.

use super::super::tree::{flat, tree_program};
use super::super::{Algorithm, Parameters, Shape};
use crate::schedule::Program;
use crate::topology::Rank;

/// flat, segment by segment
pub static ALGORITHM: Algorithm = Algorithm {
    name: "segmented_flat",
    summary: "flat, segment by segment",
    citation: "Barchet-Estefanel, Mounie 2004, Table 1",
    segmented: true,
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, parameters: &Parameters) -> Program {
    tree_program(me, shape, parameters, flat)
}
