//! `collwise predict`

use super::algorithm::{AlgorithmArgs, CollectiveArgs};
use super::explain::or_dash;
use super::reasons::{FREE_WORK, not_replayed};
use super::table::table;
use super::{Outcome, print, print_json};
use crate::collective::{Collective, Shape};
use crate::error::Error;
use crate::model::{Values, model};
use crate::plan::{Location, Plan, PlannedGroup, everybody, plan};
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
    let collective = args.collective.collective;
    let (mut all, mut rows, mut notes) = (Vec::new(), Vec::new(), BTreeSet::new());
    let names: Vec<&str> = compiled.policy.groups.iter().map(|g| g.name.as_str()).collect();
    for bytes in args.collective.sizes(&args.bytes)? {
        let shape = collective.shape(members.len(), args.root, bytes);
        let plan = plan(&compiled, &members, collective, &shape)?;
        let (replayed, obstacle) = replayed(&compiled, &members, collective, &shape, &plan)?;
        let size = if collective.sized() { units::bytes(bytes) } else { "-".into() };
        let mut row = vec![size, or_dash(plan.predicted_s), or_dash(replayed)];
        let mut object = serde_json::json!({ "collective": collective.name, "bytes": bytes, "predicted_s": plan.predicted_s, "replayed_s": replayed, "not_replayed": obstacle, "ranks": members.len(), "form": plan.words() });
        if let Some(routed) = plan.routed() {
            // where the library's own runs over all, nothing else does inside groups
            let runs = |d: &&Decision| !plan.is_native() || routed.groups.len() == 1 && d.algorithm.is_native() && !routed.untuned;
            let seconds = |g: &PlannedGroup| g.decision.as_ref().filter(runs).map(|d| d.predicted_s);
            let inside = |group: usize| routed.groups.iter().find(|g| g.group == group).and_then(seconds);
            row.extend(shown(&names).map(|(group, _)| or_dash(inside(group))));
            let groups = routed.groups.iter().map(|g| (names[g.group].to_string(), seconds(g).into()));
            object["groups_s"] = groups.collect::<serde_json::Map<_, _>>().into();
            object["native_s"] = routed.native_s.into();
        }
        notes.extend(obstacle);
        rows.push(row);
        all.push(object);
    }
    if args.json {
        print_json(&all)?;
    } else {
        let header: Vec<&str> = ["bytes", "in all", "replayed"].into_iter().chain(shown(&names).map(|(_, name)| *name)).collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(header.len());
        print(&table(&header[..columns], 0, &rows))?;
        notes.iter().for_each(|why| eprintln!("collwise: not replayed: {why}"));
    }
    Ok(Outcome::Done)
}

/// So many groups have a column each; what more of them take is in the JSON.
const MOST_COLUMNS: usize = 12;

/// The groups that have a column, with their names.
fn shown<'a>(names: &'a [&'a str]) -> impl Iterator<Item = (usize, &'a &'a str)> {
    names.iter().enumerate().filter(|_| names.len() <= MOST_COLUMNS)
}

/// What the whole plan takes under the poly-model, message by message, or why that is not known.
fn replayed(
    compiled: &CompiledPolicy,
    members: &[Location],
    collective: &'static Collective,
    shape: &Shape,
    plan: &Plan,
) -> anyhow::Result<(Option<f64>, Option<String>)> {
    if let Some(why) = not_replayed(plan, collective) {
        return Ok((None, Some(why)));
    }
    match plan.form.seconds(compiled, members, shape) {
        Err(Error::TooLarge(why)) => Ok((None, Some(format!("failed to {why}")))),
        Ok(f64::INFINITY) => {
            let unknown = compiled.policy.groups.iter().filter(|g| g.compute.is_empty()).map(|g| format!("\"{}\"", g.name));
            let unknown = unknown.collect::<Vec<_>>().join(", ");
            bail!(
                "predict {}: the policy has no [[compute]] of {unknown}, which says what copying and combining takes there: tune anew",
                collective.one()
            )
        }
        found => Ok((Some(found?), None)),
    }
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
