//! The pipeline: as `chain`, segment by segment, so that all hops work at once: `(P-1) (g(s) + L + c(s)) + (k-1) max(g(s), os(s) + or(s) + c(s))` for k segments of s
//! bytes, where one processor receives, combines and sends.

use super::super::tree::chain;
use super::super::{Algorithm, Parameters, Shape};
use super::tree_program;
use crate::schedule::Program;
use crate::topology::Rank;

/// pipeline: each rank combines and passes on segments while it receives the next
pub static ALGORITHM: Algorithm = Algorithm {
    name: "segmented_chain",
    summary: "pipeline: each rank combines and passes on segments while it receives the next",
    citation: "Pjesivac-Grbovic et al., Cluster Computing 10 (2007)",
    segmented: true,
    builder: Some(program),
    mirrors: Some(&super::super::bcast::segmented_chain::ALGORITHM),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, parameters: &Parameters) -> Program {
    tree_program(me, shape, parameters.segment, chain)
}
