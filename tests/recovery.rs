//! Every model's parameters are recovered from simulated measurements of a group for which the model is exact.

use collwise::fit::fit_groups;
use collwise::measure::{Session, SimulatedProbe, StopRule};
use collwise::model::{Fitted, RankSet, model};
use collwise::platform::{Group, HostParameters, Noise, Placement, Platform, Variant};

/// One switch; hosts with the given (fixed, per byte) processor costs, alike for sending and receiving.
fn cluster(processors: &[(f64, f64)], gap: (f64, f64), wire: f64, noise: Option<Noise>) -> Platform {
    let parameters = |&(o, per_byte): &(f64, f64)| HostParameters {
        send_overhead_s: Some(o),
        send_overhead_s_per_byte: Some(per_byte),
        recv_overhead_s: Some(o),
        recv_overhead_s_per_byte: Some(per_byte),
        gap_s: Some(gap.0),
        gap_s_per_byte: Some(gap.1),
        ..HostParameters::default()
    };
    let mean = processors.iter().map(|p| 2.0 * p.0).sum::<f64>() / processors.len() as f64;
    let variants = processors.iter().enumerate().map(|(k, p)| Variant { name: format!("v{k}"), count: 1, hosts: parameters(p) });
    Platform {
        format: 1,
        name: "switch".into(),
        source: String::new(),
        assumed: vec![],
        hosts: HostParameters::default(),
        tcp: None,
        noise,
        groups: vec![Group {
            name: "g".into(),
            count: processors.len(),
            latency_s: Some(wire + mean),
            host_names: vec![],
            hosts: HostParameters::default(),
            variants: variants.collect(),
        }],
        links: vec![],
    }
}

fn fitted(platform: &Platform, name: &str, seed: u64) -> Fitted {
    let mut probe = SimulatedProbe::new(platform, Placement::Slot, seed).unwrap();
    let rule =
        if platform.noise.is_some() { StopRule { least: 31, least_long: 31, most: 301, precision: 0.002 } } else { StopRule::default() };
    let mut session = Session::new(&mut probe).rule(rule);
    let rank_set = RankSet::new((0..platform.host_count()).collect());
    fit_groups(&mut session, &[&rank_set], &[model(name).unwrap()]).unwrap().remove(0).remove(0)
}

/// Checks parameters against the truth, with their intervals: within 1 % without noise, where nothing scatters and the interval is the value;
/// within 10 % with 5 % noise and 2 % tenfold outliers, for several seeds, and then the interval has a width.
fn recovers(name: &str, platform: impl Fn(Option<Noise>) -> Platform, truth: &[(&str, f64)]) {
    let check = |fitted: &Fitted, tolerance: f64, scatters: bool, what: &str| {
        for (parameter, want) in truth {
            let e = fitted.parameters[*parameter];
            let within = [e.low, e.value, e.high].iter().all(|v| (v / want - 1.0).abs() <= tolerance);
            assert!(within, "{name} {what}: {parameter} = {e:?} is not {want}");
            assert!(((e.high - e.low) / want > 1e-9) == scatters, "{name} {what}: {parameter} = {e:?}");
        }
    };
    check(&fitted(&platform(None), name, 0), 0.01, false, "without noise");
    for seed in 0..5 {
        let noise = Noise { sigma: 0.05, outlier_share: 0.02, outlier_factor: 10.0 };
        check(&fitted(&platform(Some(noise)), name, seed), 0.10, true, &format!("with noise, seed {seed}"));
    }
}

#[test]
fn hockney() {
    let p = |noise| cluster(&[(5e-6, 0.5e-9); 4], (8e-6, 8.5e-9), 30e-6, noise);
    recovers("hockney", p, &[("alpha_s", 40e-6), ("beta_s_per_byte", 9.5e-9)]);
}

#[test]
fn logp() {
    let p = |noise| cluster(&[(6e-6, 0.0); 4], (9e-6, 8.5e-9), 40e-6, noise);
    // of packets of 1 KiB: the port's time for the bytes is in g, the wire's in L
    recovers("logp", p, &[("L", 40e-6 + 1024.0 * 8.5e-9), ("o", 6e-6), ("g", 9e-6 + 1024.0 * 8.5e-9)]);
}

#[test]
fn loggp() {
    let p = |noise| cluster(&[(6e-6, 0.0); 4], (10e-6, 8.5e-9), 35e-6, noise);
    recovers("loggp", p, &[("L", 35e-6), ("o", 6e-6), ("g", 10e-6), ("G", 8.5e-9)]);
}

#[test]
fn plogp() {
    let p = |noise| cluster(&[(5e-6, 1e-9); 4], (8e-6, 8.5e-9), 60e-6, noise);
    recovers("plogp", p, &[("L", 62e-6)]);
    let fitted = fitted(&p(None), "plogp", 0);
    for (name, truth) in [("g", (8e-6, 8.5e-9)), ("os", (5e-6, 1e-9)), ("or", (5e-6, 1e-9))] {
        for (bytes, value) in fitted.tables["bytes"].value.iter().zip(&fitted.tables[name].value) {
            let want = truth.0 + truth.1 * bytes;
            assert!((value / want - 1.0).abs() < 0.01, "{name}({bytes}) = {value} is not {want}");
        }
    }
    assert_eq!(fitted.tables["bytes"].value.len(), 9, "an affine gap needs no further sizes");
}

#[test]
fn plogp_adds_sizes_where_the_protocol_changes() {
    let mut p = cluster(&[(5e-6, 1e-9); 2], (8e-6, 8.5e-9), 60e-6, None);
    p.tcp = Some(collwise::platform::Irregularities { scatter_leap_bytes: Some(20_000), scatter_leap_s: 5e-3, ..Default::default() });
    let fitted = fitted(&p, "plogp", 0);
    let sizes = &fitted.tables["bytes"].value;
    assert!(sizes.len() > 9 && sizes.iter().any(|&m| 16_384.0 < m && m < 65_536.0), "{sizes:?}");
}

#[test]
fn noise_between_sites_asks_for_no_further_sizes() {
    // a small message's gap of 8 us is found in times of 20 ms, 1 % of which is 200 us
    for seed in 0..5 {
        let noise = Noise { sigma: 0.01, outlier_share: 0.0, outlier_factor: 1.0 };
        let platform = cluster(&[(5e-6, 1e-9); 2], (8e-6, 8.5e-9), 10e-3, Some(noise));
        let mut probe = SimulatedProbe::new(&platform, Placement::Slot, seed).unwrap();
        let mut session = Session::new(&mut probe);
        let fitted = fit_groups(&mut session, &[&RankSet::new(vec![0, 1])], &[model("tables").unwrap()]).unwrap().remove(0).remove(0);
        let sizes = &fitted.tables["bytes"].value;
        assert!(sizes.len() <= 11, "seed {seed}: {sizes:?}");
    }
}

const LMO: [(f64, f64); 6] = [(40e-6, 10e-9), (55e-6, 14e-9), (30e-6, 9e-9), (47e-6, 11e-9), (62e-6, 16e-9), (35e-6, 12e-9)];

#[test]
fn lmo() {
    let p = |noise| cluster(&LMO, (1e-6, 8.5e-9), 60e-6, noise);
    recovers("lmo", p, &[("L", 60e-6), ("inverse_b", 8.5e-9)]);
    let check = |fitted: &Fitted, tolerance: f64| {
        for (name, truth) in [("C", LMO.map(|x| x.0)), ("t", LMO.map(|x| x.1))] {
            for (k, (value, want)) in fitted.tables[name].value.iter().zip(truth).enumerate() {
                assert!((value / want - 1.0).abs() < tolerance, "{name}[{k}] = {value} is not {want}");
            }
        }
    };
    let clean = fitted(&p(None), "lmo", 0);
    assert_eq!(clean.estimator.as_deref(), Some("corrected"), "chosen by residual");
    check(&clean, 0.01);
    check(&fitted(&p(Some(Noise { sigma: 0.05, outlier_share: 0.02, outlier_factor: 10.0 })), "lmo", 1), 0.10);
}

/// A port of 8.5 ns per byte hides what a processor needs for a byte when it sends in a row, if that is less: of some, of all, or of none.
#[test]
fn lmo_where_ports_hide_fast_processors() {
    let unlike = vec![(10e-6, 2e-9), (38e-6, 7e-9), (15e-6, 3e-9), (61e-6, 12e-9), (50e-6, 11e-9), (80e-6, 16e-9), (12e-6, 4e-9)];
    for processors in [unlike, vec![(5e-6, 0.6e-9); 4], vec![(5e-6, 6e-9); 4], vec![(5e-6, 12e-9); 4], vec![(5e-6, 0.6e-9); 3]] {
        let fitted = fitted(&cluster(&processors, (0.0, 8.5e-9), 60e-6, None), "lmo", 0);
        assert!((fitted.parameters["inverse_b"].value / 8.5e-9 - 1.0).abs() < 0.01, "{processors:?}: {:?}", fitted.parameters);
        for (k, (value, (_, want))) in fitted.tables["t"].value.iter().zip(&processors).enumerate() {
            assert!((value / want - 1.0).abs() < 0.02, "{processors:?}: t[{k}] = {value}");
        }
    }
}

#[test]
fn the_published_lmo_estimator_finds_half_of_the_processor_delay() {
    // E4 of the reference: on a machine whose replies overlap, its C_i comes out too low
    let platform = cluster(&LMO, (1e-6, 8.5e-9), 60e-6, None);
    let mut probe = SimulatedProbe::new(&platform, Placement::Slot, 0).unwrap();
    let mut session = Session::new(&mut probe);
    let (rank_set, lmo) = (RankSet::new((0..6).collect()), model("lmo").unwrap());
    fit_groups(&mut session, &[&rank_set], &[lmo]).unwrap();
    let both = lmo.fit(&rank_set, session.samples(), 0, &mut collwise::stats::random(0));
    let published = both.iter().find(|f| f.estimator.as_deref() == Some("published")).unwrap();
    for (value, (truth, _)) in published.tables["C"].value.iter().zip(LMO) {
        assert!((0.2..0.8).contains(&(value / truth)), "{value} of {truth}");
    }
}
