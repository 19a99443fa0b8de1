//! All send to the root, which combines one vector after the other: `(P-1) max(g(m), or(m) + c(m)) + L` or a little more. Best for few ranks.

use super::super::tree::flat;
use super::super::{Algorithm, Parameters, Shape};
use super::tree_program;
use crate::schedule::Program;
use crate::topology::Rank;

/// all to the root
pub static ALGORITHM: Algorithm = Algorithm {
    name: "flat",
    summary: "all to the root",
    citation: "Pjesivac-Grbovic et al., Cluster Computing 10 (2007)",
    builder: Some(program),
    mirrors: Some(&super::super::bcast::flat::ALGORITHM),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    tree_program(me, shape, 0, flat)
}
