//! As `ring`, with blocks cut into k segments of s bytes, each of which goes on as soon as it was combined: for k times the latencies, segments are combined
//! while others are under way.

use super::super::{Algorithm, Parameters};
use super::ring;

/// the ring, segment by segment
pub static ALGORITHM: Algorithm = Algorithm {
    name: "segmented_ring",
    summary: "the ring, its blocks cut into segments that are combined while others are under way",
    citation: "Patarasuk, Yuan 2009, with the segments of Open MPI's ring",
    segmented: true,
    fits: |shape| shape.elements.commute,
    wants: "an operation that commutes",
    builder: Some(|me, shape, parameters: &Parameters| ring::segmented(me, shape, parameters.segment)),
    ..Algorithm::NEW
};
