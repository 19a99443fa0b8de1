//! The schedule of a collective for sizes and roots: who hears from whom, and what every rank does when, as predicted and as traced.

use super::beside::beside;
use super::choices::tuned;
use super::drawn::{Drawn, called, host};
use super::picture::Branch;
use super::plans::Plans;
use super::trees::{branches, parents};
use super::{Block, Chooser, Inputs, Section, View};
use crate::collective::{Collective, NATIVE, Shape, bcast};
use crate::error::{Error, Result};
use crate::plan::{Form, Location, Plan, plan};
use crate::policy::{CompiledPolicy, Policy};
use crate::topology::Rank;
use crate::units;
use rayon::prelude::*;

/// So many roots are there to choose from, among few ranks and among many: the first ranks of the largest groups.
const MOST_ROOTS: usize = 4;
const MOST_ROOTS_OF_MANY: usize = 2;
/// More ranks than these are many.
const MANY: usize = 40;
/// Operations of all schedules that are replayed: a page is there within seconds.
const MOST_OPERATIONS: usize = 1_500_000;
/// Programs of so many ranks tell how many operations all have.
const LOOKED_AT: usize = 8;

pub(super) fn section(inputs: &Inputs, plans: &Plans) -> Result<Section> {
    let policy = &inputs.policy.policy;
    let everybody = &plans.members;
    let roots = roots(everybody);
    let collectives: Vec<&'static Collective> = tuned(policy).collect();
    let name = |&root: &Rank| format!("rank {root}, {} ({})", host(policy, everybody[root]), policy.groups[everybody[root].group].name);
    let chooser = Chooser {
        id: "schedule",
        collectives: collectives.iter().map(|c| c.name.to_string()).collect(),
        roots: roots.iter().map(name).collect(),
        sizes: plans.sizes.iter().map(|&bytes| units::bytes(bytes)).collect(),
        views: views(plans, &collectives, &roots)?,
    };
    let mut blocks = if collectives.is_empty() {
        vec![Block::Missing("The policy has no row of any collective: all are the MPI library's own, whose messages are not known.".into())]
    } else {
        vec![Block::Chooser(chooser)]
    };
    for traced in inputs.traces {
        blocks.extend(beside(inputs, traced)?);
    }
    if inputs.traces.is_empty() {
        blocks.push(Block::Missing(
            "What ranks did, measured, is shown beside with --trace FOLDER, of a program that ran with COLLWISE_TRACE=FOLDER.".into(),
        ));
    }
    let words = "A collective for the size and root that are chosen here: the tree of its ranks, what every rank is predicted to do when, and in orange the \
                 operations that its end waits for."
        .into();
    Ok(Section { id: "schedule", title: "The schedule", words, blocks })
}

/// The first rank of each group, the largest groups first.
fn roots(everybody: &[Location]) -> Vec<Rank> {
    let mut groups: Vec<(usize, Rank, usize)> = Vec::new();
    for (rank, at) in everybody.iter().enumerate() {
        match groups.iter_mut().find(|g| g.0 == at.group) {
            Some(group) => group.2 += 1,
            None => groups.push((at.group, rank, 1)),
        }
    }
    // that of the first group is the one that tuning began at
    let first = groups.first().map(|g| g.1);
    groups.sort_by_key(|g| (Some(g.1) != first, std::cmp::Reverse(g.2), g.1));
    groups.truncate(if everybody.len() > MANY { MOST_ROOTS_OF_MANY } else { MOST_ROOTS });
    groups.into_iter().map(|g| g.1).collect()
}

/// What is seen for a choice on the page.
struct Asked {
    collective: usize,
    root: Option<usize>,
    size: Option<usize>,
    shape: Shape,
    plan: Plan,
    /// About so many operations.
    operations: usize,
}

/// A view for each collective, root and size that there is; those with the fewest operations are drawn first, as long as there is time.
fn views(plans: &Plans, collectives: &[&'static Collective], roots: &[Rank]) -> Result<Vec<View>> {
    let (mut wanted, members) = (Vec::new(), &plans.members);
    for (k, collective) in collectives.iter().enumerate() {
        let of =
            if collective.rooted { roots.iter().copied().enumerate().map(|(k, root)| (Some(k), root)).collect() } else { vec![(None, 0)] };
        for (root, rank) in of {
            let sizes = collective.sizes(plans.sizes).into_iter().enumerate();
            wanted.extend(
                sizes.map(|(size, bytes)| (k, root, collective.sized().then_some(size), collective.shape(members.len(), rank, bytes))),
            );
        }
    }
    let planned = wanted.into_par_iter().map(|(collective, root, size, shape)| {
        let plan = plans.of_all(collectives[collective], shape.root, shape.bytes)?;
        let operations = operations(&plan.form, &shape)?;
        Ok(Asked { collective, root, size, shape, plan, operations })
    });
    let planned: Vec<Asked> = planned.collect::<Result<_>>()?;
    let mut by_operations: Vec<usize> = (0..planned.len()).collect();
    by_operations.sort_by_key(|&k| planned[k].operations);
    let (mut left, mut drawn) = (MOST_OPERATIONS, vec![false; planned.len()]);
    for k in by_operations {
        drawn[k] = planned[k].operations <= left;
        left = left.saturating_sub(planned[k].operations);
    }
    planned.into_par_iter().zip(drawn).map(|(asked, is_drawn)| view(plans.compiled, members, &asked, is_drawn)).collect()
}

/// About how many operations a form has; of what is not known, none.
fn operations(form: &Form, shape: &Shape) -> Result<usize> {
    if form.has_native() {
        return Ok(0);
    }
    let step = shape.ranks.div_ceil(LOOKED_AT).max(1);
    // the root may do more than all others
    let others: Vec<Rank> = (0..shape.ranks).skip(step / 2).step_by(step).filter(|&rank| rank != shape.root).collect();
    let of = |rank: Rank| form.program(rank, shape).map(|program| program.len());
    let all = others.iter().map(|&rank| of(rank)).sum::<Result<usize>>()?;
    Ok(of(shape.root)? + all * shape.ranks / others.len().max(1))
}

fn view(compiled: &CompiledPolicy, members: &[Location], asked: &Asked, is_drawn: bool) -> Result<View> {
    let Asked { collective, root, size, shape, plan, .. } = asked;
    let measured = measured(&compiled.policy, members, plan, shape.bytes);
    let takes = match (plan.predicted_s.map(units::seconds), measured) {
        (None, _) => "for as long as nobody knows".into(),
        (Some(seconds), Some(how)) => format!("takes {seconds} ({how})"),
        (Some(seconds), None) => format!("predicted to take {seconds}"),
    };
    let what = called(plan.form.collective(), shape.bytes, shape.root);
    let mut words = format!("{what} among {} ranks: {}, {takes}", members.len(), plan.words());
    let mut figures = Vec::new();
    if plan.is_native() || plan.form.has_native() {
        words += ". The MPI library's own messages are not known.";
    } else if is_drawn && let Some(schedule) = schedule(plan, shape)? {
        let drawn = Drawn::new(compiled, members, plan, &schedule, shape)?;
        let end = units::seconds(drawn.end_s());
        // the chart is of the models, whatever was measured
        words += &if takes.ends_with(&end) { ".".into() } else { format!(", by the models of the chart {end}.") };
        figures = drawn.figures(&compiled.policy)?;
    } else {
        words += ". It has too many messages to be drawn here: `collwise explain POLICY` says more.";
    }
    Ok(View { collective: *collective, root: *root, size: *size, words, figures })
}

/// Whether what is said of a plan's time rests on measured times, and on which.
fn measured(policy: &Policy, members: &[Location], plan: &Plan, bytes: usize) -> Option<&'static str> {
    let (collective, routed) = (plan.form.collective(), plan.routed());
    let of_group = routed.filter(|r| r.groups.len() == 1).and_then(|r| r.groups[0].decision.as_ref());
    let inside = plan.decision.as_ref().or(of_group);
    // by size, whether it was measured there
    let rows: Vec<(usize, bool)> = match inside {
        Some(decision) => {
            // of the library's own there is nothing but what was measured
            let all = policy.groups[members[0].group].rows(collective).iter().filter(|_| decision.from_row);
            all.map(|r| (r.at_bytes, r.algorithm == NATIVE || r.evidence.measured_s == Some(r.evidence.seconds()))).collect()
        }
        None if plan.is_native() => {
            policy.two_level(collective).iter().filter(|r| r.evidence.native_s.is_some()).map(|r| (r.at_bytes, true)).collect()
        }
        // what goes from group to group as a whole is predicted from what each group takes
        None if !plan.from_row || routed.is_some_and(|r| r.decided.is_none()) => Vec::new(),
        None => policy.two_level(collective).iter().map(|r| (r.at_bytes, r.evidence.measured_s.is_some())).collect(),
    };
    let near = [rows.iter().rev().find(|r| r.0 <= bytes), rows.iter().find(|r| r.0 >= bytes)];
    let mut near = near.into_iter().flatten().peekable();
    near.peek()?;
    let is_there = near.clone().any(|r| r.0 == bytes);
    near.all(|r| r.1).then_some(if is_there || !collective.sized() { "measured" } else { "from measured sizes" })
}

/// Its schedule, if memory holds it.
fn schedule(plan: &Plan, shape: &Shape) -> Result<Option<crate::schedule::Schedule>> {
    match plan.form.bounded_schedule(shape) {
        Err(Error::TooLarge(_)) => Ok(None),
        found => found.map(Some),
    }
}

/// The ranks of a broadcast's schedule, each with from whom it hears first, those of one group as one where they are more than `most`; nothing where nobody
/// knows its messages.
///
/// # Errors
/// As [`plan`].
pub fn first_tree(compiled: &CompiledPolicy, members: &[Location], root: Rank, bytes: usize, most: usize) -> Result<Vec<Branch>> {
    let shape = bcast::COLLECTIVE.shape(members.len(), root, bytes);
    let plan = plan(compiled, members, &bcast::COLLECTIVE, &shape)?;
    if plan.form.has_native() {
        return Ok(Vec::new());
    }
    let schedule = plan.form.bounded_schedule(&shape)?;
    // the order of a program's receives is that of its messages
    let heard = parents(&schedule, |_, op| op as f64);
    Ok(branches(&heard, root, most, |rank| members[rank].group, |rank| host(&compiled.policy, members[rank])))
}
