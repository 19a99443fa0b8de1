//! The poly-model: inside a group the model trusted there, between groups the link's.

use super::Member;
use crate::model::{Cost, CostModel};
use crate::policy::CompiledPolicy;
use crate::score::best_model;
use crate::topology::Link;

/// The costs between any two ranks of a communicator.
pub struct PolyModel<'a> {
    policy: &'a CompiledPolicy,
    members: &'a [Member],
    /// The model trusted in each of the policy's groups.
    models: Vec<&'a dyn CostModel>,
}

impl<'a> PolyModel<'a> {
    /// The poly-model for messages of about so many bytes. Groups in which no model was scored get the first they have.
    pub fn new(policy: &'a CompiledPolicy, members: &'a [Member], bytes: usize) -> PolyModel<'a> {
        PolyModel::with(policy, members, bytes, None)
    }

    /// As [`PolyModel::new`], with this model inside every group that has it, if one is named.
    pub fn with(policy: &'a CompiledPolicy, members: &'a [Member], bytes: usize, model: Option<&str>) -> PolyModel<'a> {
        let costs = |(k, g): (usize, &crate::policy::GroupPolicy)| {
            let trusted = best_model(&g.scores, bytes).map(|s| s.model.as_str()).or(g.models.first().map(|m| m.model.as_str()));
            let named = model.and_then(|m| policy.group_costs(k, m));
            named.or_else(|| trusted.and_then(|m| policy.group_costs(k, m))).unwrap_or(&FREE)
        };
        PolyModel { policy, members, models: policy.policy.groups.iter().enumerate().map(costs).collect() }
    }
}

/// For a group of one, inside which nothing is sent.
struct Free;
static FREE: Free = Free;

impl CostModel for Free {
    fn cost(&self, _: Link, _: usize) -> Cost {
        Cost::default()
    }
}

impl CostModel for PolyModel<'_> {
    fn cost(&self, link: Link, bytes: usize) -> Cost {
        let (a, b) = (self.members[link.from], self.members[link.to]);
        if a.group == b.group {
            self.models[a.group].cost(Link { from: a.position, to: b.position }, bytes)
        } else {
            self.policy.link_cost(a.group, b.group, bytes).unwrap_or_default()
        }
    }
}
