//! `collwise app collectives`

use super::super::explain::or_dash;
use super::super::table::table;
use super::super::{Outcome, print, print_json};
use crate::qnm::{Report, Use};
use crate::units;
use serde::Serialize;
use std::path::PathBuf;

/// Say which collectives an application called, on which communicators, how they were done, and what they took and should have taken.
#[derive(clap::Args)]
pub struct Args {
    /// Reports of the preloaded library (COLLWISE_PROFILE).
    #[arg(required = true)]
    reports: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer {
    report: String,
    command: String,
    collectives: Vec<Use>,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let answer = |path: &PathBuf| -> anyhow::Result<Answer> {
        let Report { file, command, uses, .. } = Report::read(path)?;
        if uses.is_empty() {
            anyhow::bail!(
                "list the collectives of {file}: it has no table of them by communicator, which the library preloaded with COLLWISE_PROFILE=FILE writes"
            );
        }
        Ok(Answer { report: file, command, collectives: uses })
    };
    let answers: Vec<Answer> = args.reports.iter().map(answer).collect::<anyhow::Result<_>>()?;
    if args.json {
        print_json(&answers)?;
        return Ok(Outcome::Done);
    }
    for Answer { report, command, collectives } in &answers {
        print(&format!("{report}: {command}\n\n"))?;
        let rows: Vec<Vec<String>> = collectives.iter().map(row).collect();
        // calls are those of a process that made some
        let header = ["collective", "size", "communicator", "how", "ranks", "stride", "processes", "calls", "bytes", "a call", "predicted"];
        print(&(table(&header, 4, &rows) + "\n"))?;
    }
    Ok(Outcome::Done)
}

fn row(used: &Use) -> Vec<String> {
    let (calls, bytes) = (units::number(used.calls), units::bytes(used.bytes as usize));
    let predicted = or_dash(used.predicted_s);
    let known = |number: Option<usize>| number.map_or("-".into(), |n| n.to_string());
    let place = [used.collective.clone(), used.size.clone(), used.communicator.clone(), used.algorithm.clone()];
    let processes = [used.ranks.to_string(), known(used.stride), known(used.processes)];
    place.into_iter().chain(processes).chain([calls, bytes, units::seconds(used.seconds), predicted]).collect()
}
