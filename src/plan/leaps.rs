//! The sizes at which a platform's network changes.

use crate::decide::{Leap, leaps};
use crate::policy::CompiledPolicy;
use crate::topology::Link;
use rustc_hash::FxHashMap;

/// At most so many sizes at which links change are looked at, those of the most links first: each takes two more predictions of all rivals,
/// and what one link of hundreds shows alone is most likely noise.
const MOST_LEAPS: usize = 12;

/// Where the links between groups change, and those inside, up to a size.
pub fn leaps_of(policy: &CompiledPolicy, largest: usize) -> Vec<Leap> {
    let groups = policy.policy.groups.len();
    let mut links_of: FxHashMap<Leap, usize> = FxHashMap::default();
    for (a, b) in (0..groups).flat_map(|a| (a + 1..groups).map(move |b| (a, b))) {
        let transit = |bytes: usize| policy.link_cost(a, b, bytes).transit;
        leaps(transit, largest).into_iter().for_each(|leap| *links_of.entry(leap).or_default() += 1);
    }
    for (k, group) in policy.policy.groups.iter().enumerate().filter(|(_, g)| g.hosts.len() > 1) {
        for model in &group.models {
            let Some(costs) = policy.group_costs(k, &model.model) else { continue };
            let transit = |bytes: usize| costs.cost(Link { from: 0, to: 1 }, bytes).transit;
            leaps(transit, largest).into_iter().for_each(|leap| *links_of.entry(leap).or_default() += 1);
        }
    }
    let mut all: Vec<(Leap, usize)> = links_of.into_iter().collect();
    all.sort_unstable_by_key(|&(leap, links)| (usize::MAX - links, leap));
    all.truncate(MOST_LEAPS);
    all.into_iter().map(|(leap, _)| leap).collect()
}
