//! `collwise app predict`

use super::super::table::table;
use super::super::{Outcome, print, print_json};
use super::fit::{interval, measured, parts, remark};
use super::picture::{Bar, draw};
use super::{Placed, Runs, fitted, policy, set_clocks};
use crate::files::write_text;
use crate::platform::Platform;
use crate::qnm::{Machine, Prediction};
use crate::units;
use std::path::PathBuf;

/// Predict the wall time at other numbers of processes, on other placements and platforms.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    runs: Runs,
    /// Numbers of processes, separated by commas.
    #[arg(long, required = true, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=100_000))]
    ranks: Vec<u32>,
    /// The platform to predict for; where the reports were made, if not given.
    #[arg(long, value_name = "PLATFORM")]
    on: Option<PathBuf>,
    /// Processors of its nodes.
    #[arg(long, requires = "on", value_parser = clap::value_parser!(u32).range(1..=1024))]
    on_cores: Option<u32>,
    /// How processes will be placed; as in the reports, if not given.
    #[arg(long, value_enum)]
    to: Option<Placed>,
    /// How fast a group's processors are, as a multiple of those where the reports were made.
    #[arg(long = "clock", value_name = "GROUP=RATIO")]
    clocks: Vec<String>,
    /// Draw the predictions, beside the runs of as many processes, into this SVG file.
    #[arg(long)]
    svg: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let compiled = policy(args.runs.place.policy.as_ref())?;
    let place = &args.runs.place;
    let home = place.machine(compiled.as_ref())?;
    let app = fitted(args.runs.read()?, &home, place.placement.into())?;
    let mut target = match &args.on {
        Some(path) => {
            let mut there = Machine::of_platform(&Platform::read(path)?, args.on_cores.unwrap_or(place.cores) as usize)?;
            there.library = home.library;
            there
        }
        None => home,
    };
    set_clocks(&mut target, &args.clocks)?;
    let spread = args.to.unwrap_or(place.placement).into();
    let predictions: Vec<Prediction> =
        args.ranks.iter().map(|&ranks| Ok(app.predict(ranks as usize, &target, spread)?)).collect::<anyhow::Result<_>>()?;
    if let Some(path) = &args.svg {
        let bar = |p: &Prediction| Bar { ranks: p.ranks, measured: measured(&app, p.ranks), predicted: Some(p.components) };
        write_text(path, &draw(&app.runs[0].command, "predicted", &predictions.iter().map(bar).collect::<Vec<_>>())?)?;
    }
    if args.json {
        print_json(&predictions)?;
        return Ok(Outcome::Done);
    }
    let rows: Vec<Vec<String>> = predictions
        .iter()
        .map(|p| {
            let mut row = vec![p.ranks.to_string(), units::seconds(p.wall_s), interval(p)];
            row.extend(parts(&p.components));
            row.push(remark(p));
            row
        })
        .collect();
    let mut out =
        table(&["processes", "wall", "95 % interval", "computing", "waiting", "MPI active", "contention", "network", ""], 0, &rows);
    for p in predictions.iter().filter(|p| !p.groups_s.is_empty()) {
        let groups: Vec<String> = p.groups_s.iter().map(|(name, t)| format!("{name} {}", units::seconds(*t))).collect();
        out += &format!("{} processes, each group as if it waited for none: {}\n", p.ranks, groups.join(", "));
    }
    print(&out)?;
    Ok(Outcome::Done)
}
