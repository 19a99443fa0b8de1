//! The options by which one algorithm is named without a policy, for `predict` and `export`.

use crate::collective::{Algorithm, Collective, Parameters, bcast, collective};
use crate::schedule::{MOST_MESSAGES, Schedule, WINDOW};
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
    /// Radix of a tree or a dissemination; the algorithm's own if not given.
    #[arg(long, requires = "algorithm", value_parser = clap::value_parser!(u32).range(2..))]
    radix: Option<u32>,
    /// Messages under way to each peer, at most 64; not held back if not given.
    #[arg(long, requires = "algorithm", value_parser = clap::value_parser!(u16).range(1..=WINDOW as i64), value_name = "MESSAGES")]
    in_flight: Option<u16>,
    /// To how many peers at once a rank sends; to all if not given.
    #[arg(long, requires = "algorithm", value_parser = clap::value_parser!(u16).range(1..=WINDOW as i64), value_name = "PEERS")]
    peers: Option<u16>,
    /// Messages of its schedule, at most: whoever wants more needs 8 to 510 bytes for each.
    #[arg(long, requires = "algorithm", value_name = "MESSAGES", default_value_t = MOST_MESSAGES as u32, value_parser = clap::value_parser!(u32).range(1..))]
    most_messages: u32,
}

/// The collective that is asked about.
#[derive(clap::Args)]
pub struct CollectiveArgs {
    /// The collective, as `collwise list` names them.
    #[arg(long, value_name = "NAME", default_value = bcast::COLLECTIVE.name, value_parser = collective)]
    pub collective: &'static Collective,
}

impl CollectiveArgs {
    /// The sizes to look at: those that were given, or 0 for a collective without a message.
    pub fn sizes(&self, given: &[usize]) -> anyhow::Result<Vec<usize>> {
        match (self.collective.sized(), given) {
            (true, []) => bail!("look at {}: give --bytes", self.collective.one()),
            (false, given) if given.iter().any(|&b| b > 0) => bail!("look at {} of --bytes: it has no message", self.collective.one()),
            (_, given) => Ok(self.collective.sizes(given)),
        }
    }

    /// Refuses a root where there is none.
    pub fn check_root(&self, root: usize) -> anyhow::Result<()> {
        if !self.collective.rooted && root > 0 {
            bail!("look at {} from --root {root}: it has no root", self.collective.one());
        }
        Ok(())
    }
}

/// What these options name.
pub struct Chosen {
    /// The collective.
    pub collective: &'static Collective,
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Over so many ranks.
    pub ranks: usize,
    parameters: Parameters,
    most_messages: usize,
}

impl AlgorithmArgs {
    /// The algorithm they name; `None` if they were not given.
    pub fn chosen(&self, collective: &'static Collective) -> anyhow::Result<Option<Chosen>> {
        let (Some(name), Some(ranks)) = (&self.algorithm, self.ranks) else {
            if self.ranks.is_some() {
                bail!("look at --ranks without --algorithm: a policy has its own ranks");
            }
            return Ok(None);
        };
        let algorithm = collective.algorithm(name)?;
        let takes = (algorithm.segmented, !algorithm.radices.is_empty());
        if (self.segment > 0 && !takes.0) || (self.radix.is_some() && !takes.1) {
            let takes = match takes {
                (true, true) => "--segment and --radix",
                (true, false) => "--segment, but no --radix",
                (false, true) => "--radix, but no --segment",
                (false, false) => "neither --segment nor --radix",
            };
            bail!("build {name}: it takes {takes}");
        }
        if let Some(radix) = self.radix.filter(|&radix| radix as usize > algorithm.most_radix(ranks as usize)) {
            bail!("build {name} of radix {radix}: over {ranks} ranks {} is the largest", algorithm.most_radix(ranks as usize));
        }
        let parameters = Parameters {
            segment: self.segment,
            radix: self.radix.unwrap_or(0) as usize,
            in_flight: self.in_flight.unwrap_or(0).into(),
            peers: self.peers.unwrap_or(0).into(),
            by_speed: false,
        };
        Ok(Some(Chosen { collective, algorithm, ranks: ranks as usize, parameters, most_messages: self.most_messages as usize }))
    }
}

impl Chosen {
    /// Its schedule for a message from a root; `aim` is what it is wanted for, as in "failed to predict".
    pub fn schedule(&self, aim: &str, root: usize, bytes: usize) -> anyhow::Result<Schedule> {
        let Chosen { collective, algorithm, ranks, parameters, most_messages } = self;
        if root >= *ranks {
            bail!("{aim} {} from rank {root} of {ranks} ranks", collective.one());
        }
        collective.check_memory(*ranks, bytes)?;
        let shape = collective.shape(*ranks, root, bytes);
        let schedule = algorithm.schedule_within(&shape, parameters, *most_messages)?;
        schedule.with_context(|| format!("{aim} {}: the messages of the MPI library's own are not known", algorithm.name))
    }
}
