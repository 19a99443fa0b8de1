//! `collwise app fit`

use super::super::table::{percent, table};
use super::super::{Outcome, print, print_json};
use super::picture::{Bar, draw};
use super::{Runs, fitted, policy};
use crate::files::write_text;
use crate::qnm::{Active, Application, CallLaw, Components, Computing, Partners, Per, Prediction, Said, Series, Weighted, partners};
use crate::units;
use std::fmt::Write;
use std::path::PathBuf;

/// A law that weighs less than this among those of computing is not listed.
const A_SAY: f64 = 0.05;

/// Split the wall time of runs, and fit how the parts scale.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    runs: Runs,
    /// Draw the runs beside what the others predict of them into this SVG file.
    #[arg(long)]
    svg: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let compiled = policy(args.runs.place.policy.as_ref())?;
    let machine = args.runs.place.machine(compiled.as_ref())?;
    let spread = args.runs.place.placement.into();
    let app = fitted(args.runs.read()?, &machine, spread)?;
    let left_out = app.left_out(&machine, spread)?;
    if let Some(path) = &args.svg {
        write_text(path, &picture(&app, &left_out)?)?;
    }
    if args.json {
        let others: Vec<_> = left_out
            .iter()
            .map(|(ranks, p)| serde_json::json!({ "ranks": ranks, "measured_s": app.measured_s(*ranks), "predicted": p, "error": error(&app, *ranks, p.as_ref()) }))
            .collect();
        print_json(&serde_json::json!({ "application": app, "left_out": others }))?;
    } else {
        print(&text(&app, &left_out))?;
    }
    Ok(Outcome::Done)
}

/// How much too long a prediction is, as a share.
fn error(app: &Application, ranks: usize, prediction: Option<&Prediction>) -> Option<f64> {
    Some(prediction?.wall_s / app.measured_s(ranks)? - 1.0)
}

/// The components, in words.
pub fn parts(c: &Components) -> [String; 5] {
    [c.compute_s, c.waiting_s, c.active_s, c.contention_s, c.switch_s].map(units::seconds)
}

fn text(app: &Application, left_out: &[(usize, Option<Prediction>)]) -> String {
    let mut out = String::from("Where the time of a process goes\n\n");
    let rows: Vec<Vec<String>> = app
        .runs
        .iter()
        .zip(&app.splits)
        .map(|(run, split)| {
            let mark = if split.switch_clamped { " *" } else { "" };
            let mut row = vec![run.ranks.to_string(), units::seconds(run.wall_s)];
            row.extend(parts(&split.components));
            row.extend([format!("{:.0}{mark}", split.traffic.messages), units::bytes(split.traffic.message_bytes.round() as usize)]);
            row
        })
        .collect();
    out += &table(&["processes", "wall", "computing", "waiting", "MPI active", "contention", "network", "messages", "of bytes"], 0, &rows);
    if app.splits.iter().any(|s| s.switch_clamped) {
        out += "* these would take longer on this network than the run was in MPI: they overlap, or the network is faster\n";
    }
    out += "\nHow it scales with the number P of processes\n\n";
    let mut rows = computing(&app.compute);
    match &app.active {
        Active::Law { per, law } => {
            let per = match per {
                Per::Process => "MPI active (s)",
                Per::Message => "MPI active (s) per message",
                Per::Byte => "MPI active (s) per byte",
            };
            rows.push(vec![per.into(), law.words(), percent(law.deviation)]);
        }
        Active::Table(_) => rows.push(vec!["MPI active (s)".into(), "none in some runs: interpolated".into(), "-".into()]),
    }
    for call in &app.calls {
        let name = if call.nth > 0 { format!("{} among parts", call.name) } else { call.name.clone() };
        if let Some(part) = &call.part {
            rows.extend(laws(format!("processes of {name}"), &part.ranks));
        }
        rows.extend(laws(format!("calls of {name}"), &call.count));
        if let Some(bytes) = &call.bytes {
            let by = match call.said {
                Said::Report | Said::User | Said::Others | Said::Nobody => "",
                Said::Match => ", by matching calls",
                Said::Time => ", by its time",
            };
            rows.extend(laws(format!("bytes of {name}{by}"), bytes));
        }
    }
    out += &table(&["of a process", "law", "deviation"], 2, &rows);
    out += &observed(app);
    if left_out.iter().any(|l| l.1.is_some()) {
        out += "\nEach number of processes, predicted from the runs at all others\n\n";
        let rows: Vec<Vec<String>> = left_out
            .iter()
            .map(|(ranks, p)| {
                let measured = app.measured_s(*ranks).map_or("-".into(), units::seconds);
                let Some(p) = p else { return vec![ranks.to_string(), measured, "-".into()] };
                let error = error(app, *ranks, Some(p)).map_or("-".into(), |e| format!("{}{}", if e > 0.0 { "+" } else { "" }, percent(e)));
                vec![ranks.to_string(), measured, units::seconds(p.wall_s), interval(p), error, remark(p)]
            })
            .collect();
        out += &table(&["processes", "measured", "predicted", "95 % interval", "error", ""], 0, &rows);
        let errors: Vec<f64> = left_out.iter().filter_map(|(r, p)| error(app, *r, p.as_ref())).map(f64::abs).collect();
        let within = |share: f64| errors.iter().filter(|e| **e <= share).count();
        let _ = writeln!(out, "\nwithin 10 %: {} of {n}, within 30 %: {} of {n}", within(0.1), within(0.3), n = errors.len());
    }
    out
}

/// What the runs show beside numbers.
fn observed(app: &Application) -> String {
    let mut out = String::new();
    let mut breaks: Vec<(usize, usize)> =
        app.calls.iter().flat_map(|c| [Some(&c.count), c.bytes.as_ref()].into_iter().flatten().flat_map(Series::breaks)).collect();
    breaks.sort_unstable();
    breaks.dedup();
    for (before, after) in breaks {
        let _ = writeln!(
            out,
            "between {before} and {after} processes the program changes how it divides its work: its calls follow other laws"
        );
    }
    for other in &app.observed.algorithms {
        let _ = match other.round_s {
            None => writeln!(out, "MPI_{} takes what another algorithm than the library's usual one would: {}", other.call, other.name),
            Some(_) => writeln!(
                out,
                "MPI_{} grows as it would by another algorithm ({}), whose messages would be smaller than elements: processes wait for others there",
                other.call, other.name
            ),
        };
    }
    if app.calls.iter().any(|c| partners(&c.name) == Some(Partners::Program)) {
        let words = app.observed.neighbours.words();
        let is_known = |call: &&CallLaw| app.runs.iter().all(|run| run.ranks == 1 || app.observed.knows_partners(&call.name, run.ranks));
        let _ = if app.observed.distances.is_empty() {
            writeln!(out, "processes seem to send to {words}: reports do not say to whom")
        } else if app.calls.iter().all(|call| is_known(&call)) {
            writeln!(out, "whom processes send to is known of as many as were run; with others it is taken to be {words}")
        } else {
            writeln!(out, "whom processes send to is known of some calls and runs; elsewhere it is taken to be {words}")
        };
    }
    out
}

/// Rows of the laws that computing follows beyond the runs: those that have a say, and how much of one.
fn computing(compute: &Computing) -> Vec<Vec<String>> {
    let rows = |what: &str, laws: &[Weighted]| {
        let listed = laws.iter().filter(|law| law.weight >= A_SAY).collect::<Vec<_>>();
        let say = |weight: f64| if listed.len() > 1 { format!(", {} of it", percent(weight)) } else { String::new() };
        let row = |law: &&Weighted| vec![format!("computing (s), {what}{}", say(law.weight)), law.law.words(), percent(law.law.deviation)];
        listed.iter().map(row).collect::<Vec<_>>()
    };
    if compute.below == compute.above {
        return rows("beyond what was run", &compute.above);
    }
    [rows("below what was run", &compute.below), rows("above what was run", &compute.above)].concat()
}

/// Rows of the laws that values follow, one after the other where a program changes how it divides its work.
fn laws(what: String, series: &Series) -> Vec<Vec<String>> {
    let mut rows = series.earlier.as_ref().map_or(Vec::new(), |e| laws(format!("{what}, up to {}", e.points[e.points.len() - 1].0), e));
    let words = if series.by_law || series.earlier.is_some() { series.law.words() } else { format!("{} beyond", series.law.words()) };
    let from = if series.earlier.is_some() { format!(", from {} on", series.points[0].0) } else { String::new() };
    rows.push(vec![format!("{what}{from}"), words, percent(series.law.deviation)]);
    rows
}

/// A prediction's interval, in words.
pub fn interval(p: &Prediction) -> String {
    p.interval_s.map_or("unknown".into(), |(low, high)| format!("{} to {}", units::seconds(low), units::seconds(high)))
}

/// What to know of a prediction.
pub fn remark(p: &Prediction) -> String {
    if p.extrapolated { "extrapolated".into() } else { String::new() }
}

/// Runs beside what the others predict of them.
fn picture(app: &Application, left_out: &[(usize, Option<Prediction>)]) -> anyhow::Result<String> {
    let bar = |(ranks, p): &(usize, Option<Prediction>)| Bar {
        ranks: *ranks,
        measured: measured(app, *ranks),
        predicted: p.as_ref().map(|p| p.components),
    };
    draw(&app.runs[0].command, "predicted from the others", &left_out.iter().map(bar).collect::<Vec<_>>())
}

/// The parts of runs of so many processes, in their mean.
pub fn measured(app: &Application, ranks: usize) -> Option<Components> {
    let own = || app.runs.iter().zip(&app.splits).filter(|(r, _)| r.ranks == ranks).map(|(_, s)| &s.components);
    let mean = |of: fn(&Components) -> f64| crate::stats::mean(&own().map(of).collect::<Vec<_>>());
    Some(Components {
        switch_s: mean(|c| c.switch_s)?,
        waiting_s: mean(|c| c.waiting_s)?,
        contention_s: mean(|c| c.contention_s)?,
        active_s: mean(|c| c.active_s)?,
        compute_s: mean(|c| c.compute_s)?,
    })
}
