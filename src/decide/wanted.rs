//! Which candidates are wanted, and what others may take to be among them: what takes longer need not be predicted to its end.

use super::Candidate;
use crate::collective::Algorithm;

/// Which of some candidates are wanted: others are predicted no longer than these take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// All.
    All,
    /// So many of the fastest; none that is another one under another name, as ranks in their order by speed.
    Fastest(usize),
    /// The same, but at most so many by one algorithm: they should be different bets.
    Different(usize, usize),
}

impl Wanted {
    /// How many at most, and how many by one algorithm.
    fn bounds(self) -> (usize, usize) {
        match self {
            Wanted::All => (usize::MAX, usize::MAX),
            Wanted::Fastest(most) => (most, usize::MAX),
            Wanted::Different(most, of_one) => (most, of_one),
        }
    }

    /// How many at most.
    pub(super) fn most(self) -> usize {
        self.bounds().0
    }

    /// Those of candidates that are wanted, the fastest first as they are.
    pub(super) fn among(self, ranked: Vec<Candidate>) -> Vec<Candidate> {
        if self == Wanted::All {
            return ranked;
        }
        let mut kept = self.places(&ranked).into_iter().peekable();
        let is_kept = |(place, candidate)| kept.next_if_eq(&place).map(|_| candidate);
        ranked.into_iter().enumerate().filter_map(is_kept).collect()
    }

    /// Their places.
    fn places(self, ranked: &[Candidate]) -> Vec<usize> {
        let (most, of_one) = self.bounds();
        let mut kept: Vec<usize> = Vec::new();
        for (k, candidate) in ranked.iter().enumerate().filter(|(_, c)| c.is_itself()) {
            if kept.len() < most && kept.iter().filter(|&&k| ranked[k].algorithm == candidate.algorithm).count() < of_one {
                kept.push(k);
            }
        }
        kept
    }

    /// What another one by an algorithm may take at most to be among those of these that are wanted.
    pub(super) fn limit_s(self, ranked: &[Candidate], algorithm: &Algorithm) -> f64 {
        if self == Wanted::All {
            return f64::INFINITY;
        }
        let kept = self.places(ranked);
        let (most, of_one) = self.bounds();
        let own = kept.iter().copied().filter(|&k| ranked[k].algorithm == algorithm);
        let last = |of: &[usize], most: usize| of.get(most.saturating_sub(1)).map_or(f64::INFINITY, |&k| ranked[k].predicted);
        last(&kept, most).min(last(&own.collect::<Vec<_>>(), of_one))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{Parameters, bcast};

    #[test]
    fn what_is_not_predicted_to_its_end_is_none_that_is_wanted() {
        // times in no order, some of them alike
        let all = || {
            (0..60usize).map(|k| {
                let by_speed = k % 5 == 0;
                Candidate {
                    algorithm: bcast::ALGORITHMS[k / 9],
                    parameters: Parameters { by_speed, ..Parameters::of(k, 0) },
                    predicted: (k * k * 37 % 101) as f64,
                    late_s: 0.0,
                    places: (k % 10 == 0).then(Vec::new),
                }
            })
        };
        let names = |candidates: Vec<Candidate>| candidates.iter().map(|c| c.parameters.segment).collect::<Vec<_>>();
        let sorted = |mut candidates: Vec<Candidate>| {
            candidates.sort_by(|a, b| a.predicted.total_cmp(&b.predicted));
            candidates
        };
        for wanted in [Wanted::All, Wanted::Fastest(1), Wanted::Fastest(7), Wanted::Different(4, 2), Wanted::Different(6, 1)] {
            let mut ranked: Vec<Candidate> = Vec::new();
            for candidate in all() {
                if candidate.predicted <= wanted.limit_s(&ranked, candidate.algorithm) {
                    ranked.push(candidate);
                    ranked = sorted(ranked);
                }
            }
            assert!(wanted == Wanted::All || ranked.len() < 45, "{wanted:?}: {} of 60 are looked at", ranked.len());
            let found = wanted.among(ranked);
            for one in bcast::ALGORITHMS {
                assert!(found.iter().filter(|c| c.algorithm == *one).count() <= wanted.bounds().1);
            }
            assert_eq!(names(found), names(wanted.among(sorted(all().collect()))), "{wanted:?}");
        }
        assert_eq!(Wanted::All.among(all().collect()).len(), 60, "one that is asked for is there by whatever name");
        assert_eq!(Wanted::Fastest(60).among(all().collect()).len(), 54);
    }
}
