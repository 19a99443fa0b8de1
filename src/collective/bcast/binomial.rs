//! The binomial tree, farthest child first: `ceil(log2 P) g(m) + floor(log2 P) L` (the source has floor and ceil swapped).

use super::super::tree::{knomial, tree_program};
use super::super::{Algorithm, Parameters, Shape};
use crate::schedule::Program;
use crate::topology::Rank;

/// binomial tree
pub static ALGORITHM: Algorithm = Algorithm {
    name: "binomial",
    summary: "binomial tree",
    citation: "Barchet-Estefanel, Mounie 2004, Table 1",
    builder: Some(program),
    tree: Some(|v, n, _| knomial(v, n, 2)),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    tree_program(me, shape, &Parameters::default(), |v, n| knomial(v, n, 2))
}
