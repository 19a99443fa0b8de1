//! Where the ranks of a communicator are in a policy's world.

use crate::error::{Error, Result};
use crate::names;
use crate::policy::{CompiledPolicy, GroupPolicy, Policy};
use crate::stats::fnv1a;
use crate::topology::Rank;
use rustc_hash::{FxHashMap, FxHashSet};

/// Where a rank of a communicator is in the policy's world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// The policy's group.
    pub group: usize,
    /// The position in that group. Of `n` positions, `n` and beyond are those of further hosts, like the tuned host at the position modulo `n`; models that know
    /// processors apart take theirs for typical ones.
    pub position: usize,
}

/// All ranks that a policy knows, one on each host, group by group.
pub fn everybody(policy: &Policy) -> Vec<Location> {
    let of = |(group, g): (usize, &GroupPolicy)| (0..g.hosts.len()).map(move |position| Location { group, position });
    policy.groups.iter().enumerate().flat_map(of).collect()
}

/// Locations by the names of hosts, the first rank's first.
type ByHost<'a> = FxHashMap<&'a str, Vec<Location>>;

/// Finds each rank's place by its host: by its full name, then by its short one.
///
/// A host that the policy lists is itself. Any other that a group has in `also` stands in for one of the group's that none of these hosts is: in the order of
/// ranks each takes the first one that is left, with all its ranks, and when none is left they share them in turn. So the same host may stand in for
/// another one in another communicator.
///
/// # Errors
/// [`Error::Data`] with the first host that no group of the policy has.
pub fn members(policy: &Policy, hosts: &[String]) -> Result<Vec<Location>> {
    // a host is in one group
    let mut positions = ByHost::default();
    for (group, g) in policy.groups.iter().enumerate() {
        g.hosts.iter().enumerate().for_each(|(position, h)| positions.entry(h).or_default().push(Location { group, position }));
    }
    if hosts.iter().any(|host| known(&positions, host).is_none()) {
        let stand_ins = stand_ins(policy, hosts, &positions);
        positions.extend(stand_ins);
    }
    let mut used: FxHashMap<&str, usize> = FxHashMap::default();
    let mut find = |host: &String| {
        let (name, positions) = known(&positions, host)?;
        // the k-th rank of a host takes the host's k-th position; ranks beyond share the first
        let k = used.entry(name).or_default();
        *k += 1;
        positions.get(*k - 1).or(positions.first()).copied()
    };
    hosts
        .iter()
        .enumerate()
        .map(|(rank, host)| {
            find(host).ok_or_else(|| {
                let (host, platform) = (names::shown(host), &policy.provenance.platform);
                Error::data(format!(
                    "place rank {rank}: its host {host} is in no group of the policy for {platform}; where it is like the hosts of one, list it there in also"
                ))
            })
        })
        .collect()
}

/// What is known of a host, with the name by which it is.
fn known<'a, 'm, V>(all: &'m FxHashMap<&'a str, V>, host: &str) -> Option<(&'a str, &'m V)> {
    let [full, short] = names::of_host(host);
    all.get_key_value(full).or(all.get_key_value(short)).map(|(name, found)| (*name, found))
}

/// The positions at which hosts stand in that have none of their own.
fn stand_ins<'a>(policy: &'a Policy, hosts: &[String], own: &ByHost) -> ByHost<'a> {
    let groups = || policy.groups.iter().enumerate();
    let also: FxHashMap<&str, usize> = groups().flat_map(|(group, g)| g.also.iter().map(move |host| (host.as_str(), group))).collect();
    let taken: FxHashSet<&str> = hosts.iter().filter_map(|host| Some(known(own, host)?.0)).collect();
    let mut free_and_all: FxHashMap<usize, (Vec<&str>, Vec<&str>, usize)> = FxHashMap::default();
    let mut found = ByHost::default();
    for host in hosts.iter().filter(|host| known(own, host).is_none()) {
        let Some((name, &group)) = known(&also, host).filter(|(name, _)| !found.contains_key(name)) else { continue };
        let tuned = &policy.groups[group].hosts;
        let (free, all, stand_ins) = free_and_all.entry(group).or_insert_with(|| {
            let is_first = |(position, host): &(usize, &String)| own[host.as_str()][0].position == *position;
            let all: Vec<&str> = tuned.iter().enumerate().filter(is_first).map(|(_, host)| host.as_str()).collect();
            (all.iter().copied().filter(|host| !taken.contains(host)).collect(), all, 0)
        });
        let further = stand_ins.checked_sub(free.len());
        // how often all were taken before
        let (like, turn) = further.map_or_else(|| (free[*stand_ins], 0), |k| (all[k % all.len()], 1 + k / all.len()));
        *stand_ins += 1;
        let beyond = turn * tuned.len();
        found.insert(name, own[like].iter().map(|at| Location { position: at.position + beyond, ..*at }).collect());
    }
    found
}

/// How ranks are placed: a hash of each rank's group.
pub fn placement(members: &[Location]) -> String {
    format!("{:016x}", fnv1a(members.iter().map(|m| m.group as u64)))
}

/// The groups that take part, each as the policy's group and its ranks: the root's first, then by first rank; the coordinator, which
/// is the root or else the lowest rank, comes first in its group.
pub fn group_ranks(members: &[Location], root: Rank) -> Vec<(usize, Vec<Rank>)> {
    let mut groups: Vec<(usize, Vec<Rank>)> = Vec::new();
    let mut places = FxHashMap::default();
    for rank in std::iter::once(root).chain((0..members.len()).filter(|&r| r != root)) {
        let place = *places.entry(members[rank].group).or_insert(groups.len());
        if place == groups.len() {
            groups.push((members[rank].group, Vec::new()));
        }
        groups[place].1.push(rank);
    }
    groups
}

/// A group's ranks host by host, in each as they are, the first one's host first: what passes from one to the next leaves each host once.
pub(super) fn host_by_host(policy: &CompiledPolicy, members: &[Location], ranks: &mut [Rank]) {
    let host = |rank: Rank| policy.host(members[rank].group, members[rank].position);
    if let Some(first) = ranks.first().map(|&rank| host(rank)) {
        ranks.sort_by_key(|&rank| (host(rank) != first, host(rank)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::bcast;
    use crate::plan::{Form, PolyModel, plan};
    use crate::topology::Link;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn names(prefix: &str, numbers: std::ops::RangeInclusive<usize>) -> Vec<String> {
        numbers.map(|k| format!("{prefix}{k}")).collect()
    }

    /// Two groups: a1 to a4 with two ranks each, b1 to b3 with one; a5 to a12 and b4 to b9 are like them.
    fn policy() -> Policy {
        let mut policy = Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap();
        policy.groups.truncate(2);
        let [a, b] = &mut policy.groups[..] else { unreachable!() };
        a.hosts = names("a", 1..=4).into_iter().flat_map(|host| [host.clone(), host]).collect();
        a.inside_host = a.models.iter().find(|m| m.model == "hockney").cloned();
        a.inside_host.as_mut().unwrap().parameters.values_mut().for_each(|p| (p.value, p.low, p.high) = (1e-9, 1e-9, 1e-9));
        (a.also, b.hosts, b.also) = (names("a", 2..=12), names("b", 1..=3), names("b", 4..=9));
        let kept: Vec<String> = policy.groups.iter().map(|g| g.name.clone()).collect();
        policy.links.retain(|link| link.between.iter().all(|name| kept.contains(name)));
        policy.collectives.clear();
        policy
    }

    fn placed(hosts: &[&str]) -> Vec<(usize, usize)> {
        let hosts: Vec<String> = hosts.iter().map(|host| host.to_string()).collect();
        members(&policy(), &hosts).unwrap().into_iter().map(|at| (at.group, at.position)).collect()
    }

    #[test]
    fn a_host_that_is_not_listed_stands_in_for_the_first_that_nobody_is() {
        // a1 and a3 are themselves, though a3 comes last
        assert_eq!(placed(&["a9", "a1", "a7", "a9", "a3"]), [(0, 2), (0, 0), (0, 6), (0, 3), (0, 4)]);
        assert_eq!(placed(&["b9", "b8", "b7"]), [(1, 0), (1, 1), (1, 2)]);
        // alone, the last of them is the first
        assert_eq!(placed(&["b7"]), [(1, 0)]);
        // the third rank of a host shares the first position, and a full name is as good as a short one
        assert_eq!(placed(&["a5", "a5", "a5.site", "a1"]), [(0, 2), (0, 3), (0, 2), (0, 0)]);
        let said = members(&policy(), &["a5".into(), "c1".into()]).unwrap_err().to_string();
        assert!(said.contains("rank 1") && said.contains("\"c1\"") && said.contains("also"), "{said}");
    }

    #[test]
    fn hosts_that_share_a_tuned_one_are_several_hosts() {
        // b1 to b3 are taken by b4 to b6, and shared by b7 to b9, and again
        assert_eq!(placed(&["b4", "b5", "b6", "b7", "b8", "b9", "b9"]), [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 5)]);
        let hosts: Vec<String> = names("a", 5..=9).into_iter().flat_map(|host| [host.clone(), host]).collect();
        let (members, policy) = (members(&policy(), &hosts).unwrap(), CompiledPolicy::new(policy()).unwrap());
        assert_eq!(members[8..], [Location { group: 0, position: 8 }, Location { group: 0, position: 9 }]);
        let numbers: BTreeSet<usize> = members.iter().map(|m| policy.host(0, m.position)).collect();
        assert_eq!(numbers.len(), 5);
        let costs = PolyModel::new(&policy, &members, &bcast::COLLECTIVE, 1).unwrap();
        let transit = |from, to| crate::model::CostModel::cost(&costs, Link { from, to }, 1).transit;
        assert!(transit(8, 9) < 1e-7 && transit(0, 1) < 1e-7, "inside a host");
        assert!(transit(0, 8) > 1e-5 && transit(1, 9) > 1e-5 && transit(0, 2) > 1e-5, "between hosts");
        let mut dealt: Vec<Rank> = vec![0, 8, 1, 4, 9];
        host_by_host(&policy, &members, &mut dealt);
        assert_eq!(dealt, [0, 1, 4, 8, 9]);
    }

    proptest! {
        #[test]
        fn hosts_stand_in_whatever_their_order_and_each_alone_while_tuned_ones_are_left(
            hosts in prop::collection::vec((prop::bool::ANY, 1usize..=12), 1..30)
        ) {
            let policy = policy();
            let hosts: Vec<String> = hosts.into_iter().map(|(a, k)| if a { format!("a{k}") } else { format!("b{}", (k - 1) % 9 + 1) }).collect();
            let found = members(&policy, &hosts).unwrap();
            prop_assert_eq!(&found, &members(&policy, &hosts).unwrap());
            let compiled = CompiledPolicy::new(policy.clone()).unwrap();
            for group in 0..2 {
                let of_group: BTreeSet<(&String, usize)> =
                    found.iter().zip(&hosts).filter(|(m, _)| m.group == group).map(|(m, host)| (host, compiled.host(group, m.position))).collect();
                let names: BTreeSet<&String> = of_group.iter().map(|(name, _)| *name).collect();
                let numbers: BTreeSet<usize> = of_group.iter().map(|(_, number)| *number).collect();
                // one number for each host
                prop_assert_eq!((names.len(), numbers.len()), (of_group.len(), of_group.len()));
                let g = &policy.groups[group];
                let (tuned, each) = if group == 0 { (4, 2) } else { (3, 1) };
                prop_assert_eq!(numbers.iter().any(|&number| number >= g.hosts.len()), names.len() > tuned);
                for (m, host) in found.iter().zip(&hosts).filter(|(m, _)| m.group == group) {
                    prop_assert!(!g.hosts.contains(host) || g.hosts[m.position] == *host, "{host} is itself");
                }
                for name in names {
                    let ranks: Vec<usize> = found.iter().zip(&hosts).filter(|(_, host)| *host == name).map(|(m, _)| m.position).collect();
                    let first = ranks[0];
                    prop_assert!(ranks.iter().enumerate().all(|(k, &position)| position == if k < each { first + k } else { first }), "{ranks:?}");
                }
            }
            // whatever is planned delivers
            let shape = bcast::COLLECTIVE.shape(hosts.len(), hosts.len() - 1, 100_000);
            let planned = plan(&compiled, &found, &bcast::COLLECTIVE, &shape).unwrap();
            let Form::Routed(routed) = &planned.form else { unreachable!("a broadcast has a route") };
            if routed.two_level.intra_group.iter().all(|inside| !inside.algorithm.is_native()) {
                crate::schedule::check(&planned.form.schedule(&shape).unwrap(), &bcast::specification(&shape)).unwrap();
            }
        }
    }
}
