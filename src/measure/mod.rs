//! Measuring: experiments are values, a [`Probe`] runs them, a [`Session`] decides how often and keeps the samples.
//!
//! Three sources of samples: a simulated platform, a recorded sample file, and MPI. The same program text runs over all three.

#[cfg(any(test, all(feature = "mpi", feature = "tune")))]
mod collectives;
#[cfg(feature = "tune")]
mod crowded;
mod experiment;
#[cfg(feature = "tune")]
mod lock;
#[cfg(all(feature = "mpi", feature = "tune"))]
pub mod mpi;
#[cfg(all(feature = "mpi", feature = "tune"))]
mod place;
mod programs;
#[cfg(feature = "tune")]
mod race;
#[cfg(feature = "tune")]
mod recorded;
#[cfg(feature = "tune")]
mod rounds;
#[cfg(feature = "tune")]
mod sample_file;
mod samples;
#[cfg(feature = "tune")]
mod session;
#[cfg(feature = "tune")]
mod simulated;
#[cfg(any(test, all(feature = "mpi", feature = "tune")))]
mod stamps;
#[cfg(feature = "tune")]
mod stop;
#[cfg(any(test, all(feature = "mpi", feature = "tune")))]
mod warmth;

#[cfg(feature = "tune")]
use crate::error::Error;
use crate::error::Result;
use crate::names;
use serde::{Deserialize, Serialize};

#[cfg(feature = "tune")]
pub use crowded::is_crowded;
pub use experiment::Experiment;
#[cfg(feature = "tune")]
pub use race::DRIFTED;
#[cfg(feature = "tune")]
pub use recorded::Recorded;
#[cfg(feature = "tune")]
pub use rounds::{Part, pack, parts};
#[cfg(feature = "tune")]
pub use sample_file::Held;
pub use samples::{ClockErrors, Sample, Samples, Stop};
#[cfg(feature = "tune")]
pub use session::{Progress, Session, Spent, Uplinks};
#[cfg(feature = "tune")]
pub use simulated::SimulatedProbe;
#[cfg(feature = "tune")]
pub use stop::StopRule;

/// The version of sample files that is read and written.
pub const SAMPLE_FORMAT: u32 = 2;

/// Where and with what samples are taken; the head of every sample file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Version of the sample file's format: [`SAMPLE_FORMAT`].
    pub format: u32,
    /// The platform's name, as the user gave it.
    #[serde(deserialize_with = "names::de_name")]
    pub platform: String,
    /// The host of each rank, as it calls itself.
    #[serde(deserialize_with = "names::de_names")]
    pub hosts: Vec<String>,
    /// The MPI library and its version, or "simulator".
    pub library: String,
    /// The clock that was read.
    pub timer: String,
    /// When measuring began (UTC), or "virtual time".
    pub date: String,
    /// The version of this program that measured; empty in files of older ones.
    #[serde(default)]
    pub build: String,
    /// The processors that each rank may run on, as the system tells; empty where it tells nothing.
    #[serde(default)]
    pub placement: Vec<String>,
}

/// This version of the program.
#[cfg(feature = "tune")]
const BUILD: &str = concat!("collwise ", env!("CARGO_PKG_VERSION"));

/// The hosts that MPI tells, by rank. With `declared` ones in their place they need not be names: they are made ones then.
///
/// # Errors
/// [`Error::Data`] with the first rank whose host is no name, and the remedy.
#[cfg(feature = "tune")]
#[cfg_attr(not(feature = "mpi"), allow(dead_code))] // who asks MPI
fn hosts_said(told: Vec<String>, declared: bool) -> Result<Vec<String>> {
    let name = |(rank, host): (usize, String)| match names::check(&host) {
        Err(_) if declared => Ok(names::made(&host)),
        Err(reason) => Err(Error::data(format!(
            "take the host of rank {rank} from MPI: {reason}; declare the hosts in a file, a line for each rank, and give it with --hosts"
        ))),
        Ok(()) => Ok(host),
    };
    told.into_iter().enumerate().map(name).collect()
}

/// What an experiment took.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Runs {
    /// Seconds of each repetition.
    pub seconds: Vec<f64>,
    /// See [`Sample::clock_error_s`].
    pub clock_error_s: f64,
}

/// Something that can run experiments on ranks.
pub trait Probe {
    /// What is measured, and with what.
    fn settings(&self) -> Settings;

    /// Runs batches, on each host one after the other: the experiments of a batch, which share no host, at the same time, so many times
    /// each. Gives what the repetitions took, by experiment, in order.
    ///
    /// # Errors
    /// What failed, and on which rank.
    fn run(&mut self, batches: &[Vec<Experiment>], repetitions: usize) -> Result<Vec<Runs>>;

    /// From now on collectives are run as a program's calls are that goes by a policy, or by their schedules alone, which is quicker to set up for each of many
    /// rivals. Where that differs.
    fn as_called(&mut self, _called: bool) {}

    /// As [`Probe::run`] of collectives as a program's calls, each once, of so many calls in a row, which every rank makes one after the other: what one call takes of
    /// that. Nothing where that cannot be measured.
    ///
    /// # Errors
    /// What failed, and on which rank.
    fn in_a_row(&mut self, _batches: &[Vec<Experiment>], _calls: usize) -> Result<Vec<Runs>> {
        Ok(Vec::new())
    }

    /// True if the library's own collectives can be measured.
    fn has_native(&self) -> bool;

    /// True unless it knows only what was measured before.
    fn can_measure(&self) -> bool {
        true
    }

    /// Seconds that setting a communicator of all ranks up takes, once, before its calls can go by a policy; none where that cannot be measured.
    ///
    /// # Errors
    /// What failed, and on which rank.
    fn set_up(&mut self) -> Result<Option<f64>> {
        Ok(None)
    }

    /// Seconds spent on measuring so far, on the clock of what is measured.
    fn elapsed(&self) -> f64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_without_a_name_can_be_declared() {
        let told = || vec!["a.example".to_string(), "b\n[[link]]".into()];
        let said = hosts_said(told(), false).unwrap_err().to_string();
        assert!(said.contains("rank 1") && said.contains(r#""b\n[[link]]""#) && said.contains("--hosts"), "{said}");
        assert_eq!(hosts_said(told(), true).unwrap(), ["a.example", "b___link__"]);
    }
}
