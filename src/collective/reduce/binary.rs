//! Up a heap-shaped tree, of height h = floor(log2 P): at most `h (2 (g(m) + c(m)) + L)`. The operation must commute: the ranks below a node do not follow each other.

use super::super::tree::binary;
use super::super::{Algorithm, Parameters, Shape};
use super::tree_program;
use crate::schedule::Program;
use crate::topology::Rank;

/// heap-shaped binary tree
pub static ALGORITHM: Algorithm = Algorithm {
    name: "binary",
    summary: "heap-shaped binary tree",
    citation: "Pjesivac-Grbovic et al., Cluster Computing 10 (2007)",
    fits: |shape| shape.elements.commute,
    wants: "an operation that commutes",
    builder: Some(program),
    mirrors: Some(&super::super::bcast::binary::ALGORITHM),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    tree_program(me, shape, 0, binary)
}
