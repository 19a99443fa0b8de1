//! When an experiment has been repeated often enough.

use super::{Experiment, Samples, Stop};
use crate::stats;

/// What takes longer crosses a wide-area network or moves much, and scatters little.
const SCATTERS_LITTLE_S: f64 = 5e-3;

/// How often an experiment is repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StopRule {
    /// Repetitions of a first batch.
    pub least: usize,
    /// As many for what takes longer than 5 ms, which scatters little.
    pub least_long: usize,
    /// Repetitions at most.
    pub most: usize,
    /// Stop when half the confidence interval of the median is within this share of the median; while repetitions are too few for such an
    /// interval, which then is their whole range, they must agree the more closely the fewer they are.
    pub precision: f64,
}

impl Default for StopRule {
    fn default() -> Self {
        StopRule { least: 3, least_long: 2, most: 31, precision: 0.05 }
    }
}

impl StopRule {
    /// Repetitions before anything is decided about these.
    pub(super) fn least_of(&self, seconds: &[f64]) -> usize {
        if seconds.iter().all(|&t| t > SCATTERS_LITTLE_S) { self.least.min(self.least_long) } else { self.least }
    }

    /// So many more runs of experiments that ran so often: as often again.
    pub(super) fn more(&self, runs: usize, least: usize) -> usize {
        runs.max(least.saturating_sub(runs)).min(self.most.saturating_sub(runs)).max(1)
    }

    /// Times below `floor` need not be known more precisely than it.
    pub(super) fn met(&self, seconds: &[f64], floor: f64) -> Option<Stop> {
        if seconds.len() < self.least_of(seconds).min(self.most) {
            return None;
        }
        let (median, (low, high)) = (stats::median(seconds)?, stats::median_interval(seconds)?);
        let n = seconds.len();
        let precision = if n < stats::LEAST_FOR_INTERVAL { self.precision * n as f64 / 8.0 } else { self.precision };
        if (high - low) / 2.0 <= precision * median.max(floor) { Some(Stop::Precise) } else { (n >= self.most).then_some(Stop::Budget) }
    }
}

/// Overheads matter beside what their messages take on the way: a fiftieth of that is their floor.
pub(super) fn floor(experiment: &Experiment, samples: &Samples) -> f64 {
    let way = match experiment {
        Experiment::ReceiveTime { delay_ns, .. } => *delay_ns as f64 * 1e-9,
        Experiment::SendTime { a, b, .. } => {
            samples.median(&Experiment::SaturationTrain { a: *a, b: *b, bytes: 0, count: 1, delay_ns: 0 }).unwrap_or(0.0)
        }
        _ => 0.0,
    };
    way / 50.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_repetitions_must_agree_more_closely() {
        let ms = |t: f64| t * 1e-3;
        let rule = StopRule { most: 8, ..StopRule::default() };
        assert_eq!(rule.met(&[1.0, 1.0].map(ms), 0.0), None, "the least is three");
        assert_eq!(rule.met(&[1.0, 1.0], 0.0), Some(Stop::Precise), "two for what takes long");
        assert_eq!(rule.met(&[1.00, 1.01, 1.03].map(ms), 0.0), Some(Stop::Precise), "half the range is 1.5 %");
        assert_eq!(rule.met(&[1.00, 1.02, 1.04].map(ms), 0.0), None, "half the range is 2 %");
        assert_eq!(rule.met(&[1.00, 1.01, 1.02, 1.04].map(ms), 0.0), Some(Stop::Precise), "half the range is 2 %");
        assert_eq!(rule.met(&[1.00, 1.02, 1.04, 1.08].map(ms), 0.0), None, "half the range is 4 %");
        assert_eq!(rule.met(&[1.00, 1.02, 1.03, 1.04, 1.05, 1.06, 1.08].map(ms), 0.0), Some(Stop::Precise), "now it is an interval");
        assert_eq!(rule.met(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0].map(ms), 0.0), Some(Stop::Budget));
        assert_eq!(rule.met(&[1.0, 2.0, 1.5].map(ms), 0.03), Some(Stop::Precise), "half the range is little beside a floor of 30 ms");
    }
}
