//! The MPI library's own broadcast: a candidate like the others, measured and not modelled, so that adaptive is never a loss.

use super::super::{Algorithm, NATIVE};

/// The library's own broadcast.
pub static ALGORITHM: Algorithm =
    Algorithm { name: NATIVE, summary: "the MPI library's own broadcast", citation: "the MPI library in use", ..Algorithm::NEW };
