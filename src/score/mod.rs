//! How well each model explains each group and algorithm, and what measured collectives taught beyond that.

#[cfg(feature = "tune")]
mod measured;

use crate::collective::Collective;
use crate::stats;
use crate::units;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[cfg(feature = "tune")]
pub(crate) use measured::rank_counts;
#[cfg(feature = "tune")]
pub use measured::{HELD_OUT_BYTES, Scores, experiments, score, score_groups};

/// What takes so many times as long as predicted is not what models are about, such as messages that TCP loses and sends again.
const MISSED: f64 = 4.0;
/// And by so many seconds: TCP waits for 0.2 s where nobody told it to wait for less, and what processors do to short messages is over sooner.
const LOST_S: f64 = 10e-3;

/// True if models missed by a multiple what something takes, as where messages are lost.
pub fn is_missed(predicted_s: f64, measured_s: f64) -> bool {
    measured_s > MISSED * predicted_s && measured_s > predicted_s + LOST_S
}

/// How a model did in a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelScore {
    /// The collective that it was scored by.
    pub collective: &'static Collective,
    /// The model.
    pub model: String,
    /// Mean over all cases of |predicted / measured - 1|; `None` if there were none, or none that took time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// Its standard error.
    pub error_se: f64,
    /// Seconds that its experiments took.
    pub measuring_s: f64,
    /// Sizes.
    #[serde(deserialize_with = "units::de_bytes_list")]
    pub bytes: Vec<usize>,
    /// Mean error by size, in the order of `bytes`.
    pub error_by_bytes: Vec<f64>,
    /// Mean error by algorithm.
    pub error_by_algorithm: BTreeMap<String, f64>,
}

/// What the experiment base knows about an algorithm: measured over predicted time, by size, under a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The collective.
    pub collective: &'static Collective,
    /// The algorithm.
    pub algorithm: String,
    /// The model whose predictions are corrected.
    pub model: String,
    /// Sizes, ascending.
    pub bytes: Vec<usize>,
    /// Measured over predicted.
    pub ratio: Vec<f64>,
}

impl Calibration {
    /// The ratio at a size: linear between the sizes that were measured, the nearest one outside.
    pub fn at(&self, bytes: usize) -> f64 {
        ratio_at(&self.bytes, &self.ratio, bytes)
    }
}

/// Measured over predicted time, by size, of something that is known by its place.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratios {
    /// Sizes, ascending.
    #[serde(deserialize_with = "units::de_bytes_list")]
    pub bytes: Vec<usize>,
    /// Measured over predicted.
    pub ratio: Vec<f64>,
}

impl Ratios {
    /// As [`Calibration::at`].
    pub fn at(&self, bytes: usize) -> f64 {
        ratio_at(&self.bytes, &self.ratio, bytes)
    }
}

fn ratio_at(sizes: &[usize], ratios: &[f64], bytes: usize) -> f64 {
    match (sizes.first(), sizes.last()) {
        (Some(&first), Some(&last)) => stats::interpolate(sizes, ratios, bytes.clamp(first, last)),
        _ => 1.0,
    }
}

/// The selected model of a collective at a size, by its own scores, or by those of the collective scored first where it has none: of those that are as accurate near it as the best one, within the noise (one standard error), the
/// one that was cheapest to measure; of these the simplest (the first in the registry).
pub fn best_model<'a>(scores: &'a [ModelScore], collective: &Collective, bytes: usize) -> Option<&'a ModelScore> {
    let by = if scores.iter().any(|s| s.collective == collective) { collective } else { scores.first()?.collective };
    let scores = || scores.iter().filter(|s| s.collective == by);
    let at = |s: &ModelScore| {
        let nearest = s.bytes.iter().enumerate().min_by_key(|(_, b)| b.max(&&1).ilog2().abs_diff(bytes.max(1).ilog2())).map(|(k, _)| k);
        nearest.and_then(|k| s.error_by_bytes.get(k).copied()).or(s.error).unwrap_or(f64::MAX)
    };
    let best = scores().min_by(|a, b| at(a).total_cmp(&at(b)))?;
    scores().filter(|s| at(s) <= at(best) + best.error_se).min_by(|a, b| a.measuring_s.total_cmp(&b.measuring_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{barrier, bcast, reduce};

    fn score(model: &str, error: f64, measuring_s: f64) -> ModelScore {
        ModelScore {
            collective: &bcast::COLLECTIVE,
            model: model.into(),
            error: Some(error),
            error_se: 0.02,
            measuring_s,
            error_by_bytes: vec![error, 2.0 * error],
            bytes: vec![96, 3072],
            error_by_algorithm: BTreeMap::new(),
        }
    }

    #[test]
    fn accuracy_comes_first_then_cost_then_simplicity() {
        let pick =
            |scores: &[ModelScore], bytes| best_model(scores, &bcast::COLLECTIVE, bytes).map(|s| s.model.clone()).unwrap_or_default();
        let all = [score("simple", 0.30, 1.0), score("dear", 0.05, 9.0), score("cheap", 0.06, 2.0), score("twin", 0.06, 2.0)];
        assert_eq!(pick(&all, 100), "cheap");
        // twice the error at the larger size, and so twice the difference: no longer within the noise
        let apart = [score("dear", 0.05, 9.0), score("cheap", 0.065, 2.0)];
        assert_eq!((pick(&apart, 100), pick(&apart, 4000)), ("cheap".into(), "dear".into()));
        assert_eq!(pick(&[], 1), "");
        // each collective by its own scores, and what was not scored by the first that was
        let of_barrier = ModelScore { collective: &barrier::COLLECTIVE, ..score("dear", 0.5, 1.0) };
        let both = [all[2].clone(), of_barrier];
        let of = |collective| best_model(&both, collective, 0).map(|s| s.model.as_str());
        assert_eq!(
            (of(&barrier::COLLECTIVE), of(&bcast::COLLECTIVE), of(&reduce::COLLECTIVE)),
            (Some("dear"), Some("cheap"), Some("cheap"))
        );
    }
}
