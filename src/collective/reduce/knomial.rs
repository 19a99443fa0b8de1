//! Up a tree of radix r: at most `ceil(log_r P) ((r-1) max(g(m), or(m) + c(m)) + L)` or a little more, with fewer latencies than the binomial one.

use super::super::tree::knomial;
use super::super::{Algorithm, Parameters, Shape};
use super::tree_program;
use crate::schedule::Program;
use crate::topology::Rank;

/// tree of radix r (default 4)
pub static ALGORITHM: Algorithm = Algorithm {
    name: "knomial",
    summary: "tree of radix r (default 4)",
    citation: "Pjesivac-Grbovic et al., Cluster Computing 10 (2007)",
    radices: &[3, 4, 8],
    builder: Some(program),
    mirrors: Some(&super::super::bcast::knomial::ALGORITHM),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, parameters: &Parameters) -> Program {
    tree_program(me, shape, 0, |v, n| knomial(v, n, if parameters.radix == 0 { 4 } else { parameters.radix }))
}
