//! A recording in place of something to measure.

use super::{Experiment, Probe, Runs, Samples, Settings};
use crate::error::{Error, Result};
use std::path::Path;

/// A recorded sample file as a probe: it knows its settings and cannot measure anything new.
#[derive(Debug)]
pub struct Recorded {
    /// The settings of the recording.
    pub settings: Settings,
    /// True if the recording has runs of the library's own collectives.
    pub native: bool,
}

impl Recorded {
    /// Opens a recording; `repair`: without lines that make no sense. Gives its samples, too.
    ///
    /// # Errors
    /// The file cannot be read, or is no sample file.
    pub fn open(path: &Path, repair: bool) -> Result<(Recorded, Samples)> {
        let (settings, samples) = Samples::read(path, repair)?;
        let native = samples.iter().any(|s| s.experiment.is_native());
        Ok((Recorded { settings, native }, samples))
    }
}

impl Probe for Recorded {
    fn settings(&self) -> Settings {
        self.settings.clone()
    }

    fn run(&mut self, batches: &[Vec<Experiment>], _: usize) -> Result<Vec<Runs>> {
        let Some(missing) = batches.iter().flatten().next() else { return Ok(Vec::new()) };
        Err(Error::data(format!(
            "find {missing} in the recording: it was not measured; run again under mpirun with the same file to add it"
        )))
    }

    fn has_native(&self) -> bool {
        self.native
    }

    fn can_measure(&self) -> bool {
        false
    }

    fn elapsed(&self) -> f64 {
        0.0
    }
}
