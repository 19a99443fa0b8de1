//! A sample file that grows while measuring.

use super::lock::Lock;
use super::samples::Contents;
use super::{Sample, Samples, Settings};
use crate::error::{Error, Result};
use crate::files::{read_damaged_text, regular_path, write_text};
use crate::library::Library;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What becomes of what a sample file holds already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// It is not measured again.
    Known,
    /// As `Known`, without lines that make no sense.
    Repaired,
    /// It is dropped, and all is measured again.
    Dropped,
}

/// A sample file that grows while measuring: each batch reaches the disk before the next one starts. It is locked meanwhile.
#[derive(Debug)]
pub struct SampleFile {
    /// When measuring what it holds began (UTC); `None` if it is new.
    pub began: Option<String>,
    path: PathBuf,
    file: File,
    _lock: Option<Lock>,
}

impl SampleFile {
    /// Opens a file for more samples; gives those it holds already. A new file, or one that was cut before the end of its first line, gets
    /// the settings as its first line; what an interrupt left of a last line is removed.
    ///
    /// # Errors
    /// The file cannot be read or written, another process writes to it, or it holds samples of other settings (hosts, processors,
    /// library or build) or something else: it is then left as it is.
    pub fn open(path: &Path, settings: &Settings, held: Held) -> Result<(SampleFile, Samples)> {
        let Some(place) = regular_path(path)? else {
            return Err(Error::invalid(format!(
                "keep samples in {}: it is no regular file, from which measuring could go on; name one with --samples",
                path.display()
            )));
        };
        // by whatever name it is opened, it has one lock
        let lock = Lock::take(&place)?;
        let text = if path.exists() { read_damaged_text(path)? } else { String::new() };
        let (lines, samples, began) = whole_lines(&path.display().to_string(), &text, settings, held)?;
        if lines != text {
            write_text(path, &lines)?;
        }
        let io = |reason| Error::Io { action: "write", path: path.into(), reason };
        let file = OpenOptions::new().append(true).open(path).map_err(io)?;
        Ok((SampleFile { began, path: path.into(), file, _lock: lock }, samples))
    }

    /// Appends samples: in one piece, so that no line lacks its end.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn append(&mut self, samples: &[Sample]) -> Result<()> {
        let text = samples.iter().map(line).collect::<Result<String>>()?;
        self.file.write_all(text.as_bytes()).map_err(|reason| Error::Io { action: "write", path: self.path.clone(), reason })
    }
}

fn line(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string(value).map_err(|e| Error::invalid(format!("write a sample: {e}")))?;
    Ok(text + "\n")
}

/// The text of a file to go on from, with what it holds, and when that was begun.
fn whole_lines(file: &str, text: &str, settings: &Settings, held: Held) -> Result<(String, Samples, Option<String>)> {
    if text.is_empty() || is_cut_head(text) {
        return Ok((line(settings)?, Samples::default(), None));
    }
    let wrong = |reason: String| Error::Format { file: file.into(), line: Some(1), reason };
    if held == Held::Dropped {
        // whatever else it holds, it was a sample file
        let head = text.lines().next().unwrap_or_default();
        Settings::parse(head).map_err(|reason| wrong(format!("{reason}; name another file with --samples")))?;
        return Ok((line(settings)?, Samples::default(), None));
    }
    let Contents { settings: before, samples, lines } = Contents::of(file, text, held == Held::Repaired)?;
    match difference(&before, settings) {
        None => Ok((lines, samples, Some(before.date))),
        Some(what) => Err(wrong(format!(
            "these samples are of another run: {what}; measure all again with --fresh, or name another file with --samples"
        ))),
    }
}

/// True for what an interrupt leaves of a first line: the begin of settings, and of nothing else.
fn is_cut_head(text: &str) -> bool {
    const BEGIN: &str = "{\"format\":";
    let is_begin = text.starts_with(BEGIN) || BEGIN.starts_with(text);
    is_begin && !text.contains('\n') && serde_json::from_str::<Settings>(text).is_err_and(|e| e.is_eof())
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
    if let Some(rank) = before.hosts.iter().zip(&now.hosts).position(|(a, b)| a != b) {
        return Some(format!("rank {rank} was on \"{}\", is now on \"{}\"", before.hosts[rank], now.hosts[rank]));
    }
    // virtual time knows of no processors, and systems that tell nothing tell no difference
    let unlike = |(a, b): (&String, &String)| a != b && !a.is_empty() && !b.is_empty();
    let moved = before.placement.iter().zip(&now.placement).position(unlike).filter(|_| Library::of(&now.library) != Library::Smpi);
    if let Some(rank) = moved {
        return Some(format!("rank {rank} was on processors {}, is now on {}", before.placement[rank], now.placement[rank]));
    }
    (before.build != now.build).then(|| format!("measured by \"{}\", now \"{}\"", before.build, now.build))
}

#[cfg(test)]
mod tests {
    use super::super::samples::fixtures::{sample, settings};
    use super::*;

    fn open(path: &Path) -> Result<(SampleFile, Samples)> {
        SampleFile::open(path, &settings(), Held::Known)
    }

    #[test]
    fn a_file_goes_on_wherever_it_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let (mut file, none) = open(&path).unwrap();
        assert!(none.is_empty());
        file.append(&[sample(1)]).unwrap();
        file.append(&[sample(2), sample(3)]).unwrap();
        drop(file);
        let whole = std::fs::read_to_string(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (mut file, kept) = open(&path).unwrap_or_else(|e| panic!("cut at {cut}: {e}"));
            // a line that lacks only its end is whole
            let whole_lines = (0..=whole.len()).filter(|&end| whole[end..].starts_with('\n') && end <= cut).count();
            assert_eq!(kept.len(), whole_lines.saturating_sub(1), "cut at {cut}");
            file.append(&[sample(4)]).unwrap();
            drop(file);
            let text = std::fs::read_to_string(&path).unwrap();
            let (head, again) = Samples::parse("s", &text).unwrap_or_else(|e| panic!("cut at {cut}: {e}"));
            assert_eq!((head, again.len(), text.ends_with('\n')), (settings(), kept.len() + 1, true), "cut at {cut}");
            assert!(kept.iter().all(|s| again.get(&s.experiment) == Some(s)) && again.get(&sample(4).experiment).is_some());
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no lock stays");
    }

    #[test]
    fn what_is_no_sample_file_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        for text in ["important\n", "important", "{\"format\":2,\"name\":\"x\"", "{\"form\n", "{}", "{\"format\":1", "format = 1\n", "\n\n"]
        {
            for held in [Held::Known, Held::Repaired, Held::Dropped] {
                std::fs::write(&path, text).unwrap();
                let found = SampleFile::open(&path, &settings(), held);
                // the begin of another version's is a begin
                if text != "{\"format\":1" {
                    let e = found.unwrap_err().to_string();
                    assert!(e.contains("s.jsonl, line 1"), "{text}: {e}");
                    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
                }
            }
        }
        let device = SampleFile::open(Path::new("/dev/null"), &settings(), Held::Known).unwrap_err().to_string();
        assert!(device.contains("no regular file") && !Path::new("/dev/null.lock").exists(), "{device}");
    }

    #[test]
    fn bad_lines_are_dropped_at_the_end_and_elsewhere_when_told_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let lines: Vec<String> = [line(&settings()), line(&sample(1)), line(&sample(2))].into_iter().map(Result::unwrap).collect();
        let write = |order: &[&str]| std::fs::write(&path, order.concat()).unwrap();
        let text = || std::fs::read_to_string(&path).unwrap();
        let torn = "{\"experiment\":{\"kind\":\"round_tr{\"experi\n";
        write(&[&lines[0], &lines[1], torn]);
        assert_eq!(open(&path).unwrap().1.len(), 1, "a bad last line that has its end");
        assert_eq!(text(), lines[..2].concat());
        let damaged = [&lines[0], torn, &lines[1], "\u{0}\u{0}\n", &lines[2]];
        write(&damaged);
        let e = open(&path).unwrap_err().to_string();
        assert!(e.contains("s.jsonl, line 2") && e.contains("--repair"), "{e}");
        assert_eq!(text(), damaged.concat(), "nothing is lost");
        assert_eq!(Samples::read(&path, true).unwrap().1.len(), 2);
        assert_eq!(text(), damaged.concat(), "who only reads does not write");
        assert_eq!(SampleFile::open(&path, &settings(), Held::Repaired).unwrap().1.len(), 2);
        assert_eq!(text(), lines.concat());
        assert_eq!(SampleFile::open(&path, &settings(), Held::Dropped).unwrap().1.len(), 0);
        assert_eq!(text(), lines[0]);
    }

    #[test]
    fn one_at_a_time_writes() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("s.jsonl"), folder.path().join("link"));
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let (mut first, _) = open(&path).unwrap();
        first.append(&[sample(1)]).unwrap();
        for other in [&path, &link] {
            let e = open(other).unwrap_err().to_string();
            assert!(e.contains(&format!("process {}", std::process::id())), "{e}");
        }
        assert_eq!(Samples::read(&path, false).unwrap().1.len(), 1, "reading needs no lock");
        drop(first);
        assert_eq!(open(&link).unwrap().1.len(), 1);
    }

    #[test]
    fn samples_of_another_run_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        drop(open(&path).unwrap());
        let other = Settings { hosts: vec!["a".into(), "c".into()], ..settings() };
        let e = SampleFile::open(&path, &other, Held::Known).unwrap_err().to_string();
        assert!(e.contains("rank 1 was on \"b\", is now on \"c\""), "{e}");
        for (other, word) in [
            (Settings { build: "collwise 2".into(), ..settings() }, "measured by \"collwise 1\", now \"collwise 2\""),
            (Settings { placement: vec!["0".into(), "2".into()], ..settings() }, "rank 1 was on processors 1, is now on 2"),
        ] {
            let e = SampleFile::open(&path, &other, Held::Known).unwrap_err().to_string();
            assert!(e.contains(word) && e.contains("--fresh"), "{e}");
        }
        let later = Settings { date: "2026-03-02 23:00:00 UTC".into(), ..settings() };
        let (file, _) = SampleFile::open(&path, &later, Held::Known).unwrap();
        assert_eq!(file.began.as_deref(), Some("2026-03-01 10:00:00 UTC"), "another day is said");
    }
}
