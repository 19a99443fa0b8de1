//! Up a binomial tree, the smallest subtrees first: `sum_j g(min(2^j, P - 2^j) m) + floor(log2 P) L` for j below `ceil(log2 P)`, where g is affine.

use super::super::tree::{knomial, subtree};
use super::super::{Algorithm, Parameters};
use super::up;

/// binomial tree
pub static ALGORITHM: Algorithm = Algorithm {
    name: "binomial",
    summary: "binomial tree, a message for each subtree",
    citation: "Barchet-Estefanel, Mounie 2004, Table 2; Thakur, Rabenseifner, Gropp 2005",
    builder: Some(|me, shape, _: &Parameters| up(me, shape, |v, n| knomial(v, n, 2), subtree)),
    mirrors: Some(&super::super::scatter::binomial::ALGORITHM),
    ..Algorithm::NEW
};
