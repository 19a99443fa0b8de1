//! Regret: how much longer what was chosen takes than the best that was measured.

use super::choices::tuned;
use super::picture::{Axis, Line, Panel, Scale, Shape, chart};
use super::tables::{Table, or_dash, percent};
use super::{Block, Figure, Inputs};
use crate::accuracy::regrets;
use crate::error::Result;
use crate::plan::members;
use crate::stats;

pub(super) fn block(inputs: &Inputs) -> Result<Block> {
    let Some((settings, samples)) = inputs.samples else {
        return Ok(Block::Missing(
            "How much longer choices take than the best that was measured (regret) is shown with --samples FILE; after `collwise tune --exhaustive` with \
             all there is."
                .into(),
        ));
    };
    let members = members(&inputs.policy.policy, &settings.hosts)?;
    let mut table = Table::new(&["collective", "among", "choices", "measured", "mean", "median", "90 %", "most"]);
    let (mut inside, mut over) = (Vec::new(), Vec::new());
    for collective in tuned(&inputs.policy.policy) {
        let all = regrets(inputs.policy, &members, samples, collective)?;
        for (words, is_inside) in [("all groups", false), ("one group", true)] {
            let of: Vec<_> = all.iter().filter(|c| c.group.is_some() == is_inside).collect();
            let found: Vec<f64> = of.iter().filter_map(|c| c.regret).collect();
            if of.is_empty() {
                continue;
            }
            let measured: usize = of.iter().map(|c| c.measured).sum();
            let figures =
                [stats::mean(&found), stats::median(&found), stats::quantile(&found, 0.9), found.iter().copied().reduce(f64::max)];
            let own = [collective.name.to_string(), words.into(), of.len().to_string(), measured.to_string()];
            table.row(own.into_iter().chain(figures.map(|f| or_dash(f, percent))));
            if is_inside { &mut inside } else { &mut over }.extend(found);
        }
    }
    if inside.is_empty() && over.is_empty() {
        return Ok(Block::Missing("The samples hold no collective over the ranks of a row: regret is not known.".into()));
    }
    let line = |name: &str, colour, mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        let n = all.len() as f64;
        // steps: each share holds from one regret to the next
        let points = all.iter().enumerate().flat_map(|(k, &r)| [(r.max(0.0), k as f64 / n), (r.max(0.0), (k + 1) as f64 / n)]).collect();
        Line { name: name.into(), colour: Some(colour), shape: Shape::Line, points, bars: Vec::new() }
    };
    let lines = [("over all groups", 3, over), ("inside one group", 0, inside)].into_iter().filter(|l| !l.2.is_empty());
    let lines = lines.map(|(name, colour, all)| line(name, colour, all)).collect();
    let up = Axis { words: "share of choices".into(), scale: Scale::Share };
    let svg = chart(
        &Axis { words: "at most so much longer than the best that was measured".into(), scale: Scale::Share },
        &[Panel { up, lines, marks: Vec::new(), height: 320, within: Some((0.0, 1.0)) }],
    )?;
    Ok(Block::Figure(Figure {
        id: "regret".into(),
        title: "Regret".into(),
        words: "The share of choices that take at most so much longer than the fastest schedule that was measured, which is found by one half of its runs \
                and timed by the other."
            .into(),
        svg,
        cells: None,
        table,
    }))
}
