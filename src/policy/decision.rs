//! Looking a policy up: what to do in a group for a size, for the ranks of it that are there.

use super::{Choice, GroupPolicy, NO_OTHER, Policy, TwoLevelRow};
use crate::collective::{Algorithm, Built, COLLECTIVES, Collective, Parameters};
use crate::decide::{Knowledge, Wanted, by_speed, candidates_by_speed, even, placed, rank_candidates};
use crate::error::{Error, Result};
use crate::flow::in_flight;
use crate::model::{Among, Compute, Cost, CostModel, HANDSHAKE, Inside, TABLES};
use crate::stats;
use crate::topology::{FAR_S, Link, Rank};
use std::collections::BTreeMap;

/// What runs inside a group has at most so many segments, whatever its size: twice the most that any choice was made with, across groups, so
/// that choices near the sizes they were made at run as they were measured.
const MOST_RUN: usize = 1024;

/// Parameters as they are used for a size: far above the sizes that were measured, longer segments, since more of them cost memory and
/// win nothing.
pub fn bounded(parameters: Parameters, bytes: usize) -> Parameters {
    let segment = if parameters.segment == 0 { 0 } else { parameters.segment.max(bytes.div_ceil(MOST_RUN)) };
    Parameters { segment, ..parameters }
}

/// How much sends to several groups share a port is measured by messages long enough that bytes and not calls limit them, well below where libraries
/// shake hands.
pub const TRAIN_BYTES: usize = HANDSHAKE / 2;

/// A link that keeps the ports at both its ends for less than this share of a message's gap is what limits messages, and all that cross it share it; what
/// differs by less is measured no better.
const SLOWER: f64 = 0.9;

/// A link as it was measured.
const FORTH: Link = Link { from: 0, to: 1 };

/// A group is about whole with this share of its hosts.
const ABOUT: f64 = 0.75;

/// The shortest segments worth a look in a part of a group: what shorter ones win in a pipeline grows with its length, and a part's is
/// no longer than the whole group's, for which the row has the best. A row without segments leaves room for some long ones.
fn shortest_segment(row: &Choice, bytes: usize) -> usize {
    if row.segment_bytes > 0 { row.segment_bytes / 2 } else { bytes / 8 }
}

/// What to do, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The collective.
    pub collective: &'static Collective,
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Its parameters.
    pub parameters: Parameters,
    /// The model that was selected.
    pub model: String,
    /// The time it should take.
    pub predicted_s: f64,
    /// The next best.
    pub runner_up: String,
    /// How much longer the next best takes, as a share.
    pub margin: f64,
    /// True if it comes from a row that was made for this many ranks; else it was computed from the models.
    pub from_row: bool,
    /// Which of the ranks takes each place, if not all are in their order.
    pub places: Option<Vec<Rank>>,
    /// The group at the other end of the link that its time is estimated by, where the group was measured with one rank.
    pub estimated_by: Option<String>,
}

/// A group with its models ready to be asked.
pub struct CompiledGroup {
    /// The models' costs, by name.
    costs: Vec<(String, Box<dyn CostModel>)>,
    inside: Inside,
}

/// A policy with its models ready to be asked.
pub struct CompiledPolicy {
    /// The policy.
    pub policy: Policy,
    groups: Vec<CompiledGroup>,
    /// By pair of groups.
    links: Vec<Option<Box<dyn CostModel>>>,
    /// By pair of groups: what crosses from one to the other shares the link, which is longer than [`FAR_S`] or slower than the ports at its ends.
    shared: Vec<bool>,
    /// By pair of groups: how much of the link's gap a message keeps its sender from sending to other groups.
    port_shares: Vec<f64>,
    /// By group.
    overheads: Vec<Overheads>,
    /// Where each class of a collective's sizes begins, and the size that stands for it.
    classes: BTreeMap<&'static Collective, Vec<(usize, usize)>>,
    fingerprint: u64,
}

/// Where it is known how long messages keep a group's processors, whatever the link. What a link's model says of overheads was measured on
/// the first of its groups.
#[derive(Clone, Copy)]
enum Overheads {
    /// What its own model of tables says, which is its n-th.
    Inside(usize),
    /// What the model of its link to this group says.
    Link(usize),
    /// Nowhere: each link's model is taken to say it of both ends.
    Unknown,
}

impl Overheads {
    fn of(policy: &Policy, group: usize) -> Overheads {
        let g = &policy.groups[group];
        // between ranks of one host messages go another way
        let crosses = g.hosts.get(1).is_some_and(|host| *host != g.hosts[0]);
        if let Some(n) = g.models.iter().position(|m| m.model == TABLES.name).filter(|_| crosses) {
            return Overheads::Inside(n);
        }
        let first = policy.links.iter().find(|l| l.between[0] == g.name);
        let other = first.and_then(|l| policy.groups.iter().position(|g| g.name == l.between[1]));
        other.map_or(Overheads::Unknown, Overheads::Link)
    }
}

impl CompiledPolicy {
    /// Prepares a policy.
    ///
    /// # Errors
    /// A model that lacks parameters, a link that is not there, or a value that cannot be written, which a parsed policy has not.
    pub fn new(policy: Policy) -> Result<CompiledPolicy> {
        let costs = |g: &GroupPolicy| -> Result<CompiledGroup> {
            let inside = g.inside();
            let named = g.models.iter().map(|m| Ok((m.model.clone(), m.costs_in(Some(&inside))?)));
            Ok(CompiledGroup { costs: named.collect::<Result<_>>()?, inside })
        };
        let groups = policy.groups.iter().map(costs).collect::<Result<_>>()?;
        let n = policy.groups.len();
        let by_names = policy.links_by_names();
        let link = |k: usize| {
            let (a, b) = (k / n, k % n);
            let [a_name, b_name] = [a, b].map(|group| policy.groups[group].name.as_str());
            match by_names.get(&(a_name, b_name)) {
                None if a != b => Err(Error::invalid(format!("use the policy: it has no link between \"{a_name}\" and \"{b_name}\""))),
                link => link.map(|l| l.model.costs()).transpose(),
            }
        };
        let links: Vec<Option<Box<dyn CostModel>>> = (0..n * n).map(link).collect::<Result<_>>()?;
        let gap = |link: &Option<Box<dyn CostModel>>| link.as_ref().map_or(0.0, |model| model.cost(FORTH, TRAIN_BYTES).gap);
        let gaps: Vec<f64> = links.iter().map(gap).collect();
        let port_shares: Vec<f64> =
            gaps.chunks(n.max(1)).zip(&policy.groups).flat_map(|(gaps, group)| port_shares(gaps, group.port_sharing)).collect();
        let name = |group: usize| policy.groups[group].name.as_str();
        let slow = |k: usize| [k, k % n * n + k / n].into_iter().all(|k| port_shares[k] < SLOWER);
        let long = |k: usize| by_names.get(&(name(k / n), name(k % n))).is_some_and(|l| l.latency_s > FAR_S);
        let shared = (0..n * n).map(|k| long(k) || slow(k)).collect();
        let overheads = (0..n).map(|group| Overheads::of(&policy, group)).collect();
        let classes = COLLECTIVES.iter().copied().map(|collective| (collective, policy.narrow_classes(collective))).collect();
        let fingerprint = policy.fingerprint()?;
        Ok(CompiledPolicy { policy, groups, links, shared, port_shares, overheads, classes, fingerprint })
    }

    /// [`Policy::fingerprint`], found once.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The costs of a group under a model of its.
    pub fn group_costs(&self, group: usize, model: &str) -> Option<&dyn CostModel> {
        self.groups[group].costs.iter().find(|(name, _)| name == model).map(|(_, c)| c.as_ref())
    }

    /// Parameters as a group uses them for a size.
    fn in_segments(&self, group: usize, parameters: Parameters, bytes: usize) -> Parameters {
        self.even(group, bounded(parameters, bytes), bytes)
    }

    /// Parameters as a group uses them for a size, where it [loses](even) something.
    pub fn even(&self, group: usize, parameters: Parameters, bytes: usize) -> Parameters {
        even(parameters, bytes, self.policy.groups[group].losses.as_ref())
    }

    /// True if a group's network loses something.
    pub fn loses(&self, group: usize) -> bool {
        self.policy.groups[group].losses.is_some()
    }

    /// True if a group's processors differ by so much that its roots do.
    pub fn has_unlike_processors(&self, group: usize) -> bool {
        self.groups[group].inside.has_unlike_processors()
    }

    /// [`Inside::beyond_first`] of a group.
    pub fn beyond_first(&self, group: usize, position: usize, bytes: usize) -> f64 {
        self.groups[group].inside.beyond_first(position, bytes)
    }

    /// What copying and combining takes at a position of a group, if that is known.
    pub fn compute(&self, group: usize, position: usize) -> Option<&Compute> {
        self.groups[group].inside.compute(position)
    }

    /// [`Inside::host`] of a group.
    pub fn host(&self, group: usize, position: usize) -> usize {
        self.groups[group].inside.host(position)
    }

    /// The cost of a message between the first positions of two groups; of one group there is no such message.
    pub fn link_cost(&self, from: usize, to: usize, bytes: usize) -> Cost {
        let Some(model) = self.link(from, to) else { return Cost::NEVER };
        let mut cost = model.cost(FORTH, bytes);
        if let Some(own) = self.overheads(from, bytes) {
            cost.send_overhead = own.send_overhead.min(cost.gap);
        }
        if let Some(own) = self.overheads(to, bytes) {
            cost.recv_overhead = own.recv_overhead.min(cost.gap).min(cost.transit);
        }
        cost.sharing_a_port(self.port_shares[from * self.policy.groups.len() + to])
    }

    /// How long the bytes of a message keep the link between two groups busy, if all messages between them share it.
    pub fn link_busy(&self, from: usize, to: usize, bytes: usize) -> Option<f64> {
        let model = self.link(from, to).filter(|_| self.shared[from * self.policy.groups.len() + to])?;
        Some((model.cost(FORTH, bytes).gap - model.cost(FORTH, 0).gap).max(0.0))
    }

    fn link(&self, from: usize, to: usize) -> Option<&dyn CostModel> {
        self.links[from * self.policy.groups.len() + to].as_deref()
    }

    /// What a message to or from a group costs its processors.
    pub fn overheads(&self, group: usize, bytes: usize) -> Option<Cost> {
        match self.overheads[group] {
            Overheads::Inside(n) => Some(self.groups[group].costs[n].1.cost(FORTH, bytes)),
            Overheads::Link(to) => Some(self.link(group, to)?.cost(FORTH, bytes)),
            Overheads::Unknown => None,
        }
    }

    /// True if so many ranks in such a [placement](crate::policy::OverGroups::placement) are what a collective was measured over: the
    /// library's own depends on who has which rank.
    pub fn is_as_measured(&self, collective: &'static Collective, ranks: usize, placement: &str) -> bool {
        let measured = self.policy.collectives.get(collective).and_then(|c| c.placement.as_ref());
        ranks == self.policy.provenance.ranks && measured.is_none_or(|p| p == placement)
    }

    /// True if so many ranks of a group are about all of it: at least `ABOUT` of its hosts. What crosses groups then takes about what it took
    /// where it was measured, which says more than predictions would. Inside the group one host less may make another algorithm the best one
    /// (those for powers of two).
    pub fn is_about_whole(&self, group: usize, ranks: usize) -> bool {
        let hosts = self.policy.groups[group].hosts.len();
        ranks <= hosts && ranks as f64 >= ABOUT * hosts as f64
    }

    /// The row that says what a collective does over several groups for messages of this size.
    pub fn two_level(&self, collective: &'static Collective, bytes: usize) -> Option<&TwoLevelRow> {
        self.policy.two_level(collective).iter().rev().find(|r| r.from_bytes <= bytes)
    }

    /// The size that stands for all sizes that the policy treats as it: those between two beginnings of rows. The size that a row was made
    /// at stands for those near it.
    pub fn size_class(&self, collective: &'static Collective, bytes: usize) -> usize {
        let classes = self.classes(collective);
        let at = classes.partition_point(|class| class.0 <= bytes).max(1) - 1;
        classes.get(at).map_or(bytes, |class| class.1)
    }

    /// The largest size that a row of a collective was made at.
    pub fn largest_measured(&self, collective: &'static Collective) -> usize {
        self.classes(collective).last().map_or(usize::MAX, |class| class.1)
    }

    fn classes(&self, collective: &'static Collective) -> &[(usize, usize)] {
        self.classes.get(collective).map_or(&[], Vec::as_slice)
    }

    /// What a collective takes over all ranks of several groups for messages of this size, between the rows' times, if there are any.
    pub fn two_level_seconds(&self, collective: &'static Collective, bytes: usize) -> Option<f64> {
        let rows = self.policy.two_level(collective);
        let sizes: Vec<usize> = rows.iter().map(|r| r.at_bytes).collect();
        let times: Vec<f64> = rows.iter().map(|r| r.evidence.measured_s.unwrap_or(r.evidence.predicted_s)).collect();
        let first = *sizes.first()?;
        Some(stats::extended(&sizes, &times, bytes.max(first)))
    }

    /// True if these are the positions of a group that its rows were made with, each once: as many ranks on each host.
    pub fn is_whole(&self, group: usize, positions: impl Iterator<Item = usize>) -> bool {
        let mut left = vec![true; self.policy.groups[group].hosts.len()];
        let (mut ranks, mut once) = (0, true);
        for position in positions {
            ranks += 1;
            once &= left.get_mut(position).is_some_and(std::mem::take);
        }
        once && ranks == left.len()
    }

    /// What to do in a group for a collective among the given positions of it, the first of which is the root.
    ///
    /// # Errors
    /// The group has no model, or one that lacks parameters, which a parsed policy has not.
    pub fn decide(&self, collective: &'static Collective, group: usize, positions: &[usize], bytes: usize) -> Result<Decision> {
        self.decide_with(collective, group, positions, bytes, &Built::default())
    }

    /// As [`CompiledPolicy::decide`], with what was built for other groups.
    ///
    /// # Errors
    /// As there.
    pub fn decide_with(
        &self,
        collective: &'static Collective,
        group: usize,
        positions: &[usize],
        bytes: usize,
        built: &Built,
    ) -> Result<Decision> {
        let g = &self.policy.groups[group];
        let row = g.row(collective, bytes);
        // rows were made with the first position as the root
        let other_root = collective.rooted && positions[0] != 0 && self.has_unlike_processors(group);
        let as_made = self.is_whole(group, positions.iter().copied()) && !other_root;
        if let Some(row) = row.filter(|_| as_made) {
            let (algorithm, mut parameters) = (collective.algorithm(&row.algorithm)?, self.in_segments(group, row.parameters(), bytes));
            let costs = self.group_costs(group, &row.model);
            let places = match costs.filter(|_| row.by_speed) {
                Some(inner) => {
                    let among = Among { inner, positions: positions.to_vec() };
                    by_speed(collective, algorithm, &row.parameters(), &among, positions.len(), row.at_bytes)?
                }
                None => None,
            };
            if parameters.segment > 0 && parameters.in_flight == 0 {
                parameters.in_flight = costs.map_or(0, |costs| in_flight(costs, &placed(positions, &places), parameters.segment));
            }
            return Ok(Decision {
                collective,
                algorithm,
                parameters,
                model: row.model.clone(),
                predicted_s: scaled(g.rows(collective), bytes, row.at_bytes, row.evidence.seconds()),
                runner_up: row.evidence.runner_up.clone(),
                margin: row.evidence.margin,
                from_row: true,
                places,
                estimated_by: None,
            });
        }
        if g.models.is_empty() {
            return match g.hosts.len() {
                1 => self.decide_unmeasured(collective, group, positions, bytes),
                _ => Err(Error::invalid(format!("decide what \"{}\" does: the policy has no model of that group", g.name))),
            };
        }
        let inside = Some(&self.groups[group].inside);
        let knowledge = Knowledge { models: &g.models, scores: &g.scores, calibration: &g.calibration, inside, built };
        // decided once for all sizes of a class
        let at = if collective.sized() { self.size_class(collective, bytes) } else { 0 };
        let mut candidates = candidates_by_speed(collective, positions.len(), at, self.has_unlike_processors(group));
        // and in a short one fewer messages meet others
        let shortest = row.filter(|_| !self.loses(group)).map_or(0, |row| shortest_segment(row, at));
        candidates.retain(|(_, parameters)| parameters.segment == 0 || parameters.segment >= shortest);
        // what models miss is not theirs to decide
        let unknown_losses = |row: &&Choice| row.is_irregular() && g.losses.is_none();
        if let Some(row) = row.filter(unknown_losses) {
            let (taken, shape) = (collective.algorithm(&row.algorithm)?, collective.shape(positions.len(), 0, at));
            // all of them do the same from any root
            let held = row.held(collective)?.filter(|_| positions.len() < g.hosts.len());
            let whole = candidates.iter().filter(|(algorithm, parameters)| parameters.segment == 0 && held == Some(*algorithm));
            let own = Some((taken, bounded(row.parameters(), at))).filter(|_| (taken.fits)(&shape));
            let known: Vec<_> = own.into_iter().chain(whole.copied()).collect();
            if !known.is_empty() {
                candidates = known;
            }
        }
        // the best and the next best; where what was measured of one corrects it, any may be
        let wanted = if row.filter(unknown_losses).is_some() { Wanted::All } else { Wanted::Fastest(2) };
        let (model, mut ranked) = rank_candidates(knowledge, collective, positions, at, &candidates, wanted)?;
        // what was measured of it with all of them is true of some more than what is predicted
        if let Some((row, measured_s)) = row.filter(unknown_losses).and_then(|row| Some((row, row.evidence.measured_s?))) {
            let own = collective.algorithm(&row.algorithm)?;
            ranked.iter_mut().filter(|c| c.algorithm == own).for_each(|c| c.predicted *= measured_s / row.evidence.predicted_s);
            ranked.sort_by(|a, b| a.predicted.total_cmp(&b.predicted));
        }
        let best = ranked.first();
        // where the library's own was best with all ranks, no model can tell that it is not with some
        let native = row.map(|r| collective.algorithm(&r.algorithm)).transpose()?.filter(|a| a.is_native());
        // what nobody can predict, as where it is not known what combining takes, is left to it
        let chosen = best.map_or(collective.native(), |c| c.algorithm);
        let mut decision = Decision {
            collective,
            algorithm: native.unwrap_or(chosen),
            parameters: self.in_segments(group, best.map(|c| c.parameters).unwrap_or_default(), bytes),
            model,
            predicted_s: best.map_or(f64::INFINITY, |c| c.predicted),
            runner_up: ranked.get(1).map_or(NO_OTHER.into(), |c| c.algorithm.words(&c.parameters)),
            margin: best.zip(ranked.get(1)).map_or(0.0, |(a, b)| stats::margin(b.predicted, a.predicted)),
            from_row: false,
            places: best.and_then(|c| c.places.clone()),
            estimated_by: None,
        };
        if bytes != at {
            decision.predicted_s = self.decided_seconds(group, &placed(positions, &decision.places), &decision, bytes)?;
        }
        Ok(decision)
    }

    /// What a decision should take for another size than the one it was made at, the positions in their places.
    ///
    /// # Errors
    /// As [`CompiledPolicy::decide`].
    pub fn decided_seconds(&self, group: usize, positions: &[usize], decision: &Decision, bytes: usize) -> Result<f64> {
        let g = &self.policy.groups[group];
        if decision.from_row {
            let rows = g.rows(decision.collective);
            let row = g.row(decision.collective, bytes);
            return Ok(row.map_or(decision.predicted_s, |row| scaled(rows, bytes, row.at_bytes, row.evidence.seconds())));
        }
        if g.models.is_empty() {
            return self.estimated_seconds(decision.collective, group, positions.len(), bytes);
        }
        let inside = Some(&self.groups[group].inside);
        let built = &Built::default();
        let knowledge = Knowledge { models: &g.models, scores: &g.scores, calibration: &g.calibration, inside, built };
        let candidate = (decision.algorithm, Parameters { by_speed: false, ..decision.parameters });
        let (_, ranked) = rank_candidates(knowledge, decision.collective, positions, bytes, &[candidate], Wanted::All)?;
        Ok(ranked.first().map_or(decision.predicted_s, |c| c.predicted))
    }
}

/// For each of a group's links the share of its gap that a message keeps the group's port, where one message on each keeps it for `sharing` of the sum of the
/// gaps. A port takes as long for a message whatever link that goes to, and no longer than a link that is as fast as it: a message on a slower one leaves
/// it free for others.
fn port_shares(gaps: &[f64], sharing: f64) -> Vec<f64> {
    let mut ascending: Vec<f64> = gaps.iter().copied().filter(|&gap| gap > 0.0).collect();
    ascending.sort_by(f64::total_cmp);
    let mut left = sharing * ascending.iter().sum::<f64>();
    let mut port = f64::INFINITY;
    for (k, &gap) in ascending.iter().enumerate() {
        port = left / (ascending.len() - k) as f64;
        if port <= gap {
            break;
        }
        left -= gap;
    }
    gaps.iter().map(|&gap| if gap > 0.0 { (port / gap).min(1.0) } else { 1.0 }).collect()
}

/// A row's time at another size than its own: interpolated between the rows' times.
fn scaled(rows: &[Choice], bytes: usize, at: usize, predicted: f64) -> f64 {
    if bytes == at {
        return predicted;
    }
    let sizes: Vec<usize> = rows.iter().map(|r| r.at_bytes).collect();
    let times: Vec<f64> = rows.iter().map(|r| r.evidence.seconds()).collect();
    stats::extended(&sizes, &times, bytes.max(sizes[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_takes_as_long_whatever_link_a_message_goes_to() {
        // a port that takes 2 ms, and links of 2 and 4 ms; the first is the group itself
        let found = port_shares(&[0.0, 2e-3, 4e-3, 4e-3], 6e-3 / 10e-3);
        assert!(found.iter().zip([1.0, 1.0, 0.5, 0.5]).all(|(found, wanted)| (found - wanted).abs() < 1e-12), "{found:?}");
        // slow links that keep the port as long as they take, and links alike
        assert!(port_shares(&[2e-3, 4e-3], 1.0).iter().all(|share| (share - 1.0).abs() < 1e-12));
        assert!(port_shares(&[4e-3; 4], 0.25).iter().all(|share| (share - 0.25).abs() < 1e-12));
        assert_eq!(port_shares(&[0.0], 1.0), [1.0]);
    }
}
