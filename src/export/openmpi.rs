//! Open MPI's rule file (`coll_tuned_dynamic_rules_filename`, first version), for 4.1 and 5.0.
//!
//! ```text
//! file := NCOLL  (COLL_ID NCOMM  (COMM_SIZE NMSG  (MSG_BYTES ALG FANINOUT SEGSIZE)*NMSG )*NCOMM )*NCOLL
//! ```
//!
//! Numbers alone count, `#` begins a comment, and of a file that it cannot read the library says nothing. A communicator takes the block with the largest size
//! that is not above its own, or the first block; a message the rule with the largest size that is not above its own. Algorithm 0: the library decides.

use super::choose::Decisions;
use super::library::Target;
use super::openmpi_algorithms::algorithms;
use super::total_bytes;
use crate::collective::{Collective, allgather, allreduce, alltoall, barrier, bcast, gather, reduce, reduce_scatter, scatter};
use crate::error::{Error, Result};
use crate::library::Library;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Open MPI.
pub static TARGET: Target = Target {
    name: "Open MPI",
    library: Library::OpenMpi,
    algorithms,
    one_for_all_sizes: |collective| UNSURE_SIZES.contains(&collective),
    knows_commuting: false,
};

/// It looks the size of these up by the send arguments, which are not significant everywhere: those of a scatter beside the root, those of what is in place. Ranks
/// that find another rule each wait for each other for ever.
static UNSURE_SIZES: [&Collective; 3] = [&allgather::COLLECTIVE, &gather::COLLECTIVE, &scatter::COLLECTIVE];

/// By number: the collectives that rules may be of, and how many algorithms each has in all versions.
static NUMBERS: [(u32, &Collective, u32); 9] = [
    (0, &allgather::COLLECTIVE, 6),
    (2, &allreduce::COLLECTIVE, 6),
    (3, &alltoall::COLLECTIVE, 5),
    (6, &barrier::COLLECTIVE, 6),
    (7, &bcast::COLLECTIVE, 9),
    (9, &gather::COLLECTIVE, 3),
    (11, &reduce::COLLECTIVE, 7),
    (13, &reduce_scatter::COLLECTIVE, 4),
    (15, &scatter::COLLECTIVE, 3),
];

/// A rule as it stands in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// It holds from so many bytes on, as the library counts them.
    pub from_bytes: u64,
    /// The number of the algorithm; 0: the library decides.
    pub algorithm: u32,
    /// The fan-out.
    pub fan_out: u64,
    /// Bytes of a segment; 0: whole messages.
    pub segment: u64,
}

/// What a file says, by the number of the collective: blocks of communicators of so many ranks and more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules(pub BTreeMap<u32, Vec<(u64, Vec<Line>)>>);

/// What must stand in the environment of every rank for the file to be heard, and for nothing to come before it. The path must be one that every rank finds.
pub fn environment(file: &Path) -> Vec<(&'static str, String)> {
    vec![
        ("OMPI_MCA_coll_tuned_use_dynamic_rules", "1".into()),
        ("OMPI_MCA_coll_tuned_dynamic_rules_filename", file.display().to_string()),
        // from 5.0 on it splits communicators by hosts, before these rules are asked
        ("OMPI_MCA_coll_han_priority", "0".into()),
    ]
}

/// The number of a collective.
pub fn number(collective: &Collective) -> Option<u32> {
    NUMBERS.iter().find(|(_, of, _)| *of == collective).map(|(number, ..)| *number)
}

/// The file; `about`: what it is of, for a comment. It was read again, and says of each collective, on communicators of any number of ranks and at any size, what
/// was decided.
///
/// # Errors
/// [`Error::Invalid`] if the library would do anything else, or a legal program would not survive it.
pub fn write(decisions: &[Decisions], about: &str) -> Result<String> {
    let mut out = format!("# Open MPI 4.1 and 5.0, coll_tuned_dynamic_rules_filename: {about}\n");
    let told: Vec<(u32, &Decisions)> = decisions.iter().filter(|d| d.is_told()).filter_map(|d| Some((number(d.collective)?, d))).collect();
    _ = writeln!(out, "{} # collectives", told.len());
    for (number, d) in told {
        let below = d.ranks > 2;
        _ = writeln!(out, "{number} {} # {}, blocks by ranks", 2 + usize::from(below), d.collective.name);
        if below {
            out += "2 1 # fewer ranks: Open MPI decides\n0 0 0 0\n";
        }
        _ = writeln!(out, "{} {}", d.ranks, d.rules.len());
        for rule in &d.rules {
            let from = total_bytes(d.collective, d.ranks, rule.from_bytes);
            _ = match rule.choice {
                Some(c) => writeln!(out, "{from} {} {} {} # {}", c.algorithm.id, c.fan_out, c.segment, c.words()),
                None => writeln!(out, "{from} 0 0 0 # Open MPI decides"),
            };
        }
        _ = writeln!(out, "{} 1 # more ranks: Open MPI decides\n0 0 0 0", d.ranks + 1);
    }
    check(decisions, &out)?;
    Ok(out)
}

/// Reads a file as the library does, and holds it against what was decided.
fn check(decisions: &[Decisions], text: &str) -> Result<()> {
    let rules = Rules::parse(text)?;
    for d in decisions {
        let Some(number) = number(d.collective) else { continue };
        for (ranks, bytes) in d.sizes_of_communicators().into_iter().flat_map(|ranks| d.edges().map(move |bytes| (ranks, bytes))) {
            let wanted = d.among(ranks, bytes).map_or((0, 0, 0), |c| (c.algorithm.id, c.fan_out as u64, c.segment as u64));
            let found = rules.at(number, ranks as u64, total_bytes(d.collective, ranks, bytes) as u64);
            let found = found.map_or((0, 0, 0), |line| (line.algorithm, line.fan_out, line.segment));
            if found != wanted {
                let what = format!("{} of {bytes} bytes among {ranks} ranks", d.collective.name);
                return Err(Error::invalid(format!("write rules of {what}: Open MPI would read {found:?} and not {wanted:?}")));
            }
        }
    }
    Ok(())
}

impl Rules {
    /// Reads a file by the library's rules, and refuses what the library would ignore without a word, what ends a program, and what lets one wait for ever.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the collective and what is wrong.
    pub fn parse(text: &str) -> Result<Rules> {
        let refuse = |why: String| Error::invalid(format!("read Open MPI's rules: {why}"));
        if text.starts_with("rule-file-version-2") {
            return Err(refuse("its version 2 is read from 4.1.8 and 5.0.7 on only, and older ones ignore it without a word".into()));
        }
        let mut numbers = numbers(text);
        let mut next = |what: &str| numbers.next().ok_or_else(|| refuse(format!("it ends before {what}"))).and_then(|n| n.map_err(&refuse));
        let mut rules = BTreeMap::new();
        for _ in 0..next("the number of collectives")? {
            let id = next("the number of a collective")?;
            let known = NUMBERS.iter().find(|(number, ..)| u64::from(*number) == id);
            let &(id, collective, most) = known.ok_or_else(|| refuse(format!("there is no collective {id} that rules may be of")))?;
            let refuse = |why: String| refuse(format!("{}: {why}", collective.name));
            let mut blocks: Vec<(u64, Vec<Line>)> = Vec::new();
            for _ in 0..next("the number of blocks")? {
                let ranks = next("the ranks of a block")?;
                if blocks.last().is_some_and(|(last, _)| *last >= ranks) {
                    return Err(refuse(format!("the block of {ranks} ranks comes after one of as many or more")));
                }
                let mut lines: Vec<Line> = Vec::new();
                for _ in 0..next("the number of sizes")? {
                    let (from_bytes, algorithm) = (next("a size")?, next("an algorithm")?);
                    let (fan_out, segment) = (next("a fan-out")?, next("a segment")?);
                    if algorithm > u64::from(most) {
                        return Err(refuse(format!(
                            "there is no algorithm {algorithm} in all versions, and one that is not there ends the program"
                        )));
                    }
                    if lines.last().map_or(from_bytes > 0, |last| last.from_bytes >= from_bytes) {
                        return Err(refuse(format!("sizes must begin at 0 and ascend, and {from_bytes} does not")));
                    }
                    lines.push(Line { from_bytes, algorithm: algorithm as u32, fan_out, segment });
                }
                let differ = lines.windows(2).any(|two| two[0].algorithm != two[1].algorithm);
                if UNSURE_SIZES.contains(&collective) && differ {
                    let why = "several algorithms for communicators of one number of ranks: the library looks sizes up by arguments that ranks may set as they like";
                    return Err(refuse(format!("{why}, and those that find another algorithm each wait for ever")));
                }
                if lines.is_empty() {
                    return Err(refuse(format!("the block of {ranks} ranks has no sizes")));
                }
                blocks.push((ranks, lines));
            }
            rules.insert(id, blocks);
        }
        Ok(Rules(rules))
    }

    /// The rule that holds for a collective, by its number; `None`: there is no word of it.
    pub fn at(&self, collective: u32, ranks: u64, bytes: u64) -> Option<Line> {
        let blocks = self.0.get(&collective)?;
        let block = blocks.iter().rev().find(|(from, _)| *from <= ranks).or(blocks.first())?;
        block.1.iter().rev().find(|line| line.from_bytes <= bytes).copied()
    }
}

/// The numbers of a text, as C reads them: after 0 octal, after 0x hexadecimal; what is no number is skipped.
fn numbers(text: &str) -> impl Iterator<Item = std::result::Result<u64, String>> {
    let words = text.lines().flat_map(|line| line.split('#').next().unwrap_or("").split(|c: char| !c.is_ascii_alphanumeric()));
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit())).map(|word| {
        let (digits, radix) = match (word.strip_prefix("0x"), word.strip_prefix('0')) {
            (Some(hexadecimal), _) => (hexadecimal, 16),
            (None, Some(octal)) if !octal.is_empty() => (octal, 8),
            _ => (word, 10),
        };
        i64::from_str_radix(digits, radix).map(|n| n.unsigned_abs()).map_err(|_| format!("\"{word}\" is no number that C reads whole"))
    })
}
