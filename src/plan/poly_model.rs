//! The poly-model: inside a group the model selected there, between groups the link's.

use super::Location;
use crate::collective::Collective;
use crate::error::{Error, Result};
use crate::model::{Cost, CostModel, Loss, Pipe};
use crate::policy::CompiledPolicy;
use crate::score::best_model;
use crate::topology::{Link, Rank};

/// The costs between any two ranks of a communicator.
pub struct PolyModel<'a> {
    policy: &'a CompiledPolicy,
    members: &'a [Location],
    /// The model selected in each of the policy's groups; none of those that were measured with one rank.
    models: Vec<Option<&'a dyn CostModel>>,
    /// The kind of each rank.
    kinds: Vec<u32>,
    /// How many kinds of ranks there are.
    rank_kinds: usize,
}

impl<'a> PolyModel<'a> {
    /// The poly-model for messages of about so many bytes in a collective. Groups in which no model was scored get the first they have.
    ///
    /// # Errors
    /// [`Error::Invalid`]: a group that has none.
    pub fn new(policy: &'a CompiledPolicy, members: &'a [Location], collective: &Collective, bytes: usize) -> Result<PolyModel<'a>> {
        PolyModel::with(policy, members, collective, bytes, None)
    }

    /// As [`PolyModel::new`], with this model inside every group that has it, if one is named.
    ///
    /// # Errors
    /// As there.
    pub fn with(
        policy: &'a CompiledPolicy,
        members: &'a [Location],
        collective: &Collective,
        bytes: usize,
        model: Option<&str>,
    ) -> Result<PolyModel<'a>> {
        let costs = |(k, g): (usize, &crate::policy::GroupPolicy)| {
            let selected =
                best_model(&g.scores, collective, bytes).map(|s| s.model.as_str()).or(g.models.first().map(|m| m.model.as_str()));
            let named = model.and_then(|m| policy.group_costs(k, m));
            match named.or_else(|| selected.and_then(|m| policy.group_costs(k, m))) {
                Some(costs) => Ok(Some(costs)),
                None if g.hosts.len() == 1 => Ok(None),
                None => Err(Error::invalid(format!("predict messages inside \"{}\": the policy has no model of that group", g.name))),
            }
        };
        let models = policy.policy.groups.iter().enumerate().map(costs).collect::<Result<Vec<_>>>()?;
        let differ =
            models.iter().enumerate().map(|(k, model)| policy.has_unlike_processors(k) || model.is_some_and(|model| model.kinds() != 1));
        let differ: Vec<bool> = differ.collect();
        // as many as there are positions, which may be more than were measured
        let mut of_group = vec![1; models.len()];
        for m in members.iter().filter(|m| differ[m.group]) {
            of_group[m.group] = of_group[m.group].max(m.position + 1);
        }
        let mut rank_kinds = 0;
        let first = |of_group: usize| {
            rank_kinds += of_group;
            rank_kinds - of_group
        };
        let first: Vec<usize> = of_group.into_iter().map(first).collect();
        let kind = |m: &Location| (first[m.group] + if differ[m.group] { m.position } else { 0 }) as u32;
        let kinds = members.iter().map(kind).collect();
        Ok(PolyModel { policy, members, models, kinds, rank_kinds })
    }

    /// The policy that it is of.
    pub(super) fn policy(&self) -> &'a CompiledPolicy {
        self.policy
    }
}

/// The cost of a message between two groups, with the processors of its ends.
pub fn crossing(policy: &CompiledPolicy, from: Location, to: Location, bytes: usize) -> Cost {
    let cost = policy.link_cost(from.group, to.group, bytes);
    let [sender, receiver] = [from, to].map(|end| policy.beyond_first(end.group, end.position, bytes));
    if sender == 0.0 && receiver == 0.0 {
        return cost;
    }
    let (send_overhead, recv_overhead) = ((cost.send_overhead + sender).max(0.0), (cost.recv_overhead + receiver).max(0.0));
    Cost {
        send_overhead,
        gap: cost.gap.max(send_overhead),
        transit: (cost.transit + sender + receiver).max(send_overhead + recv_overhead),
        recv_overhead,
        ..cost
    }
}

impl CostModel for PolyModel<'_> {
    fn kinds(&self) -> usize {
        self.rank_kinds * self.rank_kinds
    }

    fn kind(&self, link: Link) -> usize {
        self.kinds[link.from] as usize * self.rank_kinds + self.kinds[link.to] as usize
    }

    fn loses(&self) -> bool {
        self.models.iter().flatten().any(|model| model.loses())
    }

    fn cost(&self, link: Link, bytes: usize) -> Cost {
        let (a, b) = (self.members[link.from], self.members[link.to]);
        if a.group != b.group {
            return crossing(self.policy, a, b, bytes);
        }
        match (self.models[a.group], self.policy.estimated_by(a.group)) {
            (Some(model), _) => model.cost(Link { from: a.position, to: b.position }, bytes),
            (None, Some((other, _))) => self.policy.link_cost(a.group, other, bytes),
            (None, None) => Cost::NEVER,
        }
    }

    fn port_in(&self, link: Link, bytes: usize) -> f64 {
        let (a, b) = (self.members[link.from], self.members[link.to]);
        if let Some(model) = self.models[a.group].filter(|_| a.group == b.group) {
            return model.port_in(Link { from: a.position, to: b.position }, bytes);
        }
        let back = |bytes| self.cost(Link { from: link.to, to: link.from }, bytes);
        let (full, empty) = (back(bytes), back(0));
        let (port, long) = (full.gap - empty.gap, full.link_gap - empty.link_gap);
        // where links share their port in part, their gaps say less of short messages than what comes in from hosts of the same group
        let hosts = &self.policy.policy.groups[b.group].hosts;
        let near = self.models[b.group].zip(hosts.iter().position(|host| Some(host) != hosts.get(b.position)));
        let inside = near.map_or(0.0, |(model, from)| model.port_in(Link { from, to: b.position }, bytes).min(long));
        port.max(inside).max(0.0)
    }

    fn loss(&self, link: Link, bytes: usize) -> Option<Loss> {
        let (a, b) = (self.members[link.from], self.members[link.to]);
        self.models[a.group].filter(|_| a.group == b.group)?.loss(Link { from: a.position, to: b.position }, bytes)
    }

    fn processor(&self, rank: Rank, bytes: usize) -> f64 {
        let Location { group, position } = self.members[rank];
        match self.models[group].filter(|_| self.policy.has_unlike_processors(group)) {
            Some(model) => model.processor(position, bytes),
            None => self.policy.overheads(group, bytes).map_or(0.0, |own| own.send_overhead),
        }
    }

    fn copy(&self, rank: Rank, bytes: usize) -> f64 {
        let Location { group, position } = self.members[rank];
        self.policy.compute(group, position).map_or(f64::INFINITY, |own| own.copy(bytes))
    }

    fn combine(&self, rank: Rank, bytes: usize) -> f64 {
        let Location { group, position } = self.members[rank];
        self.policy.compute(group, position).map_or(f64::INFINITY, |own| own.combine(bytes))
    }

    /// All messages from one group to another share a link that is long, or slower than their ports, and as fast as it was measured from one rank to one.
    fn pipe(&self, link: Link, bytes: usize) -> Option<(Pipe, f64)> {
        let (a, b) = (self.members[link.from].group, self.members[link.to].group);
        if a == b { None } else { Some(((a, b), self.policy.link_busy(a, b, bytes)?)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::bcast;
    use crate::policy::Policy;
    use crate::predict::completion;
    use crate::schedule::{Program, Schedule, Span};

    /// A policy of two groups, of which the second was measured with one rank, where several are now.
    #[test]
    fn what_ranks_of_a_host_that_was_measured_with_one_send_each_other_takes_time() {
        let mut policy = Policy::read(std::path::Path::new("policies/ccgrid2007.toml")).unwrap();
        let group = &mut policy.groups[1];
        group.hosts.truncate(1);
        (group.models, group.scores, group.calibration, group.choices) = Default::default();
        let name = group.name.clone();
        let compiled = CompiledPolicy::new(policy.clone()).unwrap();
        let (near, link) = compiled.estimated_by(1).unwrap();
        assert!(policy.links.iter().filter(|l| l.between.contains(&name)).all(|l| l.latency_s >= link.latency_s));
        let members: Vec<Location> = vec![Location { group: 1, position: 0 }; 4];
        let within = |bytes| PolyModel::new(&compiled, &members, &bcast::COLLECTIVE, bytes).unwrap().cost(Link { from: 0, to: 1 }, bytes);
        assert_eq!(within(1 << 10), compiled.link_cost(1, near, 1 << 10));
        assert!(within(1 << 10).transit > 0.0);
        let decided = compiled.decide(&bcast::COLLECTIVE, 1, &[0; 4], 1 << 10).unwrap();
        assert!(decided.algorithm.is_native() && decided.predicted_s.is_finite() && decided.predicted_s >= within(1 << 10).transit);
        assert_eq!(decided.estimated_by, Some(policy.groups[near].name.clone()));
        let larger = compiled.decided_seconds(1, &[0; 4], &decided, 1 << 20).unwrap();
        assert!(larger > 10.0 * decided.predicted_s, "{larger} s");
        // a group alone, of which nothing is known
        let alone = Policy { groups: vec![policy.groups[1].clone()], links: Vec::new(), collectives: Default::default(), ..policy };
        let alone = CompiledPolicy::new(alone).unwrap();
        let members = vec![Location { group: 0, position: 0 }; 4];
        let costs = PolyModel::new(&alone, &members, &bcast::COLLECTIVE, 8).unwrap();
        assert_eq!(costs.cost(Link { from: 0, to: 1 }, 8), Cost::NEVER);
        let decided = alone.decide(&bcast::COLLECTIVE, 0, &[0; 4], 8).unwrap();
        assert!(decided.algorithm.is_native() && decided.predicted_s == f64::INFINITY && decided.estimated_by.is_none());
    }

    #[test]
    fn messages_between_two_sites_share_the_link_and_those_of_a_switch_do_not() {
        let policy = CompiledPolicy::new(Policy::read(std::path::Path::new("policies/ccgrid2007.toml")).unwrap()).unwrap();
        let at = |group, position| Location { group, position };
        let far = [at(0, 0), at(0, 1), at(1, 0), at(1, 1)];
        let near = [at(0, 0), at(0, 1), at(0, 2), at(0, 3)];
        let message = Span::output(0, 1 << 20);
        // ranks 0 and 1 send to 2 and 3, or only one of them does
        let seconds = |members: &[Location], senders: usize| {
            let mut programs = vec![Program::new(); 4];
            for rank in 0..senders {
                programs[rank].send(rank + 2, message, &[]);
                programs[rank + 2].recv(rank, message, &[]);
            }
            completion(&Schedule { programs }, &PolyModel::new(&policy, members, &bcast::COLLECTIVE, 1 << 20).unwrap()).unwrap()
        };
        assert_eq!(seconds(&near, 1), seconds(&near, 2));
        let busy = policy.link_busy(0, 1, 1 << 20).unwrap();
        assert!(busy > 1e-3 && (seconds(&far, 2) - seconds(&far, 1) - busy).abs() < 1e-9, "{busy} s");
    }
}
