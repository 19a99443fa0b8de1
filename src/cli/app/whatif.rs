//! `collwise app whatif`

use super::super::explain::or_dash;
use super::super::reasons::{no_row, too_long};
use super::super::table::{percent, table};
use super::super::{Outcome, print, print_json};
use super::overlap::{share_alone, taken, wall};
use crate::collective::{Collective, Shape};
use crate::error::Error;
use crate::plan::{Location, Plan, everybody, members, placement, plan};
use crate::policy::{CompiledPolicy, Policy};
use crate::qnm::{Partners, Report, Share, Site, collective, makes_communicator, partners, parts};
use crate::units;
use serde::Serialize;
use std::path::PathBuf;

/// Say how much wall time tuned collectives would save.
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
    /// Without `MPI_`.
    call: String,
    /// Processes of the communicator.
    among: usize,
    /// Calls of a process, in the mean over all.
    calls: f64,
    /// The message, or the block for one partner; 0 where the call has none.
    bytes: usize,
    /// Seconds of one call in the report, waiting for others included.
    measured_s: f64,
    /// Seconds of the library's own, as measured when the policy was tuned, where it was and for as many ranks.
    native_s: Option<f64>,
    /// Seconds by the policy, of a call that begins when no other is under way.
    adaptive_s: f64,
    /// Seconds from one call to the next by the policy: less where calls overlap.
    in_turn_s: f64,
    /// True if that is the library's own.
    is_native: bool,
    /// Seconds of a process in all calls, if they take what the library's own takes without waiting; unknown without that. Less than none where the policy
    /// takes longer.
    saved_s: Option<f64>,
    /// As much at most: if no process waited for others.
    at_most_s: f64,
}

impl Saving {
    /// Seconds of a process by the policy, in all calls.
    fn by_policy(&self) -> f64 {
        self.calls * self.in_turn_s
    }
}

/// Calls of which it is not known what is saved.
#[derive(Debug, Serialize)]
struct NotKnown {
    /// Without `MPI_`.
    call: String,
    /// Seconds of a process, at all sites.
    seconds: f64,
    why: String,
}

#[derive(Debug, Serialize)]
struct Answer {
    report: String,
    ranks: usize,
    wall_s: f64,
    savings: Vec<Saving>,
    /// Of all sites where it is known; nothing where it is of none.
    saved_s: Option<f64>,
    /// Of all sites: what the wall time leaves them beside the rest of what the busiest process does, less what the policy says.
    at_most_s: f64,
    /// What setting a communicator of all ranks of the policy up takes, once, where the policy says it and something is called: not taken off above.
    setup_s: Option<f64>,
    /// Ranks of the policy.
    tuned_ranks: usize,
    /// Seconds of a process in other collectives, and why it is not known what is saved of them.
    untuned_s: f64,
    /// True if the policy does not know the report's hosts: what is said is of its first ranks.
    on_first_ranks: bool,
    not_known: Vec<NotKnown>,
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
    let (members, on_first_ranks) = placed(report, compiled)?;
    let (mut savings, mut not_known) = (Vec::new(), Vec::<NotKnown>::new());
    let sites = alike(report);
    let shares = sites.iter().flat_map(|site| parts(report, site).into_iter().map(move |share| (site, share)));
    // a process alone sends nothing
    for (site, share) in shares.filter(|(_, share)| share.part.map_or(ranks, |part| part.ranks) > 1) {
        let site = &shared(site, share);
        let among = match share.part {
            None => Some(members.clone()),
            Some(part) => part.first(&members),
        };
        let found = match among {
            Some(among) => saving(report, site, compiled, &among)?,
            None => Err("the report does not say among which processes it is".into()),
        };
        match found {
            Ok(saving) => savings.push(saving),
            Err(why) => {
                let seconds = site.seconds / ranks as f64;
                match not_known.iter_mut().find(|n| n.call == site.call && n.why == why) {
                    Some(alike) => alike.seconds += seconds,
                    None => not_known.push(NotKnown { call: site.call.clone(), seconds, why }),
                }
            }
        }
    }
    let taken_s = taken(report, savings.iter().filter(|s| !s.is_native).map(|s| s.calls * s.measured_s).sum());
    let saved_s = overlapped(&mut savings, taken_s);
    let by_policy: f64 = savings.iter().filter(|s| !s.is_native).map(Saving::by_policy).sum();
    // a program without such calls sets nothing up
    let setup_s = compiled.policy.provenance.setup_s.filter(|_| !savings.is_empty());
    let sum = |all: &mut dyn Iterator<Item = f64>| all.fold(0.0, |a, b| a + b);
    Ok(Answer {
        report: report.file.clone(),
        ranks,
        wall_s: wall(report),
        saved_s,
        at_most_s: taken_s - by_policy,
        setup_s,
        tuned_ranks: compiled.policy.provenance.ranks,
        untuned_s: sum(&mut not_known.iter().map(|n| n.seconds)),
        on_first_ranks,
        savings,
        not_known,
    })
}

/// What is saved at all sites where it is known; it is put down at each. Calls overlap in programs: some processes are in the next one when others are not done. Where
/// the library's own would take more, one after the other, than the calls took, each takes its share of that.
fn overlapped(savings: &mut [Saving], taken_s: f64) -> Option<f64> {
    let known = |s: &&mut Saving| !s.is_native && s.native_s.is_some();
    let own: f64 = savings.iter_mut().filter(known).filter_map(|s| s.native_s.map(|own_s| s.calls * own_s)).sum();
    let share = if own > taken_s { taken_s / own } else { 1.0 };
    for s in savings.iter_mut().filter(known) {
        s.saved_s = s.native_s.map(|own_s| share * s.calls * own_s - s.by_policy());
    }
    savings.iter().filter_map(|s| s.saved_s).reduce(|a, b| a + b)
}

/// The sites of collectives, those of one call, size and place together: where programs lie at other addresses on each process, mpiP has a
/// site for each of them.
fn alike(report: &Report) -> Vec<Site> {
    let mut all: Vec<Site> = Vec::new();
    let is_address = |place: &str| place.is_empty() || place.starts_with("0x");
    let each = |site: &Site| site.count.filter(|c| *c > 0.0).map(|count| (site.bytes / count).round());
    for site in report.sites.iter().filter(|s| partners(&s.call) == Some(Partners::Anyone) && !makes_communicator(&s.call)) {
        let same = |other: &&mut Site| {
            let same_place = site.place == other.place || is_address(&site.place) || is_address(&other.place);
            site.call == other.call && same_place && each(site) == each(other) && site.mean_bytes == other.mean_bytes
        };
        match all.iter_mut().find(same) {
            None => all.push(site.clone()),
            Some(known) => {
                if is_address(&known.place) {
                    known.place.clone_from(&site.place);
                }
                known.count = known.count.zip(site.count).map(|(a, b)| a + b);
                known.seconds += site.seconds;
                known.bytes += site.bytes;
            }
        }
    }
    all
}

/// The calls of a site that are among the same processes.
fn shared(site: &Site, share: Share) -> Site {
    let Share { calls, seconds, bytes, .. } = share;
    let count = site.count.map(|count| count * calls);
    let bytes = bytes.zip(count).map_or(site.bytes * calls, |(bytes, count)| bytes * count);
    Site { count, bytes, mean_bytes: site.mean_bytes.and(share.bytes).or(site.mean_bytes), seconds: site.seconds * seconds, ..site.clone() }
}

/// What the calls of a site of a report save that are among these members, or why that is not known.
fn saving(report: &Report, site: &Site, compiled: &CompiledPolicy, members: &[Location]) -> anyhow::Result<Result<Saving, String>> {
    let unknown = |why: &str| Ok(Err(why.to_string()));
    let Some(collective) = collective(&site.call) else { return unknown("policies do not say what it takes") };
    let Some(count) = site.count.filter(|c| *c > 0.0) else { return unknown("the report does not say how often it was called") };
    let Some(bytes) = site.size(collective) else { return unknown("the report does not say how many bytes a call sends") };
    let (adaptive_s, plan) = match adaptive(compiled, members, collective, bytes)? {
        Ok(found) => found,
        Err(why) => return Ok(Err(why)),
    };
    let is_native = plan.is_native();
    let alone = share_alone(report, collective);
    // what takes too long to predict many times is taken to begin alone
    let apart_s =
        if alone < 1.0 && !is_native { apart(compiled, members, &plan, &collective.shape(members.len(), 0, bytes))? } else { None };
    let in_turn_s = apart_s.map_or(adaptive_s, |apart_s| alone * adaptive_s + (1.0 - alone) * apart_s.min(adaptive_s));
    let ranks = members.len();
    let as_tuned = compiled.is_as_measured(collective, ranks, &placement(members));
    let row = compiled.two_level(collective, bytes).filter(|_| as_tuned);
    let native_s = if is_native { Some(adaptive_s) } else { row.and_then(|row| row.evidence.native_s) };
    let (calls, measured_s) = (count / report.ranks() as f64, site.seconds / count);
    Ok(Ok(Saving {
        site: site.id,
        place: site.place.clone(),
        call: site.call.clone(),
        among: ranks,
        calls,
        bytes,
        measured_s,
        native_s,
        adaptive_s,
        in_turn_s,
        is_native,
        saved_s: is_native.then_some(0.0),
        at_most_s: if is_native { 0.0 } else { calls * (measured_s - in_turn_s) },
    }))
}

/// Seconds of a call by the policy, from rank 0, and what it does; or why that is not known.
fn adaptive(
    compiled: &CompiledPolicy,
    members: &[Location],
    collective: &'static Collective,
    bytes: usize,
) -> anyhow::Result<Result<(f64, Plan), String>> {
    let plan = plan(compiled, members, collective, &collective.shape(members.len(), 0, bytes))?;
    Ok(match plan.predicted_s {
        Some(seconds) => Ok((seconds, plan)),
        None if plan.too_long => Err(too_long()),
        None if plan.is_native() => Err(no_row(collective)),
        None => Err("what the policy does takes too long to predict".into()),
    })
}

/// Seconds from one call to the next where they overlap; none where that takes too long to predict, or the library's own is a part of it.
fn apart(compiled: &CompiledPolicy, members: &[Location], plan: &Plan, shape: &Shape) -> anyhow::Result<Option<f64>> {
    match plan.form.seconds_apart(compiled, members, shape) {
        Err(Error::TooLarge(_)) => Ok(None),
        found => Ok(found?),
    }
}

/// The report's processes in the policy's world: on their hosts, if the policy knows all of these, else on its first ranks, and which.
fn placed(report: &Report, compiled: &CompiledPolicy) -> anyhow::Result<(Vec<Location>, bool)> {
    if let Ok(members) = members(&compiled.policy, &report.nodes) {
        return Ok((members, false));
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
    Ok((all, true))
}

fn text(answer: &Answer) -> String {
    let mut out = format!("{}: {} processes, {} of wall time\n", answer.report, answer.ranks, units::seconds(answer.wall_s));
    if answer.on_first_ranks {
        out += "the policy does not have all of its hosts: they are taken to be the policy's first ranks\n";
    }
    let row = |s: &Saving| {
        let place = if s.place.is_empty() { "-" } else { &s.place };
        let bytes = if s.bytes == 0 { "-".into() } else { units::bytes(s.bytes) };
        vec![
            s.site.to_string(),
            place.into(),
            format!("MPI_{}", s.call),
            s.among.to_string(),
            format!("{:.0}", s.calls),
            bytes,
            units::seconds(s.measured_s),
            or_dash(s.native_s),
            units::seconds(s.in_turn_s),
            or_dash(s.saved_s),
            units::seconds(s.at_most_s),
        ]
    };
    if answer.savings.is_empty() {
        out += "it calls no collective of which it is known what is saved\n";
    } else {
        let rows: Vec<Vec<String>> = answer.savings.iter().map(row).collect();
        let titles = ["site", "place", "call", "among", "calls", "bytes", "in the report", "library's own", "adaptive", "saved", "at most"];
        out += &table(&titles, 3, &rows);
        for s in answer.savings.iter().filter(|s| s.in_turn_s < s.adaptive_s) {
            let (alone, apart) = (units::seconds(s.adaptive_s), units::seconds(s.in_turn_s));
            out += &format!("site {}: MPI_{} takes {alone} alone by the policy; calls overlap here, {apart} apart\n", s.site, s.call);
        }
        let share = |t: f64| match t {
            t if t < 0.0 => format!("nothing; by the policy they take {} more", units::seconds(-t)),
            t => format!("{}, {} of wall time", units::seconds(t), percent(t / answer.wall_s)),
        };
        if let Some(saved) = answer.saved_s {
            out += &format!("saved, if all go on together: {}; less where those that are done first do not wait\n", share(saved));
        }
        out += &format!("at most, if no process waited for others that were late now and then: {}\n", share(answer.at_most_s));
        out += &set_up(answer);
    }
    if answer.untuned_s > 0.0 {
        out += &format!("other collectives, of which it is not known what is saved: {}\n", units::seconds(answer.untuned_s));
        answer.not_known.iter().for_each(|n| out += &format!("  MPI_{} ({}): {}\n", n.call, units::seconds(n.seconds), n.why));
    }
    out
}

/// What communicators take once, and what is left of what is saved.
fn set_up(answer: &Answer) -> String {
    let Some(once) = answer.setup_s else {
        return "not counted: that communicators are set up, once; this policy does not say how long it takes\n".into();
    };
    let left = answer.saved_s.filter(|saved| *saved > 0.0).map_or(String::new(), |saved| match saved - once {
        left if left < 0.0 => format!("; that is {} more than is saved", units::seconds(-left)),
        left => format!("; {} of what is saved are left", units::seconds(left)),
    });
    format!(
        "once, until communicators are set up: {} among {} ranks, within the wall time if the program itself calls collwise, and mostly in MPI_Init, before it, \
         if it is preloaded{left}\n",
        units::seconds(once),
        answer.tuned_ranks
    )
}
