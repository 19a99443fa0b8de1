//! Discovery finds the groups that are there.

use collwise::cluster::{Bound, METHODS, Method, method};
use collwise::discover::{discover, sampled};
use collwise::measure::{Session, SimulatedProbe};
use collwise::platform::generate::{Wanted, generate};
use collwise::platform::{GroupLink, Noise, Placement, Platform};
use collwise::stats;
use collwise::topology::LatencyMatrix;
use rand_distr::{Distribution, Normal};
use std::path::Path;

fn platform(name: &str) -> Platform {
    Platform::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("platforms").join(format!("{name}.toml"))).unwrap()
}

fn sizes(groups: &[Vec<usize>]) -> Vec<usize> {
    groups.iter().map(Vec::len).collect()
}

#[test]
fn the_golden_platform_has_its_six_published_groups() {
    let matrix = platform("ccgrid2007").latencies();
    for name in ["eco", "density"] {
        let groups = (method(name).unwrap().group)(&matrix, Bound::default());
        assert_eq!(sizes(&groups), [20, 11, 7, 1, 20, 19], "{name}");
        assert_eq!(groups, platform("ccgrid2007").group_ranks(), "{name}");
    }
}

#[test]
fn the_pmeo_platform_has_its_six_groups() {
    let groups = (method("eco").unwrap().group)(&platform("pmeo2006").latencies(), Bound::default());
    assert_eq!(sizes(&groups), [31, 29, 6, 1, 1, 20]);
}

#[test]
fn one_sided_noise_of_ten_percent_changes_no_group_in_30_seeds() {
    let platform = platform("ccgrid2007");
    let (clean, want) = (platform.latencies(), platform.group_ranks());
    for seed in 0..30 {
        let mut random = stats::random(seed);
        let normal = Normal::new(0.0, 0.1).unwrap();
        let noise: Vec<f64> = (0..78 * 78).map(|_| 1.0 + f64::abs(normal.sample(&mut random))).collect();
        let matrix = LatencyMatrix::from_pairs(78, "noisy", |i, j| clean.get(i, j) * noise[i * 78 + j]);
        assert_eq!((method("eco").unwrap().group)(&matrix, Bound::default()), want, "seed {seed}");
    }
}

fn discovered(platform: &Platform, placement: Placement, seed: u64, method: &Method) -> Vec<Vec<usize>> {
    let mut probe = SimulatedProbe::new(platform, placement, seed).unwrap();
    let found = discover(&mut Session::new(&mut probe), None, method, Bound::default()).unwrap();
    found.groups.into_iter().map(|g| g.ranks).collect()
}

#[test]
fn measured_discovery_is_exact_with_noise_and_any_placement() {
    let mut platform = platform("ccgrid2007");
    platform.noise = Some(Noise { sigma: 0.1, outlier_share: 0.02, outlier_factor: 10.0 });
    for seed in 0..30 {
        assert_eq!(discovered(&platform, Placement::Slot, seed, METHODS[0]), platform.group_ranks(), "seed {seed}");
    }
    let hosts = platform.place(Placement::Node);
    for group in discovered(&platform, Placement::Node, 1, METHODS[0]) {
        let home = platform.host_groups()[hosts[group[0]]];
        assert!(group.iter().all(|&r| platform.host_groups()[hosts[r]] == home));
        assert_eq!(group.len(), platform.groups[home].count);
    }
}

/// Discovers a simulated platform with noise; gives the groups, seconds of measuring, rounds, the most probes of one host, their mean, and the
/// most of a host for each group of those that it was measured against.
fn sampled_discovery(platform: &Platform, seed: u64) -> (Vec<Vec<usize>>, f64, usize, usize, f64, f64) {
    let mut probe = SimulatedProbe::new(platform, Placement::Node, seed).unwrap();
    let mut session = Session::new(&mut probe);
    let found = discover(&mut session, None, METHODS[0], Bound::default()).unwrap();
    let (hosts, groups) = (platform.place(Placement::Node), platform.host_groups());
    let mut met = vec![(0usize, std::collections::BTreeSet::new()); hosts.len()];
    for sample in session.samples().iter() {
        let ranks = sample.experiment.ranks();
        for (a, b) in [(ranks[0], ranks[1]), (ranks[1], ranks[0])] {
            met[a].0 += 1;
            met[a].1.insert(groups[hosts[b]]);
        }
    }
    let (rounds, most) = found.quality.sampled.expect("so many hosts are sampled");
    let mean = met.iter().map(|m| m.0 as f64).sum::<f64>() / met.len() as f64;
    let each = met.iter().map(|(probes, groups)| *probes as f64 / groups.len().max(1) as f64).fold(0.0, f64::max);
    (found.groups.into_iter().map(|g| g.ranks).collect(), session.elapsed(), rounds, most, mean, each)
}

/// The groups as sets of ranks, whatever the order of ranks.
fn truth(platform: &Platform) -> std::collections::BTreeSet<Vec<usize>> {
    let (hosts, groups) = (platform.place(Placement::Node), platform.host_groups());
    (0..platform.groups.len()).map(|g| (0..hosts.len()).filter(|&r| groups[hosts[r]] == g).collect()).collect()
}

#[test]
fn thousands_of_hosts_are_sampled_and_grouped_exactly() {
    let mut cases = vec![];
    for (factor, seeds) in [(13, 5), (128, 3)] {
        let mut large = platform("ccgrid2007");
        large.groups.iter_mut().for_each(|g| g.count *= factor);
        // 13 hosts alike have a latency between them
        large.groups[3].latency_s = Some(45e-6);
        cases.extend((0..seeds).map(|seed| (large.clone(), seed)));
    }
    for (hosts, seeds) in [(1000, 30), (10_000, 6)] {
        cases.extend((0..seeds).map(|seed| (generate(Wanted { sites: 3 + seed as usize % 6, hosts, seed }).unwrap(), seed)));
    }
    // every tenth host is as far from the others as they are from each other, but nearer to its kind
    let mut hidden = platform("icluster2");
    let mut near = hidden.groups[0].clone();
    (near.name, near.count, near.latency_s) = ("near".into(), 100, Some(30e-6));
    (hidden.groups[0].count, hidden.groups[0].latency_s) = (900, Some(60e-6));
    let between = [hidden.groups[0].name.clone(), near.name.clone()];
    hidden.links.push(GroupLink { between, latency_s: 60e-6, bandwidth_bytes_per_s: None, trunk: None });
    hidden.groups.push(near);
    cases.extend((0..20).map(|seed| (hidden.clone(), seed)));
    for (mut platform, seed) in cases {
        platform.noise = Some(Noise { sigma: 0.1, outlier_share: 0.02, outlier_factor: 10.0 });
        let (groups, seconds, rounds, most, mean, each) = sampled_discovery(&platform, seed);
        println!(
            "{} {} hosts, {} groups: {rounds} rounds, {seconds:.1} s, probes of a host: {mean:.1} in the mean, at most {most}, {each:.1} a group met",
            platform.name,
            platform.host_count(),
            groups.len()
        );
        assert_eq!(groups.into_iter().collect::<std::collections::BTreeSet<_>>(), truth(&platform), "{} seed {seed}", platform.name);
        assert!(each <= 20.0, "{} seed {seed}: {each:.1} probes of a host for each group that it met", platform.name);
    }
}

#[test]
fn sampling_puts_each_host_in_one_group_whatever_the_latencies() {
    let mut random = stats::random(5);
    for (n, spread) in [(1, 1.0), (2, 1.0), (5, 100.0), (40, 1.1), (150, 3.0), (300, 1000.0)] {
        let values: Vec<f64> = (0..n * n).map(|_| 1e-5 * rand::Rng::random_range(&mut random, 1.0..=spread)).collect();
        let mut measure = |pairs: &[(usize, usize)]| Ok(pairs.iter().map(|&(a, b)| values[a.min(b) * n + a.max(b)]).collect());
        let found = sampled(n, METHODS[0], Bound::default(), &mut measure).unwrap();
        let mut all = found.groups.concat();
        all.sort_unstable();
        assert_eq!(all, (0..n).collect::<Vec<_>>(), "{n} hosts, spread {spread}");
        assert!(found.groups.iter().all(|g| !g.is_empty()));
        assert!((0..found.groups.len()).all(|g| (0..g).all(|h| !found.between(g, h).is_empty())), "{n} hosts, spread {spread}");
    }
}

#[test]
fn two_hosts_that_are_far_apart_are_no_group() {
    // each other's nearest, 2 ms apart; the five of the other site are 3 ms from one and 5 ms from the other
    let group = [0, 1, 2, 2, 2, 2, 2];
    let latency = [[0.0, 2e-3, 3e-3], [2e-3, 0.0, 5e-3], [3e-3, 5e-3, 4e-5]];
    let matrix = LatencyMatrix::from_pairs(7, "t", |i, j| latency[group[i]][group[j]]);
    assert_eq!((method("eco").unwrap().group)(&matrix, Bound::default()), [vec![0], vec![1], vec![2, 3, 4, 5, 6]]);
}

#[test]
fn hosts_that_were_joined_wrongly_do_not_hide_each_other() {
    let eco = |n: usize, latency: &dyn Fn(usize, usize) -> f64| {
        let matrix = LatencyMatrix::from_pairs(n, "t", |i, j| latency(i.min(j), i.max(j)));
        (method("eco").unwrap().group)(&matrix, Bound::default())
    };
    // two pairs, each other's nearest; each host is near one of the other pair and far from the other, 1.7 ms in the mean
    let pairs = |i: usize, j: usize| match (i, j) {
        (0, 1) | (2, 3) => 1e-3,
        (0, 2) | (1, 3) => 1.4e-3,
        _ => 2e-3,
    };
    assert_eq!(eco(4, &pairs), [vec![0], vec![1], vec![2], vec![3]]);
    // host 4 is joined with 2 and 3, which are as far from 0 as from 1; host 5 sees that it is elsewhere, and then it tells 0 from 1
    let three = |i: usize, j: usize| match (i, j) {
        (0, 1) | (2, 3) | (2, 4) | (3, 4) => 1e-3,
        (0, 4) => 1.4e-3,
        (4, 5) => 5e-3,
        (_, 5) => 3e-3,
        _ => 2e-3,
    };
    assert_eq!(eco(6, &three), [vec![0], vec![1], vec![2, 3], vec![4], vec![5]]);
}

/// Groups of one to six hosts, at sites anywhere on a map, whose latencies are those of the platforms that are generated. Skips what no method can tell apart: two hosts alone that all others are about as far from.
#[test]
fn random_matrices_of_3_to_12_groups_are_grouped_exactly() {
    let mut compared = 0;
    for seed in 0..200 {
        let mut random = stats::random(seed);
        let mut draw = |low: f64, high: f64| rand::Rng::random_range(&mut random, low..high);
        let groups = draw(3.0, 13.0) as usize;
        let places: Vec<[f64; 2]> = (0..groups).map(|_| [draw(0.0, 1500.0), draw(0.0, 1500.0)]).collect();
        let sizes: Vec<usize> = (0..groups).map(|_| draw(1.0, 7.0) as usize).collect();
        let inside: Vec<f64> = (0..groups).map(|_| draw(20e-6, 60e-6)).collect();
        let far = |a: usize, b: usize| f64::hypot(places[a][0] - places[b][0], places[a][1] - places[b][1]);
        let latency = |a: usize, b: usize| if a == b { inside[a] } else { 0.3e-3 + far(a, b) * 6.67e-6 };
        let of: Vec<usize> = (0..groups).flat_map(|g| std::iter::repeat_n(g, sizes[g])).collect();
        let differ = |t: f64, u: f64| t.max(u) > 1.3 * t.min(u);
        let told = |a: usize, b: usize| (0..groups).any(|g| g != a && g != b && differ(latency(a, g), latency(b, g)));
        let alone: Vec<usize> = (0..groups).filter(|&g| sizes[g] == 1).collect();
        if alone.iter().any(|&a| alone.iter().any(|&b| a < b && !told(a, b))) {
            continue;
        }
        compared += 1;
        let want: Vec<Vec<usize>> = (0..groups).map(|g| (0..of.len()).filter(|&r| of[r] == g).collect()).collect();
        let matrix = LatencyMatrix::from_pairs(of.len(), "random", |i, j| latency(of[i], of[j]));
        assert_eq!((method("eco").unwrap().group)(&matrix, Bound::default()), want, "seed {seed}");
    }
    assert!(compared > 150, "{compared} of 200");
}

#[test]
fn a_uniform_cluster_is_one_group_by_every_method() {
    for method in METHODS {
        assert_eq!(sizes(&(method.group)(&platform("icluster2").latencies(), Bound::default())), [100], "{}", method.name);
    }
}

#[test]
fn every_method_puts_each_rank_in_one_group() {
    let mut random = stats::random(3);
    for n in [1, 2, 3, 17] {
        let values: Vec<f64> = (0..n * n).map(|_| 1e-5 * (1.0 + rand::Rng::random::<f64>(&mut random) * 100.0)).collect();
        let matrix = LatencyMatrix::from_pairs(n, "random", |i, j| values[i * n + j]);
        for method in METHODS {
            let mut all: Vec<usize> = (method.group)(&matrix, Bound::default()).into_iter().flatten().collect();
            all.sort_unstable();
            assert_eq!(all, (0..n).collect::<Vec<_>>(), "{}", method.name);
        }
    }
}

#[test]
fn dual_process_hosts_are_one_group_since_hosts_are_grouped_first() {
    // 20 hosts of two ranks, 1 us inside a host and 48 us between: ECO alone would find 20 pairs
    let matrix = LatencyMatrix::from_pairs(40, "t", |i, j| if i / 2 == j / 2 { 1e-6 } else { 48e-6 });
    assert_eq!((METHODS[0].group)(&matrix, Bound::default()).len(), 20);
    let leaders = LatencyMatrix::from_pairs(20, "t", |i, j| matrix.get(2 * i, 2 * j));
    assert_eq!((METHODS[0].group)(&leaders, Bound::default()).len(), 1);
}

/// Switches of twelve hosts whose processors are 1 to 8 times apart.
fn unlike_processors(switches: usize, between_s: f64) -> Platform {
    let mut text = String::from("format = 1\nname = \"unlike\"\nsource = \"made up\"\n[hosts]\ngap_s = 1e-6\ngap_s_per_byte = 8.5e-9\n");
    for switch in 0..switches {
        text += &format!("[[group]]\nname = \"s{switch}\"\ncount = 12\nlatency_s = 150e-6\n");
        for (kind, times) in [1.0, 3.0, 8.0, 5.0].into_iter().enumerate() {
            let fixed = 10e-6 * times;
            text += &format!("[[group.variant]]\nname = \"v{kind}\"\ncount = 3\n");
            text += &format!("hosts = {{ send_overhead_s = {fixed}, recv_overhead_s = {fixed} }}\n");
        }
    }
    for (a, b) in (0..switches).flat_map(|a| (a + 1..switches).map(move |b| (a, b))) {
        text += &format!("[[link]]\nbetween = [\"s{a}\", \"s{b}\"]\nlatency_s = {between_s}\n");
    }
    Platform::parse("unlike", &text).unwrap()
}

#[test]
fn a_switch_is_one_group_whatever_its_processors_and_switches_stay_apart() {
    // between two hosts of one switch 105 to 245 us, of which the network has 65; between two switches 115 us more, or a wide area
    for (switches, between_s) in [(1, 0.0), (2, 265e-6), (3, 5e-3)] {
        let platform = unlike_processors(switches, between_s);
        assert_eq!(discovered(&platform, Placement::Slot, 1, METHODS[0]), platform.group_ranks(), "{switches} switches");
    }
    let mut noisy = unlike_processors(2, 5e-3);
    noisy.noise = Some(Noise { sigma: 0.02, outlier_share: 0.02, outlier_factor: 10.0 });
    for seed in 0..5 {
        assert_eq!(discovered(&noisy, Placement::Slot, seed, METHODS[0]), noisy.group_ranks(), "seed {seed}");
    }
}
