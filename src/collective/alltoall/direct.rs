//! All blocks at once, to rank 0 first: everybody sends to the same ranks in the same order.

use super::super::{Algorithm, Parameters};
use super::directly;

/// all blocks at once, the receivers in the order of ranks
pub static ALGORITHM: Algorithm = Algorithm {
    name: "direct",
    summary: "all blocks at once, the receivers in the order of ranks",
    citation: "Barchet-Estefanel, Mounie 2004, Table 3",
    builder: Some(|me, shape, _: &Parameters| directly(me, shape, (0..shape.ranks).filter(|&to| to != me), shape.ranks, 0)),
    ..Algorithm::NEW
};
