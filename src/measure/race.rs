//! Experiments that race each other: what is clearly slower than another of its field is not repeated.

use super::{Experiment, StopRule};
use crate::stats;
use rustc_hash::FxHashMap;

/// Experiments that race each other.
#[derive(Default)]
pub(super) struct Rivals {
    /// The field of each.
    pub field: FxHashMap<Experiment, usize>,
    /// By field, the lowest upper end of a median's interval.
    pub lowest_high: Vec<f64>,
    /// By field, the shortest run.
    pub shortest: Vec<f64>,
    /// What takes so many times the shortest run of its field in its first run has lost; after two runs, half as much above it is enough.
    pub hopeless: Option<f64>,
}

impl Rivals {
    /// So many more runs before anything can be told about experiments that ran so often: as often again, but one by one where a first run
    /// tells.
    pub fn more(&self, runs: usize, least: usize, rule: StopRule) -> usize {
        match self.hopeless {
            Some(_) if runs < least => 1,
            _ => runs.max(least.saturating_sub(runs)).min(rule.most.saturating_sub(runs)).max(1),
        }
    }

    pub fn note(&mut self, experiment: &Experiment, seconds: &[f64], rule: StopRule) {
        let Some(&field) = self.field.get(experiment) else { return };
        self.shortest[field] = seconds.iter().copied().fold(self.shortest[field], f64::min);
        if let Some(high) = high(seconds).filter(|_| seconds.len() >= rule.least_of(seconds)) {
            self.lowest_high[field] = self.lowest_high[field].min(high);
        }
    }

    /// True if another one is clearly faster.
    pub fn beat(&self, experiment: &Experiment, seconds: &[f64], rule: StopRule) -> bool {
        let (Some(&field), Some((low, _))) = (self.field.get(experiment), stats::median_interval(seconds)) else { return false };
        match self.hopeless {
            Some(hopeless) if seconds.len() < rule.least_of(seconds) => {
                low > self.shortest[field] * (1.0 + (hopeless - 1.0) / seconds.len() as f64)
            }
            _ => low > self.lowest_high[field],
        }
    }
}

/// The upper end of the median's interval.
fn high(seconds: &[f64]) -> Option<f64> {
    stats::median_interval(seconds).map(|(_, high)| high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_clearly_slower_is_not_repeated() {
        let of = |bytes| Experiment::RoundTrip { a: 0, b: 1, out: bytes, back: 0 };
        let rule = StopRule::default();
        let field = (0..3).map(|k| (of(k), 0)).collect();
        let mut rivals = Rivals { field, lowest_high: vec![f64::INFINITY], shortest: vec![f64::INFINITY], hopeless: Some(1.25) };
        rivals.note(&of(0), &[1.0], rule);
        assert!(rivals.beat(&of(1), &[1.3], rule));
        assert!(!rivals.beat(&of(1), &[1.2], rule), "one run says little");
        assert!(!rivals.beat(&of(1), &[1.1, 1.1, 1.1], rule), "one run of the other says little");
        rivals.note(&of(0), &[1.0, 1.3, 1.1, 1.2], rule);
        assert!(rivals.beat(&of(1), &[1.4, 1.5, 1.6, 1.9], rule));
        assert!(!rivals.beat(&of(2), &[1.25, 1.5, 1.6, 1.9], rule), "the ranges overlap");
        assert!(!rivals.beat(&of(9), &[2.0, 2.0, 2.0, 2.0], rule), "not in the field");
    }
}
