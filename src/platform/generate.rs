//! Random platforms: sites on a map, a cluster or two at each, latencies by distance.

use super::{Group, GroupLink, HostParameters, Platform};
use crate::error::{Error, Result};
use crate::stats;
use rand::Rng;

/// What is asked of a random platform.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Number of sites.
    pub sites: usize,
    /// Hosts.
    pub hosts: usize,
    /// Everything else is drawn from this.
    pub seed: u64,
}

/// Signals in fibre: 2e8 m/s, on ways that are longer than the bird's by a third.
const SECONDS_PER_KM: f64 = 1000.0 / 2e8 * 4.0 / 3.0;
/// Routers on the way.
const ROUTERS_S: f64 = 0.3e-3;
/// The map's edge, km.
const EDGE_KM: f64 = 1500.0;

/// Draws a platform: sites anywhere on a square of 1,500 km, one or two clusters at each (some 100 us apart), links between sites of
/// 0.5 or 1 Gbit/s. The same seed gives the same platform.
///
/// # Errors
/// Fewer than 2 sites or, since a site has up to two clusters, fewer than 2 hosts for each.
pub fn generate(wanted: Wanted) -> Result<Platform> {
    let Wanted { sites, hosts, seed } = wanted;
    if sites < 2 || hosts < 2 * sites {
        return Err(Error::invalid(format!("generate {sites} sites with {hosts} hosts: at least 2 sites, and 2 hosts for each")));
    }
    let mut random = stats::random(seed);
    let places: Vec<(f64, f64)> = (0..sites).map(|_| (random.random_range(0.0..EDGE_KM), random.random_range(0.0..EDGE_KM))).collect();
    let clusters: Vec<usize> = (0..sites).flat_map(|s| std::iter::repeat_n(s, random.random_range(1..=2))).collect();
    let weights: Vec<f64> = clusters.iter().map(|_| random.random_range(1.0..4.0)).collect();
    let counts = shares(&weights, hosts);
    let mut groups = Vec::new();
    for (k, site) in clusters.iter().enumerate() {
        let letter = char::from(b'a' + (clusters[..k].iter().filter(|s| *s == site).count() as u8));
        groups.push(Group {
            name: format!("site{}-{letter}", site + 1),
            count: counts[k],
            latency_s: Some(micro(random.random_range(20e-6..60e-6))),
            host_names: vec![],
            hosts: HostParameters::default(),
            variants: vec![],
        });
    }
    let mut links = Vec::new();
    for a in 0..clusters.len() {
        for b in a + 1..clusters.len() {
            let (p, q) = (places[clusters[a]], places[clusters[b]]);
            let km = ((p.0 - q.0).powi(2) + (p.1 - q.1).powi(2)).sqrt();
            let latency = if clusters[a] == clusters[b] { random.random_range(80e-6..150e-6) } else { ROUTERS_S + km * SECONDS_PER_KM };
            let bandwidth = if random.random_bool(0.5) { 58.75e6 } else { 117.5e6 };
            links.push(GroupLink {
                between: [groups[a].name.clone(), groups[b].name.clone()],
                latency_s: micro(latency),
                bandwidth_bytes_per_s: Some(bandwidth),
                trunk: None,
            });
        }
    }
    // as in the platforms that are described: TCP over gigabit Ethernet with Open MPI
    let hosts = HostParameters {
        send_overhead_s: Some(5e-6),
        send_overhead_s_per_byte: Some(0.5e-9),
        recv_overhead_s: Some(6e-6),
        recv_overhead_s_per_byte: Some(0.7e-9),
        gap_s: Some(8e-6),
        gap_s_per_byte: Some(8.5e-9),
        copy_s_per_byte: Some(0.6e-9),
        combine_s_per_byte: Some(1e-9),
        eager_limit_bytes: Some(65_536),
    };
    Ok(Platform {
        format: 1,
        name: format!("random-{sites}-{seed}"),
        source: format!("collwise generate --sites {sites} --hosts {} --seed {seed}", wanted.hosts),
        assumed: vec!["everything: a random platform".into()],
        hosts,
        tcp: None,
        noise: None,
        groups,
        links,
    })
}

/// Deals hosts out in proportion to weights: one to each, of the rest each its share rounded down, and what is left to those that lack most
/// (the method of the largest remainder).
fn shares(weights: &[f64], hosts: usize) -> Vec<usize> {
    let (total, rest) = (weights.iter().sum::<f64>(), hosts.saturating_sub(weights.len()));
    let due: Vec<f64> = weights.iter().map(|w| w / total * rest as f64).collect();
    let mut counts: Vec<usize> = due.iter().map(|d| 1 + *d as usize).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|&a, &b| due[b].fract().total_cmp(&due[a].fract()));
    let left = hosts.saturating_sub(counts.iter().sum());
    order.iter().cycle().take(left).for_each(|&k| counts[k] += 1);
    counts
}

/// Whole nanoseconds, so that files are short.
fn micro(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn platforms_are_valid_and_repeat_themselves() {
        for seed in 0..50 {
            let sites = 3 + seed as usize % 6;
            let wanted = Wanted { sites, hosts: 60, seed };
            let platform = generate(wanted).unwrap();
            let text = platform.to_toml().unwrap();
            assert_eq!(Platform::parse("p", &text).unwrap(), platform);
            assert_eq!(generate(wanted).unwrap(), platform);
        }
        assert!(generate(Wanted { sites: 1, hosts: 10, seed: 0 }).is_err());
    }

    proptest! {
        #[test]
        fn there_are_as_many_hosts_as_are_asked_for(sites in 0usize..40, hosts in 0usize..3000, seed: u64) {
            match generate(Wanted { sites, hosts, seed }) {
                Ok(platform) => {
                    prop_assert_eq!(platform.host_count(), hosts);
                    prop_assert!(platform.groups.iter().all(|g| g.count > 0));
                    prop_assert_eq!(platform.groups.iter().filter(|g| g.name.ends_with("-a")).count(), sites);
                }
                Err(e) => {
                    prop_assert!(sites < 2 || hosts < 2 * sites);
                    prop_assert!(e.to_string().contains(&format!("{sites} sites with {hosts} hosts")), "{}", e);
                }
            }
        }
    }
}
