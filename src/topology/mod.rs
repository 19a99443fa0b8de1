//! Ranks, links and the matrix of latencies between them.

mod csv;
mod declared;

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

pub use csv::parse_matrix;
pub use declared::Declared;

/// Half a round trip from here on is between sites, which have one line for all their hosts: nearer links are switches', and carry what each port can.
pub const FAR_S: f64 = 0.5e-3;

/// A process, by its position in a communicator.
pub type Rank = usize;

/// Checks that ranks are different ones of `0..ranks`.
///
/// # Errors
/// [`Error::Invalid`] with the first that is not.
pub fn check_ranks(chosen: &[Rank], ranks: usize) -> Result<()> {
    let mut seen = vec![false; ranks];
    for &rank in chosen {
        match seen.get_mut(rank) {
            None => return Err(Error::invalid(format!("rank {rank} is outside the {ranks} ranks"))),
            Some(seen) if *seen => return Err(Error::invalid(format!("rank {rank} is there twice"))),
            Some(seen) => *seen = true,
        }
    }
    Ok(())
}

/// A directed pair of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Link {
    /// The sending rank.
    pub from: Rank,
    /// The receiving rank.
    pub to: Rank,
}

/// Latencies between all pairs, in seconds: half the round trip of an empty message. Symmetric; the diagonal is 0. The values
/// travel with their origin, since a matrix that somebody else measured may mean something else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyMatrix {
    /// Where the values come from: a file, a platform, a measurement with its date.
    pub provenance: String,
    n: usize,
    /// Row by row.
    values: Vec<f64>,
}

impl LatencyMatrix {
    /// Builds a matrix from the latency of each pair `i < j`.
    pub fn from_pairs(n: usize, provenance: &str, latency: impl Fn(Rank, Rank) -> f64) -> LatencyMatrix {
        let values = (0..n * n).map(|k| (k / n, k % n)).map(|(i, j)| if i == j { 0.0 } else { latency(i.min(j), i.max(j)) });
        LatencyMatrix { provenance: provenance.into(), n, values: values.collect() }
    }

    /// Builds a matrix from square rows; the two directions of a pair are averaged.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the rows are not square, or an entry off the diagonal is no positive time.
    pub fn from_rows(rows: &[Vec<f64>], provenance: &str) -> Result<LatencyMatrix> {
        let n = rows.len();
        for (i, row) in rows.iter().enumerate() {
            if row.len() != n {
                return Err(Error::invalid(format!(
                    "use the matrix: it is not square: row {} has {} entries, there are {n} rows",
                    i + 1,
                    row.len()
                )));
            }
            for (j, &t) in row.iter().enumerate() {
                if i != j && (!crate::units::is_time(t) || t == 0.0) {
                    let place = format!("row {}, column {}", i + 1, j + 1);
                    return Err(Error::invalid(format!("use the matrix: {t} in {place} is no latency (seconds, above zero)")));
                }
            }
        }
        Ok(LatencyMatrix::from_pairs(n, provenance, |i, j| (rows[i][j] + rows[j][i]) / 2.0))
    }

    /// The number of ranks.
    pub fn len(&self) -> usize {
        self.n
    }

    /// True if there are no ranks.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The latency between two ranks.
    pub fn get(&self, i: Rank, j: Rank) -> f64 {
        self.values[i * self.n + j]
    }

    /// All latencies between two sets of ranks (of one set with itself: each pair once).
    pub fn between(&self, a: &[Rank], b: &[Rank]) -> Vec<f64> {
        let pairs = a.iter().flat_map(|&i| b.iter().map(move |&j| (i, j)));
        let one_set = a == b;
        pairs.filter(|&(i, j)| i != j && (!one_set || i < j)).map(|(i, j)| self.get(i, j)).collect()
    }
}

/// Rounds of disjoint pairs that together hold every pair of `n` once: the circle method (1-factorisation of the complete
/// graph), n-1 rounds for even n, n for odd n.
///
/// ```
/// let rounds = collwise::topology::pair_rounds(6);
/// assert_eq!(rounds.len(), 5);
/// assert!(rounds.iter().all(|r| r.len() == 3));
/// ```
pub fn pair_rounds(n: usize) -> Vec<Vec<(Rank, Rank)>> {
    let even = n + n % 2;
    let round = |r: usize| {
        let ring = even - 1;
        let mut pairs: Vec<(Rank, Rank)> = (0..even / 2)
            .map(|k| if k == 0 { (r, ring) } else { ((r + k) % ring, (r + ring - k) % ring) })
            .map(|(a, b)| (a.min(b), a.max(b)))
            .filter(|&(_, b)| b < n)
            .collect();
        pairs.sort_unstable();
        pairs
    };
    (0..even.saturating_sub(1)).map(round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_hold_every_pair_once_and_no_rank_twice() {
        for n in 0..40 {
            let rounds = pair_rounds(n);
            let mut all: Vec<_> = rounds.iter().flatten().copied().collect();
            all.sort_unstable();
            let want: Vec<_> = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).collect();
            assert_eq!(all, want, "n = {n}");
            for round in &rounds {
                let mut ranks: Vec<_> = round.iter().flat_map(|&(a, b)| [a, b]).collect();
                ranks.sort_unstable();
                ranks.dedup();
                assert_eq!(ranks.len(), 2 * round.len());
            }
        }
    }

    #[test]
    fn a_matrix_is_symmetric_and_refuses_what_is_no_latency() {
        let m = LatencyMatrix::from_rows(&[vec![0.0, 2.0], vec![4.0, 0.0]], "test").unwrap();
        assert_eq!((m.get(0, 1), m.get(1, 0), m.get(0, 0)), (3.0, 3.0, 0.0));
        assert!(LatencyMatrix::from_rows(&[vec![0.0, 1.0]], "").unwrap_err().to_string().contains("not square"));
        for bad in [f64::NAN, -1.0, 0.0, f64::INFINITY] {
            assert!(LatencyMatrix::from_rows(&[vec![0.0, bad], vec![1.0, 0.0]], "").is_err());
        }
        assert_eq!(m.between(&[0, 1], &[0, 1]), [3.0]);
    }
}
