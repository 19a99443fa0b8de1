//! `collwise accuracy`

use super::clocks::clocks;
use super::table::{percent_or_dash, table};
use super::{Outcome, print, print_json};
use crate::accuracy::{ChoiceRegret, SELECTED, accuracy, regrets};
use crate::error::Error;
use crate::measure::Samples;
use crate::plan::members;
use crate::policy::{CompiledPolicy, Policy};
use crate::stats;
use crate::units;
use std::path::PathBuf;

/// Say how well the broadcasts over all groups that tuning measured were predicted.
#[derive(clap::Args)]
pub struct Args {
    /// The policy.
    policy: PathBuf,
    /// The samples beside it.
    samples: PathBuf,
    /// Read over lines of the samples that make no sense.
    #[arg(long)]
    repair: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let compiled = CompiledPolicy::new(Policy::read(&args.policy)?)?;
    let (settings, samples) = Samples::read(&args.samples, args.repair)?;
    let members = members(&compiled.policy, &settings.hosts)?;
    let sizes = accuracy(&compiled, &members, &samples)?;
    let choices = regrets(&compiled, &members, &samples)?;
    if sizes.is_empty() {
        let file = args.samples.display();
        return Err(Error::data(format!("compare predictions: {file} has no broadcasts over several groups")).into());
    }
    if args.json {
        print_json(&serde_json::json!({ "sizes": sizes, "choices": choices, "clocks": samples.clock_errors() }))?;
        return Ok(Outcome::Done);
    }
    let models: Vec<&String> = sizes[0].error.keys().filter(|n| *n != SELECTED).collect();
    let mut header = vec!["bytes", "ways", "regret", SELECTED];
    header.extend(models.iter().map(|m| m.as_str()));
    let cell = |x: Option<&f64>| percent_or_dash(x.copied());
    let row = |s: &crate::accuracy::SizeAccuracy| {
        let mut row = vec![units::bytes(s.bytes), s.ways.to_string(), percent_or_dash(s.regret), cell(s.error.get(SELECTED))];
        row.extend(models.iter().map(|m| cell(s.error.get(*m))));
        row
    };
    let mut text = table(&header, 0, &sizes.iter().map(row).collect::<Vec<_>>());
    let mean = stats::mean(&sizes.iter().filter_map(|s| s.regret).collect::<Vec<_>>());
    let selected: Vec<f64> = sizes.iter().filter_map(|s| s.error.get(SELECTED).copied()).collect();
    let median = stats::median(&selected);
    text += &format!(
        "\nmedian error {}, mean regret {} if the predictions alone were trusted\n",
        percent_or_dash(median),
        percent_or_dash(mean)
    );
    text += &regret("all groups", choices.iter().filter(|c| c.group.is_none()));
    text += &regret("one group", choices.iter().filter(|c| c.group.is_some()));
    text += &clocks(samples.clock_errors());
    print(&text)?;
    Ok(Outcome::Done)
}

/// How much longer the policy's choices took than the fastest that was measured, found by other runs than those that are compared.
fn regret<'a>(over: &str, choices: impl Iterator<Item = &'a ChoiceRegret>) -> String {
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
        "the policy's {} choices over {over}: mean regret {}, median {}, at most {}, against {measured} broadcasts measured{unknown}\n",
        choices.len(),
        // noise of short times is in factors: their mean is above 0 where half of them are below
        percent_or_dash(stats::mean(&regrets)),
        percent_or_dash(stats::median(&regrets)),
        percent_or_dash(regrets.iter().copied().reduce(f64::max))
    )
}
