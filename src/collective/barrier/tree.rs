//! Up a tree of radix r to rank 0 and down again: twice the broadcast of an empty message, `2 ceil(log_r P) ((r-1) g + L)` at most, with
//! 2 (P - 1) messages.

use super::super::tree::{knomial, up_and_down};
use super::super::{Algorithm, Parameters, Shape};
use crate::schedule::Program;
use crate::topology::Rank;

/// up and down a tree of radix r
pub static ALGORITHM: Algorithm = Algorithm {
    name: "tree",
    summary: "up a tree of radix r (default 2) to rank 0 and down again",
    citation: "Pjesivac-Grbovic et al., Cluster Computing 10 (2007)",
    radices: &[2, 4, 8],
    builder: Some(program),
    tree: Some(|v, n, radix| knomial(v, n, radix.max(2))),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, parameters: &Parameters) -> Program {
    up_and_down(&knomial(me, shape.ranks, parameters.radix.max(2)))
}
