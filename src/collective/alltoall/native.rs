//! The MPI library's own alltoall: a candidate like the others, measured and not modelled, so that adaptive is never a loss.

use super::super::{Algorithm, NATIVE};

/// The library's own alltoall.
pub static ALGORITHM: Algorithm =
    Algorithm { name: NATIVE, summary: "the MPI library's own alltoall", citation: "the MPI library in use", ..Algorithm::NEW };
