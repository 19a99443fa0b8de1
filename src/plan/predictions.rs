//! What broadcasts over groups are predicted to take: each is predicted once, however often it is asked about.

use super::across::predict_within;
use super::common::Common;
use super::routed::{Inside, Routed, busy, put_together};
use super::{Location, TwoLevelChoice, group_ranks};
use crate::decide::placed;
use crate::error::Result;
use crate::intercluster::count;
use crate::policy::CompiledPolicy;
use crate::predict::EVENTS;
use crate::schedule::pieces;
use crate::topology::Rank;
use crate::two_level::{InterGroup, ROUTED, TwoLevel};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};

/// A message is sent and arrives.
const EVENTS_OF_MESSAGE: u64 = 2;
/// However few may be left, a schedule may have so many messages for each rank: a pipeline is looked at for 12 segments, or more where it has few.
const MOST_EACH: usize = 32;

/// Predictions for the members of one communicator.
pub struct Predictions<'a> {
    pub(super) policy: &'a CompiledPolicy,
    pub(super) members: &'a [Location],
    common: Common<'a>,
    found: RefCell<FxHashMap<TwoLevel, Found>>,
    /// By size and coordinator, who alone is another one where the root is.
    inside: RefCell<FxHashMap<(usize, Rank), Option<Inside>>>,
    /// They replay events as long as this thread has replayed fewer than so many in all.
    end: Cell<u64>,
}

/// What is known of one, in seconds.
#[derive(Clone, Copy)]
enum Found {
    Takes(f64),
    /// It was cut off there.
    TakesLongerThan(f64),
}

impl<'a> Predictions<'a> {
    /// None yet.
    pub fn new(policy: &'a CompiledPolicy, members: &'a [Location]) -> Predictions<'a> {
        Predictions::of(Common::new(policy, members))
    }

    /// None yet, but for what they have in common.
    pub(super) fn of(common: Common<'a>) -> Predictions<'a> {
        let (policy, members) = (common.policy, common.members);
        Predictions { policy, members, common, found: RefCell::default(), inside: RefCell::default(), end: Cell::new(u64::MAX) }
    }

    /// From now on no more than so many events are replayed, but for what was begun.
    pub(super) fn replay_at_most(&self, events: u64) {
        self.end.set(EVENTS.get() + events);
    }

    /// How many events may still be replayed: a count that is the same on all ranks.
    pub(super) fn events_left(&self) -> u64 {
        self.end.get().saturating_sub(EVENTS.get())
    }

    /// What they are for.
    pub fn policy(&self) -> &'a CompiledPolicy {
        self.policy
    }

    /// What a choice takes from a root; what takes longer than `limit_s` may take for ever.
    ///
    /// # Errors
    /// Those of [`super::seconds`].
    pub fn of_choice(&self, root: Rank, choice: &TwoLevelChoice, bytes: usize, limit_s: f64) -> Result<f64> {
        match choice {
            Some(choice) => self.within(&self.common.two_level(root, bytes, *choice)?, limit_s),
            None if limit_s < f64::INFINITY && self.least_whole(root, bytes)? > limit_s => Ok(f64::INFINITY),
            None => Ok(self.whole(root, bytes)?.predicted_s),
        }
    }

    /// As [`super::whole`].
    ///
    /// # Errors
    /// As there.
    pub(super) fn whole(&self, root: Rank, bytes: usize) -> Result<Routed> {
        put_together(self.policy, self.members, root, bytes, |group, ranks| self.inside(group, ranks, bytes))
    }

    /// What is best for the ranks of a group, the first of which has the message; `None` for one rank.
    ///
    /// # Errors
    /// As [`super::plan`].
    pub(super) fn inside(&self, group: usize, ranks: &[Rank], bytes: usize) -> Result<Option<Inside>> {
        let key = (bytes, ranks[0]);
        if let Some(known) = self.inside.borrow().get(&key) {
            return Ok(known.clone());
        }
        let found = if ranks.len() < 2 { None } else { Some(self.among(group, ranks, bytes)?) };
        self.inside.borrow_mut().insert(key, found.clone());
        Ok(found)
    }

    /// What is best for several ranks of a group.
    fn among(&self, group: usize, ranks: &[Rank], bytes: usize) -> Result<Inside> {
        let positions: Vec<usize> = ranks.iter().map(|&r| self.members[r].position).collect();
        let decision = self.policy.decide_with(ROUTED, group, &positions, bytes, &self.common.built)?;
        let busy = busy(self.policy, group, &placed(&positions, &decision.places), &decision, bytes, &self.common.built)?;
        Ok((decision, busy))
    }

    /// The least that a message takes that goes from group to group as a whole, if it takes no time inside them.
    fn least_whole(&self, root: Rank, bytes: usize) -> Result<f64> {
        let coordinators: Vec<Location> = group_ranks(self.members, root).into_iter().map(|(_, ranks)| self.members[ranks[0]]).collect();
        let no_time = || vec![0.0; coordinators.len()];
        Ok(count(&self.common.problem(&coordinators, bytes, no_time(), no_time())?))
    }

    /// As [`super::predict`]: what takes longer than `limit_s` takes for ever.
    ///
    /// # Errors
    /// As there.
    pub fn within(&self, two_level: &TwoLevel, limit_s: f64) -> Result<f64> {
        let relieved = relieved(two_level);
        let known = self.found.borrow().get(&relieved).copied();
        let found = match known {
            Some(found @ Found::Takes(_)) => found,
            Some(found @ Found::TakesLongerThan(least)) if limit_s <= least => found,
            _ => {
                let left = usize::try_from(self.events_left() / EVENTS_OF_MESSAGE).unwrap_or(usize::MAX);
                let most = left.max(MOST_EACH * self.members.len());
                let seconds = predict_within(&self.common, &relieved, limit_s, most)?;
                let found = if seconds <= limit_s { Found::Takes(seconds) } else { Found::TakesLongerThan(limit_s) };
                self.found.borrow_mut().insert(relieved, found);
                found
            }
        };
        Ok(match found {
            Found::Takes(seconds) if seconds <= limit_s => seconds,
            _ => f64::INFINITY,
        })
    }
}

/// What is predicted to take as long to the last digit, without what makes no difference to a replay: to how many peers at once a rank sends, since its
/// processor begins one send after the other anyway, and how many segments may be under way where a lane has no more.
fn relieved(two_level: &TwoLevel) -> TwoLevel {
    let in_lane = pieces(two_level.bytes, two_level.segment).div_ceil(two_level.lanes());
    let held_back = |window: usize| if window < in_lane { window } else { 0 };
    let mut relieved = TwoLevel { peers: 0, ..two_level.clone() };
    if two_level.inter_group == InterGroup::Relay {
        relieved.in_flight = held_back(two_level.in_flight);
    }
    if two_level.inter_group == InterGroup::Relay && two_level.groups.len() > 1 {
        relieved.near.iter_mut().for_each(|near| near.in_flight = held_back(near.in_flight));
        while relieved.near.pop_if(|near| near.in_flight == relieved.in_flight).is_some() {}
    }
    for inside in &mut relieved.intra_group {
        inside.parameters.peers = 0;
        if two_level.segment > 0 && inside.algorithm.tree.is_some() {
            inside.parameters.in_flight = held_back(inside.parameters.in_flight);
        }
    }
    relieved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::bcast;
    use crate::plan::{Flow, TwoLevelParameters, predict, two_level};
    use crate::policy::Policy;
    use crate::two_level::INTER_GROUP_ALGORITHMS;
    use std::path::Path;

    #[test]
    fn what_makes_no_difference_makes_none_to_the_last_digit() {
        let policy = CompiledPolicy::new(Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap()).unwrap();
        let members = crate::plan::everybody(&policy.policy);
        let (mut relieved_of, mut relieved_near) = (0, 0);
        for (inter_group, segment) in INTER_GROUP_ALGORITHMS.into_iter().flat_map(|i| [0, 8 << 10, 64 << 10].map(|s| (i, s))) {
            for intra_group in bcast::ALGORITHMS.iter().copied().filter(|a| inter_group.goes_with(a, segment > 0)) {
                for (in_flight, intra_in_flight, peers) in [(2, 2, 1), (7, 7, 0), (7, 7, 2), (0, 0, 0), (40, 3, 0)] {
                    let flow = Flow { in_flight, peers, intra_in_flight, intra_peers: Some(peers) };
                    let choice = TwoLevelParameters { inter_group, segment, flow, intra_group, by_speed: false };
                    let two_level = two_level(&policy, &members, 0, 200_000, choice).unwrap();
                    let found = Predictions::new(&policy, &members).within(&two_level, f64::INFINITY).unwrap();
                    assert_eq!(found, predict(&policy, &members, &two_level).unwrap(), "{two_level:?}");
                    relieved_of += usize::from(relieved(&two_level) != two_level);
                    relieved_near += usize::from(relieved(&two_level).near != two_level.near);
                }
            }
        }
        assert!(relieved_of > 20 && relieved_near > 5, "{relieved_of} predictions are of less, {relieved_near} by windows inside sites");
    }
}
