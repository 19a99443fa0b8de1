//! Where the kernel has netem, it delays packets itself.
//!
//! Each group has a switch, a namespace that routes; its nodes hang on it by veth pairs, and each two switches are joined by one. A pipe
//! between groups is the netem of the switch's end; NICs, and half of the latency inside a group each, are those of both ends of a node's
//! pair. What nodes add is taken off the latency between groups.

use crate::nodes::Node;
use crate::up::{Options, PREFIX, in_probe, run_batch, sysctl};
use crate::{sys, ways};
use anyhow::Result;
use collwise::platform::Platform;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::{Command, Stdio};

/// Payload of a full frame, and what its headers take besides.
const CELL: (usize, usize) = (1448, 90);

/// Why netem cannot be used for a platform, if it cannot.
pub fn obstacle(platform: &Platform) -> Option<String> {
    if let Some(link) = platform.links.iter().find(|l| l.trunk.is_some()) {
        return Some(format!("the link {} is part of a trunk, which netem cannot share among links", link.between.join(" - ")));
    }
    let works = in_probe(works_in).is_ok_and(|works| works == Some(true));
    (!works).then(|| "the kernel has no netem: load the module sch_netem (and install tc, of iproute2)".into())
}

/// True if netem works in a namespace.
pub fn works_in(namespace: &str) -> bool {
    quiet(Command::new("tc").args(["-n", namespace, "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]))
}

/// True if a command succeeds; it says nothing.
fn quiet(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// What is set up in a namespace: commands of ip and of tc.
#[derive(Default)]
struct Setup {
    ip: String,
    tc: String,
}

/// The switch of a group; the manager has one too.
fn switch(group: usize) -> String {
    format!("{PREFIX}@{group}")
}

/// Joins the nodes' namespaces, which are there.
pub fn join(platform: &Platform, nodes: &[Node], options: &Options) -> Result<()> {
    for group in 0..=platform.groups.len() {
        run_batch("ip", None, &format!("netns add {}\n", switch(group)))?;
        sys::in_network(&switch(group), || {
            // a machine without IPv6 has nothing to turn off
            let _ = sysctl("ipv6/conf/all/disable_ipv6", "1");
            sysctl("ipv4/ip_forward", "1")?;
            // a switch answers for everybody behind it
            sysctl("ipv4/conf/default/proxy_arp", "1")?;
            sysctl("ipv4/conf/default/rp_filter", "0")?;
            sysctl("ipv4/conf/all/rp_filter", "0")
        })?;
    }
    let (links, setups) = plan(platform, nodes, options);
    run_batch("ip", None, &links)?;
    for group in 0..=platform.groups.len() {
        sys::in_network(&switch(group), || {
            let devices = std::fs::read_dir("/proc/sys/net/ipv4/neigh")?.flatten().map(|d| d.file_name().to_string_lossy().into_owned());
            // and at once
            devices.filter(|d| d != "default").try_for_each(|d| sysctl(&format!("ipv4/neigh/{d}/proxy_delay"), "0"))
        })?;
    }
    for (namespace, setup) in &setups {
        run_batch("ip", Some(namespace), &setup.ip)?;
        if !setup.tc.is_empty() {
            run_batch("tc", Some(namespace), &setup.tc)?;
        }
    }
    Ok(())
}

/// The veth pairs, and what is set up in each namespace.
fn plan(platform: &Platform, nodes: &[Node], options: &Options) -> (String, BTreeMap<String, Setup>) {
    let n = platform.groups.len();
    let limit = ((options.queue_mb * 1e6 / 1500.0) as usize).max(1000);
    let netem = |device: &str, delay_s: f64, rate: Option<f64>| -> String {
        if delay_s <= 0.0 && rate.is_none() {
            return String::new();
        }
        let rate = rate.map_or(String::new(), |r| format!(" rate {r:.0}bit 0 {} {}", CELL.0, CELL.1));
        format!("qdisc add dev {device} root netem delay {:.1}us{rate} limit {limit}\n", delay_s * 1e6)
    };
    // half of a group's inner latency is spent at each node
    let half = |g: usize| if options.hosts && g < n { ways::latency_s(platform, options, g, g) / 2.0 } else { 0.0 };
    let (mut links, mut setups) = (String::new(), BTreeMap::<String, Setup>::new());
    for (k, node) in nodes.iter().enumerate() {
        let (name, group, port) = (format!("{PREFIX}{}", node.name), node.group.unwrap_or(n), format!("n{k}"));
        let _ = writeln!(links, "link add wan netns {name} type veth peer name {port} netns {}", switch(group));
        let shape = |device: &str| netem(device, half(group), ways::nic(options).filter(|_| group < n));
        let setup = setups.entry(name).or_default();
        let _ = writeln!(setup.ip, "link set lo up\naddr add {}/16 dev wan\nlink set wan mtu 1500 up", node.address());
        setup.tc.push_str(&shape("wan"));
        let setup = setups.entry(switch(group)).or_default();
        let _ = writeln!(setup.ip, "link set {port} mtu 1500 up\nroute add {}/32 dev {port}", node.address());
        setup.tc.push_str(&shape(&port));
    }
    for (i, j) in (0..=n).flat_map(|i| (i + 1..=n).map(move |j| (i, j))) {
        let _ = writeln!(links, "link add g{j} netns {} type veth peer name g{i} netns {}", switch(i), switch(j));
        for (from, to) in [(i, j), (j, i)] {
            let apart = to < n && from < n;
            let delay = if apart { ways::latency_s(platform, options, from, to) - half(from) - half(to) } else { 0.0 };
            let rate = if apart { ways::pipe(platform, options, from, to).map(|(rate, _)| rate) } else { None };
            let setup = setups.entry(switch(from)).or_default();
            let [a, b, c, _] = nodes.iter().find(|node| node.group.unwrap_or(n) == to).map_or([0; 4], |node| node.ip);
            let _ = writeln!(setup.ip, "link set g{to} mtu 1500 up\nroute add {a}.{b}.{c}.0/24 dev g{to}");
            setup.tc.push_str(&netem(&format!("g{to}"), delay, rate));
        }
    }
    for group in 0..=n {
        // an address to ask for others with
        let _ = writeln!(setups.entry(switch(group)).or_default().ip, "link set lo up\naddr add 10.77.252.{}/32 dev lo", group + 1);
    }
    (links, setups)
}

/// What passed each pipe.
pub fn counters(platform: &Platform) -> String {
    let mut out = String::new();
    for group in 0..platform.groups.len() {
        let said = Command::new("tc").args(["-s", "-n", &switch(group), "qdisc", "show"]).output();
        let said = said.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
        let _ = writeln!(out, "{}:\n{said}", platform.groups[group].name);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        options: Options,
    }

    /// The delays, in microseconds, that a packet meets on devices of namespaces.
    fn delay_us(setups: &BTreeMap<String, Setup>, way: &[(&str, &str)]) -> f64 {
        let of = |&(namespace, device): &(&str, &str)| {
            let line = setups[namespace].tc.lines().find(|l| l.starts_with(&format!("qdisc add dev {device} ")));
            line.map_or(0.0, |l| l.split("delay ").nth(1).unwrap().split("us").next().unwrap().parse().unwrap())
        };
        way.iter().map(of).sum()
    }

    #[test]
    fn every_way_has_its_latency() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../platforms/ccgrid2007.toml");
        let platform = Platform::read(std::path::Path::new(file)).unwrap();
        for hosts in [false, true] {
            let options = Cli::parse_from(["up", file].into_iter().chain(hosts.then_some("--hosts"))).options;
            let nodes = crate::nodes::nodes(&platform, hosts).unwrap();
            let (links, setups) = plan(&platform, &nodes, &options);
            assert_eq!(links.lines().count(), nodes.len() + 7 * 6 / 2, "a pair for each node, and for each two switches");
            let first = |g: usize| nodes.iter().enumerate().find(|(_, n)| n.group == Some(g)).unwrap();
            for (i, j) in (0..36).map(|k| (k / 6, k % 6)).filter(|(i, j)| i != j) {
                let ((_, from), (port, _)) = (first(i), first(j));
                let way =
                    [(format!("{PREFIX}{}", from.name), "wan".to_string()), (switch(i), format!("g{j}")), (switch(j), format!("n{port}"))];
                let way: Vec<(&str, &str)> = way.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
                let (got, want) = (delay_us(&setups, &way), platform.group_latency(i, j) * 1e6);
                assert!((got - want).abs() < 0.2 || want < 70.0, "{i} to {j}: {got} us, not {want}");
            }
            if hosts {
                let way = [(format!("{PREFIX}orsay-1"), "wan".to_string()), (switch(0), "n1".to_string())];
                let way: Vec<(&str, &str)> = way.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
                assert!((delay_us(&setups, &way) - platform.group_latency(0, 0) * 1e6).abs() < 0.2);
            }
        }
    }
}
