//! The pipeline from measuring to a policy.

mod across;
mod chosen;
mod inside;
mod links;
mod over_all;
mod rows;

use crate::cluster::{Bound, METHODS, Method};
use crate::collective::{Collective, barrier, bcast};
use crate::discover::{Discovery, FoundGroup, discover};
use crate::error::Result;
use crate::fit::{fit_compute, fit_groups};
use crate::measure::Session;
use crate::model::{Inside, MODELS, RankSet};
use crate::plan::{Location, placement};
use crate::policy::{GroupPolicy, OverGroups, Policy, Provenance};
use crate::score::score_groups;
use crate::topology::Declared;
use std::collections::BTreeMap;

/// What took as long as was predicted, within this share, is predicted well, and so are its neighbours.
const HOLDS: f64 = 0.02;

/// What tuning may be told.
#[derive(Clone, Copy)]
pub struct TuneOptions<'a> {
    /// Hosts and groups that the user declares.
    pub declared: Option<&'a Declared>,
    /// The way to group.
    pub method: &'static Method,
    /// Its bound.
    pub bound: Bound,
    /// The collectives to tune.
    pub collectives: &'a [&'static Collective],
    /// Measure every candidate, and not only those that the models predict to be fast: to see what prediction saves and what it costs.
    pub exhaustive: bool,
}

/// The collectives that are tuned where nobody names any.
pub const BY_DEFAULT: [&Collective; 2] = [&bcast::COLLECTIVE, &barrier::COLLECTIVE];

impl Default for TuneOptions<'_> {
    fn default() -> Self {
        TuneOptions { declared: None, method: METHODS[0], bound: Bound::default(), collectives: &BY_DEFAULT, exhaustive: false }
    }
}

/// Measures, groups, fits, scores and selects.
///
/// # Errors
/// The session's, or fewer than two ranks.
pub fn tune(session: &mut Session, options: TuneOptions) -> Result<(Discovery, Policy)> {
    let discovery = discover(session, options.declared, options.method, options.bound)?;
    let (mut rank_sets, hosts): (Vec<RankSet>, Vec<Vec<String>>) = discovery.groups.iter().map(by_host).unzip();
    let inside_host = links::inside_hosts(session, &rank_sets, &hosts)?;
    let fitted = fit_groups(session, &rank_sets, MODELS)?;
    let inside_port_sharing = links::inside_port_sharing(session, &rank_sets, &hosts, &fitted)?;
    for (k, rank_set) in rank_sets.iter_mut().enumerate() {
        rank_set.inside = Some(Inside::new(&hosts[k], inside_host[k].clone(), inside_port_sharing[k], &fitted[k]));
    }
    let compute = fit_compute(session, &rank_sets)?;
    for (rank_set, compute) in rank_sets.iter_mut().zip(&compute) {
        rank_set.inside = rank_set.inside.take().map(|inside| inside.with_compute(compute.clone()));
    }
    let links = links::fit(session, &discovery, &rank_sets)?;
    let port_sharing = links::port_sharing(session, &rank_sets, &links)?;
    let mut scores = score_groups(session, &rank_sets, &fitted)?;
    let choices = inside::choose(session, options.collectives, &rank_sets, &fitted, &mut scores, options.exhaustive)?;
    let settings = session.settings().clone();
    let mut groups = Vec::new();
    for (k, (g, choices)) in discovery.groups.iter().zip(choices).enumerate() {
        groups.push(GroupPolicy {
            name: g.name.clone(),
            latency_s: g.latency_s,
            port_sharing: port_sharing[k],
            hosts: hosts[k].clone(),
            inside_host: inside_host[k].clone(),
            inside_port_sharing: inside_port_sharing[k],
            compute: compute[k].clone(),
            choices,
            scores: std::mem::take(&mut scores[k].models),
            models: fitted[k].clone(),
            calibration: std::mem::take(&mut scores[k].calibration),
        });
    }
    let mut policy = Policy {
        collectives: BTreeMap::new(),
        groups,
        links,
        provenance: Provenance {
            platform: settings.platform,
            ranks: settings.hosts.len(),
            library: settings.library,
            timer: settings.timer,
            date: settings.date,
            made_by: concat!("collwise ", env!("CARGO_PKG_VERSION")).into(),
            measuring_s: session.elapsed(),
        },
    };
    if rank_sets.len() > 1 {
        let ranks: Vec<Vec<usize>> = rank_sets.iter().map(|r| r.ranks.clone()).collect();
        let members = placed(session.ranks(), &ranks);
        let over_groups = |two_level, calibration| OverGroups { placement: Some(placement(&members)), two_level, calibration };
        if options.collectives.contains(&&bcast::COLLECTIVE) {
            let (rows, calibration) = across::choose(session, &policy, &members, options.exhaustive)?;
            policy.collectives.insert(&bcast::COLLECTIVE, over_groups(rows, calibration));
        }
        let rows = over_all::choose(session, &policy, &members, options.collectives)?;
        policy.collectives.extend(rows.into_iter().map(|(collective, rows)| (collective, over_groups(rows, BTreeMap::new()))));
        policy.provenance.measuring_s = session.elapsed();
    }
    // what is used is what is written, to the last digit
    Ok((discovery, Policy::parse("the new policy", &policy.to_toml()?)?))
}

/// Where each of so many ranks is, from the ranks of each group in the order of its positions.
fn placed(all: usize, ranks: &[Vec<usize>]) -> Vec<Location> {
    let mut members = vec![Location { group: 0, position: 0 }; all];
    for (group, ranks) in ranks.iter().enumerate() {
        ranks.iter().enumerate().for_each(|(position, &r)| members[r] = Location { group, position });
    }
    members
}

/// The ranks of a group with those of different hosts first (the pair that stands for the group should cross its network), and the host of
/// each.
fn by_host(group: &FoundGroup) -> (RankSet, Vec<String>) {
    let mut rounds: Vec<(usize, usize, String)> = Vec::new();
    for (k, host) in group.hosts.iter().enumerate() {
        rounds.push((group.hosts[..k].iter().filter(|h| *h == host).count(), group.ranks[k], host.clone()));
    }
    rounds.sort_unstable();
    let (ranks, hosts) = rounds.into_iter().map(|(_, rank, host)| (rank, host)).unzip();
    (RankSet::new(ranks), hosts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::SimulatedProbe;
    use crate::platform::Placement;
    use crate::platform::generate::{Wanted, generate};
    use crate::predict::EVENTS;

    /// What is too slow is known before it is replayed to its end, and what was predicted is not predicted again: it were 58 million events.
    #[test]
    fn hundreds_of_hosts_are_predicted_in_few_events() {
        let platform = generate(Wanted { sites: 20, hosts: 600, seed: 5 }).unwrap();
        let mut probe = SimulatedProbe::new(&platform, Placement::Slot, 1).unwrap();
        tune(&mut Session::new(&mut probe), TuneOptions::default()).unwrap();
        let events = EVENTS.get() / 1_000_000;
        println!("{events} million events");
        assert!(events < 44, "{events} million events");
    }
}
