//! Early Completing Edge First: the send that arrives first, `RT_i + g_ij + L_ij`.
//!
//! A sender's best receiver does not depend on when its port is free. So senders wait in a heap by the arrival of their best send,
//! each with a short sorted list of its nearest receivers, which is filled anew when all on it are reached: about O(n^2) in all
//! instead of O(n^3).

use super::{Heuristic, Problem};
use crate::event::EventQueue;

/// ECEF.
pub const HEURISTIC: Heuristic = Heuristic {
    name: "ECEF",
    summary: "the send that arrives first",
    citation: "Bhat, Raghavendra, Prasanna, ICDCS 1999",
    most_groups: usize::MAX,
    sends,
};

/// Receivers on a sender's list.
const LIST: usize = 32;

/// A sender's nearest receivers, the nearest last.
#[derive(Default)]
struct Nearest {
    list: Vec<(f64, u32)>,
}

impl Nearest {
    /// The nearest receiver that is not reached yet.
    fn next(&mut self, problem: &Problem, i: usize, open: &[u32], reached: &[bool]) -> Option<(f64, u32)> {
        while self.list.last().is_some_and(|&(_, j)| reached[j as usize]) {
            self.list.pop();
        }
        if self.list.is_empty() {
            self.fill(problem, i, open, reached);
        }
        self.list.last().copied()
    }

    fn fill(&mut self, problem: &Problem, i: usize, open: &[u32], reached: &[bool]) {
        let order = |a: &(f64, u32), b: &(f64, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        self.list.extend(open.iter().filter(|&&j| !reached[j as usize]).map(|&j| (problem.transfer(i, j as usize), j)));
        if self.list.len() > LIST {
            self.list.select_nth_unstable_by(LIST, order);
            self.list.truncate(LIST);
        }
        self.list.sort_unstable_by(|a, b| order(b, a));
        self.list.shrink_to_fit();
    }
}

fn sends(problem: &Problem) -> Vec<(usize, usize)> {
    let n = problem.groups;
    let mut reached = vec![false; n];
    let mut free = vec![0.0; n];
    let mut nearest: Vec<Nearest> = (0..n).map(|_| Nearest::default()).collect();
    // receivers still to reach; cleaned when half of it is stale
    let mut open: Vec<u32> = (0..n as u32).filter(|&j| j as usize != problem.root).collect();
    let mut queue = EventQueue::with_capacity(n);
    let pair = |sender: usize, receiver: u32| (sender as u64) << 32 | u64::from(receiver);
    let mut sends = Vec::with_capacity(n.saturating_sub(1));
    reached[problem.root] = true;
    if let Some((w, j)) = nearest[problem.root].next(problem, problem.root, &open, &reached) {
        queue.push(w, pair(problem.root, j));
    }
    while sends.len() + 1 < n {
        let Some((arrival, next)) = queue.pop() else { break };
        let (i, j) = ((next >> 32) as usize, next as u32 as usize);
        if !reached[j] {
            reached[j] = true;
            sends.push((i, j));
            free[i] += problem.gap(i, j);
            free[j] = arrival;
            if open.len() > 2 * (n - sends.len()) {
                open.retain(|&k| !reached[k as usize]);
            }
            if let Some((w, k)) = nearest[j].next(problem, j, &open, &reached) {
                queue.push(free[j] + w, pair(j, k));
            }
        }
        if let Some((w, k)) = nearest[i].next(problem, i, &open, &reached) {
            queue.push(free[i] + w, pair(i, k));
        }
    }
    sends
}

#[cfg(test)]
mod tests {
    use super::super::greedy;
    use super::*;
    use rand::Rng;

    #[test]
    fn the_fast_form_equals_the_definition() {
        let mut random = crate::stats::random(5);
        for n in (1..40).chain([120]) {
            let mut draw = |high: f64| (0..n * n).map(|_| 1e-3 + random.random::<f64>() * high).collect::<Vec<f64>>();
            let (gap, latency) = (draw(0.5), draw(0.02));
            let p = Problem { groups: n, root: n / 2, gap, latency, local: vec![0.0; n], local_busy: vec![0.0; n] };
            assert_eq!(sends(&p), greedy(&p, |_, _| 0.0, |i, j, free, _| free + p.transfer(i, j)), "n = {n}");
        }
    }
}
