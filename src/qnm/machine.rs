//! Where the processes of an application are, and what their messages take.

use super::{Library, Neighbourhood, Partners, Phase, Service, Station};
use crate::collective::bcast;
use crate::error::{Error, Result};
use crate::model::{Cost, CostModel};
use crate::plan::{Location, PolyModel};
use crate::platform::{HostParameters, Platform};
use crate::policy::CompiledPolicy;
use crate::topology::Link;
use serde::Serialize;
use std::collections::BTreeMap;

/// How processes are dealt out to nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Each node is filled before the next one.
    #[default]
    Block,
    /// Round robin over all nodes.
    Cyclic,
    /// One process on each node.
    OnePerNode,
}

/// What a message takes, in seconds. Inside a node it takes nothing of the network.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Message {
    /// From its start until it is there.
    transit_s: f64,
    /// Its node's port is kept from sending another one.
    port_s: f64,
    /// The least time between its start and that of the next one by the same process.
    gap_s: f64,
    /// The processors at both ends are busy.
    overhead_s: f64,
}

/// What a message of so many bytes takes from one node to another, or inside one.
type Messages<'a> = Box<dyn Fn(usize, usize, f64) -> Message + 'a>;

/// Nodes and what is between them.
pub struct Machine<'a> {
    /// What it is, for reports.
    pub name: String,
    /// Processors of a node.
    pub cores: usize,
    /// The group of each node; none: as many alike nodes as are asked for.
    pub nodes: Vec<usize>,
    /// The names of the groups.
    pub groups: Vec<String>,
    /// How fast the processors of each group are, as a multiple of those where the reports were made.
    pub clock: Vec<f64>,
    /// Whose algorithms collectives run.
    pub library: Library,
    message: Messages<'a>,
}

/// At most so many messages stand for all, or those of one node.
const PAIRS: usize = 4096;

impl<'a> Machine<'a> {
    /// Alike nodes, as many as are asked for or `nodes`; a message takes the same between any two processes.
    pub fn alike(cores: usize, nodes: Option<usize>, latency_s: f64, bytes_per_s: f64) -> Result<Machine<'a>> {
        if !(latency_s.is_finite() && latency_s >= 0.0 && bytes_per_s.is_finite() && bytes_per_s > 0.0) {
            return Err(Error::invalid(format!("use a latency of {latency_s} s and a bandwidth of {bytes_per_s} bytes/s")));
        }
        Ok(Machine {
            name: "alike nodes".into(),
            cores,
            nodes: vec![0; nodes.unwrap_or(0)],
            groups: vec!["nodes".into()],
            clock: vec![1.0],
            library: Library::default(),
            message: Box::new(move |_, _, bytes| Message {
                transit_s: latency_s + bytes / bytes_per_s,
                port_s: bytes / bytes_per_s,
                ..Message::default()
            }),
        })
    }

    /// The hosts of a platform. A message inside a host takes nothing of the network.
    ///
    /// # Errors
    /// [`Error::Invalid`] if its hosts' `gap_s_per_byte` is not said: their network would take no time.
    pub fn of_platform(platform: &Platform, cores: usize) -> Result<Machine<'a>> {
        let groups = platform.host_groups();
        let count = platform.groups.len();
        let latency: Vec<Vec<f64>> = (0..count).map(|a| (0..count).map(|b| platform.group_latency(a, b)).collect()).collect();
        let share: Vec<Vec<f64>> = (0..count)
            .map(|a| (0..count).map(|b| platform.link(a, b).and_then(|l| l.bandwidth_bytes_per_s).map_or(0.0, f64::recip)).collect())
            .collect();
        let gap = |(host, p): (usize, &HostParameters)| {
            let name = &platform.host_names()[host];
            p.gap_s_per_byte.ok_or_else(|| Error::invalid(format!("predict on \"{}\": host {name} has no gap_s_per_byte", platform.name)))
        };
        let hosts = platform.host_parameters();
        let port: Vec<f64> = hosts.iter().enumerate().map(gap).collect::<Result<_>>()?;
        let start: Vec<f64> = hosts.iter().map(|p| p.gap_s.unwrap_or(0.0)).collect();
        // what is not said takes no time
        let busy = |each: Option<f64>, byte: Option<f64>| (each.unwrap_or(0.0), byte.unwrap_or(0.0));
        let sends: Vec<(f64, f64)> = hosts.iter().map(|p| busy(p.send_overhead_s, p.send_overhead_s_per_byte)).collect();
        let receives: Vec<(f64, f64)> = hosts.iter().map(|p| busy(p.recv_overhead_s, p.recv_overhead_s_per_byte)).collect();
        Ok(Machine {
            name: platform.name.clone(),
            cores,
            nodes: groups.clone(),
            groups: platform.groups.iter().map(|g| g.name.clone()).collect(),
            clock: vec![1.0; count],
            library: Library::default(),
            message: Box::new(move |a, b, bytes| {
                let (from, to) = (groups[a], groups[b]);
                let way = bytes * port[a].max(port[b]).max(share[from][to]);
                let (transit_s, port_s) = if a == b { (0.0, 0.0) } else { (latency[from][to] + way, bytes * port[a]) };
                let overhead_s = sends[a].0 + receives[b].0 + bytes * (sends[a].1 + receives[b].1);
                Message { transit_s, port_s, gap_s: start[a], overhead_s }
            }),
        })
    }

    /// The hosts of a policy, with the models that were fitted to their links. A message inside a host takes nothing of the network.
    ///
    /// # Errors
    /// As [`PolyModel::new`].
    pub fn of_policy(policy: &'a CompiledPolicy, cores: usize) -> Result<Machine<'a>> {
        let groups = &policy.policy.groups;
        // a host is listed once for each of its ranks: its first one stands for it
        let first = |hosts: &[String], k: usize| hosts[..k].iter().all(|h| *h != hosts[k]);
        let members: Vec<Location> = (0..groups.len())
            .flat_map(|g| {
                (0..groups[g].hosts.len()).filter(move |&k| first(&groups[g].hosts, k)).map(move |k| Location { group: g, position: k })
            })
            .collect();
        // all groups have models for all sizes, or none
        PolyModel::new(policy, &members, &bcast::COLLECTIVE, 1)?;
        Ok(Machine {
            name: policy.policy.provenance.platform.clone(),
            cores,
            nodes: members.iter().map(|m| m.group).collect(),
            groups: groups.iter().map(|g| g.name.clone()).collect(),
            clock: vec![1.0; groups.len()],
            library: Library::of(&policy.policy.provenance.library),
            message: Box::new(move |a, b, bytes| {
                let bytes = bytes.round() as usize;
                let cost = |bytes: usize| {
                    PolyModel::new(policy, &members, &bcast::COLLECTIVE, bytes)
                        .map_or(Cost::NEVER, |model| model.cost(Link { from: a, to: b }, bytes))
                };
                if a == b {
                    return Message::default();
                }
                let Cost { transit, gap, send_overhead, recv_overhead, .. } = cost(bytes);
                Message { transit_s: transit, port_s: gap, gap_s: cost(0).gap, overhead_s: send_overhead + recv_overhead }
            }),
        })
    }

    /// The node of each rank. More ranks than processors share them evenly.
    ///
    /// # Errors
    /// No ranks, or one a node on fewer nodes.
    pub fn place(&self, ranks: usize, spread: Spread) -> Result<Vec<usize>> {
        if ranks == 0 || self.cores == 0 {
            return Err(Error::invalid(format!("place {ranks} ranks on nodes of {} processors", self.cores)));
        }
        let least = ranks.div_ceil(self.cores);
        let nodes = match (self.nodes.len(), spread) {
            (0, Spread::OnePerNode) => ranks,
            (0, _) => least,
            (nodes, _) => nodes,
        };
        let on_each = self.cores.max(ranks.div_ceil(nodes));
        match spread {
            Spread::Block => Ok((0..ranks).map(|r| r / on_each).collect()),
            Spread::Cyclic => Ok((0..ranks).map(|r| r % nodes).collect()),
            Spread::OnePerNode if ranks > nodes => {
                Err(Error::invalid(format!("place {ranks} ranks, one a node: {} has {nodes} nodes", self.name)))
            }
            Spread::OnePerNode => Ok((0..ranks).collect()),
        }
    }

    /// The group of a node.
    pub fn group(&self, node: usize) -> usize {
        self.nodes.get(node).copied().unwrap_or(0)
    }

    /// Seconds of a message of so many bytes among ranks so placed, in the mean over phases. In a phase the messages that leave a node share
    /// its port, and all wait for the slowest, but with [`Partners::Anyone`]: there ranks go on to their next partner.
    pub fn message_s(&self, placed: &[usize], partners: Partners, neighbours: Neighbourhood, bytes: f64) -> f64 {
        let phases = neighbours.phases(partners, placed.len());
        let ways: Vec<(Phase, f64)> = phases.into_iter().map(|phase| (phase, 1.0)).collect();
        self.phases_s(placed, (placed.len(), 1), &ways, partners == Partners::Anyone, bytes)
    }

    /// The same for phases that come so often, among so many ranks that are so far from each other, as all others are among as many at the
    /// same time; ranks wait for each other, or go on.
    pub fn phases_s(&self, placed: &[usize], among: (usize, usize), phases: &[(Phase, f64)], goes_on: bool, bytes: f64) -> f64 {
        let (members, stride) = among;
        let partner = |phase: &Phase, rank: usize| {
            let place = rank / stride % members;
            phase.partner(place, members).map(|other| rank - place * stride + other * stride).filter(|other| *other < placed.len())
        };
        let mut nodes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        placed.iter().enumerate().for_each(|(rank, node)| nodes.entry(*node).or_default().push(rank));
        // some nodes stand for all, evenly
        let step = (placed.len() * phases.len()).div_ceil(PAIRS).max(1);
        let seconds = |phase: &Phase| {
            let of_node = |(node, ranks): (&usize, &Vec<usize>)| {
                let to = ranks.iter().filter_map(|rank| partner(phase, *rank)).map(|other| placed[other]);
                let leaving = to.clone().filter(|other| other != node).count();
                let message = |other: usize| {
                    let Message { transit_s, port_s, .. } = (self.message)(*node, other, bytes);
                    if other == *node { transit_s } else { transit_s + (leaving - 1) as f64 * port_s }
                };
                let each = to.map(message);
                if goes_on { each.sum::<f64>() / ranks.len() as f64 } else { each.fold(0.0, f64::max) }
            };
            let of_nodes = nodes.iter().step_by(step).map(of_node);
            if goes_on { of_nodes.sum::<f64>() / nodes.len().div_ceil(step) as f64 } else { of_nodes.fold(0.0, f64::max) }
        };
        let all: f64 = phases.iter().map(|way| way.1).sum();
        if all > 0.0 { phases.iter().map(|(phase, often)| often * seconds(phase)).sum::<f64>() / all } else { 0.0 }
    }

    /// The least time between the starts of two messages of a process among ranks so placed, in seconds.
    pub fn gap_s(&self, placed: &[usize]) -> f64 {
        self.mean(placed, |from, to| (self.message)(from, to, 0.0).gap_s)
    }

    /// Seconds that processors at both ends of a message are busy among ranks so placed; 0 where that is not known.
    pub fn overhead_s(&self, placed: &[usize], bytes: f64) -> f64 {
        self.mean(placed, |from, to| (self.message)(from, to, bytes).overhead_s)
    }

    /// The mean over messages from some nodes to the next.
    fn mean(&self, placed: &[usize], of: impl Fn(usize, usize) -> f64) -> f64 {
        let nodes: Vec<usize> = self.loads(placed).into_keys().collect();
        let step = nodes.len().div_ceil(PAIRS).max(1);
        let pairs: Vec<(usize, usize)> = (0..nodes.len()).step_by(step).map(|k| (nodes[k], nodes[(k + 1) % nodes.len()])).collect();
        pairs.iter().map(|&(from, to)| of(from, to)).sum::<f64>() / pairs.len().max(1) as f64
    }

    /// The processors as stations: each rank asks all ranks' processors for so many seconds in all, alike.
    pub fn stations(&self, placed: &[usize], asked_s: f64) -> Vec<Station> {
        let mut alike: BTreeMap<usize, usize> = BTreeMap::new();
        for ranks in self.loads(placed).into_values() {
            *alike.entry(ranks).or_default() += 1;
        }
        let station = |(ranks, count): (usize, usize)| Station {
            demand_s: asked_s * ranks as f64 / placed.len() as f64,
            count,
            service: if self.cores == 1 { Service::Queue } else { Service::servers(self.cores.min(placed.len())) },
        };
        alike.into_iter().map(station).collect()
    }

    /// True if ranks share a node all of whose processors are busy.
    pub fn is_busy(&self, placed: &[usize]) -> bool {
        self.cores > 1 && self.loads(placed).into_values().any(|ranks| ranks >= self.cores)
    }

    /// True if some node has more ranks than processors: then they compute in turns.
    pub fn is_crowded(&self, placed: &[usize]) -> bool {
        self.loads(placed).into_values().any(|ranks| ranks > self.cores)
    }

    /// The ranks on each node that has any.
    pub fn loads(&self, placed: &[usize]) -> BTreeMap<usize, usize> {
        let mut loads = BTreeMap::new();
        placed.iter().for_each(|node| *loads.entry(*node).or_insert(0) += 1);
        loads
    }
}
