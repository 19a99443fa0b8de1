//! As `rotated`, with blocks cut into segments: what is shorter than the library's eager limit does without its handshake, two latencies that a long block waits
//! for; and each byte still passes one link alone, where what goes through coordinators or counterparts passes a second one.

use super::super::{Algorithm, Parameters};
use super::{directly, from_the_right};

/// all blocks at once, in segments
pub static ALGORITHM: Algorithm = Algorithm {
    name: "split_rotated",
    summary: "all blocks at once in segments, to the right neighbour first: short ones need no handshake",
    citation: "Barchet-Estefanel, Mounie 2004, Table 3; segments as in Lastovetsky, Rychkov, O'Flynn, EuroPVM/MPI 2008",
    segmented: true,
    builder: Some(|me, shape, parameters: &Parameters| {
        directly(me, shape, from_the_right(me, shape.ranks), shape.ranks, parameters.segment)
    }),
    ..Algorithm::NEW
};
