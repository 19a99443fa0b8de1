//! ECEF with look-ahead: an early arrival is worth more at a coordinator that can go on fast. The score of a send i -> j is
//! `RT_i + g_ij + L_ij + F_j`, where F_j looks at what j could do next among those still to reach (itself excepted), and is 0 if
//! there is nobody.

use super::{Heuristic, Problem, greedy};

/// ECEF-LA: `F_j = min_k (g_jk + L_jk)`.
pub const LA: Heuristic = Heuristic {
    name: "ECEF-LA",
    summary: "ECEF that adds the receiver's fastest next send",
    citation: "Bhat, Raghavendra, Prasanna, JPDC 63 (2003)",
    most_groups: 256,
    sends: |p| sends(p, |_| 0.0, f64::min),
};

/// ECEF-LAt: `F_j = min_k (g_jk + L_jk + T_k)`.
pub const LAT_MIN: Heuristic = Heuristic {
    name: "ECEF-LAt",
    summary: "ECEF-LA that adds the next group's local broadcast",
    citation: "Barchet-Steffenel, Mounie, PMEO 2006",
    most_groups: 256,
    sends: |p| sends(p, |k| p.local[k], f64::min),
};

/// ECEF-LAT: `F_j = max_k (g_jk + L_jk + T_k)`.
pub const LAT_MAX: Heuristic = Heuristic {
    name: "ECEF-LAT",
    summary: "as ECEF-LAt, with the slowest next send instead of the fastest",
    citation: "Barchet-Steffenel, Mounie, PMEO 2006",
    most_groups: 256,
    sends: |p| sends(p, |k| p.local[k], f64::max),
};

fn sends(problem: &Problem, local: impl Fn(usize) -> f64, choose: fn(f64, f64) -> f64) -> Vec<(usize, usize)> {
    let ahead = |reached: &[bool], j: usize| {
        let next = (0..problem.groups).filter(|&k| k != j && !reached[k]).map(|k| problem.transfer(j, k) + local(k));
        next.reduce(choose).unwrap_or(0.0)
    };
    greedy(problem, ahead, |i, j, free, ahead| free + problem.transfer(i, j) + ahead)
}
