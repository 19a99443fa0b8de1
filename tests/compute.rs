//! What copying and combining takes is measured, is in the policy, and is in what is predicted.

mod common;

use collwise::collective::{Collective, Parameters, allgather, allreduce, bcast, reduce};
use collwise::measure::{Session, SimulatedProbe};
use collwise::model::CostModel;
use collwise::plan::{Location, PolyModel, plan};
use collwise::platform::{Placement, Platform};
use collwise::policy::{CompiledPolicy, Policy};
use collwise::predict::completion;
use collwise::sim::{Disturbance, Simulator};
use collwise::tune::{TuneOptions, tune};

const COLLECTIVES: [&Collective; 4] = [&bcast::COLLECTIVE, &reduce::COLLECTIVE, &allreduce::COLLECTIVE, &allgather::COLLECTIVE];

/// A switch with six hosts, which combine and copy as said.
fn platform(hosts: &str) -> Platform {
    let text = format!(
        "format = 1\nname = \"t\"\n[hosts]\nsend_overhead_s = 5e-6\nrecv_overhead_s = 6e-6\ngap_s = 8e-6\ngap_s_per_byte = 8.5e-9\n{hosts}\n\
         [[group]]\nname = \"a\"\ncount = 6\nlatency_s = 50e-6\n"
    );
    Platform::parse("t", &text).unwrap()
}

fn tuned(platform: &Platform, collectives: &[&'static Collective]) -> Policy {
    let mut probe = SimulatedProbe::new(platform, Placement::Slot, 1).unwrap();
    tune(&mut Session::new(&mut probe), TuneOptions { collectives, ..TuneOptions::default() }).unwrap().1
}

#[test]
fn it_is_measured_and_a_reduction_takes_as_long_as_is_predicted() {
    let platform = platform("copy_s_per_byte = 0.5e-9\ncombine_s_per_byte = 4e-9");
    let policy = tuned(&platform, &COLLECTIVES);
    let [own] = &policy.groups[0].compute[..] else { panic!("one for all hosts: {:?}", policy.groups[0].compute) };
    for bytes in [100, 8 << 10, 1 << 20, 8 << 20] {
        let (copy, combine) = (own.copy(bytes) / bytes as f64, own.combine(bytes) / bytes as f64);
        assert!((copy / 0.5e-9 - 1.0).abs() < 1e-3 && (combine / 4e-9 - 1.0).abs() < 1e-3, "{bytes} B: {copy} and {combine}");
    }
    let again = Policy::parse("policy", &policy.to_toml().unwrap()).unwrap();
    assert_eq!(again, policy, "it reads back as it was written");
    let (members, simulator) = (collwise::plan::everybody(&policy), Simulator::new(&platform, Placement::Slot).unwrap());
    let mut free = policy.clone();
    free.groups[0].compute.iter_mut().for_each(|c| (c.copy_s, c.combine_s) = (vec![0.0; 2], vec![0.0; 2]));
    let [known, free] = [policy, free].map(|policy| CompiledPolicy::new(policy).unwrap());
    for (collective, name) in
        [(&reduce::COLLECTIVE, "binomial"), (&allreduce::COLLECTIVE, "rabenseifner"), (&allreduce::COLLECTIVE, "ring")]
    {
        let bytes = 960_000;
        let algorithm = collective.algorithm(name).unwrap();
        let schedule = algorithm.schedule(&collective.shape(6, 0, bytes), &Parameters::default()).unwrap();
        let traces = simulator.run(&schedule, &mut Disturbance::new(Default::default(), 1)).unwrap();
        let truth = traces.iter().map(|t| t.finish()).fold(0.0, f64::max);
        let off = |policy| completion(&schedule, &PolyModel::new(policy, &members, collective, bytes).unwrap()).unwrap() / truth - 1.0;
        assert!(off(&known).abs() < 0.02 && off(&free) < -0.1, "{name}: {} off, and {} if it were free", off(&known), off(&free));
    }
}

#[test]
fn where_processors_differ_it_is_measured_on_each() {
    let mut platform = Platform::read(&common::file("platforms/hcl16.toml")).unwrap();
    for (k, variant) in platform.groups[0].variants.iter_mut().enumerate() {
        variant.hosts.combine_s_per_byte = Some(1e-9 * (k + 1) as f64);
    }
    let compiled = CompiledPolicy::new(tuned(&platform, &[&bcast::COLLECTIVE])).unwrap();
    assert!(compiled.has_unlike_processors(0));
    let (members, hosts) = (collwise::plan::everybody(&compiled.policy), platform.host_names());
    let costs = PolyModel::new(&compiled, &members, &bcast::COLLECTIVE, 1000).unwrap();
    for (rank, name) in compiled.policy.groups[0].hosts.iter().enumerate() {
        let host = hosts.iter().position(|h| h == name).unwrap();
        let want = platform.host_parameters()[host].combine_s_per_byte.unwrap() * 1e5;
        assert!((costs.combine(rank, 100_000) / want - 1.0).abs() < 1e-3, "{name}: {} for {want} s", costs.combine(rank, 100_000));
    }
}

#[test]
fn of_an_older_policy_it_is_not_known_and_what_needs_it_is_left_to_the_library() {
    let mut policy = tuned(&platform("combine_s_per_byte = 4e-9"), &COLLECTIVES);
    let everybody = collwise::plan::everybody(&policy);
    let decided = |policy: &Policy, members: &[Location], collective: &'static Collective| {
        let compiled = CompiledPolicy::new(policy.clone()).unwrap();
        let plan = plan(&compiled, members, collective, &collective.shape(members.len(), 0, 64_000)).unwrap();
        (plan.form.is_native(), plan.predicted_s.is_some())
    };
    assert_eq!(decided(&policy, &everybody[..4], &allreduce::COLLECTIVE), (false, true));
    policy.groups[0].compute.clear();
    let older = Policy::parse("older", &policy.to_toml().unwrap()).unwrap();
    assert_eq!(older, policy);
    // a row was measured; among some ranks nobody can tell
    assert_eq!(decided(&older, &everybody, &allreduce::COLLECTIVE), (false, true));
    for collective in [&allreduce::COLLECTIVE, &allgather::COLLECTIVE] {
        assert_eq!(decided(&older, &everybody[..4], collective), (true, false), "{}", collective.name);
    }
    let compiled = CompiledPolicy::new(older).unwrap();
    let costs = PolyModel::new(&compiled, &everybody, &bcast::COLLECTIVE, 1000).unwrap();
    assert_eq!((costs.copy(0, 1), costs.combine(3, 8)), (f64::INFINITY, f64::INFINITY));
    let broadcast = compiled.decide(&bcast::COLLECTIVE, 0, &[0, 1, 2, 3], 64_000).unwrap();
    assert!(!broadcast.algorithm.is_native() && broadcast.predicted_s.is_finite());
}
