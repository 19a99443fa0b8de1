//! What lies between groups: a model of each link, and how far a coordinator's sends to several groups share one port.

use crate::discover::Discovery;
use crate::error::Result;
use crate::fit::fit_groups;
use crate::measure::{Experiment, Session};
use crate::model::{Fitted, Roster, model};
use crate::policy::LinkPolicy;
use crate::topology::Link;
use std::collections::BTreeSet;

/// Fits a model of each link between groups. Each of a group's links is measured from another of its hosts, as far as there are so many, so
/// that they are measured side by side.
pub fn fit(session: &mut Session, discovery: &Discovery, rosters: &[Roster]) -> Result<Vec<LinkPolicy>> {
    let n = rosters.len();
    let pairs: Vec<(usize, usize)> = crate::topology::pair_rounds(n).into_iter().flatten().collect();
    let hosts: Vec<usize> = discovery.groups.iter().map(|g| g.hosts.iter().collect::<BTreeSet<_>>().len()).collect();
    // a roster begins with a rank of each host
    let end = |of: usize, to: usize| rosters[of].ranks[(if to < of { to } else { to - 1 }) % hosts[of]];
    let ends: Vec<Roster> = pairs.iter().map(|&(a, b)| Roster::new(vec![end(a, b), end(b, a)])).collect();
    let fitted = fit_groups(session, &ends, &[model("tables")?])?;
    let link = |(&(a, b), mut models): (&(usize, usize), Vec<Fitted>)| {
        let between = [discovery.groups[a].name.clone(), discovery.groups[b].name.clone()];
        models.pop().map(|model| LinkPolicy { between, latency_s: discovery.between_s[a][b], model })
    };
    let mut links: Vec<LinkPolicy> = pairs.iter().zip(fitted).filter_map(link).collect();
    let place = |name: &String| discovery.groups.iter().position(|g| &g.name == name);
    links.sort_by_key(|l| (place(&l.between[0]), place(&l.between[1])));
    Ok(links)
}

/// Fits a model of two ranks on one host, for each group of several hosts of which some have several ranks. `hosts`: of each rank of the
/// rosters.
pub fn inside_hosts(session: &mut Session, rosters: &[Roster], hosts: &[Vec<String>]) -> Result<Vec<Option<Fitted>>> {
    let pair = |(roster, hosts): (&Roster, &Vec<String>)| {
        let second = (0..hosts.len()).find(|&k| hosts[..k].contains(&hosts[k]))?;
        let first = hosts.iter().position(|h| *h == hosts[second])?;
        let several = hosts.iter().any(|h| *h != hosts[0]);
        several.then(|| Roster::new(vec![roster.ranks[first], roster.ranks[second]]))
    };
    let pairs: Vec<Option<Roster>> = rosters.iter().zip(hosts).map(pair).collect();
    let present: Vec<Roster> = pairs.iter().flatten().cloned().collect();
    let mut fitted = fit_groups(session, &present, &[model("tables")?])?.into_iter();
    Ok(pairs.iter().map(|p| p.as_ref().and_then(|_| fitted.next()?.pop())).collect())
}

/// Messages of a spread, long enough that bytes and not calls limit it, below the limits above which libraries shake hands.
const SPREAD_BYTES: usize = 32 << 10;
/// Rounds of a spread.
const SPREAD_ROUNDS: usize = 16;

/// For each group, how much of a link's gap a message keeps its coordinator from sending to other groups: the time of a round of
/// sends, one to each other group, over the sum of these links' gaps. 1 where one port carries all.
pub fn fan_out(session: &mut Session, rosters: &[Roster], links: &[LinkPolicy]) -> Result<Vec<f64>> {
    if rosters.len() < 3 {
        return Ok(vec![1.0; rosters.len()]);
    }
    let firsts: Vec<usize> = rosters.iter().map(|r| r.ranks[0]).collect();
    let spread = |g: usize, count: usize| {
        let leaves = firsts.iter().copied().filter(|&r| r != firsts[g]).collect();
        Experiment::Spread { root: firsts[g], leaves, bytes: SPREAD_BYTES, count }
    };
    let all: Vec<Experiment> = (0..rosters.len()).flat_map(|g| [spread(g, SPREAD_ROUNDS), spread(g, 1)]).collect();
    session.measure("sends to several groups at once", &all)?;
    // links are in the order of pairs (0,1), (0,2), ...
    let pairs = (0..rosters.len()).flat_map(|a| (a + 1..rosters.len()).map(move |b| (a, b)));
    let gaps: Vec<((usize, usize), f64)> = pairs
        .zip(links)
        .map(|(pair, l)| Ok((pair, l.model.costs()?.cost(Link { from: 0, to: 1 }, SPREAD_BYTES).gap)))
        .collect::<Result<_>>()?;
    let share = |g: usize| -> Result<f64> {
        let (many, one) = (session.samples().need(&spread(g, SPREAD_ROUNDS))?, session.samples().need(&spread(g, 1))?);
        let round = (many - one).max(0.0) / (SPREAD_ROUNDS - 1) as f64;
        let sum: f64 = gaps.iter().filter(|((a, b), _)| *a == g || *b == g).map(|(_, gap)| gap).sum();
        Ok((round / sum.max(f64::MIN_POSITIVE)).clamp(1.0 / (rosters.len() - 1) as f64, 1.0))
    };
    (0..rosters.len()).map(share).collect()
}
