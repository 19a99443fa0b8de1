//! What was measured is run again: to tell the fastest apart, and to time what was chosen by runs that did not choose it.

use super::{Rivals, Session};
use crate::error::Result;
use crate::measure::{Experiment, Sample, StopRule};
use std::collections::BTreeMap;

/// So many of the fastest of a field are remeasured.
const MOST_REMEASURED: usize = 6;

/// What is remeasured, and what is confirmed beside something else, runs so often at least: fewer tell little apart.
pub(super) const REMEASURE_RUNS: usize = 7;

/// What these runs did not tell apart runs so many times as often: half of a difference is then as clear as all of it was.
pub(super) const LONGER: usize = 3;

/// A list of runs that were added to a sample.
type List = fn(&mut Sample) -> &mut Vec<f64>;

impl Session<'_> {
    /// Remeasures the fastest of each field, in turns: the best of many noisy medians is one that was lucky. A recording is left as it is.
    ///
    /// # Errors
    /// As for [`Session::measure`].
    pub fn remeasure(&mut self, purpose: &str, fields: &[Vec<Experiment>]) -> Result<()> {
        let fastest = |field: &Vec<Experiment>| {
            let mut known: Vec<(f64, &Experiment)> = field.iter().filter_map(|e| Some((self.samples.median(e)?, e))).collect();
            known.sort_by(|a, b| a.0.total_cmp(&b.0));
            known.into_iter().take(MOST_REMEASURED).map(|(_, e)| e.clone()).collect()
        };
        let wanted = fields.iter().map(fastest).collect();
        self.add_as_often(purpose, wanted, REMEASURE_RUNS, 1, |sample| &mut sample.remeasured)
    }

    /// Remeasures each of some as often as anything is measured: what is lost in one run of ten is seen then. A recording is left as it is.
    ///
    /// # Errors
    /// As for [`Session::measure`].
    pub fn make_sure(&mut self, purpose: &str, of: Vec<Experiment>) -> Result<()> {
        let runs = self.rule.most;
        let rule = StopRule { least: runs, least_long: runs, most: runs, ..self.rule };
        self.add(purpose, of.into_iter().map(|e| vec![e]).collect(), rule, runs, |sample| &mut sample.remeasured)
    }

    /// True if one was remeasured so often, or cannot be.
    pub fn is_sure(&self, experiment: &Experiment) -> bool {
        !self.probe.can_measure() || self.samples.get(experiment).is_none_or(|sample| sample.remeasured.len() >= self.rule.most)
    }

    /// Runs what was chosen, so that its time is of runs that did not choose it: as often as it took to know it, and in turns with what stands beside it,
    /// if something does. A recording is left as it is.
    ///
    /// # Errors
    /// As for [`Session::measure`].
    pub fn confirm(&mut self, purpose: &str, fields: &[Vec<Experiment>]) -> Result<()> {
        let (alone, beside): (Vec<_>, Vec<_>) = fields.iter().cloned().partition(|field| field.len() == 1);
        self.add_as_often(purpose, beside, REMEASURE_RUNS, 1, |sample| &mut sample.confirmed)?;
        self.add_as_often(purpose, alone, 1, 1, |sample| &mut sample.confirmed)
    }

    /// As [`Session::confirm`] of what stands beside something else, once more and three times as long, where that did not tell them apart.
    ///
    /// # Errors
    /// As for [`Session::measure`].
    pub fn confirm_longer(&mut self, purpose: &str, fields: Vec<Vec<Experiment>>) -> Result<()> {
        self.add_as_often(purpose, fields, REMEASURE_RUNS, LONGER, |sample| &mut sample.confirmed)
    }

    /// As [`Session::add`], all of a field equally often: so many `times` as often as it took to know one of them, and as `least`.
    fn add_as_often(&mut self, purpose: &str, fields: Vec<Vec<Experiment>>, least: usize, times: usize, list: List) -> Result<()> {
        let mut by_runs: BTreeMap<usize, Vec<Vec<Experiment>>> = BTreeMap::new();
        for field in fields {
            let took = field.iter().filter_map(|e| Some(self.samples.get(e)?.seconds.len())).max().unwrap_or(0);
            by_runs.entry(took.max(least).min(self.rule.most)).or_default().push(field);
        }
        for (once, fields) in by_runs {
            let (known, runs) = (if times == 1 { 1 } else { once + 1 }, times * once);
            self.add(purpose, fields, StopRule { least: runs, least_long: runs, most: runs, ..self.rule }, known, list)?;
        }
        Ok(())
    }

    /// Runs those of some fields that were measured once more, in turns, and puts what is found in a list of each sample; a whole field, or
    /// nothing of it, if as many runs as say that it is `known` are there.
    fn add(&mut self, purpose: &str, mut fields: Vec<Vec<Experiment>>, rule: StopRule, known: usize, list: List) -> Result<()> {
        if !self.probe.can_measure() {
            return Ok(());
        }
        fields.iter_mut().for_each(|field| field.retain(|e| self.samples.get(e).is_some()));
        fields.retain(|field| field.iter().any(|e| self.samples.get_mut(e).is_some_and(|s| list(s).len() < known)));
        let before: Vec<Sample> = fields.iter().flatten().filter_map(|e| self.samples.remove(e)).collect();
        // written when both parts are there: a run that is killed meanwhile keeps the first
        let file = self.file.take();
        let measured = self.run(purpose, &fields, Some(Rivals::default()), rule);
        self.file = file;
        let mut merged = Vec::new();
        for mut sample in before {
            if let Some(added) = self.samples.remove(&sample.experiment) {
                *list(&mut sample) = added.seconds;
                sample.clock_error_s = sample.clock_error_s.max(added.clock_error_s);
            }
            self.samples.insert(sample.clone());
            merged.push(sample);
        }
        if let Some(file) = &mut self.file {
            file.append(&merged)?;
        }
        measured
    }
}
