//! As `flat`, with blocks cut into k segments of s bytes: `(P-1) k max(g(s), or(s)) + L`, a loss on a regular network. Over TCP, messages of M1 to M2 bytes that meet
//! at a receiver are now and then lost and sent again after a fifth of a second or more; segments shorter than M1 are not.

use super::super::{Algorithm, Parameters};
use super::to_root;

/// all to the root, in segments
pub static ALGORITHM: Algorithm = Algorithm {
    name: "split_flat",
    summary: "all send to the root in segments, which shorter than TCP's irregular range escape it",
    citation: "Lastovetsky, Rychkov, O'Flynn, EuroPVM/MPI 2008",
    segmented: true,
    builder: Some(|me, shape, parameters: &Parameters| to_root(me, shape, parameters.segment)),
    ..Algorithm::NEW
};
