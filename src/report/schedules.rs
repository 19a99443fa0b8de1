//! The schedule of a collective for sizes and roots: who hears from whom, and what every rank does when, as predicted and as traced.

use super::beside::Call;
use super::choices::tuned;
use super::drawn::{Drawn, called, host};
use super::picture::Branch;
use super::plans::{Plans, as_far_as};
use super::trees::{branches, last_receivers, parents, spread};
use super::{Block, Chooser, Figure, Inputs, Section, View};
use crate::collective::{Collective, NATIVE, Shape};
use crate::error::{Error, Result};
use crate::plan::{Form, Location, Plan, PolyModel, plan};
use crate::policy::{CompiledPolicy, Policy};
use crate::predict::replay;
use crate::schedule::Schedule;
use crate::topology::Rank;
use crate::units;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// So many roots are there to choose from: the first ranks of the largest groups. Among more ranks each decision takes longer and each picture has more in it: there are fewer,
/// so that a page has room and time for all sizes from each.
const MOST_ROOTS: usize = 32;
const MOST_ROOTS_TIMES_RANKS: usize = 1 << 10;
const LEAST_ROOTS: usize = 2;
/// What deciding from all roots but the first may cost, in events that are replayed: among thousands of ranks about a second, and among tens, where more of them are replayed in
/// that, as many as all places of the page take.
const MOST_EVENTS: u64 = 1 << 22;
const MOST_EVENTS_TIMES_RANKS: u64 = 1 << 30;
/// Operations of all schedules that are replayed from the first root, or that have none, and from the others, among thousands of ranks and among tens: a page is there within seconds.
const MOST_OPERATIONS: usize = 1_200_000;
const MOST_OPERATIONS_FROM_OTHERS: usize = 400_000;
const MOST_OPERATIONS_FROM_OTHERS_TIMES_RANKS: usize = 1 << 28;
/// Where a message goes in too many segments to be drawn, so many of them are.
const FIRST_SEGMENTS: usize = 4;
/// So many of the groups that have no root here are named.
const MOST_NAMED: usize = 12;
const NOT_TRACED: &str = " Of this collective, size and root nothing was traced.";
/// Programs of so many ranks tell how many operations all have.
const LOOKED_AT: usize = 8;

pub(super) fn section(inputs: &Inputs, plans: &Plans) -> Result<Section> {
    let policy = &inputs.policy.policy;
    let name = |members: &[Location], root: Rank| {
        format!("rank {root}, {} ({})", host(policy, members[root]), policy.groups[members[root].group].name)
    };
    let calls = inputs.traces.iter().map(|traced| Call::of(inputs, traced)).collect::<Result<Vec<_>>>()?;
    let (mut firsts, mut left_out) = roots(plans.members());
    let traced = calls.iter().filter(|call| call.collective.rooted && call.members == plans.members()).filter_map(|call| call.root);
    firsts.extend(traced);
    let mut seen = FxHashSet::default();
    firsts.retain(|&root| seen.insert(root));
    left_out.retain(|&group| firsts.iter().all(|&root| plans.members()[root].group != group));
    let mut choices = Choices {
        collectives: tuned(policy).collect(),
        roots: firsts.iter().map(|&root| name(plans.members(), root)).collect(),
        sizes: plans.sizes.to_vec(),
    };
    let mut places: Vec<Place> = Vec::new();
    for (k, &collective) in choices.collectives.iter().enumerate() {
        let of = if collective.rooted { firsts.iter().enumerate().map(|(k, &root)| (Some(k), root)).collect() } else { vec![(None, 0)] };
        for (root, rank) in of {
            let shape = |bytes| collective.shape(plans.members().len(), rank, bytes);
            let place = |bytes| Place { collective: k, root, shape: shape(bytes), call: None, other_order: None };
            places.extend(collective.sizes(plans.sizes).into_iter().map(place));
        }
    }
    // what was traced stands where it is chosen
    for call in &calls {
        let Some(rank) = call.root else { continue };
        let (collective, shape) = (call.collective, call.collective.shape(call.members.len(), rank, call.traced.bytes));
        let k = place_of(&mut choices.collectives, collective);
        let root = collective.rooted.then(|| place_of(&mut choices.roots, name(&call.members, rank)));
        if collective.sized() && !choices.sizes.contains(&shape.bytes) {
            choices.sizes.push(shape.bytes);
        }
        places.retain(|p| (p.collective, p.root, p.shape.bytes) != (k, root, shape.bytes));
        let other_order = Some(&call.members[..]).filter(|members| *members != plans.members());
        places.push(Place { collective: k, root, shape, call: Some(call), other_order });
        // a root in another order of ranks is none of those above
        let known: Vec<usize> = places.iter().filter(|p| (p.collective, p.root) == (k, root)).map(|p| p.shape.bytes).collect();
        let missing = collective.sizes(plans.sizes).into_iter().filter(|bytes| other_order.is_some() && !known.contains(bytes));
        places.extend(missing.map(|bytes| Place { collective: k, root, shape: Shape { bytes, ..shape }, call: None, other_order }));
    }
    choices.sizes.sort_unstable();
    places.sort_by_key(|p| (p.collective, p.root, p.shape.bytes));
    let start = plans.sizes[plans.sizes.len() / 2];
    let mut blocks = if choices.collectives.is_empty() {
        vec![Block::Missing("The policy has no row of any collective: all are the MPI library's own, whose messages are not known.".into())]
    } else {
        vec![Block::Chooser(Chooser {
            id: "schedule",
            collectives: choices.collectives.iter().map(|c| c.name.to_string()).collect(),
            sizes: choices.sizes.iter().map(|&bytes| units::bytes(bytes)).collect(),
            start: choices.sizes.iter().position(|&bytes| bytes == start).unwrap_or_default(),
            views: views(plans, &choices, &places, &from_others(plans, &choices, &firsts)?, !calls.is_empty())?,
            roots: choices.roots,
        })]
    };
    for call in calls.iter().filter(|call| call.root.is_none()) {
        blocks.push(Block::Figure(call.figure(policy, 0.0)?));
        blocks.push(Block::Missing("Which rank was its root is not known: there is nothing predicted to hold beside it.".into()));
    }
    if calls.is_empty() {
        blocks.push(Block::Missing(
            "What ranks did, measured, is shown beside with --trace FOLDER, of a program that ran with COLLWISE_TRACE=FOLDER.".into(),
        ));
    }
    let mut words = "A collective for the size and root that are chosen here: the tree of its ranks, what every rank is predicted to do when, and in orange the \
                     operations that its end waits for. Charts are of the models alone: where one ends at another time than its collective takes, that was measured, or corrected by \
                     what was."
        .to_string();
    words += " Roots are the first ranks of groups (of a group alone the first, the middle and the last), and those that were traced. What was measured was so from rank 0: from \
              other ranks of its group another choice may be predicted to be faster. From all ranks of any other group whose processors are alike the same is done.";
    if !left_out.is_empty() {
        let names: Vec<&str> = left_out.iter().take(MOST_NAMED).map(|&g| policy.groups[g].name.as_str()).collect();
        let more = if left_out.len() > names.len() { format!(" and {} more", left_out.len() - names.len()) } else { String::new() };
        words += &format!(
            " The smallest groups have none here ({}{more}): `collwise explain POLICY --collective NAME --root RANK --bytes SIZE` says what is done from there.",
            names.join(", ")
        );
    }
    Ok(Section { id: "schedule", title: "The schedule", words, blocks })
}

/// What there is to choose.
struct Choices {
    collectives: Vec<&'static Collective>,
    roots: Vec<String>,
    sizes: Vec<usize>,
}

/// A choice of these.
struct Place<'a> {
    collective: usize,
    root: Option<usize>,
    shape: Shape,
    /// What was traced of it.
    call: Option<&'a Call<'a>>,
    /// Who takes part, where ranks are in another order than the policy has them, or only some of these.
    other_order: Option<&'a [Location]>,
}

/// Where a thing is in a list, to which it is added if it is not there.
fn place_of<T: PartialEq>(all: &mut Vec<T>, thing: T) -> usize {
    all.iter().position(|known| *known == thing).unwrap_or_else(|| {
        all.push(thing);
        all.len() - 1
    })
}

/// The first rank of each group (of one alone the middle and the last, too), the largest groups first, of so many as there are roots to choose from; and the groups that are left out.
fn roots(everybody: &[Location]) -> (Vec<Rank>, Vec<usize>) {
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
    let most = (MOST_ROOTS_TIMES_RANKS / everybody.len()).clamp(LEAST_ROOTS, MOST_ROOTS);
    let left_out = groups.split_off(groups.len().min(most));
    let mut roots: Vec<Rank> = groups.iter().map(|g| g.1).collect();
    // of one group its processors may be unlike
    if let [(_, first, ranks)] = groups[..] {
        roots.extend([ranks / 2, ranks - 1].map(|k| first + k).into_iter().filter(|&root| root > first));
        roots.dedup();
    }
    (roots, left_out.into_iter().map(|g| g.0).collect())
}

/// What is done from a root for a size.
type FromRoots = FxHashMap<(&'static Collective, Rank, usize), Plan>;

/// What is done from all roots but the first one, as far as that is decided here.
fn from_others(plans: &Plans, choices: &Choices, firsts: &[Rank]) -> Result<FromRoots> {
    let rooted = choices.collectives.iter().copied().filter(|c| c.rooted);
    let all = rooted.flat_map(|c| firsts.iter().skip(1).map(move |&root| ((c, root), c.sizes(plans.sizes))));
    let all: Vec<((&'static Collective, Rank), Vec<usize>)> = all.collect();
    let most = MOST_EVENTS.max(MOST_EVENTS_TIMES_RANKS / plans.members().len() as u64);
    let decided = as_far_as(&all, most, |&(c, root), bytes| plans.of_all(c, root, bytes))?;
    let each = all.iter().zip(decided).flat_map(|(((c, root), sizes), found)| {
        sizes.iter().zip(found).filter_map(|(&bytes, plan)| Some(((*c, *root, bytes), plan?))).collect::<Vec<_>>()
    });
    Ok(each.collect())
}

/// What is seen for a choice on the page.
struct Asked<'a> {
    place: &'a Place<'a>,
    members: &'a [Location],
    /// `None`: it is not decided here.
    plan: Option<Plan>,
    /// About so many operations.
    operations: usize,
}

/// A view for each place; what was traced, and of the others those with the fewest operations, are drawn first, as long as there is time.
fn views(plans: &Plans, choices: &Choices, places: &[Place], from_others: &FromRoots, some_traced: bool) -> Result<Vec<View>> {
    let planned = places.par_iter().map(|place| {
        let (collective, shape) = (choices.collectives[place.collective], &place.shape);
        let (members, plan) = match place.other_order {
            Some(members) => (members, Some(plan(plans.compiled, members, collective, shape)?)),
            None => match from_others.get(&(collective, shape.root, shape.bytes)) {
                Some(plan) => (plans.members(), Some(plan.clone())),
                None if place.root.unwrap_or(0) > 0 && place.call.is_none() => (plans.members(), None),
                None => (plans.members(), Some(plans.of_all(collective, shape.root, shape.bytes)?)),
            },
        };
        let operations = plan.as_ref().map_or(Ok(0), |plan| operations(&plan.form, shape))?;
        Ok(Asked { place, members, plan, operations })
    });
    let planned: Vec<Asked> = planned.collect::<Result<_>>()?;
    let mut by_operations: Vec<usize> = (0..planned.len()).collect();
    by_operations.sort_by_key(|&k| (planned[k].place.call.is_none(), planned[k].operations));
    let most_from_others = MOST_OPERATIONS_FROM_OTHERS.max(MOST_OPERATIONS_FROM_OTHERS_TIMES_RANKS / plans.members().len());
    let (mut left, mut drawn) = ([MOST_OPERATIONS, most_from_others], vec![false; planned.len()]);
    for k in by_operations {
        let place = planned[k].place;
        let left = &mut left[usize::from(place.root.unwrap_or(0) > 0 && place.call.is_none())];
        drawn[k] = planned[k].operations <= *left;
        *left = left.saturating_sub(planned[k].operations);
    }
    let seen = planned.into_par_iter().zip(drawn).map(|(asked, is_drawn)| {
        let Place { collective, root, shape, .. } = *asked.place;
        let (words, figures) = match &asked.plan {
            Some(plan) => view(plans.compiled, &asked, plan, is_drawn, some_traced)?,
            None => (not_decided(choices.collectives[collective], &shape) + if some_traced { NOT_TRACED } else { "" }, Vec::new()),
        };
        let size = if choices.collectives[collective].sized() { choices.sizes.iter().position(|&b| b == shape.bytes) } else { None };
        Ok(View { collective, root, size, words, figures })
    });
    seen.collect()
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

/// What is said of a place where a page has no time to decide.
fn not_decided(collective: &Collective, shape: &Shape) -> String {
    let size = if collective.sized() { format!(" --bytes {}", units::bytes(shape.bytes)) } else { String::new() };
    format!(
        "{} among {} ranks: not decided, since comparing candidates elsewhere took all the replays that a page has; `collwise explain POLICY --collective {} --root {}{size}` decides it.",
        called(collective, shape.bytes, shape.root),
        shape.ranks,
        collective.name,
        shape.root
    )
}

/// What is said and shown of a place.
fn view(compiled: &CompiledPolicy, asked: &Asked, plan: &Plan, is_drawn: bool, some_traced: bool) -> Result<(String, Vec<Figure>)> {
    let Asked { place: Place { shape, call, .. }, members, .. } = asked;
    let policy = &compiled.policy;
    let measured = measured(policy, members, plan, shape.bytes);
    let takes = match (plan.predicted_s.map(units::seconds), measured) {
        (None, _) => "no time is predicted".into(),
        (Some(seconds), Some(how)) => format!("takes {seconds} ({how})"),
        (Some(seconds), None) => format!("predicted to take {seconds}"),
    };
    let what = called(plan.form.collective(), shape.bytes, shape.root);
    let mut words = format!("{what} among {} ranks: {}, {takes}", members.len(), plan.words());
    let (mut figures, mut until_s) = (Vec::new(), 0.0);
    if plan.is_native() || plan.form.has_native() {
        words += ". The MPI library's own messages are not known.";
    } else if let Some((schedule, begun)) = drawn_of(plan, shape, is_drawn)? {
        let drawn = Drawn::new(compiled, members, plan, &schedule, shape)?;
        let end = units::seconds(drawn.end_s());
        until_s = drawn.end_s();
        words += &match begun {
            Some(bytes) => format!(". Tree and chart are of its first {}: what follows goes the same way.", units::bytes(bytes)),
            None if takes.ends_with(&end) => ".".into(),
            // the chart is of the models, whatever was measured
            None => format!(", by the models of the chart {end}."),
        };
        if begun.is_none() && call.is_some_and(|call| !call.is_of(&schedule)) {
            words += " What was traced has other messages than these.";
        }
        // both on one time axis
        figures = drawn.up_to(call.map_or(0.0, Call::end_s)).figures(policy)?;
    } else {
        words += ". It has too many messages to be drawn here: `collwise explain POLICY` says more.";
    }
    match call {
        Some(call) => figures.push(call.figure(policy, until_s)?),
        None if some_traced => words += NOT_TRACED,
        None => {}
    }
    Ok((words, figures))
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

/// Its schedule, or that of so many bytes of its first segments, where all of them are not to be drawn, or memory does not hold it; nothing where it goes in none.
fn drawn_of(plan: &Plan, shape: &Shape, whole: bool) -> Result<Option<(Schedule, Option<usize>)>> {
    let found = if whole { plan.form.bounded_schedule(shape) } else { Err(Error::TooLarge(String::new())) };
    match (found, plan.form.begun(shape, FIRST_SEGMENTS)) {
        (Err(Error::TooLarge(_)), Some((form, shape))) => Ok(Some((form.bounded_schedule(&shape)?, Some(shape.bytes)))),
        (Err(Error::TooLarge(_)), None) => Ok(None),
        (found, _) => Ok(Some((found?, None))),
    }
}

/// The ranks of a schedule, each with from whom it hears first, or whom it sends to last where the root ends it, those of one group as one where they are more
/// than `most`; nothing where nobody knows its messages.
///
/// # Errors
/// As [`plan`], and the policy lacks a link.
pub fn first_tree(
    compiled: &CompiledPolicy,
    members: &[Location],
    (collective, root): (&'static Collective, Rank),
    bytes: usize,
    most: usize,
) -> Result<Vec<Branch>> {
    let shape = collective.shape(members.len(), root, bytes);
    let plan = plan(compiled, members, collective, &shape)?;
    if plan.form.has_native() {
        return Ok(Vec::new());
    }
    let schedule = plan.form.bounded_schedule(&shape)?;
    // the order of a program's receives is that of its messages
    let in_order = |_: Rank, op: usize| op as f64;
    let tree = if collective.root_begins() {
        parents(&schedule, in_order)
    } else if collective.rooted {
        last_receivers(&schedule, root, in_order)
    } else {
        spread(&schedule, &replay(&schedule, &PolyModel::new(compiled, members, collective, bytes)?)?, root)
    };
    let hangs_on: Vec<Option<Rank>> = tree.into_iter().map(|other| Some(other?.0)).collect();
    Ok(branches(&hangs_on, root, most, |rank| members[rank].group, |rank| host(&compiled.policy, members[rank])))
}
