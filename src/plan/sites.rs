//! Groups that are near each other: links between those of one site want far fewer messages under way than those of the wide area.

use crate::flow::{are_fewer, held_back};
use crate::policy::CompiledPolicy;
use crate::two_level::Near;
use std::collections::{BTreeMap, BTreeSet};

/// Groups are of one site, the smallest sites first, where each link between them wants at most this share of what the most demanding one wants. What links want
/// grows with their latency and bandwidth: of a switch, a site, a country and an ocean it is several times apart each.
const SHARES: [f64; 3] = [1.0 / 64.0, 1.0 / 16.0, 0.25];

/// How many messages of some bytes links between groups want under way.
#[derive(Debug)]
pub(super) struct Sites {
    /// The most demanding link; `None` for one group.
    pub between: Option<usize>,
    /// The smallest sites first: what the most demanding link inside sites wants, and the site of each group.
    levels: Vec<(usize, BTreeMap<usize, usize>)>,
}

impl Sites {
    /// Of the links between some groups of a policy, for messages of some bytes.
    pub fn new(policy: &CompiledPolicy, groups: &BTreeSet<usize>, bytes: usize) -> Sites {
        let groups: Vec<usize> = groups.iter().copied().collect();
        let link = |i: usize, j: usize| policy.link_cost(groups[i], groups[j], bytes).in_flight();
        Sites::of_links(&groups, |i, j| link(i, j).max(link(j, i)))
    }

    /// The same, by what the link between two of the groups wants, which have places in their list.
    fn of_links(groups: &[usize], link: impl Fn(usize, usize) -> usize) -> Sites {
        let n = groups.len();
        let mut wanted = vec![0; n * n];
        for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
            wanted[i * n + j] = link(i, j);
            wanted[j * n + i] = wanted[i * n + j];
        }
        let between = wanted.iter().copied().max().filter(|_| n > 1);
        let mut near: Vec<(usize, usize)> = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).collect();
        near.sort_by_key(|&(i, j)| wanted[i * n + j]);
        // each group by itself at first, and sites that are joined have the name of the first of them
        let mut site: Vec<usize> = (0..n).collect();
        let mut levels: Vec<(usize, BTreeMap<usize, usize>)> = Vec::new();
        for most in SHARES.map(|share| share * between.unwrap_or(0) as f64) {
            let before = site.clone();
            let of = |site: &[usize], name: usize| (0..n).filter(|&k| site[k] == name).collect::<Vec<_>>();
            for &(i, j) in near.iter().take_while(|&&(i, j)| wanted[i * n + j] as f64 <= most) {
                let (one, other) = (site[i].min(site[j]), site[i].max(site[j]));
                if one == other {
                    continue;
                }
                // what is near one of a site need not be near the others
                let others = of(&site, other);
                if of(&site, one).iter().all(|&a| others.iter().all(|&b| wanted[a * n + b] as f64 <= most)) {
                    others.into_iter().for_each(|k| site[k] = one);
                }
            }
            let inside = (0..n * n).filter(|k| site[k / n] == site[k % n]).map(|k| wanted[k]).max();
            if site != before {
                levels.extend(inside.map(|inside| (inside, groups.iter().zip(&site).map(|(&group, &name)| (group, name)).collect())));
            }
        }
        Sites { between, levels }
    }

    /// What is near each other among some of the groups, where fewer messages are under way than `between` sites (0: nothing is said), but at least some.
    pub fn near(&self, between: usize, at_least: usize, groups: impl Iterator<Item = usize> + Clone) -> Vec<Near> {
        let mut near: Vec<Near> = Vec::new();
        for (wanted, site) in &self.levels {
            let in_flight = held_back(Some(at_least.max(*wanted)));
            if are_fewer(in_flight, between) {
                // larger sites with as many say the same of the smaller ones
                near.retain(|smaller| smaller.in_flight < in_flight);
                near.push(Near { in_flight, sites: groups.clone().map(|group| site[&group]).collect() });
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
        // a group behind a slow link wants little from everybody, and is no bridge
        let bridged = Sites::of_links(&[4, 5, 6], |i, j| if i == 1 || j == 1 { 2 } else { 21 });
        assert_eq!(bridged.near(21, 0, 4..7), [Near { in_flight: 2, sites: vec![0, 0, 2] }]);
        let alone = Sites::new(&policy, &BTreeSet::from([3]), 1024);
        assert_eq!((alone.between, alone.near(0, 0, [3].into_iter())), (None, Vec::new()));
    }
}
