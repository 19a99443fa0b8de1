//! Which nodes there are, and where the ranks of a job go.

use anyhow::{Result, bail, ensure};
use collwise::names;
use collwise::platform::Platform;
use std::collections::BTreeSet;

/// A node: a network namespace with an address and a host name of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its host name.
    pub name: String,
    /// Its address.
    pub ip: [u8; 4],
    /// Its group in the platform; the manager, from which jobs are started, has none.
    pub group: Option<usize>,
    /// How many hosts of the platform it stands for.
    pub slots: usize,
}

/// The manager's name.
pub const MANAGER: &str = "manager";

impl Node {
    /// Its address in words.
    pub fn address(&self) -> String {
        self.ip.map(|b| b.to_string()).join(".")
    }
}

/// Linux takes no longer host name.
const MOST_BYTES: usize = 64;

/// The nodes of a platform: one for each group, or one for each host; and the manager. Their names are safe in commands and paths.
pub fn nodes(platform: &Platform, by_host: bool) -> Result<Vec<Node>> {
    let names = platform.host_names();
    let mut all = Vec::new();
    for (g, (group, ranks)) in platform.groups.iter().zip(platform.group_ranks()).enumerate() {
        if g >= 250 || (by_host && ranks.len() > 254) {
            bail!("bring up {}: at most 250 groups of 254 hosts have addresses", platform.name);
        }
        let node = |k: usize, name: &str, slots| Node { name: name.into(), ip: [10, 77, g as u8 + 1, k as u8 + 1], group: Some(g), slots };
        if by_host {
            all.extend(ranks.iter().enumerate().map(|(k, &r)| node(k, &names[r], 1)));
        } else {
            all.push(node(0, &group.name, ranks.len()));
        }
    }
    all.push(Node { name: MANAGER.into(), ip: [10, 77, 251, 1], group: None, slots: 0 });
    let mut seen = BTreeSet::new();
    for Node { name, .. } in &all {
        // platforms that were read have such names only; what becomes part of commands, as root, is looked at again
        ensure!(names::is_name(name), "make the node {}: that is no name", names::shown(name));
        ensure!(name.len() <= MOST_BYTES, "make the node {name}: host names have at most {MOST_BYTES} bytes");
        ensure!(seen.insert(name), "make the node {name}: the name is taken, by another node or by {MANAGER}, from which jobs are started");
    }
    Ok(all)
}

/// How many ranks of a job of `n` each node gets, in the order in which ranks are dealt out: groups in proportion to their hosts, each
/// at least one where `n` allows; by slot (group by group) or, for one node a host, by node (one of each group in turn).
pub fn deal(nodes: &[Node], n: usize, by_node: bool) -> Result<Vec<(String, usize)>> {
    let groups = nodes.iter().filter_map(|n| n.group).max().map_or(0, |g| g + 1);
    let mut capacity = vec![0; groups];
    nodes.iter().for_each(|n| {
        if let Some(g) = n.group {
            capacity[g] += n.slots
        }
    });
    let total: usize = capacity.iter().sum();
    if n == 0 || n > total {
        bail!("start {n} ranks: the platform has {total} hosts");
    }
    let mut want: Vec<usize> = vec![usize::from(n >= groups); groups];
    while want.iter().sum::<usize>() < n {
        // the largest remaining share first, ties to the earlier group
        let lacks = |g: usize| capacity[g] as f64 * n as f64 / total as f64 - want[g] as f64;
        let open = (0..groups).filter(|&g| want[g] < capacity[g]);
        let Some(g) = open.min_by(|&a, &b| lacks(b).total_cmp(&lacks(a))) else { break };
        want[g] += 1;
    }
    let mut order: Vec<(usize, usize, &Node)> = Vec::new(); // turn, position, node
    let mut turns = vec![0; groups];
    for (k, node) in nodes.iter().enumerate() {
        if let Some(g) = node.group {
            order.push((if by_node { turns[g] } else { 0 }, k, node));
            turns[g] += 1;
        }
    }
    order.sort_by_key(|&(turn, k, _)| (turn, k));
    let mut dealt = Vec::new();
    for (_, _, node) in order {
        let left = &mut want[node.group.unwrap_or(0)];
        let here = node.slots.min(*left);
        *left -= here;
        if here > 0 {
            dealt.push((node.name.clone(), here));
        }
    }
    Ok(dealt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn ccgrid() -> Platform {
        Platform::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../platforms/ccgrid2007.toml")).unwrap()
    }

    #[test]
    fn ranks_are_dealt_out_in_proportion() {
        let sites = nodes(&ccgrid(), false).unwrap();
        assert_eq!(sites.len(), 7);
        let counts = |n| deal(&sites, n, false).unwrap().into_iter().map(|d| d.1).collect::<Vec<_>>();
        assert_eq!(counts(24), [6, 3, 2, 1, 6, 6]);
        assert_eq!(counts(78), [20, 11, 7, 1, 20, 19]);
        assert_eq!(counts(6), [1; 6]);
        assert!(deal(&sites, 79, false).unwrap_err().to_string().contains("78 hosts"));
    }

    #[test]
    fn names_that_are_commands_become_no_nodes() {
        for name in ["orsay-x\nlink del lo", "a b", "../../x", "manager", "orsay-2", &"x".repeat(65)] {
            let mut platform = ccgrid();
            platform.groups[0].host_names = platform.host_names()[..20].to_vec();
            assert!(nodes(&platform, true).is_ok());
            platform.groups[0].host_names[0] = name.into();
            assert!(nodes(&platform, true).is_err(), "{name:?}");
            platform.groups[1].name = if name == "orsay-2" { "orsay".into() } else { name.into() };
            assert!(nodes(&platform, false).is_err(), "{name:?}");
        }
    }

    #[test]
    fn one_node_a_host_can_be_dealt_out_in_turn() {
        let hosts = nodes(&ccgrid(), true).unwrap();
        assert_eq!(hosts.len(), 79);
        let names: Vec<String> = deal(&hosts, 8, true).unwrap().into_iter().map(|d| d.0).collect();
        assert_eq!(names[..6], ["orsay-1", "grenoble-a-1", "grenoble-b-1", "grenoble-c-1", "toulouse-1", "sophia-1"]);
        assert_eq!(names.len(), 8);
    }
}
