//! Whether groups can be measured side by side, and the links between them.

use super::{Group, links};
use crate::collective::{Parameters, bcast};
use crate::discover::Discovery;
use crate::error::Result;
use crate::library::Library;
use crate::measure::{Experiment, Session, Uplinks, pack};
use crate::stats;
use crate::topology::Rank;

/// Of so long broadcasts: what their bytes take of a processor that hosts share shows.
const BYTES: usize = 16 << 10;
/// So often, since the ones far away begin later.
const RUNS: usize = 64;
/// So many groups are looked at, at most, or lots of links that run side by side, and of each lot so many links.
const CHECKED: usize = 8;
const CHECKED_OF_LOT: usize = 3;
/// Broadcasts inside groups that take so many times as long beside those of other groups as alone disturb each other. In turns all takes as many times as long
/// as there are groups, but for what is disturbed.
const DISTURBED: f64 = 1.5;

/// Messages over links that are looked at: what their bytes take shows beside the latency.
const LINK_BYTES: usize = 1 << 20;
/// So often, since each takes long.
const LINK_RUNS: usize = 3;

/// Where groups disturb each other, as where one machine emulates their hosts, they take turns from now on.
///
/// # Errors
/// The session's.
pub(super) fn check(session: &mut Session, groups: &[Group]) -> Result<()> {
    let long = |group: &Group| Experiment::Collective {
        collective: &bcast::COLLECTIVE,
        ranks: group.rank_set.ranks.clone(),
        root: 0,
        bytes: BYTES,
        algorithm: bcast::COLLECTIVE.fallback.name.into(),
        parameters: Parameters::default(),
    };
    let several: Vec<&Group> = groups.iter().filter(|group| group.rank_set.ranks.len() > 1).collect();
    let all: Vec<Experiment> = several.iter().copied().step_by(several.len().div_ceil(CHECKED).max(1)).map(long).collect();
    // simulated hosts have processors of their own
    let is_simulated = [Library::Simulator, Library::Smpi].contains(&Library::of(&session.settings().library));
    if all.len() < 2 || is_simulated || !session.is_side_by_side() || !session.can_measure() {
        return Ok(());
    }
    // not kept: what was disturbed tells nothing else
    let mut ratios = session.beside(&all, RUNS)?;
    for (ratio, experiment) in ratios.iter_mut().zip(&all) {
        *ratio /= session.alone(experiment)?.max(f64::MIN_POSITIVE);
    }
    let ratio = stats::median(&ratios).unwrap_or(1.0);
    tracing::debug!("long broadcasts inside groups take {ratio:.2} times as long beside those of other groups as alone");
    if ratio > DISTURBED {
        let mut group_of = vec![0; session.ranks()];
        for (k, group) in groups.iter().enumerate() {
            group.rank_set.ranks.iter().for_each(|&rank| group_of[rank] = k);
        }
        session.take_turns(group_of);
    }
    Ok(())
}

/// Where links between groups disturb each other, those of one group do not run side by side from now on, whichever of its hosts they end at: they share its
/// way out. Where that is not enough, as all share a way between two places, links are measured one by one.
///
/// # Errors
/// The session's.
pub(super) fn check_links(session: &mut Session, discovery: &Discovery, groups: &[Group]) -> Result<()> {
    if !session.is_side_by_side() || !session.can_measure() {
        return Ok(());
    }
    let ends = links::ends(discovery, groups);
    let all: Vec<(Experiment, f64)> = ends
        .iter()
        .map(|&((a, b), [from, to])| (Experiment::RoundTrip { a: from, b: to, out: LINK_BYTES, back: 0 }, 2.0 * discovery.between_s[a][b]))
        .collect();
    let hosts = session.settings().hosts.clone();
    if !do_links_disturb(session, &all, &hosts)? {
        return Ok(());
    }
    let mut of_rank = hosts;
    for (k, group) in groups.iter().enumerate() {
        group.rank_set.ranks.iter().for_each(|&rank: &Rank| of_rank[rank] = k.to_string());
    }
    session.share_uplinks(Uplinks { of_rank: of_rank.clone(), one_by_one: false });
    if do_links_disturb(session, &all, &of_rank)? {
        session.share_uplinks(Uplinks { of_rank, one_by_one: true });
    }
    Ok(())
}

/// True if the bytes of a message over some link, beside its latency, take longer while those of others are measured, among ranks that are apart by these names.
fn do_links_disturb(session: &mut Session, all: &[(Experiment, f64)], apart: &[String]) -> Result<bool> {
    let experiments: Vec<Experiment> = all.iter().map(|(experiment, _)| experiment.clone()).collect();
    let mut lots = pack(&experiments, apart, true);
    lots.retain(|lot| lot.len() > 1);
    let mut most = 0.0f64;
    for lot in lots.iter().step_by(lots.len().div_ceil(CHECKED).max(1)) {
        let beside = session.beside(&lot.iter().map(|&k| experiments[k].clone()).collect::<Vec<_>>(), LINK_RUNS)?;
        for (&k, beside_s) in lot.iter().zip(beside).step_by(lot.len().div_ceil(CHECKED_OF_LOT)) {
            let (experiment, latency_s) = &all[k];
            let alone_s = session.alone(experiment)?;
            most = most.max((beside_s - latency_s) / (alone_s - latency_s).max(f64::MIN_POSITIVE));
        }
    }
    tracing::debug!("messages of 1 MiB over links take up to {most:.2} times as long beside each other as alone, latencies apart");
    Ok(most > DISTURBED)
}
