//! The MPI library's own allreduce.

use super::super::{Algorithm, NATIVE};

/// The library's own.
pub static ALGORITHM: Algorithm =
    Algorithm { name: NATIVE, summary: "the MPI library's own allreduce", citation: "the installed MPI library", ..Algorithm::NEW };
