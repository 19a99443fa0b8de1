//! What tuning costs: measuring on the clock of what is measured, and processor time where that is simulated.

mod common;

use collwise::collective::bcast;
use collwise::measure::{Session, SimulatedProbe};
use collwise::plan::{Location, PolyModel, predict, two_level, two_level_parameters};
use collwise::platform::generate::{Wanted, generate};
use collwise::platform::{Placement, Platform};
use collwise::policy::{CompiledPolicy, GroupPolicy, Policy};
use collwise::predict::completion;
use collwise::tune::{TuneOptions, tune};
use collwise::two_level::INTER_GROUP_ALGORITHMS;
use common::unlike_processors;
use std::path::Path;

/// Seconds of measuring, with the noise of a seed.
fn measuring(platform: &Platform, seed: u64) -> f64 {
    let mut probe = SimulatedProbe::new(platform, Placement::Slot, seed).unwrap();
    let (_, policy) = tune(&mut Session::new(&mut probe), TuneOptions::default()).unwrap();
    policy.provenance.measuring_s
}

/// Processors that work on each byte make a message take longer than a stream's: that is no change of protocol to be searched for, and noise is none.
#[test]
fn unlike_processors_in_noise_are_measured_in_minutes() {
    for (sites, seed) in [(1, 1), (1, 2), (2, 3)] {
        let mut platform = unlike_processors(sites, seed);
        platform.noise = Some(collwise::platform::Noise { sigma: 0.05, outlier_share: 0.02, outlier_factor: 3.0 });
        // how often something is repeated hangs on the noise that it meets
        let seconds: Vec<f64> = (1..=3).map(|noise| measuring(&platform, noise)).collect();
        println!("{sites} sites, seed {seed}: measured for {seconds:.0?} s");
        let mean = seconds.iter().sum::<f64>() / 3.0;
        assert!(mean < 300.0, "{sites} sites, seed {seed}: measured for {mean} s");
    }
}

/// All that tuning compares: as many segments as are tried would be replayed each time.
#[test]
fn pipelines_take_what_their_first_segments_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    let shipped = ["ccgrid2007", "pmeo2006", "hcl16"].map(|name| Policy::read(&folder.join(name).with_extension("toml")).unwrap());
    let drawn = [41, 42].map(|seed| {
        let platform = generate(Wanted { sites: 3, hosts: 18, seed }).unwrap();
        let mut probe = SimulatedProbe::new(&platform, Placement::Slot, 1).unwrap();
        tune(&mut Session::new(&mut probe), TuneOptions::default()).unwrap().1
    });
    for policy in shipped.into_iter().chain(drawn) {
        let policy = CompiledPolicy::new(policy).unwrap();
        let of = |(group, g): (usize, &GroupPolicy)| (0..g.hosts.len()).map(move |position| Location { group, position });
        let members: Vec<Location> = policy.policy.groups.iter().enumerate().flat_map(of).collect();
        for (bytes, root) in [(500_000, 0), (1 << 20, 0), (3 << 20, members.len() / 2)] {
            let costs = PolyModel::new(&policy, &members, &bcast::COLLECTIVE, bytes).unwrap();
            for way in INTER_GROUP_ALGORITHMS.into_iter().flat_map(|i| two_level_parameters(&policy, &members, i, &[8 << 10, 40_000])) {
                let two_level = two_level(&policy, &members, root, bytes, way).unwrap();
                let whole = completion(&two_level.schedule(members.len()).unwrap(), &costs).unwrap();
                let missed = (predict(&policy, &members, &two_level).unwrap() / whole - 1.0).abs();
                assert!(missed < 0.02, "{missed} by {} of {bytes} bytes from {root}", way.words(bytes));
            }
        }
    }
}

/// Seconds of processor time of this process so far.
fn processor_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // after the name, which may hold spaces, user and system time are the 12th and 13th, in hundredths
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap() / 100.0).sum()
}

/// For a quiet machine: `cargo test --release --test cost -- --ignored --nocapture`.
#[test]
#[ignore = "minutes, and a matter of the machine"]
fn three_thousand_simulated_hosts_take_a_minute() {
    for (sites, hosts, seed) in [(12, 600, 5), (60, 3000, 5), (60, 3000, 6)] {
        let (platform, began) = (generate(Wanted { sites, hosts, seed }).unwrap(), processor_s());
        let measured = measuring(&platform, 1);
        let took = processor_s() - began;
        println!("{hosts} hosts in {sites} sites, seed {seed}: {took:.1} s of processor time, {measured:.0} s of measuring");
        assert!(took < 60.0, "{hosts} hosts, seed {seed}: {took} s of processor time");
    }
}
