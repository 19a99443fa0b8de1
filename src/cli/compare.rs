//! `collwise compare`: the table of CCG07's Table 4, and the models' errors.

use super::algorithm::CollectiveArgs;
use super::source::{GroupingArgs, SourceArgs, progress};
use super::table::{percent_or_dash, table};
use super::{Outcome, print, print_json};
use crate::collective::Collective;
use crate::measure::{Probe, SimulatedProbe};
use crate::plan::members;
use crate::policy::{CompiledPolicy, Policy};
use crate::regret::{Case, held_out_cases, met_noting, regret_noting};
use crate::stats;
use crate::tune::{BY_DEFAULT, TuneOptions, tune};
use crate::units;
use anyhow::bail;
use std::collections::BTreeSet;
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
    #[command(flatten)]
    collective: CollectiveArgs,
    /// Sizes, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "1,1KiB,16KiB,64KiB,256KiB,1MiB,4MiB", value_parser = units::parse_bytes)]
    bytes: Vec<usize>,
    /// Also give the regret (with --platform: there everything can be run): inside groups at held-out sizes and rank counts, and where users
    /// meet the policy, at any size, from any root, among all ranks or some.
    #[arg(long, requires = "platform")]
    regret: bool,
    /// So many calls that users meet are drawn for --regret.
    #[arg(long, default_value_t = 100)]
    cases: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let tuned = match &args.policy {
        Some(path) => Some(Policy::read(path)?),
        None => {
            let collectives: BTreeSet<_> = BY_DEFAULT.into_iter().chain([args.collective.collective]).collect();
            let collectives: Vec<_> = collectives.into_iter().collect();
            let tuned = args.source.measure(None, &collectives, |s, declared| {
                let (method, bound) = args.grouping.method()?;
                tune(s, TuneOptions { declared, method, bound, collectives: &collectives, exhaustive: false })
            })?;
            tuned.map(|(_, policy)| policy)
        }
    };
    let Some(policy) = tuned else { return Ok(Outcome::Done) };
    let (compiled, collective) = (CompiledPolicy::new(policy)?, args.collective.collective);
    if compiled.policy.size_classes(collective).is_empty() {
        bail!("compare what is done in {}: the policy has no row for it; tune it with --collectives {}", collective.one(), collective.name);
    }
    let cases = args.source.simulated(&[collective])?.filter(|_| args.regret).map(|probe| regrets(&compiled, &probe, args)).transpose()?;
    if args.json {
        print_json(&json(&compiled, args, cases.as_ref())?)?;
    } else {
        print(&format!("{}\n{}", choices(&compiled, args)?, errors(&compiled.policy, collective)))?;
        if let Some(cases) = &cases {
            print(&(words("held-out cases inside groups", &cases.inside) + &words("cases that users meet", &cases.met)))?;
        }
    }
    Ok(Outcome::Done)
}

/// Regret inside groups, and where users meet the policy.
struct Regrets {
    inside: Vec<Case>,
    met: Vec<Case>,
}

fn regrets(compiled: &CompiledPolicy, probe: &SimulatedProbe, args: &Args) -> anyhow::Result<Regrets> {
    let (members, collective) = (members(&compiled.policy, &probe.settings().hosts)?, args.collective.collective);
    let simulator = probe.simulator();
    let mut progress = progress();
    // one rank meets nothing
    let cases = if members.len() > 1 { args.cases } else { 0 };
    let drawn = (cases, args.source.seed);
    let met = met_noting(compiled, simulator, &members, collective, drawn, |done| progress("calls that users meet", done, cases))?;
    let cases = held_out_cases(compiled, &members, collective);
    let inside = regret_noting(compiled, simulator, &members, collective, |done| progress("held-out calls inside groups", done, cases))?;
    Ok(Regrets { inside, met })
}

/// What is chosen in each group for each size.
fn choices(compiled: &CompiledPolicy, args: &Args) -> anyhow::Result<String> {
    let (mut rows, collective) = (Vec::new(), args.collective.collective);
    let sizes = collective.sizes(&args.bytes);
    for (k, g) in compiled.policy.groups.iter().enumerate() {
        let mut row = vec![g.name.clone(), g.hosts.len().to_string()];
        for &bytes in &sizes {
            row.push(if g.rows(collective).is_empty() {
                "-".into()
            } else {
                let d = compiled.decide(collective, k, &(0..g.hosts.len()).collect::<Vec<_>>(), bytes)?;
                let segment = if d.parameters.segment > 0 { format!(" {}", units::bytes(d.parameters.segment)) } else { String::new() };
                let by_speed = if d.parameters.by_speed { " by speed" } else { "" };
                format!("{}: {}{by_speed}{segment}", d.model, d.algorithm.name)
            });
        }
        rows.push(row);
    }
    let sizes: Vec<String> = sizes.iter().map(|&b| units::bytes(b)).collect();
    let header: Vec<&str> = ["group", "ranks"].into_iter().chain(sizes.iter().map(String::as_str)).collect();
    Ok(format!("selected model and algorithm:\n{}", table(&header, header.len(), &rows)))
}

/// The mean error of each model in a collective, per group and algorithm.
fn errors(policy: &Policy, collective: &Collective) -> String {
    let mut rows = Vec::new();
    for g in &policy.groups {
        for s in g.scores.iter().filter(|s| s.collective == collective) {
            let error = |e: Option<f64>, decimals| e.map_or("-".into(), |e| format!("{:.decimals$}", e * 100.0));
            let by = |name: &str| error(s.error_by_algorithm.get(name).copied(), 0);
            let mut row = vec![g.name.clone(), s.model.clone(), error(s.error, 1), units::seconds(s.measuring_s)];
            row.extend(collective.built().map(|a| by(a.name)));
            rows.push(row);
        }
    }
    let header: Vec<&str> = ["group", "model", "mean", "measuring"].into_iter().chain(collective.built().map(|a| a.name)).collect();
    format!("mean error, by which models are selected, on held-out sizes and rank counts, %:\n{}", table(&header, 2, &rows))
}

/// Mean and worst regret, of those that are known.
fn summary(cases: &[Case]) -> Option<(f64, &Case)> {
    let known = || cases.iter().filter_map(|c| Some((c.regret?, c)));
    let mean = stats::mean(&known().map(|(regret, _)| regret).collect::<Vec<_>>())?;
    Some((mean, known().max_by(|a, b| a.0.total_cmp(&b.0))?.1))
}

/// So many of the worst cases are shown.
const WORST: usize = 5;

fn words(what: &str, cases: &[Case]) -> String {
    let Some((mean, _)) = summary(cases) else { return String::new() };
    let mut worst: Vec<&Case> = cases.iter().filter(|c| c.regret.is_some()).collect();
    worst.sort_by(|a, b| b.regret.partial_cmp(&a.regret).unwrap_or(std::cmp::Ordering::Equal));
    let mut out = format!("\nregret over {} {what}: mean {}; the worst:\n", cases.len(), percent_or_dash(Some(mean)));
    for c in worst.into_iter().take(WORST) {
        let place = format!("{} ranks ({}), {} from rank {}", c.ranks, c.place, units::bytes(c.bytes), c.root);
        out += &format!("  {:>6}  {place}: {}; best {}\n", percent_or_dash(c.regret), c.chosen, c.best);
    }
    out
}

fn json(compiled: &CompiledPolicy, args: &Args, cases: Option<&Regrets>) -> anyhow::Result<serde_json::Value> {
    let (mut groups, collective) = (Vec::new(), args.collective.collective);
    let sizes = collective.sizes(&args.bytes);
    for (k, g) in compiled.policy.groups.iter().enumerate() {
        let mut choices = Vec::new();
        for &bytes in sizes.iter().filter(|_| !g.rows(collective).is_empty()) {
            let d = compiled.decide(collective, k, &(0..g.hosts.len()).collect::<Vec<_>>(), bytes)?;
            choices.push(serde_json::json!({
                "bytes": bytes, "model": d.model, "algorithm": d.algorithm.name, "segment_bytes": d.parameters.segment,
                "radix": d.parameters.radix, "in_flight": d.parameters.in_flight, "peers": d.parameters.peers, "by_speed": d.parameters.by_speed, "predicted_s": d.predicted_s,
            }));
        }
        groups.push(serde_json::json!({ "name": g.name, "ranks": g.hosts.len(), "choices": choices, "scores": g.scores.iter().filter(|s| s.collective == collective).collect::<Vec<_>>() }));
    }
    let of = |cases: &[Case]| summary(cases).map(|(mean, worst)| serde_json::json!({ "mean": mean, "worst": worst, "cases": cases }));
    let (inside, met) = (cases.and_then(|c| of(&c.inside)), cases.and_then(|c| of(&c.met)));
    Ok(serde_json::json!({ "groups": groups, "regret": inside, "regret_met": met }))
}
