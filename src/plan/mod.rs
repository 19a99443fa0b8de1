//! A plan: what crosses between groups and what happens inside them, put together for one communicator, root and size.

mod across;
mod adapted;
mod beyond;
mod bound;
mod candidates;
mod common;
mod decided;
mod decider;
mod farthest_first;
mod fastest;
mod form;
mod form_flow;
mod form_words;
mod forms;
mod members;
mod oldest;
mod over_all;

mod planner;
mod poly_model;
mod predictions;
mod protocol_changes;
mod routed;
mod segments;
mod sites;
mod weight;

use crate::collective::Collective;
use crate::error::{Error, Result};
use crate::policy::CompiledPolicy;
use crate::topology::Rank;
use crate::two_level::has_routes;

pub use across::{Flow, TwoLevelParameters, busiest, predict, seconds, two_level, two_level_parameters, unlike_processors};
pub use beyond::Beyond;
pub use bound::{LONG, least_between};
pub use candidates::{TwoLevelCandidate, TwoLevelCandidates, TwoLevelChoice, choice_name};
pub use decided::{NextBest, Plan, native_seconds, plan};
pub use decider::Decider;
pub use fastest::MANY_RANKS;
pub use form::{Form, Kind};
pub use form_words::FARTHEST_FIRST;
pub use forms::forms;
pub use members::{Location, everybody, group_ranks, members, placement};
pub use planner::{Planned, Planner};
pub use poly_model::PolyModel;
pub use predictions::Predictions;
pub use protocol_changes::protocol_changes_of;
pub use routed::{PlannedGroup, Routed, whole};
pub use segments::in_all_segments;

/// What is done where nothing of ours is better, in words.
pub const OWN: &str = "the MPI library's own";

/// The bytes of one message, at most: MPI counts them by an `int`. What might have a longer one is the library's own.
pub const LONGEST_MESSAGE: usize = i32::MAX as usize;

/// The rank for which it is decided what is done from a root: the first of its group, all of which are alike, or the root itself where the
/// processors differ. Whatever is planned begins here.
///
/// # Errors
/// [`Error::Invalid`] if the root is outside.
fn stand_in(policy: &CompiledPolicy, members: &[Location], collective: &Collective, root: Rank) -> Result<Rank> {
    let outside = || Error::invalid(format!("plan {} from rank {root} of {} ranks", collective.one(), members.len()));
    let group = members.get(root).ok_or_else(outside)?.group;
    let first = || members.iter().position(|m| m.group == group).unwrap_or(root);
    Ok(if policy.has_unlike_processors(group) { root } else { first() })
}

/// True if the policy has no row of a collective for such ranks.
fn untuned(policy: &CompiledPolicy, members: &[Location], collective: &'static Collective) -> bool {
    let (group, groups) = (members[0].group, &policy.policy.groups);
    if members.iter().all(|m| m.group == group) {
        return groups[group].rows(collective).is_empty();
    }
    // where no row says how a broadcast crosses groups, each group does what its own rows say
    let inside = || has_routes(collective) && groups.iter().any(|g| !g.rows(collective).is_empty());
    policy.policy.two_level(collective).is_empty() && !inside()
}

/// True if all groups are there, about as large as those that were tuned.
fn about_whole(policy: &CompiledPolicy, members: &[Location]) -> bool {
    let size = |group: usize| members.iter().filter(|m| m.group == group).count();
    (0..policy.policy.groups.len()).all(|k| policy.is_about_whole(k, size(k)))
}
