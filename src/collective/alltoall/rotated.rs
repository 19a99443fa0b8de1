//! All blocks at once, each rank to its right neighbour first, so that no two begin with the same receiver.

use super::super::{Algorithm, Parameters};
use super::{directly, from_the_right};

/// all blocks at once, to the right neighbour first
pub static ALGORITHM: Algorithm = Algorithm {
    name: "rotated",
    summary: "all blocks at once, to the right neighbour first",
    citation: "Barchet-Estefanel, Mounie 2004, Table 3",
    builder: Some(|me, shape, _: &Parameters| directly(me, shape, from_the_right(me, shape.ranks), shape.ranks, 0)),
    ..Algorithm::NEW
};
