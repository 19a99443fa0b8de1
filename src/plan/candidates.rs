//! Ways across groups, ranked by what they are predicted to take and by what predictions missed. Tuning ranks so what it measures, and where no row fits
//! it decides what is done.

use super::across::{TwoLevelParameters, seconds_within};
use super::{Location, whole};
use crate::error::{Error, Result};
use crate::policy::{CompiledPolicy, PER_GROUP};
use crate::topology::Rank;

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

    /// Adds one that is not there yet. `missed`: what is measured over what is predicted, as far as is known. What is too large to be predicted, or
    /// is predicted to take longer than `limit_s`, is expected never to end.
    ///
    /// # Errors
    /// Those of [`super::seconds`].
    pub fn add(&mut self, way: Way, missed: f64, limit_s: f64) -> Result<()> {
        if self.contains(&way) {
            return Ok(());
        }
        let predicted = match way {
            None => whole(self.policy, self.members, self.root, self.bytes).map(|plan| plan.predicted_s),
            Some(way) => seconds_within(self.policy, self.members, self.root, self.bytes, way, limit_s),
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

    /// All of them, as they were added.
    pub fn iter(&self) -> impl Iterator<Item = &WayTime> {
        self.all.iter()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The one that is expected to be the fastest; of equals the first.
    pub fn best(&self) -> Option<&WayTime> {
        self.all.iter().min_by(|a, b| a.expected.total_cmp(&b.expected))
    }

    /// The best with the same inter-group algorithm.
    pub fn best_like(&self, way: &Way) -> Option<&WayTime> {
        let alike = self.all.iter().filter(|known| way_name(&known.way) == way_name(way));
        alike.min_by(|a, b| a.expected.total_cmp(&b.expected))
    }

    /// The best of each inter-group algorithm, in the order in which these were first added.
    pub fn best_of_each(&self) -> Vec<WayTime> {
        let mut best: Vec<WayTime> = Vec::new();
        for candidate in &self.all {
            match best.iter_mut().find(|known| way_name(&known.way) == way_name(&candidate.way)) {
                Some(known) if candidate.expected < known.expected => *known = *candidate,
                Some(_) => {}
                None => best.push(*candidate),
            }
        }
        best
    }
}
