//! Sampled discovery finds the groups that a full matrix without noise has, whatever the number of groups.

use collwise::cluster::{Bound, METHODS};
use collwise::discover::sampled;
use collwise::platform::Platform;
use collwise::platform::generate::{Wanted, generate};
use collwise::stats;
use collwise::topology::LatencyMatrix;
use rand::Rng;
use rand_distr::{Distribution, Normal};
use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

#[derive(Debug, Clone, Copy)]
enum Noise {
    None,
    /// Probes take longer by a tenth.
    Longer,
    /// And one of 50 ten times as long.
    Outliers,
    /// Probes take longer or shorter by a tenth.
    Both,
}

/// Latencies by group, and the groups that the method finds in a full matrix without noise.
struct Truth {
    group: Vec<usize>,
    latency: Vec<Vec<f64>>,
    groups: BTreeSet<Vec<usize>>,
}

/// Four hosts of a group stand for all of it: hosts of a group do not differ.
fn truth(platform: &Platform) -> Truth {
    let (group, n) = (platform.host_groups(), platform.groups.len());
    let place: HashMap<&str, usize> = platform.groups.iter().enumerate().map(|(k, g)| (g.name.as_str(), k)).collect();
    let mut latency = vec![vec![f64::NAN; n]; n];
    platform.groups.iter().enumerate().for_each(|(k, g)| latency[k][k] = g.latency_s.unwrap_or(f64::NAN));
    for link in &platform.links {
        let [a, b] = [place[link.between[0].as_str()], place[link.between[1].as_str()]];
        (latency[a][b], latency[b][a]) = (link.latency_s, link.latency_s);
    }
    let of: Vec<usize> = (0..n).flat_map(|g| std::iter::repeat_n(g, platform.groups[g].count.min(4))).collect();
    let found = (METHODS[0].group)(&LatencyMatrix::from_pairs(of.len(), "few", |i, j| latency[of[i]][of[j]]), Bound::default());
    let members = |cluster: Vec<usize>| (0..group.len()).filter(|&h| cluster.iter().any(|&r| of[r] == group[h])).collect();
    Truth { groups: found.into_iter().map(members).collect(), group, latency }
}

/// What one run finds: is it exact; the groups found and there; the most probes of a host, their mean, the most for each group met; rounds; seconds.
#[derive(Debug)]
struct Found {
    exact: bool,
    groups: (usize, usize),
    most: usize,
    mean: f64,
    most_per_group: f64,
    rounds: usize,
    seconds: f64,
}

fn find(truth: &Truth, noise: Noise, seed: u64) -> Found {
    let n = truth.group.len();
    let mut random = stats::random(seed + 1000);
    let normal = Normal::new(0.0, 0.1).unwrap();
    let mut met: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); n];
    let mut measure = |pairs: &[(usize, usize)]| {
        let mut busy = BTreeSet::new();
        let mut time = |&(a, b): &(usize, usize)| {
            assert!(a != b && busy.insert(a) && busy.insert(b), "a host is in one probe at a time");
            met[a].insert(truth.group[b]);
            met[b].insert(truth.group[a]);
            let exact = truth.latency[truth.group[a]][truth.group[b]];
            match noise {
                Noise::None => exact,
                Noise::Longer => exact * (1.0 + f64::abs(normal.sample(&mut random))),
                Noise::Outliers => exact * (1.0 + f64::abs(normal.sample(&mut random))) * if random.random_bool(0.02) { 10.0 } else { 1.0 },
                Noise::Both => exact * f64::max(0.1, 1.0 + normal.sample(&mut random)),
            }
        };
        Ok(pairs.iter().map(&mut time).collect())
    };
    let begin = Instant::now();
    let found = sampled(n, METHODS[0], Bound::default(), &mut measure).unwrap();
    let seconds = begin.elapsed().as_secs_f64();
    let groups: BTreeSet<Vec<usize>> = found.groups.iter().cloned().collect();
    Found {
        exact: groups == truth.groups,
        groups: (groups.len(), truth.groups.len()),
        most: found.probes.iter().copied().max().unwrap_or(0),
        mean: found.probes.iter().sum::<usize>() as f64 / n as f64,
        most_per_group: (0..n).map(|h| found.probes[h] as f64 / met[h].len().max(1) as f64).fold(0.0, f64::max),
        rounds: found.rounds,
        seconds,
    }
}

/// A line for the seeds of a case; how many were exact, and the most probes for each group met.
fn table(name: &str, platform: impl Fn(u64) -> Platform, noise: Noise, seeds: u64) -> (u64, f64) {
    let all: Vec<Found> = (0..seeds).map(|seed| find(&truth(&platform(seed)), noise, seed)).collect();
    let exact = all.iter().filter(|f| f.exact).count() as u64;
    let max = |f: fn(&Found) -> f64| all.iter().map(f).fold(0.0, f64::max);
    println!(
        "{name} {noise:?}: exact {exact} of {seeds}, at most {} probes of a host, {:.1} in the mean, {:.1} a group met, {} rounds, {:.2} s",
        max(|f| f.most as f64),
        max(|f| f.mean),
        max(|f| f.most_per_group),
        max(|f| f.rounds as f64),
        max(|f| f.seconds)
    );
    for (seed, f) in all.iter().enumerate().filter(|(_, f)| !f.exact) {
        println!("  seed {seed}: {} groups of {}", f.groups.0, f.groups.1);
    }
    (exact, max(|f| f.most_per_group))
}

fn random(sites: usize, hosts: usize) -> impl Fn(u64) -> Platform {
    move |seed| generate(Wanted { sites, hosts, seed }).unwrap()
}

#[test]
fn many_groups_are_exact() {
    // as many seeds as take a second or two
    for noise in [Noise::None, Noise::Longer] {
        let (exact, most_per_group) = table("30 sites, 400 hosts", random(30, 400), noise, 10);
        assert_eq!(exact, 10, "{noise:?}");
        assert!(most_per_group <= 20.0, "{noise:?}: {most_per_group} probes a host and group met");
        assert_eq!(table("60 sites, 3,000 hosts", random(60, 3000), noise, 2).0, 2, "{noise:?}");
    }
}

/// Hosts of small groups that hardly differ ask each other until nobody is left to be asked.
#[test]
fn small_groups_near_each_other_come_to_an_end() {
    for (groups, hosts, times) in [(6, 3, 1.5), (60, 3, 1.25), (45, 4, 1.4), (30, 6, 1.25), (20, 9, 1.6)] {
        let group: Vec<usize> = (0..groups * hosts).map(|h| h / hosts).collect();
        let latency: Vec<Vec<f64>> = (0..groups).map(|a| (0..groups).map(|b| if a == b { 4e-5 } else { 4e-5 * times }).collect()).collect();
        let truth = Truth { groups: (0..groups).map(|g| (g * hosts..(g + 1) * hosts).collect()).collect(), group, latency };
        for (noise, seed) in [Noise::Longer, Noise::Both].into_iter().flat_map(|noise| (0..10).map(move |seed| (noise, seed))) {
            let found = find(&truth, noise, seed);
            assert!(found.groups.0 > 0, "{groups} groups of {hosts}, {times} times as far, {noise:?}, seed {seed}: {found:?}");
        }
    }
}

#[test]
#[ignore = "takes minutes"]
fn a_hundred_sites_are_exact_in_30_seeds() {
    let (exact, most_per_group) = table("100 sites, 10,000 hosts", random(100, 10_000), Noise::Longer, 30);
    assert_eq!(exact, 30);
    assert!(most_per_group <= 20.0, "{most_per_group} probes a host and group met");
}

#[test]
#[ignore = "takes minutes: a table to read"]
fn figures() {
    for noise in [Noise::None, Noise::Longer, Noise::Both] {
        table("4 sites, 1,000 hosts", random(4, 1000), noise, 30);
        table("30 sites, 400 hosts", random(30, 400), noise, 30);
        table("60 sites, 400 hosts", random(60, 400), noise, 10);
        table("60 sites, 3,000 hosts", random(60, 3000), noise, 10);
        table("100 sites, 10,000 hosts", random(100, 10_000), noise, 5);
    }
    // what is too much: one probe of 50 takes ten times as long; more than half of the groups have one host or two
    table("4 sites, 1,000 hosts", random(4, 1000), Noise::Outliers, 10);
    table("30 sites, 400 hosts", random(30, 400), Noise::Outliers, 10);
    table("150 sites, 400 hosts", random(150, 400), Noise::None, 5);
}
