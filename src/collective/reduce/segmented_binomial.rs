//! As `binomial`, segment by segment: the root takes in `ceil(log2 P) k` segments of s bytes and combines each.

use super::super::tree::knomial;
use super::super::{Algorithm, Parameters, Shape};
use super::tree_program;
use crate::schedule::Program;
use crate::topology::Rank;

/// binomial tree, segment by segment
pub static ALGORITHM: Algorithm = Algorithm {
    name: "segmented_binomial",
    summary: "binomial tree, segment by segment",
    citation: "Pjesivac-Grbovic et al., Cluster Computing 10 (2007)",
    segmented: true,
    builder: Some(program),
    mirrors: Some(&super::super::bcast::segmented_binomial::ALGORITHM),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, parameters: &Parameters) -> Program {
    tree_program(me, shape, parameters.segment, |v, n| knomial(v, n, 2))
}
