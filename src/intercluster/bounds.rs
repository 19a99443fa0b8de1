//! Lower bounds on any schedule's completion.

use super::Problem;

/// The larger of both bounds.
#[cfg(feature = "tune")]
pub fn lower_bound(problem: &Problem) -> f64 {
    reach(problem).max(count(problem))
}

/// Bhat's earliest reach time: `max_j (d_j + T_j)`, d the shortest path by `g + L`, ports ignored.
pub fn reach(problem: &Problem) -> f64 {
    distances(problem).iter().zip(&problem.local).map(|(d, t)| d + t).fold(0.0, f64::max)
}

/// The shortest path from the root to each group by `g + L`: Dijkstra's algorithm where all groups are neighbours, on any build.
fn distances(problem: &Problem) -> Vec<f64> {
    let n = problem.groups;
    let (mut found, mut is_open) = (vec![f64::INFINITY; n], vec![true; n]);
    found[problem.root] = 0.0;
    while let Some(i) = (0..n).filter(|&i| is_open[i]).min_by(|&a, &b| found[a].total_cmp(&found[b])) {
        is_open[i] = false;
        for j in (0..n).filter(|&j| is_open[j]) {
            found[j] = found[j].min(found[i] + problem.transfer(i, j));
        }
    }
    found
}

/// The counting bound: on a network where every gap and latency is the least one, the k-th informed coordinator is not earlier
/// than in the postal model; the slowest local broadcasts get the earliest places.
pub fn count(problem: &Problem) -> f64 {
    let n = problem.groups;
    let least = |f: &dyn Fn(usize, usize) -> f64| {
        (0..n).flat_map(|i| (0..n).filter(move |&j| i != j).map(move |j| (i, j))).map(|(i, j)| f(i, j)).fold(f64::INFINITY, f64::min)
    };
    if n < 2 {
        return problem.local.iter().copied().fold(0.0, f64::max);
    }
    let (g, l) = (least(&|i, j| problem.gap(i, j)), least(&|i, j| problem.latency(i, j)));
    let mut local = problem.local.clone();
    local.sort_by(|a, b| b.total_cmp(a));
    postal(n, g, l).iter().zip(local).map(|(tau, t)| tau + t).fold(0.0, f64::max)
}

/// When the k-th is informed if everybody informed keeps sending: gap g, arrival g + l after a send's start.
fn postal(n: usize, g: f64, l: f64) -> Vec<f64> {
    let mut times = vec![0.0];
    let mut senders = crate::event::EventQueue::with_capacity(n);
    senders.push(g + l, 0); // keyed by the arrival of the sender's next send
    while times.len() < n {
        let Some((arrival, who)) = senders.pop() else { break };
        times.push(arrival);
        senders.push(arrival + g, who);
        senders.push(arrival + g + l, times.len() as u64 - 1);
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postal_times_without_latency_double_each_gap() {
        assert_eq!(postal(8, 1.0, 0.0), [0.0, 1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0]);
        assert_eq!(postal(4, 1.0, 10.0), [0.0, 11.0, 12.0, 13.0]);
    }
}
