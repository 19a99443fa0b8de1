//! The choices: what is done for which size among how many ranks, how well it was predicted, what it costs to be wrong, and what changed.

use super::picture::{Axis, Decided, Decisions, Line, Panel, Scale, Shape, chart, decisions};
use super::tables::{Table, percent};
use super::{Block, Cells, Figure, Inputs, Section, changes, regrets};
use crate::collective::{COLLECTIVES, Collective, Parameters};
use crate::error::Result;
use crate::plan::{Location, everybody, plan};
use crate::policy::{CompiledPolicy, Evidence, NO_OTHER, Policy};
use crate::units;

/// The columns of decision maps.
const SIZES: [usize; 9] = [1, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// So many groups have rows in a decision map, the largest first.
const MOST_GROUPS: usize = 8;
/// What is decided when it is called is planned for the page, for up to so many ranks.
const MOST_PLANNED: usize = 128;
/// What fewer ranks of a group would do is predicted, not looked up: for groups of up to so many ranks that costs no more than a look at a page is worth.
const MOST_PREDICTED: usize = 32;

pub(super) fn section(inputs: &Inputs) -> Result<Section> {
    let policy = inputs.policy;
    let mut blocks = Vec::new();
    for collective in tuned(&policy.policy) {
        blocks.push(Block::Figure(map(policy, collective)?));
    }
    blocks.push(match scatter(&policy.policy)? {
        Some(figure) => Block::Figure(figure),
        None => Block::Missing(
            "No row of the policy was measured: there is nothing to hold predictions against. `collwise tune` measures.".into(),
        ),
    });
    blocks.push(regrets::block(inputs)?);
    blocks.push(match inputs.against {
        Some((name, old)) => Block::Table(changes::table(name, &old.policy, &policy.policy)),
        None => Block::Missing("What changed against another policy is shown with --against OLD.".into()),
    });
    let words = "For each collective, what is done for a size among all ranks, and among those of one group.".into();
    Ok(Section { id: "choices", title: "The choices", words, blocks })
}

/// The collectives that the policy has rows for.
pub(super) fn tuned(policy: &Policy) -> impl Iterator<Item = &'static Collective> {
    let has = |c: &&'static Collective| !policy.two_level(c).is_empty() || policy.groups.iter().any(|g| !g.rows(c).is_empty());
    COLLECTIVES.iter().copied().filter(has)
}

/// Segment and window, in words.
fn segment(p: &Parameters) -> String {
    match (p.segment, p.in_flight) {
        (0, _) => String::new(),
        (segment, 0) => units::bytes(segment),
        (segment, window) => format!("{} ×{window}", units::bytes(segment)),
    }
}

/// What a cell says, and what it says in full.
type CellOf = (Decided, String);

/// What a choice rests on, and the size at which that was found, if it is another one than the cell's.
type Rests<'a> = (&'a Evidence, Option<usize>);

fn cell(algorithm: Vec<String>, p: &Parameters, rests: Option<Rests>) -> CellOf {
    let evidence = rests.map(|r| r.0);
    let name = algorithm.join(" and ") + &if p.radix > 0 { format!(" of radix {}", p.radix) } else { String::new() };
    let segment = segment(p);
    let pieces = if segment.is_empty() { "in one piece".into() } else { format!("in {segment}") };
    let other = evidence.filter(|e| e.runner_up != NO_OTHER && !e.runner_up.is_empty());
    let rest = rests.map_or(String::new(), |(e, at)| {
        let measured = e.measured_s.map_or(String::new(), |t| format!(", measured {}", units::seconds(t)));
        let decided = at.map_or(": ".to_string(), |at| format!(", as decided at {}: there ", units::bytes(at)));
        format!("{decided}predicted {}{measured}", units::seconds(e.predicted_s))
    });
    let next = other.map_or(String::new(), |e| format!("; {} takes {} more", e.runner_up, percent(e.margin)));
    let margin = other.map(|e| e.margin);
    (Decided { algorithm, segment, margin }, format!("{name}, {pieces}{rest}{next}"))
}

/// The size that a row rests on, if that is not this one.
fn elsewhere(at: usize, bytes: usize) -> Option<usize> {
    (at != bytes).then_some(at)
}

/// What is done over all groups for a size. Above all sizes that were measured that is decided when it is called.
fn over_all(compiled: &CompiledPolicy, members: &[Location], collective: &'static Collective, bytes: usize) -> Result<Option<CellOf>> {
    let rows = compiled.policy.two_level(collective);
    let Some(row) = rows.iter().rev().find(|r| r.from_bytes <= bytes) else { return Ok(None) };
    let is_measured = rows.last().is_none_or(|last| bytes <= last.at_bytes);
    if !is_measured && members.len() > MOST_PLANNED {
        return Ok(None);
    }
    if !is_measured {
        let plan = plan(compiled, members, collective, &collective.shape(members.len(), 0, bytes))?;
        if !plan.from_row {
            let name = if plan.is_native() { "library's own".into() } else { plan.words() };
            let says = plan.predicted_s.map_or(String::new(), |t| format!(": predicted {}", units::seconds(t)));
            let full = format!("{name}, above all sizes that were measured{says}");
            return Ok(Some((Decided { algorithm: vec![name], segment: String::new(), margin: None }, full)));
        }
    }
    let algorithm = match (&row.intra_group, row.native) {
        (_, true) => vec!["library's own".into()],
        (Some(inside), _) if row.is_per_group() => {
            vec![row.inter_group.clone(), if inside.is_empty() { String::new() } else { "as each is best".into() }]
        }
        (Some(inside), _) => vec![row.inter_group.clone(), inside.clone()],
        (None, _) => vec![row.inter_group.clone()],
    };
    Ok(Some(cell(algorithm, &row.parameters(), Some((&row.evidence, elsewhere(row.at_bytes, bytes))))))
}

/// What a whole group does for a size.
fn inside(policy: &Policy, group: usize, collective: &'static Collective, bytes: usize) -> Option<CellOf> {
    let row = policy.groups[group].row(collective, bytes)?;
    Some(cell(vec![row.algorithm.clone()], &row.parameters(), Some((&row.evidence, elsewhere(row.at_bytes, bytes)))))
}

/// What fewer ranks of a group do, as is predicted when they call it.
fn among(policy: &CompiledPolicy, group: usize, collective: &'static Collective, ranks: usize, bytes: usize) -> Result<CellOf> {
    let positions: Vec<usize> = (0..ranks).collect();
    let decided = policy.decide(collective, group, &positions, bytes)?;
    let evidence =
        Evidence { predicted_s: decided.predicted_s, runner_up: decided.runner_up.clone(), margin: decided.margin, ..Evidence::default() };
    Ok(cell(vec![decided.algorithm.name.into()], &decided.parameters, Some((&evidence, None)).filter(|e| e.0.predicted_s.is_finite())))
}

/// Fewer ranks of a group of so many than all of them.
fn fewer(ranks: usize) -> Vec<usize> {
    let mut counts = if ranks > MOST_PREDICTED { Vec::new() } else { vec![ranks / 2, 4] };
    counts.retain(|&p| p >= 2 && p < ranks);
    counts.dedup();
    counts
}

fn map(compiled: &CompiledPolicy, collective: &'static Collective) -> Result<Figure> {
    let policy = &compiled.policy;
    let sizes: Vec<usize> = collective.sizes(&SIZES);
    let mut rows: Vec<(String, String, Vec<Option<CellOf>>)> = Vec::new();
    let ranks = |n: usize| format!("{n} rank{}", if n == 1 { "" } else { "s" });
    if !policy.two_level(collective).is_empty() {
        let members = everybody(policy);
        let cells = sizes.iter().map(|&bytes| over_all(compiled, &members, collective, bytes)).collect::<Result<_>>()?;
        rows.push(("all groups".into(), ranks(members.len()), cells));
    }
    let mut groups: Vec<usize> = (0..policy.groups.len()).filter(|&g| !policy.groups[g].rows(collective).is_empty()).collect();
    groups.sort_by_key(|&g| std::cmp::Reverse(policy.groups[g].hosts.len()));
    let left_out = groups.len().saturating_sub(MOST_GROUPS);
    groups.truncate(MOST_GROUPS);
    groups.sort_unstable();
    for g in groups {
        let (name, n) = (&policy.groups[g].name, policy.groups[g].hosts.len());
        rows.push((name.clone(), ranks(n), sizes.iter().map(|&bytes| inside(policy, g, collective, bytes)).collect()));
        for p in fewer(n) {
            let cells = sizes.iter().map(|&bytes| among(compiled, g, collective, p, bytes).map(Some)).collect::<Result<_>>()?;
            rows.push((name.clone(), ranks(p), cells));
        }
    }
    let mut algorithms: Vec<String> = Vec::new();
    for cell in rows.iter().flat_map(|r| &r.2).flatten() {
        if !algorithms.contains(&cell.0.algorithm[0]) {
            algorithms.push(cell.0.algorithm[0].clone());
        }
    }
    let columns: Vec<String> =
        sizes.iter().map(|&bytes| if collective.sized() { units::bytes(bytes) } else { "no message".into() }).collect();
    let said =
        |cells: &[Option<CellOf>]| cells.iter().map(|c| c.as_ref().map_or("no row".to_string(), |c| c.1.clone())).collect::<Vec<_>>();
    let decided = |cells: &[Option<CellOf>]| cells.iter().map(|c| c.as_ref().map(|c| c.0.clone())).collect();
    let drawn =
        Decisions { columns: columns.clone(), rows: rows.iter().map(|(g, n, cells)| (g.clone(), n.clone(), decided(cells))).collect() };
    let (svg, [x, y]) = decisions(&drawn, &algorithms)?;
    let mut table = Table::new(&["among"]);
    table.header.extend(columns.iter().cloned());
    rows.iter().for_each(|(g, n, cells)| table.row(std::iter::once(format!("{g}, {n}")).chain(said(cells))));
    let more = if left_out > 0 { format!(" {left_out} smaller groups are not shown.") } else { String::new() };
    Ok(Figure {
        id: format!("decisions-{}", collective.name),
        title: format!("What {} does", collective.name),
        words: format!(
            "Over all groups: the way between groups, then the one inside each; segment and window. What whole groups do was decided at some sizes, and holds \
             around them; what fewer ranks of a group do is predicted when they call it.{more}"
        ),
        svg,
        table,
        cells: Some(Cells { x, y }),
    })
}

/// Predicted against measured times of all rows that were measured.
fn scatter(policy: &Policy) -> Result<Option<Figure>> {
    let mut table = Table::new(&["collective", "among", "bytes", "predicted", "measured", "too long by"]);
    let (mut lines, mut all): (Vec<Line>, Vec<f64>) = (Vec::new(), Vec::new());
    for (k, collective) in tuned(policy).enumerate() {
        let over = policy.two_level(collective).iter().map(|r| ("all groups".to_string(), r.at_bytes, &r.evidence));
        let inside = policy.groups.iter().flat_map(|g| g.rows(collective).iter().map(|r| (g.name.clone(), r.at_bytes, &r.evidence)));
        let mut points = Vec::new();
        for (among, bytes, e) in over.chain(inside) {
            let Some(measured) = e.measured_s.filter(|t| *t > 0.0 && e.predicted_s > 0.0) else { continue };
            points.push((measured, e.predicted_s));
            let missed = percent(e.predicted_s / measured - 1.0);
            table.row([
                collective.name.into(),
                among,
                units::bytes(bytes),
                units::seconds(e.predicted_s),
                units::seconds(measured),
                missed,
            ]);
        }
        all.extend(points.iter().flat_map(|p| [p.0, p.1]));
        let shape = if k < 7 { Shape::Dots } else { Shape::Crosses };
        lines.push(Line { name: collective.name.into(), colour: Some(k), shape, points, bars: Vec::new() });
    }
    let (low, high) = all.iter().fold((f64::INFINITY, 0.0f64), |(l, h), &t| (l.min(t), h.max(t)));
    if all.is_empty() {
        return Ok(None);
    }
    let ends = |factor: f64| vec![(low, low * factor), (high, high * factor)];
    let guide = |name: &str, shape, factor| Line { name: name.into(), colour: None, shape, points: ends(factor), bars: Vec::new() };
    lines.insert(0, guide("as predicted", Shape::Line, 1.0));
    lines.insert(1, guide("25 % off", Shape::Dashes, 1.25));
    lines.insert(2, guide("25 % off", Shape::Dashes, 1.0 / 1.25));
    let n = table.rows.len();
    let within = lines.iter().skip(3).flat_map(|l| &l.points).filter(|p| (p.1 / p.0 - 1.0).abs() <= 0.25).count();
    let up = Axis { words: "predicted".into(), scale: Scale::Seconds };
    let panel = Panel { up, lines, marks: Vec::new(), height: 460, within: None };
    Ok(Some(Figure {
        id: "predicted-measured".into(),
        title: "Predicted against measured".into(),
        words: format!("What each row of the policy rests on, at the size it was made at: {within} of {n} are within 25 %."),
        svg: chart(&Axis { words: "measured".into(), scale: Scale::Seconds }, &[panel])?,
        cells: None,
        table,
    }))
}
