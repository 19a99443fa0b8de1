//! What lies between the groups of a platform, as it is played.

use crate::router::{Server, Wires};
use crate::up::Options;
use collwise::platform::Platform;

/// Bits on the wire for a byte of payload: frames of 1,538 bytes carry 1,448.
const WIRE_BITS_PER_BYTE: f64 = 8.0 * 1538.0 / 1448.0;

/// The latency between two groups, or inside one, s.
pub fn latency_s(platform: &Platform, options: &Options, i: usize, j: usize) -> f64 {
    platform.group_latency(i, j) * options.scale
}

/// The rate of the pipe between two groups, bits on the wire per second, and the trunk that it is part of.
pub fn pipe<'a>(platform: &'a Platform, options: &Options, i: usize, j: usize) -> Option<(f64, Option<&'a str>)> {
    let link = platform.link(i, j).filter(|_| i != j)?;
    let rate = link.bandwidth_bytes_per_s.map_or(options.pair * 1e6, |b| b * WIRE_BITS_PER_BYTE) / options.scale;
    Some((rate, link.trunk.as_deref()))
}

/// The rate of a node's NIC, bits per second.
pub fn nic(options: &Options) -> Option<f64> {
    options.nic.map(|mbit| mbit * 1e6 / options.scale)
}

/// What the router needs to know.
pub fn wires(platform: &Platform, options: &Options) -> Wires {
    let n = platform.groups.len(); // the manager's group, at no distance and with no limit
    let mut wires = Wires {
        latency_ns: vec![vec![0; n + 1]; n + 1],
        pipe: vec![vec![0; n + 1]; n + 1],
        pipes: vec![Server::new(None)],
        queue_bytes: (options.queue_mb * 1e6) as usize,
        names: platform.groups.iter().map(|g| g.name.clone()).chain(["manager".into()]).collect(),
    };
    let mut trunks: Vec<(String, bool, usize)> = Vec::new(); // name, direction, pipe
    for (i, j) in (0..n * n).map(|k| (k / n, k % n)) {
        wires.latency_ns[i][j] = (latency_s(platform, options, i, j) * 1e9) as u64;
        let Some((rate, trunk)) = pipe(platform, options, i, j) else { continue };
        let shared = trunk.and_then(|name| trunks.iter().find(|t| t.0 == name && t.1 == (i < j)));
        wires.pipe[i][j] = match shared {
            Some(&(_, _, pipe)) => pipe,
            None => {
                wires.pipes.push(Server::new(Some(rate)));
                trunks.extend(trunk.map(|name| (name.into(), i < j, wires.pipes.len() - 1)));
                wires.pipes.len() - 1
            }
        };
    }
    wires
}
