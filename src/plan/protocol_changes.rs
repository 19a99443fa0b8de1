//! The sizes at which a platform's network changes.

use crate::decide::{ProtocolChange, protocol_changes};
use crate::policy::CompiledPolicy;
use crate::topology::Link;
use rustc_hash::FxHashMap;

/// At most so many sizes at which links change are looked at, those of the most links first: each takes two more predictions of all rivals,
/// and what one link of hundreds shows alone is most likely noise.
const MOST_CHANGES: usize = 12;

/// Where the links between groups change, and those inside, up to a size.
pub fn protocol_changes_of(policy: &CompiledPolicy, largest: usize) -> Vec<ProtocolChange> {
    let groups = policy.policy.groups.len();
    let mut links_of: FxHashMap<ProtocolChange, usize> = FxHashMap::default();
    for (a, b) in (0..groups).flat_map(|a| (a + 1..groups).map(move |b| (a, b))) {
        let transit = |bytes: usize| policy.link_cost(a, b, bytes).transit;
        protocol_changes(transit, largest).into_iter().for_each(|change| *links_of.entry(change).or_default() += 1);
    }
    for (k, group) in policy.policy.groups.iter().enumerate().filter(|(_, g)| g.hosts.len() > 1) {
        for model in &group.models {
            let Some(costs) = policy.group_costs(k, &model.model) else { continue };
            let transit = |bytes: usize| costs.cost(Link { from: 0, to: 1 }, bytes).transit;
            protocol_changes(transit, largest).into_iter().for_each(|change| *links_of.entry(change).or_default() += 1);
        }
    }
    let mut all: Vec<(ProtocolChange, usize)> = links_of.into_iter().collect();
    all.sort_unstable_by_key(|&(change, links)| (usize::MAX - links, change));
    all.truncate(MOST_CHANGES);
    all.into_iter().map(|(change, _)| change).collect()
}
