//! Local search over the order of jobs.
//!
//! A genotype is the order in which receivers are served and local broadcasts are started; each receiver is served by whoever gets
//! the message there first. Jobs are moved to other places as long as that helps; deterministic, a bounded number of evaluations.

use super::{Job, Problem, Timeline, timeline};

/// Evaluations at most: milliseconds for some tens of groups.
const EVALUATIONS: usize = 1500;

/// What is faster takes less than this share: a gain below rounding would go round in circles.
pub const LESS: f64 = 1.0 - 1e-12;

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
    let mut scratch = Scratch::default();
    let Some(first) = evaluate(problem, &into, &genes, f64::INFINITY, &mut scratch) else { return best };
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
                move_gene(&mut genes, from, to);
                evaluations += 1;
                if let Some(found) = evaluate(problem, &into, &genes, value * LESS, &mut scratch) {
                    (value, improved) = (found.completion, true);
                    if value < best.completion {
                        best = found;
                    }
                    continue 'moves;
                }
                move_gene(&mut genes, to, from);
            }
        }
    }
    best
}

/// Moves a gene to another place; those between move up.
fn move_gene(genes: &mut [Gene], from: usize, to: usize) {
    if from < to { genes[from..=to].rotate_left(1) } else { genes[to..=from].rotate_right(1) }
}

/// Room for an evaluation: thousands are made.
#[derive(Default)]
struct Scratch {
    /// When each group's coordinator may send: never, where the group is not reached.
    free: Vec<f64>,
    /// Local broadcasts that come before their group is reached start on reception.
    waiting: Vec<bool>,
    jobs: Vec<Job>,
}

/// Serves receivers in order, each by the sender that gets the message there first; ties go to the lower sender. `None` as soon as it is known that
/// it takes as long as `limit`, or longer. `into`: the transfers to each group, receiver by receiver.
fn evaluate(problem: &Problem, into: &[f64], genes: &[Gene], limit: f64, scratch: &mut Scratch) -> Option<Timeline> {
    let Scratch { free, waiting, jobs } = scratch;
    jobs.clear();
    free.clear();
    free.resize(problem.groups, f64::INFINITY);
    free[problem.root] = 0.0;
    waiting.clear();
    waiting.resize(problem.groups, false);
    let local = |i: usize, free: &mut [f64], jobs: &mut Vec<Job>| {
        jobs.push(Job::Local(i));
        free[i] += problem.local_busy[i];
    };
    for gene in genes {
        match *gene {
            Gene::Local(i) if free[i] < f64::INFINITY => local(i, free, jobs),
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
                        local(to, free, jobs);
                    }
                }
            }
        }
    }
    Some(timeline(problem, jobs.clone())).filter(|found| found.completion < limit)
}
