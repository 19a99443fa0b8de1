//! Each rank gets the blocks of all that follow, and passes on all but its own: `sum_j g(j m) + (P-1) L` for j = 1 to P-1.

use super::super::tree::chain;
use super::super::{Algorithm, Parameters};
use super::down;

/// each rank passes on all blocks but its own
pub static ALGORITHM: Algorithm = Algorithm {
    name: "chain",
    summary: "each rank passes on all blocks but its own, in one message",
    citation: "Barchet-Estefanel, Mounie 2004, Table 2",
    builder: Some(|me, shape, _: &Parameters| down(me, shape, chain, |v, n| v..n)),
    ..Algorithm::NEW
};
