//! The best schedule of few groups, by branch and bound: jobs are decided in the order of their start times, ports never idle, and
//! a branch is cut when the groups still to reach cannot be done earlier than the best schedule known.

use super::{Job, Problem, Timeline, solve, timeline};

/// Up to so many groups an exact search takes seconds at most.
pub const EXACT_GROUPS: usize = 8;

struct Search<'a> {
    problem: &'a Problem,
    /// Shortest paths between all groups by `g + L`.
    distance: Vec<f64>,
    free: Vec<Option<f64>>,
    local_open: Vec<bool>,
    jobs: Vec<Job>,
    best: Timeline,
}

/// The best schedule; `None` above [`EXACT_GROUPS`] groups.
pub fn exact(problem: &Problem) -> Option<Timeline> {
    if problem.groups > EXACT_GROUPS {
        return None;
    }
    let n = problem.groups;
    let mut search = Search {
        problem,
        distance: all_pairs(problem),
        free: vec![None; n],
        local_open: (0..n).map(|i| problem.local_busy[i] > 0.0).collect(),
        jobs: Vec::new(),
        best: solve(problem).best,
    };
    search.free[problem.root] = Some(0.0);
    search.branch(0.0, 0.0);
    Some(search.best)
}

/// Floyd and Warshall.
fn all_pairs(problem: &Problem) -> Vec<f64> {
    let n = problem.groups;
    let mut d: Vec<f64> = (0..n * n).map(|k| if k / n == k % n { 0.0 } else { problem.transfer(k / n, k % n) }).collect();
    for k in 0..n {
        for i in 0..n {
            for j in 0..n {
                d[i * n + j] = d[i * n + j].min(d[i * n + k] + d[k * n + j]);
            }
        }
    }
    d
}

impl Search<'_> {
    /// What is decided takes until `done`; what is still open cannot be done before this.
    fn bound(&self, done: f64) -> f64 {
        let n = self.problem.groups;
        let earliest = |j: usize| {
            let reach = (0..n).filter_map(|i| self.free[i].map(|t| t + self.distance[i * n + j]));
            reach.fold(f64::INFINITY, f64::min)
        };
        let open = (0..n).filter_map(|j| match self.free[j] {
            None => Some(earliest(j) + self.problem.local[j]),
            Some(t) => self.local_open[j].then(|| t + self.problem.local[j]),
        });
        open.fold(done, f64::max)
    }

    fn branch(&mut self, done: f64, last_start: f64) {
        if self.bound(done) >= self.best.completion * (1.0 - 1e-12) {
            return;
        }
        let n = self.problem.groups;
        if self.free.iter().all(Option::is_some) && !self.local_open.contains(&true) {
            let found = timeline(self.problem, self.jobs.clone());
            if found.completion < self.best.completion {
                self.best = found;
            }
            return;
        }
        for i in 0..n {
            let Some(start) = self.free[i].filter(|&t| t >= last_start) else { continue };
            if self.local_open[i] {
                (self.local_open[i], self.free[i]) = (false, Some(start + self.problem.local_busy[i]));
                self.jobs.push(Job::Local(i));
                self.branch(done.max(start + self.problem.local[i]), start);
                self.jobs.pop();
                (self.local_open[i], self.free[i]) = (true, Some(start));
            }
            for j in 0..n {
                if self.free[j].is_some() {
                    continue;
                }
                let arrival = start + self.problem.transfer(i, j);
                (self.free[i], self.free[j]) = (Some(start + self.problem.gap(i, j)), Some(arrival));
                self.jobs.push(Job::Send { from: i, to: j });
                let local = if self.local_open[j] { 0.0 } else { self.problem.local[j] };
                self.branch(done.max(arrival + local), start);
                self.jobs.pop();
                (self.free[i], self.free[j]) = (Some(start), None);
            }
        }
    }
}
