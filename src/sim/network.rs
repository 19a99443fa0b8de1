//! A platform, resolved for the engine: numbers by rank and by pair of groups.

use crate::error::{Error, Result};
use crate::platform::{HostParameters, Irregularities, Platform};
use rustc_hash::FxHashMap;

/// A host's costs, complete.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Host {
    pub send: (f64, f64),
    pub recv: (f64, f64),
    pub gap: (f64, f64),
    /// Seconds per byte.
    pub copy: f64,
    /// Seconds per byte.
    pub combine: f64,
    pub eager_limit: usize,
    pub group: usize,
}

/// `fixed + per_byte * m`.
pub fn affine(cost: (f64, f64), bytes: usize) -> f64 {
    cost.0 + cost.1 * bytes as f64
}

/// What lies between two groups (or inside one).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wire {
    pub latency: f64,
    /// Seconds per byte of the shared pipe, and which pipe.
    pub pipe: Option<(usize, f64)>,
}

/// Everything the engine needs to know.
#[derive(Debug, Clone)]
pub struct Network {
    /// By rank.
    pub hosts: Vec<Host>,
    wires: Vec<Wire>,
    groups: usize,
    pub pipes: usize,
    pub tcp: Irregularities,
}

impl Network {
    /// Resolves a platform for ranks on the given hosts.
    pub fn new(platform: &Platform, host_of_rank: &[usize]) -> Result<Network> {
        let (parameters, groups) = (platform.host_parameters(), platform.host_groups());
        let all: Vec<Host> = parameters.iter().zip(&groups).map(|(p, &g)| resolve(platform, p, g)).collect::<Result<_>>()?;
        let mut network = Network {
            hosts: host_of_rank.iter().map(|&h| all[h]).collect(),
            wires: Vec::new(),
            groups: platform.groups.len(),
            pipes: 0,
            tcp: platform.tcp.clone().unwrap_or_default(),
        };
        network.lay_wires(platform, &overheads(&all, platform.groups.len()))?;
        Ok(network)
    }

    /// The wire from one host to another.
    pub fn wire(&self, from: &Host, to: &Host) -> &Wire {
        &self.wires[from.group * self.groups + to.group]
    }

    /// A stated latency is half a round trip and holds both ends' overheads: the wire has the rest.
    fn lay_wires(&mut self, platform: &Platform, overhead: &[f64]) -> Result<()> {
        let mut trunks: FxHashMap<(String, bool), usize> = FxHashMap::default();
        for a in 0..self.groups {
            for b in 0..self.groups {
                let stated = platform.group_latency(a, b);
                let latency = stated - (overhead[a] + overhead[b]) / 2.0;
                if latency < 0.0 && (a != b || platform.groups[a].count > 1) {
                    let (a, b) = (&platform.groups[a].name, &platform.groups[b].name);
                    return Err(Error::invalid(format!(
                        "simulate platform {}: latency_s between \"{a}\" and \"{b}\" ({stated} s) is below the hosts' own overheads",
                        platform.name
                    )));
                }
                let link = if a == b { None } else { platform.link(a, b) };
                let pipe = link.and_then(|l| l.bandwidth_bytes_per_s.map(|w| (l, w))).map(|(l, w)| {
                    // a pipe for each direction; links of one trunk share both
                    let key = l.trunk.clone().unwrap_or_else(|| format!("{}\n{}", a.min(b), a.max(b)));
                    let next = trunks.len();
                    (*trunks.entry((key, a < b)).or_insert(next), 1.0 / w)
                });
                self.wires.push(Wire { latency: latency.max(0.0), pipe });
            }
        }
        self.pipes = trunks.len();
        Ok(())
    }
}

fn resolve(platform: &Platform, p: &HostParameters, group: usize) -> Result<Host> {
    let name = &platform.groups[group].name;
    let need = |value: Option<f64>, key: &str| {
        value.ok_or_else(|| {
            Error::invalid(format!(
                "simulate platform {}: the hosts of \"{name}\" have no {key}; give it under [hosts] or in the group",
                platform.name
            ))
        })
    };
    Ok(Host {
        send: (need(p.send_overhead_s, "send_overhead_s")?, p.send_overhead_s_per_byte.unwrap_or(0.0)),
        recv: (need(p.recv_overhead_s, "recv_overhead_s")?, p.recv_overhead_s_per_byte.unwrap_or(0.0)),
        gap: (need(p.gap_s, "gap_s")?, need(p.gap_s_per_byte, "gap_s_per_byte")?),
        copy: p.copy_s_per_byte.unwrap_or(0.0),
        combine: p.combine_s_per_byte.unwrap_or(0.0),
        eager_limit: p.eager_limit_bytes.unwrap_or(usize::MAX),
        group,
    })
}

/// The mean of send and receive overhead over each group's hosts.
fn overheads(hosts: &[Host], groups: usize) -> Vec<f64> {
    let of = |g: usize| {
        let own: Vec<f64> = hosts.iter().filter(|h| h.group == g).map(|h| h.send.0 + h.recv.0).collect();
        crate::stats::mean(&own).unwrap_or(0.0)
    };
    (0..groups).map(of).collect()
}
