//! Schedules between groups: against the exact optimum, the bounds, and the figures of the reference.

mod common;

use collwise::intercluster::{HEURISTICS, Job, Problem, exact, lower_bound, solve, timeline};
use collwise::stats;
use proptest::prelude::*;
use rand::Rng;

/// The set-up of the literature: symmetric links, L in 1..15 ms, g in 100..600 ms, T in 20..3000 ms.
fn random_problem(n: usize, seed: u64, busy_share: f64) -> Problem {
    let mut r = stats::random(seed);
    let mut symmetric = |low: f64, high: f64| {
        let mut m = vec![0.0; n * n];
        for i in 0..n {
            for j in i + 1..n {
                m[i * n + j] = r.random_range(low..high);
                m[j * n + i] = m[i * n + j];
            }
        }
        m
    };
    let (gap, latency) = (symmetric(0.1, 0.6), symmetric(0.001, 0.015));
    let local: Vec<f64> = (0..n).map(|_| r.random_range(0.02..3.0)).collect();
    let local_busy = local.iter().map(|t| busy_share * t).collect();
    Problem { groups: n, root: 0, gap, latency, local, local_busy }
}

fn check(problem: &Problem) {
    let solution = solve(problem);
    let bound = lower_bound(problem);
    for h in HEURISTICS {
        let sends = (h.sends)(problem);
        assert_eq!(sends.len(), problem.groups - 1, "{}", h.name);
        let mut reached = vec![false; problem.groups];
        reached[problem.root] = true;
        for (i, j) in sends {
            assert!(reached[i] && !reached[j], "{}: {i} -> {j}", h.name);
            reached[j] = true;
        }
        let found = solution.completions[h.name];
        assert!(found >= bound * (1.0 - 1e-12) && solution.best.completion <= found, "{}: {found}, bound {bound}", h.name);
    }
    let again = timeline(problem, solution.best.jobs.clone());
    assert_eq!(again.completion, solution.best.completion);
    assert_eq!(again.sends.len(), problem.groups - 1);
}

proptest! {
    #![proptest_config(common::cases(60))]

    #[test]
    fn every_heuristic_reaches_everybody_and_keeps_the_bounds(n in 1usize..20, seed in 0u64..1000, busy in 0.0f64..1.0) {
        check(&random_problem(n, seed, busy));
    }

    #[test]
    fn the_optimum_is_between_the_bounds_and_the_polished_schedule(n in 1usize..6, seed in 0u64..1000, busy in prop::sample::select(vec![0.0, 0.3, 1.0])) {
        let problem = random_problem(n, seed, busy);
        let best = exact(&problem).unwrap();
        prop_assert!(best.completion <= solve(&problem).best.completion * (1.0 + 1e-12));
        prop_assert!(best.completion >= lower_bound(&problem) * (1.0 - 1e-12));
    }
}

/// All schedules of few groups, by brute force: every order of sends and local broadcasts.
fn brute_force(problem: &Problem, jobs: &mut Vec<Job>, best: &mut f64) {
    let n = problem.groups;
    let reached = |jobs: &[Job], i: usize| i == problem.root || jobs.iter().any(|j| matches!(j, Job::Send { to, .. } if *to == i));
    if jobs.len() == 2 * n - 1 {
        *best = best.min(timeline(problem, jobs.clone()).completion);
        return;
    }
    for i in (0..n).filter(|&i| reached(jobs, i)).collect::<Vec<_>>() {
        let mut next: Vec<Job> = (0..n).filter(|&j| !reached(jobs, j)).map(|to| Job::Send { from: i, to }).collect();
        if !jobs.contains(&Job::Local(i)) {
            next.push(Job::Local(i));
        }
        for job in next {
            jobs.push(job);
            brute_force(problem, jobs, best);
            jobs.pop();
        }
    }
}

#[test]
fn branch_and_bound_equals_brute_force() {
    for seed in 0..20 {
        for busy in [0.0, 0.2, 0.8] {
            let problem = random_problem(4, seed, busy);
            let mut best = f64::INFINITY;
            brute_force(&problem, &mut Vec::new(), &mut best);
            let found = exact(&problem).unwrap().completion;
            assert!((found / best - 1.0).abs() < 1e-12, "seed {seed} busy {busy}: {found} against {best}");
        }
    }
}

/// The reference's table (n = 10, local broadcasts that start on reception): mean makespan in ms of 3000 draws.
#[test]
fn mean_makespans_are_those_of_the_reference() {
    const DRAWS: u64 = 1000;
    let (mut sums, mut best, mut polished) = (std::collections::BTreeMap::new(), 0.0, 0.0);
    for seed in 0..DRAWS {
        let solution = solve(&random_problem(10, 10_000 + seed, 0.0));
        for (name, t) in &solution.completions {
            *sums.entry(*name).or_insert(0.0) += t / DRAWS as f64 * 1e3;
        }
        best += solution.completions.values().copied().fold(f64::INFINITY, f64::min) / DRAWS as f64 * 1e3;
        polished += solution.best.completion / DRAWS as f64 * 1e3;
    }
    for (name, want) in [
        ("Flat", 5194.0),
        ("FEF", 3421.0),
        ("ECEF", 3251.0),
        ("ECEF-LA", 3243.0),
        ("ECEF-LAt", 3314.0),
        ("ECEF-LAT", 3145.0),
        ("BottomUp", 3234.0),
    ] {
        assert!((sums[name] / want - 1.0).abs() < 0.02, "{name}: {} ms, the reference has {want}", sums[name]);
    }
    assert!((best / 3102.0 - 1.0).abs() < 0.02, "best of all: {best}");
    assert!(polished <= best && (polished / 3077.0 - 1.0).abs() < 0.02, "polished: {polished}");
}

/// Against the optimum (n = 7): ECEF 1.049, best of all and polished 1.000.
#[test]
fn polished_schedules_of_seven_groups_are_optimal_nearly_always() {
    let (mut ecef, mut polished) = (Vec::new(), Vec::new());
    for seed in 0..60 {
        let problem = random_problem(7, 20_000 + seed, 0.0);
        let optimum = exact(&problem).unwrap().completion;
        let solution = solve(&problem);
        ecef.push(solution.completions["ECEF"] / optimum);
        polished.push(solution.best.completion / optimum);
    }
    let (ecef, polished) = (stats::mean(&ecef).unwrap(), stats::mean(&polished).unwrap());
    assert!((1.02..1.08).contains(&ecef), "{ecef}");
    assert!((1.0 - 1e-12..1.005).contains(&polished), "{polished}");
}

#[test]
fn equal_links_make_ecef_optimal() {
    // homogeneous: the greedy schedule is the postal one (Karp et al. 1993)
    let n = 8;
    let problem =
        Problem { groups: n, root: 3, gap: vec![1.0; n * n], latency: vec![0.5; n * n], local: vec![0.0; n], local_busy: vec![0.0; n] };
    assert_eq!(solve(&problem).completions["ECEF"], exact(&problem).unwrap().completion);
    assert_eq!(lower_bound(&problem), exact(&problem).unwrap().completion);
}
