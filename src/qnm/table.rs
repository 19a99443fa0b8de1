//! Quantities that may be 0 and follow no law: tables by number of processes.

use super::scale::{medians, quantile, share, squares, without};
use serde::Serialize;

/// Values that may be 0: interpolated, and as at the next one beyond.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(transparent)]
pub struct Table {
    points: Vec<(usize, f64)>,
    #[serde(skip)]
    scale: Scale,
}

/// How far a number of processes is from one to another...
#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum Scale {
    /// ...by its logarithm,
    #[default]
    Logarithm,
    /// ...by itself.
    Number,
}

impl Scale {
    fn share(self, left: usize, right: usize, ranks: usize) -> f64 {
        match self {
            Scale::Logarithm => share(left, right, ranks),
            Scale::Number => (ranks - left) as f64 / (right - left) as f64,
        }
    }
}

impl Table {
    /// The medians of values, by number of processes; between them by its logarithm.
    pub fn new(values: &[(usize, f64)]) -> Table {
        Table { points: medians(values), scale: Scale::Logarithm }
    }

    /// The same of what grows with the number itself, as the chance that one of the processes has what few have.
    pub fn by_number(values: &[(usize, f64)]) -> Table {
        Table { points: medians(values), scale: Scale::Number }
    }

    /// The value at so many processes; 0 without any.
    pub fn at(&self, ranks: usize) -> f64 {
        self.looked_up(&self.points, ranks)
    }

    /// How far that may be off, with 95 % probability: as far as it is at points that have neighbours, had they not been measured; beyond, as
    /// each is from the one before.
    pub fn margin(&self, ranks: usize) -> Option<f64> {
        let points = &self.points;
        let is_inside = matches!(&points[..], [first, .., last] if (first.0..=last.0).contains(&ranks));
        let misses: Vec<f64> = if is_inside {
            let inner = 1..points.len() - 1;
            inner.map(|k| self.looked_up(&without(points, k), points[k].0) - points[k].1).collect()
        } else {
            points.windows(2).map(|pair| pair[1].1 - pair[0].1).collect()
        };
        let n = misses.len();
        quantile(n).map(|t| t * (squares(misses.into_iter()) / n as f64).sqrt())
    }

    fn looked_up(&self, points: &[(usize, f64)], ranks: usize) -> f64 {
        let k = points.partition_point(|p| p.0 < ranks);
        match (k.checked_sub(1).map(|k| points[k]), points.get(k)) {
            (Some(left), Some(right)) => left.1 + self.scale.share(left.0, right.0, ranks) * (right.1 - left.1),
            (Some(end), None) => end.1,
            (None, end) => end.map_or(0.0, |e| e.1),
        }
    }
}
