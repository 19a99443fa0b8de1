//! `collwise predict`

use super::algorithm::{AlgorithmArgs, CollectiveArgs};
use super::explain::everybody;
use super::explain::or_dash;
use super::reasons::{FREE_WORK, broadcast_not_replayed, not_replayed};
use super::table::table;
use super::{Outcome, print, print_json};
use crate::error::Error;
use crate::model::{Values, model};
use crate::plan::{Location, PlannedGroup, PolyModel, by_form, plan, plan_form};
use crate::policy::{CompiledPolicy, Decision, Policy};
use crate::predict::completion;
use crate::schedule::Program;
use crate::units;
use anyhow::{Context, bail, ensure};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Predict times, of a policy or of one algorithm under one model.
#[derive(clap::Args)]
pub struct Args {
    /// The policy; without it, give --model, --ranks and --algorithm.
    #[arg(conflicts_with_all = ["model", "algorithm"])]
    policy: Option<PathBuf>,
    /// Sizes, separated by commas, such as 1,8KiB,1MiB.
    #[arg(long, value_parser = units::parse_bytes, value_delimiter = ',')]
    bytes: Vec<usize>,
    /// The root.
    #[arg(long, default_value_t = 0)]
    root: usize,
    /// The model.
    #[arg(long, requires_all = ["ranks", "algorithm"])]
    model: Option<String>,
    /// A parameter of the model, NAME=VALUE in seconds or seconds per byte; a table: NAME=V1,V2,...
    #[arg(long = "param", value_name = "NAME=VALUE", requires = "model")]
    parameters: Vec<String>,
    #[command(flatten)]
    collective: CollectiveArgs,
    #[command(flatten)]
    algorithm: AlgorithmArgs,
    /// Take messages in when they come, as if each had room of its own; if not given, those that come before the bytes may be written wait.
    #[arg(long, requires = "algorithm")]
    eager: bool,
    /// Let each rank begin so many seconds after the one before it, or, if negative, before it.
    #[arg(long, value_name = "SECONDS", requires = "algorithm", allow_negative_numbers = true, value_parser = seconds)]
    skew: Option<f64>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    args.collective.check_root(args.root)?;
    match (&args.policy, &args.model) {
        (Some(path), _) => of_policy(args, path),
        (None, Some(name)) => of_model(args, name),
        (None, None) => bail!("predict: give a policy, or --model with --ranks and --algorithm"),
    }
}

fn of_policy(args: &Args, path: &std::path::Path) -> anyhow::Result<Outcome> {
    // refuses what only an algorithm has
    args.algorithm.chosen(args.collective.collective)?;
    let compiled = CompiledPolicy::new(Policy::read(path)?)?;
    let members = everybody(&compiled.policy);
    if by_form(args.collective.collective) {
        return of_forms(args, &compiled, &members);
    }
    let (mut all, mut rows) = (Vec::new(), Vec::new());
    let mut notes = BTreeSet::new();
    for bytes in args.collective.sizes(&args.bytes)? {
        let plan = plan(&compiled, &members, args.root, bytes)?;
        // the whole plan under the poly-model, message by message
        let (replayed, obstacle) = match broadcast_not_replayed(&plan) {
            Some(why) => (None, Some(why)),
            None => match plan.two_level.schedule(members.len()) {
                Ok(schedule) => {
                    (Some(completion(&schedule, &PolyModel::new(&compiled, &members, args.collective.collective, bytes)?)?), None)
                }
                Err(Error::TooLarge(why)) => (None, Some(format!("failed to {why}"))),
                Err(e) => return Err(e.into()),
            },
        };
        notes.extend(obstacle.clone());
        // where the library's own runs over all, nothing else does inside groups
        let runs = |d: &&Decision| !plan.is_native() || plan.groups.len() == 1 && d.algorithm.is_native() && !plan.untuned;
        let inside = |g: &PlannedGroup| g.decision.as_ref().filter(runs).map(|d| d.predicted_s);
        let groups: Vec<(String, Option<f64>)> =
            plan.groups.iter().map(|g| (compiled.policy.groups[g.group].name.clone(), inside(g))).collect();
        let mut row = vec![units::bytes(bytes), or_dash(plan.seconds()), replayed.map_or("-".into(), units::seconds)];
        row.extend(compiled.policy.groups.iter().map(|p| or_dash(groups.iter().find(|g| g.0 == p.name).and_then(|g| g.1))));
        rows.push(row);
        let groups: serde_json::Map<_, _> = groups.into_iter().map(|(name, t)| (name, t.into())).collect();
        all.push(serde_json::json!({ "bytes": bytes, "predicted_s": plan.seconds(), "replayed_s": replayed, "not_replayed": obstacle, "native_s": plan.native_s, "groups_s": groups }));
    }
    if args.json {
        print_json(&all)?;
    } else {
        let names: Vec<&str> = compiled.policy.groups.iter().map(|g| g.name.as_str()).collect();
        print(&table(&[&["bytes", "in all", "replayed"][..], &names].concat(), 0, &rows))?;
        notes.iter().for_each(|why| eprintln!("collwise: not replayed: {why}"));
    }
    Ok(Outcome::Done)
}

/// A collective that has forms.
fn of_forms(args: &Args, compiled: &CompiledPolicy, members: &[Location]) -> anyhow::Result<Outcome> {
    let collective = args.collective.collective;
    let (mut all, mut rows, mut notes) = (Vec::new(), Vec::new(), BTreeSet::new());
    for bytes in args.collective.sizes(&args.bytes)? {
        let shape = collective.shape(members.len(), args.root, bytes);
        let plan = plan_form(compiled, members, collective, &shape)?;
        let (replayed, obstacle) = match not_replayed(&plan, collective) {
            Some(why) => (None, Some(why)),
            None => match plan.form.seconds(compiled, members, &shape) {
                Err(Error::TooLarge(why)) => (None, Some(format!("failed to {why}"))),
                found => (Some(found?), None),
            },
        };
        notes.extend(obstacle.clone());
        if replayed == Some(f64::INFINITY) {
            bail!(
                "predict {}: the policy, of an older version, does not say what copying and combining takes: tune anew",
                collective.one()
            );
        }
        let size = if collective.sized() { units::bytes(bytes) } else { "-".into() };
        rows.push(vec![collective.name.into(), size, or_dash(plan.predicted_s), replayed.map_or("-".into(), units::seconds)]);
        all.push(serde_json::json!({ "bytes": bytes, "predicted_s": plan.predicted_s, "replayed_s": replayed, "not_replayed": obstacle, "form": plan.form.words() }));
    }
    if args.json {
        print_json(&all)?;
    } else {
        print(&table(&["collective", "bytes", "in all", "replayed"], 1, &rows))?;
        notes.iter().for_each(|why| eprintln!("collwise: not replayed: {why}"));
    }
    Ok(Outcome::Done)
}

fn of_model(args: &Args, name: &str) -> anyhow::Result<Outcome> {
    let costs = model(name)?.costs(&values(name, &args.parameters)?)?;
    let chosen = args.algorithm.chosen(args.collective.collective)?.context("predict: give --ranks and --algorithm")?;
    let (mut all, mut rows, mut works) = (Vec::new(), Vec::new(), false);
    for bytes in args.collective.sizes(&args.bytes)? {
        let mut schedule = chosen.schedule("predict", args.root, bytes)?;
        if args.eager {
            schedule = schedule.eager();
        }
        if let Some(step_s) = args.skew {
            schedule = schedule.skewed(step_s);
        }
        let t = completion(&schedule, costs.as_ref())?;
        works |= schedule.programs.iter().any(Program::works);
        rows.push(vec![units::bytes(bytes), units::seconds(t)]);
        all.push(serde_json::json!({
            "bytes": bytes, "predicted_s": t, "messages": schedule.messages(), "model": name, "algorithm": chosen.algorithm.name, "ranks": chosen.ranks,
        }));
    }
    if args.json {
        print_json(&all)?
    } else {
        print(&table(&["bytes", "predicted"], 0, &rows))?
    }
    if works {
        eprintln!("{FREE_WORK}");
    }
    Ok(Outcome::Done)
}

/// Seconds that clocks can count.
fn seconds(text: &str) -> Result<f64, String> {
    let read = text.parse::<f64>().ok().filter(|seconds| seconds.abs() <= units::MAX_SECONDS);
    read.ok_or_else(|| format!("give seconds, {:e} at most", units::MAX_SECONDS))
}

/// Reads NAME=VALUE pairs; what the model keeps as a table takes a list.
fn values(name: &str, pairs: &[String]) -> anyhow::Result<Values> {
    let tables = model(name)?.tables;
    let mut values = Values::default();
    for pair in pairs {
        let (key, text) = pair.split_once('=').with_context(|| format!("read --param {pair}: write NAME=VALUE"))?;
        let read = |t: &str| t.trim().parse::<f64>().with_context(|| format!("read --param {pair}: \"{t}\" is no number"));
        let before = if tables.iter().any(|(t, _)| *t == key) {
            values.tables.insert(key.into(), text.split(',').map(read).collect::<anyhow::Result<_>>()?).is_some()
        } else {
            values.scalars.insert(key.into(), read(text)?).is_some()
        };
        ensure!(!before, "read --param {pair}: {key} was given before");
    }
    Ok(values)
}
