//! Samples, and the file they are kept in: JSON lines, the first of which holds the settings that made them.

use super::{Experiment, SAMPLE_FORMAT, Settings};
use crate::collective::is_zero;
use crate::error::{Error, Result};
use crate::files::read_damaged_text;
use crate::stats;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Why measuring stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stop {
    /// The confidence interval of the median was inside the asked precision.
    Precise,
    /// The most repetitions were spent, or enough of what takes long.
    Budget,
    /// It was clearly slower than another experiment that it raced.
    Beaten,
}

/// The repetitions of one experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// What was run.
    pub experiment: Experiment,
    /// Seconds of each repetition.
    pub seconds: Vec<f64>,
    /// Why there are not more.
    pub stop: Stop,
    /// Those made later, in turns with its closest rivals, to tell it from them. They decide nothing but that: what is measured, and what is
    /// not, must not change when the samples are gone through again.
    #[serde(default, alias = "again", skip_serializing_if = "Vec::is_empty")]
    pub remeasured: Vec<f64>,
    /// Those made when it was chosen, to know what it takes: the time of the best of many noisy ones, in the runs by which it is the best, is
    /// too good. They choose nothing but between it and the library's own, which then ran in turns with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirmed: Vec<f64>,
    /// Seconds a call of several in a row, each of which begins on a rank as soon as that is through with the one before, where it was chosen and the library's
    /// own may be as fast: those of both, in turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_a_row: Vec<f64>,
    /// A time is off by so much at most for clocks of several ranks that are compared: half the shortest round trip of a message between them,
    /// as if its ways out and back could differ by all of it, and how far they may have drifted since they were looked at. 0 where one
    /// clock is read or time is virtual, and in files of older versions, which do not say.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clock_error_s: f64,
}

impl Sample {
    /// Seconds of all repetitions but those made when it was chosen.
    pub fn all(&self) -> Vec<f64> {
        [self.seconds.as_slice(), &self.remeasured].concat()
    }
}

/// How far off clocks may be in samples that compare those of several ranks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClockErrors {
    /// How many there are.
    pub samples: usize,
    /// In how many of them by more than a tenth of what was measured.
    pub above: usize,
    /// By how much in the worst one, by its share of what was measured.
    pub worst_s: f64,
    /// What was measured there.
    pub of_s: f64,
}

/// Clocks that may be off by more than this share of what was measured are told of.
const TOLD_OF: f64 = 0.1;

/// Samples by experiment.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    by_experiment: FxHashMap<Experiment, Sample>,
}

impl Samples {
    /// Adds a sample; one of the same experiment is replaced.
    pub fn insert(&mut self, sample: Sample) {
        self.by_experiment.insert(sample.experiment.clone(), sample);
    }

    /// The sample of an experiment, to be added to.
    pub fn get_mut(&mut self, experiment: &Experiment) -> Option<&mut Sample> {
        self.by_experiment.get_mut(experiment)
    }

    /// Takes a sample out.
    pub fn remove(&mut self, experiment: &Experiment) -> Option<Sample> {
        self.by_experiment.remove(experiment)
    }

    /// The sample of an experiment.
    pub fn get(&self, experiment: &Experiment) -> Option<&Sample> {
        self.by_experiment.get(experiment)
    }

    /// The median of an experiment.
    pub fn median(&self, experiment: &Experiment) -> Option<f64> {
        self.get(experiment).and_then(|s| stats::median(&s.seconds))
    }

    /// [`Sample::all`] of an experiment; none if it was not measured.
    pub fn all(&self, experiment: &Experiment) -> Vec<f64> {
        self.get(experiment).map_or(Vec::new(), Sample::all)
    }

    /// All samples, in the order of their experiments.
    pub fn iter(&self) -> impl Iterator<Item = &Sample> {
        let mut all: Vec<&Sample> = self.by_experiment.values().collect();
        all.sort_by(|a, b| a.experiment.cmp(&b.experiment));
        all.into_iter()
    }

    /// The number of experiments.
    pub fn len(&self) -> usize {
        self.by_experiment.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.by_experiment.is_empty()
    }

    /// How far off clocks may be; `None` if no sample compares those of several ranks, or says how far off they may be.
    pub fn clock_errors(&self) -> Option<ClockErrors> {
        let of = |s: &Sample| Some((s.clock_error_s, stats::median(&s.all())?)).filter(|(error, _)| *error > 0.0);
        let all: Vec<(f64, f64)> = self.iter().filter_map(of).collect();
        // what took no time is off by any share
        let share = |&(error, time): &(f64, f64)| error / time.max(f64::MIN_POSITIVE);
        let &(worst_s, of_s) = all.iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
        Some(ClockErrors { samples: all.len(), above: all.iter().filter(|one| share(one) > TOLD_OF).count(), worst_s, of_s })
    }

    /// The median of an experiment, or an error that names it.
    ///
    /// # Errors
    /// [`Error::Data`].
    pub fn need(&self, experiment: &Experiment) -> Result<f64> {
        self.median(experiment).ok_or_else(|| Error::data(format!("find a sample of {experiment}: it was not measured")))
    }

    /// Reads a sample file; `repair`: without lines that make no sense.
    ///
    /// # Errors
    /// As [`Samples::parse`], or the file cannot be read.
    pub fn read(path: &Path, repair: bool) -> Result<(Settings, Samples)> {
        let file = path.display().to_string();
        let contents = Contents::of(&file, &read_damaged_text(path)?, repair)?;
        Ok((contents.settings, contents.samples))
    }

    /// Parses a sample file. A last line that makes no sense, which is what an interrupt leaves, is dropped with a warning.
    ///
    /// # Errors
    /// [`Error::Format`] with file and line.
    pub fn parse(file: &str, text: &str) -> Result<(Settings, Samples)> {
        Contents::of(file, text, false).map(|c| (c.settings, c.samples))
    }
}

/// What the text of a sample file holds.
pub(super) struct Contents {
    pub settings: Settings,
    pub samples: Samples,
    /// The lines that make sense.
    pub lines: String,
}

impl Contents {
    /// Takes a text apart; `repair`: lines that make no sense are dropped wherever they are, and not at the end only.
    ///
    /// # Errors
    /// [`Error::Format`] with file and line.
    pub fn of(file: &str, text: &str, repair: bool) -> Result<Contents> {
        let wrong = |line: usize, reason: String| Error::Format { file: file.into(), line: Some(line), reason };
        let mut lines = text.lines().enumerate().map(|(i, l)| (i + 1, l)).filter(|(_, l)| !l.trim().is_empty()).peekable();
        let (number, head) = lines.next().ok_or_else(|| wrong(1, "the file is empty, a sample file opens with its settings".into()))?;
        let settings = Settings::parse(head).map_err(|reason| wrong(number, reason))?;
        let ranks = settings.hosts.len();
        let mut contents = Contents { settings, samples: Samples::default(), lines: format!("{head}\n") };
        while let Some((number, line)) = lines.next() {
            match Sample::parse(line, ranks) {
                Ok(sample) => {
                    contents.samples.insert(sample);
                    contents.lines += line;
                    contents.lines.push('\n');
                }
                Err(reason) if repair || lines.peek().is_none() => {
                    tracing::warn!("{file}, line {number} is dropped: {reason}");
                }
                Err(reason) => return Err(wrong(number, format!("{reason}; --repair drops such lines and keeps the rest"))),
            }
        }
        Ok(contents)
    }
}

impl Settings {
    /// Reads the first line of a sample file; gives the reason if that is not one.
    pub(super) fn parse(line: &str) -> std::result::Result<Settings, String> {
        let settings: Settings =
            serde_json::from_str(line).map_err(|e| format!("a sample file opens with its settings, and these are none: {e}"))?;
        match settings.format {
            SAMPLE_FORMAT => Ok(settings),
            other => {
                Err(format!("format {other} is not known, this version reads format {SAMPLE_FORMAT}: measure anew, into another file"))
            }
        }
    }
}

impl Sample {
    /// Reads a line of a sample file over so many ranks; gives the reason if it is none.
    fn parse(line: &str, ranks: usize) -> std::result::Result<Sample, String> {
        let sample: Sample = serde_json::from_str(line).map_err(|e| format!("this is no sample: {e}"))?;
        if sample.seconds.is_empty()
            || sample.all().iter().chain(&sample.confirmed).chain(&sample.in_a_row).any(|&t| !crate::units::is_time(t))
        {
            return Err("a sample needs at least one time, all finite and zero or more".into());
        }
        if !crate::units::is_time(sample.clock_error_s) {
            return Err("clock_error_s must be finite, and zero or more".into());
        }
        sample.experiment.validate(ranks).map_err(|e| format!("this is no sample: {e}"))?;
        Ok(sample)
    }
}

/// What tests of samples and of their files measure.
#[cfg(test)]
pub(super) mod fixtures {
    use super::super::{Experiment, SAMPLE_FORMAT, Sample, Settings, Stop};

    pub fn settings() -> Settings {
        let hosts = vec!["a".into(), "b".into()];
        Settings {
            format: SAMPLE_FORMAT,
            platform: "t".into(),
            hosts,
            library: crate::library::SIMULATOR.into(),
            timer: "virtual".into(),
            date: "2026-03-01 10:00:00 UTC".into(),
            build: "collwise 1".into(),
            placement: vec!["0".into(), "1".into()],
        }
    }

    pub fn sample(out: usize) -> Sample {
        Sample {
            experiment: Experiment::RoundTrip { a: 0, b: 1, out, back: 0 },
            seconds: vec![1e-5, 2e-5],
            stop: Stop::Budget,
            remeasured: Vec::new(),
            confirmed: Vec::new(),
            in_a_row: Vec::new(),
            clock_error_s: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fixtures::{sample, settings};
    use super::*;

    /// A prediction between two events of equal time can turn on the last digit of a parameter.
    #[test]
    fn times_come_back_to_the_last_digit() {
        let head = serde_json::to_string(&settings()).unwrap();
        let times: Vec<f64> = (1..2000).map(|k| f64::from(k) * 5.864_999_998_994_591e-7 / 7.0).collect();
        let before = Sample { seconds: times, ..sample(1) };
        let text = format!("{head}\n{}\n", serde_json::to_string(&before).unwrap());
        let (_, after) = Samples::parse("s", &text).unwrap();
        assert_eq!(after.get(&before.experiment), Some(&before));
    }

    #[test]
    fn runs_that_were_added_are_kept_under_their_names_and_read_under_older_ones() {
        let head = serde_json::to_string(&settings()).unwrap();
        let before = Sample { remeasured: vec![3e-5], confirmed: vec![4e-5], in_a_row: vec![5e-6], ..sample(1) };
        let line = serde_json::to_string(&before).unwrap();
        let read = |line: &str| Samples::parse("s", &format!("{head}\n{line}\n")).unwrap().1.get(&before.experiment).cloned();
        assert_eq!(read(&line), Some(before.clone()));
        assert_eq!(read(&line.replace("remeasured", "again")), Some(before.clone()));
        assert_eq!(before.all(), [1e-5, 2e-5, 3e-5], "when it was chosen it was chosen");
    }

    #[test]
    fn how_far_clocks_are_off_is_kept_with_a_sample() {
        let head = serde_json::to_string(&settings()).unwrap();
        let of_one_clock = serde_json::to_string(&sample(1)).unwrap();
        assert!(!of_one_clock.contains("clock_error_s"), "as older versions wrote it: {of_one_clock}");
        let before = Sample { clock_error_s: 2.5e-7, ..sample(2) };
        let text = format!("{head}\n{of_one_clock}\n{}\n", serde_json::to_string(&before).unwrap());
        let (_, after) = Samples::parse("s", &text).unwrap();
        assert_eq!((after.get(&before.experiment), after.get(&sample(1).experiment)), (Some(&before), Some(&sample(1))));
    }

    #[test]
    fn clocks_that_are_far_off_are_counted() {
        let mut samples = Samples::default();
        assert_eq!(samples.clock_errors(), None);
        samples.insert(sample(0));
        assert_eq!(samples.clock_errors(), None, "one clock");
        // the median is 15 us
        for (out, clock_error_s) in [(1, 1e-6), (2, 1.4e-6), (3, 4e-6), (4, 3e-6)] {
            samples.insert(Sample { clock_error_s, ..sample(out) });
        }
        let found = samples.clock_errors().unwrap();
        assert_eq!((found.samples, found.above, found.worst_s), (4, 2, 4e-6));
        assert!((found.of_s / 1.5e-5 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn bad_lines_are_named() {
        let head = serde_json::to_string(&settings()).unwrap();
        for (line, word) in [
            ("{\"x\":1}", "no sample"),
            ("nonsense", "no sample"),
            (r#"{"experiment":{"kind":"round_trip","a":0,"b":1,"out":0,"back":0},"seconds":[],"stop":"budget"}"#, "at least one time"),
            (r#"{"experiment":{"kind":"round_trip","a":0,"b":1,"out":0,"back":0},"seconds":[-1],"stop":"budget"}"#, "zero or more"),
            (
                r#"{"experiment":{"kind":"round_trip","a":0,"b":1,"out":0,"back":0},"seconds":[1],"stop":"budget","clock_error_s":-1}"#,
                "clock_error_s",
            ),
            (r#"{"experiment":{"kind":"round_trip","a":0,"b":7,"out":0,"back":0},"seconds":[1],"stop":"budget"}"#, "rank 7"),
            (r#"{"experiment":{"kind":"round_trip","a":1,"b":1,"out":0,"back":0},"seconds":[1],"stop":"budget"}"#, "there twice"),
            (
                r#"{"experiment":{"kind":"round_trip","a":0,"b":1,"out":18446744073709551615,"back":0},"seconds":[1],"stop":"budget"}"#,
                "no memory",
            ),
            (
                r#"{"experiment":{"kind":"saturation_train","a":0,"b":1,"bytes":0,"count":100000000,"delay_ns":0},"seconds":[1],"stop":"budget"}"#,
                "messages",
            ),
            (
                r#"{"experiment":{"kind":"saturation_train","a":0,"b":1,"bytes":0,"count":1,"delay_ns":18446744073709551615},"seconds":[1],"stop":"budget"}"#,
                "computes",
            ),
            (
                r#"{"experiment":{"kind":"collective","collective":"bcast","ranks":[0,1],"root":2,"bytes":1,"algorithm":"flat","parameters":{"segment":0,"radix":0}},"seconds":[1],"stop":"budget"}"#,
                "root 2",
            ),
            (
                r#"{"experiment":{"kind":"collective","collective":"bcast","ranks":[0,1],"root":0,"bytes":1,"algorithm":"pigeons","parameters":{"segment":0,"radix":0}},"seconds":[1],"stop":"budget"}"#,
                "pigeons",
            ),
            (
                r#"{"experiment":{"kind":"collective","collective":"bcast","ranks":[0,1],"root":0,"bytes":100000000,"algorithm":"segmented_chain","parameters":{"segment":1,"radix":0}},"seconds":[1],"stop":"budget"}"#,
                "messages",
            ),
            (
                r#"{"experiment":{"kind":"two_level","two_level":{"bytes":1,"groups":[[0],[1]],"inter_group":{"tree":[{"send":{"from":0,"to":9}}]},"segment":0,"intra_group":[{"algorithm":"flat","parameters":{"segment":0,"radix":0}},{"algorithm":"flat","parameters":{"segment":0,"radix":0}}]}},"seconds":[1],"stop":"budget"}"#,
                "group 9",
            ),
        ] {
            let good = serde_json::to_string(&sample(1)).unwrap();
            let e = Samples::parse("s.jsonl", &format!("{head}\n{line}\n{good}\n")).unwrap_err().to_string();
            assert!(e.contains("s.jsonl, line 2") && e.contains(word) && e.contains("--repair"), "{line}: {e}");
            let (_, kept) = Samples::parse("s.jsonl", &format!("{head}\n{good}\n{line}\n")).unwrap();
            assert_eq!(kept.len(), 1, "a last line may be what an interrupt left: {line}");
        }
        assert!(Samples::parse("s.jsonl", "").unwrap_err().to_string().contains("line 1"));
    }
}
