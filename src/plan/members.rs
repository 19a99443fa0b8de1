//! Where the ranks of a communicator are in a policy's world.

use crate::error::{Error, Result};
use crate::names;
use crate::policy::Policy;
use crate::topology::Rank;

/// Where a rank of a communicator is in the policy's world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The policy's group.
    pub group: usize,
    /// The position in that group.
    pub position: usize,
}

/// Finds each rank's place by its host.
///
/// # Errors
/// [`Error::Data`] with the first host that no group of the policy has.
pub fn members(policy: &Policy, hosts: &[String]) -> Result<Vec<Member>> {
    let mut used: Vec<Vec<bool>> = policy.groups.iter().map(|g| vec![false; g.hosts.len()]).collect();
    let mut find = |host: &String| {
        let short = host.split('.').next().unwrap_or(host);
        let group = policy.groups.iter().position(|g| g.hosts.iter().any(|h| h == host || h == short))?;
        // the k-th rank of a host takes the host's k-th position; ranks beyond share the first
        let own = |k: &usize| policy.groups[group].hosts[*k] == *host || policy.groups[group].hosts[*k] == short;
        let places: Vec<usize> = (0..policy.groups[group].hosts.len()).filter(own).collect();
        let position = places.iter().copied().find(|&k| !used[group][k]).or(places.first().copied())?;
        used[group][position] = true;
        Some(Member { group, position })
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

/// How ranks are placed: a hash (FNV-1a) of each rank's group.
pub fn placement(members: &[Member]) -> String {
    let hash = members.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, m| (hash ^ m.group as u64).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

/// The groups that take part, each as the policy's group and its ranks: the root's first, then by first rank; the coordinator, which
/// is the root or else the lowest rank, comes first in its group.
pub fn group_ranks(members: &[Member], root: Rank) -> Vec<(usize, Vec<Rank>)> {
    let mut groups: Vec<(usize, Vec<Rank>)> = Vec::new();
    for rank in std::iter::once(root).chain((0..members.len()).filter(|&r| r != root)) {
        match groups.iter_mut().find(|g| g.0 == members[rank].group) {
            Some(g) => g.1.push(rank),
            None => groups.push((members[rank].group, vec![rank])),
        }
    }
    groups
}
