//! Clocks of other ranks as one of them knows them: which are looked at again, and who may be asked at the same time.

use super::offsets::{Clock, Exchange, Reading};
use crate::topology::Rank;
use rustc_hash::{FxHashMap, FxHashSet};

/// One more rank is asked at the same time for so much of the shortest round trip: a message out and one back keep the one who asks busy for
/// some microseconds, in which another's answer may have to wait. What waits makes a round trip longer by about a hundredth, then, and
/// ranks whose round trip is shorter than two of these are asked one by one.
const ONE_MORE_S: f64 = 1e-3;

/// Looking again may take so much of the time that goes into what clocks are compared for: where more would be needed, the times are as
/// uncertain as they say.
const SHARE: f64 = 0.02;

/// What this rank knows about other ranks' clocks.
#[derive(Debug, Clone, Default)]
pub struct Clocks {
    known: FxHashMap<Rank, Clock>,
    /// Those that read the same system's clock.
    same_system: FxHashSet<Rank>,
    looking_s: f64,
    timing_s: f64,
}

impl Clocks {
    /// Nothing is known but that some ranks read the same system's clock.
    pub fn with_same_system(ranks: impl IntoIterator<Item = Rank>) -> Clocks {
        Clocks { same_system: ranks.into_iter().collect(), ..Clocks::default() }
    }

    /// Takes in some exchanges with a rank. Gives by how much its clock has jumped, if it has; see [`Clock::look`].
    #[must_use = "stamps from before a jump are read wrong"]
    pub fn look(&mut self, rank: Rank, exchanges: &[Exchange]) -> Option<f64> {
        let is_same = self.same_system.contains(&rank);
        self.known.entry(rank).or_insert_with(|| if is_same { Clock::of_same_system() } else { Clock::default() }).look(exchanges)
    }

    /// A rank's clock, if it was ever looked at.
    pub fn get(&self, rank: Rank) -> Option<&Clock> {
        self.known.get(&rank)
    }

    /// A rank's stamp on this rank's clock; of a rank whose clock was never looked at anything may be true.
    pub fn reading(&self, rank: Rank, theirs: f64) -> Reading {
        let unknown = Reading { at: theirs, bound: f64::INFINITY, drift: f64::INFINITY };
        self.get(rank).map_or(unknown, |clock| clock.reading(theirs))
    }

    /// Those never looked at.
    pub fn unknown(&self, ranks: &[Rank]) -> Vec<Rank> {
        ranks.iter().copied().filter(|r| !self.known.contains_key(r)).collect()
    }

    /// Those that may have drifted by more than some seconds at a time, in as far as there is time to look at them again.
    pub fn drifted(&self, ranks: &[Rank], at: f64, by: impl Fn(&Clock) -> f64) -> Vec<Rank> {
        let has_drifted = |r: &Rank| self.get(*r).is_some_and(|clock| clock.drift(at) > by(clock));
        if self.looking_s > SHARE * self.timing_s { Vec::new() } else { ranks.iter().copied().filter(has_drifted).collect() }
    }

    /// Notes what looking again took.
    pub fn looked_again(&mut self, seconds: f64) {
        self.looking_s += seconds;
    }

    /// Notes what was spent on that for which clocks are compared.
    pub fn timed(&mut self, seconds: f64) {
        self.timing_s += seconds;
    }
}

/// Parts of some ranks that are asked at the same time, by each one's round trip.
pub fn at_once(trips: &[(Rank, f64)]) -> Vec<Vec<Rank>> {
    let mut sorted = trips.to_vec();
    sorted.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    let (mut rest, mut parts) = (&sorted[..], Vec::new());
    while let Some((_, shortest)) = rest.first() {
        let (part, later) = rest.split_at(((shortest / ONE_MORE_S) as usize).clamp(1, rest.len()));
        parts.push(part.iter().map(|(r, _)| *r).collect());
        rest = later;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ranks_far_away_are_asked_at_the_same_time() {
        let trips = [(1, 50e-6), (2, 20e-3), (3, 2.5e-3), (4, 60e-6), (5, 2.5e-3), (6, 2.6e-3), (7, 20e-3)];
        assert_eq!(at_once(&trips), [vec![1], vec![4], vec![3, 5], vec![6, 2], vec![7]]);
        assert_eq!(at_once(&[(1, f64::INFINITY), (2, f64::NAN)]), [vec![1, 2]]);
        assert!(at_once(&[]).is_empty());
    }

    #[test]
    fn looking_again_takes_a_fiftieth_at_most() {
        let mut clocks = Clocks::default();
        assert_eq!(clocks.unknown(&[3, 4]), [3, 4]);
        assert!(clocks.reading(3, 1.0).bound.is_infinite());
        for rank in [3, 4] {
            let exchange = Exchange { sent: 1.0, theirs: 5.0, received: 1.0 + rank as f64 * 1e-4 };
            assert_eq!(clocks.look(rank, &[exchange]), None);
        }
        assert!(clocks.unknown(&[3, 4]).is_empty());
        let after_10_s = |clocks: &Clocks| clocks.drifted(&[3, 4], 11.0, |_| 1e-3);
        assert_eq!(after_10_s(&clocks), [3, 4]);
        assert!(clocks.drifted(&[3, 4], 2.0, |_| 1e-3).is_empty());
        clocks.looked_again(0.1);
        clocks.timed(4.9);
        assert!(after_10_s(&clocks).is_empty());
        clocks.timed(0.2);
        assert_eq!(after_10_s(&clocks), [3, 4]);
        let mut clocks = Clocks::with_same_system([4]);
        for rank in [3, 4] {
            assert_eq!(clocks.look(rank, &[Exchange { sent: 1.0, theirs: 5.0, received: 1.001 }]), None);
        }
        assert_eq!(after_10_s(&clocks), [3], "the clock of one system does not drift");
    }
}
