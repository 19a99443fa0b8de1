//! A session of measuring: runs what is asked and not known yet, repeats until it is precise, keeps every sample.

use super::race::Rivals;
use super::sample_file::{Held, SampleFile};
use super::stop::floor;
use super::{Experiment, Probe, Sample, Samples, Settings, Stop, StopRule, pack};
use crate::error::{Error, Result};
use crate::stats;
use rustc_hash::FxHashSet;
use std::path::Path;

/// As many batches are handed out at once as take about so long.
const AT_ONCE_S: f64 = 4.0;

/// So many of a field are measured once more, so many times.
const AGAIN: usize = 6;
const TIMES_AGAIN: usize = 7;

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
            spent: Vec::new(),
        }
    }

    /// Keeps the samples in a file too, and starts from those that it holds; nobody else may write to it meanwhile.
    ///
    /// # Errors
    /// The file cannot be read or written, another process writes to it, or it holds samples of other hosts or another library.
    pub fn keep(&mut self, path: &Path, held: Held) -> Result<()> {
        let (file, samples) = SampleFile::open(path, &self.settings, held)?;
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

    /// Measures what is not known yet, and anew what lost a race after few repetitions.
    ///
    /// # Errors
    /// The probe's, or the sample file's. What was measured before is kept.
    pub fn measure(&mut self, purpose: &str, experiments: &[Experiment]) -> Result<()> {
        self.run(purpose, experiments, Rivals::default(), self.rule)
    }

    /// As [`Session::measure`], with the fewest repetitions of each: for experiments of which a mean over many is wanted.
    ///
    /// # Errors
    /// As for [`Session::measure`].
    pub fn measure_roughly(&mut self, purpose: &str, experiments: &[Experiment]) -> Result<()> {
        self.run(purpose, experiments, Rivals::default(), StopRule { most: self.rule.least.min(self.rule.most), ..self.rule })
    }

    /// As [`Session::measure`], for fields of experiments of which the fastest one is wanted: what is clearly slower than another one of
    /// its field is not repeated any more (racing: Maron, Moore 1994). `hopeless`: what takes so many times the shortest run of its field
    /// in its first run is not even run again; for times that scatter by less than that.
    ///
    /// # Errors
    /// As for [`Session::measure`].
    pub fn race(&mut self, purpose: &str, fields: &[Vec<Experiment>], hopeless: Option<f64>) -> Result<()> {
        let mut rivals = Rivals { hopeless, ..Rivals::default() };
        for (field, experiments) in fields.iter().enumerate() {
            rivals.field.extend(experiments.iter().map(|e| (e.clone(), field)));
            rivals.lowest_high.push(f64::INFINITY);
            rivals.shortest.push(f64::INFINITY);
            for known in experiments.iter().filter_map(|e| self.samples.get(e)) {
                rivals.note(&known.experiment, &known.seconds, self.rule);
            }
        }
        // where a first run tells nothing, two do not tell enough
        let least_long = if hopeless.is_some() { self.rule.least_long } else { self.rule.least };
        self.run(purpose, &fields.concat(), rivals, StopRule { least_long, ..self.rule })
    }

    /// Measures the fastest of each field once more and adds what is found: the best of many noisy medians is one that was lucky. A recording
    /// is left as it is.
    ///
    /// # Errors
    /// As for [`Session::measure`].
    pub fn remeasure(&mut self, purpose: &str, fields: &[Vec<Experiment>]) -> Result<()> {
        let mut wanted: Vec<Experiment> = Vec::new();
        for field in fields.iter().filter(|_| self.probe.can_measure()) {
            let mut known: Vec<(f64, &Experiment)> = field.iter().filter_map(|e| Some((self.samples.median(e)?, e))).collect();
            known.sort_by(|a, b| a.0.total_cmp(&b.0));
            let is_new = |e: &&Experiment| self.samples.get(e).is_some_and(|s| s.again.is_empty());
            wanted.extend(known.into_iter().take(AGAIN).map(|(_, e)| e).filter(is_new).cloned());
        }
        let before: Vec<Sample> = wanted.iter().filter_map(|e| self.samples.remove(e)).collect();
        let times = TIMES_AGAIN.min(self.rule.most);
        let rule = StopRule { least: times, least_long: times, most: times, ..self.rule };
        // written when both parts are there: a run that is killed meanwhile keeps the first
        let file = self.file.take();
        let measured = self.run(purpose, &wanted, Rivals::default(), rule);
        self.file = file;
        let mut merged = Vec::new();
        for mut sample in before {
            sample.again = self.samples.all(&sample.experiment);
            self.samples.insert(sample.clone());
            merged.push(sample);
        }
        if let Some(file) = &mut self.file {
            file.append(&merged)?;
        }
        measured
    }

    fn run(&mut self, purpose: &str, experiments: &[Experiment], mut rivals: Rivals, rule: StopRule) -> Result<()> {
        let racing = !rivals.field.is_empty();
        let known = |e: &Experiment| self.samples.get(e).is_some_and(|s| racing || s.stop != Stop::Beaten || !self.probe.can_measure());
        let mut open: Vec<Experiment> = experiments.iter().filter(|e| !known(e)).cloned().collect();
        // among those of as many ranks, whoever asks knows a good order
        open.sort_by_key(|e| std::cmp::Reverse(e.ranks().len()));
        let mut seen = FxHashSet::default();
        open.retain(|e| seen.insert(e.clone()));
        let began = self.elapsed();
        let batches = pack(&open, &self.settings.hosts, self.side_by_side);
        let (mut rest, mut known, mut at_once) = (&batches[..], 0, 8);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(at_once.min(rest.len()));
            let start = self.elapsed();
            let done = self.repeat(now.iter().flatten().map(|&k| open[k].clone()).collect(), &mut rivals, rule)?;
            if let Some(file) = &mut self.file {
                file.append(&done)?;
            }
            known += done.len();
            done.into_iter().for_each(|s| self.samples.insert(s));
            (self.progress)(purpose, known, open.len());
            // handing out batches one by one would cost latencies each; an interrupt loses what was handed out last
            at_once = if self.elapsed() - start < AT_ONCE_S / 2.0 { 2 * at_once } else { (at_once / 2).max(1) };
            rest = later;
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
        let seconds = self.probe.run(&[vec![experiment.clone()]], self.rule.least)?;
        stats::median(&seconds.concat()).ok_or_else(|| Error::data(format!("measure {experiment:?}: the probe gave no time")))
    }

    /// True if experiments run side by side.
    pub fn is_side_by_side(&self) -> bool {
        self.side_by_side
    }

    /// Measures experiments until every one is precise enough, beaten by a rival, or has spent its repetitions.
    fn repeat(&mut self, experiments: Vec<Experiment>, rivals: &mut Rivals, rule: StopRule) -> Result<Vec<Sample>> {
        let mut open: Vec<(Experiment, Vec<f64>)> = experiments.into_iter().map(|e| (e, Vec::new())).collect();
        let (mut done, mut repetitions) = (Vec::new(), rivals.more(0, rule.least.min(rule.least_long), rule));
        let samples = &self.samples;
        while !open.is_empty() {
            let experiments: Vec<Experiment> = open.iter().map(|(e, _)| e.clone()).collect();
            let batches = pack(&experiments, &self.settings.hosts, self.side_by_side);
            let handed_out: Vec<Vec<Experiment>> = batches.iter().map(|b| b.iter().map(|&k| experiments[k].clone()).collect()).collect();
            let results = if self.side_by_side {
                self.probe.run(&handed_out, repetitions)?
            } else {
                let alone = handed_out.chunks(1).map(|one| self.probe.run(one, repetitions));
                alone.collect::<Result<Vec<_>>>()?.concat()
            };
            for (k, more) in batches.into_iter().flatten().zip(results) {
                let (experiment, seconds) = &mut open[k];
                if more.is_empty() || more.iter().any(|t| !t.is_finite()) {
                    return Err(Error::data(format!("measure {experiment:?}: the probe gave no finite time")));
                }
                seconds.extend(more.into_iter().map(|t| t.max(0.0)));
            }
            open.iter().for_each(|(experiment, seconds)| rivals.note(experiment, seconds, rule));
            open.retain_mut(|(experiment, seconds)| {
                let stop = rule.met(seconds, floor(experiment, samples)).or(rivals.beat(experiment, seconds, rule).then_some(Stop::Beaten));
                done.extend(stop.map(|stop| Sample {
                    experiment: experiment.clone(),
                    seconds: std::mem::take(seconds),
                    stop,
                    again: Vec::new(),
                }));
                stop.is_none()
            });
            let so_far = open.first().map_or(0, |(_, seconds)| seconds.len());
            let least = open.iter().map(|(_, seconds)| rule.least_of(seconds)).max().unwrap_or(0);
            repetitions = rivals.more(so_far, least, rule);
        }
        Ok(done)
    }
}
