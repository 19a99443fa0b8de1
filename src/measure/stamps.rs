//! From the stamps of several ranks to times: each on the clock of one of them, with how far off that may be.

use crate::stats;
use crate::topology::Rank;
use crate::transport::clocks::Clocks;

/// Clocks may drift by so much of what is measured.
const SHARE: f64 = 0.1;

/// When each run began, or was to, and ended on one rank.
#[derive(Debug, Clone, Default)]
pub(super) struct Stamps {
    pub starts: Vec<f64>,
    pub ends: Vec<f64>,
}

impl Stamps {
    /// In one row, as they are sent.
    pub fn as_row(&self) -> Vec<f64> {
        [self.starts.as_slice(), &self.ends].concat()
    }

    /// Of what was sent for so many runs.
    pub fn of(row: &[f64], runs: usize) -> Stamps {
        let (starts, ends) = row.split_at(runs.min(row.len()));
        Stamps { starts: starts.to_vec(), ends: ends.to_vec() }
    }
}

/// What runs took.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Timed {
    pub seconds: Vec<f64>,
    /// Each time is off by so much at most.
    pub error_s: f64,
    /// So much of this is drift, which another look at the clocks takes away.
    pub drift_s: f64,
}

/// How uncertain the latest of some stamps is, where each rank's has its own bound. Where the latest start counts as well, a start and an end
/// may both be off, one rank's one way and another's the other; one rank's own start and end are off alike.
#[derive(Default)]
struct Largest {
    first: f64,
    second: f64,
}

impl Largest {
    fn note(&mut self, value: f64) {
        self.second = self.second.max(value.min(self.first));
        self.first = self.first.max(value);
    }

    fn of(&self, together: bool) -> f64 {
        if together { self.first + self.second } else { self.first }
    }
}

/// What runs took after so many that do not count: from this rank's start, or where all began `together` from the latest one, until
/// the last rank was done.
pub(super) fn timed(own: &Stamps, of_others: &[(Rank, Stamps)], together: bool, warm_ups: usize, clocks: &Clocks) -> Timed {
    let (mut bounds, mut drifts) = (Largest::default(), Largest::default());
    let (mut starts, mut ends) = (own.starts.clone(), own.ends.clone());
    for (rank, theirs) in of_others {
        let (mut bound, mut drift) = (0.0f64, 0.0f64);
        let mut latest = |all: &mut [f64], theirs: &[f64]| {
            for (latest, &stamp) in all.iter_mut().zip(theirs).skip(warm_ups) {
                let reading = clocks.reading(*rank, stamp);
                *latest = latest.max(reading.at);
                (bound, drift) = (bound.max(reading.bound), drift.max(reading.drift));
            }
        };
        latest(&mut ends, &theirs.ends);
        if together {
            latest(&mut starts, &theirs.starts);
        }
        bounds.note(bound);
        drifts.note(drift);
    }
    let seconds = ends.iter().zip(&starts).skip(warm_ups).map(|(end, start)| (end - start).max(0.0)).collect();
    Timed { seconds, error_s: bounds.of(together), drift_s: drifts.of(together) }
}

/// The ranks that were done with a message before its root had it, or later than the root knew of it: stamps that cannot be, of clocks that
/// have jumped. `until`: the root's clock now, when it knows of all.
pub(super) fn impossible(own: &Stamps, of_others: &[(Rank, Stamps)], until: f64, clocks: &Clocks) -> Vec<Rank> {
    // a run begins when the root knows of all that the one before is through
    let known = own.starts.iter().skip(1).copied().chain([until]);
    let spans: Vec<(f64, f64)> = own.starts.iter().copied().zip(known).collect();
    let cannot_be = |rank: Rank, theirs: &Stamps| {
        theirs.ends.iter().zip(&spans).any(|(&end, &(start, known))| {
            let reading = clocks.reading(rank, end);
            reading.at + reading.bound < start || reading.at - reading.bound > known
        })
    };
    of_others.iter().filter(|(rank, theirs)| cannot_be(*rank, theirs)).map(|(rank, _)| *rank).collect()
}

impl Timed {
    /// Takes in that a clock has jumped by so much meanwhile, nobody knows when.
    pub fn note_jump(&mut self, by: f64) {
        self.error_s += by;
        self.drift_s += by;
    }

    /// How far clocks may drift before they are looked at again. The bound itself says nothing of that: between ranks that are far away most of
    /// it is half a round trip, which is there after any look, and only if the ways out and back differ by as much is it an error.
    pub fn allowed_drift_s(&self) -> f64 {
        SHARE * self.seconds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// True if the median may be off by more than a tenth for drift.
    pub fn is_adrift(&self) -> bool {
        stats::median(&self.seconds).is_some_and(|median| self.drift_s > SHARE * median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::offsets::Exchange;

    /// The clock of rank 1 is 100 s ahead, that of rank 2 as much behind; each answers half way through a round trip.
    fn clocks() -> Clocks {
        let mut clocks = Clocks::default();
        for (rank, ahead, trip) in [(1, 100.0, 2e-3), (2, -100.0, 4e-3)] {
            assert_eq!(clocks.look(rank, &[Exchange { sent: 1.0, theirs: 1.0 + ahead + trip / 2.0, received: 1.0 + trip }]), None);
        }
        clocks
    }

    fn stamps(starts: &[f64], ends: &[f64]) -> Stamps {
        Stamps::of(&[starts, ends].concat(), starts.len())
    }

    #[test]
    fn times_are_on_one_clock_and_say_how_far_off_they_are() {
        let own = stamps(&[1.0, 2.0], &[1.1, 2.1]);
        let others = [(1, stamps(&[101.2, 102.2], &[101.3, 102.5])), (2, stamps(&[-98.9, -97.9], &[-98.8, -97.6]))];
        let close = |a: f64, b: f64| (a - b).abs() < 1e-4 * b;
        let rooted = timed(&own, &others, false, 1, &clocks());
        assert_eq!(rooted.seconds.len(), 1, "the first one warms up");
        assert!(close(rooted.seconds[0], 0.5), "{rooted:?}");
        // 2 ms of the way to rank 2, and a drift of 1.1e-4 for 1.4 s; 1.5 s for rank 1
        assert!(rooted.error_s > 2.15e-3 && rooted.error_s < 2.17e-3 && (1.5e-4..1.7e-4).contains(&rooted.drift_s), "{rooted:?}");
        assert!(close(rooted.allowed_drift_s(), 0.05) && !rooted.is_adrift());
        let together = timed(&own, &others, true, 1, &clocks());
        assert!(close(together.seconds[0], 0.3), "from the latest start: {together:?}");
        assert!(together.error_s > 3.3e-3 && together.error_s < 3.34e-3, "two ranks may be off: {together:?}");
        let one = timed(&own, &others[..1], true, 1, &clocks());
        assert!(one.error_s < 1.17e-3, "one rank's start and end are off alike: {one:?}");
    }

    #[test]
    fn stamps_that_cannot_be_are_noticed() {
        let own = stamps(&[1.0, 2.0], &[1.1, 2.1]);
        let of = |first: f64, second: f64| impossible(&own, &[(1, stamps(&[100.0; 2], &[first, second]))], 3.0, &clocks());
        assert!(of(101.5, 102.9).is_empty());
        assert!(of(100.9995, 102.9).is_empty(), "that may be: the message back took all of the round trip");
        assert_eq!(of(100.9, 102.9), [1], "before the root began");
        assert_eq!(of(101.5, 103.1), [1], "after the root knew");
        assert_eq!(of(102.1, 102.9), [1], "when the root had begun the next");
        assert!(impossible(&own, &[(7, stamps(&[0.0; 2], &[0.0; 2]))], 3.0, &clocks()).is_empty(), "a clock that nobody has looked at");
    }

    #[test]
    fn what_drifts_by_a_tenth_is_measured_again() {
        let timed = |drift_s| Timed { seconds: vec![1e-4, 3e-4, 2e-4], error_s: 1.0, drift_s };
        assert!(!timed(1.9e-5).is_adrift() && timed(2.1e-5).is_adrift());
        let nobody = super::timed(&stamps(&[0.0], &[1.0]), &[(1, stamps(&[0.0], &[1.0]))], false, 0, &Clocks::default());
        assert!(nobody.is_adrift() && nobody.seconds == [1.0], "a clock that nobody has looked at");
    }
}
