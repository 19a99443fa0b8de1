//! Where the ranks of a communicator are in a policy's world.

use crate::error::{Error, Result};
use crate::names;
use crate::policy::{CompiledPolicy, Policy, fnv1a};
use crate::topology::Rank;
use rustc_hash::FxHashMap;

/// Where a rank of a communicator is in the policy's world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// The policy's group.
    pub group: usize,
    /// The position in that group.
    pub position: usize,
}

/// Finds each rank's place by its host.
///
/// # Errors
/// [`Error::Data`] with the first host that no group of the policy has.
pub fn members(policy: &Policy, hosts: &[String]) -> Result<Vec<Location>> {
    // a host is in one group
    let mut positions: FxHashMap<&str, Vec<Location>> = FxHashMap::default();
    for (group, g) in policy.groups.iter().enumerate() {
        g.hosts.iter().enumerate().for_each(|(position, h)| positions.entry(h).or_default().push(Location { group, position }));
    }
    let mut used: FxHashMap<&str, usize> = FxHashMap::default();
    let mut find = |host: &String| {
        let short = host.split('.').next().unwrap_or(host);
        let (&name, positions) = positions.get_key_value(host.as_str()).or(positions.get_key_value(short))?;
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
                Error::data(format!("place rank {rank}: its host {host} is in no group of the policy for {platform}"))
            })
        })
        .collect()
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
    let host = |rank: Rank| policy.hosts(members[rank].group)[members[rank].position];
    if let Some(first) = ranks.first().map(|&rank| host(rank)) {
        ranks.sort_by_key(|&rank| (host(rank) != first, host(rank)));
    }
}
