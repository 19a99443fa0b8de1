//! Lowekamp and Beguelin's grouping (ECO, IPPS 1996), as Barchet-Steffenel and Mounie use it (EuroPVM/MPI 2004).
//!
//! Edges are taken by growing latency. One joins two subnets if it is at most 20 % above the least latency at either of its ends
//! and of either subnet. It returns the six published groups of the CCGrid 2007 platform exactly. Only the joining edge is
//! tested, so that the ratio inside a group is not bounded by 1.2: see the reported quality.

use super::{Bound, Method, by_label};
use crate::topology::{LatencyMatrix, Rank};
use petgraph::unionfind::UnionFind;

/// Lowekamp and Beguelin's grouping.
pub const METHOD: Method = Method {
    name: "eco",
    summary: "joins subnets along edges within 20 % of the least latency on either side",
    citation: "Lowekamp, Beguelin, IPPS 1996",
    group,
};

fn group(matrix: &LatencyMatrix, bound: Bound) -> Vec<Vec<Rank>> {
    let n = matrix.len();
    let nearest: Vec<f64> = (0..n).map(|v| (0..n).filter(|&u| u != v).map(|u| matrix.get(u, v)).fold(f64::INFINITY, f64::min)).collect();
    let mut edges: Vec<(f64, Rank, Rank)> =
        (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))).map(|(a, b)| (matrix.get(a, b), a, b)).collect();
    edges.sort_by(|x, y| x.0.total_cmp(&y.0).then(x.1.cmp(&y.1)).then(x.2.cmp(&y.2)));
    let mut subnets = UnionFind::<usize>::new(n);
    // by representative: the least edge of a subnet; none for a node that is in no subnet yet
    let mut least: Vec<Option<f64>> = vec![None; n];
    for (w, a, b) in edges {
        let (sa, sb) = (subnets.find(a), subnets.find(b));
        let alike = |v: Rank, s: usize| w <= bound.limit(nearest[v]) && least[s].is_none_or(|l| w <= bound.limit(l));
        if sa != sb && alike(a, sa) && alike(b, sb) {
            let edge = [Some(w), least[sa], least[sb]].into_iter().flatten().fold(f64::INFINITY, f64::min);
            subnets.union(sa, sb);
            least[subnets.find(a)] = Some(edge);
        }
    }
    by_label(&(0..n).map(|v| subnets.find(v)).collect::<Vec<_>>())
}
