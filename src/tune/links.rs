//! What lies between groups: a model of each link, and how far a coordinator's sends to several groups share one port.

use super::Group;
use crate::discover::Discovery;
use crate::error::Result;
use crate::fit::fit_groups;
use crate::measure::{Experiment, Session};
use crate::model::{Fitted, RankSet, TABLES};
use crate::policy::{LinkPolicy, TRAIN_BYTES};
use crate::topology::{Link, Rank};
use std::collections::BTreeSet;

/// Two groups, and the rank of each at which their link ends.
pub(super) type End = ((usize, usize), [Rank; 2]);

/// Where the links between groups end. Each of a group's links ends at another of its hosts, as far as there are so many, so that they are measured side by
/// side.
pub(super) fn ends(discovery: &Discovery, groups: &[Group]) -> Vec<End> {
    let n = groups.len();
    let hosts: Vec<usize> = discovery.groups.iter().map(|g| g.hosts.iter().collect::<BTreeSet<_>>().len()).collect();
    // overheads are measured on the first: every group is first once, and of two rather the one that has no other link and no network of its own
    let turns = |(a, b): (usize, usize)| b == n - 1 && a == 0 && (n > 2 || hosts[0] > 1);
    let pairs = crate::topology::pair_rounds(n).into_iter().flatten();
    let pairs: Vec<(usize, usize)> = pairs.map(|(a, b)| if turns((a, b)) { (b, a) } else { (a, b) }).collect();
    // a rank set begins with a rank of each host
    let end = |of: usize, to: usize| groups[of].rank_set.ranks[(if to < of { to } else { to - 1 }) % hosts[of]];
    pairs.into_iter().map(|(a, b)| ((a, b), [end(a, b), end(b, a)])).collect()
}

/// Fits a model of each link between groups.
pub fn fit(session: &mut Session, discovery: &Discovery, groups: &[Group]) -> Result<Vec<LinkPolicy>> {
    let ends = ends(discovery, groups);
    let rank_sets: Vec<RankSet> = ends.iter().map(|(_, ends)| RankSet::new(ends.to_vec())).collect();
    let fitted = fit_groups(session, &rank_sets.iter().collect::<Vec<_>>(), &[TABLES])?;
    let link = |(&((a, b), _), mut models): (&End, Vec<Fitted>)| {
        let between = [discovery.groups[a].name.clone(), discovery.groups[b].name.clone()];
        models.pop().map(|model| LinkPolicy { between, latency_s: discovery.between_s[a][b], model })
    };
    let mut links: Vec<LinkPolicy> = ends.iter().zip(fitted).filter_map(link).collect();
    let place = |name: &String| discovery.groups.iter().position(|g| &g.name == name);
    links.sort_by_key(|l| (place(&l.between[0]).min(place(&l.between[1])), place(&l.between[0]).max(place(&l.between[1]))));
    Ok(links)
}

/// Fits a model of two ranks on one host, for each group of several hosts of which some have several ranks.
pub fn inside_hosts(session: &mut Session, groups: &[Group]) -> Result<Vec<Option<Fitted>>> {
    let pair = |Group { rank_set, policy, .. }: &Group| {
        let hosts = &policy.hosts;
        let second = (0..hosts.len()).find(|&k| hosts[..k].contains(&hosts[k]))?;
        let first = hosts.iter().position(|h| *h == hosts[second])?;
        let several = hosts.iter().any(|h| *h != hosts[0]);
        several.then(|| RankSet::new(vec![rank_set.ranks[first], rank_set.ranks[second]]))
    };
    let pairs: Vec<Option<RankSet>> = groups.iter().map(pair).collect();
    let present: Vec<&RankSet> = pairs.iter().flatten().collect();
    let mut fitted = fit_groups(session, &present, &[TABLES])?.into_iter();
    Ok(pairs.iter().map(|p| p.as_ref().and_then(|_| fitted.next()?.pop())).collect())
}

/// Rounds of such a train.
const TRAIN_ROUNDS: usize = 16;
/// So many hosts of a group are sent to.
const TRAIN_HOSTS: usize = 3;
/// A port that is kept busy for so much of the gaps carries all: the rest is what gaps are uncertain by.
const ONE_PORT: f64 = 0.9;

/// A rank that sends to several others, with the sum of the gaps of its links to them.
struct PortSharing {
    root: usize,
    leaves: Vec<usize>,
    gaps: f64,
}

impl PortSharing {
    fn experiment(&self, count: usize) -> Experiment {
        Experiment::OneToManyTrain { root: self.root, leaves: self.leaves.clone(), bytes: TRAIN_BYTES, count }
    }

    /// The time of a round of sends over the sum of the gaps.
    fn share(&self, session: &Session) -> Result<f64> {
        let (many, one) = (session.samples().need(&self.experiment(TRAIN_ROUNDS))?, session.samples().need(&self.experiment(1))?);
        let round = (many - one).max(0.0) / (TRAIN_ROUNDS - 1) as f64;
        Ok((round / self.gaps.max(f64::MIN_POSITIVE)).clamp(1.0 / self.leaves.len() as f64, 1.0))
    }
}

/// For each of these, how much of a link's gap a message keeps its sender from sending to others; 1 where there is nothing to find out.
fn shares(session: &mut Session, trains: &[Option<PortSharing>]) -> Result<Vec<f64>> {
    let all: Vec<Experiment> = trains.iter().flatten().flat_map(|s| [s.experiment(TRAIN_ROUNDS), s.experiment(1)]).collect();
    session.measure("sends to several hosts at once", &all)?;
    trains.iter().map(|s| s.as_ref().map_or(Ok(1.0), |s| s.share(session))).collect()
}

fn gap(model: &Fitted) -> Result<f64> {
    Ok(model.costs()?.cost(Link { from: 0, to: 1 }, TRAIN_BYTES).gap)
}

/// For each group, how much of a link's gap a message keeps its coordinator from sending to other groups: the time of a round of
/// sends, one to each other group, over the sum of these links' gaps. 1 where one port carries all.
pub fn port_sharing(session: &mut Session, groups: &[Group], links: &[LinkPolicy]) -> Result<Vec<f64>> {
    let n = groups.len();
    // links are in the order of pairs (0,1), (0,2), ...
    let pairs: Vec<(usize, usize)> = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))).collect();
    let train = |g: usize| -> Result<Option<PortSharing>> {
        let leaves = (0..n).filter(|&k| k != g).map(|k| groups[k].rank_set.ranks[0]).collect();
        let ours = pairs.iter().zip(links).filter(|((a, b), _)| *a == g || *b == g);
        let gaps = ours.map(|(_, l)| gap(&l.model)).sum::<Result<f64>>()?;
        Ok((n > 2).then_some(PortSharing { root: groups[g].rank_set.ranks[0], leaves, gaps }))
    };
    let trains = (0..n).map(train).collect::<Result<Vec<_>>>()?;
    shares(session, &trains)
}

/// As [`port_sharing`], of messages from a rank to other hosts of its group.
pub fn inside_port_sharing(session: &mut Session, groups: &[Group]) -> Result<Vec<f64>> {
    let train = |Group { rank_set, policy, .. }: &Group| -> Result<Option<PortSharing>> {
        let hosts = &policy.hosts;
        let first = |k: &usize| !hosts[..*k].contains(&hosts[*k]);
        let leaves: Vec<usize> = (1..hosts.len()).filter(first).take(TRAIN_HOSTS).map(|k| rank_set.ranks[k]).collect();
        let Some(model) = policy.models.iter().find(|m| m.model == TABLES.name).filter(|_| leaves.len() > 1) else { return Ok(None) };
        Ok(Some(PortSharing { root: rank_set.ranks[0], gaps: leaves.len() as f64 * gap(model)?, leaves }))
    };
    let trains = groups.iter().map(train).collect::<Result<Vec<_>>>()?;
    let shares = shares(session, &trains)?;
    Ok(shares.into_iter().map(|s| if s < ONE_PORT { s } else { 1.0 }).collect())
}
