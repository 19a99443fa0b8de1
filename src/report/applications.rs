//! Applications: their wall time and its parts over numbers of processes, as measured and as predicted from the other runs.

use super::picture::{Axis, Bar, Line, Panel, Scale, Shape, Stack, chart, parts};
use super::tables::{Table, or_dash, percent};
use super::{Block, Figure, Inputs, Section};
use crate::error::Result;
use crate::qnm::{Application, Components, Intervals, Machine, Prediction, Run};
use crate::stats;
use crate::units;

/// Where wall time goes.
const PARTS: [&str; 5] = ["computing", "waiting", "MPI active", "contention", "network"];

pub(super) fn section(inputs: &Inputs) -> Result<Section> {
    let mut blocks = Vec::new();
    for (k, runs) in programs(inputs.runs).into_iter().enumerate() {
        blocks.extend(of_one(inputs, k, runs)?);
    }
    if blocks.is_empty() {
        blocks.push(Block::Missing(
            "No application is given: --app REPORT... shows runs by their reports of mpiP, or of the library preloaded with COLLWISE_PROFILE, at several \
             numbers of processes."
                .into(),
        ));
    }
    let words =
        "Wall time, measured and predicted from the runs at all other numbers of processes, with 95 % intervals; and where it goes.".into();
    Ok(Section { id: "applications", title: "Applications", words, blocks })
}

/// Runs by the program that they are of.
fn programs(runs: &[Run]) -> Vec<Vec<Run>> {
    let mut all: Vec<(String, Vec<Run>)> = Vec::new();
    for run in runs {
        let program = run.program();
        match all.iter_mut().find(|(name, _)| name == program) {
            Some((_, own)) => own.push(run.clone()),
            None => all.push((program.into(), vec![run.clone()])),
        }
    }
    all.into_iter().map(|(_, runs)| runs).collect()
}

fn shares(c: &Components) -> [f64; 5] {
    [c.compute_s, c.waiting_s, c.active_s, c.contention_s, c.switch_s]
}

/// Of each part of a prediction.
fn intervals(of: &Intervals) -> [Option<(f64, f64)>; 5] {
    [of.compute_s, of.waiting_s, of.active_s, of.contention_s, of.switch_s]
}

/// An interval in words.
fn between((low, high): (f64, f64)) -> String {
    format!("{} to {}", units::seconds(low), units::seconds(high))
}

fn of_one(inputs: &Inputs, k: usize, runs: Vec<Run>) -> Result<Vec<Block>> {
    let (cores, spread) = inputs.placed;
    let machine = Machine::of_policy(inputs.policy, cores)?;
    let command = runs[0].command.clone();
    let app = Application::fit(runs, &machine, spread)?;
    let left_out = app.left_out(&machine, spread)?;
    let measured: Vec<(f64, f64)> = left_out.iter().filter_map(|(ranks, _)| Some((*ranks as f64, app.measured_s(*ranks)?))).collect();
    let predicted: Vec<&Prediction> = left_out.iter().filter_map(|l| l.1.as_ref()).collect();
    let mut table = Table::new(&["processes", "measured", "predicted", "95 % interval", "too long by"]);
    for (ranks, p) in &left_out {
        let wall = app.measured_s(*ranks);
        let p = p.as_ref();
        let interval = or_dash(p.and_then(|p| p.interval_s), between);
        let off = or_dash(p.zip(wall), |(p, wall)| percent(p.wall_s / wall - 1.0));
        table.row([ranks.to_string(), or_dash(wall, units::seconds), or_dash(p, |p| units::seconds(p.wall_s)), interval, off]);
    }
    let bar = |p: &&Prediction| p.interval_s.map(|(low, high)| Bar { x: p.ranks as f64, low, high });
    let lines = vec![
        Line {
            name: "predicted from the others".into(),
            colour: Some(0),
            shape: Shape::Both,
            points: predicted.iter().map(|p| (p.ranks as f64, p.wall_s)).collect(),
            bars: predicted.iter().filter_map(bar).collect(),
        },
        // on top: where both agree both are seen
        Line { name: "measured".into(), colour: None, shape: Shape::Crosses, points: measured, bars: Vec::new() },
    ];
    let up = Axis { words: "wall time".into(), scale: Scale::Seconds };
    let panel = Panel { up, lines, marks: Vec::new(), height: 320, within: None };
    let none = if predicted.is_empty() { " Predictions need runs at three numbers of processes." } else { "" };
    let wall = Figure {
        id: format!("application-{}-wall", k + 1),
        title: format!("Wall time of {command}"),
        words: format!("{} runs.{none}", app.runs.len()),
        svg: chart(&Axis { words: "processes".into(), scale: Scale::Count }, &[panel])?,
        cells: None,
        table,
    };
    Ok(vec![Block::Figure(wall), Block::Figure(split(k, &command, &app, &left_out)?)])
}

/// The parts of runs of so many processes, in their mean.
fn measured(app: &Application, ranks: usize) -> Option<Vec<f64>> {
    let own: Vec<[f64; 5]> =
        app.runs.iter().zip(&app.splits).filter(|(r, _)| r.ranks == ranks).map(|(_, s)| shares(&s.components)).collect();
    (0..PARTS.len()).map(|part| stats::mean(&own.iter().map(|s| s[part]).collect::<Vec<_>>())).collect()
}

fn split(k: usize, command: &str, app: &Application, left_out: &[(usize, Option<Prediction>)]) -> Result<Figure> {
    let stack = |(ranks, p): &(usize, Option<Prediction>)| Stack {
        name: ranks.to_string(),
        left: measured(app, *ranks),
        right: p.as_ref().map(|p| shares(&p.components).to_vec()),
        bars: p.as_ref().map_or(Vec::new(), |p| intervals(&p.component_intervals_s).to_vec()),
    };
    let stacks: Vec<Stack> = left_out.iter().map(stack).collect();
    let mut table = Table::new(&["processes", "of"]);
    table.header.extend(PARTS.iter().map(|p| p.to_string()));
    for stack in &stacks {
        let mut row = |of: &str, cells: Vec<String>| table.row([stack.name.clone(), of.into()].into_iter().chain(cells));
        let seconds = |parts: &Vec<f64>| parts.iter().map(|t| units::seconds(*t)).collect();
        stack.left.iter().for_each(|parts| row("measured", seconds(parts)));
        if let Some(parts) = &stack.right {
            row("predicted", seconds(parts));
            row("95 % interval", stack.bars.iter().map(|bar| or_dash(*bar, between)).collect());
        }
    }
    Ok(Figure {
        id: format!("application-{}-parts", k + 1),
        title: format!("Where the time of {command} goes"),
        words: "As shares of the measured wall time: on the left of each pair measured, on the right predicted. Lines are 95 % intervals of the ends of parts, each as \
                if those below it were as predicted; where there is none, the part is nothing or too few runs tell."
            .into(),
        svg: parts(&stacks, &PARTS, "processes: measured (left), predicted from the others (right)")?,
        cells: None,
        table,
    })
}
