//! `collwise accuracy`

use super::algorithm::CollectiveArgs;
use super::clocks::clocks;
use super::table::{percent_or_dash, table};
use super::{Outcome, print, print_json};
use crate::accuracy::{ChoiceRegret, PlaceAccuracy, SELECTED, SizeAccuracy, accuracy, by_place, regrets};
use crate::collective::Collective;
use crate::contention::{Contention, contention};
use crate::error::Error;
use crate::measure::Samples;
use crate::plan::members;
use crate::policy::{CompiledPolicy, Policy};
use crate::stats;
use crate::units;
use std::path::PathBuf;

/// Say how well the collectives that tuning measured were predicted.
#[derive(clap::Args)]
pub struct Args {
    /// The policy.
    policy: PathBuf,
    /// The samples beside it.
    samples: PathBuf,
    #[command(flatten)]
    collective: CollectiveArgs,
    /// Read over lines of the samples that make no sense.
    #[arg(long)]
    repair: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let compiled = CompiledPolicy::new(Policy::read(&args.policy)?)?;
    let collective = args.collective.collective;
    let (settings, samples) = Samples::read(&args.samples, args.repair)?;
    let members = members(&compiled.policy, &settings.hosts)?;
    let sizes = accuracy(&compiled, &members, &samples, collective)?;
    let places = by_place(&compiled, &members, &samples)?;
    let contended = contention(&compiled, &members, &samples)?;
    let choices = regrets(&compiled, &members, &samples, collective)?;
    if places.is_empty() {
        let file = args.samples.display();
        return Err(Error::data(format!("compare predictions: {file} has no collectives but the library's own")).into());
    }
    if args.json {
        let clocks = samples.clock_errors();
        print_json(
            &serde_json::json!({ "sizes": sizes, "places": places, "contention": contended, "choices": choices, "clocks": clocks }),
        )?;
        return Ok(Outcome::Done);
    }
    let mut text = if sizes.is_empty() { String::new() } else { of_sizes(&sizes) };
    text += &of_places(&places);
    text += &of_contention(&contended);
    text += &regret(collective, "all groups", choices.iter().filter(|c| c.group.is_none()));
    text += &regret(collective, "one group", choices.iter().filter(|c| c.group.is_some()));
    text += &clocks(samples.clock_errors());
    print(&text)?;
    Ok(Outcome::Done)
}

/// One collective over all groups, by size and model.
fn of_sizes(sizes: &[SizeAccuracy]) -> String {
    let models: Vec<&String> = sizes[0].error.keys().filter(|n| *n != SELECTED).collect();
    let mut header = vec!["bytes", "schedules", "regret", SELECTED];
    header.extend(models.iter().map(|m| m.as_str()));
    let cell = |x: Option<&f64>| percent_or_dash(x.copied());
    let row = |s: &SizeAccuracy| {
        let mut row = vec![units::bytes(s.bytes), s.schedules.to_string(), percent_or_dash(s.regret), cell(s.error.get(SELECTED))];
        row.extend(models.iter().map(|m| cell(s.error.get(*m))));
        row
    };
    let text = table(&header, 0, &sizes.iter().map(row).collect::<Vec<_>>());
    let mean = stats::mean(&sizes.iter().filter_map(|s| s.regret).collect::<Vec<_>>());
    let selected: Vec<f64> = sizes.iter().filter_map(|s| s.error.get(SELECTED).copied()).collect();
    let (median, mean) = (percent_or_dash(stats::median(&selected)), percent_or_dash(mean));
    format!("{text}\nmedian error {median}, mean regret {mean} if the predictions alone were trusted\n\n")
}

/// All collectives, over several groups and inside each.
fn of_places(places: &[PlaceAccuracy]) -> String {
    let row = |p: &PlaceAccuracy| {
        let place = p.group.clone().unwrap_or_else(|| "several groups".into());
        let shares = [p.error, p.bias, p.regret].map(percent_or_dash);
        [vec![p.collective.into(), place, p.measured.to_string()], shares.to_vec()].concat()
    };
    let header = ["collective", "among", "measured", "error", "bias", "regret"];
    table(&header, 2, &places.iter().map(row).collect::<Vec<_>>()) + "\n"
}

/// Contention of alltoalls, by group.
fn of_contention(places: &[Contention]) -> String {
    if places.is_empty() {
        return String::new();
    }
    let row = |p: &Contention| {
        let of = |e: &crate::contention::CountError| format!("{} at {}", percent_or_dash(e.error), e.ranks);
        let (fitted, others): (Vec<_>, Vec<_>) = p.errors.iter().partition(|e| e.ranks == p.fitted_ranks);
        let others = if others.is_empty() {
            "- (no other number of ranks was measured)".into()
        } else {
            others.into_iter().map(of).collect::<Vec<_>>().join(", ")
        };
        let fitted = fitted.into_iter().map(of).collect::<Vec<_>>().join(", ");
        vec![p.group.clone().unwrap_or_else(|| "several groups".into()), format!("{:.2}", p.gamma), fitted, others]
    };
    let header = ["alltoall among", "contention", "error at ranks of the fit", "at others"];
    table(&header, 1, &places.iter().map(row).collect::<Vec<_>>()) + "\n"
}

/// How much longer the policy's choices took than the fastest that was measured, found by other runs than those that are compared.
fn regret<'a>(of: &Collective, over: &str, choices: impl Iterator<Item = &'a ChoiceRegret>) -> String {
    let choices: Vec<&ChoiceRegret> = choices.collect();
    if choices.is_empty() {
        return String::new();
    }
    let regrets: Vec<f64> = choices.iter().filter_map(|c| c.regret).collect();
    let unknown = match choices.len() - regrets.len() {
        0 => String::new(),
        n => format!("; {n} unknown, where the fastest took 0 s"),
    };
    let measured: usize = choices.iter().map(|c| c.measured).sum();
    format!(
        "the policy's {} choices of {} over {over}: mean regret {}, median {}, at most {}, against {measured} schedules measured{unknown}\n",
        choices.len(),
        of.name,
        // noise of short times is in factors: their mean is above 0 where half of them are below
        percent_or_dash(stats::mean(&regrets)),
        percent_or_dash(stats::median(&regrets)),
        percent_or_dash(regrets.iter().copied().reduce(f64::max))
    )
}
