//! A heap-shaped tree of depth `h = floor(log2 P)`: at most `h (2 g(m) + L)`, exact for `P = 2^(h+1) - 1`.

use super::super::tree::{binary, tree_program};
use super::super::{Algorithm, Parameters, Shape};
use crate::schedule::Program;
use crate::topology::Rank;

/// heap-shaped binary tree
pub static ALGORITHM: Algorithm = Algorithm {
    name: "binary",
    summary: "heap-shaped binary tree",
    citation: "Barchet-Estefanel, Mounie 2004, Table 1",
    builder: Some(program),
    tree: Some(|v, n, _| binary(v, n)),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    tree_program(me, shape, &Parameters::default(), binary)
}
