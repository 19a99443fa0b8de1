//! How far the receivers of a program's messages are: a table of our own in reports that are in mpiP's layout, which says who sends to whom.

use super::partners::Phase;
use super::profile::{Profile, short};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The title of the table.
pub const TITLE: &str = "Messages by distance";

/// So many rows of a process: where receivers are anywhere, no more of them say where.
const MOST: usize = 1000;

/// Messages of one process that go as far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfiledDistance {
    /// Without `MPI_`.
    pub call: String,
    /// The name of the range of sizes.
    pub size: String,
    /// The receiver's rank in `MPI_COMM_WORLD` less the sender's.
    pub distance: isize,
    /// True if the sender is the lower one of a pair, if all were in pairs of ranks so far from each other.
    pub lower: bool,
    /// How many.
    pub messages: u64,
    /// Bytes in all of them.
    pub bytes: f64,
}

/// Messages of all processes that go as far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Distance {
    /// Without `MPI_`.
    pub call: String,
    /// The name of the range of sizes.
    pub size: String,
    /// The receiver's rank in `MPI_COMM_WORLD` less the sender's.
    pub distance: isize,
    /// Processes that send so far.
    pub processes: usize,
    /// Messages of all of them.
    pub messages: f64,
    /// Those of them whose senders are the lower ones of pairs, if all were in pairs of ranks so far from each other.
    pub lower: f64,
    /// Bytes in all messages.
    pub bytes: f64,
}

/// The share of messages that one half of the ranks sends, from which on ranks are taken to be in pairs.
const IN_PAIRS: f64 = 0.9;

impl Distance {
    /// The step that its messages are: of all ranks, or of one half of them, as in pairs.
    pub fn phase(&self) -> Phase {
        let share = self.lower / self.messages.max(f64::MIN_POSITIVE);
        let lower = if share >= IN_PAIRS { Some(true) } else { (share <= 1.0 - IN_PAIRS).then_some(false) };
        Phase::By { distance: self.distance, lower }
    }
}

impl Profile {
    /// Notes a message from a rank to one that is so much further.
    pub fn note_partner(&mut self, call: &str, size: &str, (rank, distance): (usize, isize), bytes: usize) {
        let is_one = |d: &ProfiledDistance| d.distance == distance && d.call == call && d.size == size;
        if let Some(known) = self.distances.iter().position(is_one) {
            let known = &mut self.distances[known];
            (known.messages, known.bytes) = (known.messages + 1, known.bytes + bytes as f64);
        } else if self.distances.len() < MOST {
            let (call, size) = (call.into(), size.into());
            let lower = rank / distance.unsigned_abs().max(1) % 2 == 0;
            self.distances.push(ProfiledDistance { call, size, distance, lower, messages: 1, bytes: bytes as f64 });
        }
    }
}

/// The table's rows under their columns; nothing without messages.
pub(super) fn table(profiles: &[Profile]) -> Option<(usize, String)> {
    let mut all: BTreeMap<_, (usize, u64, u64, f64)> = BTreeMap::new();
    for d in profiles.iter().flat_map(|p| &p.distances) {
        let sum = all.entry((d.call.as_str(), d.size.as_str(), d.distance)).or_default();
        let lower = if d.lower { d.messages } else { 0 };
        *sum = (sum.0 + 1, sum.1 + d.messages, sum.2 + lower, sum.3 + d.bytes);
    }
    let mut out = String::from("Call                  Size     Distance Processes Messages    Lower     Bytes\n");
    for ((call, size, distance), (processes, messages, lower, bytes)) in &all {
        let _ = writeln!(out, "{call:<21} {size:<8} {distance:>8} {processes:>9} {messages:>8} {lower:>8} {:>9}", short(*bytes));
    }
    (!all.is_empty()).then_some((all.len(), out))
}

/// A row of the table.
///
/// # Errors
/// Words are missing, or no numbers.
pub(super) fn read(words: &[&str]) -> Result<Distance> {
    let [call, size, distance, processes, messages, lower, bytes] = words else {
        return Err(Error::invalid("this is no call, size, distance, and numbers of processes, messages and bytes"));
    };
    let number = |text: &str, what: &str| {
        let value = text.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
        value.ok_or_else(|| Error::invalid(format!("{what} is \"{text}\", which is no number of messages or bytes")))
    };
    Ok(Distance {
        call: call.to_string(),
        size: size.to_string(),
        distance: distance.parse().map_err(|_| Error::invalid(format!("the distance is \"{distance}\", which is no number of ranks")))?,
        processes: processes.parse().map_err(|_| Error::invalid(format!("the processes are \"{processes}\", which is no number")))?,
        messages: number(messages, "Messages")?,
        lower: number(lower, "Lower")?,
        bytes: number(bytes, "Bytes")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let process = |rank: usize, distances: &[isize]| {
            let mut profile = Profile::default();
            for distance in distances {
                profile.note_partner("Isend", "1KiB", (rank, *distance), 1000);
            }
            profile
        };
        let (count, text) = table(&[process(0, &[1, 1, 3]), process(1, &[-1, 1])]).unwrap();
        let read: Vec<Distance> = text.lines().skip(1).map(|l| read(&l.split_whitespace().collect::<Vec<_>>()).unwrap()).collect();
        assert_eq!(count, 3);
        let numbers: Vec<_> = read.iter().map(|d| (d.distance, d.processes, d.messages, d.lower, d.bytes)).collect();
        assert_eq!(numbers, [(-1, 1, 1.0, 0.0, 1000.0), (1, 2, 3.0, 2.0, 3000.0), (3, 1, 1.0, 1.0, 1000.0)]);
        assert!(table(&[Profile::default()]).is_none());
        assert_eq!(process(0, &(0..3 * MOST as isize).collect::<Vec<_>>()).distances.len(), MOST);
    }
}
