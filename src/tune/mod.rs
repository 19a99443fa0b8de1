//! The pipeline from measuring to a policy.

mod across;
mod bound;
mod chosen;
mod inside;
mod links;
mod losses;
mod missed;
mod other_roots;
mod over_all;
mod rows;
mod segments;
mod side_by_side;
mod taken;

use crate::cluster::{Bound, METHODS, Method};
use crate::collective::{Built, Collective, alltoall, barrier, bcast};
use crate::contention;
use crate::decide::Knowledge;
use crate::discover::{Discovery, FoundGroup, discover};
use crate::error::Result;
use crate::fit::{fit_compute, fit_groups};
use crate::measure::Session;
use crate::model::{Fitted, MODELS, RankSet};
use crate::plan::{Location, placement};
use crate::policy::{GroupPolicy, OverGroups, Policy, Provenance};
use crate::score::{Calibration, Scores, best_model, score, score_groups};
use crate::topology::Declared;
use crate::two_level::has_routes;
use std::collections::BTreeMap;

/// What took as long as was predicted, within this share, is predicted well, and so are its neighbours.
const HOLDS: f64 = 0.02;

/// The neighbours of the fastest, over groups of each inter-group algorithm's fastest, are measured, and those of the fastest among them, so many times.
const ROUNDS: usize = 3;

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
    let mut groups: Vec<Group> = discovery.groups.iter().map(Group::new).collect();
    side_by_side::check(session, &groups)?;
    let inside_hosts = links::inside_hosts(session, &groups)?;
    fill(&mut groups, inside_hosts, |group, found| group.policy.inside_host = found);
    let models = fit_groups(session, &rank_sets(&groups), MODELS)?;
    fill(&mut groups, models, |group, found| group.policy.models = found);
    let shares = links::inside_port_sharing(session, &groups)?;
    fill(&mut groups, shares, |group, found| group.policy.inside_port_sharing = found);
    // from here on it is known who shares a host, and whose processors differ
    groups.iter_mut().for_each(Group::know_inside);
    let compute = fit_compute(session, &rank_sets(&groups))?;
    fill(&mut groups, compute, |group, found| group.policy.compute = found);
    groups.iter_mut().for_each(Group::know_inside);
    side_by_side::check_links(session, &discovery, &groups)?;
    let links = links::fit(session, &discovery, &groups)?;
    let shares = links::port_sharing(session, &groups, &links)?;
    fill(&mut groups, shares, |group, found| group.policy.port_sharing = found);
    let models: Vec<&[Fitted]> = groups.iter().map(|g| g.policy.models.as_slice()).collect();
    let scores = score_groups(session, &rank_sets(&groups), &models, options.collectives)?;
    fill(&mut groups, scores, Group::know_scores);
    let losses = losses::find(session, &groups, options.collectives)?;
    fill(&mut groups, losses, |group, found| group.policy.losses = found);
    groups.iter_mut().for_each(Group::know_inside);
    groups.iter_mut().filter(|g| g.policy.losses.is_some()).try_for_each(|g| g.score_anew(session, options.collectives))?;
    let choices = inside::choose(session, options.collectives, &groups, options.exhaustive)?;
    fill(&mut groups, choices, |group, found| group.policy.choices = found);
    let (rank_sets, groups): (Vec<RankSet>, Vec<GroupPolicy>) = groups.into_iter().map(|g| (g.rank_set, g.policy)).unzip();
    let settings = session.settings().clone();
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
            measuring_s: 0.0,
            setup_s: session.set_up()?,
            bound: Some(options.bound.ratio).filter(|ratio| *ratio != Bound::default().ratio),
        },
    };
    if rank_sets.len() > 1 {
        let ranks: Vec<Vec<usize>> = rank_sets.iter().map(|r| r.ranks.clone()).collect();
        let members = placed(session.ranks(), &ranks);
        let over_groups = |two_level, calibration| OverGroups { placement: Some(placement(&members)), two_level, calibration };
        for &collective in options.collectives.iter().filter(|c| has_routes(c)) {
            let (rows, calibration) = across::choose(session, &policy, &members, options.exhaustive)?;
            policy.collectives.insert(collective, over_groups(rows, calibration));
        }
        let rows = over_all::choose(session, &policy, &members, options.collectives)?;
        policy.collectives.extend(rows.into_iter().map(|(collective, rows)| (collective, over_groups(rows, BTreeMap::new()))));
    }
    if options.collectives.contains(&&alltoall::COLLECTIVE) {
        session.measure_roughly("alltoalls, for their contention", &contention::experiments(&rank_sets))?;
    }
    policy.provenance.measuring_s = session.elapsed();
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

/// A group while it is tuned: what its policy will say is filled in step by step.
struct Group {
    rank_set: RankSet,
    policy: GroupPolicy,
    /// Measured over predicted times of collectives over all of it.
    of_all: Vec<Calibration>,
    built: Built,
}

impl Group {
    /// The ranks of a group with those of different hosts first: the pair that stands for the group should cross its network.
    fn new(found: &FoundGroup) -> Group {
        let mut rounds: Vec<(usize, usize, String)> = Vec::new();
        for (k, host) in found.hosts.iter().enumerate() {
            rounds.push((found.hosts[..k].iter().filter(|h| *h == host).count(), found.ranks[k], host.clone()));
        }
        rounds.sort_unstable();
        let (ranks, hosts) = rounds.into_iter().map(|(_, rank, host)| (rank, host)).unzip();
        let policy = GroupPolicy::new(&found.name, found.latency_s, hosts);
        Group { rank_set: RankSet::new(ranks), policy, of_all: Vec::new(), built: Built::default() }
    }

    fn know_inside(&mut self) {
        self.rank_set.inside = Some(self.policy.inside());
    }

    fn know_scores(&mut self, Scores { models, calibration, of_all }: Scores) {
        // no other model is asked than those that are best at some size
        let selected =
            |c: &Calibration| c.bytes.iter().any(|&bytes| best_model(&models, c.collective, bytes).is_some_and(|s| s.model == c.model));
        self.policy.calibration = calibration.into_iter().filter(selected).collect();
        (self.policy.scores, self.of_all) = (models, of_all);
    }

    /// By the same runs, now that it is known what the network loses.
    fn score_anew(&mut self, session: &Session, collectives: &[&'static Collective]) -> Result<()> {
        let scores = score(&self.rank_set, &self.policy.models, collectives, session.samples(), &self.built)?;
        self.know_scores(scores);
        Ok(())
    }

    fn knowledge(&self) -> Knowledge<'_> {
        let GroupPolicy { models, scores, .. } = &self.policy;
        Knowledge { models, scores, calibration: &self.of_all, inside: self.rank_set.inside.as_ref(), built: &self.built }
    }
}

/// Puts what was found, one of each group, in its place.
fn fill<T>(groups: &mut [Group], found: Vec<T>, put: impl Fn(&mut Group, T)) {
    groups.iter_mut().zip(found).for_each(|(group, found)| put(group, found));
}

fn rank_sets(groups: &[Group]) -> Vec<&RankSet> {
    groups.iter().map(|g| &g.rank_set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{allreduce, gather};
    use crate::measure::SimulatedProbe;
    use crate::platform::Placement;
    use crate::platform::generate::{Wanted, generate};
    use crate::predict::EVENTS;

    /// Models are scored by what is tuned, each collective by its own runs, and nothing else is run for them.
    #[test]
    fn models_are_scored_by_the_collectives_that_are_tuned() {
        let collectives = [&barrier::COLLECTIVE, &allreduce::COLLECTIVE];
        let platform = generate(Wanted { sites: 2, hosts: 9, seed: 5 }).unwrap();
        let mut probe = SimulatedProbe::new(&platform, Placement::Slot, 1).unwrap();
        let mut session = Session::new(&mut probe);
        let (_, policy) = tune(&mut session, TuneOptions { collectives: &collectives, ..TuneOptions::default() }).unwrap();
        for group in policy.groups.iter().filter(|g| g.hosts.len() > 1) {
            for collective in collectives {
                let of = group.scores.iter().filter(|s| s.collective == collective);
                assert_eq!(of.clone().count(), group.models.len(), "{} {}", group.name, collective.name);
                assert!(of.clone().any(|s| s.error.is_some() && s.error_by_algorithm.len() > 1), "{} {}", group.name, collective.name);
                assert!(group.calibration.iter().any(|c| c.collective == collective), "{} {}", group.name, collective.name);
            }
            assert_eq!(group.scores.len(), collectives.len() * group.models.len());
        }
        for sample in session.samples().iter() {
            // what is lost is asked by gathers
            let known = |c: &'static Collective| collectives.contains(&c) || *c == gather::COLLECTIVE;
            assert!(sample.experiment.collective().is_none_or(known), "{:?}", sample.experiment);
        }
    }

    /// What is too slow is known before it is replayed to its end, and what was predicted is not predicted again: it were 58 million events.
    #[test]
    fn hundreds_of_hosts_are_predicted_in_few_events() {
        let platform = generate(Wanted { sites: 20, hosts: 600, seed: 5 }).unwrap();
        let mut probe = SimulatedProbe::new(&platform, Placement::Slot, 1).unwrap();
        tune(&mut Session::new(&mut probe), TuneOptions::default()).unwrap();
        let events = EVENTS.get() / 1_000_000;
        println!("{events} million events");
        assert!(events < 40, "{events} million events");
    }
}
