//! A plan: the inter-group tree and the local programs, put together for one communicator, root and size.

use crate::collective::Shape;
use crate::error::{Error, Result};
use crate::fit::Among;
use crate::intercluster::{Job, Problem, Solution, solve};
use crate::model::{Cost, CostModel};
use crate::policy::{CompiledPolicy, Decision};
use crate::predict::replay;
use crate::schedule::{OpId, Program, Schedule, Span};
use crate::topology::{Link, Rank};

/// Where a rank of a communicator is in the policy's world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The policy's group.
    pub group: usize,
    /// The position in that group.
    pub position: usize,
}

/// Finds each rank's place by its host.
///
/// # Errors
/// [`Error::Data`] with the first host that no group of the policy has.
pub fn members(policy: &crate::policy::Policy, hosts: &[String]) -> Result<Vec<Member>> {
    let mut used: Vec<Vec<bool>> = policy.groups.iter().map(|g| vec![false; g.hosts.len()]).collect();
    let find = |host: &String| {
        let short = host.split('.').next().unwrap_or(host);
        let group = policy.groups.iter().position(|g| g.hosts.iter().any(|h| h == host || h == short))?;
        // the k-th rank of a host takes the host's k-th position; ranks beyond share the first
        let own = |k: &usize| policy.groups[group].hosts[*k] == *host || policy.groups[group].hosts[*k] == short;
        let places: Vec<usize> = (0..policy.groups[group].hosts.len()).filter(own).collect();
        let position = places.iter().copied().find(|&k| !used[group][k]).or(places.first().copied())?;
        used[group][position] = true;
        Some(Member { group, position })
    };
    let mut find = find;
    hosts
        .iter()
        .enumerate()
        .map(|(rank, host)| {
            find(host).ok_or_else(|| {
                Error::data(format!(
                    "place rank {rank}: its host \"{host}\" is in no group of the policy for {}",
                    policy.provenance.platform
                ))
            })
        })
        .collect()
}

/// The part of a group that is in the communicator.
#[derive(Debug, Clone)]
pub struct PlannedGroup {
    /// The policy's group.
    pub group: usize,
    /// Its ranks, the coordinator first.
    pub ranks: Vec<Rank>,
    /// What it does.
    pub decision: Option<Decision>,
}

/// A plan.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What is done.
    pub shape: Shape,
    /// The groups that take part, the root's first.
    pub groups: Vec<PlannedGroup>,
    /// The problem between the groups, by position in `groups`; `None` for one group.
    pub problem: Option<Problem>,
    /// Its solution.
    pub solution: Option<Solution>,
    /// The time it should take.
    pub predicted_s: f64,
    /// The library's own broadcast over everybody should take this and is better.
    pub native_s: Option<f64>,
}

/// Plans a broadcast. The same input gives the same plan on every rank.
///
/// # Errors
/// [`Error::Invalid`] if the root is outside, or a link between two groups is not in the policy.
pub fn plan(policy: &CompiledPolicy, members: &[Member], root: Rank, bytes: usize) -> Result<Plan> {
    let shape = Shape { ranks: members.len(), root, bytes };
    if root >= members.len() {
        return Err(Error::invalid(format!("plan a broadcast from rank {root} of {} ranks", members.len())));
    }
    let mut groups: Vec<PlannedGroup> = Vec::new();
    // the root's group first, then by first rank; the coordinator is the root, else the lowest rank
    for rank in std::iter::once(root).chain((0..members.len()).filter(|&r| r != root)) {
        match groups.iter_mut().find(|g| g.group == members[rank].group) {
            Some(g) => g.ranks.push(rank),
            None => groups.push(PlannedGroup { group: members[rank].group, ranks: vec![rank], decision: None }),
        }
    }
    let (mut local, mut local_busy) = (Vec::new(), Vec::new());
    for g in &mut groups {
        let positions: Vec<usize> = g.ranks.iter().map(|&r| members[r].position).collect();
        if g.ranks.len() > 1 {
            let decision = policy.decide(g.group, &positions, bytes)?;
            local.push(decision.predicted_s);
            local_busy.push(busy(policy, g.group, &positions, &decision, bytes)?);
            g.decision = Some(decision);
        } else {
            local.push(0.0);
            local_busy.push(0.0);
        }
    }
    if groups.len() == 1 {
        return Ok(Plan { shape, groups, problem: None, solution: None, predicted_s: local[0], native_s: None });
    }
    let n = groups.len();
    let mut problem = Problem { groups: n, root: 0, gap: vec![0.0; n * n], latency: vec![0.0; n * n], local, local_busy };
    for (i, j) in (0..n * n).map(|k| (k / n, k % n)).filter(|(i, j)| i != j) {
        let (a, b) = (groups[i].group, groups[j].group);
        let cost = policy.link_cost(a, b, bytes).ok_or_else(|| {
            let name = |g: usize| &policy.policy.groups[g].name;
            Error::invalid(format!("plan a broadcast: the policy has no link between \"{}\" and \"{}\"", name(a), name(b)))
        })?;
        problem.gap[i * n + j] = cost.gap;
        problem.latency[i * n + j] = (cost.transit - cost.gap).max(0.0);
    }
    let solution = solve(&problem);
    let predicted_s = solution.best.completion;
    let native_s = whole_native(policy, members, bytes).filter(|&t| t < predicted_s);
    Ok(Plan { shape, groups, problem: Some(problem), solution: Some(solution), predicted_s, native_s })
}

/// What the library's own broadcast over everybody took, if exactly everybody takes part.
fn whole_native(policy: &CompiledPolicy, members: &[Member], bytes: usize) -> Option<f64> {
    let p = &policy.policy;
    if p.whole.is_empty() || members.len() != p.provenance.ranks {
        return None;
    }
    let (sizes, times): (Vec<usize>, Vec<f64>) = p.whole.iter().map(|w| (w.bytes, w.native_s)).unzip();
    Some(crate::stats::interpolate(&sizes, &times, bytes.max(sizes[0])))
}

/// How long a local broadcast keeps its coordinator from sending.
fn busy(policy: &CompiledPolicy, group: usize, positions: &[usize], decision: &Decision, bytes: usize) -> Result<f64> {
    let shape = Shape { ranks: positions.len(), root: 0, bytes };
    let schedule = decision.algorithm.schedule(&shape, &decision.parameters);
    let (Some(schedule), Some(inner)) = (schedule, policy.group_costs(group, &decision.model)) else {
        return Ok(decision.predicted_s);
    };
    let found = replay(&schedule, &Among { inner, positions: positions.to_vec() })?;
    // what corrects the whole corrects its part
    Ok(found.port_free[0] * decision.predicted_s / found.completion().max(f64::MIN_POSITIVE))
}

impl Plan {
    /// True if everybody should call the library's own broadcast.
    pub fn is_native(&self) -> bool {
        self.native_s.is_some() || (self.groups.len() == 1 && self.local_native(0))
    }

    /// True if a group's local broadcast is the library's own, which comes after all its coordinator's sends.
    pub fn local_native(&self, k: usize) -> bool {
        self.groups[k].decision.as_ref().is_some_and(|d| d.algorithm.builder.is_none())
    }

    /// The position in `groups` of a rank's group.
    pub fn group_of(&self, rank: Rank) -> usize {
        self.groups.iter().position(|g| g.ranks.contains(&rank)).unwrap_or(0)
    }

    /// What a rank sends and receives; local broadcasts by the library come after it.
    pub fn program(&self, me: Rank) -> Program {
        let mut program = Program::new();
        let k = self.group_of(me);
        let group = &self.groups[k];
        let whole = Span::data(0, self.shape.bytes);
        if me != group.ranks[0] {
            self.append_local(&mut program, k, me, &[]);
            return program;
        }
        let jobs = self.solution.as_ref().map_or(&[][..], |s| &s.best.jobs);
        let parent = jobs.iter().find_map(|job| match job {
            Job::Send { from, to } if *to == k => Some(self.groups[*from].ranks[0]),
            _ => None,
        });
        let got: Vec<OpId> = parent.map(|p| program.recv(p, whole, &[])).into_iter().collect();
        let mut local_open = true;
        for job in jobs {
            match *job {
                Job::Send { from, to } if from == k => {
                    program.send(self.groups[to].ranks[0], whole, &got);
                }
                Job::Local(i) if i == k => {
                    self.append_local(&mut program, k, me, &got);
                    local_open = false;
                }
                _ => {}
            }
        }
        if local_open {
            self.append_local(&mut program, k, me, &got);
        }
        program
    }

    fn append_local(&self, program: &mut Program, k: usize, me: Rank, after: &[OpId]) {
        let group = &self.groups[k];
        let Some(build) = group.decision.as_ref().and_then(|d| Some((d.algorithm.builder?, d.parameters))) else { return };
        let position = group.ranks.iter().position(|&r| r == me).unwrap_or(0);
        let shape = Shape { ranks: group.ranks.len(), root: 0, bytes: self.shape.bytes };
        program.append(&(build.0)(position, &shape, &build.1), |p| group.ranks[p], after);
    }

    /// The programs of all ranks.
    pub fn schedule(&self) -> Schedule {
        Schedule::build(self.shape.ranks, |me| self.program(me))
    }
}

/// The poly-model: inside a group the model trusted there, between groups the link's.
pub struct PolyModel<'a> {
    /// The policy.
    pub policy: &'a CompiledPolicy,
    /// Each rank's place.
    pub members: &'a [Member],
    /// The model trusted in each of the policy's groups.
    pub models: Vec<&'a dyn CostModel>,
}

impl<'a> PolyModel<'a> {
    /// The poly-model of a plan. Groups in which nothing is decided get any model they have.
    pub fn new(policy: &'a CompiledPolicy, members: &'a [Member], plan: &Plan) -> PolyModel<'a> {
        let trusted = |g: usize| plan.groups.iter().find(|p| p.group == g).and_then(|p| p.decision.as_ref()).map(|d| d.model.clone());
        let first = |g: usize| policy.policy.groups[g].models.first().map(|m| m.model.clone());
        let costs = |g: usize| trusted(g).or_else(|| first(g)).and_then(|m| policy.group_costs(g, &m)).unwrap_or(&FREE);
        PolyModel { policy, members, models: (0..policy.policy.groups.len()).map(costs).collect() }
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
