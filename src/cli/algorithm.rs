//! The options by which one algorithm is named without a policy, for `predict` and `export`.

use crate::collective::{Algorithm, Parameters, Shape, bcast};
use crate::schedule::Schedule;
use crate::units;
use anyhow::{Context, bail};

/// One algorithm over a number of ranks.
#[derive(clap::Args)]
pub struct AlgorithmArgs {
    /// The algorithm.
    #[arg(long, requires = "ranks")]
    algorithm: Option<String>,
    /// Number of ranks.
    #[arg(long, requires = "algorithm", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    ranks: Option<u32>,
    /// Segment size of a segmented algorithm; the whole message if not given.
    #[arg(long, default_value = "0", requires = "algorithm", value_parser = units::parse_bytes)]
    segment: usize,
    /// Radix of the knomial tree.
    #[arg(long, default_value_t = 0, requires = "algorithm")]
    radix: usize,
}

/// What these options name.
pub struct Chosen {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Over so many ranks.
    pub ranks: usize,
    parameters: Parameters,
}

impl AlgorithmArgs {
    /// The algorithm they name; `None` if they were not given.
    pub fn chosen(&self) -> anyhow::Result<Option<Chosen>> {
        let (Some(name), Some(ranks)) = (&self.algorithm, self.ranks) else { return Ok(None) };
        let algorithm = bcast::algorithm(name)?;
        let parameters = Parameters { segment: if algorithm.segmented { self.segment } else { 0 }, radix: self.radix };
        Ok(Some(Chosen { algorithm, ranks: ranks as usize, parameters }))
    }
}

impl Chosen {
    /// Its schedule for a message from a root; `aim` is what it is wanted for, as in "failed to predict".
    pub fn schedule(&self, aim: &str, root: usize, bytes: usize) -> anyhow::Result<Schedule> {
        let Chosen { algorithm, ranks, parameters } = self;
        if root >= *ranks {
            bail!("{aim} a broadcast from rank {root} of {ranks} ranks");
        }
        let schedule = algorithm.bounded_schedule(&Shape { ranks: *ranks, root, bytes }, parameters)?;
        schedule.with_context(|| format!("{aim} {}: the messages of the MPI library's own are not known", algorithm.name))
    }
}
