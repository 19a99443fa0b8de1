//! Collectives over groups: an algorithm inside each group and one between their coordinators.

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod bcast;
mod blocks;
mod coordinated;
mod counterparts;
mod gather;
mod hosts;
mod inter_group;
mod near;
mod reduce;
mod reduce_scatter;
mod same;
mod scatter;
mod validate;

use crate::collective::{Algorithm, Collective, Parameters};
use crate::error::Result;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

pub use bcast::{InterGroup, TwoLevel};
pub use coordinated::{Coordinated, MOST_LANES, Through, first_rank, through, through_coordinators};
pub use inter_group::{INTER_GROUP_ALGORITHMS, InterGroupAlgorithm, inter_group_algorithm};
pub use near::Near;

/// The collective whose messages take routes of their own between groups ([`InterGroupAlgorithm`]), along which they pass as a whole or in segments: the one
/// that brings one message from a root to all. The others go through coordinators ([`through`]).
pub static ROUTED: &Collective = &crate::collective::bcast::COLLECTIVE;

/// True if a collective is that one.
pub fn has_routes(collective: &Collective) -> bool {
    collective == ROUTED
}

/// An algorithm with its parameters. Of which collective it is one, whoever has it knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IntraGroup {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// What was chosen about it.
    pub parameters: Parameters,
}

impl IntraGroup {
    /// With nothing chosen about it.
    pub fn of(algorithm: &'static Algorithm) -> IntraGroup {
        IntraGroup { algorithm, parameters: Parameters::default() }
    }

    fn key(&self) -> (&str, &Parameters) {
        (self.algorithm.name, &self.parameters)
    }
}

impl Hash for IntraGroup {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl PartialOrd for IntraGroup {
    fn partial_cmp(&self, other: &IntraGroup) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for IntraGroup {
    fn cmp(&self, other: &IntraGroup) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// As files have it.
#[derive(Deserialize)]
struct Named {
    algorithm: String,
    parameters: Parameters,
}

impl Named {
    /// With the algorithm of this name.
    fn find(self, find: impl Fn(&str) -> Result<&'static Algorithm>) -> Result<IntraGroup> {
        Ok(IntraGroup { algorithm: find(&self.algorithm)?, parameters: self.parameters })
    }
}
