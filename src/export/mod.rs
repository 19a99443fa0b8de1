//! What another library can carry out of a policy: for each collective and size the one of its own algorithms that is predicted to be the fastest over all of
//! the policy's ranks, in the files that the library reads.
//!
//! Whatever is written is read again by the library's rules, and is refused if a legal program would not survive it.

mod choose;
mod library;
pub mod mpich;
mod mpich_tree;
pub mod openmpi;
mod openmpi_algorithms;
pub mod openmpi_json;

pub use choose::{Class, Decisions, Rule, decide};
pub use library::{Choice, LibraryAlgorithm, Target};

use crate::collective::{Collective, Size};

/// The bytes of what all ranks give or get together, by which Open MPI looks up collectives of blocks; of others their own size.
pub fn total_bytes(collective: &Collective, ranks: usize, bytes: usize) -> usize {
    if collective.size == Size::Block { bytes.saturating_mul(ranks) } else { bytes }
}
