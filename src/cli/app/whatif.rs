//! `collwise app whatif`

use super::super::explain::or_dash;
use super::super::reasons::{no_row, too_long};
use super::super::table::{percent, table};
use super::super::{Outcome, print, print_json};
use super::overlap::{longest_call, not_computing, share_alone, wall};
use super::warn_unlisted;
use crate::collective::Collective;
use crate::error::Error;
use crate::plan::{Location, Plan, everybody, members, native_seconds, placement, plan};
use crate::policy::{CompiledPolicy, Policy};
use crate::qnm::{Listed, Partners, Report, Share, Site, collective, makes_communicator, partners, parts};
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
    /// As much at most: if no process waited for others, and calls overlap by the policy as far as they can.
    at_most_s: f64,
    #[serde(skip)]
    times: Times,
}

/// What hangs together at all sites.
#[derive(Debug)]
struct Times {
    /// Seconds of a call on the process that is at the site longest.
    longest_s: f64,
    /// Seconds from one call to the next by the policy, if calls overlap.
    least_s: f64,
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
    /// Of all sites: what they take of the time in which the process that computes longest does not compute, less what the policy says.
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
    let reports = Report::read_all(&args.reports)?;
    reports.iter().for_each(|report| warn_unlisted(&report.file, (1.0 - report.listed.bytes_share, 1.0 - report.listed.time_share)));
    let answers: Vec<Answer> = reports.iter().map(|report| answer(report, &compiled)).collect::<anyhow::Result<_>>()?;
    if args.json {
        print_json(&answers)?;
    } else {
        let all: Vec<String> = answers.iter().map(text).collect();
        print(&all.join("\n"))?;
    }
    Ok(Outcome::Done)
}

fn answer(report: &Report, compiled: &CompiledPolicy) -> anyhow::Result<Answer> {
    let (members, on_first_ranks) = placed(report, compiled)?;
    let (mut savings, not_known) = at_sites(report, compiled, &members)?;
    let saved_s = overlapped(report, &mut savings);
    let at_most_s = at_most(report, &mut savings);
    // a program without such calls sets nothing up
    let setup_s = compiled.policy.provenance.setup_s.filter(|_| !savings.is_empty());
    Ok(Answer {
        report: report.file.clone(),
        ranks: report.ranks(),
        wall_s: wall(report),
        saved_s: saved_s.map(|saved| saved.min(at_most_s)),
        at_most_s,
        setup_s,
        tuned_ranks: compiled.policy.provenance.ranks,
        untuned_s: not_known.iter().fold(0.0, |all, n| all + n.seconds),
        on_first_ranks,
        savings,
        not_known,
    })
}

/// What each site's calls save by themselves, and of which it is not known.
fn at_sites(report: &Report, compiled: &CompiledPolicy, members: &[Location]) -> anyhow::Result<(Vec<Saving>, Vec<NotKnown>)> {
    let ranks = report.ranks();
    let (mut savings, mut not_known) = (Vec::new(), Vec::<NotKnown>::new());
    let sites = alike(report);
    let shares = sites.iter().flat_map(|site| parts(report, site).into_iter().map(move |share| (site, share)));
    // a process alone sends nothing
    for (site, share) in shares.filter(|(_, share)| share.part.map_or(ranks, |part| part.ranks) > 1) {
        let site = &shared(site, share);
        let among = match share.part {
            None => Some(members.to_vec()),
            Some(part) => part.first(members),
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
    Ok((savings, not_known))
}

/// What all save at most: no more than the time in which nobody must compute, as each of them.
fn at_most(report: &Report, savings: &mut [Saving]) -> f64 {
    let there_is = not_computing(report);
    let changed = || savings.iter().filter(|s| !s.is_native);
    let they_take = changed().fold(0.0, |all, s| all + s.calls * s.times.longest_s).min(there_is);
    let at_most_s = changed().fold(they_take, |left, s| left - s.calls * s.times.least_s);
    savings.iter_mut().filter(|s| !s.is_native).for_each(|s| s.at_most_s = s.at_most_s.min(there_is - s.calls * s.times.least_s));
    at_most_s
}

/// What is saved at all sites where it is known; it is put down at each. No call took more than it did on the process that was in it longest. And calls overlap in
/// programs: some processes are in the next one when others are not done. Where the library's own would take more, one after the other, than there is time in
/// which nobody must compute, each takes its share of that. What is certainly lost at other sites is taken off.
fn overlapped(report: &Report, savings: &mut [Saving]) -> Option<f64> {
    let own = |s: &Saving| s.native_s.map(|own_s| s.calls * own_s.min(s.times.longest_s));
    let changed = || savings.iter().filter(|s| !s.is_native);
    let (all, there_is) = (changed().filter_map(own).fold(0.0, |a, b| a + b), not_computing(report));
    let lost = changed().filter(|s| s.native_s.is_none()).fold(0.0, |all, s| all + (s.in_turn_s - s.times.longest_s).max(0.0) * s.calls);
    let all_native = changed().next().is_none();
    let share = if all > there_is { there_is / all } else { 1.0 };
    for s in savings.iter_mut().filter(|s| !s.is_native) {
        s.saved_s = own(s).map(|own_s| share * own_s - s.calls * s.in_turn_s);
    }
    let known = savings.iter().filter(|s| all_native || !s.is_native).filter_map(|s| s.saved_s).reduce(|a, b| a + b);
    known.map(|saved| saved - lost)
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
            // sums are given to few digits
            let same_size = match (site.mean_bytes, other.mean_bytes) {
                (Some(a), Some(b)) => a == b,
                (a, b) => a == b && each(site) == each(other),
            };
            site.call == other.call && same_place && same_size
        };
        match all.iter_mut().find(same) {
            None => all.push(site.clone()),
            Some(known) => {
                if is_address(&known.place) {
                    known.place.clone_from(&site.place);
                }
                known.count = known.count.zip(site.count).map(|(a, b)| a + b);
                known.by_task.extend(&site.by_task);
                known.seconds += site.seconds;
                known.bytes += site.bytes;
            }
        }
    }
    all.iter_mut().for_each(|site| scale_up(site, report.listed));
    all
}

/// As many more calls as the report does not list: those are taken to be alike.
fn scale_up(site: &mut Site, listed: Listed) {
    let calls = listed.calls_share(site.bytes);
    site.count = site.count.map(|count| count / calls);
    site.bytes /= calls;
    site.seconds /= listed.time_share;
    site.by_task.iter_mut().for_each(|(_, seconds)| *seconds /= listed.time_share);
}

/// The calls of a site that are among the same processes.
fn shared(site: &Site, share: Share) -> Site {
    let Share { calls, seconds, bytes, .. } = share;
    let count = site.count.map(|count| count * calls);
    let bytes = bytes.zip(count).map_or(site.bytes * calls, |(bytes, count)| bytes * count);
    let by_task = site.by_task.iter().map(|(task, all)| (*task, all * seconds)).collect();
    Site {
        count,
        bytes,
        mean_bytes: site.mean_bytes.and(share.bytes).or(site.mean_bytes),
        seconds: site.seconds * seconds,
        by_task,
        ..site.clone()
    }
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
    let apart_s = if is_native || !collective.rooted { None } else { apart(compiled, members, &plan, bytes)? };
    let least_s = apart_s.map_or(adaptive_s, |apart_s| apart_s.min(adaptive_s));
    let as_tuned = compiled.is_as_measured(collective, members.len(), &placement(members));
    let native_s = if is_native { Some(adaptive_s) } else { as_tuned.then(|| native_seconds(compiled, collective, bytes)).flatten() };
    let (calls, measured_s, longest_s) = (count / report.ranks() as f64, site.seconds / count, longest_call(site, count));
    Ok(Ok(Saving {
        site: site.id,
        place: site.place.clone(),
        call: site.call.clone(),
        among: members.len(),
        calls,
        bytes,
        measured_s,
        native_s,
        adaptive_s,
        in_turn_s: alone * adaptive_s + (1.0 - alone) * least_s,
        is_native,
        saved_s: is_native.then_some(0.0),
        at_most_s: if is_native { 0.0 } else { calls * (longest_s - least_s) },
        times: Times { longest_s, least_s },
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
fn apart(compiled: &CompiledPolicy, members: &[Location], plan: &Plan, bytes: usize) -> anyhow::Result<Option<f64>> {
    let shape = plan.form.collective().shape(members.len(), 0, bytes);
    match plan.form.seconds_apart(compiled, members, &shape) {
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
            if s.at_most_s > 0.0 { units::seconds(s.at_most_s) } else { "0 s".into() },
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
        let share = |t: f64| format!("{}, {} of wall time", units::seconds(t), percent(t / answer.wall_s));
        match answer.saved_s {
            Some(saved) if saved > 0.0 => {
                out += &format!("saved: {}, if all go on together; less where those that are done first do not wait\n", share(saved));
            }
            Some(saved) if saved < 0.0 => out += &format!("saved: nothing; by the policy calls take {} more\n", units::seconds(-saved)),
            Some(_) => out += "saved: nothing\n",
            None => {}
        }
        match answer.at_most_s {
            most if most > 0.0 => out += &format!("at most, if no process waited for others that were late: {}\n", share(most)),
            _ => out += "at most: nothing, even if no process waited for others that were late\n",
        }
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
