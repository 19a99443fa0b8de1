//! The models: what was measured of messages beside what each model says, its parameters, its scores, and which one is selected where.

use super::fits::{self, Fit, fits};
use super::picture::{Axis, Bar, Line, Panel, Scale, Shape, chart};
use super::tables::{Cell, Table, or_dash, percent};
use super::{Block, Figure, Inputs, Section, Titled};
use crate::collective::COLLECTIVES;
use crate::error::Result;
use crate::measure::Experiment;
use crate::model::{Fitted, MODELS};
use crate::plan::members;
use crate::policy::{CompiledPolicy, GroupPolicy, Policy};
use crate::score::best_model;
use crate::stats;
use crate::topology::Link;
use crate::units;
use std::collections::{BTreeMap, BTreeSet};

/// A model that errs by more fits nothing.
pub(super) const MISFIT: f64 = 0.25;
/// So many groups and as many links have a picture each, those that fit worst where there are more: one looks at the others in the table.
const MOST_PICTURES: usize = 12;
/// At which sizes it is told which model is selected.
pub(super) const SIZES: [usize; 6] = [1, 64, 1 << 10, 16 << 10, 256 << 10, 4 << 20];

/// What was measured inside a group (twice the same), or between two, by size.
pub(super) type Measured = BTreeMap<(usize, usize), BTreeMap<usize, Vec<f64>>>;

pub(super) fn section(inputs: &Inputs) -> Result<Section> {
    let policy = &inputs.policy.policy;
    let measured = measured(inputs)?;
    let mut blocks = Vec::new();
    if inputs.samples.is_none() {
        blocks.push(Block::Missing(
            "Curves alone: with --samples FILE the times that were measured stand beside them, with what models miss.".into(),
        ));
    }
    let links = links(policy);
    let fits = fits(inputs.policy, &measured, &links);
    let mut by_size: Vec<usize> = (0..policy.groups.len()).filter(|&g| !policy.groups[g].models.is_empty()).collect();
    by_size.sort_by_key(|&g| std::cmp::Reverse(policy.groups[g].hosts.len()));
    for all in [by_size.into_iter().map(|g| (g, g)).collect(), links] {
        let of = if all.first().is_some_and(|(a, b)| a == b) { "groups" } else { "links" };
        for (k, place) in shown(&all, &fits).into_iter().enumerate() {
            let rank = if all.len() > MOST_PICTURES {
                format!(" {} of {} {of} that fit worst.", ordinal(k + 1), all.len())
            } else {
                String::new()
            };
            blocks.push(Block::Figure(picture(inputs.policy, place, measured.get(&place), &rank)?));
        }
        if all.len() > MOST_PICTURES {
            blocks.push(Block::Missing(format!(
                "Of {} {of} the {MOST_PICTURES} are drawn whose models fit worst, or are least sure; the table below has all.",
                all.len()
            )));
        }
    }
    blocks.push(Block::Table(fits::table(inputs.policy, &fits)));
    blocks.push(Block::Table(parameters(policy)));
    blocks.push(Block::Table(meanings(policy)));
    blocks.push(Block::Table(scores(policy)));
    blocks.push(Block::Table(selected(policy)));
    let words = "A message of so many bytes and an empty answer to it: what was measured, with 95 % intervals of medians, and what each model says; below, \
                 what models miss."
        .into();
    Ok(Section { id: "models", title: "The models", words, blocks })
}

/// Times of a message and an empty answer to it.
fn measured(inputs: &Inputs) -> Result<Measured> {
    let Some((settings, samples)) = inputs.samples else { return Ok(Measured::new()) };
    let members = members(&inputs.policy.policy, &settings.hosts)?;
    let mut found = Measured::new();
    for sample in samples.iter() {
        let (a, b, bytes) = match sample.experiment {
            Experiment::SaturationTrain { a, b, bytes, count: 1, delay_ns: 0 } => (a, b, bytes),
            Experiment::RoundTrip { a, b, out, back: 0 } if out > 0 => (a, b, out),
            _ => continue,
        };
        let (Some(a), Some(b)) = (members.get(a), members.get(b)) else { continue };
        // where processors differ, other pairs take other times than the one that curves are of
        let is_other = (a.position, b.position) != (0, 1) && inputs.policy.has_unlike_processors(a.group);
        if a.group == b.group && is_other {
            continue;
        }
        let place = (a.group.min(b.group), a.group.max(b.group));
        found.entry(place).or_default().entry(bytes).or_default().extend(sample.all());
    }
    Ok(found)
}

/// Sizes of curves.
fn curve() -> impl Iterator<Item = usize> {
    (0..=44).map(|k| (f64::from(k) / 2.0).exp2().round() as usize)
}

/// The links between groups, those between the largest first, each with the lower group first.
fn links(policy: &Policy) -> Vec<(usize, usize)> {
    let places: BTreeMap<&str, usize> = policy.groups.iter().enumerate().map(|(k, g)| (g.name.as_str(), k)).collect();
    let place = |name: &String| places.get(name.as_str()).copied();
    let both = policy.links.iter().filter_map(|l| Some((place(&l.between[0])?, place(&l.between[1])?)));
    let mut links: Vec<(usize, usize)> = both.map(|(a, b)| (a.min(b), a.max(b))).collect();
    let carried = |&(a, b): &(usize, usize)| std::cmp::Reverse(policy.groups[a].hosts.len() * policy.groups[b].hosts.len());
    links.sort_by_key(|link| (carried(link), *link));
    links
}

/// All, if they are few, or else those that fit worst.
fn shown(all: &[(usize, usize)], worst_first: &[Fit]) -> Vec<(usize, usize)> {
    if all.len() <= MOST_PICTURES {
        return all.to_vec();
    }
    let has: BTreeSet<(usize, usize)> = all.iter().copied().collect();
    worst_first.iter().map(|f| f.of).filter(|of| has.contains(of)).take(MOST_PICTURES).collect()
}

/// Which one in a row.
fn ordinal(k: usize) -> String {
    match k {
        1 => "The first".into(),
        2 => "The second".into(),
        3 => "The third".into(),
        _ => format!("The {k}th"),
    }
}

/// What each model of a group (twice the same), or of a link, says of a message and an empty answer to it.
pub(super) fn predictors<'a>(policy: &'a CompiledPolicy, (a, b): (usize, usize)) -> Vec<(String, Predict<'a>)> {
    if a != b {
        let name = policy.policy.link(a, b).map(|l| l.model.model.clone()).unwrap_or_default();
        return vec![(name, Box::new(move |bytes| policy.link_cost(a, b, bytes).transit + policy.link_cost(b, a, 0).transit) as Predict)];
    }
    let (forth, back) = (Link { from: 0, to: 1 }, Link { from: 1, to: 0 });
    let of = |m: &Fitted| {
        let costs = policy.group_costs(a, &m.model)?;
        Some((m.model.clone(), Box::new(move |bytes| costs.cost(forth, bytes).transit + costs.cost(back, 0).transit) as Predict))
    };
    policy.policy.groups[a].models.iter().filter_map(of).collect()
}

/// What a model says of a size, in seconds.
pub(super) type Predict<'a> = Box<dyn Fn(usize) -> f64 + 'a>;

/// The place of a model among all, for its colour.
fn place(model: &str) -> usize {
    MODELS.iter().position(|m| m.name == model).unwrap_or(MODELS.len())
}

fn picture(policy: &CompiledPolicy, of: (usize, usize), measured: Option<&BTreeMap<usize, Vec<f64>>>, rank: &str) -> Result<Figure> {
    let (models, name) = (predictors(policy, of), |g: usize| policy.policy.groups[g].name.as_str());
    let (id, title) = match of {
        (a, b) if a == b => (format!("model-{}", a + 1), format!("Inside {}", name(a))),
        (a, b) => (format!("model-{}-{}", a + 1, b + 1), format!("Between {} and {}", name(a), name(b))),
    };
    let medians: Vec<(usize, f64, (f64, f64))> = measured
        .into_iter()
        .flatten()
        .filter_map(|(&bytes, all)| {
            let median = stats::median(all)?;
            Some((bytes, median, stats::median_interval(all).unwrap_or((median, median))))
        })
        .collect();
    let sizes: BTreeSet<usize> = curve().chain(medians.iter().map(|m| m.0.max(1))).collect();
    let line = |(name, predict): &(String, Predict)| Line {
        name: name.clone(),
        colour: Some(place(name)),
        shape: Shape::Line,
        points: sizes.iter().map(|&bytes| (bytes as f64, predict(bytes))).collect(),
        bars: Vec::new(),
    };
    let mut lines: Vec<Line> = models.iter().map(line).collect();
    if !medians.is_empty() {
        lines.push(Line {
            name: "measured".into(),
            colour: None,
            shape: Shape::Dots,
            points: medians.iter().map(|m| (m.0.max(1) as f64, m.1)).collect(),
            bars: medians.iter().map(|m| Bar { x: m.0.max(1) as f64, low: m.2.0, high: m.2.1 }).collect(),
        });
    }
    let times = Axis { words: "time".into(), scale: Scale::Seconds };
    let mut panels = vec![Panel { up: times, lines, marks: Vec::new(), height: 340, within: None }];
    if !medians.is_empty() {
        let missed = |(name, predict): &(String, Predict)| Line {
            name: name.clone(),
            colour: Some(place(name)),
            shape: Shape::Both,
            points: medians.iter().map(|m| (m.0.max(1) as f64, predict(m.0) / m.1 - 1.0)).collect(),
            bars: Vec::new(),
        };
        let up = Axis { words: "too long by".into(), scale: Scale::Share };
        let lines = models.iter().map(missed).collect();
        panels[0].height = 300;
        panels.push(Panel { up, lines, marks: vec![0.0, MISFIT, -MISFIT], height: 220, within: Some((-MISFIT, MISFIT)) });
    }
    let mut table = Table::new(&["bytes", "measured", "95 % interval"]);
    table.header.extend(models.iter().map(|m| m.0.clone()));
    let sizes: Vec<usize> = if medians.is_empty() { SIZES.to_vec() } else { medians.iter().map(|m| m.0).collect() };
    for bytes in sizes {
        let found = medians.iter().find(|m| m.0 == bytes);
        let interval = or_dash(found, |m| format!("{} to {}", units::seconds(m.2.0), units::seconds(m.2.1)));
        let own = [units::bytes(bytes), or_dash(found, |m| units::seconds(m.1)), interval];
        table.row(own.into_iter().chain(models.iter().map(|m| units::seconds(m.1(bytes)))));
    }
    let words = if medians.is_empty() {
        format!("Nothing measured is given.{rank}")
    } else {
        format!("{} sizes measured; lines at 25 % too long and too short.{rank}", medians.len())
    };
    let svg = chart(&Axis { words: "size of the message".into(), scale: Scale::Bytes }, &panels)?;
    Ok(Figure { id, title, words, svg, cells: None, table })
}

/// Half the widest 95 % interval of a model's parameters, as a share of their values: of a table's, of its largest.
pub(super) fn width(fitted: &Fitted) -> Option<f64> {
    let scalars = fitted.parameters.values().map(|e| (e.high - e.low) / 2.0 / e.value.abs());
    let tables = fitted.tables.values().map(|t| table_width(t) / largest(&t.value));
    scalars.chain(tables).filter(|share| share.is_finite()).reduce(f64::max)
}

/// Half the widest interval of a table's values.
fn table_width(t: &crate::model::Table) -> f64 {
    t.low.iter().zip(&t.high).map(|(l, h)| (h - l) / 2.0).fold(0.0, f64::max)
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |largest: f64, v| largest.max(v.abs()))
}

fn parameters(policy: &Policy) -> Titled {
    let mut table = Table::new(&["of", "model", "parameter", "value", "95 % interval"]);
    let mut add = |of: &str, fitted: &Fitted| {
        let number = units::number;
        for (name, e) in &fitted.parameters {
            let interval = if e.low == e.high { "exact".into() } else { format!("{} to {}", number(e.low), number(e.high)) };
            table.row([of.into(), fitted.model.clone(), name.clone(), number(e.value), interval]);
        }
        for (name, t) in &fitted.tables {
            let ends = |values: &[f64]| {
                let (low, high) = values.iter().fold((f64::INFINITY, 0.0f64), |(l, h), &v| (l.min(v), h.max(v)));
                format!("{} to {}", number(low), number(high))
            };
            // a share of the largest value, since some values are zero
            let wide = table_width(t);
            let interval = match wide / largest(&t.value) {
                _ if wide == 0.0 => "exact".into(),
                share if share.is_finite() => format!("up to ±{} of the largest", percent(share)),
                _ => format!("up to ±{}", number(wide)),
            };
            let value = format!("{} values, {}", t.value.len(), ends(&t.value));
            table.row([of.into(), fitted.model.clone(), name.clone(), value, interval]);
        }
    };
    policy.groups.iter().for_each(|g| g.models.iter().for_each(|m| add(&g.name, m)));
    // named as everywhere on the page, in whatever order the policy does
    let place = |name: &String| policy.groups.iter().position(|g| g.name == *name);
    for link in &policy.links {
        let mut ends = link.between.clone();
        ends.sort_by_key(place);
        add(&ends.join(" to "), &link.model);
    }
    Titled { title: "Parameters".into(), words: "In seconds, bytes, and seconds per byte.".into(), table }
}

/// What the parameters of the policy's models are.
fn meanings(policy: &Policy) -> Titled {
    let fitted = || policy.groups.iter().flat_map(|g| &g.models).chain(policy.links.iter().map(|l| &l.model));
    let mut table = Table::new(&["model", "parameter", "what it is"]);
    for model in MODELS.iter().filter(|m| fitted().any(|f| f.model == m.name)) {
        for (name, meaning) in model.scalars.iter().chain(model.tables) {
            table.row([model.name, *name, *meaning]);
        }
    }
    Titled { title: "What parameters are".into(), words: String::new(), table }
}

fn scores(policy: &Policy) -> Titled {
    let mut table = Table::new(&["group", "collective"]);
    let names: Vec<&str> =
        MODELS.iter().map(|m| m.name).filter(|m| policy.groups.iter().any(|g| g.scores.iter().any(|s| s.model == *m))).collect();
    table.header.extend(names.iter().map(|n| n.to_string()));
    for g in &policy.groups {
        for collective in COLLECTIVES.iter().filter(|c| g.scores.iter().any(|s| s.collective == **c)) {
            let cell = |name: &&str| {
                let score = g.scores.iter().find(|s| s.collective == *collective && s.model == *name);
                // a bar of full length is 50 %
                score
                    .and_then(|s| s.error.map(|e| Cell::bar(format!("{} ±{}", percent(e), percent(s.error_se)), e / 0.5)))
                    .unwrap_or("-".into())
            };
            let own: [Cell; 2] = [g.name.as_str().into(), collective.name.into()];
            table.rows.push(own.into_iter().chain(names.iter().map(cell)).collect());
        }
    }
    Titled {
        title: "Scores".into(),
        words: "How much each model errs on collectives that it was not fitted to: mean of |predicted / measured - 1| with its standard error. A full bar \
                is 50 % and more."
            .into(),
        table,
    }
}

/// What is selected for a size, and by how much it errs there.
pub(super) fn selected_at<'a>(
    g: &'a GroupPolicy,
    collective: &'static crate::collective::Collective,
    bytes: usize,
) -> Option<(&'a str, Option<f64>)> {
    let score = best_model(&g.scores, collective, bytes)?;
    let near = score.bytes.iter().enumerate().min_by_key(|(_, b)| b.max(&&1).ilog2().abs_diff(bytes.max(1).ilog2())).map(|(k, _)| k);
    Some((&score.model, near.and_then(|k| score.error_by_bytes.get(k).copied()).or(score.error)))
}

fn selected(policy: &Policy) -> Titled {
    let mut table = Table::new(&["group", "collective"]);
    table.header.extend(SIZES.iter().map(|&bytes| units::bytes(bytes)));
    let (mut all, mut misfits) = (0, 0);
    for g in &policy.groups {
        for collective in COLLECTIVES.iter().copied().filter(|c| !g.rows(c).is_empty()) {
            let mut cell = |&bytes: &usize| {
                let Some((model, error)) = selected_at(g, collective, bytes) else { return "-".to_string() };
                all += 1;
                let misfit = error.is_some_and(|e| e > MISFIT);
                misfits += usize::from(misfit);
                let error = or_dash(error, percent);
                if misfit { format!("none fits: {model} errs by {error}") } else { format!("{model}, {error}") }
            };
            let cells: Vec<String> = SIZES.iter().map(&mut cell).collect();
            table.row([g.name.clone(), collective.name.into()].into_iter().chain(cells));
        }
    }
    Titled {
        title: "Which model is selected".into(),
        words: format!("With its error near that size. None fits where the best one errs by more than 25 %: {misfits} of {all}."),
        table,
    }
}
