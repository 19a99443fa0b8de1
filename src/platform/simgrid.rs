//! A platform as a SimGrid platform file (DTD version 4.1), so that real MPI programs run on it under SMPI.
//!
//! A group is a cluster zone: each host has a link of its own to the group's router. A pair of groups has a link. One-way latencies
//! are the platform's: half of the group's on each host's link, and the rest of the way on the link between groups.

use super::Platform;
use std::fmt::Write;

/// What smpirun is best told: the latencies and bandwidths of the file as they stand, and no time for computing, so that runs
/// repeat to the digit.
pub const OPTIONS: &[&str] = &[
    "--cfg=smpi/simulate-computation:no",
    "--cfg=smpi/lat-factor:0:1",
    "--cfg=smpi/bw-factor:0:1",
    "--cfg=network/crosstraffic:0",
    "--cfg=smpi/host-speed:1Gf",
    "--log=xbt_cfg.thresh:warning",
];

/// The platform's bandwidth where a file states none: 1 Gbit/s of payload.
const BANDWIDTH: f64 = 117.5e6;

/// The platform file.
pub fn xml(platform: &Platform) -> String {
    let mut out = String::from(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n<zone id=\"all\" routing=\"Full\">\n",
    );
    let n = platform.groups.len();
    let (parameters, names) = (platform.host_parameters(), platform.host_names());
    let ranks = platform.group_ranks();
    let half = |g: usize| inside(platform, g) / 2.0;
    for (g, group) in platform.groups.iter().enumerate() {
        let _ = writeln!(out, "  <zone id=\"{}\" routing=\"Floyd\">", group.name);
        for &h in &ranks[g] {
            let bandwidth = parameters[h].gap_s_per_byte.filter(|g| *g > 0.0).map_or(BANDWIDTH, |g| 1.0 / g);
            let _ = writeln!(out, "    <host id=\"{}\" speed=\"1Gf\"/>", names[h]);
            // up and down apart: a port sends and receives at once
            let _ = writeln!(
                out,
                "    <link id=\"{}.port\" bandwidth=\"{bandwidth:.3}Bps\" latency=\"{:.9}s\" sharing_policy=\"SPLITDUPLEX\"/>",
                names[h],
                half(g)
            );
        }
        let _ = writeln!(out, "    <router id=\"{}.router\"/>", group.name);
        for &h in &ranks[g] {
            let _ = writeln!(
                out,
                "    <route src=\"{0}\" dst=\"{1}.router\" symmetrical=\"NO\"><link_ctn id=\"{0}.port\" direction=\"UP\"/></route>\n    <route src=\"{1}.router\" dst=\"{0}\" symmetrical=\"NO\"><link_ctn id=\"{0}.port\" direction=\"DOWN\"/></route>",
                names[h], group.name
            );
        }
        out.push_str("  </zone>\n");
    }
    // links come before routes
    let mut routes = String::new();
    for (a, b) in (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))) {
        let Some(link) = platform.link(a, b) else { continue };
        let latency = (link.latency_s - half(a) - half(b)).max(0.0);
        let (a, b) = (&platform.groups[a].name, &platform.groups[b].name);
        let id = link.trunk.clone().map_or(format!("{a}.{b}"), |t| format!("{t}.{a}.{b}"));
        let bandwidth = link.bandwidth_bytes_per_s.unwrap_or(BANDWIDTH);
        let _ =
            writeln!(out, "  <link id=\"{id}\" bandwidth=\"{bandwidth:.3}Bps\" latency=\"{latency:.9}s\" sharing_policy=\"SPLITDUPLEX\"/>");
        for (from, to, direction) in [(a, b, "UP"), (b, a, "DOWN")] {
            let _ = writeln!(
                routes,
                "  <zoneRoute src=\"{from}\" dst=\"{to}\" gw_src=\"{from}.router\" gw_dst=\"{to}.router\" symmetrical=\"NO\"><link_ctn id=\"{id}\" direction=\"{direction}\"/></zoneRoute>"
            );
        }
    }
    out.push_str(&routes);
    out.push_str("</zone>\n</platform>\n");
    out
}

/// The latency inside a group; for a group of one, that of its nearest group, which its port cannot exceed.
fn inside(platform: &Platform, g: usize) -> f64 {
    let nearest = || (0..platform.groups.len()).filter_map(|o| platform.link(g, o)).map(|l| l.latency_s).fold(f64::INFINITY, f64::min);
    platform.groups[g].latency_s.unwrap_or_else(|| if platform.groups.len() > 1 { nearest() / 2.0 } else { 0.0 })
}
