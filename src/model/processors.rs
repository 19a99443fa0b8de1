//! The processors of a group whose hosts differ, by the model that tells them from the network.

use super::{Fitted, LMO, TABLES, Values};
use crate::topology::{Link, Rank};

/// The pair of positions that models of one pair are fitted on.
pub const PAIR: Link = Link { from: 0, to: 1 };

/// Processors of a group differ for sure where the slowest takes so many times as long for a message as the fastest.
const UNLIKE: f64 = 1.5;

/// The difference must be at least this share of what an empty message takes: where processors are hardly a part of that, it decides nothing.
const MATTERS: f64 = 0.1;

/// What a message costs the processor of each position.
#[derive(Debug, Clone, PartialEq)]
pub struct Processors {
    /// C_i, s, and t_i, s/B.
    each: Vec<(f64, f64)>,
    /// For positions that were not there when it was fitted.
    typical: (f64, f64),
    /// s/B.
    inverse_bandwidth: f64,
}

impl Processors {
    /// Those of a group whose processors differ for sure, by its models.
    pub fn unlike(models: &[Fitted]) -> Option<Processors> {
        let lmo = models.iter().find(|m| m.model == LMO.name)?;
        let fixed = lmo.tables.get("C")?;
        let values = lmo.values();
        let own = Processors::new(&values);
        let empty = values.get("L") + 2.0 * own.typical.0;
        let least = fixed.high.iter().copied().fold(f64::INFINITY, f64::min);
        let most = fixed.low.iter().copied().fold(0.0, f64::max);
        (most > UNLIKE * least && most - least > MATTERS * empty).then_some(own)
    }

    /// By the parameters of LMO.
    pub fn new(values: &Values) -> Processors {
        let (fixed, per_byte) = (values.list("C"), values.list("t"));
        let mean = |list: &[f64]| crate::stats::mean(list).unwrap_or(0.0);
        Processors {
            each: fixed.iter().copied().zip(per_byte.iter().copied()).collect(),
            typical: (mean(fixed), mean(per_byte)),
            inverse_bandwidth: values.get("inverse_b"),
        }
    }

    /// Seconds that a message keeps the processor of a position.
    pub fn seconds(&self, position: Rank, bytes: usize) -> f64 {
        let (fixed, per_byte) = self.each.get(position).copied().unwrap_or(self.typical);
        fixed + per_byte * bytes as f64
    }

    /// Seconds that the bytes of a message are on the network.
    pub fn port(&self, bytes: usize) -> f64 {
        self.inverse_bandwidth * bytes as f64
    }
}

impl Fitted {
    /// True if its costs hold what the processors of a pair take, measured apart: then another position's can take their place.
    pub(super) fn has_processors_of_its_pair(&self) -> bool {
        self.model == TABLES.name
    }
}
