//! How fast the parts are: `cargo bench`. Build, predict, simulate, schedule between groups, look up.

use collwise::collective::{COLLECTIVES, Parameters, Shape, bcast, collective};
use collwise::intercluster::{HEURISTICS, Problem, solve};
use collwise::model::{CostModel, Values, model};
use collwise::plan::{Location, Planner, PolyModel, plan};
use collwise::platform::{Noise, Placement, Platform};
use collwise::policy::{CompiledPolicy, Policy};
use collwise::predict::completion;
use collwise::qnm::{Classes, Network, Service, Station, approximate, exact};
use collwise::schedule::Schedule;
use collwise::sim::{Disturbance, Simulator};
use collwise::stats;
use divan::{Bencher, black_box};
use rand::Rng;
use std::path::Path;
use std::sync::Arc;

fn main() {
    divan::main();
}

const RANKS: [usize; 3] = [16, 128, 1024];

fn pipeline(ranks: usize) -> Schedule {
    let shape = Shape::new(ranks, 0, 1 << 20);
    bcast::algorithm("segmented_chain").unwrap().schedule(&shape, &Parameters::of(16 << 10, 0)).unwrap()
}

fn loggp() -> Box<dyn CostModel> {
    model("loggp").unwrap().costs(&Values::of(&[("L", 30e-6), ("o", 5e-6), ("g", 8e-6), ("G", 8.5e-9)])).unwrap()
}

/// All programs of a pipeline of 64 segments.
#[divan::bench(args = RANKS)]
fn build(bencher: Bencher, ranks: usize) {
    bencher.bench(|| pipeline(black_box(ranks)));
}

/// Its replay under LogGP.
#[divan::bench(args = RANKS)]
fn predict(bencher: Bencher, ranks: usize) {
    let (schedule, costs) = (pipeline(ranks), loggp());
    bencher.counter(divan::counter::ItemsCount::new(schedule.messages())).bench(|| completion(&schedule, costs.as_ref()).unwrap());
}

/// The replay of a million messages: 16 segments down a chain or a binary tree of 62,501 ranks, or one down a binomial tree of a million and one.
#[divan::bench(args = ["segmented_chain", "segmented_binary", "binomial"], sample_count = 3)]
fn replay_a_million_messages(bencher: Bencher, algorithm: &str) {
    let (ranks, segment) = if algorithm == "binomial" { (1_000_001, 0) } else { (62_501, 4 << 10) };
    let (shape, parameters) = (Shape::new(ranks, 0, 64 << 10), Parameters::of(segment, 0));
    let schedule = bcast::algorithm(algorithm).unwrap().schedule_within(&shape, &parameters, 1_000_000).unwrap().unwrap();
    assert_eq!(schedule.messages(), 1_000_000);
    let costs = loggp();
    bencher.counter(divan::counter::ItemsCount::new(1_000_000usize)).bench_local(|| completion(&schedule, costs.as_ref()).unwrap());
}

/// The replay of exchanges among so many ranks, one to two million messages. In all but the direct one, which goes to rank 0 first, all ranks do alike.
#[divan::bench(args = [("alltoall", "pairwise", 1400), ("alltoall", "rotated", 1400), ("alltoall", "direct", 1400), ("reduce_scatter", "pairwise", 1400), ("allgather", "ring", 1400), ("allreduce", "recursive_doubling", 65_536), ("barrier", "dissemination", 65_536)], sample_count = 3)]
fn replay_an_exchange(bencher: Bencher, (of, algorithm, ranks): (&str, &str, usize)) {
    let collective = collective(of).unwrap();
    let schedule = collective.algorithm(algorithm).unwrap().schedule(&collective.shape(ranks, 0, 8), &Parameters::of(0, 0)).unwrap();
    let costs = loggp();
    bencher.counter(divan::counter::ItemsCount::new(schedule.messages())).bench_local(|| completion(&schedule, costs.as_ref()).unwrap());
}

/// Its run on a simulated cluster.
#[divan::bench(args = RANKS)]
fn simulate(bencher: Bencher, ranks: usize) {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("platforms/icluster2.toml")).unwrap();
    let platform = Platform::parse("p", &text.replace("count = 100", &format!("count = {ranks}"))).unwrap();
    let (simulator, schedule) = (Simulator::new(&platform, Placement::Slot).unwrap(), pipeline(ranks));
    bencher
        .counter(divan::counter::ItemsCount::new(schedule.messages()))
        .bench_local(|| simulator.run(&schedule, &mut Disturbance::new(Noise::default(), 1)).unwrap());
}

/// A million messages: 1,000 segments down a chain of 1,001 ranks.
#[divan::bench(sample_count = 3)]
fn simulate_a_million_messages(bencher: Bencher) {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("platforms/icluster2.toml")).unwrap();
    let platform = Platform::parse("p", &text.replace("count = 100", "count = 1001")).unwrap();
    let simulator = Simulator::new(&platform, Placement::Slot).unwrap();
    let shape = Shape::new(1001, 0, 1_000_000);
    let schedule = bcast::algorithm("segmented_chain").unwrap().schedule(&shape, &Parameters::of(1000, 0)).unwrap();
    assert_eq!(schedule.messages(), 1_000_000);
    bencher.bench_local(|| simulator.run(&schedule, &mut Disturbance::new(Noise::default(), 1)).unwrap());
}

fn problem(n: usize) -> Problem {
    let mut random = stats::random(1);
    let mut draw = |low: f64, high: f64| (0..n * n).map(|_| random.random_range(low..high)).collect::<Vec<f64>>();
    let (gap, latency) = (draw(0.1, 0.6), draw(0.001, 0.015));
    Problem { groups: n, root: 0, gap, latency, local: vec![0.5; n], local_busy: vec![0.0; n] }
}

/// ECEF alone.
#[divan::bench(args = [10, 100, 1000, 10_000], sample_count = 5)]
fn ecef(bencher: Bencher, groups: usize) {
    let (problem, ecef) = (problem(groups), HEURISTICS.iter().find(|h| h.name == "ECEF").unwrap());
    bencher.bench_local(|| (ecef.sends)(&problem));
}

/// The whole portfolio, polished.
#[divan::bench(args = [6, 20, 50])]
fn portfolio(bencher: Bencher, groups: usize) {
    let problem = problem(groups);
    bencher.bench_local(|| solve(&problem));
}

fn grid() -> (CompiledPolicy, Vec<Location>) {
    let policy = Policy::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("policies/ccgrid2007.toml")).unwrap();
    let of = |(group, n): (usize, usize)| (0..n).map(move |position| Location { group, position });
    let members = policy.groups.iter().map(|g| g.hosts.len()).enumerate().flat_map(of).collect();
    (CompiledPolicy::new(policy).unwrap(), members)
}

/// A plan for 78 ranks in six groups: what a communicator's first broadcast of a size costs.
#[divan::bench(args = [1, 65_536, 4_194_304])]
fn first_plan(bencher: Bencher, bytes: usize) {
    let (policy, members) = grid();
    bencher.bench_local(|| plan(&policy, &members, &bcast::COLLECTIVE, &Shape::new(members.len(), 0, black_box(bytes))).unwrap());
}

/// As many groups as this, each as the CCGrid platform's first, with its links between any two.
fn large_grid(groups: usize, hosts: usize) -> (Policy, Vec<Location>) {
    let mut policy = Policy::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("policies/ccgrid2007.toml")).unwrap();
    let (group, links) = (policy.groups[0].clone(), policy.links.clone());
    let named = |k: usize| {
        let hosts = (0..hosts).map(|h| format!("g{k}-{h}")).collect();
        collwise::policy::GroupPolicy { name: format!("g{k}"), hosts, ..group.clone() }
    };
    policy.groups = (0..groups).map(named).collect();
    let pairs = (0..groups).flat_map(|a| (a + 1..groups).map(move |b| (a, b)));
    let link = |(n, (a, b)): (usize, (usize, usize))| {
        let between = [format!("g{a}"), format!("g{b}")];
        collwise::policy::LinkPolicy { between, ..links[n % links.len()].clone() }
    };
    policy.links = pairs.enumerate().map(link).collect();
    let of = |group| (0..hosts).map(move |position| Location { group, position });
    (policy, (0..groups).flat_map(of).collect())
}

/// The replay of exchanges among 1,024 ranks in 32 groups, whose links differ, a million messages but for the barrier's 10,240.
#[divan::bench(args = [("alltoall", "pairwise"), ("alltoall", "rotated"), ("alltoall", "direct"), ("allgather", "ring"), ("barrier", "dissemination")], sample_count = 3)]
fn replay_an_exchange_over_unlike_links(bencher: Bencher, (of, algorithm): (&str, &str)) {
    let collective = collective(of).unwrap();
    let (policy, members) = large_grid(32, 32);
    let policy = CompiledPolicy::new(policy).unwrap();
    let schedule = collective.algorithm(algorithm).unwrap().schedule(&collective.shape(1024, 0, 8), &Parameters::of(0, 0)).unwrap();
    let costs = PolyModel::new(&policy, &members, collective, 8).unwrap();
    bencher.counter(divan::counter::ItemsCount::new(schedule.messages())).bench_local(|| completion(&schedule, &costs).unwrap());
}

/// A communicator's first broadcast of a size on one rank, over so many groups of so many hosts: a message that goes the direct way, one in
/// segments, and one that goes from group to group whole.
#[divan::bench(args = [(32, 32, 1), (32, 32, 65_536), (32, 32, 4_194_304), (32, 313, 1), (32, 313, 65_536), (32, 313, 4_194_304), (32, 3125, 1), (32, 3125, 65_536), (32, 3125, 4_194_304)], sample_count = 3)]
fn first_plan_large(bencher: Bencher, (groups, hosts, bytes): (usize, usize, usize)) {
    let (policy, members) = large_grid(groups, hosts);
    let policy = Arc::new(CompiledPolicy::new(policy).unwrap());
    bencher.with_inputs(|| Planner::new(Arc::clone(&policy), members.clone(), 13, 65_535)).bench_local_values(|mut planner| {
        let shape = Shape::new(planner.members().len(), 0, black_box(bytes));
        planner.planned(&bcast::COLLECTIVE, &shape).unwrap()
    });
}

/// As above at 1,024 ranks in 32 groups, from a root and among ranks that no row is for: half of each group, from a root in its middle.
#[divan::bench(args = ["bcast", "barrier", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall", "reduce_scatter"], consts = [8, 65_536, 4_194_304], sample_count = 3)]
fn first_plan_where_no_row_fits<const BYTES: usize>(bencher: Bencher, name: &str) {
    first_plan_of(bencher, name, BYTES, |m| m.position % 2 == 0);
}

/// The same among 1,040 ranks in 32 groups of 17 to 48: no two have as many.
#[divan::bench(args = ["bcast", "reduce", "allreduce", "allgather", "reduce_scatter"], consts = [8, 65_536, 4_194_304], sample_count = 3)]
fn first_plan_among_unlike_groups<const BYTES: usize>(bencher: Bencher, name: &str) {
    first_plan_of(bencher, name, BYTES, |m| m.position < 17 + m.group);
}

/// A first broadcast from a root that no row is for, among 1,035 ranks in 45 groups, where rows say a relay, which is too large to be replayed.
#[divan::bench(args = [700 << 10, 3 << 20], sample_count = 10)]
fn first_plan_of_a_relay(bencher: Bencher, bytes: usize) {
    let (mut policy, members) = large_grid(45, 23);
    let rows = &mut policy.collectives.get_mut(&bcast::COLLECTIVE).unwrap().two_level;
    let mut row = rows.last().unwrap().clone();
    (row.inter_group, row.intra_group, row.segment_bytes, row.at_bytes) = ("relay".into(), Some("chain".into()), 8 << 10, 4 << 20);
    (row.evidence.predicted_s, row.evidence.measured_s) = (0.1, None);
    *rows = vec![row];
    let policy = Arc::new(CompiledPolicy::new(policy).unwrap());
    bencher.with_inputs(|| Planner::new(Arc::clone(&policy), members.clone(), 13, 65_535)).bench_local_values(|mut planner| {
        let shape = Shape::new(planner.members().len(), 500, black_box(bytes));
        planner.planned(&bcast::COLLECTIVE, &shape).unwrap()
    });
}

/// A collective's first call of a size on one rank, among those of 32 groups of 64 that take part, from a root in their middle.
fn first_plan_of(bencher: Bencher, name: &str, bytes: usize, takes_part: impl Fn(&Location) -> bool) {
    let collective = COLLECTIVES.iter().copied().find(|c| c.name == name).unwrap();
    let (policy, members) = large_grid(32, 64);
    let policy = Arc::new(CompiledPolicy::new(policy).unwrap());
    let members: Vec<Location> = members.into_iter().filter(takes_part).collect();
    let bytes = if collective.sized() { bytes } else { 0 };
    bencher.with_inputs(|| Planner::new(Arc::clone(&policy), members.clone(), 13, 65_535)).bench_local_values(|mut planner| {
        let shape = collective.shape(planner.members().len(), if collective.rooted { 500 } else { 0 }, black_box(bytes));
        planner.planned(collective, &shape).unwrap()
    });
}

/// New sizes for one rank of a communicator of so many of the 78: each is planned by itself, most in a class that is decided already.
#[divan::bench(args = [77, 40], sample_count = 300)]
fn new_sizes(bencher: Bencher, ranks: usize) {
    let (policy, mut members) = grid();
    members.truncate(ranks);
    let mut planner = Planner::new(Arc::new(policy), members, 13, 65_535);
    let mut random = stats::random(1);
    let bytes = move || 2f64.powf(random.random_range(0.0..22.0)) as usize;
    bencher.with_inputs(bytes).bench_local_values(|bytes| {
        let shape = Shape::new(planner.members().len(), 0, bytes);
        planner.planned(&bcast::COLLECTIVE, &shape).unwrap()
    });
}

/// A policy's row for a size, in a group of so many ranks.
#[divan::bench(args = RANKS)]
fn look_up(bencher: Bencher, ranks: usize) {
    let mut policy = Policy::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("policies/icluster2.toml")).unwrap();
    policy.groups[0].hosts = (0..ranks).map(|k| format!("h{k}")).collect();
    let (policy, positions) = (CompiledPolicy::new(policy).unwrap(), (0..ranks).collect::<Vec<_>>());
    bencher.bench_local(|| policy.decide(&bcast::COLLECTIVE, 0, &positions, black_box(100_000)).unwrap());
}

/// Mean value analysis of so many customers at eight queues.
#[divan::bench(args = [100, 10_000])]
fn queues(bencher: Bencher, customers: usize) {
    let network = Network { think_s: 1.0, stations: (1..=8).map(|k| Station::queue(0.01 * k as f64)).collect() };
    bencher.bench(|| exact(black_box(&network), customers));
}

/// Convolution of so many customers at a station of 16 servers and a queue.
#[divan::bench(args = [100, 1_000])]
fn servers(bencher: Bencher, customers: usize) {
    let servers = Station { demand_s: 0.2, count: 1, service: Service::servers(16) };
    let network = Network { think_s: 1.0, stations: vec![servers, Station::queue(0.01)] };
    bencher.bench(|| exact(black_box(&network), customers));
}

/// The approximation for 100 classes of 10 customers at 1,000 stations.
#[divan::bench]
fn classes(bencher: Bencher) {
    let mut random = stats::random(1);
    let demand_s = (0..100).map(|_| (0..1000).map(|_| random.random::<f64>() * 1e-3).collect()).collect();
    let classes = Classes { customers: vec![10; 100], think_s: vec![1.0; 100], demand_s, is_delay: vec![false; 1000] };
    bencher.bench(|| approximate(black_box(&classes)));
}
