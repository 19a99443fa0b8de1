//! Comparing ways to broadcast on the real machine: all of them in one run, turn by turn, every byte checked.
#![allow(unsafe_code)] // MPI's C interface

#[cfg(feature = "mpi")]
mod library;
#[cfg(feature = "mpi")]
mod memory;
#[cfg(feature = "mpi")]
mod mpi;
mod report;

#[cfg(feature = "mpi")]
pub use mpi::{Comparison, ENVIRONMENT, Settings, check_comparable, compare};
pub use report::{ADAPTIVE, Report, Row, TWO_LEVEL};
