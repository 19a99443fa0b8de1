//! Down a tree of radix r: `(r-1) sum_j g(r^j m) + log_r P L` for j below `log_r P` and `P = r^q`. Flatter than the binomial one: fewer latencies for
//! more gaps.

use super::super::tree::{knomial, subtree_of};
use super::super::{Algorithm, Parameters};
use super::down;

/// tree of radix r (default 4)
pub static ALGORITHM: Algorithm = Algorithm {
    name: "knomial",
    summary: "tree of radix r (default 4), a message for each subtree",
    citation: "Pjesivac-Grbovic et al., Cluster Computing 10 (2007)",
    radices: &[3, 4, 8],
    builder: Some(|me, shape, parameters: &Parameters| {
        let radix = if parameters.radix == 0 { 4 } else { parameters.radix };
        down(me, shape, |v, n| knomial(v, n, radix), |v, n| subtree_of(v, n, radix))
    }),
    ..Algorithm::NEW
};
