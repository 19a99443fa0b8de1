//! `collwise compare`: the table of CCG07's Table 4, and the models' errors.

use super::source::{GroupingArgs, SourceArgs};
use super::table::{percent_or_dash, table};
use super::{Outcome, print, print_json};
use crate::collective::bcast;
use crate::policy::{CompiledPolicy, Policy};
use crate::regret::{Case, regret};
use crate::stats;
use crate::topology::Rank;
use crate::tune::{TuneOptions, tune};
use crate::units;
use std::path::PathBuf;

/// Compare the models: choices per group and size, and each model's errors.
#[derive(clap::Args)]
pub struct Args {
    /// A policy to read; without it, the source is measured.
    policy: Option<PathBuf>,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    grouping: GroupingArgs,
    /// Sizes, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "1,1KiB,16KiB,64KiB,256KiB,1MiB,4MiB", value_parser = units::parse_bytes)]
    bytes: Vec<usize>,
    /// Also give the regret at held-out sizes and rank counts (with --platform: there everything can be run).
    #[arg(long, requires = "platform")]
    regret: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let (method, bound) = args.grouping.method()?;
    let tuned = match &args.policy {
        Some(path) => Some((None, Policy::read(path)?)),
        None => {
            let tuned = args.source.measure(None, |s, declared| tune(s, TuneOptions { declared, method, bound, exhaustive: false }))?;
            tuned.map(|(d, p)| (Some(d.groups.into_iter().map(|g| g.ranks).collect::<Vec<Vec<Rank>>>()), p))
        }
    };
    let Some((ranks, policy)) = tuned else { return Ok(Outcome::Done) };
    let compiled = CompiledPolicy::new(policy)?;
    let cases = match (args.regret, &ranks, args.source.simulated()?) {
        (true, Some(ranks), Some(probe)) => Some(regret(&compiled, &probe, ranks)?),
        _ => None,
    };
    if args.json {
        print_json(&json(&compiled, args, cases.as_deref())?)?;
    } else {
        print(&format!("{}\n{}", choices(&compiled, args)?, errors(&compiled.policy)))?;
        if let Some(cases) = &cases {
            print(&regrets(cases))?;
        }
    }
    Ok(Outcome::Done)
}

/// What is chosen in each group for each size.
fn choices(compiled: &CompiledPolicy, args: &Args) -> anyhow::Result<String> {
    let mut rows = Vec::new();
    for (k, g) in compiled.policy.groups.iter().enumerate() {
        let mut row = vec![g.name.clone(), g.hosts.len().to_string()];
        for &bytes in &args.bytes {
            row.push(if g.rows(&bcast::COLLECTIVE).is_empty() {
                "-".into()
            } else {
                let d = compiled.decide(&bcast::COLLECTIVE, k, &(0..g.hosts.len()).collect::<Vec<_>>(), bytes)?;
                let segment = if d.parameters.segment > 0 { format!(" {}", units::bytes(d.parameters.segment)) } else { String::new() };
                format!("{}: {}{segment}", d.model, d.algorithm.name)
            });
        }
        rows.push(row);
    }
    let sizes: Vec<String> = args.bytes.iter().map(|&b| units::bytes(b)).collect();
    let header: Vec<&str> = ["group", "ranks"].into_iter().chain(sizes.iter().map(String::as_str)).collect();
    Ok(format!("selected model and algorithm:\n{}", table(&header, header.len(), &rows)))
}

/// The mean error of each model per group and algorithm.
fn errors(policy: &Policy) -> String {
    let mut rows = Vec::new();
    for g in &policy.groups {
        for s in &g.scores {
            let error = |e: Option<f64>, decimals| e.map_or("-".into(), |e| format!("{:.decimals$}", e * 100.0));
            let by = |name: &str| error(s.error_by_algorithm.get(name).copied(), 0);
            let mut row = vec![g.name.clone(), s.model.clone(), error(s.error, 1), units::seconds(s.measuring_s)];
            row.extend(algorithms().map(by));
            rows.push(row);
        }
    }
    let header: Vec<&str> = ["group", "model", "mean", "measuring"].into_iter().chain(algorithms()).collect();
    format!("mean error on held-out sizes and rank counts, %:\n{}", table(&header, 2, &rows))
}

fn algorithms() -> impl Iterator<Item = &'static str> {
    bcast::ALGORITHMS.iter().filter(|a| a.builder.is_some()).map(|a| a.name)
}

/// Mean and worst regret, of those that are known.
fn summary(cases: &[Case]) -> Option<(f64, &Case)> {
    let known = || cases.iter().filter_map(|c| Some((c.regret?, c)));
    let mean = stats::mean(&known().map(|(regret, _)| regret).collect::<Vec<_>>())?;
    Some((mean, known().max_by(|a, b| a.0.total_cmp(&b.0))?.1))
}

fn regrets(cases: &[Case]) -> String {
    let Some((mean, worst)) = summary(cases) else { return String::new() };
    let what = format!("{} instead of {}", worst.chosen, worst.best);
    let where_ = format!("{}, {} ranks, {}", worst.group, worst.ranks, units::bytes(worst.bytes));
    format!(
        "\nregret over {} held-out cases: mean {}, worst {} ({where_}: {what})\n",
        cases.len(),
        percent_or_dash(Some(mean)),
        percent_or_dash(worst.regret)
    )
}

fn json(compiled: &CompiledPolicy, args: &Args, cases: Option<&[Case]>) -> anyhow::Result<serde_json::Value> {
    let mut groups = Vec::new();
    for (k, g) in compiled.policy.groups.iter().enumerate() {
        let mut choices = Vec::new();
        for &bytes in args.bytes.iter().filter(|_| !g.rows(&bcast::COLLECTIVE).is_empty()) {
            let d = compiled.decide(&bcast::COLLECTIVE, k, &(0..g.hosts.len()).collect::<Vec<_>>(), bytes)?;
            choices.push(serde_json::json!({
                "bytes": bytes, "model": d.model, "algorithm": d.algorithm.name, "segment_bytes": d.parameters.segment,
                "radix": d.parameters.radix, "in_flight": d.parameters.in_flight, "predicted_s": d.predicted_s,
            }));
        }
        groups.push(serde_json::json!({ "name": g.name, "ranks": g.hosts.len(), "choices": choices, "scores": g.scores }));
    }
    let regret = cases.and_then(summary).map(|(mean, worst)| serde_json::json!({ "mean": mean, "worst": worst, "cases": cases }));
    Ok(serde_json::json!({ "groups": groups, "regret": regret }))
}
