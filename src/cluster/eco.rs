//! Lowekamp and Beguelin's grouping (ECO, IPPS 1996), as Barchet-Steffenel and Mounie use it (EuroPVM/MPI 2004).
//!
//! Edges are taken by growing latency. One joins two subnets if it is at most 20 % above the least latency at either of its ends
//! and of either subnet. It returns the six published groups of the CCGrid 2007 platform exactly. Only the joining edge is
//! tested, so that the ratio inside a group is not bounded by 1.2: see the reported quality.
//!
//! Two hosts that are each other's nearest are joined however far apart they are. So subnets are divided afterwards where the others
//! tell their hosts apart.

use super::{Bound, Method, by_label};
use crate::stats::median;
use crate::topology::{LatencyMatrix, Rank};
use petgraph::unionfind::UnionFind;

/// Lowekamp and Beguelin's grouping.
pub const METHOD: Method = Method {
    name: "eco",
    summary: "joins subnets along edges within 20 % of the least latency on either side",
    citation: "Lowekamp, Beguelin, IPPS 1996",
    group,
};

/// Two hosts are told apart by latencies to one subnet that differ by so much more than alike ones do. With noise of a twentieth on each, one
/// pair in a thousand differs by more.
const SLACK: f64 = 1.08;

fn group(matrix: &LatencyMatrix, bound: Bound) -> Vec<Vec<Rank>> {
    let mut groups = joined(matrix, bound);
    loop {
        let divided: Vec<Vec<Rank>> = groups.iter().flat_map(|subnet| seen_alike(matrix, subnet, &groups, bound)).collect();
        // who is by itself now may tell hosts of another subnet apart
        if divided.len() == groups.len() {
            groups.sort_unstable_by_key(|g| g[0]);
            return groups;
        }
        groups = divided;
    }
}

/// The hosts of a subnet, divided into those that are about as far from the hosts of each of the other subnets as another one of their part. Hosts of
/// the others are looked at one by one: if two subnets were joined that should not be, their medians say nothing.
fn seen_alike(matrix: &LatencyMatrix, subnet: &[Rank], subnets: &[Vec<Rank>], bound: Bound) -> Vec<Vec<Rank>> {
    let others: Vec<&Vec<Rank>> = subnets.iter().filter(|o| o[0] != subnet[0]).collect();
    // 1 is as far apart as alike ones may be
    let apart = |a: f64, b: f64| a.max(b) / (SLACK * bound.limit(a.min(b)));
    let alike = |i: usize, j: usize| {
        let differ = |other: &Vec<Rank>| {
            let apart: Vec<f64> = other.iter().map(|&o| apart(matrix.get(subnet[i], o), matrix.get(subnet[j], o))).collect();
            median(&apart).is_some_and(|apart| apart > 1.0)
        };
        !others.iter().any(|other| differ(other))
    };
    let mut parts = UnionFind::<usize>::new(subnet.len());
    for (i, j) in (0..subnet.len()).flat_map(|i| (i + 1..subnet.len()).map(move |j| (i, j))) {
        if !parts.equiv(i, j) && alike(i, j) {
            parts.union(i, j);
        }
    }
    let labels: Vec<usize> = (0..subnet.len()).map(|k| parts.find(k)).collect();
    by_label(&labels).into_iter().map(|part| part.into_iter().map(|k| subnet[k]).collect()).collect()
}

fn joined(matrix: &LatencyMatrix, bound: Bound) -> Vec<Vec<Rank>> {
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
