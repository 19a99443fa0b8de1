//! Local search over the order of jobs.
//!
//! A genotype is the order in which receivers are served and local broadcasts are started; each receiver is served by whoever gets
//! the message there first. Jobs are moved to other places as long as that helps; deterministic, a bounded number of evaluations.

use super::{Job, Problem, Timeline, timeline};

/// Evaluations at most: milliseconds for some tens of groups.
const EVALUATIONS: usize = 1500;

/// A job whose sender is still open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gene {
    Reach(usize),
    Local(usize),
}

/// Improves a schedule; the result is never worse.
pub fn polish(problem: &Problem, start: &Timeline) -> Timeline {
    let mut genes: Vec<Gene> = start
        .jobs
        .iter()
        .filter_map(|job| match *job {
            Job::Send { to, .. } => Some(Gene::Reach(to)),
            Job::Local(i) => (problem.local_busy[i] > 0.0).then_some(Gene::Local(i)),
        })
        .collect();
    let absent: Vec<Gene> = (0..problem.groups)
        .map(Gene::Local)
        .filter(|g| matches!(g, Gene::Local(i) if problem.local_busy[*i] > 0.0) && !genes.contains(g))
        .collect();
    genes.extend(absent);
    if genes.len() * genes.len() > 40 * EVALUATIONS {
        return start.clone();
    }
    let mut best = start.clone();
    let n = problem.groups;
    let into: Vec<f64> = (0..n * n).map(|k| problem.transfer(k % n, k / n)).collect();
    let Some(first) = evaluate(problem, &into, &genes, f64::INFINITY) else { return best };
    let mut value = first.completion;
    let mut evaluations = 0;
    let mut improved = true;
    while improved && evaluations < EVALUATIONS {
        improved = false;
        'moves: for from in 0..genes.len() {
            for to in 0..genes.len() {
                if from == to || evaluations >= EVALUATIONS {
                    continue;
                }
                let mut moved = genes.clone();
                let gene = moved.remove(from);
                moved.insert(to, gene);
                evaluations += 1;
                // a gain below rounding would go round in circles
                if let Some(found) = evaluate(problem, &into, &moved, value * (1.0 - 1e-12)) {
                    (value, genes, improved) = (found.completion, moved, true);
                    if value < best.completion {
                        best = found;
                    }
                    continue 'moves;
                }
            }
        }
    }
    best
}

/// Serves receivers in order, each by the sender that gets the message there first; ties go to the lower sender. `None` as soon as it is known that
/// it takes as long as `limit`, or longer. `into`: the transfers to each group, receiver by receiver.
fn evaluate(problem: &Problem, into: &[f64], genes: &[Gene], limit: f64) -> Option<Timeline> {
    // never, where a group is not reached
    let mut free = vec![f64::INFINITY; problem.groups];
    free[problem.root] = 0.0;
    let mut jobs = Vec::with_capacity(genes.len());
    // local broadcasts that come before their group is reached start on reception
    let mut waiting = vec![false; problem.groups];
    let local = |i: usize, free: &mut [f64], jobs: &mut Vec<Job>| {
        jobs.push(Job::Local(i));
        free[i] += problem.local_busy[i];
    };
    for gene in genes {
        match *gene {
            Gene::Local(i) if free[i] < f64::INFINITY => local(i, &mut free, &mut jobs),
            Gene::Local(i) => waiting[i] = true,
            Gene::Reach(to) => {
                let arrivals = free.iter().zip(&into[to * problem.groups..]).enumerate().map(|(i, (t, transfer))| (t + transfer, i));
                // whoever is not reached sends never
                let never = (f64::INFINITY, problem.root);
                let (arrival, from) = arrivals.fold(never, |first, next| if next.0 < first.0 { next } else { first });
                if arrival < f64::INFINITY {
                    if arrival + problem.local[to] >= limit {
                        return None;
                    }
                    free[from] += problem.gap(from, to);
                    free[to] = arrival;
                    jobs.push(Job::Send { from, to });
                    if waiting[to] {
                        local(to, &mut free, &mut jobs);
                    }
                }
            }
        }
    }
    Some(timeline(problem, jobs)).filter(|found| found.completion < limit)
}
