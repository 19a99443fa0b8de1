//! Up a binomial tree, whose nodes combine the smallest subtrees first, which are there first: `ceil(log2 P) (a + m b + m c)` for powers of two.

use super::super::tree::knomial;
use super::super::{Algorithm, Parameters, Shape};
use super::tree_program;
use crate::schedule::Program;
use crate::topology::Rank;

/// binomial tree
pub static ALGORITHM: Algorithm = Algorithm {
    name: "binomial",
    summary: "binomial tree",
    citation: "Thakur, Rabenseifner, Gropp 2005",
    builder: Some(program),
    mirrors: Some(&super::super::bcast::binomial::ALGORITHM),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    tree_program(me, shape, 0, |v, n| knomial(v, n, 2))
}
