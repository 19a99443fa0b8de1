//! Samples, and the file they are kept in: JSON lines, the first of which holds the settings that made them.

use super::{Experiment, Settings};
use crate::error::{Error, Result};
use crate::files::read_text;
use crate::stats;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Why measuring stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stop {
    /// The confidence interval of the median was inside the asked precision.
    Precise,
    /// The most repetitions were spent.
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
    /// Those made later to tell it from its closest rivals. They decide nothing but that: what is measured, and what is not, must not change
    /// when the samples are gone through again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<f64>,
}

impl Sample {
    /// Seconds of all repetitions.
    pub fn all(&self) -> Vec<f64> {
        [self.seconds.as_slice(), &self.again].concat()
    }
}

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

    /// Seconds of all repetitions of an experiment, also of those made again; none if it was not measured.
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

    /// The median of an experiment, or an error that names it.
    ///
    /// # Errors
    /// [`Error::Data`].
    pub fn need(&self, experiment: &Experiment) -> Result<f64> {
        self.median(experiment).ok_or_else(|| Error::data(format!("find a sample of {experiment:?}: it was not measured")))
    }

    /// Parses a sample file. A last line that was cut off by an interrupt is dropped.
    ///
    /// # Errors
    /// [`Error::Format`] with file and line.
    pub fn parse(file: &str, text: &str) -> Result<(Settings, Samples)> {
        let wrong = |line: usize, reason: String| Error::Format { file: file.into(), line: Some(line), reason };
        let mut lines = text.lines().enumerate().map(|(i, l)| (i + 1, l)).filter(|(_, l)| !l.trim().is_empty());
        let (number, head) = lines.next().ok_or_else(|| wrong(1, "the file is empty, a sample file opens with its settings".into()))?;
        let settings: Settings = serde_json::from_str(head).map_err(|e| wrong(number, format!("these are no settings: {e}")))?;
        if settings.format != 1 {
            return Err(wrong(number, format!("format {} is not known, this version reads format 1", settings.format)));
        }
        let ranks = settings.hosts.len();
        let mut samples = Samples::default();
        let mut lines = lines.peekable();
        while let Some((number, line)) = lines.next() {
            let sample = match serde_json::from_str::<Sample>(line) {
                Ok(sample) => sample,
                Err(e) if e.is_eof() && lines.peek().is_none() && !text.ends_with('\n') => {
                    tracing::warn!("{file}, line {number}: the last sample was cut off and is dropped");
                    break;
                }
                Err(e) => return Err(wrong(number, format!("this is no sample: {e}"))),
            };
            if sample.seconds.is_empty() || sample.all().iter().any(|&t| !crate::units::is_time(t)) {
                return Err(wrong(number, "a sample needs at least one time, all finite and zero or more".into()));
            }
            if let Some(r) = sample.experiment.ranks().into_iter().find(|&r| r >= ranks) {
                return Err(wrong(number, format!("rank {r} is outside the {ranks} ranks of the settings")));
            }
            if let Experiment::Broadcast { ranks, root, .. } = &sample.experiment
                && *root >= ranks.len()
            {
                return Err(wrong(number, format!("root {root} is outside its {} ranks", ranks.len())));
            }
            samples.insert(sample);
        }
        Ok((settings, samples))
    }
}

/// A sample file that grows while measuring: each batch reaches the disk before the next one starts.
#[derive(Debug)]
pub struct SampleFile {
    path: std::path::PathBuf,
    file: File,
}

impl SampleFile {
    /// Opens a file for more samples; gives those it holds already. A new file gets the settings as its first line.
    ///
    /// # Errors
    /// The file cannot be read or written, or holds samples of other settings (hosts or library), which is said.
    pub fn open(path: &Path, settings: &Settings) -> Result<(SampleFile, Samples)> {
        let io = |reason| Error::Io { action: "write", path: path.into(), reason };
        let name = path.display().to_string();
        let exists = path.exists() && std::fs::metadata(path).map_err(io)?.len() > 0;
        let (samples, ends_well) = if exists {
            let text = read_text(path)?;
            let (before, samples) = Samples::parse(&name, &text)?;
            if let Some(what) = difference(&before, settings) {
                let reason = format!("these samples are of another run: {what}; name another file with --samples, or delete this one");
                return Err(Error::Format { file: name, line: Some(1), reason });
            }
            (samples, text.ends_with('\n'))
        } else {
            (Samples::default(), true)
        };
        if !ends_well {
            // drop what an interrupt left of the last line
            let text = read_text(path)?;
            let keep = text.rfind('\n').map_or(0, |at| at + 1);
            crate::error::write_text(path, &text[..keep])?;
        }
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(io)?;
        let mut this = SampleFile { path: path.into(), file };
        if !exists {
            this.line(settings)?;
        }
        Ok((this, samples))
    }

    /// Appends samples and flushes them to the disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn append(&mut self, samples: &[Sample]) -> Result<()> {
        samples.iter().try_for_each(|s| self.line(s))?;
        self.file.flush().map_err(|reason| Error::Io { action: "write", path: self.path.clone(), reason })
    }

    fn line(&mut self, value: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(value).map_err(|e| Error::invalid(format!("write a sample: {e}")))?;
        writeln!(self.file, "{text}").map_err(|reason| Error::Io { action: "write", path: self.path.clone(), reason })
    }
}

/// What makes two runs' samples incomparable.
fn difference(before: &Settings, now: &Settings) -> Option<String> {
    if before.platform != now.platform {
        return Some(format!("platform \"{}\", now \"{}\"", before.platform, now.platform));
    }
    if before.library != now.library {
        return Some(format!("library \"{}\", now \"{}\"", before.library, now.library));
    }
    if before.hosts.len() != now.hosts.len() {
        return Some(format!("{} ranks, now {}", before.hosts.len(), now.hosts.len()));
    }
    let rank = before.hosts.iter().zip(&now.hosts).position(|(a, b)| a != b)?;
    Some(format!("rank {rank} was on \"{}\", is now on \"{}\"", before.hosts[rank], now.hosts[rank]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let hosts = vec!["a".into(), "b".into()];
        Settings { format: 1, platform: "t".into(), hosts, library: "simulator".into(), timer: "virtual".into(), date: "".into() }
    }

    fn sample(out: usize) -> Sample {
        Sample {
            experiment: Experiment::RoundTrip { a: 0, b: 1, out, back: 0 },
            seconds: vec![1e-5, 2e-5],
            stop: Stop::Budget,
            again: Vec::new(),
        }
    }

    #[test]
    fn an_interrupted_file_goes_on_where_it_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let (mut file, none) = SampleFile::open(&path, &settings()).unwrap();
        assert!(none.is_empty());
        file.append(&[sample(1), sample(2)]).unwrap();
        let whole = std::fs::read_to_string(&path).unwrap();
        for cut in whole[..whole.len() - 1].rfind('\n').unwrap() + 2..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (mut file, kept) = SampleFile::open(&path, &settings()).unwrap();
            // a line that lacks only its end is whole, any other is dropped
            assert_eq!(kept.len(), if cut == whole.len() - 1 { 2 } else { 1 }, "cut at {cut}");
            file.append(&[sample(3)]).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            let (_, again) = Samples::parse("s", &text).unwrap();
            assert!(again.get(&sample(1).experiment).is_some() && again.get(&sample(3).experiment).is_some());
        }
    }

    #[test]
    fn samples_of_another_run_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        drop(SampleFile::open(&path, &settings()).unwrap());
        let other = Settings { hosts: vec!["a".into(), "c".into()], ..settings() };
        let e = SampleFile::open(&path, &other).unwrap_err().to_string();
        assert!(e.contains("rank 1 was on \"b\", is now on \"c\""), "{e}");
    }

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
    fn bad_lines_are_named() {
        let head = serde_json::to_string(&settings()).unwrap();
        for (line, word) in [
            ("{\"x\":1}", "no sample"),
            ("nonsense", "no sample"),
            (r#"{"experiment":{"kind":"round_trip","a":0,"b":1,"out":0,"back":0},"seconds":[],"stop":"budget"}"#, "at least one time"),
            (r#"{"experiment":{"kind":"round_trip","a":0,"b":1,"out":0,"back":0},"seconds":[-1],"stop":"budget"}"#, "zero or more"),
            (r#"{"experiment":{"kind":"round_trip","a":0,"b":7,"out":0,"back":0},"seconds":[1],"stop":"budget"}"#, "rank 7"),
        ] {
            let e = Samples::parse("s.jsonl", &format!("{head}\n{line}\n")).unwrap_err().to_string();
            assert!(e.contains("s.jsonl, line 2") && e.contains(word), "{line}: {e}");
        }
        assert!(Samples::parse("s.jsonl", "").unwrap_err().to_string().contains("line 1"));
    }
}
