//! The MPI library's own allreduce.

use super::super::Algorithm;

/// The library's own.
pub static ALGORITHM: Algorithm =
    Algorithm { name: "native", summary: "the MPI library's own allreduce", citation: "the installed MPI library", ..Algorithm::NEW };
