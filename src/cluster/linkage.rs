//! Complete linkage: the largest nodes of the dendrogram whose latencies are alike. A second opinion with a guarantee: within a
//! group the 90th percentile is at most the bound above the 10th. Near ties may split what belongs together.

use super::{Bound, Method, by_label};
use crate::stats::quantile;
use crate::topology::{LatencyMatrix, Rank};

/// Complete linkage.
pub const METHOD: Method = Method {
    name: "linkage",
    summary: "largest dendrogram nodes (complete linkage) whose p90/p10 latency ratio is within the bound",
    citation: "Mullner 2011 (kodama)",
    group,
};

fn group(matrix: &LatencyMatrix, bound: Bound) -> Vec<Vec<Rank>> {
    let n = matrix.len();
    if n < 2 {
        return (0..n).map(|k| vec![k]).collect();
    }
    let mut condensed: Vec<f64> = (0..n).flat_map(|i| (i + 1..n).map(move |j| matrix.get(i, j))).collect();
    let dendrogram = kodama::linkage(&mut condensed, n, kodama::Method::Complete);
    // members of each node: leaves first, then one per step
    let mut members: Vec<Vec<Rank>> = (0..n).map(|k| vec![k]).collect();
    let mut alike: Vec<bool> = vec![true; n];
    let mut labels: Vec<usize> = (0..n).collect();
    for (step, merge) in dendrogram.steps().iter().enumerate() {
        let both: Vec<Rank> = [merge.cluster1, merge.cluster2].iter().flat_map(|&c| members[c].iter().copied()).collect();
        let inside = matrix.between(&both, &both);
        let fits = quantile(&inside, 0.9).zip(quantile(&inside, 0.1)).is_some_and(|(high, low)| high <= bound.limit(low));
        // a node above one that is not alike may be alike again only by averaging: it stays apart
        let fits = fits && alike[merge.cluster1] && alike[merge.cluster2];
        if fits {
            both.iter().for_each(|&r| labels[r] = n + step);
        }
        alike.push(fits);
        members.push(both);
    }
    by_label(&labels)
}
