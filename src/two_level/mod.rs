//! Collectives over groups: an algorithm inside each group and one between their coordinators.

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod bcast;
mod blocks;
mod coordinated;
mod gather;
mod inter_group;
mod reduce;
mod reduce_scatter;
mod scatter;

use crate::collective::Parameters;
use serde::{Deserialize, Serialize};

pub use bcast::{InterGroup, TwoLevel};
pub use coordinated::{Coordinated, MOST_LANES, Through, through};
pub use inter_group::{INTER_GROUP_ALGORITHMS, InterGroupAlgorithm, inter_group_algorithm};

/// An algorithm with its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IntraGroup {
    /// The algorithm's name.
    pub algorithm: String,
    /// What was chosen about it.
    pub parameters: Parameters,
}
