//! What tuning says of its choices.
#![cfg(feature = "tune")]

use collwise::collective::{Collective, bcast};
use collwise::measure::{Experiment, Probe, Runs, Session, Settings, SimulatedProbe, StopRule};
use collwise::platform::{Noise, Placement, Platform};
use collwise::policy::CompiledPolicy;
use collwise::stats;
use collwise::tune::{TuneOptions, tune};

const HOSTS: usize = 8;

/// Machines on one switch.
fn cluster(noise: Noise) -> Platform {
    let text = format!(
        r#"
format = 1
name = "cluster"
source = "drawn"
[hosts]
send_overhead_s = 5e-6
recv_overhead_s = 6e-6
gap_s = 8e-6
gap_s_per_byte = 8.5e-9
[[group]]
name = "g"
count = {HOSTS}
latency_s = 45e-6
"#
    );
    Platform { noise: Some(noise), ..Platform::parse("cluster", &text).unwrap() }
}

/// The best of several noisy medians was lucky: the time of a row is that of other runs, and right in the mean.
#[test]
fn the_time_of_a_choice_is_right_in_the_mean() {
    let platform = cluster(Noise { sigma: 0.1, outlier_share: 0.0, outlier_factor: 1.0 });
    let mut often = SimulatedProbe::new(&platform, Placement::Slot, 1000).unwrap();
    let mut truth = Session::new(&mut often).rule(StopRule { least: 101, least_long: 101, most: 101, precision: 1.0 });
    let (mut off, mut lucky) = (Vec::new(), Vec::new());
    for seed in 0..20 {
        let mut probe = SimulatedProbe::new(&platform, Placement::Slot, seed).unwrap();
        let mut session = Session::new(&mut probe);
        let (_, policy) = tune(&mut session, TuneOptions::default()).unwrap();
        for row in policy.groups[0].rows(&bcast::COLLECTIVE) {
            let Some(measured) = row.evidence.measured_s else { continue };
            let (ranks, bytes, algorithm) = ((0..HOSTS).collect(), row.at_bytes, row.algorithm.clone());
            let parameters = row.parameters();
            let chosen = Experiment::Collective { collective: &bcast::COLLECTIVE, ranks, root: 0, bytes, algorithm, parameters };
            truth.measure("truth", std::slice::from_ref(&chosen)).unwrap();
            let (chose, truth) = (session.samples().need(&chosen).unwrap(), truth.samples().need(&chosen).unwrap());
            off.push((measured / truth).ln());
            lucky.push((chose / truth).ln());
        }
    }
    let (mean, lucky) = (stats::mean(&off).unwrap(), stats::mean(&lucky).unwrap());
    println!("{} rows, over true in the mean of the logarithms: {mean:+.4}, by the runs that chose {lucky:+.4}", off.len());
    assert!(off.len() > 200 && mean.abs() < 0.01, "{} rows, {mean:+.4}", off.len());
    assert!(lucky < -0.01, "the runs that chose are as good witnesses: {lucky:+.4}");
}

/// What would be done next is said as what is done: of an algorithm that always cuts messages, with its segments.
#[test]
fn the_runner_up_is_said_with_its_parameters() {
    let platform = cluster(Noise::default());
    let mut probe = SimulatedProbe::new(&platform, Placement::Slot, 1).unwrap();
    let (_, policy) = tune(&mut Session::new(&mut probe), TuneOptions::default()).unwrap();
    let mut cut = 0;
    let mut check = |collective: &Collective, runner_up: &str| {
        let algorithm = collective.algorithm(runner_up.split(' ').next().unwrap());
        if let Ok(algorithm) = algorithm
            && algorithm.segmented
            && !algorithm.whole
        {
            // how many are under way may come after their size
            let segment = runner_up.split_once(" in ").and_then(|(_, rest)| rest.split(',').next());
            assert!(segment.is_some_and(|size| size.ends_with('B')), "{runner_up}");
            cut += 1;
        }
    };
    for row in policy.groups[0].rows(&bcast::COLLECTIVE) {
        check(&bcast::COLLECTIVE, &row.evidence.runner_up);
    }
    let compiled = CompiledPolicy::new(policy).unwrap();
    for ranks in 3..HOSTS {
        let positions: Vec<usize> = (0..ranks).collect();
        check(&bcast::COLLECTIVE, &compiled.decide(&bcast::COLLECTIVE, 0, &positions, 1 << 20).unwrap().runner_up);
    }
    assert!(cut > 4, "{cut} that cut messages");
}

/// A network that carries out an algorithm in a third of the time where choices are made, which no model expects, and no score sees.
struct Likes<'a> {
    inner: SimulatedProbe,
    algorithm: &'a str,
}

impl Probe for Likes<'_> {
    fn settings(&self) -> Settings {
        self.inner.settings()
    }

    fn run(&mut self, batches: &[Vec<Experiment>], repetitions: usize) -> collwise::error::Result<Vec<Runs>> {
        let mut found = self.inner.run(batches, repetitions)?;
        for (experiment, runs) in batches.iter().flatten().zip(&mut found) {
            if let Experiment::Collective { bytes, algorithm, .. } = experiment
                && bytes.is_power_of_two()
                && algorithm == self.algorithm
            {
                runs.seconds.iter_mut().for_each(|seconds| *seconds /= 3.0);
            }
        }
        Ok(found)
    }

    fn has_native(&self) -> bool {
        self.inner.has_native()
    }

    fn elapsed(&self) -> f64 {
        self.inner.elapsed()
    }
}

/// Where models miss an algorithm, they do so at the next sizes too: there it is tried as well.
#[test]
fn what_is_the_fastest_at_one_size_is_tried_at_the_next() {
    let platform = cluster(Noise { sigma: 0.001, outlier_share: 0.0, outlier_factor: 1.0 });
    let sizes = |likes: &str| {
        let inner = SimulatedProbe::new(&platform, Placement::Slot, 1).unwrap();
        let mut probe = Likes { inner, algorithm: likes };
        let mut session = Session::new(&mut probe);
        let (_, policy) = tune(&mut session, TuneOptions { collectives: &[&bcast::COLLECTIVE], ..TuneOptions::default() }).unwrap();
        let rows = policy.groups[0].rows(&bcast::COLLECTIVE).iter();
        rows.filter(|row| row.algorithm == likes && row.evidence.measured_s.is_some()).map(|row| row.at_bytes).collect::<Vec<_>>()
    };
    // by predictions alone it is measured at 16 and 32 KiB; messages of the next smaller size are no longer than its segments
    assert_eq!(sizes("split_binary"), [8, 16, 32, 64, 128, 256, 512, 1024, 4096].map(|kib| kib << 10));
    assert_eq!(sizes("segmented_flat"), [0; 0], "what is nowhere the fastest is tried nowhere");
}
