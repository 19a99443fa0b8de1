//! `collwise export` of messages: what all ranks do in a collective, by an algorithm alone or under a policy.

use super::super::reasons::{FREE_WORK, not_replayed};
use super::Args;
use crate::model::{Cost, CostModel};
use crate::plan::{Location, PolyModel, everybody, plan};
use crate::policy::{CompiledPolicy, Policy};
use crate::predict::replay;
use crate::schedule::{self, Action, Program, Schedule};
use crate::topology::{Link, Rank};
use crate::units;
use anyhow::{Context, bail};
use std::path::Path;

/// What all ranks send, receive, copy and combine.
struct Messages {
    bytes: usize,
    schedule: Schedule,
    /// Of an algorithm alone nobody says where its ranks are.
    places: Option<(CompiledPolicy, Vec<Location>)>,
}

impl Messages {
    fn of(args: &Args) -> anyhow::Result<Messages> {
        let collective = args.collective.collective;
        args.collective.check_root(args.root)?;
        let given: Vec<usize> = args.bytes.into_iter().collect();
        let bytes = args.collective.sizes(&given)?[0];
        if let Some(chosen) = args.algorithm.chosen(collective)? {
            return Ok(Messages { bytes, schedule: chosen.schedule("export", args.root, bytes)?, places: None });
        }
        let path = args.file.as_ref().context("export messages: give a policy, or --algorithm with --ranks")?;
        let compiled = CompiledPolicy::new(Policy::read(path)?)?;
        let members = everybody(&compiled.policy);
        let schedule = scheduled(args, path, &compiled, &members, bytes)?;
        Ok(Messages { bytes, schedule, places: Some((compiled, members)) })
    }
}

/// What is done under a policy.
fn scheduled(args: &Args, path: &Path, compiled: &CompiledPolicy, members: &[Location], bytes: usize) -> anyhow::Result<Schedule> {
    let collective = args.collective.collective;
    let shape = collective.shape(members.len(), args.root, bytes);
    let plan = plan(compiled, members, collective, &shape)?;
    if let Some(why) = not_replayed(&plan, collective) {
        bail!("export the {} of {} under {}: {why}", collective.name, units::bytes(bytes), path.display());
    }
    Ok(plan.form.bounded_schedule(&shape)?)
}

/// As GOAL. Of an algorithm alone nobody says what copying and combining take.
pub fn goal(args: &Args) -> anyhow::Result<String> {
    let collective = args.collective.collective;
    let Messages { bytes, schedule, places } = Messages::of(args)?;
    let Some((compiled, members)) = places else {
        if schedule.programs.iter().any(Program::works) {
            eprintln!("{FREE_WORK}");
        }
        return Ok(schedule::goal(&schedule, |_, _| 0.0));
    };
    let costs = PolyModel::new(&compiled, &members, collective, bytes)?;
    let local = |rank: Rank, action| match action {
        Action::Copy { into, .. } => costs.copy(rank, into.len),
        Action::Combine { into, .. } => costs.combine(rank, into.len),
        _ => 0.0,
    };
    let unknown = |rank: Rank| schedule.programs[rank].actions().any(|action| local(rank, action) == f64::INFINITY);
    if let Some(rank) = (0..schedule.ranks()).find(|&rank| unknown(rank)) {
        let group = &compiled.policy.groups[members[rank].group].name;
        let path = args.file.as_deref().unwrap_or(Path::new("the policy")).display();
        bail!("export {} under {path}: it does not say what copying and combining take in \"{group}\"", collective.name);
    }
    Ok(schedule::goal(&schedule, local))
}

/// Each message takes as long as any other.
struct InTurns;

impl CostModel for InTurns {
    fn kinds(&self) -> usize {
        1
    }

    fn cost(&self, _: Link, _: usize) -> Cost {
        Cost { send_overhead: 1.0, gap: 1.0, transit: 1.0, ..Cost::default() }
    }
}

/// As a picture for Graphviz.
pub fn dot(args: &Args) -> anyhow::Result<String> {
    let Messages { schedule, places, .. } = Messages::of(args)?;
    let traces = replay(&schedule, &InTurns)?.traces;
    let Some((compiled, members)) = places else { return Ok(schedule::dot(&schedule, &traces, |rank| rank.to_string(), &[])) };
    let groups = &compiled.policy.groups;
    let label = |rank: Rank| format!("{rank}\n{}", groups[members[rank].group].hosts[members[rank].position]);
    let of_group = |group: usize| (0..members.len()).filter(|&rank| members[rank].group == group).collect();
    let boxes: Vec<(String, Vec<Rank>)> = groups.iter().enumerate().map(|(k, g)| (g.name.clone(), of_group(k))).collect();
    Ok(schedule::dot(&schedule, &traces, label, &boxes))
}
