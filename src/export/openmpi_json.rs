//! Open MPI's rules as JSON, which 6.0 reads.
//!
//! The first rule that fits is taken, bounds are inclusive, and where none fits the library decides. The numbers of algorithms are those of the other format.

use super::choose::{Decisions, Rule};
use super::openmpi::number;
use super::total_bytes;
use crate::collective::Collective;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rule_file_version: u32,
    module: String,
    collectives: BTreeMap<String, Vec<Block>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    comm_size_min: usize,
    comm_size_max: usize,
    rules: Vec<Line>,
}

/// A rule as it stands in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// It holds from so many bytes on, as the library counts them.
    pub msg_size_min: usize,
    /// Up to so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub msg_size_max: Option<usize>,
    /// The number of the algorithm.
    pub alg: u32,
    /// The fan-out.
    pub faninout: usize,
    /// Bytes of a segment; 0: whole messages.
    pub seg_size: usize,
}

/// What a file says.
#[derive(Debug)]
pub struct Rules(File);

/// The file. It was read again, and says what was decided.
///
/// # Errors
/// [`Error::Invalid`] if the library would do anything else.
pub fn write(decisions: &[Decisions]) -> Result<String> {
    let told = decisions.iter().filter(|d| d.is_told() && number(d.collective).is_some());
    let collectives = told.map(|d| (name(d.collective), vec![block(d)])).collect();
    let file = File { rule_file_version: 3, module: "tuned".into(), collectives };
    let text = serde_json::to_string_pretty(&file).map_err(|e| Error::invalid(format!("write rules for Open MPI: {e}")))? + "\n";
    check(decisions, &text)?;
    Ok(text)
}

impl Rules {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Invalid`]: it is not of this format.
    pub fn parse(text: &str) -> Result<Rules> {
        serde_json::from_str(text).map(Rules).map_err(|e| Error::invalid(format!("read Open MPI's rules: {e}")))
    }

    /// The rule that holds for a collective; `None`: the library decides.
    pub fn at(&self, collective: &Collective, ranks: usize, bytes: usize) -> Option<Line> {
        let mut blocks = self.0.collectives.get(&name(collective)).into_iter().flatten();
        let block = blocks.find(|block| (block.comm_size_min..=block.comm_size_max).contains(&ranks))?;
        let fits = |line: &&Line| line.msg_size_min <= bytes && line.msg_size_max.is_none_or(|most| bytes <= most);
        block.rules.iter().find(fits).copied()
    }
}

fn block(d: &Decisions) -> Block {
    let from = |bytes| total_bytes(d.collective, d.ranks, bytes);
    let line = |(k, rule): (usize, &Rule)| {
        let c = rule.choice?;
        let next = d.rules.get(k + 1).map(|next| from(next.from_bytes) - 1);
        Some(Line {
            msg_size_min: from(rule.from_bytes),
            msg_size_max: next,
            alg: c.algorithm.id,
            faninout: c.fan_out,
            seg_size: c.segment,
        })
    };
    Block { comm_size_min: d.ranks, comm_size_max: d.ranks, rules: d.rules.iter().enumerate().filter_map(line).collect() }
}

fn check(decisions: &[Decisions], text: &str) -> Result<()> {
    let rules = Rules::parse(text)?;
    for d in decisions {
        for (ranks, bytes) in d.sizes_of_communicators().into_iter().flat_map(|ranks| d.edges().map(move |bytes| (ranks, bytes))) {
            let wanted = d.among(ranks, bytes).map(|c| (c.algorithm.id, c.fan_out, c.segment));
            let found = rules.at(d.collective, ranks, total_bytes(d.collective, ranks, bytes));
            let found = found.map(|line| (line.alg, line.faninout, line.seg_size));
            if found != wanted {
                let what = format!("{} of {bytes} bytes among {ranks} ranks", d.collective.name);
                return Err(Error::invalid(format!("write rules of {what}: Open MPI would read {found:?} and not {wanted:?}")));
            }
        }
    }
    Ok(())
}

/// Open MPI's name of a collective in JSON.
fn name(collective: &Collective) -> String {
    collective.function.trim_start_matches("MPI_").to_lowercase()
}
