//! As `binomial`, segment by segment: `ceil(log2 P) k g(s) + floor(log2 P) L`.

use super::super::tree::{knomial, tree_program};
use super::super::{Algorithm, Parameters, Shape};
use crate::schedule::Program;
use crate::topology::Rank;

/// binomial tree, segment by segment
pub static ALGORITHM: Algorithm = Algorithm {
    name: "segmented_binomial",
    summary: "binomial tree, segment by segment",
    citation: "Barchet-Estefanel, Mounie 2004, Table 1",
    segmented: true,
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, parameters: &Parameters) -> Program {
    tree_program(me, shape, parameters, |v, n| knomial(v, n, 2))
}
