//! The pipeline from measuring to a policy.

mod across;
mod inside;
mod links;

use crate::cluster::{Bound, METHODS, Method};
use crate::discover::{Declared, Discovery, FoundGroup, discover};
use crate::error::Result;
use crate::fit::fit_groups;
use crate::measure::Session;
use crate::model::{Inside, MODELS, Roster};
use crate::policy::{GroupPolicy, Policy, Provenance};
use crate::score::score_groups;

/// What tuning may be told.
#[derive(Clone, Copy)]
pub struct TuneOptions<'a> {
    /// Hosts and groups that the user declares.
    pub declared: Option<&'a Declared>,
    /// The way to group.
    pub method: &'static Method,
    /// Its bound.
    pub bound: Bound,
    /// Measure every candidate, and not only those that the models predict to be fast: to see what prediction saves and what it costs.
    pub exhaustive: bool,
}

impl Default for TuneOptions<'_> {
    fn default() -> Self {
        TuneOptions { declared: None, method: METHODS[0], bound: Bound::default(), exhaustive: false }
    }
}

/// Measures, groups, fits, scores and selects.
///
/// # Errors
/// The session's, or fewer than two ranks.
pub fn tune(session: &mut Session, options: TuneOptions) -> Result<(Discovery, Policy)> {
    let discovery = discover(session, options.declared, options.method, options.bound)?;
    let (mut rosters, hosts): (Vec<Roster>, Vec<Vec<String>>) = discovery.groups.iter().map(by_host).unzip();
    let inside_host = links::inside_hosts(session, &rosters, &hosts)?;
    let fitted = fit_groups(session, &rosters, MODELS)?;
    let inside_fan_out = links::inside_fan_out(session, &rosters, &hosts, &fitted)?;
    for (k, roster) in rosters.iter_mut().enumerate() {
        roster.inside = Some(Inside::new(&hosts[k], inside_host[k].clone(), inside_fan_out[k]));
    }
    let links = links::fit(session, &discovery, &rosters)?;
    let fan_out = links::fan_out(session, &rosters, &links)?;
    let mut scores = score_groups(session, &rosters, &fitted)?;
    let choices = inside::choose(session, &rosters, &fitted, &mut scores, options.exhaustive)?;
    let settings = session.settings().clone();
    let parts = discovery
        .groups
        .iter()
        .zip(hosts.into_iter().zip(inside_host).zip(inside_fan_out))
        .zip(fitted)
        .zip(scores)
        .zip(choices)
        .zip(fan_out);
    let groups = parts.map(|(((((g, ((hosts, inside_host), inside_fan_out)), models), scores), bcast), fan_out)| GroupPolicy {
        name: g.name.clone(),
        latency_s: g.latency_s,
        fan_out,
        hosts,
        inside_host,
        inside_fan_out,
        bcast,
        scores: scores.models,
        models,
        experience: scores.experience,
    });
    let mut policy = Policy {
        format: 1,
        groups: groups.collect(),
        links,
        across: Vec::new(),
        placement: None,
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
    if rosters.len() > 1 {
        let ranks: Vec<Vec<usize>> = rosters.iter().map(|r| r.ranks.clone()).collect();
        let (across, placement) = across::choose(session, &policy, &ranks, options.exhaustive)?;
        (policy.across, policy.placement) = (across, Some(placement));
        policy.provenance.measuring_s = session.elapsed();
    }
    // what is used is what is written, to the last digit
    Ok((discovery, Policy::parse("the new policy", &policy.to_toml()?)?))
}

/// The ranks of a group with those of different hosts first (the pair that stands for the group should cross its network), and the host of
/// each.
fn by_host(group: &FoundGroup) -> (Roster, Vec<String>) {
    let mut rounds: Vec<(usize, usize, String)> = Vec::new();
    for (k, host) in group.hosts.iter().enumerate() {
        rounds.push((group.hosts[..k].iter().filter(|h| *h == host).count(), group.ranks[k], host.clone()));
    }
    rounds.sort_unstable();
    let (ranks, hosts) = rounds.into_iter().map(|(_, rank, host)| (rank, host)).unzip();
    (Roster::new(ranks), hosts)
}
