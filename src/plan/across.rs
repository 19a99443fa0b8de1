//! Pipelines over groups: a route between them, a tree inside them, segments through both.

use super::{Member, PolyModel, group_ranks};
use crate::collective::{Algorithm, Hierarchy, Local, Parameters, Route, Shape};
use crate::error::{Error, Result};
use crate::fit::Among;
use crate::intercluster::{Problem, RouteKind};
use crate::policy::CompiledPolicy;
use crate::predict::{completion, replay};
use crate::topology::Rank;
use crate::units;

/// How a message crosses groups.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// The route between groups.
    pub route: RouteKind,
    /// Bytes of a segment; 0: the whole message at once.
    pub segment: usize,
    /// The broadcast inside each group, which must be a tree.
    pub local: &'static Algorithm,
}

impl Way {
    /// In words, for a message of some bytes.
    pub fn words(&self, bytes: usize) -> String {
        let segment =
            if self.segment == 0 || self.segment >= bytes { String::new() } else { format!(" in {}", units::bytes(self.segment)) };
        format!("{} and {}{segment}", self.route.name(), self.local.name)
    }
}

/// The problem between groups for messages of `bytes`, with the times of the local broadcasts of as many bytes.
///
/// # Errors
/// [`Error::Invalid`] if the policy has no link between two groups.
pub fn problem(policy: &CompiledPolicy, groups: &[usize], bytes: usize, local: Vec<f64>, local_busy: Vec<f64>) -> Result<Problem> {
    let n = groups.len();
    let mut problem = Problem { groups: n, root: 0, gap: vec![0.0; n * n], latency: vec![0.0; n * n], local, local_busy };
    for (i, j) in (0..n * n).map(|k| (k / n, k % n)).filter(|(i, j)| i != j) {
        let cost = policy.link_cost(groups[i], groups[j], bytes).ok_or_else(|| {
            let name = |k: usize| &policy.policy.groups[groups[k]].name;
            Error::invalid(format!("plan a broadcast: the policy has no link between \"{}\" and \"{}\"", name(i), name(j)))
        })?;
        problem.gap[i * n + j] = cost.gap;
        problem.latency[i * n + j] = (cost.transit - cost.gap).max(0.0);
    }
    Ok(problem)
}

/// The broadcast that goes a way.
///
/// # Errors
/// The policy lacks a link.
pub fn hierarchy(policy: &CompiledPolicy, members: &[Member], root: Rank, bytes: usize, way: Way) -> Result<Hierarchy> {
    let groups = group_ranks(members, root);
    let segment = if way.segment == 0 { bytes } else { way.segment.min(bytes) };
    let costs = PolyModel::new(policy, members, bytes);
    let (mut local, mut local_busy) = (Vec::new(), Vec::new());
    for (_, ranks) in &groups {
        let shape = Shape { ranks: ranks.len(), root: 0, bytes: segment };
        let schedule = way.local.schedule(&shape, &Parameters::default()).unwrap_or_default();
        let found = replay(&schedule, &Among { inner: &costs, positions: ranks.clone() })?;
        local.push(found.completion());
        local_busy.push(found.port_free.first().copied().unwrap_or(0.0));
    }
    let (indices, groups): (Vec<usize>, Vec<Vec<Rank>>) = groups.into_iter().unzip();
    let problem = problem(policy, &indices, segment, local, local_busy)?;
    let local = Local { algorithm: way.local.name.into(), parameters: Parameters::default() };
    Ok(Hierarchy {
        bytes,
        local: vec![local; groups.len()],
        hosts: hosts(policy, members, &groups),
        groups,
        route: way.route.jobs(&problem).map_or(Route::Relay, Route::Tree),
        // one segment is a pipeline too: the trees inside groups are entered from the route
        segment: segment.max(1),
    })
}

/// The host of each rank by number, if any host has several.
fn hosts(policy: &CompiledPolicy, members: &[Member], groups: &[Vec<Rank>]) -> Vec<Vec<usize>> {
    let of_group = |ranks: &Vec<Rank>| {
        let names = &policy.policy.groups[members[ranks[0]].group].hosts;
        let first = |r: &Rank| names.iter().position(|h| *h == names[members[*r].position]).unwrap_or(0);
        ranks.iter().map(first).collect::<Vec<usize>>()
    };
    let all: Vec<Vec<usize>> = groups.iter().map(of_group).collect();
    let shared = |hosts: &Vec<usize>| hosts.iter().enumerate().any(|(k, h)| hosts[..k].contains(h));
    if all.iter().any(shared) { all } else { Vec::new() }
}

/// What a broadcast takes under the poly-model.
///
/// # Errors
/// An algorithm that there is not.
pub fn predict(policy: &CompiledPolicy, members: &[Member], hierarchy: &Hierarchy) -> Result<f64> {
    completion(&hierarchy.schedule(members.len())?, &PolyModel::new(policy, members, hierarchy.bytes))
}
