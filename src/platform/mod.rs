//! What a machine room is: groups of alike hosts and the links between them. The input of the simulator and the output of
//! discovery; strict TOML (`platforms/*.toml`).

pub mod generate;
mod host;
pub mod simgrid;
mod toml_file;

#[cfg(feature = "tune")]
use crate::error::{Error, Result};
use crate::names;
#[cfg(feature = "tune")]
use crate::stats::fnv1a;
use crate::topology::{LatencyMatrix, Rank};
use crate::units::{self, Seconds};
use serde::{Deserialize, Serialize};

pub use host::{HostParameters, Irregularities, Noise};

/// A platform: groups of hosts, and a link for each pair of groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Platform {
    /// Version of the file format: 1.
    pub format: u32,
    /// Short name, used in policies, reports and names of files.
    #[serde(deserialize_with = "names::de_name")]
    pub name: String,
    /// Where the numbers come from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// What is assumed and not measured, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<String>,
    /// Parameters of every host, unless its group says otherwise.
    #[serde(default, skip_serializing_if = "HostParameters::is_empty")]
    pub hosts: HostParameters,
    /// Irregularities of TCP, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<Irregularities>,
    /// Noise of measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// The groups.
    #[serde(rename = "group", default)]
    pub groups: Vec<Group>,
    /// The links between groups.
    #[serde(rename = "link", default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<GroupLink>,
}

/// Alike hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Unique name.
    #[serde(deserialize_with = "names::de_name")]
    pub name: String,
    /// The number of hosts.
    pub count: usize,
    /// Latency between two hosts of the group: half the round trip of an empty message, overheads included. Not needed for a
    /// group of one.
    #[serde(default, deserialize_with = "units::de_seconds_option", skip_serializing_if = "Option::is_none")]
    pub latency_s: Option<Seconds>,
    /// The hosts' names; `NAME-1`, `NAME-2`, ... if not given.
    #[serde(default, deserialize_with = "names::de_names", skip_serializing_if = "Vec::is_empty")]
    pub host_names: Vec<String>,
    /// Parameters that differ from the platform's.
    #[serde(default, skip_serializing_if = "HostParameters::is_empty")]
    pub hosts: HostParameters,
    /// Hosts of the group that differ from the rest of it, in order from the first host.
    #[serde(rename = "variant", default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
}

/// Some hosts of a group whose processors differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The kind of node.
    #[serde(deserialize_with = "names::de_name")]
    pub name: String,
    /// How many hosts are of this kind.
    pub count: usize,
    /// What differs.
    pub hosts: HostParameters,
}

/// The link between two groups, alike in both directions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupLink {
    /// The two groups' names.
    #[serde(deserialize_with = "names::de_two_names")]
    pub between: [String; 2],
    /// Half the round trip of an empty message, overheads included.
    #[serde(deserialize_with = "units::de_seconds")]
    pub latency_s: Seconds,
    /// What all flows between the two groups share, in each direction; unlimited if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Links with the same name of a trunk share one pipe.
    #[serde(default, deserialize_with = "names::de_name_option", skip_serializing_if = "Option::is_none")]
    pub trunk: Option<String>,
}

/// How ranks are dealt out to hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// Group by group.
    Slot,
    /// Round robin over the groups.
    Node,
}

impl Platform {
    /// A number that two platforms share only if simulations of them take as long: a hash of all that they are, and not of what is said about them.
    ///
    /// # Errors
    /// Numbers that JSON has not, which no platform has that was read.
    #[cfg(feature = "tune")]
    pub fn fingerprint(&self) -> Result<u64> {
        let text = serde_json::to_vec(&(&self.hosts, &self.tcp, &self.noise, &self.groups, &self.links));
        let text = text.map_err(|e| Error::invalid(format!("take the fingerprint of the platform: {e}")))?;
        Ok(fnv1a(text.into_iter().map(u64::from)))
    }

    /// The number of hosts.
    pub fn host_count(&self) -> usize {
        self.groups.iter().map(|g| g.count).sum()
    }

    /// The group of each host, hosts in order of groups.
    pub fn host_groups(&self) -> Vec<usize> {
        self.groups.iter().enumerate().flat_map(|(g, group)| std::iter::repeat_n(g, group.count)).collect()
    }

    /// The name of each host, in order of groups.
    pub fn host_names(&self) -> Vec<String> {
        self.groups.iter().flat_map(|g| (0..g.count).map(|k| g.host_name(k))).collect()
    }

    /// Each group's hosts, as positions in [`Platform::host_names`].
    pub fn group_ranks(&self) -> Vec<Vec<Rank>> {
        let mut next = 0;
        let mut take = |n: usize| {
            next += n;
            (next - n..next).collect()
        };
        self.groups.iter().map(|g| take(g.count)).collect()
    }

    /// The host of each rank, for one rank per host.
    pub fn place(&self, placement: Placement) -> Vec<usize> {
        let ranks = self.group_ranks();
        match placement {
            Placement::Slot => (0..self.host_count()).collect(),
            Placement::Node => {
                let longest = ranks.iter().map(Vec::len).max().unwrap_or(0);
                (0..longest).flat_map(|k| ranks.iter().filter_map(move |g| g.get(k).copied())).collect()
            }
        }
    }

    /// The link between two groups, by index.
    pub fn link(&self, a: usize, b: usize) -> Option<&GroupLink> {
        let (a, b) = (&self.groups.get(a)?.name, &self.groups.get(b)?.name);
        self.links.iter().find(|l| (&l.between[0] == a && &l.between[1] == b) || (&l.between[0] == b && &l.between[1] == a))
    }

    /// The latency between hosts of two groups (of one group: inside it). A group of one has none inside: 0. What has no link is never reached.
    pub fn group_latency(&self, a: usize, b: usize) -> Seconds {
        if a == b { self.groups[a].latency_s.unwrap_or(0.0) } else { self.link(a, b).map_or(f64::INFINITY, |l| l.latency_s) }
    }

    /// The latencies of all pairs of hosts.
    pub fn latencies(&self) -> LatencyMatrix {
        let groups = self.host_groups();
        LatencyMatrix::from_pairs(groups.len(), &format!("platform {}", self.name), |i, j| self.group_latency(groups[i], groups[j]))
    }

    /// The parameters of each host: its variant's, else its group's, else the platform's.
    pub fn host_parameters(&self) -> Vec<HostParameters> {
        let of = |g: &Group, k: usize| {
            let mut end = 0;
            let variant = g.variants.iter().find(|v| {
                end += v.count;
                k < end
            });
            let group = g.hosts.or(&self.hosts);
            variant.map_or(group.clone(), |v| v.hosts.or(&group))
        };
        self.groups.iter().flat_map(|g| (0..g.count).map(move |k| of(g, k))).collect()
    }
}

impl Group {
    /// The name of the group's k-th host.
    pub fn host_name(&self, k: usize) -> String {
        self.host_names.get(k).cloned().unwrap_or_else(|| format!("{}-{}", self.name, k + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placement_by_node_is_round_robin_over_groups() {
        let group = |name: &str, count| Group {
            name: name.into(),
            count,
            latency_s: Some(1e-5),
            host_names: vec![],
            hosts: HostParameters::default(),
            variants: vec![],
        };
        let platform = Platform {
            format: 1,
            name: "t".into(),
            source: String::new(),
            assumed: vec![],
            hosts: HostParameters::default(),
            tcp: None,
            noise: None,
            groups: vec![group("a", 3), group("b", 1), group("c", 2)],
            links: vec![],
        };
        assert_eq!(platform.place(Placement::Slot), [0, 1, 2, 3, 4, 5]);
        assert_eq!(platform.place(Placement::Node), [0, 3, 4, 1, 5, 2]);
        assert_eq!(platform.host_names()[3], "b-1");
        assert_eq!(platform.host_groups(), [0, 0, 0, 1, 2, 2]);
    }
}
