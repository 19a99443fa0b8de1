//! Looking a policy up: what to do in a group for a size, for the ranks of it that are there.

use super::{Across, GroupPolicy, Policy};
use crate::collective::{Algorithm, Parameters, bcast};
use crate::error::Result;
use crate::model::{Cost, CostModel, Inside};
use crate::select::{Knowledge, all_candidates, rank_candidates};
use crate::stats;
use crate::topology::Link;

/// A message is cut into at most so many segments.
const MOST_SEGMENTS: usize = 1024;

/// What to do, and why.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Its parameters.
    pub parameters: Parameters,
    /// The model that was trusted.
    pub model: String,
    /// The time it should take.
    pub predicted_s: f64,
    /// The next best.
    pub runner_up: String,
    /// How much longer the next best takes, as a share.
    pub margin: f64,
    /// True if it comes from a row that was made for this many ranks; else it was computed from the models.
    pub from_row: bool,
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
}

impl CompiledPolicy {
    /// Prepares a policy.
    ///
    /// # Errors
    /// A model that lacks parameters, which a parsed policy has not.
    pub fn new(policy: Policy) -> Result<CompiledPolicy> {
        let costs = |g: &GroupPolicy| -> Result<CompiledGroup> {
            let inside = Inside::new(&g.hosts, g.inside_host.clone(), g.inside_fan_out);
            let named = g.models.iter().map(|m| Ok((m.model.clone(), m.costs_in(Some(&inside))?)));
            Ok(CompiledGroup { costs: named.collect::<Result<_>>()?, inside })
        };
        let groups = policy.groups.iter().map(costs).collect::<Result<_>>()?;
        let n = policy.groups.len();
        let links = (0..n * n).map(|k| policy.link(k / n, k % n).map(|l| l.model.costs()).transpose()).collect::<Result<_>>()?;
        Ok(CompiledPolicy { policy, groups, links })
    }

    /// The costs of a group under a model of its.
    pub fn group_costs(&self, group: usize, model: &str) -> Option<&dyn CostModel> {
        self.groups[group].costs.iter().find(|(name, _)| name == model).map(|(_, c)| c.as_ref())
    }

    /// The cost of a message between the coordinators of two groups.
    pub fn link_cost(&self, from: usize, to: usize, bytes: usize) -> Option<Cost> {
        let link = if from < to { Link { from: 0, to: 1 } } else { Link { from: 1, to: 0 } };
        let cost = self.links[from * self.policy.groups.len() + to].as_ref()?.cost(link, bytes);
        Some(cost.fanned_out(self.policy.groups[from].fan_out))
    }

    /// The row that says how a message of this size crosses groups.
    pub fn across(&self, bytes: usize) -> Option<&Across> {
        self.policy.across.iter().rev().find(|r| r.from_bytes <= bytes)
    }

    /// What a message of this size takes over all ranks, between the rows' times; 0 without rows.
    pub fn across_seconds(&self, bytes: usize) -> f64 {
        let sizes: Vec<usize> = self.policy.across.iter().map(|r| r.at_bytes).collect();
        let times: Vec<f64> = self.policy.across.iter().map(|r| r.measured_s.unwrap_or(r.predicted_s)).collect();
        if sizes.is_empty() { 0.0 } else { stats::interpolate(&sizes, &times, bytes.max(sizes[0])) }
    }

    /// What to do in a group for a broadcast among the given positions of it, the first of which is the root.
    ///
    /// # Errors
    /// A model that lacks parameters, which a parsed policy has not.
    pub fn decide(&self, group: usize, positions: &[usize], bytes: usize) -> Result<Decision> {
        let g = &self.policy.groups[group];
        let row = g.bcast.iter().rev().find(|r| r.from_bytes <= bytes);
        if let Some(row) = row.filter(|_| positions.len() == g.hosts.len()) {
            // far above the sizes that were measured, longer segments: more of them cost memory and win nothing
            let mut parameters = row.parameters();
            if parameters.segment > 0 {
                parameters.segment = parameters.segment.max(bytes.div_ceil(MOST_SEGMENTS));
            }
            return Ok(Decision {
                algorithm: bcast::algorithm(&row.algorithm)?,
                parameters,
                model: row.model.clone(),
                predicted_s: self.scaled(g, bytes, row.at_bytes, row.predicted_s),
                runner_up: row.runner_up.clone(),
                margin: row.margin,
                from_row: true,
            });
        }
        let inside = Some(&self.groups[group].inside);
        let knowledge = Knowledge { models: &g.models, scores: &g.scores, experience: &g.experience, inside };
        let (model, ranked) = rank_candidates(knowledge, positions, 0, bytes, &all_candidates(bytes))?;
        let best = ranked.first();
        // where the library's own was best with all ranks, no model can tell that it is not with some
        let native = row.filter(|r| r.algorithm == "native").map(|r| bcast::algorithm(&r.algorithm)).transpose()?;
        let chosen = best.map_or(bcast::algorithm("binomial")?, |c| c.algorithm);
        Ok(Decision {
            algorithm: native.unwrap_or(chosen),
            parameters: best.map(|c| c.parameters).unwrap_or_default(),
            model,
            predicted_s: best.map_or(0.0, |c| c.predicted),
            runner_up: ranked.get(1).map_or("none".into(), |c| c.algorithm.name.into()),
            margin: best.zip(ranked.get(1)).map_or(0.0, |(a, b)| b.predicted / a.predicted - 1.0),
            from_row: false,
        })
    }

    /// A row's time at another size than its own: interpolated between the rows' times.
    fn scaled(&self, g: &GroupPolicy, bytes: usize, at: usize, predicted: f64) -> f64 {
        if bytes == at {
            return predicted;
        }
        let sizes: Vec<usize> = g.bcast.iter().map(|r| r.at_bytes).collect();
        let times: Vec<f64> = g.bcast.iter().map(|r| r.predicted_s).collect();
        stats::interpolate(&sizes, &times, bytes.max(sizes[0]))
    }
}
