//! Provenance: who measured what, when, with which library, how sure clocks were, and how to make it again.

use super::tables::Table;
use super::{Block, Inputs, Section, Titled};
use crate::error::Result;
use crate::measure::{Experiment, Samples, Stop};
use crate::policy::Policy;
use crate::units;
use std::collections::BTreeMap;

/// What to know at first sight.
pub(super) fn facts(policy: &Policy) -> Vec<(String, String)> {
    let p = &policy.provenance;
    let of = |name: &str, value: String| (name.to_string(), value);
    vec![
        of("ranks", p.ranks.to_string()),
        of("groups", policy.groups.len().to_string()),
        of("MPI library", p.library.clone()),
        of("measured", p.date.clone()),
        of("for", units::seconds(p.measuring_s)),
    ]
}

pub(super) fn section(inputs: &Inputs) -> Result<Section> {
    let policy = &inputs.policy.policy;
    let mut blocks = vec![Block::Table(of_policy(inputs, policy))];
    match inputs.samples {
        Some((settings, samples)) => {
            let mut table = Table::new(&["of the samples", ""]);
            table.row(["platform", &settings.platform]);
            table.row(["ranks", &settings.hosts.len().to_string()]);
            table.row(["MPI library", &settings.library]);
            table.row(["clock", &settings.timer]);
            table.row(["begun", &settings.date]);
            table.row(["measured by", &settings.build]);
            table.row(["clocks of several ranks", &clocks(samples)]);
            blocks.push(Block::Table(Titled { title: "Samples".into(), words: String::new(), table }));
            blocks.push(Block::Table(experiments(samples)));
        }
        None => blocks.push(Block::Missing("How sure clocks were, and what was measured how often, is shown with --samples FILE.".into())),
    }
    let mut table = Table::new(&["file", "what it is of", "MPI library"]);
    if let Some((name, old)) = inputs.against {
        let p = &old.policy.provenance;
        table.row([
            name.into(),
            format!("policy of {} over {} ranks, measured {}, made by {}", p.platform, p.ranks, p.date, p.made_by),
            p.library.clone(),
        ]);
    }
    for (name, report) in inputs.benches {
        let ranks = report.hosts.len();
        let collective = if report.collective.is_empty() { "a collective" } else { &report.collective };
        let when = if report.date.is_empty() { String::new() } else { format!(", measured {}", report.date) };
        table.row([name.clone(), format!("comparison of {collective} over {ranks} ranks{when}"), report.library.clone()]);
    }
    for traced in inputs.traces {
        let (collective, bytes) = (traced.collective.map_or("a collective", |c| c.name), units::bytes(traced.bytes));
        let root = traced.root.map_or(String::new(), |root| format!(" from rank {root}"));
        table.row([traced.folder.clone(), format!("trace of {collective} of {bytes}{root} over {} ranks", traced.ranks), "-".into()]);
    }
    for run in inputs.runs {
        table.row([run.file.clone(), format!("run of {} over {} processes", run.command, run.ranks), "-".into()]);
    }
    if !table.rows.is_empty() {
        blocks.push(Block::Table(Titled { title: "Other files".into(), words: String::new(), table }));
    }
    let words = "Who measured what, when and with what, and how to make it again.".into();
    Ok(Section { id: "provenance", title: "Provenance", words, blocks })
}

fn of_policy(inputs: &Inputs, policy: &Policy) -> Titled {
    let p = &policy.provenance;
    let mut table = Table::new(&["of the policy", ""]);
    table.row(["platform", &p.platform]);
    table.row(["ranks", &p.ranks.to_string()]);
    table.row(["MPI library", &p.library]);
    table.row(["clock", &p.timer]);
    table.row(["measured", &p.date]);
    table.row(["made by", &p.made_by]);
    table.row(["measuring took", &units::seconds(p.measuring_s)]);
    table.row(["setting a communicator up", &p.setup_s.map_or("not measured".into(), units::seconds)]);
    table.row(["fingerprint", &format!("{:016x}", inputs.policy.fingerprint())]);
    let again = "its file does not say; `mpirun -n RANKS collwise tune -o POLICY`";
    table.row(["to make it again", inputs.made_by.as_deref().unwrap_or(again)]);
    Titled { title: "Policy".into(), words: String::new(), table }
}

/// How far off clocks may be.
fn clocks(samples: &Samples) -> String {
    let Some(found) = samples.clock_errors() else { return "no sample compares any, or says how far off they may be".into() };
    format!(
        "{} samples compare them, {} of which may be off by more than a tenth; in the worst, by {} of {}",
        found.samples,
        found.above,
        units::seconds(found.worst_s),
        units::seconds(found.of_s)
    )
}

/// What was measured, by kind.
fn experiments(samples: &Samples) -> Titled {
    let mut kinds: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for sample in samples.iter() {
        let counts = kinds.entry(kind(&sample.experiment)).or_default();
        counts[0] += 1;
        counts[1] += sample.all().len() + sample.confirmed.len() + sample.in_a_row.len();
        counts[2] += usize::from(sample.stop == Stop::Budget);
        counts[3] += usize::from(sample.stop == Stop::Beaten);
    }
    let mut table = Table::new(&["what", "experiments", "repetitions", "less precise than asked", "stopped since others were faster"]);
    for (kind, counts) in kinds {
        table.row(std::iter::once(kind.to_string()).chain(counts.map(|c| c.to_string())));
    }
    Titled { title: "What was measured".into(), words: String::new(), table }
}

fn kind(experiment: &Experiment) -> &'static str {
    match experiment {
        Experiment::RoundTrip { .. } => "round trips",
        Experiment::SaturationTrain { .. } => "trains of messages",
        Experiment::SendTime { .. } => "sends",
        Experiment::ReceiveTime { .. } => "receives",
        Experiment::OneToManyRoundTrip { .. } | Experiment::OneToManyTrain { .. } => "one to several",
        Experiment::Copy { .. } | Experiment::Combine { .. } => "copying and combining",
        Experiment::TwoLevel { .. } | Experiment::Coordinated { .. } => "collectives over groups",
        Experiment::Collective { .. } => "collectives",
    }
}
