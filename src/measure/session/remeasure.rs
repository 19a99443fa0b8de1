//! What was measured is run again: to tell the fastest apart, and to time what was chosen by runs that did not choose it.

use super::turns::{crossing_apart, in_turn};
use super::{Rivals, Session};
use crate::error::{Error, Result};
use crate::measure::{Experiment, Runs, Sample, StopRule};
use std::collections::BTreeMap;

/// So many of the fastest of a field are remeasured.
const MOST_REMEASURED: usize = 6;

/// What is remeasured, and what is confirmed beside something else, runs so often at least: fewer tell little apart.
pub(super) const REMEASURE_RUNS: usize = 7;

/// What these runs did not tell apart runs so many times as often: half of a difference is then as clear as all of it was.
pub(super) const LONGER: usize = 3;

/// Calls in a row take about so long, of at most so many and at least so many: of fewer the first one and the last, which overlap with one other call only, are
/// most. Where a rank may leave a call before others come to it, and messages are short, many are on their way at once: ten and more take hardly longer than one over
/// a wide area, and only as many show at which rate they follow each other (of four on the emulated grid nothing was seen of 7 % that twenty show).
const IN_A_ROW_S: f64 = 0.005;
const MOST_IN_A_ROW: usize = 200;
const LEAST_IN_A_ROW: usize = 4;
const LEAST_ROOTED: usize = 20;
/// Where the root has more than that, bytes take longer than the way: calls do not overlap, and four say what twenty do (up to this size they were seen to be slower in a
/// row where one alone was not).
const SHORT_BYTES: usize = 16 << 10;
/// What takes longer is not run in a row.
const LONGEST_IN_A_ROW_S: f64 = 0.0125;

/// So often they run; and so often where as many calls as may be take less: what is that short is hardly told apart by calls alone.
const TURNS_IN_A_ROW: usize = 3;
const TURNS_OF_SHORT: usize = 25;

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

    /// Remeasures each of some as often as anything is [measured well](Session::measure_well): what is lost in one run of ten is seen then. A recording is left as it is.
    ///
    /// # Errors
    /// As for [`Session::measure`].
    pub fn make_sure(&mut self, purpose: &str, of: Vec<Experiment>) -> Result<()> {
        let runs = self.well().most;
        let rule = StopRule { least: runs, least_long: runs, most: runs, ..self.rule };
        self.add(purpose, of.into_iter().map(|e| vec![e]).collect(), rule, runs, |sample| &mut sample.remeasured)
    }

    /// True if one was remeasured so often, or cannot be.
    pub fn is_sure(&self, experiment: &Experiment) -> bool {
        !self.probe.can_measure() || self.samples.get(experiment).is_none_or(|sample| sample.remeasured.len() >= self.well().most)
    }

    /// Runs what was chosen as programs call it, so that its time is of runs that did not choose it: as often as it took to know it, and in turns with what stands beside it,
    /// if something does. A recording is left as it is.
    ///
    /// # Errors
    /// As for [`Session::measure`].
    pub fn confirm(&mut self, purpose: &str, fields: &[Vec<Experiment>]) -> Result<()> {
        let (alone, beside): (Vec<_>, Vec<_>) = fields.iter().cloned().partition(|field| field.len() == 1);
        self.confirmed(purpose, beside, REMEASURE_RUNS, 1)?;
        self.confirmed(purpose, alone, 1, 1)
    }

    /// As [`Session::confirm`] of what stands beside something else, once more and three times as long, where that did not tell them apart.
    ///
    /// # Errors
    /// As for [`Session::measure`].
    pub fn confirm_longer(&mut self, purpose: &str, fields: Vec<Vec<Experiment>>) -> Result<()> {
        self.confirmed(purpose, fields, REMEASURE_RUNS, LONGER)
    }

    /// As [`Session::confirm`] of what stands beside something else, however often it took to know it.
    ///
    /// # Errors
    /// As for [`Session::measure`].
    pub fn confirm_briefly(&mut self, purpose: &str, fields: Vec<Vec<Experiment>>) -> Result<()> {
        let rule = StopRule { least: REMEASURE_RUNS, least_long: REMEASURE_RUNS, most: REMEASURE_RUNS, ..self.rule };
        self.as_called(|session| session.add(purpose, fields, rule, 1, |sample| &mut sample.confirmed))
    }

    fn confirmed(&mut self, purpose: &str, fields: Vec<Vec<Experiment>>, least: usize, times: usize) -> Result<()> {
        self.as_called(|session| session.add_as_often(purpose, fields, least, times, |sample| &mut sample.confirmed))
    }

    fn as_called(&mut self, run: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.probe.as_called(true);
        let done = run(self);
        self.probe.as_called(false);
        done
    }

    /// Runs calls in a row of those of some fields, all of which were measured, in turns: programs do not wait for all ranks between two calls, and ranks that are
    /// through early in one begin the next one early. Not of what takes so long that few calls fit in. A recording is left as it is.
    ///
    /// # Errors
    /// As for [`Session::measure`].
    pub fn in_a_row(&mut self, purpose: &str, fields: Vec<Vec<Experiment>>) -> Result<()> {
        if !self.probe.can_measure() {
            return Ok(());
        }
        let began = self.elapsed();
        let mut by_calls: BTreeMap<usize, Vec<Vec<Experiment>>> = BTreeMap::new();
        for field in fields {
            let known = |e: &Experiment| self.samples.get(e).is_some_and(|sample| !sample.in_a_row.is_empty());
            let longest = field.iter().filter_map(|e| self.samples.median(e)).fold(f64::MIN_POSITIVE, f64::max);
            let is_short = |e: &Experiment| {
                let of_root = e.layout(e.timer());
                of_root.input.max(of_root.output) <= SHORT_BYTES
            };
            let overlap = |e: &Experiment| e.collective().is_some_and(|collective| collective.rooted) && is_short(e);
            let least = if field.iter().all(overlap) { LEAST_ROOTED } else { LEAST_IN_A_ROW };
            let calls = ((IN_A_ROW_S / longest) as usize).clamp(least, MOST_IN_A_ROW);
            if longest <= LONGEST_IN_A_ROW_S && !field.iter().all(known) {
                by_calls.entry(calls).or_default().push(field);
            }
        }
        let total = by_calls.values().flatten().map(Vec::len).sum();
        for (calls, fields) in by_calls {
            for (lot, crossing) in crossing_apart(in_turn(fields, self.take_turns.as_deref()), self.uplinks.as_ref()) {
                let firsts: Vec<Experiment> = lot.iter().map(|field| field[0].clone()).collect();
                for batch in self.pack(&firsts, crossing) {
                    let side_by_side: Vec<&Vec<Experiment>> = batch.iter().map(|&k| &lot[k]).collect();
                    self.turns_in_a_row(&side_by_side, calls)?;
                }
            }
        }
        self.note(purpose, total, self.elapsed() - began);
        Ok(())
    }

    /// Of fields that run side by side.
    fn turns_in_a_row(&mut self, fields: &[&Vec<Experiment>], calls: usize) -> Result<()> {
        let longest = fields.iter().map(|field| field.len()).max().unwrap_or(0);
        let place = |k: usize| fields.iter().filter_map(|field| field.get(k).cloned()).collect();
        let turn: Vec<Vec<Experiment>> = (0..longest).map(place).collect();
        let so_often = if calls < MOST_IN_A_ROW { TURNS_IN_A_ROW } else { TURNS_OF_SHORT };
        let turns: Vec<Vec<Experiment>> = (0..so_often).flat_map(|_| turn.clone()).collect();
        let found = self.probe.in_a_row(&turns, calls)?;
        let mut times: BTreeMap<&Experiment, Runs> = BTreeMap::new();
        for (experiment, runs) in turns.iter().flatten().zip(found) {
            if runs.seconds.iter().chain([&runs.clock_error_s]).any(|t| !t.is_finite()) {
                return Err(Error::data(format!("measure {experiment} in a row: the probe gave no finite time")));
            }
            let all = times.entry(experiment).or_default();
            all.seconds.extend(runs.seconds.iter().map(|t| t.max(0.0)));
            all.clock_error_s = all.clock_error_s.max(runs.clock_error_s);
        }
        let mut changed = Vec::new();
        for (experiment, runs) in times {
            if let Some(sample) = self.samples.get_mut(experiment) {
                sample.in_a_row = runs.seconds;
                sample.clock_error_s = sample.clock_error_s.max(runs.clock_error_s);
                changed.push(sample.clone());
            }
        }
        if let Some(file) = &mut self.file {
            file.append(&changed)?;
        }
        Ok(())
    }

    /// As [`Session::add`], all of a field equally often: so many `times` as often as it took to know one of them, and as `least`.
    fn add_as_often(&mut self, purpose: &str, fields: Vec<Vec<Experiment>>, least: usize, times: usize, list: List) -> Result<()> {
        let mut by_runs: BTreeMap<usize, Vec<Vec<Experiment>>> = BTreeMap::new();
        for field in fields {
            let took = field.iter().filter_map(|e| Some(self.samples.get(e)?.seconds.len())).max().unwrap_or(0);
            by_runs.entry(took.max(least.min(self.rule.most))).or_default().push(field);
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

#[cfg(test)]
mod tests {
    use super::super::super::samples::fixtures::settings;
    use super::*;
    use crate::collective::{Parameters, allreduce, bcast};
    use crate::measure::{Probe, Runs, Settings};

    /// Two pairs of hosts. An experiment takes 100 us for each of its bytes out, and half of it in a row.
    #[derive(Default)]
    struct Pairs {
        called: bool,
        /// So many runs as calls, and others.
        runs: [usize; 2],
        in_a_row: Vec<(Vec<Vec<Experiment>>, usize)>,
    }

    fn seconds(experiment: &Experiment) -> f64 {
        experiment.bytes() as f64 * 1e-4
    }

    impl Probe for Pairs {
        fn settings(&self) -> Settings {
            Settings { hosts: (0..4).map(|k| format!("h{k}")).collect(), ..settings() }
        }

        fn as_called(&mut self, called: bool) {
            self.called = called;
        }

        fn run(&mut self, batches: &[Vec<Experiment>], repetitions: usize) -> Result<Vec<Runs>> {
            self.runs[usize::from(!self.called)] += repetitions * batches.iter().flatten().count();
            Ok(batches.iter().flatten().map(|e| Runs { seconds: vec![seconds(e); repetitions], clock_error_s: 0.0 }).collect())
        }

        fn in_a_row(&mut self, batches: &[Vec<Experiment>], calls: usize) -> Result<Vec<Runs>> {
            self.in_a_row.push((batches.to_vec(), calls));
            Ok(batches.iter().flatten().map(|e| Runs { seconds: vec![seconds(e) / 2.0], clock_error_s: 0.0 }).collect())
        }

        fn has_native(&self) -> bool {
            true
        }

        fn elapsed(&self) -> f64 {
            0.0
        }
    }

    #[test]
    fn calls_in_a_row_take_turns_beside_other_pairs_unless_they_are_long_or_known() {
        let (pair, mut probe) = (|a, out| Experiment::RoundTrip { a, b: a + 1, out, back: 0 }, Pairs::default());
        let mut session = Session::new(&mut probe);
        let field = |a, out| vec![pair(a, out), pair(a, out + 1)];
        let fields = [field(0, 1), field(2, 1), field(0, 8), field(2, 125)];
        session.measure("all", &fields.concat()).unwrap();
        for _ in 0..2 {
            session.in_a_row("in a row", fields.to_vec()).unwrap();
        }
        let known = |e: &Experiment| session.samples().get(e).unwrap().in_a_row.clone();
        assert_eq!(known(&pair(2, 2)), [1e-4; TURNS_IN_A_ROW]);
        assert_eq!(known(&pair(2, 125)), [0.0; 0], "12.6 ms are too long");
        drop(session);
        let turn = |out| vec![vec![pair(0, out), pair(2, out)], vec![pair(0, out + 1), pair(2, out + 1)]];
        let alone = vec![vec![pair(0, 8)], vec![pair(0, 9)]];
        let so_often = |turn: Vec<Vec<Experiment>>| (0..TURNS_IN_A_ROW).flat_map(|_| turn.clone()).collect::<Vec<_>>();
        assert_eq!(probe.in_a_row, [(so_often(alone), 5), (so_often(turn(1)), 25)]);
    }

    #[test]
    fn where_a_rank_may_leave_early_many_calls_follow_each_other_however_long_one_is() {
        let calls = |collective| {
            let (algorithm, parameters) = ("native".into(), Parameters::default());
            let e = Experiment::Collective { collective, ranks: vec![0, 1], root: 0, bytes: 100, algorithm, parameters };
            let mut probe = Pairs::default();
            let mut session = Session::new(&mut probe);
            session.measure("all", std::slice::from_ref(&e)).unwrap();
            session.in_a_row("in a row", vec![vec![e]]).unwrap();
            drop(session);
            probe.in_a_row[0].1
        };
        assert_eq!((calls(&bcast::COLLECTIVE), calls(&allreduce::COLLECTIVE)), (LEAST_ROOTED, LEAST_IN_A_ROW));
    }

    /// One pair of hosts, whose times differ by a half from run to run.
    #[derive(Default)]
    struct Scattering(usize);

    impl Probe for Scattering {
        fn settings(&self) -> Settings {
            settings()
        }

        fn run(&mut self, batches: &[Vec<Experiment>], repetitions: usize) -> Result<Vec<Runs>> {
            let mut run = || {
                self.0 += 1;
                1e-3 * (1.0 + (self.0 * 7 % 11) as f64 / 10.0)
            };
            let mut runs = || Runs { seconds: (0..repetitions).map(|_| run()).collect(), clock_error_s: 0.0 };
            Ok(batches.iter().flatten().map(|_| runs()).collect())
        }

        fn has_native(&self) -> bool {
            false
        }

        fn elapsed(&self) -> f64 {
            0.0
        }
    }

    #[test]
    fn what_is_to_be_known_well_runs_three_times_as_often() {
        let pair = |out| Experiment::RoundTrip { a: 0, b: 1, out, back: 0 };
        let (mut probe, rule) = (Scattering::default(), StopRule { most: 9, ..StopRule::default() });
        let mut session = Session::new(&mut probe).rule(rule);
        let runs = |session: &Session, e: &Experiment| session.samples().get(e).map(|s| (s.seconds.len(), s.remeasured.len()));
        session.measure("as others", &[pair(1)]).unwrap();
        session.measure_well("well", &[pair(2)]).unwrap();
        assert_eq!([1, 2].map(|out| runs(&session, &pair(out))), [Some((9, 0)), Some((27, 0))]);
        session.remeasure("again", &[vec![pair(2)]]).unwrap();
        assert_eq!(runs(&session, &pair(2)), Some((27, 27)), "as often as it took");
        assert!(session.is_sure(&pair(2)) && !session.is_sure(&pair(1)));
        session.make_sure("surely", vec![pair(1)]).unwrap();
        assert!(session.is_sure(&pair(1)));
        assert_eq!(runs(&session, &pair(1)), Some((9, 27)));
    }

    #[test]
    fn what_is_confirmed_runs_as_calls_and_nothing_else_does() {
        let (pair, mut probe) = (|out| Experiment::RoundTrip { a: 0, b: 1, out, back: 0 }, Pairs::default());
        let mut session = Session::new(&mut probe);
        session.race("race", &[vec![pair(1), pair(2)]]).unwrap();
        session.confirm_briefly("briefly", vec![vec![pair(1), pair(2)]]).unwrap();
        session.remeasure("again", &[vec![pair(1), pair(2)]]).unwrap();
        let sample = session.samples().get(&pair(2)).unwrap().clone();
        assert_eq!((sample.confirmed.len(), sample.remeasured.len()), (REMEASURE_RUNS, REMEASURE_RUNS));
        session.confirm("once more", &[vec![pair(1)]]).unwrap();
        session.confirm_longer("longer", vec![vec![pair(1), pair(2)]]).unwrap();
        assert_eq!(session.samples().get(&pair(2)).unwrap().confirmed.len(), LONGER * REMEASURE_RUNS);
        drop(session);
        assert_eq!(probe.runs[0], 2 * (1 + LONGER) * REMEASURE_RUNS);
        assert!(probe.runs[1] > 2 * REMEASURE_RUNS && !probe.called);
    }
}
