//! What the collectives of a program were, by size and communicator, and how they were done: a table of our own in reports that are in mpiP's layout.

use super::profile::{Profile, short};
use crate::error::{Error, Result};
use crate::plan::OWN;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The title of the table.
pub const TITLE: &str = "Collectives by communicator";

/// So many rows of a process are told apart by the names of communicators; programs may name each of thousands.
const MOST: usize = 1000;
/// A communicator has plans from its second collective on at the latest; what is still not known after so many calls alike stays so, and asking costs as much as planning.
const ASKED: u64 = 8;
/// The name of those beyond.
const OTHERS: &str = "others";

/// The name under which the table has calls of a name without `MPI_`.
pub fn name_of_uses(call: &str) -> String {
    call.to_ascii_lowercase()
}

/// What makes calls alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Alike {
    /// The collective, as in `bcast` ([`name_of_uses`]).
    pub collective: String,
    /// The range of sizes, by the binary digits of their bytes: 0, 1, 2 to 3, 4 to 7, ...
    pub digits: u32,
    /// Its name.
    pub size: String,
    /// Ranks of the communicator.
    pub ranks: usize,
    /// How far one of them is from the next in `MPI_COMM_WORLD`, where that is the same for all.
    pub stride: Option<usize>,
    /// Its name, if it has one.
    pub communicator: String,
}

/// Calls of one process that are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfiledUse {
    /// What they share.
    pub alike: Alike,
    /// How many.
    pub calls: u64,
    /// Bytes of the messages in all calls, or of the block for one partner: as sites have them.
    pub bytes: f64,
    /// Seconds in all.
    pub seconds: f64,
    /// How it was done, and the seconds that a call should take, if that is known; none if it is not known how.
    pub done: Option<(String, Option<f64>)>,
}

/// Calls that are alike, of all processes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Use {
    /// The collective, as in `bcast`.
    pub collective: String,
    /// The name of the range of sizes.
    pub size: String,
    /// Ranks of a communicator.
    pub ranks: usize,
    /// How far one of them is from the next, where that is the same for all and known.
    pub stride: Option<usize>,
    /// Its name; several may have the same. `-` without one.
    pub communicator: String,
    /// Processes that made some; none where the report is older than that it says so.
    pub processes: Option<usize>,
    /// Calls of a process that made some.
    pub calls: f64,
    /// Bytes of a call, as sites have them ([`wire`](super::wire())).
    pub bytes: f64,
    /// Seconds of a call.
    pub seconds: f64,
    /// Seconds that the policy predicts.
    pub predicted_s: Option<f64>,
    /// How it was done.
    pub algorithm: String,
}

impl Profile {
    /// Notes a collective; `ask` says how it is done, and is asked while that is not known, in the first calls.
    pub fn note_use(&mut self, alike: Alike, seconds: f64, bytes: usize, ask: impl FnOnce() -> Option<(String, Option<f64>)>) {
        // what a program names without end is one
        let is_new = !self.places.contains_key(&alike);
        let alike = if is_new && self.uses.len() >= MOST { Alike { communicator: OTHERS.into(), ..alike } } else { alike };
        let uses = &mut self.uses;
        let known = *self.places.entry(alike).or_insert_with_key(|alike| {
            uses.push(ProfiledUse { alike: alike.clone(), calls: 0, bytes: 0.0, seconds: 0.0, done: None });
            uses.len() - 1
        });
        let noted = &mut self.uses[known];
        noted.calls += 1;
        noted.bytes += bytes as f64;
        noted.seconds += seconds;
        if noted.done.is_none() && noted.calls <= ASKED {
            noted.done = ask();
        }
    }
}

/// The calls of all processes, in order.
fn together(profiles: &[Profile]) -> Vec<Use> {
    let mut all: BTreeMap<&Alike, Vec<&ProfiledUse>> = BTreeMap::new();
    for noted in profiles.iter().flat_map(|p| &p.uses) {
        all.entry(&noted.alike).or_default().push(noted);
    }
    let uses = all.into_iter().map(|(alike, noted)| {
        let sum = |of: fn(&ProfiledUse) -> f64| noted.iter().map(|n| of(n)).sum::<f64>();
        let calls = sum(|n| n.calls as f64);
        let done = noted.iter().find_map(|n| n.done.clone());
        let (algorithm, predicted_s) = done.unwrap_or_else(|| (OWN.into(), None));
        Use {
            collective: alike.collective.clone(),
            size: alike.size.clone(),
            ranks: alike.ranks,
            stride: alike.stride,
            communicator: one_word(&alike.communicator),
            processes: Some(noted.len()),
            calls: calls / noted.len() as f64,
            bytes: sum(|n| n.bytes) / calls,
            seconds: sum(|n| n.seconds) / calls,
            predicted_s,
            algorithm,
        }
    });
    uses.collect()
}

/// A name as one word.
fn one_word(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    if words.is_empty() { "-".into() } else { words.join("_") }
}

/// The table's rows under their columns; nothing without collectives.
pub(super) fn table(profiles: &[Profile]) -> Option<(usize, String)> {
    let uses = together(profiles);
    if uses.is_empty() {
        return None;
    }
    let mut out = String::from(
        "Call                  Size      Ranks Stride Processes Communicator             Calls    Bytes     Mean Predicted Algorithm\n",
    );
    for used in &uses {
        let predicted = used.predicted_s.map_or("-".into(), |s| short(s * 1e3));
        let or_dash = |number: Option<usize>| number.map_or("-".into(), |n| n.to_string());
        let (stride, processes) = (or_dash(used.stride), or_dash(used.processes));
        let place =
            format!("{:<21} {:<8} {:>6} {stride:>6} {processes:>9} {:<22}", used.collective, used.size, used.ranks, used.communicator);
        let numbers = format!("{:>7} {:>8} {:>8} {predicted:>9}", short(used.calls), short(used.bytes), short(used.seconds * 1e3));
        let _ = writeln!(out, "{place} {numbers} {}", used.algorithm.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    Some((uses.len(), out))
}

/// A row of the table; older ones have no stride and no number of processes.
///
/// # Errors
/// Words are missing, or no numbers.
pub(super) fn read(words: &[&str], has_stride: bool) -> Result<Use> {
    let [collective, size, ranks, rest @ ..] = words else { return Err(Error::invalid("the line is cut")) };
    let (stride, processes, rest) = match rest {
        [stride, processes, rest @ ..] if has_stride => (Some(stride), Some(processes), rest),
        _ => (None, None, rest),
    };
    let [communicator, calls, bytes, mean, predicted, algorithm @ ..] = rest else { return Err(Error::invalid("the line is cut")) };
    let number = |text: &str, what: &str| {
        let value = text.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
        value.ok_or_else(|| Error::invalid(format!("{what} is \"{text}\", which is no number of seconds, bytes or calls")))
    };
    let whole = |text: &&str| text.parse().map_err(|_| Error::invalid(format!("ranks are \"{text}\", which is no number")));
    let known = |text: Option<&&str>| match text.filter(|s| **s != "-").map(whole).transpose()? {
        Some(0) => Err(Error::invalid("a stride, or a number of processes, is 0")),
        number => Ok(number),
    };
    Ok(Use {
        collective: collective.to_string(),
        size: size.to_string(),
        ranks: whole(ranks)?,
        stride: known(stride)?,
        processes: known(processes)?,
        communicator: communicator.to_string(),
        calls: number(calls, "Calls")?,
        bytes: number(bytes, "Bytes")?,
        seconds: number(mean, "Mean")? / 1e3,
        predicted_s: if *predicted == "-" { None } else { Some(number(predicted, "Predicted")? / 1e3) },
        algorithm: algorithm.join(" "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let alike = |digits: u32, ranks| Alike {
            collective: "bcast".into(),
            digits,
            size: format!("{}B", 1 << digits),
            ranks,
            stride: (ranks == 8).then_some(1),
            communicator: "MPI COMM WORLD".into(),
        };
        let mut one = Profile::default();
        one.note_use(alike(3, 8), 1e-3, 10, || None);
        one.note_use(alike(3, 8), 3e-3, 12, || Some(("chain in 4KiB".into(), Some(2e-3))));
        one.note_use(alike(3, 8), 2e-3, 11, || panic!("it is known"));
        one.note_use(alike(10, 2), 5e-3, 1024, || None);
        let other = Profile { uses: vec![one.uses[0].clone()], ..Profile::default() };
        let (count, text) = table(&[one, other]).unwrap();
        let read: Vec<Use> = text.lines().skip(1).map(|l| read(&l.split_whitespace().collect::<Vec<_>>(), true).unwrap()).collect();
        assert_eq!(count, 2);
        assert_eq!((read[0].calls, read[0].bytes, read[0].seconds, read[0].predicted_s), (3.0, 11.0, 2e-3, Some(2e-3)));
        assert_eq!((read[0].algorithm.as_str(), read[0].communicator.as_str()), ("chain in 4KiB", "MPI_COMM_WORLD"));
        assert_eq!((read[0].stride, read[1].stride), (Some(1), None));
        assert_eq!((read[1].ranks, read[1].predicted_s, read[1].algorithm.as_str()), (2, None, "the MPI library's own"));
        assert!(table(&[Profile::default()]).is_none());
        let (mut own, mut asked) = (Profile::default(), 0);
        for _ in 0..3 * ASKED {
            own.note_use(alike(3, 2), 1e-6, 8, || {
                asked += 1;
                None
            });
        }
        assert_eq!(asked, ASKED);
        let mut many = Profile::default();
        for k in 0..3 * MOST {
            many.note_use(Alike { communicator: format!("comm {k}"), ..alike(3, 2) }, 1e-6, 8, || None);
        }
        assert_eq!((many.uses.len(), many.uses[MOST].calls), (MOST + 1, 2 * MOST as u64));
    }
}
