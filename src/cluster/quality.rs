//! How good a grouping is.

use crate::stats::{median, quantile};
use crate::topology::{LatencyMatrix, Rank};
use serde::Serialize;

/// The quality of one group. `None` where a group of one, or the only group, has no such figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupQuality {
    /// The group's position.
    pub group: usize,
    /// Median latency inside.
    pub latency_s: Option<f64>,
    /// Largest over least latency inside.
    pub worst_ratio: Option<f64>,
    /// 90th over 10th percentile inside.
    pub p90_p10_ratio: Option<f64>,
    /// Least latency to the outside over the median inside: near 1 means that the group's edge is unsure.
    pub separation: Option<f64>,
}

/// The quality of each group.
pub fn quality(matrix: &LatencyMatrix, groups: &[Vec<Rank>]) -> Vec<GroupQuality> {
    quality_of(groups.len(), |g, o| matrix.between(&groups[g], &groups[o]))
}

/// The quality of each of `groups` groups, from the latencies that are known between each two of them, and inside each.
pub fn quality_of(groups: usize, between: impl Fn(usize, usize) -> Vec<f64>) -> Vec<GroupQuality> {
    let of = |g: usize| {
        let inside = between(g, g);
        let outside = (0..groups).filter(|o| *o != g).flat_map(|o| between(g, o));
        let nearest = outside.fold(None, |least: Option<f64>, t| Some(least.map_or(t, |l| l.min(t))));
        let ratio = |high: f64, low: f64| quantile(&inside, high).zip(quantile(&inside, low)).map(|(h, l)| h / l);
        GroupQuality {
            group: g,
            latency_s: median(&inside),
            worst_ratio: ratio(1.0, 0.0),
            p90_p10_ratio: ratio(0.9, 0.1),
            separation: nearest.zip(median(&inside)).map(|(out, inside)| out / inside),
        }
    };
    (0..groups).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_of_a_hand_sized_grouping() {
        let m = LatencyMatrix::from_pairs(4, "", |i, j| match (i, j) {
            (0, 1) => 1.0,
            (0, 2) => 1.5,
            (1, 2) => 2.0,
            _ => 9.0,
        });
        let q = quality(&m, &[vec![0, 1, 2], vec![3]]);
        assert_eq!((q[0].latency_s, q[0].worst_ratio, q[0].separation), (Some(1.5), Some(2.0), Some(6.0)));
        assert_eq!((q[1].latency_s, q[1].worst_ratio, q[1].separation), (None, None, None));
    }
}
