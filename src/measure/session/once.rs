//! Runs that are not kept: to see whether what is to be measured side by side disturbs each other.

use super::Session;
use super::turns::crosses;
use crate::error::{Error, Result};
use crate::measure::Experiment;
use crate::stats;

impl Session<'_> {
    /// The median of an experiment that runs alone now, whatever is known about it; it is not kept.
    ///
    /// # Errors
    /// The probe's.
    pub fn alone(&mut self, experiment: &Experiment) -> Result<f64> {
        let found = self.beside(std::slice::from_ref(experiment), self.rule.least)?.pop();
        found.ok_or_else(|| Error::data(format!("measure {experiment}: the probe gave no time")))
    }

    /// The medians of experiments that run side by side now, as far as they share no host, so often, whatever is known about them; they are not kept.
    ///
    /// # Errors
    /// The probe's.
    pub fn beside(&mut self, experiments: &[Experiment], runs: usize) -> Result<Vec<f64>> {
        let crossing = self.uplinks.as_ref().is_some_and(|uplinks| experiments.iter().all(|e| crosses(e, uplinks)));
        let places = self.pack(experiments, crossing);
        let batches: Vec<Vec<Experiment>> = places.iter().map(|b| b.iter().map(|&k| experiments[k].clone()).collect()).collect();
        let found = self.probe.run(&batches, runs)?;
        let mut medians = vec![None; experiments.len()];
        for (&k, runs) in places.iter().flatten().zip(found) {
            medians[k] = stats::median(&runs.seconds).filter(|median| median.is_finite());
        }
        let known = |(experiment, median): (&Experiment, Option<f64>)| {
            median.ok_or_else(|| Error::data(format!("measure {experiment}: the probe gave no finite time")))
        };
        experiments.iter().zip(medians).map(known).collect()
    }
}
