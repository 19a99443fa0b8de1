//! Ways across groups, ranked by what they are predicted to take and by what predictions missed. Tuning ranks so what it measures, and where no row fits
//! it decides what is done.

use super::across::{TwoLevelParameters, seconds};
use super::{Location, whole};
use crate::error::{Error, Result};
use crate::policy::{CompiledPolicy, PER_GROUP};
use crate::topology::Rank;
use crate::two_level::InterGroupAlgorithm;

/// A way across groups; `None`: the whole message from group to group, and inside each what its own row says.
pub type Way = Option<TwoLevelParameters>;

/// The name of a way's inter-group algorithm in policies.
pub fn way_name(way: &Way) -> &'static str {
    way.map_or(PER_GROUP, |way| way.inter_group.name())
}

/// A way with its times, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct WayTime {
    /// The way.
    pub way: Way,
    /// As predicted.
    pub predicted: f64,
    /// As expected, with what predictions missed.
    pub expected: f64,
}

/// Candidates for a broadcast of one size from one root.
pub struct WayCandidates<'a> {
    policy: &'a CompiledPolicy,
    members: &'a [Location],
    root: Rank,
    bytes: usize,
    all: Vec<WayTime>,
}

impl<'a> WayCandidates<'a> {
    /// None yet.
    pub fn new(policy: &'a CompiledPolicy, members: &'a [Location], root: Rank, bytes: usize) -> WayCandidates<'a> {
        WayCandidates { policy, members, root, bytes, all: Vec::new() }
    }

    /// Adds one that is not there yet. `missed`: what is measured over what is predicted, as far as is known. What is too large to be predicted is
    /// expected never to end.
    ///
    /// # Errors
    /// Those of [`seconds`].
    pub fn add(&mut self, way: Way, missed: f64) -> Result<()> {
        if self.contains(&way) {
            return Ok(());
        }
        let predicted = match way {
            None => whole(self.policy, self.members, self.root, self.bytes).map(|plan| plan.predicted_s),
            Some(way) => seconds(self.policy, self.members, self.root, self.bytes, way),
        };
        let predicted = match predicted {
            Err(Error::TooLarge(_)) => f64::INFINITY,
            found => found?,
        };
        self.all.push(WayTime { way, predicted, expected: predicted * missed });
        Ok(())
    }

    /// True if it is there.
    pub fn contains(&self, way: &Way) -> bool {
        self.all.iter().any(|known| known.way == *way)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The one that is expected to be the fastest; of equals the first.
    pub fn best(&self) -> Option<&WayTime> {
        self.all.iter().min_by(|a, b| a.expected.total_cmp(&b.expected))
    }

    /// The best of each inter-group algorithm, in the order in which these were first added.
    pub fn best_of_each(&self) -> Vec<WayTime> {
        let between = |candidate: &WayTime| candidate.way.map(|way| way.inter_group);
        let mut best: Vec<(Option<InterGroupAlgorithm>, WayTime)> = Vec::new();
        for candidate in &self.all {
            match best.iter_mut().find(|(of, _)| *of == between(candidate)) {
                Some((_, known)) if candidate.expected < known.expected => *known = *candidate,
                Some(_) => {}
                None => best.push((between(candidate), *candidate)),
            }
        }
        best.into_iter().map(|(_, candidate)| candidate).collect()
    }
}
