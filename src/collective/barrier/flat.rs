//! Everybody tells rank 0, which then tells everybody: two latencies, and rank 0 takes in and sends P - 1 messages. Best for few ranks, and
//! over long ways.

use super::super::tree::{flat, up_and_down};
use super::super::{Algorithm, Parameters, Shape};
use crate::schedule::Program;
use crate::topology::Rank;

/// all to rank 0 and back
pub static ALGORITHM: Algorithm = Algorithm {
    name: "flat",
    summary: "all signal rank 0, which then signals all",
    citation: "Pjesivac-Grbovic et al., Cluster Computing 10 (2007)",
    builder: Some(program),
    tree: Some(|v, n, _| flat(v, n)),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    up_and_down(&flat(me, shape.ranks))
}
