//! Comparing ways to broadcast on the real machine: all of them in one run, turn by turn, every byte checked.
#![allow(unsafe_code)] // MPI's C interface

mod library;
mod memory;
mod mpi;
mod report;

pub use mpi::{Comparison, ENVIRONMENT, Settings, check_comparable, compare};
pub use report::{Report, Row};
