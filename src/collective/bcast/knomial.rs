//! The tree of radix r: at most `ceil(log_r P) ((r-1) g(m) + L)`, exact for `P = r^q`. Flatter than the binomial tree: fewer
//! latencies for more gaps.

use super::super::tree::{knomial, tree_program};
use super::super::{Algorithm, Parameters, Shape};
use crate::schedule::Program;
use crate::topology::Rank;

/// tree of radix r (default 4), flatter than the binomial
pub static ALGORITHM: Algorithm = Algorithm {
    name: "knomial",
    summary: "tree of radix r (default 4), flatter than the binomial",
    citation: "Pjesivac-Grbovic et al., Cluster Computing 10 (2007)",
    radices: &[3, 4, 8],
    builder: Some(program),
    tree: Some(|v, n, radix| knomial(v, n, if radix == 0 { 4 } else { radix })),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, parameters: &Parameters) -> Program {
    let radix = if parameters.radix == 0 { 4 } else { parameters.radix };
    tree_program(me, shape, &Parameters::default(), |v, n| knomial(v, n, radix))
}
