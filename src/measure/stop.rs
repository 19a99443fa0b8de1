//! When an experiment has been repeated often enough.

use super::{Experiment, Samples, Stop};
use crate::stats;

/// What takes longer crosses a wide-area network or moves much, and scatters little.
const SCATTERS_LITTLE_S: f64 = 5e-3;

/// Once so many were made of what races, and runs take so many seconds together, that is enough: what takes long is not tuned for ever, however it scatters.
const ENOUGH_S: f64 = 0.2;
const ENOUGH: usize = 5;

/// How often an experiment is repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StopRule {
    /// Repetitions of a first batch.
    pub least: usize,
    /// As many for what takes longer than 5 ms, which scatters little.
    pub least_long: usize,
    /// Repetitions at most.
    pub most: usize,
    /// Stop when half the confidence interval of the median is within this share of the median.
    pub precision: f64,
}

/// Enough to race: what is close is remeasured, and what was chosen is confirmed by runs of its own. On a grid of 24 ranks tuning to a twentieth, by 31
/// repetitions, takes a fifth longer.
impl Default for StopRule {
    fn default() -> Self {
        StopRule { least: 3, least_long: 2, most: 11, precision: 0.1 }
    }
}

impl StopRule {
    /// Repetitions before anything is decided about these.
    fn least_of(&self, seconds: &[f64]) -> usize {
        if seconds.iter().all(|&t| t > SCATTERS_LITTLE_S) { self.least.min(self.least_long) } else { self.least }
    }

    /// So many more runs of experiments that ran so often: what is the least of some and then of all, and later as often again.
    pub(super) fn more(&self, runs: usize) -> usize {
        let more = match runs {
            0 => self.least.min(self.least_long),
            few if few < self.least => self.least - few,
            many => many,
        };
        more.min(self.most.saturating_sub(runs)).max(1)
    }

    /// Times below `floor` need not be known more precisely than it, and what `races` less if it takes long.
    pub(super) fn met(&self, seconds: &[f64], floor: f64, races: bool) -> Option<Stop> {
        if seconds.len() < self.least_of(seconds).min(self.most) {
            return None;
        }
        let allowed = self.precision * stats::median(seconds)?.max(floor);
        // who asks for single runs knows that they repeat exactly
        let is_precise = stats::median_interval(seconds).is_none_or(|(low, high)| (high - low) / 2.0 <= allowed);
        // by the median: a run that was disturbed for long says that more are needed
        let is_long = races && seconds.len() >= ENOUGH && seconds.len() as f64 * stats::median(seconds)? >= ENOUGH_S;
        let is_spent = seconds.len() >= self.most || is_long;
        if is_precise { Some(Stop::Precise) } else { is_spent.then_some(Stop::Budget) }
    }
}

/// Overheads matter beside what their messages take on the way: this share of that is their floor. At a precision of a tenth they are known to half a percent of
/// a round trip then, and ways that differ by a percent are as good.
const OF_THE_WAY: f64 = 0.05;

/// Below this an experiment's time need not be known more precisely than it.
pub(super) fn floor(experiment: &Experiment, samples: &Samples) -> f64 {
    let way = match experiment {
        Experiment::ReceiveTime { delay_ns, .. } => *delay_ns as f64 * 1e-9,
        Experiment::SendTime { a, b, .. } => {
            samples.median(&Experiment::SaturationTrain { a: *a, b: *b, bytes: 0, count: 1, delay_ns: 0 }).unwrap_or(0.0)
        }
        _ => 0.0,
    };
    OF_THE_WAY * way
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Sample;
    use crate::measure::samples::fixtures::sample;

    #[test]
    fn few_repetitions_must_agree_more_closely() {
        let ms = |t: f64| t * 1e-3;
        let rule = StopRule { most: 8, precision: 0.05, ..StopRule::default() };
        assert_eq!(rule.met(&[1.0, 1.0].map(ms), 0.0, true), None, "the least is three");
        assert_eq!(rule.met(&[1.0, 1.0], 0.0, true), Some(Stop::Precise), "two for what takes long");
        assert_eq!(rule.met(&[1.0, 1.005], 0.0, true), Some(Stop::Precise), "half the interval of two is 9.7 times their range");
        assert_eq!(rule.met(&[1.0, 1.01], 0.0, true), None, "two that are 1 % apart say little");
        assert_eq!(rule.met(&[1.00, 1.01, 1.025].map(ms), 0.0, true), Some(Stop::Precise), "1.73 times the range of three");
        assert_eq!(rule.met(&[1.00, 1.02, 1.03].map(ms), 0.0, true), None);
        assert_eq!(rule.met(&[1.00, 1.01, 1.02, 1.055].map(ms), 0.0, true), Some(Stop::Precise), "0.86 times the range of four");
        assert_eq!(rule.met(&[1.00, 1.02, 1.04, 1.06].map(ms), 0.0, true), None);
        assert_eq!(rule.met(&[1.00, 1.02, 1.03, 1.04, 1.05, 1.06, 1.08].map(ms), 0.0, true), Some(Stop::Precise), "now it is an interval");
        assert_eq!([0, 2, 3, 6].map(|runs| rule.more(runs)), [2, 1, 3, 2]);
        let once = StopRule { least: 1, ..rule };
        assert_eq!(once.met(&[1.0].map(ms), 0.0, true), Some(Stop::Precise), "what repeats itself exactly");
        assert_eq!(rule.met(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0].map(ms), 0.0, true), Some(Stop::Budget));
        assert_eq!(rule.met(&[20.0, 40.0, 60.0, 40.0].map(ms), 0.0, true), None, "scattered");
        assert_eq!(rule.met(&[20.0, 30.0, 60.0, 40.0, 20.0].map(ms), 0.0, true), None, "five times, but not for long");
        assert_eq!(rule.met(&[20.0, 40.0, 60.0, 40.0, 50.0].map(ms), 0.0, true), Some(Stop::Budget), "0.2 s, and five times");
        assert_eq!(
            rule.met(&[20.0, 40.0, 60.0, 40.0, 50.0].map(ms), 0.0, false),
            None,
            "latencies are wanted as well as they can be known"
        );
        assert_eq!(rule.met(&[20.0, 400.0, 60.0, 40.0].map(ms), 0.0, true), None, "too few");
        assert_eq!(rule.met(&[1.0, 2.0, 201.0, 1.0, 3.0].map(ms), 0.0, true), None, "a message was lost once");
        assert_eq!(rule.met(&[1.0, 2.0, 1.5].map(ms), 0.05, true), Some(Stop::Precise), "that is little beside a floor of 50 ms");
    }

    #[test]
    fn overheads_are_known_well_enough_beside_what_their_messages_take_on_the_way() {
        let mut samples = Samples::default();
        let (send, way) =
            (Experiment::SendTime { a: 0, b: 1, bytes: 9 }, Experiment::SaturationTrain { a: 0, b: 1, bytes: 0, count: 1, delay_ns: 0 });
        assert_eq!(floor(&send, &samples), 0.0, "nothing is known of the way");
        samples.insert(Sample { experiment: way.clone(), seconds: vec![4e-3], ..sample(0) });
        assert_eq!([&send, &way].map(|e| floor(e, &samples)), [2e-4, 0.0]);
        assert_eq!(floor(&Experiment::ReceiveTime { a: 0, b: 1, bytes: 9, delay_ns: 2_000_000 }, &samples), 1e-4);
    }
}
