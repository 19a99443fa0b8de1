//! The poly-model: inside a group the model selected there, between groups the link's.

use super::Location;
use crate::error::{Error, Result};
use crate::model::{Cost, CostModel};
use crate::policy::CompiledPolicy;
use crate::score::best_model;
use crate::topology::{Link, Rank};

/// The costs between any two ranks of a communicator.
pub struct PolyModel<'a> {
    policy: &'a CompiledPolicy,
    members: &'a [Location],
    /// The model selected in each of the policy's groups.
    models: Vec<&'a dyn CostModel>,
}

impl<'a> PolyModel<'a> {
    /// The poly-model for messages of about so many bytes. Groups in which no model was scored get the first they have.
    ///
    /// # Errors
    /// [`Error::Invalid`]: a group that has none.
    pub fn new(policy: &'a CompiledPolicy, members: &'a [Location], bytes: usize) -> Result<PolyModel<'a>> {
        PolyModel::with(policy, members, bytes, None)
    }

    /// As [`PolyModel::new`], with this model inside every group that has it, if one is named.
    ///
    /// # Errors
    /// As there.
    pub fn with(policy: &'a CompiledPolicy, members: &'a [Location], bytes: usize, model: Option<&str>) -> Result<PolyModel<'a>> {
        let costs = |(k, g): (usize, &crate::policy::GroupPolicy)| {
            let selected = best_model(&g.scores, bytes).map(|s| s.model.as_str()).or(g.models.first().map(|m| m.model.as_str()));
            let named = model.and_then(|m| policy.group_costs(k, m));
            match named.or_else(|| selected.and_then(|m| policy.group_costs(k, m))) {
                Some(costs) => Ok(costs),
                None if g.hosts.len() == 1 => Ok(&FREE as &dyn CostModel),
                None => Err(Error::invalid(format!("predict messages inside \"{}\": the policy has no model of that group", g.name))),
            }
        };
        Ok(PolyModel { policy, members, models: policy.policy.groups.iter().enumerate().map(costs).collect::<Result<_>>()? })
    }
}

/// For a group that was measured with one rank. What several ranks there send each other is not known, and stays inside one host.
struct Free;
static FREE: Free = Free;

impl CostModel for Free {
    fn cost(&self, _: Link, _: usize) -> Cost {
        Cost::default()
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
    fn cost(&self, link: Link, bytes: usize) -> Cost {
        let (a, b) = (self.members[link.from], self.members[link.to]);
        if a.group == b.group {
            self.models[a.group].cost(Link { from: a.position, to: b.position }, bytes)
        } else {
            crossing(self.policy, a, b, bytes)
        }
    }

    fn processor(&self, rank: Rank, bytes: usize) -> f64 {
        let Location { group, position } = self.members[rank];
        if self.policy.has_unlike_processors(group) {
            self.models[group].processor(position, bytes)
        } else {
            self.policy.overheads(group, bytes).map_or(0.0, |own| own.send_overhead)
        }
    }
}
