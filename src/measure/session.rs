//! A session of measuring: runs what is asked and not known yet, repeats until it is precise, keeps every sample.

use super::samples::SampleFile;
use super::{Experiment, Probe, Sample, Samples, Settings, Stop, pack};
use crate::error::{Error, Result};
use crate::stats;
use std::path::Path;

/// How often an experiment is repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StopRule {
    /// Repetitions of a first batch.
    pub least: usize,
    /// Repetitions at most.
    pub most: usize,
    /// Stop when half the confidence interval of the median is within this share of the median; half this share while repetitions are
    /// too few for such an interval, which then is their whole range.
    pub precision: f64,
}

impl Default for StopRule {
    fn default() -> Self {
        StopRule { least: 4, most: 31, precision: 0.05 }
    }
}

impl StopRule {
    fn met(&self, seconds: &[f64]) -> Option<Stop> {
        let (median, (low, high)) = (stats::median(seconds)?, stats::median_interval(seconds)?);
        let precision = if seconds.len() < stats::LEAST_FOR_INTERVAL { self.precision / 2.0 } else { self.precision };
        if (high - low) / 2.0 <= precision * median { Some(Stop::Precise) } else { (seconds.len() >= self.most).then_some(Stop::Budget) }
    }
}

/// Told as measuring goes on: what for, how many experiments are done, of how many.
pub type Progress<'a> = Box<dyn FnMut(&str, usize, usize) + 'a>;

/// What measuring took for one purpose.
#[derive(Debug, Clone, PartialEq)]
pub struct Spent {
    /// What for.
    pub purpose: String,
    /// Experiments that were not known before.
    pub experiments: usize,
    /// Seconds on the clock of what is measured.
    pub seconds: f64,
}

/// A session of measuring.
pub struct Session<'a> {
    probe: &'a mut dyn Probe,
    settings: Settings,
    samples: Samples,
    file: Option<SampleFile>,
    rule: StopRule,
    side_by_side: bool,
    progress: Progress<'a>,
    runs: usize,
    spent: Vec<Spent>,
}

impl<'a> Session<'a> {
    /// A session over a probe.
    pub fn new(probe: &'a mut dyn Probe) -> Session<'a> {
        let settings = probe.settings();
        let progress: Progress<'a> = Box::new(|_, _, _| ());
        Session {
            probe,
            settings,
            samples: Samples::default(),
            file: None,
            rule: StopRule::default(),
            side_by_side: true,
            progress,
            runs: 0,
            spent: Vec::new(),
        }
    }

    /// Keeps the samples in a file too, and starts from those that it holds.
    ///
    /// # Errors
    /// The file cannot be read or written, or holds samples of other hosts or another library.
    pub fn keep(&mut self, path: &Path) -> Result<()> {
        let (file, samples) = SampleFile::open(path, &self.settings)?;
        (self.file, self.samples) = (Some(file), samples);
        Ok(())
    }

    /// Starts from samples at hand.
    pub fn with_samples(mut self, samples: Samples) -> Self {
        self.samples = samples;
        self
    }

    /// Sets how often experiments are repeated.
    pub fn rule(mut self, rule: StopRule) -> Self {
        self.rule = rule;
        self
    }

    /// Runs one experiment at a time.
    pub fn serial(mut self, serial: bool) -> Self {
        self.side_by_side = !serial;
        self
    }

    /// Reports progress.
    pub fn progress(mut self, progress: Progress<'a>) -> Self {
        self.progress = progress;
        self
    }

    /// What is measured, and with what.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.settings.hosts.len()
    }

    /// All samples so far.
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// True if the library's own collectives can be measured.
    pub fn has_native(&self) -> bool {
        self.probe.has_native()
    }

    /// Seconds that measuring took so far, on the clock of what is measured.
    pub fn elapsed(&self) -> f64 {
        self.probe.elapsed()
    }

    /// What it took, by purpose.
    pub fn spent(&self) -> &[Spent] {
        &self.spent
    }

    /// How many batches were run so far.
    pub fn batches(&self) -> usize {
        self.runs
    }

    /// Measures what is not known yet.
    ///
    /// # Errors
    /// The probe's, or the sample file's. What was measured before is kept.
    pub fn measure(&mut self, purpose: &str, experiments: &[Experiment]) -> Result<()> {
        let mut open: Vec<Experiment> = experiments.iter().filter(|e| self.samples.get(e).is_none()).cloned().collect();
        open.sort_unstable_by_key(|e| std::cmp::Reverse(e.ranks().len()));
        let mut seen = rustc_hash::FxHashSet::default();
        open.retain(|e| seen.insert(e.clone()));
        let (mut known, began) = (0, self.elapsed());
        for batch in pack(&open, &self.settings.hosts, self.side_by_side) {
            let done = self.repeat(batch.into_iter().map(|k| open[k].clone()).collect())?;
            if let Some(file) = &mut self.file {
                file.append(&done)?;
            }
            known += done.len();
            done.into_iter().for_each(|s| self.samples.insert(s));
            (self.progress)(purpose, known, open.len());
        }
        self.note(purpose, open.len(), self.elapsed() - began);
        Ok(())
    }

    /// Adds to what a purpose took.
    fn note(&mut self, purpose: &str, experiments: usize, seconds: f64) {
        if experiments == 0 {
            return;
        }
        match self.spent.iter_mut().find(|s| s.purpose == purpose) {
            Some(s) => (s.experiments, s.seconds) = (s.experiments + experiments, s.seconds + seconds),
            None => self.spent.push(Spent { purpose: purpose.into(), experiments, seconds }),
        }
    }

    /// The median of an experiment that runs alone now, whatever is known about it; it is not kept.
    ///
    /// # Errors
    /// The probe's.
    pub fn alone(&mut self, experiment: &Experiment) -> Result<f64> {
        self.runs += 1;
        let seconds = self.probe.run(std::slice::from_ref(experiment), self.rule.least)?;
        stats::median(&seconds.concat()).ok_or_else(|| Error::data(format!("measure {experiment:?}: the probe gave no time")))
    }

    /// True if experiments run side by side.
    pub fn is_side_by_side(&self) -> bool {
        self.side_by_side
    }

    /// Measures one batch until every experiment of it is precise enough or has spent its repetitions.
    fn repeat(&mut self, mut batch: Vec<Experiment>) -> Result<Vec<Sample>> {
        let mut gathered: Vec<Vec<f64>> = vec![Vec::new(); batch.len()];
        let (mut done, mut repetitions) = (Vec::new(), self.rule.least);
        while !batch.is_empty() {
            self.runs += 1;
            let results = self.probe.run(&batch, repetitions)?;
            let (mut open, mut open_seconds) = (Vec::new(), Vec::new());
            for ((experiment, mut seconds), more) in batch.into_iter().zip(gathered).zip(results) {
                if more.is_empty() || more.iter().any(|t| !t.is_finite()) {
                    return Err(Error::data(format!("measure {experiment:?}: the probe gave no finite time")));
                }
                seconds.extend(more.into_iter().map(|t| t.max(0.0)));
                match self.rule.met(&seconds) {
                    Some(stop) => done.push(Sample { experiment, seconds, stop }),
                    None => {
                        open.push(experiment);
                        open_seconds.push(seconds);
                    }
                }
            }
            (batch, gathered) = (open, open_seconds);
            let so_far = gathered.first().map_or(0, Vec::len);
            repetitions = (so_far / 2).max(self.rule.least).min(self.rule.most.saturating_sub(so_far)).max(1);
        }
        Ok(done)
    }
}

/// A recorded sample file as a probe: it knows its settings and cannot measure anything new.
#[derive(Debug)]
pub struct Recorded {
    /// The settings of the recording.
    pub settings: Settings,
    /// True if the recording has runs of the library's own collectives.
    pub native: bool,
}

impl Recorded {
    /// Opens a recording.
    ///
    /// # Errors
    /// The file cannot be read, or is no sample file.
    pub fn open(path: &Path) -> Result<Recorded> {
        let (settings, samples) = Samples::parse(&path.display().to_string(), &crate::error::read_text(path)?)?;
        Ok(Recorded { settings, native: samples.iter().any(|s| s.experiment.is_native()) })
    }
}

impl Probe for Recorded {
    fn settings(&self) -> Settings {
        self.settings.clone()
    }

    fn run(&mut self, batch: &[Experiment], _: usize) -> Result<Vec<Vec<f64>>> {
        Err(Error::data(format!(
            "find {:?} in the recording: it was not measured; run again under mpirun with the same file to add it",
            batch.first()
        )))
    }

    fn has_native(&self) -> bool {
        self.native
    }

    fn elapsed(&self) -> f64 {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_repetitions_must_agree_more_closely() {
        let rule = StopRule { least: 4, most: 8, precision: 0.05 };
        assert_eq!(rule.met(&[1.00, 1.01, 1.02, 1.04]), Some(Stop::Precise), "half the range is 2 %");
        assert_eq!(rule.met(&[1.00, 1.02, 1.04, 1.08]), None, "half the range is 4 %");
        assert_eq!(rule.met(&[1.00, 1.02, 1.03, 1.04, 1.05, 1.06, 1.08]), Some(Stop::Precise), "now it is an interval");
        assert_eq!(rule.met(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]), Some(Stop::Budget));
    }
}
