//! On the simulated platforms the chosen algorithm is at most 5 % slower than the best in the mean, and never above 30 %, at sizes
//! that nothing was measured at, over all ranks of a group and over rank counts that were not measured either.

use collwise::accuracy::regrets;
use collwise::collective::bcast;
use collwise::measure::{Session, SimulatedProbe};
use collwise::plan::{TwoLevelParameters, members, plan, trees_of, two_level};
use collwise::platform::generate::{Wanted, generate};
use collwise::platform::{Placement, Platform};
use collwise::policy::{CompiledPolicy, Policy};
use collwise::regret::regret;
use collwise::schedule::{Program, Schedule, Trace};
use collwise::sim::Disturbance;
use collwise::tune::{TuneOptions, tune};
use collwise::two_level::INTER_GROUP_ALGORITHMS;
use std::path::Path;

fn check(name: &str) {
    let platform = Platform::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("platforms").join(format!("{name}.toml"))).unwrap();
    let mut probe = SimulatedProbe::new(&platform, Placement::Slot, 1).unwrap();
    let (discovery, policy) = {
        let mut session = Session::new(&mut probe);
        tune(&mut session, TuneOptions::default()).unwrap()
    };
    let again = Policy::parse("policy", &policy.to_toml().unwrap()).unwrap();
    assert_eq!(again, policy, "a policy reads back as it was written");
    let ranks: Vec<Vec<usize>> = discovery.groups.iter().map(|g| g.ranks.clone()).collect();
    let compiled = CompiledPolicy::new(policy).unwrap();
    let mut cases = regret(&compiled, &probe, &ranks).unwrap();
    let mean = cases.iter().map(|c| c.regret.unwrap()).sum::<f64>() / cases.len() as f64;
    cases.sort_by(|a, b| b.regret.unwrap().total_cmp(&a.regret.unwrap()));
    println!("{name}: mean regret {:.2} %, worst {:.1} % over {} cases", mean * 100.0, cases[0].regret.unwrap() * 100.0, cases.len());
    for c in cases.iter().take(12) {
        println!(
            "  {} P={} m={}: {} {:.3e}, best {} {:.3e}: {:.1} %",
            c.group,
            c.ranks,
            c.bytes,
            c.chosen,
            c.chosen_s,
            c.best,
            c.best_s,
            c.regret.unwrap() * 100.0
        );
    }
    assert!(mean <= 0.05, "{name}: mean regret {mean}");
    assert!(cases[0].regret.unwrap() <= 0.30, "{name}: {:?}", cases[0]);
}

#[test]
fn ccgrid2007() {
    check("ccgrid2007");
}

#[test]
fn pmeo2006() {
    check("pmeo2006");
}

#[test]
fn icluster2() {
    check("icluster2");
}

#[test]
fn hcl16() {
    check("hcl16");
}

#[test]
fn measuring_what_is_predicted_to_be_fast_takes_a_tenth_of_measuring_everything_and_loses_little() {
    for seed in [1, 2] {
        let platform = generate(Wanted { sites: 4, hosts: 24, seed }).unwrap();
        let mut probe = SimulatedProbe::new(&platform, Placement::Slot, 1).unwrap();
        let mut session = Session::new(&mut probe);
        let (_, policy) = tune(&mut session, TuneOptions::default()).unwrap();
        let tuned = session.elapsed();
        tune(&mut session, TuneOptions { exhaustive: true, ..Default::default() }).unwrap();
        let rest = session.elapsed() - tuned;
        let members = members(&policy, &platform.host_names()).unwrap();
        let choices = regrets(&CompiledPolicy::new(policy).unwrap(), &members, session.samples()).unwrap();
        assert!(choices.iter().filter(|c| c.group.is_none()).count() >= 10 && choices.iter().all(|c| c.measured > 5), "{choices:?}");
        let mean = choices.iter().map(|c| c.regret.unwrap()).sum::<f64>() / choices.len() as f64;
        println!("seed {seed}: {tuned:.0} s, everything else {rest:.0} s, mean regret {:.2} %", mean * 100.0);
        assert!((-1e-4..=0.03).contains(&mean), "seed {seed}: mean regret {mean}");
        assert!(tuned * 10.0 <= rest, "seed {seed}: tuning took {tuned} s, measuring the rest {rest} s");
    }
}

#[test]
fn where_groups_are_smaller_than_those_tuned_the_tree_inside_them_is_chosen_anew() {
    let file = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let platform = Platform::read(&file("platforms/ccgrid2007.toml")).unwrap();
    let policy = CompiledPolicy::new(Policy::read(&file("policies/ccgrid2007.toml")).unwrap()).unwrap();
    let probe = SimulatedProbe::new(&platform, Placement::Slot, 1).unwrap();
    for step in [2, 5] {
        let ranks: Vec<usize> = (0..78).step_by(step).collect();
        let hosts: Vec<String> = ranks.iter().map(|&r| platform.host_names()[r].clone()).collect();
        let members = members(&policy.policy, &hosts).unwrap();
        let seconds = |schedule: Schedule| {
            let mut all = Schedule { programs: vec![Program::new(); 78] };
            for (me, program) in schedule.programs.into_iter().enumerate() {
                all.programs[ranks[me]] = program.renamed(|r| ranks[r]);
            }
            let traces = probe.simulator().run(&all, &mut Disturbance::new(Default::default(), 1)).unwrap();
            traces.iter().map(Trace::finish).fold(0.0, f64::max)
        };
        for bytes in [20, 40_000, 200_000, 700_000, 2_500_000] {
            let row = policy.two_level(&bcast::COLLECTIVE, bytes).unwrap();
            let chosen = seconds(plan(&policy, &members, 0, bytes).unwrap().schedule().unwrap());
            let of_tree = |local| {
                let way = TwoLevelParameters::of(row, local).unwrap();
                seconds(two_level(&policy, &members, 0, bytes, way).unwrap().schedule(members.len()).unwrap())
            };
            let best = bcast::trees().map(of_tree).fold(f64::INFINITY, f64::min);
            assert!(chosen <= 1.06 * best, "{} ranks, {bytes} bytes: {chosen} s, the best tree {best} s", ranks.len());
        }
    }
}

/// What a user meets: any size, any root, both sides of the size at which messages begin to wait for a handshake.
#[test]
fn between_tuned_sizes_and_from_any_root() {
    use rand::{Rng, SeedableRng};
    for seed in [3, 4] {
        let platform = generate(Wanted { sites: 4, hosts: 20, seed }).unwrap();
        let mut probe = SimulatedProbe::new(&platform, Placement::Slot, 1).unwrap();
        let (_, policy) = tune(&mut Session::new(&mut probe), TuneOptions::default()).unwrap();
        let policy = CompiledPolicy::new(policy).unwrap();
        let members = members(&policy.policy, &platform.host_names()).unwrap();
        let seconds = |schedule: &Schedule| {
            let traces = probe.simulator().run(schedule, &mut Disturbance::new(Default::default(), 1)).unwrap();
            traces.iter().map(Trace::finish).fold(0.0, f64::max)
        };
        let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut cases: Vec<(usize, usize)> = [65_536, 65_537, 92_000].into_iter().map(|bytes| (bytes, 0)).collect();
        cases.extend((0..27).map(|_| (2f64.powf(random.random_range(0.0..22.0)) as usize, random.random_range(0..members.len()))));
        let mut regrets: Vec<(f64, String)> = Vec::new();
        for (bytes, root) in cases {
            let plan = plan(&policy, &members, root, bytes).unwrap();
            let chosen = seconds(&plan.schedule().unwrap());
            let mut best = (f64::INFINITY, String::new());
            for inter_group in INTER_GROUP_ALGORITHMS {
                for intra_group in trees_of(inter_group) {
                    let segments = [0, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 65_536];
                    for segment in segments.into_iter().filter(|&s| s < bytes && (s == 0 || inter_group.is_segmented())) {
                        let way = TwoLevelParameters { inter_group, segment, in_flight: 0, intra_group };
                        let t = seconds(&two_level(&policy, &members, root, bytes, way).unwrap().schedule(members.len()).unwrap());
                        if t < best.0 {
                            best = (t, way.words(bytes));
                        }
                    }
                }
            }
            let regret = chosen / best.0.min(chosen) - 1.0;
            regrets.push((
                regret,
                format!("{bytes} from {root}: {chosen:.4} by {:?} {}, best {:.4} by {}", plan.inter_group, plan.segment, best.0, best.1),
            ));
        }
        regrets.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mean = regrets.iter().map(|r| r.0).sum::<f64>() / regrets.len() as f64;
        println!("seed {seed}: mean regret {:.2} %", mean * 100.0);
        regrets.iter().take(8).for_each(|(r, what)| println!("  {:.1} % {what}", r * 100.0));
        assert!(mean <= 0.02 && regrets[0].0 <= 0.15, "seed {seed}: mean {mean}, worst {:?}", regrets[0]);
    }
}
