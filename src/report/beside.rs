//! What a trace measured, beside what is predicted of the same.

use super::drawn::{Done, Drawn, KINDS, Rows, called, done};
use super::picture::{Gantt, Span, gantt};
use super::traced::{Kind, Traced, TracedOp};
use super::{Block, Figure, Inputs};
use crate::collective::{Collective, bcast};
use crate::error::{Error, Result};
use crate::plan::{Location, everybody, members, plan};
use crate::policy::CompiledPolicy;
use crate::schedule::Schedule;
use crate::topology::Rank;
use crate::units;
use std::collections::BTreeMap;

/// True if each rank sent as many messages to each other one as it does by a schedule.
fn is_of(traced: &Traced, schedule: &Schedule) -> bool {
    let mut sent: BTreeMap<(Rank, Rank), i64> = BTreeMap::new();
    traced.ops.iter().filter(|op| op.kind == Kind::Send).for_each(|op| *sent.entry((op.rank, op.peer)).or_default() += 1);
    for (rank, program) in schedule.programs.iter().enumerate() {
        let to = (0..program.len()).filter_map(|op| program.sends_to(op));
        to.for_each(|to| *sent.entry((rank, to)).or_default() -= 1);
    }
    sent.values().all(|n| *n == 0)
}

/// What a trace measured, beside what is predicted of the same.
pub(super) fn beside(inputs: &Inputs, traced: &Traced) -> Result<Vec<Block>> {
    let (compiled, policy) = (inputs.policy, &inputs.policy.policy);
    // traces do not say which hosts ranks were on
    let by_samples = inputs.samples.filter(|(settings, _)| settings.hosts.len() == traced.ranks);
    let members = match by_samples {
        Some((settings, _)) => members(policy, &settings.hosts)?,
        None => everybody(policy),
    };
    if members.len() != traced.ranks {
        let (folder, ranks, own) = (&traced.folder, traced.ranks, members.len());
        return Err(Error::invalid(format!(
            "show the traces in {folder}: they are of {ranks} ranks, and the policy and its samples are of {own}"
        )));
    }
    let rows = Rows::new(policy, &members);
    let span = |op: &TracedOp| Span { row: rows.of[op.rank], kind: op.kind as usize, start_s: op.start_s, end_s: op.end_s };
    let spans: Vec<Span> = traced.ops.iter().map(span).collect();
    let end_s = spans.iter().map(|s| s.end_s).fold(0.0, f64::max);
    let table = Done::table(&rows, &done(&spans, rows.names.len()));
    // traces of older versions do not name the collective: it may be a broadcast
    let collective = traced.collective.unwrap_or(&bcast::COLLECTIVE);
    let root = if collective.rooted { traced.root } else { Some(0) };
    let from = traced.root.map_or(String::new(), |root| format!(" from rank {root}"));
    let unnamed = || format!("{}{from}", units::bytes(traced.bytes));
    let title = traced.collective.map_or_else(unnamed, |c| called(c, traced.bytes, root.unwrap_or_default()));
    let name = collective.name;
    let clocks = match traced.clocks_set {
        0 => "by each rank's own clock".to_string(),
        set => format!("by each rank's own clock, of which {set} were set by messages that were there before they were sent"),
    };
    let predicted = predicted(compiled, &members, traced, collective, root, &title)?;
    // both on one time axis
    let until_s = predicted.as_ref().map_or(end_s, |p| end_s.max(p.end_s()));
    let chart = Gantt {
        rows: rows.names.clone(),
        groups: policy.groups.iter().map(|g| g.name.clone()).collect(),
        kinds: KINDS[..if spans.iter().any(|s| s.kind == 2) { 3 } else { 2 }].to_vec(),
        spans,
        path: Vec::new(),
        end_s: until_s,
    };
    let mut blocks = vec![Block::Figure(Figure {
        id: format!("traced-{name}-{}", traced.bytes),
        title: format!("What ranks did, traced: {title}"),
        words: format!(
            "The last such call in {} took {}, {clocks}. A receive begins when it is posted.",
            traced.folder,
            units::seconds(end_s)
        ),
        svg: gantt(&chart)?,
        cells: None,
        table,
    })];
    match predicted {
        Err(why) => blocks.push(Block::Missing(format!("{why}: there is nothing predicted to hold beside it."))),
        Ok(drawn) => {
            let renamed = |f: Figure| Figure {
                id: format!("predicted-{name}-{}", traced.bytes),
                title: format!("The same, predicted: {title}"),
                ..f
            };
            let figures = drawn.up_to(end_s).figures(policy)?;
            blocks.extend(figures.into_iter().filter(|f| f.id.starts_with("gantt")).map(|f| Block::Figure(renamed(f))));
        }
    }
    Ok(blocks)
}

/// What is predicted of a traced call, or why nothing is.
fn predicted(
    compiled: &CompiledPolicy,
    members: &[Location],
    traced: &Traced,
    collective: &'static Collective,
    root: Option<Rank>,
    title: &str,
) -> Result<std::result::Result<Drawn, String>> {
    let nothing = |why: &str| Ok(Err(why.to_string()));
    let Some(root) = root else { return nothing("Which rank was the root is not known") };
    let shape = collective.shape(members.len(), root, traced.bytes);
    let plan = plan(compiled, members, collective, &shape)?;
    if plan.is_native() || plan.form.has_native() {
        return nothing("By the policy it has messages of the MPI library's own, which are not known");
    }
    // what cannot be held in memory cannot be drawn either
    let Ok(schedule) = plan.form.bounded_schedule(&shape) else { return nothing("It has too many messages") };
    if !is_of(traced, &schedule) {
        let asked = traced.collective.map_or_else(|| format!("broadcast of {title}"), |_| title.to_string());
        return nothing(&format!("Its messages are not those of the policy's {asked}, with numbers that may be combined in any order"));
    }
    Drawn::new(compiled, members, &plan, &schedule, &shape).map(Ok)
}
