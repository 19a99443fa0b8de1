//! A session of measuring: runs what is asked and not known yet, repeats until it is precise, keeps every sample.

mod once;
mod remeasure;
mod turns;

use super::race::Rivals;
use super::sample_file::{Held, SampleFile};
use super::stop::floor;
use super::{Experiment, Probe, Runs, Sample, Samples, Settings, Stop, StopRule, pack};
use crate::error::{Error, Result};
use crate::units::MAX_SECONDS;
use rustc_hash::FxHashSet;
use std::path::Path;
use turns::{alone, crossing_apart, in_turn, turns_as_long, whole_fields};

/// As many batches are handed out at once as take about so long.
const AT_ONCE_S: f64 = 4.0;

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

/// What experiments between groups of ranks share, whichever of their hosts take part.
pub struct Uplinks {
    /// A name by rank.
    pub of_rank: Vec<String>,
    /// All of them share something, too, so that they disturb each other.
    pub one_by_one: bool,
}

/// A session of measuring.
pub struct Session<'a> {
    probe: &'a mut dyn Probe,
    settings: Settings,
    samples: Samples,
    file: Option<SampleFile>,
    rule: StopRule,
    side_by_side: bool,
    /// By rank: the group among whose ranks experiments take turns with those among another's.
    take_turns: Option<Vec<usize>>,
    /// What experiments between groups share.
    uplinks: Option<Uplinks>,
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
            take_turns: None,
            uplinks: None,
            progress,
            spent: Vec::new(),
        }
    }

    /// Keeps the samples in a file too, and starts from those that it holds; nobody else may write to it meanwhile. Gives when measuring those
    /// began (UTC), if it is not new.
    ///
    /// # Errors
    /// The file cannot be read or written, another process writes to it, or it holds samples of other hosts, processors, another library or build.
    pub fn keep(&mut self, path: &Path, held: Held) -> Result<Option<String>> {
        let (file, samples) = SampleFile::open(path, &self.settings, held)?;
        let began = file.began.clone();
        (self.file, self.samples) = (Some(file), samples);
        Ok(began)
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

    /// From now on experiments among the ranks of one group, of which each rank has a number, take turns with those of other groups: side by side they disturb
    /// each other, as where hosts are emulated on the processors of one machine.
    pub fn take_turns(&mut self, group_of: Vec<usize>) {
        self.take_turns = Some(group_of);
    }

    /// From now on experiments between ranks with different uplinks run side by side only where they share none.
    pub fn share_uplinks(&mut self, uplinks: Uplinks) {
        self.uplinks = Some(uplinks);
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

    /// True unless nothing is known but what was measured before.
    pub fn can_measure(&self) -> bool {
        self.probe.can_measure()
    }

    /// Seconds that setting a communicator of all ranks up takes, once; none where that cannot be measured.
    ///
    /// # Errors
    /// The probe's.
    pub fn set_up(&mut self) -> Result<Option<f64>> {
        self.probe.set_up()
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
        self.run(purpose, &alone(experiments), None, self.rule)
    }

    /// As [`Session::measure`], twice as precisely, if need be by three times as many repetitions: for what much hangs on.
    ///
    /// # Errors
    /// As for [`Session::measure`].
    pub fn measure_well(&mut self, purpose: &str, experiments: &[Experiment]) -> Result<()> {
        self.run(purpose, &alone(experiments), None, self.well())
    }

    /// How often that is.
    fn well(&self) -> StopRule {
        StopRule { most: self.rule.most.saturating_mul(3), precision: self.rule.precision / 2.0, ..self.rule }
    }

    /// As [`Session::measure`], with the fewest repetitions of each: for experiments of which a mean over many is wanted.
    ///
    /// # Errors
    /// As for [`Session::measure`].
    pub fn measure_roughly(&mut self, purpose: &str, experiments: &[Experiment]) -> Result<()> {
        // one run of what takes long, whose times scatter little
        let roughly = StopRule { most: self.rule.least, least_long: 1, ..self.rule };
        self.run(purpose, &alone(experiments), None, roughly)
    }

    /// As [`Session::measure`], each so often: where something happens by chance.
    ///
    /// # Errors
    /// As for [`Session::measure`].
    pub fn measure_so_often(&mut self, purpose: &str, experiments: &[Experiment], runs: usize) -> Result<()> {
        self.run(purpose, &alone(experiments), None, StopRule { least: runs, least_long: runs, most: runs, ..self.rule })
    }

    /// As [`Session::measure`], for fields of experiments of which the fastest one is wanted: they are repeated in turns, and what is clearly
    /// slower than another one of its field is not repeated any more (racing: Maron, Moore 1994).
    ///
    /// # Errors
    /// As for [`Session::measure`].
    pub fn race(&mut self, purpose: &str, fields: &[Vec<Experiment>]) -> Result<()> {
        let mut rivals = Rivals::default();
        fields.iter().for_each(|field| rivals.add(field, field.iter().filter_map(|e| self.samples.median(e))));
        self.run(purpose, fields, Some(rivals), self.rule)
    }

    /// Measures what is not known of some fields; with rivals each field in turns, so that nothing that changes with time favours one of them.
    fn run(&mut self, purpose: &str, fields: &[Vec<Experiment>], mut rivals: Option<Rivals>, rule: StopRule) -> Result<()> {
        let racing = rivals.is_some();
        let known = |e: &Experiment| self.samples.get(e).is_some_and(|s| racing || s.stop != Stop::Beaten || !self.probe.can_measure());
        let mut seen = FxHashSet::default();
        let mut new = |e: &&Experiment| !known(e) && seen.insert((*e).clone());
        let mut open: Vec<Vec<Experiment>> = fields.iter().map(|field| field.iter().filter(&mut new).cloned().collect()).collect();
        open.retain(|field| !field.is_empty());
        // among those of as many ranks, whoever asks knows a good order
        open.sort_by_key(|field| std::cmp::Reverse(field[0].ranks().len()));
        let (began, total) = (self.elapsed(), open.iter().map(Vec::len).sum());
        let (mut known, mut at_once) = (0, 8);
        for (open, crossing) in crossing_apart(in_turn(open, self.take_turns.as_deref()), self.uplinks.as_ref()) {
            // fields on other hosts run side by side, or over other uplinks
            let firsts: Vec<Experiment> = open.iter().map(|field| field[0].clone()).collect();
            let batches = self.pack(&firsts, crossing);
            let mut rest = &batches[..];
            while !rest.is_empty() {
                let (now, later) = rest.split_at(whole_fields(rest, &open, at_once));
                let start = self.elapsed();
                let together = now.iter().flatten().flat_map(|&k| open[k].iter().cloned()).collect();
                let done = self.repeat(together, crossing, rivals.as_mut(), rule)?;
                if let Some(file) = &mut self.file {
                    file.append(&done)?;
                }
                known += done.len();
                done.into_iter().for_each(|s| self.samples.insert(s));
                (self.progress)(purpose, known, total);
                // handing out batches one by one would cost latencies each; an interrupt loses what was handed out last
                at_once = if self.elapsed() - start < AT_ONCE_S / 2.0 { 2 * at_once } else { (at_once / 2).max(1) };
                rest = later;
            }
        }
        self.note(purpose, total, self.elapsed() - began);
        Ok(())
    }

    /// Batches of experiments that run side by side, which all go over uplinks, or none.
    fn pack(&self, experiments: &[Experiment], crossing: bool) -> Vec<Vec<usize>> {
        match self.uplinks.as_ref().filter(|_| crossing) {
            Some(uplinks) => pack(experiments, &uplinks.of_rank, self.side_by_side && !uplinks.one_by_one),
            None => pack(experiments, &self.settings.hosts, self.side_by_side),
        }
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

    /// True if experiments run side by side.
    pub fn is_side_by_side(&self) -> bool {
        self.side_by_side
    }

    /// Measures experiments until every one is precise enough, beaten by a rival, or has spent its repetitions.
    fn repeat(
        &mut self,
        experiments: Vec<Experiment>,
        crossing: bool,
        mut rivals: Option<&mut Rivals>,
        rule: StopRule,
    ) -> Result<Vec<Sample>> {
        let mut open: Vec<(Experiment, Runs)> = experiments.into_iter().map(|e| (e, Runs::default())).collect();
        // rivals run in turns; handing out takes as long as a message to everybody, so that turns that are made anyhow are handed out together
        let first = rule.more(0);
        let (mut turns, mut repetitions) = rivals.as_ref().map_or((1, first), |rivals| (rivals.sure_turns(first), 1));
        let mut done = Vec::new();
        let samples = &self.samples;
        if let Some(rivals) = &mut rivals {
            rivals.begin();
        }
        while !open.is_empty() {
            let experiments: Vec<Experiment> = open.iter().map(|(e, _)| e.clone()).collect();
            let batches = self.pack(&experiments, crossing);
            let in_turns = || (0..turns).flat_map(|_| &batches);
            let handed_out: Vec<Vec<Experiment>> = in_turns().map(|b| b.iter().map(|&k| experiments[k].clone()).collect()).collect();
            let start = self.probe.elapsed();
            let results = if self.side_by_side {
                self.probe.run(&handed_out, repetitions)?
            } else {
                let alone = handed_out.chunks(1).map(|one| self.probe.run(one, repetitions));
                alone.collect::<Result<Vec<_>>>()?.concat()
            };
            let took = self.probe.elapsed() - start;
            let ran: f64 = results.iter().flat_map(|r| &r.seconds).sum();
            for (&k, more) in in_turns().flatten().zip(results) {
                let (experiment, runs) = &mut open[k];
                if more.seconds.is_empty() || more.seconds.iter().chain([&more.clock_error_s]).any(|t| !t.is_finite()) {
                    return Err(Error::data(format!("measure {experiment}: the probe gave no finite time")));
                }
                runs.seconds.extend(more.seconds.into_iter().map(|t| t.max(0.0)));
                runs.clock_error_s = runs.clock_error_s.max(more.clock_error_s).min(MAX_SECONDS);
            }
            if let Some(rivals) = &mut rivals {
                open.iter().for_each(|(experiment, runs)| rivals.note(experiment, &runs.seconds));
            }
            open.retain_mut(|(experiment, runs)| {
                let beaten = || rivals.as_ref().is_some_and(|r| r.beat(experiment, &runs.seconds)).then_some(Stop::Beaten);
                let stop = rule.met(&runs.seconds, floor(experiment, samples), rivals.is_some()).or_else(beaten);
                done.extend(stop.map(|stop| Sample {
                    experiment: experiment.clone(),
                    seconds: std::mem::take(&mut runs.seconds),
                    stop,
                    remeasured: Vec::new(),
                    confirmed: Vec::new(),
                    in_a_row: Vec::new(),
                    clock_error_s: runs.clock_error_s,
                }));
                stop.is_none()
            });
            let so_far = open.first().map_or(0, |(_, runs)| runs.seconds.len());
            (turns, repetitions) = match &rivals {
                None => (1, rule.more(so_far)),
                // one by one nothing is won by several, and the first ones warm up besides
                Some(_) if self.side_by_side && so_far > turns => {
                    (turns_as_long(turns, took, ran).min(rule.most.saturating_sub(so_far)).max(1), 1)
                }
                Some(_) => (1, 1),
            };
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::fixtures::settings;
    use super::remeasure::{LONGER, REMEASURE_RUNS};
    use super::*;
    use crate::stats;
    use rand::Rng;

    /// Everything takes about a millisecond, but for noise of 5 %, and for a level that changes by 5 % after each seven runs.
    struct Drifting {
        random: stats::Random,
        runs: usize,
        level: f64,
    }

    impl Drifting {
        fn scatter(&mut self) -> f64 {
            let (u, v) = (1.0 - self.random.random::<f64>(), self.random.random::<f64>());
            (0.05 * (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()).exp()
        }

        fn once(&mut self) -> f64 {
            if self.runs.is_multiple_of(REMEASURE_RUNS) {
                self.level = self.scatter();
            }
            self.runs += 1;
            1e-3 * self.level * self.scatter()
        }
    }

    impl Probe for Drifting {
        fn settings(&self) -> Settings {
            settings()
        }

        fn run(&mut self, batches: &[Vec<Experiment>], repetitions: usize) -> Result<Vec<Runs>> {
            // clocks get more and more uncertain
            let mut runs = || Runs { seconds: (0..repetitions).map(|_| self.once()).collect(), clock_error_s: self.runs as f64 * 1e-9 };
            Ok(batches.iter().flatten().map(|_| runs()).collect())
        }

        fn has_native(&self) -> bool {
            false
        }

        fn elapsed(&self) -> f64 {
            self.runs as f64 * 1e-3
        }
    }

    #[test]
    fn the_largest_error_of_clocks_is_kept() {
        let field: Vec<Experiment> = (0..2).map(|out| Experiment::RoundTrip { a: 0, b: 1, out, back: 0 }).collect();
        let mut probe = Drifting { random: stats::random(3), runs: 0, level: 1.0 };
        let mut session = Session::new(&mut probe);
        let mut runs = 0.0;
        for again in [false, true] {
            let fields = std::slice::from_ref(&field);
            if again { session.remeasure("again", fields) } else { session.race("first", fields) }.unwrap();
            let errors: Vec<f64> = session.samples().iter().map(|s| s.clock_error_s).collect();
            assert!(errors.iter().all(|e| *e > runs), "{errors:?} after {runs}");
            runs = session.elapsed() * 1e-6;
            assert!((errors.into_iter().fold(0.0, f64::max) - runs).abs() < 1e-12);
        }
    }

    /// Everything takes a millisecond, and after so many runs a tenth more.
    struct Slowing {
        runs: usize,
        after: usize,
    }

    impl Probe for Slowing {
        fn settings(&self) -> Settings {
            settings()
        }

        fn run(&mut self, batches: &[Vec<Experiment>], repetitions: usize) -> Result<Vec<Runs>> {
            let mut once = || {
                self.runs += 1;
                if self.runs > self.after { 1.1e-3 } else { 1e-3 }
            };
            let mut runs = || Runs { seconds: (0..repetitions).map(|_| once()).collect(), clock_error_s: 0.0 };
            Ok(batches.iter().flatten().map(|_| runs()).collect())
        }

        fn has_native(&self) -> bool {
            false
        }

        fn elapsed(&self) -> f64 {
            self.runs as f64 * 1e-3
        }
    }

    fn of_sizes(sizes: std::ops::Range<usize>) -> Vec<Experiment> {
        sizes.map(|out| Experiment::RoundTrip { a: 0, b: 1, out, back: 0 }).collect()
    }

    #[test]
    fn an_experiment_of_two_fields_does_not_beat_those_of_later_rounds() {
        // nine that are handed out by themselves, three rounds of them; the first is in a field with two others, too
        let (first, later) = (of_sizes(0..9), of_sizes(9..11));
        let mut probe = Slowing { runs: 0, after: 27 };
        let mut session = Session::new(&mut probe);
        session.race("race", &[first.clone(), [&first[..1], &later].concat()]).unwrap();
        let stops: Vec<(Stop, usize)> = session.samples().iter().map(|s| (s.stop, s.seconds.len())).collect();
        assert_eq!(stops, [(Stop::Precise, 3); 11]);
    }

    #[test]
    fn what_was_chosen_is_timed_by_runs_that_did_not_choose_it() {
        let mut probe = Slowing { runs: 0, after: 6 };
        let mut session = Session::new(&mut probe);
        let pair = of_sizes(0..2);
        session.race("race", std::slice::from_ref(&pair)).unwrap();
        let confirm = |session: &mut Session| {
            session.confirm("alone", &[pair[..1].to_vec()]).unwrap();
            let of = |k: usize| session.samples().get(&pair[k]).unwrap();
            assert_eq!((of(0).confirmed.as_slice(), of(0).all(), of(1).confirmed.len()), (&[1.1e-3; 3][..], vec![1e-3; 3], 0));
        };
        confirm(&mut session);
        // it is known now
        confirm(&mut session);
        assert_eq!(session.spent().iter().map(|s| s.experiments).collect::<Vec<_>>(), [2, 1]);
        // beside another one both run, though one of them is known: only runs of the same rounds compare
        session.confirm("beside another one", std::slice::from_ref(&pair)).unwrap();
        assert!(session.samples().iter().all(|s| s.confirmed == [1.1e-3; REMEASURE_RUNS]));
        // longer, once
        for _ in 0..2 {
            session.confirm_longer("longer", vec![pair.clone()]).unwrap();
            assert!(session.samples().iter().all(|s| s.confirmed == [1.1e-3; LONGER * REMEASURE_RUNS]));
        }
        assert_eq!(session.spent().last().unwrap().experiments, 2);
    }

    #[test]
    fn drift_favours_nobody_who_runs_in_turns() {
        let field: Vec<Experiment> = (0..2).map(|out| Experiment::RoundTrip { a: 0, b: 1, out, back: 0 }).collect();
        let mut probe = Drifting { random: stats::random(3), runs: 0, level: 1.0 };
        let (tests, mut wrong) = (1000, 0);
        for _ in 0..tests {
            let mut session = Session::new(&mut probe);
            session.race("first", std::slice::from_ref(&field)).unwrap();
            session.remeasure("again", std::slice::from_ref(&field)).unwrap();
            let remeasured = |k: usize| session.samples().get(&field[k]).unwrap().remeasured.clone();
            wrong += usize::from(stats::is_less(&remeasured(0), &remeasured(1)));
        }
        assert!(wrong <= tests * 7 / 100, "two that are alike differ in {wrong} of {tests}, and the test says 5 %");
    }
}
