//! As `binary`, segment by segment: at most `h (2 g(s) + L) + 2 (k-1) g(s)`, exact for full trees.

use super::super::tree::{binary, tree_program};
use super::super::{Algorithm, Parameters, Shape};
use crate::schedule::Program;
use crate::topology::Rank;

/// heap-shaped binary tree, segment by segment
pub static ALGORITHM: Algorithm = Algorithm {
    name: "segmented_binary",
    summary: "heap-shaped binary tree, segment by segment",
    citation: "Barchet-Estefanel, Mounie 2004, Table 1",
    segmented: true,
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, parameters: &Parameters) -> Program {
    tree_program(me, shape, parameters, binary)
}
