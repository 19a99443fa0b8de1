//! As `binary`, segment by segment: at most `h (2 (g(s) + c(s)) + L) + 2 (k-1) max(g(s), or(s) + c(s))` or a little more.

use super::super::tree::binary;
use super::super::{Algorithm, Parameters, Shape};
use super::tree_program;
use crate::schedule::Program;
use crate::topology::Rank;

/// heap-shaped binary tree, segment by segment
pub static ALGORITHM: Algorithm = Algorithm {
    name: "segmented_binary",
    summary: "heap-shaped binary tree, segment by segment",
    citation: "Pjesivac-Grbovic et al., Cluster Computing 10 (2007)",
    segmented: true,
    fits: |shape| shape.elements.commute,
    wants: "an operation that commutes",
    builder: Some(program),
    mirrors: Some(&super::super::bcast::segmented_binary::ALGORITHM),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, parameters: &Parameters) -> Program {
    tree_program(me, shape, parameters.segment, binary)
}
