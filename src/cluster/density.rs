//! DBSCAN (Ester et al. 1996) of linfa-clustering, over the real matrix.
//!
//! linfa takes feature vectors: a rank's only feature is its number, and the metric looks the pair's distance up. The distance is
//! the latency over the least latency at either end, so that one tolerance, the bound's ratio, serves groups of any scale. Ranks
//! that DBSCAN leaves as noise are groups of one.

use super::{Bound, Method, by_label};
use crate::stats::ROUNDING;
use crate::topology::{LatencyMatrix, Rank};
use linfa::traits::Transformer;
use linfa_clustering::Dbscan;
use linfa_nn::CommonNearestNeighbour;
use linfa_nn::distance::Distance;
use ndarray::{Array2, ArrayView, Dimension};

/// DBSCAN on latency ratios.
pub const METHOD: Method = Method {
    name: "density",
    summary: "DBSCAN on the ratio of a latency to the least one at either end",
    citation: "Ester, Kriegel, Sander, Xu 1996; linfa-clustering",
    group,
};

/// Looks a pair's distance up by the two "points", which hold one rank each.
#[derive(Debug, Clone, PartialEq)]
struct Looked {
    n: usize,
    ratio: Vec<f64>,
}

impl Distance<f64> for Looked {
    fn distance<D: Dimension>(&self, a: ArrayView<f64, D>, b: ArrayView<f64, D>) -> f64 {
        let index = |p: &ArrayView<f64, D>| p.iter().next().map_or(0, |&x| x as usize);
        self.ratio[index(&a) * self.n + index(&b)]
    }
}

fn group(matrix: &LatencyMatrix, bound: Bound) -> Vec<Vec<Rank>> {
    let n = matrix.len();
    let nearest: Vec<f64> = (0..n).map(|v| (0..n).filter(|&u| u != v).map(|u| matrix.get(u, v)).fold(f64::INFINITY, f64::min)).collect();
    let ratio = |i: Rank, j: Rank| {
        let least = nearest[i].min(nearest[j]);
        // alike by the floor counts as alike by the ratio
        if i == j || matrix.get(i, j) <= bound.limit(least) {
            (matrix.get(i, j) / least).min(bound.ratio)
        } else {
            matrix.get(i, j) / least
        }
    };
    let metric = Looked { n, ratio: (0..n * n).map(|k| if k / n == k % n { 0.0 } else { ratio(k / n, k % n) }).collect() };
    let points = Array2::from_shape_fn((n, 1), |(k, _)| k as f64);
    // a point counts itself: two make a group; the tolerance is a strict bound
    let labels = Dbscan::params_with(2, metric, CommonNearestNeighbour::LinearSearch).tolerance(bound.ratio * ROUNDING).transform(&points);
    match labels {
        Ok(labels) => by_label(&labels.iter().enumerate().map(|(k, l)| l.unwrap_or(n + k)).collect::<Vec<_>>()),
        // linfa refuses only parameters, and the bound's are checked where they are read
        Err(_) => (0..n).map(|k| vec![k]).collect(),
    }
}
