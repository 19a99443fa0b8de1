//! From the last rank on, each sends its block and all that came to the one before it: `sum_j g(j m) + (P-1) L` for j = 1 to P-1.

use super::super::tree::chain;
use super::super::{Algorithm, Parameters};
use super::up;

/// each rank passes on its block and all that came
pub static ALGORITHM: Algorithm = Algorithm {
    name: "chain",
    summary: "each rank passes on its block and all that came, in one message",
    citation: "Barchet-Estefanel, Mounie 2004, Table 2",
    builder: Some(|me, shape, _: &Parameters| up(me, shape, chain, |v, n| v..n)),
    mirrors: Some(&super::super::scatter::chain::ALGORITHM),
    ..Algorithm::NEW
};
