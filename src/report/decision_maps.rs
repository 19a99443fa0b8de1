//! Decision maps: what a collective does for which size among how many ranks, over groups and inside them.

use super::choices::tuned;
use super::picture::{COLOURED, Decided, Decisions, SEGMENTED, decisions, family};
use super::plans::{Plans, as_far_as};
use super::room::FEW;
use super::tables::{Table, difference, named};
use super::{Cells, Figure};
use crate::collective::{Built, Collective, NATIVE, Parameters};
use crate::error::Result;
use crate::plan::{Decider, FARTHEST_FIRST, Form, Location, Plan, Routed, everybody, plan};
use crate::policy::{CompiledPolicy, Decision, Evidence, NO_OTHER, Policy};
use crate::two_level::{InterGroupAlgorithm, has_routes};
use crate::units;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// So many groups have rows in a decision map, the largest first.
const MOST_GROUPS: usize = 8;
/// What fewer ranks of a group would do is predicted, not looked up: for up to so many ranks that costs no more than a look at a page is worth.
const MOST_PREDICTED: usize = 32;
/// What deciding over groups may cost in all maps, in events that are replayed: about a second and a half of a slow processor. Among more ranks than these are few each takes
/// longer: more is built for it.
const MOST_EVENTS: u64 = 1 << 21;
const MOST_EVENTS_AMONG_MANY: u64 = 3 << 18;
/// What rows are called of the first hosts, and of as many hosts of each group: one of so many.
const BY_SLOT: &str = "by slot";
const PARTS: [(&str, usize); 3] = [("half each", 2), ("quarter each", 4), ("one each", usize::MAX)];
/// What a message goes by that goes from group to group as a whole, and inside each as is best there.
const WHOLE: [&str; 2] = ["whole", "as each is best"];

/// A map for each collective that the policy has rows for.
pub(super) fn maps(plans: &Plans) -> Result<Vec<Figure>> {
    let compiled = plans.compiled;
    let rows = rows(compiled);
    let collectives: Vec<&'static Collective> = tuned(&compiled.policy).collect();
    let has = |(c, row): &(&'static Collective, &Row)| match row.among {
        Among::All | Among::Groups(_) => !compiled.policy.two_level(c).is_empty(),
        Among::Group(g, _) => !compiled.policy.groups[g].rows(c).is_empty(),
    };
    let all = collectives.iter().flat_map(|&c| rows.iter().map(move |row| (c, row))).filter(has);
    let all = all.map(|(c, row)| ((c, row), c.sizes(plans.sizes)));
    let (inside, across): (Vec<_>, Vec<_>) = all.partition(|((_, row), _)| matches!(row.among, Among::Group(..)));
    // deciding over groups is what takes time here
    let decide = |(c, row): &(&'static Collective, &Row), bytes: usize| row.cell(plans, c, bytes, &Built::default());
    let mut decided = as_far_as(&across, most_events(plans), decide)?;
    decided.extend(decided_inside(plans, &inside)?.into_iter().map(|cells| cells.into_iter().map(Some).collect()));
    let all = [across, inside].concat();
    let cells = |(c, sizes): (&'static Collective, &Vec<usize>), cells: Vec<Option<Option<CellOf>>>| {
        let each = cells.into_iter().zip(sizes).map(|(cell, &bytes)| cell.unwrap_or_else(|| Some(not_decided(c, bytes))));
        each.collect::<Vec<_>>()
    };
    let all: Vec<_> = all.iter().zip(decided).map(|(((c, row), sizes), found)| (*c, *row, cells((c, sizes), found))).collect();
    let left_out = compiled.policy.groups.iter().filter(|g| !g.choices.is_empty()).count().saturating_sub(MOST_GROUPS);
    let of = |c: &'static Collective| all.iter().filter(|(of, ..)| *of == c).map(|(_, row, cells)| (*row, cells)).collect::<Vec<_>>();
    collectives.into_iter().map(|c| map(c, plans, &of(c), left_out)).collect()
}

/// What is done inside groups: rows of as many ranks are decided together, since schedules of one are those of the others.
fn decided_inside(plans: &Plans, all: &[((&'static Collective, &Row), Vec<usize>)]) -> Result<Vec<Vec<Option<CellOf>>>> {
    let mut together: BTreeMap<(&'static Collective, usize), Vec<usize>> = BTreeMap::new();
    for (k, ((collective, row), _)) in all.iter().enumerate() {
        together.entry((collective, row.ranks)).or_default().push(k);
    }
    let decided = together.into_par_iter().map(|((collective, _), places)| {
        let mut found: Vec<(usize, Vec<Option<CellOf>>)> = places.iter().map(|&k| (k, Vec::new())).collect();
        for &bytes in &all[places[0]].1 {
            let built = Built::default();
            for (k, cells) in &mut found {
                cells.push(all[*k].0.1.cell(plans, collective, bytes, &built)?);
            }
        }
        Ok(found)
    });
    let mut decided = decided.collect::<Result<Vec<_>>>()?.concat();
    decided.sort_by_key(|(k, _)| *k);
    Ok(decided.into_iter().map(|(_, cells)| cells).collect())
}

/// What all maps of a page may cost.
fn most_events(plans: &Plans) -> u64 {
    if plans.members().len() > FEW { MOST_EVENTS_AMONG_MANY } else { MOST_EVENTS }
}

/// What a cell says, and what it says in full.
type CellOf = (Decided, String);

/// A row of a map.
struct Row<'a> {
    name: String,
    ranks: usize,
    among: Among<'a>,
}

/// Who takes part.
enum Among<'a> {
    /// All ranks, of several groups.
    All,
    /// These, of several groups.
    Groups(Decider<'a>),
    /// The first ones of a group, as many as it says.
    Group(usize, usize),
}

/// Over groups all ranks, as many as a launcher would fill slots with, and parts of each group; then whole groups, and fewer of their ranks.
fn rows(compiled: &CompiledPolicy) -> Vec<Row<'_>> {
    let policy = &compiled.policy;
    let all = everybody(policy);
    let across = |name: &str, members: Vec<Location>| Row {
        name: name.into(),
        ranks: members.len(),
        among: Among::Groups(Decider::new(compiled, members)),
    };
    let several = |members: &[Location]| members.iter().any(|m| m.group != members[0].group);
    let part = |of: usize| all.iter().copied().filter(|m| m.position < (policy.groups[m.group].hosts.len() / of).max(1)).collect();
    let mut rows = Vec::new();
    if several(&all) {
        rows.push(Row { name: "all groups".into(), ranks: all.len(), among: Among::All });
        let slots = (1..=all.len().ilog2()).rev().map(|k| 1 << k).find(|&n| 2 * n <= all.len() && several(&all[..n]));
        let mut fewer: Vec<Row> = slots.into_iter().map(|n| across(BY_SLOT, all[..n].to_vec())).collect();
        for (name, of) in PARTS {
            let members: Vec<Location> = part(of);
            if members.len() < all.len() && fewer.iter().all(|row| row.ranks != members.len()) {
                fewer.push(across(name, members));
            }
        }
        fewer.sort_by_key(|row| std::cmp::Reverse(row.ranks));
        rows.extend(fewer);
    }
    let mut groups: Vec<usize> = (0..policy.groups.len()).filter(|&g| !policy.groups[g].choices.is_empty()).collect();
    groups.sort_by_key(|&g| std::cmp::Reverse(policy.groups[g].hosts.len()));
    groups.truncate(MOST_GROUPS);
    groups.sort_unstable();
    for g in groups {
        let n = policy.groups[g].hosts.len();
        let of_group = |ranks| Row { name: policy.groups[g].name.clone(), ranks, among: Among::Group(g, ranks) };
        rows.extend(std::iter::once(n).chain(fewer(n, all.len())).map(of_group));
    }
    rows
}

/// Fewer ranks of a group of so many than all of them; of large groups among many ranks none.
fn fewer(ranks: usize, all: usize) -> Vec<usize> {
    let is_too_much = ranks > MOST_PREDICTED && all > FEW;
    let mut counts = if is_too_much { Vec::new() } else { vec![(ranks / 2).min(MOST_PREDICTED), 4] };
    counts.retain(|&p| p >= 2 && p < ranks);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts.dedup();
    counts
}

impl Row<'_> {
    /// What is done for a size, with what was built for other groups; nothing where no row says it.
    fn cell(&self, plans: &Plans, collective: &'static Collective, bytes: usize, built: &Built) -> Result<Option<CellOf>> {
        let compiled = plans.compiled;
        Ok(match self.among {
            Among::All => Some(over_all(&compiled.policy, &plans.of_all(collective, 0, bytes)?, bytes)),
            Among::Groups(ref decider) => Some(predicted(&decider.plan(collective, &collective.shape(self.ranks, 0, bytes))?, bytes)),
            Among::Group(g, ranks) => {
                let is_whole = ranks == compiled.policy.groups[g].hosts.len();
                match unlike(compiled, g, collective, (ranks, bytes))? {
                    // what goes through one of them is no row's
                    Some(plan) if !is_whole || matches!(plan.form, Form::Coordinated(_)) => Some(predicted(&plan, bytes)),
                    _ if is_whole => whole(compiled, g, collective, bytes),
                    _ => {
                        let positions: Vec<usize> = (0..ranks).collect();
                        Some(among(&compiled.decide_with(collective, g, &positions, bytes, built)?, bytes))
                    }
                }
            }
        })
    }
}

/// What is said where a page has no time to decide.
fn not_decided(collective: &Collective, bytes: usize) -> CellOf {
    let full = format!(
        "not decided: comparing candidates elsewhere took all the replays that a page has; `collwise explain POLICY --collective {} --hosts FILE --bytes {}` decides it",
        collective.name,
        units::bytes(bytes)
    );
    (Decided::default(), full)
}

/// Segment and window of a message of some bytes, in words; of one that goes in one piece nothing.
fn segment(p: &Parameters, bytes: usize) -> String {
    match (p.segment, p.in_flight) {
        (segment, _) if segment == 0 || segment >= bytes => String::new(),
        (segment, 0) => units::bytes(segment),
        (segment, window) => format!("{} ×{window}", units::bytes(segment)),
    }
}

/// What a choice rests on, and the size at which that was found, if it is another one than the cell's.
type Rests<'a> = (&'a Evidence, Option<usize>);

/// What is done between groups, inside them, or over all ranks: its name, and what it is done with.
type Level = (String, Parameters);

/// A level without its segments.
fn level_words((name, p): &Level) -> String {
    let by_speed = if p.by_speed { " by speed" } else { "" };
    let radix = if p.radix > 0 { format!(" of radix {}", p.radix) } else { String::new() };
    format!("{}{by_speed}{radix}", named(name))
}

/// Of what is done on each level, the first of which says the segments, `more` being said of all.
fn cell(levels: Vec<Level>, more: &str, bytes: usize, rests: Option<Rests>) -> CellOf {
    let evidence = rests.map(|r| r.0);
    // how the library's own does it is not known
    let is_own = levels[0].0 == NATIVE;
    let levels = if is_own { vec![(NATIVE.into(), Parameters::default())] } else { levels };
    let name = levels.iter().map(level_words).collect::<Vec<_>>().join(" and ") + more;
    let algorithm: Vec<String> = levels.iter().map(|(name, _)| named(name).into()).collect();
    let p = &levels[0].1;
    let segment = segment(p, bytes);
    let pieces = match (is_own || bytes == 0, segment.is_empty()) {
        (true, _) => String::new(),
        (_, true) => ", in one piece".into(),
        _ => format!(", in {segment}"),
    };
    let other = evidence.filter(|e| e.runner_up != NO_OTHER && !e.runner_up.is_empty());
    let rest = rests.map_or(String::new(), |(e, at)| {
        let measured = e.measured_s.map_or(String::new(), |t| format!(", measured {}", units::seconds(t)));
        let decided = at.map_or(": ".to_string(), |at| format!(", as decided at {}: there ", units::bytes(at)));
        // no model knows the library's own
        let how = if is_own { "takes" } else { "predicted" };
        format!("{decided}{how} {}{measured}", units::seconds(e.predicted_s))
    });
    let next = other.map_or(String::new(), |e| {
        // what was measured to be the best may be predicted not to be
        let takes = match e.margin {
            m if m < 0.0 => format!("{} less by prediction", difference(m)),
            m if m > 0.0 => format!("{} more", difference(m)),
            _ => "as long".into(),
        };
        // policies of older versions do not say in which segments
        let unsaid = e.runner_up.starts_with(SEGMENTED) && !e.runner_up.contains(" in ");
        format!("; {}{} takes {takes}", named(&e.runner_up), if unsaid { " in segments that the policy does not say" } else { "" })
    });
    let margin = other.map(|e| e.margin);
    (Decided { algorithm, segment, margin }, format!("{name}{pieces}{rest}{next}"))
}

/// The size that a row rests on, if that is not this one.
fn elsewhere(at: usize, bytes: usize) -> Option<usize> {
    (at != bytes).then_some(at)
}

/// What all ranks do for a size: what a row of the policy says where it holds, else what is decided when it is called.
fn over_all(policy: &Policy, plan: &Plan, bytes: usize) -> CellOf {
    let row = policy.two_level(plan.form.collective()).iter().rev().find(|r| r.from_bytes <= bytes);
    let Some(row) = row.filter(|row| plan.from_row && plan.is_native() == row.native) else { return predicted(plan, bytes) };
    let (levels, more) = levels(plan);
    cell(levels, &more, bytes, Some((&row.evidence, elsewhere(row.at_bytes, bytes))))
}

/// What a plan says of a message of some bytes.
fn predicted(plan: &Plan, bytes: usize) -> CellOf {
    let evidence = Evidence {
        predicted_s: plan.seconds(),
        runner_up: plan.next.as_ref().map_or(NO_OTHER.into(), |next| next.words.clone()),
        margin: plan.next.as_ref().map_or(0.0, |next| next.margin),
        ..Evidence::default()
    };
    let (levels, more) = levels(plan);
    cell(levels, &more, bytes, Some((&evidence, None)).filter(|e| e.0.predicted_s.is_finite()))
}

/// What a plan does on each level, and what is said of all of it.
fn levels(plan: &Plan) -> (Vec<Level>, String) {
    let whole_messages = || WHOLE.map(|name| (name.to_string(), Parameters::default())).to_vec();
    let levels = match &plan.form {
        _ if plan.is_native() => vec![(NATIVE.into(), Parameters::default())],
        Form::Flat(_, algorithm, p) | Form::Placed(_, algorithm, p, _) => vec![(algorithm.name.into(), *p)],
        Form::Coordinated(c) => {
            let between = (c.between.algorithm.name.into(), Parameters { segment: c.segment, ..c.between.parameters });
            vec![between, (c.inside.algorithm.name.into(), c.inside.parameters)]
        }
        Form::Routed(routed) => match routed.choice() {
            Some(choice) => {
                let between = Parameters { in_flight: choice.flow.in_flight, ..Parameters::of(choice.segment, 0) };
                let inside = Parameters { by_speed: choice.by_speed, ..Parameters::default() };
                match choice.inter_group {
                    InterGroupAlgorithm::OverAll => {
                        vec![(choice.intra_group.name.into(), Parameters { by_speed: choice.by_speed, ..between })]
                    }
                    way if way.has_trees() => vec![(way.name().into(), between), (choice.intra_group.name.into(), inside)],
                    way => vec![(way.name().into(), between)],
                }
            }
            None => whole_messages(),
        },
    };
    let is_over_all = plan.routed().and_then(Routed::choice).is_some_and(|choice| choice.inter_group == InterGroupAlgorithm::OverAll);
    let more = match &plan.form {
        form if form.serves_farthest_first() => format!(", {FARTHEST_FIRST}"),
        _ if is_over_all && !plan.is_native() => " over all ranks".into(),
        _ => String::new(),
    };
    (levels, more)
}

/// What ranks of a group whose processors differ do for a size: it may go through the first of them, which neither its row nor its models decide.
fn unlike(
    compiled: &CompiledPolicy,
    group: usize,
    collective: &'static Collective,
    (ranks, bytes): (usize, usize),
) -> Result<Option<Plan>> {
    if !compiled.has_unlike_processors(group) || has_routes(collective) {
        return Ok(None);
    }
    let members: Vec<Location> = (0..ranks).map(|position| Location { group, position }).collect();
    plan(compiled, &members, collective, &collective.shape(ranks, 0, bytes)).map(Some)
}

/// What a whole group does for a size.
fn whole(compiled: &CompiledPolicy, group: usize, collective: &'static Collective, bytes: usize) -> Option<CellOf> {
    let row = compiled.policy.groups[group].row(collective, bytes)?;
    Some(cell(vec![(row.algorithm.clone(), row.parameters())], "", bytes, Some((&row.evidence, elsewhere(row.at_bytes, bytes)))))
}

/// What fewer ranks of a group do, as is predicted when they call it.
fn among(decided: &Decision, bytes: usize) -> CellOf {
    let evidence =
        Evidence { predicted_s: decided.predicted_s, runner_up: decided.runner_up.clone(), margin: decided.margin, ..Evidence::default() };
    let rests = Some((&evidence, None)).filter(|e: &Rests| e.0.predicted_s.is_finite());
    cell(vec![(decided.algorithm.name.into(), decided.parameters)], "", bytes, rests)
}

/// What these rows are of.
fn explained(plans: &Plans, rows: &[&Row]) -> String {
    let is_whole = |row: &Row| match row.among {
        Among::All => true,
        Among::Groups(_) => false,
        Among::Group(g, ranks) => ranks == plans.compiled.policy.groups[g].hosts.len(),
    };
    let said = [
        (rows.iter().any(|row| !matches!(row.among, Among::Group(..))), "Over groups: the way between groups, then the one inside each."),
        (true, "Below an algorithm its segment and window."),
        (rows.iter().any(|row| row.name == BY_SLOT), "By slot are the first hosts, group after group."),
        (rows.iter().any(|row| PARTS.iter().any(|part| part.0 == row.name)), "Half, quarter and one each are so many hosts of each group."),
        (rows.iter().any(|row| is_whole(row)), "What all ranks and whole groups do was decided at some sizes, and holds around them."),
        (rows.iter().any(|row| !is_whole(row)), "What fewer do is predicted when they call it."),
    ];
    said.iter().filter(|(is_so, _)| *is_so).map(|(_, words)| *words).collect::<Vec<_>>().join(" ")
}

fn map(collective: &'static Collective, plans: &Plans, rows: &[(&Row, &Vec<Option<CellOf>>)], left_out: usize) -> Result<Figure> {
    let mut algorithms: Vec<String> = Vec::new();
    for first in rows.iter().flat_map(|r| r.1).flatten().filter_map(|cell| cell.0.algorithm.first()) {
        let family = family(first).to_string();
        if !algorithms.contains(&family) {
            algorithms.push(family);
        }
    }
    let sizes = collective.sizes(plans.sizes);
    let columns: Vec<String> =
        sizes.iter().map(|&bytes| if collective.sized() { units::bytes(bytes) } else { "no message".into() }).collect();
    let ranks = |n: usize| format!("{n} rank{}", if n == 1 { "" } else { "s" });
    let decided = |cells: &[Option<CellOf>]| cells.iter().map(|c| c.as_ref().map(|c| c.0.clone())).collect();
    let drawn = rows.iter().map(|(row, cells)| (row.name.clone(), ranks(row.ranks), decided(cells))).collect();
    let (svg, [x, y]) = decisions(&Decisions { columns: columns.clone(), rows: drawn }, &algorithms)?;
    let mut table = Table::new(&["among"]);
    table.header.extend(columns);
    let said = |c: &Option<CellOf>| c.as_ref().map_or("no row".to_string(), |c| c.1.clone());
    for (row, cells) in rows {
        table.row(std::iter::once(format!("{}, {}", row.name, ranks(row.ranks))).chain(cells.iter().map(said)));
    }
    let colours = if algorithms.len() > COLOURED {
        format!(" {} algorithms share {COLOURED} colours: those after the first {COLOURED} have a mark in the corner.", algorithms.len())
    } else {
        String::new()
    };
    let left = rows.iter().flat_map(|r| r.1).flatten().filter(|cell| cell.0.algorithm.is_empty()).count();
    let undecided = if left > 0 {
        format!(
            " In {left} cells without colour nothing was decided: candidates are compared by replaying them, this page has {} events for it, and cells that need fewer \
             took them; `collwise explain POLICY --collective {} --hosts FILE --bytes SIZE` decides them.",
            most_events(plans),
            collective.name
        )
    } else {
        String::new()
    };
    let more = if left_out > 0 { format!(" {left_out} smaller groups are not shown.") } else { String::new() };
    Ok(Figure {
        id: format!("decisions-{}", collective.name),
        title: format!("What {} does", collective.name),
        words: format!("{}{undecided}{colours}{more}", explained(plans, &rows.iter().map(|(row, _)| *row).collect::<Vec<_>>())),
        svg,
        table,
        cells: Some(Cells { x, y }),
    })
}
