//! Groups that are near each other: links between those of one site want far fewer messages under way than those of the wide area.

use crate::flow::held_back;
use crate::policy::CompiledPolicy;
use crate::two_level::Near;
use std::collections::{BTreeMap, BTreeSet};

/// Groups are of one site, the smallest sites first, where a link between them wants at most this share of what the most demanding one wants. Latencies of a switch,
/// a site, a country and an ocean are several times apart each.
const SHARES: [f64; 3] = [1.0 / 64.0, 1.0 / 16.0, 0.25];

/// How many messages of some bytes links between groups want under way.
#[derive(Debug)]
pub(super) struct Sites {
    /// The most demanding link; `None` for one group.
    pub between: Option<usize>,
    /// The smallest sites first: what the most demanding link inside sites wants, and the site of each group, by the number of one of its groups.
    levels: Vec<(usize, BTreeMap<usize, usize>)>,
}

impl Sites {
    /// Of the links between some groups of a policy, for messages of some bytes.
    pub fn new(policy: &CompiledPolicy, groups: &BTreeSet<usize>, bytes: usize) -> Sites {
        let pairs = || groups.iter().flat_map(|&i| groups.range(i + 1..).map(move |&j| (i, j)));
        let wanted = |(i, j)| policy.link_cost(i, j, bytes).in_flight().max(policy.link_cost(j, i, bytes).in_flight());
        let all: Vec<((usize, usize), usize)> = pairs().map(|pair| (pair, wanted(pair))).collect();
        let between = all.iter().map(|link| link.1).max();
        let mut site: BTreeMap<usize, usize> = groups.iter().map(|&group| (group, group)).collect();
        let mut levels: Vec<(usize, BTreeMap<usize, usize>)> = Vec::new();
        for most in SHARES.map(|share| share * between.unwrap_or(0) as f64) {
            let before = site.clone();
            for ((i, j), _) in all.iter().filter(|link| link.1 as f64 <= most) {
                let (one, other) = (site[i].min(site[j]), site[i].max(site[j]));
                site.values_mut().filter(|name| **name == other).for_each(|name| *name = one);
            }
            let inside = all.iter().filter(|((i, j), _)| site[i] == site[j]).map(|link| link.1).max();
            if site != before {
                levels.extend(inside.map(|inside| (inside, site.clone())));
            }
        }
        Sites { between, levels }
    }

    /// What is near each other among some groups, where fewer messages are under way than `between` sites (0: nothing is said), but at least some.
    pub fn near(&self, between: usize, at_least: usize, groups: impl Iterator<Item = usize> + Clone) -> Vec<Near> {
        let mut near: Vec<Near> = Vec::new();
        for (wanted, site) in &self.levels {
            let in_flight = held_back(Some(at_least.max(*wanted)));
            if in_flight > 0 && (between == 0 || in_flight < between) {
                // larger sites with as many say the same of the smaller ones
                near.retain(|smaller| smaller.in_flight < in_flight);
                near.push(Near { in_flight, sites: groups.clone().map(|group| site.get(&group).copied().unwrap_or(group)).collect() });
            }
        }
        near
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;
    use std::path::Path;

    #[test]
    fn groups_of_a_site_are_near_each_other() {
        let policy = CompiledPolicy::new(Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap()).unwrap();
        let groups: BTreeSet<usize> = (0..policy.policy.groups.len()).collect();
        let place = |group: usize| policy.policy.groups[group].name.split('-').next().unwrap();
        for bytes in [4 << 10, 16 << 10, 32 << 10] {
            let sites = Sites::new(&policy, &groups, bytes);
            let near = sites.near(held_back(sites.between), 0, groups.iter().copied());
            for (i, j) in groups.iter().flat_map(|&i| groups.iter().map(move |&j| (i, j))) {
                assert_eq!(near[0].sites[i] == near[0].sites[j], place(i) == place(j), "{bytes} B: {} and {}", place(i), place(j));
            }
            assert!(near[0].in_flight * 4 <= sites.between.unwrap(), "{sites:?}");
            assert_eq!(sites.near(2, 0, groups.iter().copied()), [], "no fewer than between sites");
        }
        // long messages keep any link busy
        let long = Sites::new(&policy, &groups, 16 << 20);
        assert_eq!((long.between, long.near(2, 0, groups.iter().copied())), (Some(2), Vec::new()));
        let alone = Sites::new(&policy, &BTreeSet::from([3]), 1024);
        assert_eq!((alone.between, alone.near(0, 0, [3].into_iter())), (None, Vec::new()));
    }
}
