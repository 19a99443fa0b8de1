//! Scheduling what crosses between groups: who sends to whom, in which order, so that the last group is done earliest.
//!
//! Each group has a coordinator. A send i -> j keeps i's port for `g_ij` and arrives `L_ij` after that. The local broadcast of a
//! group is one more job on its coordinator's port: it keeps the port for `local_busy` and is complete `local` after its start; one
//! that keeps the port for no time starts on reception and delays nothing. A heuristic is one file and two lines here.

mod bottom_up;
mod bounds;
mod ecef;
mod exact;
mod fef;
mod file;
mod flat;
mod gantt;
mod look_ahead;
mod polish;

use crate::units::Seconds;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use bounds::count;
#[cfg(feature = "tune")]
pub use bounds::lower_bound;
pub use exact::{EXACT_GROUPS, exact};
pub use gantt::gantt;
use polish::LESS;
pub use polish::polish;

/// A broadcast among coordinators.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Number of groups.
    pub groups: usize,
    /// The group that holds the message.
    pub root: usize,
    /// `g_ij`, row by row.
    pub gap: Vec<Seconds>,
    /// `L_ij`, row by row.
    pub latency: Vec<Seconds>,
    /// Time of each local broadcast.
    pub local: Vec<Seconds>,
    /// How long each local broadcast keeps the coordinator's port.
    pub local_busy: Vec<Seconds>,
}

impl Problem {
    /// The gap from i to j.
    pub fn gap(&self, i: usize, j: usize) -> f64 {
        self.gap[i * self.groups + j]
    }

    /// The latency from i to j.
    pub fn latency(&self, i: usize, j: usize) -> f64 {
        self.latency[i * self.groups + j]
    }

    /// The time from the start of a send until the message is there.
    pub fn transfer(&self, i: usize, j: usize) -> f64 {
        self.gap(i, j) + self.latency(i, j)
    }
}

/// A job on a coordinator's port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    /// Send to another coordinator.
    Send {
        /// The sender.
        from: usize,
        /// The receiver.
        to: usize,
    },
    /// The local broadcast of a group.
    Local(usize),
}

/// A send with its times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sent {
    /// The sending group.
    pub from: usize,
    /// The receiving group.
    pub to: usize,
    /// When it starts.
    pub start_s: Seconds,
    /// When the message is there.
    pub arrive_s: Seconds,
}

/// A schedule with all its times.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// The jobs in the order in which they were decided; each coordinator works on its own ones in this order.
    pub jobs: Vec<Job>,
    /// The sends, by start time.
    pub sends: Vec<Sent>,
    /// When each group's local broadcast starts.
    pub local_start: Vec<Seconds>,
    /// When the last group is done.
    pub completion: Seconds,
}

/// The times of jobs, each as early as its port and its message allow. Local broadcasts that keep their port for no time start
/// on reception, wherever they stand; those that are not among the jobs come last on their ports.
pub fn timeline(problem: &Problem, jobs: Vec<Job>) -> Timeline {
    let n = problem.groups;
    let (mut free, mut arrival) = (vec![f64::INFINITY; n], vec![f64::INFINITY; n]);
    (free[problem.root], arrival[problem.root]) = (0.0, 0.0);
    let mut local_start: Vec<f64> = vec![f64::NAN; n];
    let mut sends = Vec::with_capacity(n - 1);
    let mut placed = vec![false; n];
    jobs.iter().for_each(|job| {
        if let Job::Local(i) = job {
            placed[*i] = true
        }
    });
    let absent: Vec<Job> = (0..n).filter(|&i| !placed[i]).map(Job::Local).collect();
    for job in jobs.iter().chain(&absent) {
        match *job {
            Job::Send { from, to } => {
                let start = free[from];
                free[from] = start + problem.gap(from, to);
                (arrival[to], free[to]) = (start + problem.transfer(from, to), start + problem.transfer(from, to));
                sends.push(Sent { from, to, start_s: start, arrive_s: arrival[to] });
            }
            Job::Local(i) if problem.local_busy[i] == 0.0 => local_start[i] = arrival[i],
            Job::Local(i) => {
                local_start[i] = free[i];
                free[i] += problem.local_busy[i];
            }
        }
    }
    let completion = (0..n).map(|i| (local_start[i] + problem.local[i]).max(arrival[i])).fold(0.0, f64::max);
    sends.sort_by(|a, b| a.start_s.total_cmp(&b.start_s).then(a.from.cmp(&b.from)).then(a.to.cmp(&b.to)));
    Timeline { jobs, sends, local_start, completion }
}

/// A way to choose the sends.
pub struct Heuristic {
    /// Its name in the literature.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
    /// It is tried for at most so many groups: what looks ahead takes cubic time.
    pub most_groups: usize,
    /// Chooses the sends, in order; a group is reached before it sends.
    pub sends: fn(&Problem) -> Vec<(usize, usize)>,
}

/// Every heuristic.
pub const HEURISTICS: &[&Heuristic] = &[
    &flat::HEURISTIC,
    &fef::HEURISTIC,
    &ecef::HEURISTIC,
    &look_ahead::LA,
    &look_ahead::LAT_MIN,
    &look_ahead::LAT_MAX,
    &bottom_up::HEURISTIC,
];

/// What came of scheduling.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// The name of what found the best schedule: a heuristic, `polished`, or `exact`.
    pub heuristic: &'static str,
    /// The best schedule.
    pub best: Timeline,
    /// The completion time of each heuristic that was tried.
    pub completions: BTreeMap<&'static str, Seconds>,
}

/// The best of all heuristics, polished by local search. Ties go to the earlier heuristic.
pub fn solve(problem: &Problem) -> Solution {
    let tried = HEURISTICS.iter().filter(|h| problem.groups <= h.most_groups);
    let found: Vec<(&'static str, Timeline)> = tried
        .map(|h| (h.name, timeline(problem, (h.sends)(problem).into_iter().map(|(from, to)| Job::Send { from, to }).collect())))
        .collect();
    let completions = found.iter().map(|(name, t)| (*name, t.completion)).collect();
    let first = found.into_iter().reduce(|a, b| if b.1.completion < a.1.completion { b } else { a });
    // `flat` is tried for any number of groups
    let (name, best) = first.unwrap_or_else(|| ("Flat", timeline(problem, Vec::new())));
    // where that is as fast as can be nothing is looked for
    if best.completion * LESS <= bounds::reach(problem) {
        return Solution { heuristic: name, best, completions };
    }
    let polished = polish(problem, &best);
    let (heuristic, best) = if polished.completion < best.completion { ("polished", polished) } else { (name, best) };
    Solution { heuristic, best, completions }
}

/// Repeats a choice until every group is reached: of all pairs (informed sender, receiver still to reach) the one with the least
/// score; ties go to the lower sender, then the lower receiver. The score is given when the sender's port is free, and what is `ahead` of the
/// receiver, given who is reached.
fn greedy(problem: &Problem, ahead: impl Fn(&[bool], usize) -> f64, score: impl Fn(usize, usize, f64, f64) -> f64) -> Vec<(usize, usize)> {
    let n = problem.groups;
    let mut reached = vec![false; n];
    let mut free = vec![0.0; n];
    reached[problem.root] = true;
    let mut sends = Vec::with_capacity(n.saturating_sub(1));
    for _ in 1..n {
        let open: Vec<(usize, f64)> = (0..n).filter(|&j| !reached[j]).map(|j| (j, ahead(&reached, j))).collect();
        let mut best: Option<(f64, usize, usize)> = None;
        for i in (0..n).filter(|&i| reached[i]) {
            for &(j, ahead) in &open {
                let s = score(i, j, free[i], ahead);
                if best.is_none_or(|(b, _, _)| s < b) {
                    best = Some((s, i, j));
                }
            }
        }
        if let Some((_, i, j)) = best {
            reached[j] = true;
            free[j] = free[i] + problem.transfer(i, j);
            free[i] += problem.gap(i, j);
            sends.push((i, j));
        }
    }
    sends
}
