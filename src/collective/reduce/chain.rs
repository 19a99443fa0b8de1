//! From the last rank on each combines its own with what comes: `(P-1) (g(m) + L + c(m))`.

use super::super::tree::chain;
use super::super::{Algorithm, Parameters, Shape};
use super::tree_program;
use crate::schedule::Program;
use crate::topology::Rank;

/// each rank combines what comes from the next one, and passes it on
pub static ALGORITHM: Algorithm = Algorithm {
    name: "chain",
    summary: "each rank combines what comes from the next one, and passes it on",
    citation: "Pjesivac-Grbovic et al., Cluster Computing 10 (2007)",
    builder: Some(program),
    mirrors: Some(&super::super::bcast::chain::ALGORITHM),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    tree_program(me, shape, 0, chain)
}
