//! What a processor does with data in its own memory: it copies, and combines, as reductions do. No message is part of it, so no model of messages knows.

use super::{Cost, CostModel, Pipe};
use crate::measure::{Experiment, Samples};
use crate::stats::interpolate;
use crate::topology::{Link, Rank};
use crate::units;
use serde::{Deserialize, Serialize};

/// What is measured: a buffer that caches hold, and one that most do not.
const CACHED_AND_NOT: [usize; 2] = [8 << 10, 2 << 20];
/// So many bytes are gone through at least for each time: clocks are read to some tens of nanoseconds.
const LEAST_BYTES: usize = 256 << 10;

/// The seconds in which a processor copies and combines, by size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compute {
    /// The sizes, ascending.
    #[serde(deserialize_with = "units::de_bytes_list")]
    pub bytes: Vec<usize>,
    /// Seconds to copy so many bytes.
    pub copy_s: Vec<f64>,
    /// Seconds to combine so many bytes with as many others.
    pub combine_s: Vec<f64>,
}

impl Compute {
    /// The experiments on a rank.
    pub fn experiments(rank: Rank) -> impl Iterator<Item = Experiment> {
        CACHED_AND_NOT.into_iter().flat_map(move |bytes| [copying(rank, bytes), combining(rank, bytes)])
    }

    /// What was measured on a rank; `None` if something was not.
    pub fn measured(rank: Rank, samples: &Samples) -> Option<Compute> {
        let of = |experiment: fn(Rank, usize) -> Experiment| {
            CACHED_AND_NOT
                .iter()
                .map(|&bytes| Some(samples.median(&experiment(rank, bytes))? / times(bytes) as f64))
                .collect::<Option<Vec<f64>>>()
        };
        Some(Compute { bytes: CACHED_AND_NOT.to_vec(), copy_s: of(copying)?, combine_s: of(combining)? })
    }

    /// Seconds to copy so many bytes.
    pub fn copy(&self, bytes: usize) -> f64 {
        self.at(&self.copy_s, bytes)
    }

    /// Seconds to combine so many bytes with as many others.
    pub fn combine(&self, bytes: usize) -> f64 {
        self.at(&self.combine_s, bytes)
    }

    /// Nothing takes no time.
    fn at(&self, seconds: &[f64], bytes: usize) -> f64 {
        match self.bytes.first() {
            Some(&first) if bytes < first => seconds[0] * (bytes as f64 / first as f64),
            _ => interpolate(&self.bytes, seconds, bytes),
        }
    }
}

/// How often a buffer is gone through for each time.
fn times(bytes: usize) -> usize {
    (LEAST_BYTES / bytes).max(1)
}

fn copying(rank: Rank, bytes: usize) -> Experiment {
    Experiment::Copy { rank, bytes, count: times(bytes) }
}

fn combining(rank: Rank, bytes: usize) -> Experiment {
    Experiment::Combine { rank, bytes, count: times(bytes) }
}

/// What messages cost, and what processors take beside them.
pub(super) struct Computing {
    pub messages: Box<dyn CostModel>,
    /// One for all positions, or one for each; none where nobody measured it.
    pub compute: Vec<Compute>,
}

/// What a position's processor takes, of one for all positions or one for each.
pub(super) fn of_position(compute: &[Compute], position: Rank) -> Option<&Compute> {
    compute.get(position % compute.len().max(1))
}

impl CostModel for Computing {
    fn kinds(&self) -> usize {
        self.messages.kinds()
    }

    fn kind(&self, link: Link) -> usize {
        self.messages.kind(link)
    }

    fn cost(&self, link: Link, bytes: usize) -> Cost {
        self.messages.cost(link, bytes)
    }

    fn pipe(&self, link: Link, bytes: usize) -> Option<(Pipe, f64)> {
        self.messages.pipe(link, bytes)
    }

    fn port_in(&self, link: Link, bytes: usize) -> f64 {
        self.messages.port_in(link, bytes)
    }

    fn processor(&self, rank: Rank, bytes: usize) -> f64 {
        self.messages.processor(rank, bytes)
    }

    fn copy(&self, rank: Rank, bytes: usize) -> f64 {
        // what is not known is not free: nobody chooses what takes for ever
        of_position(&self.compute, rank).map_or(f64::INFINITY, |own| own.copy(bytes))
    }

    fn combine(&self, rank: Rank, bytes: usize) -> f64 {
        of_position(&self.compute, rank).map_or(f64::INFINITY, |own| own.combine(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_buffers_are_as_cheap_as_the_smallest_and_large_ones_as_dear_as_the_largest() {
        let compute = Compute { bytes: vec![1000, 3000], copy_s: vec![1e-6, 5e-6], combine_s: vec![2e-6, 6e-6] };
        let copies = [0, 500, 1000, 2000, 3000, 4000].map(|bytes| (compute.copy(bytes) * 1e9).round());
        assert_eq!(copies, [0.0, 500.0, 1000.0, 3000.0, 5000.0, 7000.0]);
        assert!((compute.combine(250) - 0.5e-6).abs() < 1e-15 && (compute.combine(5000) - 10e-6).abs() < 1e-15);
    }
}
