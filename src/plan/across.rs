//! Pipelines over groups: an inter-group algorithm between them, a tree inside them, segments through both.

use super::common::{Common, TreeTime};
use super::members::host_by_host;
use super::over_all::over_all;
use super::poly_model::crossing;
use super::{Location, PolyModel, group_ranks};
use crate::collective::{Algorithm, Parameters, bcast};
use crate::decide::{by_speed, placed};
use crate::error::{Error, Result};
use crate::flow::{held_back, in_flight, peers};
use crate::intercluster::{Job, Problem};
use crate::model::{Among, Cost};
use crate::policy::{CompiledPolicy, TwoLevelRow};
use crate::predict::{Busy, Repeats, pipelined};
use crate::schedule::{MOST_MESSAGES, in_flight_unsaid};
use crate::stats::ROUNDING;
use crate::topology::Rank;
use crate::two_level::{InterGroup, InterGroupAlgorithm, IntraGroup, ROUTED, TwoLevel, inter_group_algorithm};
use crate::units;
use rustc_hash::{FxHashMap, FxHashSet};

/// How a message crosses groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TwoLevelParameters {
    /// The inter-group algorithm between groups.
    pub inter_group: InterGroupAlgorithm,
    /// Bytes of a segment; 0: the whole message at once.
    pub segment: usize,
    /// How much of it is under way at once.
    pub flow: Flow,
    /// The broadcast inside each group, which must be a tree.
    pub intra_group: &'static Algorithm,
    /// True if ranks take their places in it by the speed of their processors, and not in their order.
    pub by_speed: bool,
}

/// How much of a message that crosses groups is under way at once. What is not said follows from the links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flow {
    /// Messages under way to each peer of another site; 0: as many as bandwidth and delay of the links want. Where coordinators are of one site, as many as its
    /// links want, if these are fewer.
    pub in_flight: usize,
    /// To how many peers at once a coordinator sends; 0: to all.
    pub peers: usize,
    /// Messages under way to each peer of the same group, and at least so many to those of the same site, but no more than to other sites; 0: as many as bandwidth
    /// and delay of the links want.
    pub intra_in_flight: usize,
    /// To how many peers at once the other ranks send (of one algorithm over all ranks: all of them), 0 being all; `None`: as the links want.
    pub intra_peers: Option<usize>,
}

impl TwoLevelParameters {
    /// What a row of the policy says, with this broadcast inside each group.
    ///
    /// # Errors
    /// An inter-group algorithm that there is not.
    pub fn of(row: &TwoLevelRow, intra_group: &'static Algorithm) -> Result<TwoLevelParameters> {
        let inter_group = inter_group_algorithm(&row.inter_group)?;
        let flow = Flow { in_flight: row.in_flight, peers: row.peers, intra_in_flight: row.intra_in_flight, intra_peers: row.intra_peers };
        Ok(TwoLevelParameters { inter_group, segment: row.segment_bytes, flow, intra_group, by_speed: row.by_speed })
    }

    /// In words, for a message of some bytes.
    pub fn words(&self, bytes: usize) -> String {
        let segment =
            if self.segment == 0 || self.segment >= bytes { String::new() } else { format!(" in {}", units::bytes(self.segment)) };
        let in_flight =
            if segment.is_empty() || self.flow.in_flight == 0 { String::new() } else { format!(", {} under way", self.flow.in_flight) };
        let choice = match self.inter_group {
            InterGroupAlgorithm::OverAll => format!("{} over all ranks", self.intra_group.name),
            route if route.has_trees() => format!("{} and {}", route.name(), self.intra_group.name),
            route => route.name().into(),
        };
        format!("{choice}{}{segment}{in_flight}", if self.by_speed { " by speed" } else { "" })
    }
}

/// The problem between groups, each known by its coordinator, for messages of `bytes`, with the times of the intra-group broadcasts of as many
/// bytes.
///
/// # Errors
/// [`Error::Invalid`] if the policy has no link between two groups.
pub fn problem(
    policy: &CompiledPolicy,
    coordinators: &[Location],
    bytes: usize,
    intra_group: Vec<f64>,
    local_busy: Vec<f64>,
) -> Result<Problem> {
    let n = coordinators.len();
    let mut problem = Problem { groups: n, root: 0, gap: vec![0.0; n * n], latency: vec![0.0; n * n], local: intra_group, local_busy };
    for (i, j) in (0..n * n).map(|k| (k / n, k % n)).filter(|(i, j)| i != j) {
        if coordinators[i].group == coordinators[j].group {
            // parts of one group hear it from outside
            (problem.gap[i * n + j], problem.latency[i * n + j]) = (f64::INFINITY, f64::INFINITY);
            continue;
        }
        let cost = crossing(policy, coordinators[i], coordinators[j], bytes);
        problem.gap[i * n + j] = cost.gap;
        problem.latency[i * n + j] = (cost.transit - cost.gap).max(0.0);
    }
    Ok(problem)
}

/// Bytes of a two_level's segments. One segment is a pipeline too: the trees inside groups are entered from the inter-group algorithm.
pub(super) fn segment_of(segment: usize, bytes: usize) -> usize {
    if segment == 0 { bytes.max(1) } else { segment.min(bytes).max(1) }
}

/// What a broadcast along a schedule should take, as [`predict`].
///
/// # Errors
/// As [`two_level`].
pub fn seconds(policy: &CompiledPolicy, members: &[Location], root: Rank, bytes: usize, choice: TwoLevelParameters) -> Result<f64> {
    predict(policy, members, &two_level(policy, members, root, bytes, choice)?)
}

/// The broadcast that goes a schedule.
///
/// # Errors
/// The policy lacks a link.
pub fn two_level(policy: &CompiledPolicy, members: &[Location], root: Rank, bytes: usize, choice: TwoLevelParameters) -> Result<TwoLevel> {
    Common::new(policy, members).two_level(root, bytes, choice)
}

impl Common<'_> {
    /// As [`two_level`].
    ///
    /// # Errors
    /// As there.
    pub(super) fn two_level(&self, root: Rank, bytes: usize, choice: TwoLevelParameters) -> Result<TwoLevel> {
        let groups = group_ranks(self.members, root).into_iter().map(|(_, ranks)| ranks).collect();
        let two_level = over(self, groups, bytes, choice)?;
        if choice.inter_group == InterGroupAlgorithm::Direct { in_parts(self, two_level, choice) } else { Ok(two_level) }
    }
}

/// The broadcast that goes a schedule over these groups, or parts of groups.
fn over(common: &Common, mut groups: Vec<Vec<Rank>>, bytes: usize, choice: TwoLevelParameters) -> Result<TwoLevel> {
    if choice.inter_group == InterGroupAlgorithm::OverAll {
        return over_all(common, groups, bytes, choice);
    }
    let (policy, members) = (common.policy, common.members);
    if !choice.inter_group.has_trees() {
        groups.iter_mut().for_each(|ranks| host_by_host(policy, members, ranks));
    }
    let choice = if choice.inter_group.has_trees() { choice } else { TwoLevelParameters { intra_group: bcast::CHAIN, ..choice } };
    let segment = segment_of(choice.segment, bytes).min(bytes);
    let costs = common.costs(bytes)?;
    if choice.by_speed {
        for ranks in &mut groups {
            *ranks = ordered(&costs, choice.intra_group, Parameters::default(), ranks, segment)?;
        }
    }
    let hosts = if choice.inter_group.has_trees() { hosts(policy, members, &groups) } else { Vec::new() };
    let coordinators: Vec<Location> = groups.iter().map(|ranks| members[ranks[0]]).collect();
    let (mut intra_group, mut local_busy) = (vec![0.0; groups.len()], vec![0.0; groups.len()]);
    for (k, ranks) in groups.iter().enumerate().filter(|_| choice.inter_group.counts_inside()) {
        let found = common.inside(choice.intra_group, ranks, segment, bytes)?;
        (intra_group[k], local_busy[k]) = (found.all_s, found.coordinator_s);
    }
    let inter_group = match choice.inter_group {
        InterGroupAlgorithm::Relay => InterGroup::Relay,
        other => common.inter_group(other, (&coordinators, segment), (intra_group, local_busy))?,
    };
    // one message is under way, whatever may be
    let in_segments = |in_flight: usize| if choice.segment > 0 { in_flight } else { 0 };
    let inside = |ranks: &Vec<Rank>| {
        let wanted = if choice.flow.intra_in_flight > 0 { choice.flow.intra_in_flight } else { in_flight(&*costs, ranks, segment) };
        let in_flight = in_segments(wanted);
        let one_at_a_time = || if choice.intra_group.branches(ranks.len()) { peers(&*costs, ranks, segment) } else { 0 };
        let peers = choice.flow.intra_peers.unwrap_or_else(one_at_a_time);
        IntraGroup { algorithm: choice.intra_group, parameters: Parameters { in_flight, peers, ..Parameters::default() } }
    };
    let said = choice.flow.in_flight > 0 || choice.segment == 0;
    let between = in_segments(if said { choice.flow.in_flight } else { held_back(common.sites(segment).between) });
    // coordinators of one site are near as ranks of one group are: where more is said to be under way inside groups, it is between these, too
    let coordinated = groups.iter().map(|ranks| members[ranks[0]].group);
    let near = || common.sites(segment).near(between, choice.flow.intra_in_flight, coordinated);
    let near = if choice.segment > 0 { near() } else { Vec::new() };
    Ok(TwoLevel {
        bytes,
        intra_group: groups.iter().map(inside).collect(),
        hosts,
        groups,
        inter_group,
        segment: segment_of(choice.segment, bytes),
        in_flight: between,
        near,
        peers: choice.flow.peers,
    })
}

/// Ranks by the places that they take by the speed of their processors.
pub(super) fn ordered(
    costs: &PolyModel,
    algorithm: &'static Algorithm,
    parameters: Parameters,
    ranks: &[Rank],
    bytes: usize,
) -> Result<Vec<Rank>> {
    let among = Among { inner: costs, positions: ranks.to_vec() };
    Ok(placed(ranks, &by_speed(ROUTED, algorithm, &parameters, &among, ranks.len(), bytes)?))
}

/// True if the processors of ranks differ for sure.
pub fn unlike_processors(policy: &CompiledPolicy, members: &[Location]) -> bool {
    members.iter().any(|m| policy.has_unlike_processors(m.group))
}

/// Ranks that hear a message from the root at once.
#[derive(Clone)]
struct Part {
    group: usize,
    ranks: Vec<Rank>,
    /// What the message costs from the root.
    cost: Cost,
    /// What the broadcast inside takes.
    intra_group: f64,
}

/// As a broadcast along the star, where the group that is done last hears it in as many parts at once as let everybody be done the soonest;
/// then the group that is done last then, until parts gain nothing.
fn in_parts(common: &Common, star: TwoLevel, choice: TwoLevelParameters) -> Result<TwoLevel> {
    let (policy, members) = (common.policy, common.members);
    let inside = |ranks: &[Rank]| common.inside(choice.intra_group, ranks, star.bytes, star.bytes);
    let part = |group: usize, ranks: &[Rank]| -> Result<Part> {
        let cost = crossing(policy, members[star.groups[0][0]], members[ranks[0]], star.bytes);
        Ok(Part { group, ranks: ranks.to_vec(), cost, intra_group: inside(ranks)?.all_s })
    };
    let (own, whole) = (inside(&star.groups[0])?, &star.groups[1..]);
    let mut best = whole.iter().map(|ranks| part(members[ranks[0]].group, ranks)).collect::<Result<Vec<_>>>()?;
    let mut latest = done_last(&mut best, &own);
    while let (time, Some(last)) = latest
        && best[last].ranks.len() > 1
        && let Some(ranks) = whole.iter().find(|ranks| members[ranks[0]].group == best[last].group)
    {
        let Part { group, cost, .. } = best[last];
        let (mut found, mut soonest) = (None, time);
        for parts in (1..).map(|k| 1 << k).take_while(|&parts| parts < ranks.len()).chain([ranks.len()]) {
            let mut candidate: Vec<Part> = best.iter().filter(|p| p.group != group).cloned().collect();
            for k in 0..parts {
                candidate.push(part(group, &ranks[k * ranks.len() / parts..(k + 1) * ranks.len() / parts])?);
            }
            let last = done_last(&mut candidate, &own);
            // the wide-area link carries every copy
            let copies = (parts - 1) as f64 * cost.gap;
            if last.0 + copies < soonest {
                soonest = last.0 + copies;
                found = Some((candidate, last));
            }
        }
        let Some(next) = found else { break };
        (best, latest) = next;
    }
    if best.len() == whole.len() {
        return Ok(star);
    }
    let groups: Vec<Vec<Rank>> = std::iter::once(star.groups[0].clone()).chain(best.into_iter().map(|p| p.ranks)).collect();
    Ok(TwoLevel {
        // of one piece one message is under way
        near: Vec::new(),
        hosts: hosts(policy, members, &groups),
        intra_group: vec![star.intra_group[0].clone(); groups.len()],
        inter_group: InterGroup::Tree((1..groups.len()).map(|to| Job::Send { from: 0, to }).collect()),
        groups,
        ..star
    })
}

/// When the last of the parts and of the root's own group is done, and which part that is, if it is one. Parts
/// are put in the order in which they are served: the one that is done last when served first comes first.
fn done_last(parts: &mut [Part], own: &TreeTime) -> (f64, Option<usize>) {
    let rest = |p: &Part| p.cost.transit - p.cost.gap + p.intra_group;
    parts.sort_by(|a, b| rest(b).total_cmp(&rest(a)));
    let (mut free, mut last) = (0.0, (0.0, None));
    let mut link_free: FxHashMap<usize, f64> = FxHashMap::default();
    for (k, p) in parts.iter().enumerate() {
        // a link that is slower than the root's port
        let link = link_free.entry(p.group).or_insert(0.0);
        let leaves = f64::max(free, *link);
        (free, *link) = (free + p.cost.gap, leaves + p.cost.link_gap);
        let done = leaves + p.cost.transit + p.intra_group;
        if done > last.0 {
            last = (done, Some(k));
        }
    }
    let own = if own.coordinator_s > 0.0 { free + own.all_s } else { 0.0 };
    if own >= last.0 { (own, None) } else { last }
}

/// One algorithm over more ranks than these is not tried: predictions of some take as many messages as the square of the ranks, and so many
/// ranks have groups that matter.
const MOST_OVER_ALL: usize = 512;

/// The schedules of an inter-group algorithm over ranks in segments of these sizes; 0 is the whole message.
pub fn two_level_parameters(
    policy: &CompiledPolicy,
    members: &[Location],
    inter_group: InterGroupAlgorithm,
    segments: &[usize],
) -> impl Iterator<Item = TwoLevelParameters> {
    let too_many = inter_group == InterGroupAlgorithm::OverAll && members.len() > MOST_OVER_ALL;
    let by_speed = inter_group != InterGroupAlgorithm::Line && unlike_processors(policy, members);
    let segments = if too_many { &[] } else { segments };
    let with = move |&intra_group: &&'static Algorithm| {
        let possible = segments.iter().filter(move |&&segment| inter_group.goes_with(intra_group, segment > 0));
        let choice = move |segment, by_speed| TwoLevelParameters { inter_group, segment, flow: Flow::default(), intra_group, by_speed };
        possible.flat_map(move |&segment| std::iter::once(choice(segment, false)).chain(by_speed.then(|| choice(segment, true))))
    };
    ROUTED.algorithms.iter().flat_map(with)
}

/// The host of each rank by number, if any host has several.
fn hosts(policy: &CompiledPolicy, members: &[Location], groups: &[Vec<Rank>]) -> Vec<Vec<usize>> {
    let host = |&rank: &Rank| policy.host(members[rank].group, members[rank].position);
    let all: Vec<Vec<usize>> = groups.iter().map(|ranks| ranks.iter().map(host).collect()).collect();
    let shared = |hosts: &Vec<usize>| hosts.iter().collect::<FxHashSet<_>>().len() < hosts.len();
    if all.iter().any(shared) { all } else { Vec::new() }
}

/// What a broadcast takes under the poly-model. A pipeline is replayed for few segments only.
///
/// # Errors
/// An algorithm that there is not.
pub fn predict(policy: &CompiledPolicy, members: &[Location], two_level: &TwoLevel) -> Result<f64> {
    predict_within(&Common::new(policy, members), two_level, f64::INFINITY, usize::MAX)
}

/// As [`predict`]; what takes longer than `limit_s` takes for ever. What has more messages than `most`, or would be looked at for more, is too large.
///
/// # Errors
/// As there; [`Error::TooLarge`].
pub(super) fn predict_within(common: &Common, two_level: &TwoLevel, limit_s: f64, most: usize) -> Result<f64> {
    let part = |bytes: usize| {
        let part = TwoLevel { bytes, ..two_level.clone() };
        let messages = part.message_count();
        if messages > most {
            return Err(Error::TooLarge(format!("predict {messages} messages: {most} are left to be replayed")));
        }
        Ok(part)
    };
    let repeats = repeats(two_level);
    // of what cannot be looked at for its first turns nothing is built
    part(repeats.least_looked_at(two_level.bytes))?;
    let costs = common.costs(two_level.bytes)?;
    if limit_s.is_finite() && two_level.inter_group == InterGroup::Relay && least(two_level, &repeats, &costs)? > limit_s * ROUNDING {
        return Ok(f64::INFINITY);
    }
    pipelined(two_level.bytes, repeats, &*costs, limit_s, |bytes| part(bytes)?.schedule(common.members.len()))
}

/// How long a broadcast keeps the rank that has most to do; of the library's own inside groups nothing is known.
///
/// # Errors
/// An algorithm that there is not.
pub fn busiest(policy: &CompiledPolicy, members: &[Location], two_level: &TwoLevel) -> Result<f64> {
    let costs = PolyModel::new(policy, members, ROUTED, two_level.bytes)?;
    let mut busy = two_level.ranks().into_iter().map(|rank| Ok(Busy::of(rank, &two_level.program(rank)?, &costs).least()));
    busy.try_fold(0.0, |most, busy: Result<f64>| Ok(f64::max(most, busy?)))
}

/// The least that a relay takes: so long it keeps the busiest coordinator. One over tens of groups has no turns that tell it, and its schedule is large.
fn least(two_level: &TwoLevel, repeats: &Repeats, costs: &PolyModel) -> Result<f64> {
    if two_level.message_count() > MOST_MESSAGES {
        return Ok(0.0);
    }
    let parts = repeats.parts(two_level.bytes).map(|(bytes, times)| (TwoLevel { bytes, ..two_level.clone() }, times));
    two_level.groups.iter().map(|ranks| ranks[0]).try_fold(0.0, |most, rank| {
        let mut busy = Busy::default();
        for (part, times) in parts.iter().filter(|(part, times)| part.bytes > 0 && *times > 0.0) {
            busy.add(rank, &part.program(rank)?, *times, costs);
        }
        Ok(f64::max(most, busy.least()))
    })
}

/// How what is done with a message repeats itself. What is under way inside sites is enough to keep their links busy.
fn repeats(two_level: &TwoLevel) -> Repeats {
    if two_level.segment > 0 {
        let all_along_trees = two_level.intra_group.iter().all(|inside| inside.algorithm.tree.is_some());
        let alike = matches!(two_level.inter_group, InterGroup::Line(_)) || all_along_trees;
        let segment = if alike { two_level.segment } else { 0 };
        // what comes by several schedules meets late: where nothing is said of how much is under way, as much is as may be
        let in_flight = match two_level.inter_group {
            InterGroup::Relay if two_level.in_flight == 0 => in_flight_unsaid(two_level.segment),
            _ => two_level.in_flight,
        };
        return Repeats { segment, turn: two_level.lanes(), in_flight };
    }
    match (&two_level.groups[..], &two_level.intra_group[..]) {
        ([_], [over_all]) => {
            let IntraGroup { algorithm, parameters } = over_all;
            let segment = ROUTED.repeats(algorithm, parameters);
            Repeats { segment, turn: 1, in_flight: parameters.in_flight }
        }
        _ => Repeats::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::bcast;
    use crate::plan::Location;
    use crate::policy::Policy;
    use std::path::Path;

    fn everybody() -> (CompiledPolicy, Vec<Location>) {
        let policy = CompiledPolicy::new(Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap()).unwrap();
        let members = crate::plan::everybody(&policy.policy);
        (policy, members)
    }

    #[test]
    fn what_is_said_of_messages_under_way_is_done_and_what_is_not_follows_from_the_links() {
        let (policy, members) = everybody();
        let tree = bcast::trees().find(|tree| tree.branches(8)).unwrap();
        let with = |flow| {
            let choice =
                TwoLevelParameters { inter_group: InterGroupAlgorithm::Star, segment: 64 << 10, flow, intra_group: tree, by_speed: false };
            let two_level = two_level(&policy, &members, 0, 1 << 20, choice).unwrap();
            crate::schedule::check(&two_level.schedule(members.len()).unwrap(), &two_level.specification(members.len())).unwrap();
            let inside = two_level.intra_group.iter().map(|local| (local.parameters.in_flight, local.parameters.peers));
            (two_level.in_flight, two_level.peers, inside.collect::<Vec<_>>())
        };
        let said = with(Flow { in_flight: 5, peers: 1, intra_in_flight: 3, intra_peers: Some(1) });
        assert_eq!((said.0, said.1), (5, 1));
        assert!(said.2.iter().all(|&inside| inside == (3, 1)), "{said:?}");
        let (in_flight, peers, inside) = with(Flow::default());
        assert!(in_flight != 5 && peers == 0 && inside.iter().all(|&(window, peers)| window != 3 && peers == 0), "{in_flight} {inside:?}");
    }

    #[test]
    fn parts_are_of_the_groups_done_last_and_pay() {
        let (policy, members) = everybody();
        let mut parted = 0;
        for (root, bytes, intra_group) in
            [0, 40, 77].into_iter().flat_map(|r| [1, 4096].into_iter().flat_map(move |b| bcast::trees().map(move |t| (r, b, t))))
        {
            let of = |inter_group| {
                two_level(
                    &policy,
                    &members,
                    root,
                    bytes,
                    TwoLevelParameters { inter_group, segment: 0, flow: Flow::default(), intra_group, by_speed: false },
                )
                .unwrap()
            };
            let (star, direct) = (of(InterGroupAlgorithm::Star), of(InterGroupAlgorithm::Direct));
            let seconds = |h: &TwoLevel| predict(&policy, &members, h).unwrap();
            assert_eq!(direct.groups[0], star.groups[0], "the root's group is whole");
            let (mut all, mut everybody) = (direct.ranks(), star.ranks());
            all.sort_unstable();
            everybody.sort_unstable();
            assert_eq!(all, everybody);
            assert_eq!(direct == star, direct.groups.len() == star.groups.len());
            if direct != star {
                assert!(seconds(&direct) < seconds(&star), "{bytes} bytes from {root}, {}", intra_group.name);
                parted += 1;
            }
        }
        assert!(parted > 0, "parts pay somewhere");
    }
}
