//! `collwise app whatif`

use super::super::explain::everybody;
use super::super::table::{percent, table};
use super::super::{Outcome, print, print_json};
use crate::collective::bcast;
use crate::plan::{Location, members, placement, plan};
use crate::policy::{CompiledPolicy, Policy};
use crate::qnm::{Partners, Report, Site, partners};
use crate::units;
use serde::Serialize;
use std::path::PathBuf;

/// Say how much wall time tuned broadcasts would save.
#[derive(clap::Args)]
pub struct Args {
    /// Reports of mpiP 3.
    #[arg(required = true)]
    reports: Vec<PathBuf>,
    /// The policy that would be used.
    #[arg(long)]
    policy: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What one call site would save.
#[derive(Debug, Serialize)]
struct Saving {
    site: usize,
    place: String,
    /// Calls of a process.
    calls: f64,
    bytes: usize,
    /// Seconds of one call in the report, waiting for the root included.
    measured_s: f64,
    /// Seconds of the library's own broadcast, as measured when the policy was tuned, where it was and for as many ranks.
    native_s: Option<f64>,
    /// Seconds by the policy.
    adaptive_s: f64,
    /// Seconds of a process in all calls, if they take what the library's own takes without waiting; unknown without that.
    saved_s: Option<f64>,
    /// As much at most: if no process waited for the root.
    at_most_s: f64,
}

#[derive(Debug, Serialize)]
struct Answer {
    report: String,
    ranks: usize,
    wall_s: f64,
    savings: Vec<Saving>,
    /// Of all sites where it is known.
    saved_s: f64,
    at_most_s: f64,
    /// Seconds in other collectives: what policies save of these is not known here.
    untuned_s: f64,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let compiled = CompiledPolicy::new(Policy::read(&args.policy)?)?;
    let answers: Vec<Answer> = args.reports.iter().map(|p| answer(&Report::read(p)?, &compiled)).collect::<anyhow::Result<_>>()?;
    if args.json {
        print_json(&answers)?;
    } else {
        let all: Vec<String> = answers.iter().map(text).collect();
        print(&all.join("\n"))?;
    }
    Ok(Outcome::Done)
}

fn answer(report: &Report, compiled: &CompiledPolicy) -> anyhow::Result<Answer> {
    let ranks = report.ranks();
    let members = placed(report, compiled)?;
    let as_tuned = compiled.is_as_measured(&bcast::COLLECTIVE, ranks, &placement(&members));
    let saving = |site: &Site| -> anyhow::Result<Option<Saving>> {
        let Some(count) = site.count.filter(|c| *c > 0.0) else { return Ok(None) };
        let bytes = (site.bytes / count).round() as usize;
        let planned = plan(compiled, &members, 0, bytes)?;
        let (calls, measured_s) = (count / ranks as f64, site.seconds / count);
        let adaptive_s = planned.native_s.unwrap_or(planned.predicted_s);
        let native_s =
            planned.native_s.or(compiled.two_level(&bcast::COLLECTIVE, bytes).filter(|_| as_tuned).and_then(|row| row.evidence.native_s));
        // a call cannot have taken longer than it was seen to take
        let saved = |own_s: f64| calls * (own_s.min(measured_s) - adaptive_s).max(0.0);
        Ok(Some(Saving {
            site: site.id,
            place: site.place.clone(),
            calls,
            bytes,
            measured_s,
            native_s,
            adaptive_s,
            saved_s: native_s.map(saved),
            at_most_s: if planned.native_s.is_some() { 0.0 } else { saved(measured_s) },
        }))
    };
    let is_tuned = |s: &&Site| s.call == "Bcast";
    let savings: Vec<Saving> = report.sites.iter().filter(is_tuned).filter_map(|s| saving(s).transpose()).collect::<anyhow::Result<_>>()?;
    let untuned = |s: &&Site| !is_tuned(s) && partners(&s.call) == Some(Partners::Anyone);
    Ok(Answer {
        report: report.file.clone(),
        ranks,
        wall_s: report.mean.app_s,
        saved_s: savings.iter().filter_map(|s| s.saved_s).sum(),
        at_most_s: savings.iter().map(|s| s.at_most_s).sum(),
        untuned_s: report.sites.iter().filter(untuned).map(|s| s.seconds / ranks as f64).sum(),
        savings,
    })
}

/// The report's processes in the policy's world: on their hosts, if the policy knows these, else on its first ranks.
fn placed(report: &Report, compiled: &CompiledPolicy) -> anyhow::Result<Vec<Location>> {
    if let Ok(members) = members(&compiled.policy, &report.nodes) {
        return Ok(members);
    }
    let mut all = everybody(&compiled.policy);
    let (ranks, known) = (report.ranks(), all.len());
    if ranks > known {
        anyhow::bail!(
            "apply the policy to {}: it is of {ranks} processes on hosts that the policy does not have, the policy of {known}",
            report.file
        );
    }
    all.truncate(ranks);
    Ok(all)
}

fn text(answer: &Answer) -> String {
    let mut out = format!("{}: {} processes, {} of wall time\n", answer.report, answer.ranks, units::seconds(answer.wall_s));
    let row = |s: &Saving| {
        let place = if s.place.is_empty() { "-" } else { &s.place };
        let or_not = |t: Option<f64>| t.map_or("-".into(), units::seconds);
        let times = [
            units::seconds(s.measured_s),
            or_not(s.native_s),
            units::seconds(s.adaptive_s),
            or_not(s.saved_s),
            units::seconds(s.at_most_s),
        ];
        [vec![s.site.to_string(), place.into(), format!("{:.0}", s.calls), units::bytes(s.bytes)], times.to_vec()].concat()
    };
    if answer.savings.is_empty() {
        out += "it does not call MPI_Bcast, and what is saved is known of broadcasts only\n";
    } else {
        let rows: Vec<Vec<String>> = answer.savings.iter().map(row).collect();
        out += &table(&["site", "place", "calls", "bytes", "in the report", "MPI_Bcast", "adaptive", "saved", "at most"], 2, &rows);
        let share = |t: f64| percent(t / answer.wall_s);
        let (saved, most) = (answer.saved_s, answer.at_most_s);
        if answer.savings.iter().any(|s| s.saved_s.is_some()) {
            let (saved, part) = (units::seconds(saved), share(saved));
            out +=
                &format!("saved: {saved}, {part} of wall time, if all go on together; less where those that have it first do not wait\n");
        }
        out += &format!("at most, if no process waited for a root that was late: {}, {}\n", units::seconds(most), share(most));
    }
    if answer.untuned_s > 0.0 {
        out += &format!("other collectives, of which it is not known what is saved: {}\n", units::seconds(answer.untuned_s));
    }
    out
}
