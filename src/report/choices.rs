//! The choices: what is done for which size among how many ranks, how well it was predicted, what it costs to be wrong, and what changed.

use super::picture::{Axis, Line, Panel, Scale, Shape, chart};
use super::plans::Plans;
use super::tables::{Table, percent};
use super::{Block, Figure, Inputs, Section, changes, decision_maps, moved, regrets};
use crate::collective::{COLLECTIVES, Collective};
use crate::error::Result;
use crate::policy::Policy;
use crate::units;

pub(super) fn section(inputs: &Inputs, plans: &Plans) -> Result<Section> {
    let policy = inputs.policy;
    let mut blocks: Vec<Block> = decision_maps::maps(plans)?.into_iter().map(Block::Figure).collect();
    blocks.push(match scatter(&policy.policy)? {
        Some(figure) => Block::Figure(figure),
        None => Block::Missing(
            "No row of the policy was measured: there is nothing to hold predictions against. `collwise tune` measures.".into(),
        ),
    });
    blocks.push(regrets::block(inputs)?);
    match inputs.against {
        Some((name, old)) => {
            blocks.extend([moved::block(name, old, policy), Block::Table(changes::table(name, &old.policy, &policy.policy))]);
        }
        None => blocks.push(Block::Missing("What changed against another policy is shown with --against OLD.".into())),
    }
    let words = "For each collective, what is done for a size among all ranks, fewer of them, and those of one group.".into();
    Ok(Section { id: "choices", title: "The choices", words, blocks })
}

/// The collectives that the policy has rows for.
pub(super) fn tuned(policy: &Policy) -> impl Iterator<Item = &'static Collective> {
    let has = |c: &&'static Collective| !policy.two_level(c).is_empty() || policy.groups.iter().any(|g| !g.rows(c).is_empty());
    COLLECTIVES.iter().copied().filter(has)
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
    lines.insert(0, guide("equal", Shape::Line, 1.0));
    lines.insert(1, guide("25 % off", Shape::Dashes, 1.25));
    lines.insert(2, guide("25 % off", Shape::Dashes, 0.75));
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
