//! A broadcast over groups: a way between them along which the message passes in segments or as a whole, and what is done inside them.

use super::across::{self, Flow, TwoLevelParameters, predict, segment_of, two_level};
use super::beyond::{self, Beyond};
use super::common::Common;
use super::{Location, NextBest, Predictions, TwoLevelChoice, about_whole, adapted, group_ranks, placement, untuned};
use crate::collective::{Built, Shape};
use crate::decide::placed;
use crate::error::{Error, Result};
use crate::intercluster::{Problem, Solution, solve, timeline};
use crate::model::Among;
use crate::policy::{CompiledPolicy, Decision, TwoLevelRow, bounded};
use crate::predict::replay;
use crate::topology::Rank;
use crate::two_level::{InterGroup, InterGroupAlgorithm, IntraGroup, ROUTED, TwoLevel};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The part of a group that is in the communicator; its ranks are the two_level's.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedGroup {
    /// The policy's group.
    pub group: usize,
    /// What it does when the whole message is there; `None` for one rank, and where segments pass through.
    pub decision: Option<Decision>,
}

/// A broadcast as it is planned: a way between groups, and what is done inside them.
#[derive(Debug, Clone, PartialEq)]
pub struct Routed {
    /// What is done.
    pub shape: Shape,
    /// The groups that take part, the root's first; those that hear a message in several places are there in parts.
    pub groups: Vec<PlannedGroup>,
    /// Who sends what to whom.
    pub two_level: TwoLevel,
    /// How segments pass through the groups, if they do, as it was decided for a class of sizes.
    pub decided: Option<TwoLevelParameters>,
    /// Where the whole message goes from group to group: the problem between them and its solution.
    pub schedule_between: Option<(Problem, Solution)>,
    /// True if a row that was made with such ranks and such a root says how the message crosses groups; else that was chosen by prediction.
    pub from_row: bool,
    /// The time it should take.
    pub predicted_s: f64,
    /// The library's own broadcast over everybody takes this and is better.
    pub native_s: Option<f64>,
    /// What is known of messages larger than any that were measured, if this is one.
    pub beyond: Option<Beyond>,
    /// The policy has no row of broadcasts for such ranks: nobody knows that the library's own is slower.
    pub untuned: bool,
}

/// What is decided for a class of sizes, for all roots that have one [`super::stand_in`].
#[derive(Debug, Clone)]
pub(super) struct Choice {
    /// The size that stands for the class.
    bytes: usize,
    /// How the message crosses groups; `None` if it goes as a whole and each group does what is best for it, or there is one group.
    over_groups: TwoLevelChoice,
    /// By the policy's group: what is best for it, and how long that keeps its coordinator from sending.
    inside: FxHashMap<usize, Inside>,
    beyond: Option<Beyond>,
    /// The next best, where it was chosen by prediction.
    pub(super) next: Option<NextBest>,
}

/// What a group of several ranks does with a whole message, and how long that keeps its coordinator from sending.
pub(super) type Inside = (Decision, f64);

impl Choice {
    /// Decides for a root and the size that stands for a class, for sizes above all that were measured or not.
    ///
    /// # Errors
    /// [`crate::error::Error::Invalid`] if a link between two groups is not in the policy.
    pub(super) fn new(common: Common, root: Rank, at: usize, above: bool) -> Result<Choice> {
        let (policy, members) = (common.policy, common.members);
        let predictions = Rc::new(Predictions::of(common));
        let (over_groups, next) = match crossing_row(policy, members, at) {
            Some(row) if !as_tuned(policy, members, root) => adapted::choice(&predictions, root, at, row)?,
            Some(row) => (choice_of(row)?, None),
            None => (None, None),
        };
        let mut choice = Choice { bytes: at, over_groups, inside: FxHashMap::default(), beyond: None, next };
        if over_groups.is_none() {
            for (group, ranks) in group_ranks(members, root) {
                choice.inside.extend(predictions.inside(group, &ranks, at)?.map(|found| (group, found)));
            }
        }
        if above {
            choice.beyond = Some(beyond::weigh(policy, members, &choice.plan(policy, members, root)?)?);
        }
        Ok(choice)
    }

    /// The plan from a root, for the size that stands for the class.
    ///
    /// # Errors
    /// As [`Choice::new`].
    pub(super) fn plan(&self, policy: &CompiledPolicy, members: &[Location], root: Rank) -> Result<Routed> {
        let row = crossing_row(policy, members, self.bytes);
        let mut plan = match self.over_groups {
            Some(choice) => pipelined(policy, members, root, self.bytes, choice)?,
            None => put_together(policy, members, root, self.bytes, |group, _| Ok(self.inside.get(&group).cloned()))?,
        };
        let as_measured = policy.is_as_measured(ROUTED, members.len(), &placement(members));
        plan.from_row = row.is_some() && as_tuned(policy, members, root);
        plan.native_s = row.and_then(|row| row.evidence.native_s.filter(|_| as_measured && row.native));
        plan.beyond = self.beyond;
        plan.untuned = untuned(policy, members, ROUTED);
        Ok(plan)
    }
}

/// The row that says how messages cross groups, if there are several.
fn crossing_row<'a>(policy: &'a CompiledPolicy, members: &[Location], bytes: usize) -> Option<&'a TwoLevelRow> {
    policy.two_level(ROUTED, bytes).filter(|_| members.iter().any(|m| m.group != members[0].group))
}

/// The schedule that a row says; `None` if each group does what its own row says.
pub(super) fn choice_of(row: &TwoLevelRow) -> Result<TwoLevelChoice> {
    let named = row.intra_group.as_ref().filter(|_| !row.is_per_group());
    named.map(|name| TwoLevelParameters::of(row, ROUTED.algorithm(name)?)).transpose()
}

/// True if all groups are there, about as large as those that were tuned, and the root is as it was then.
fn as_tuned(policy: &CompiledPolicy, members: &[Location], root: Rank) -> bool {
    let Location { group, position } = members[root];
    // rank 0 was the root, and the first group is its
    group == 0 && (position == 0 || !policy.has_unlike_processors(0)) && about_whole(policy, members)
}

/// Segments pass through the groups in a schedule.
fn pipelined(policy: &CompiledPolicy, members: &[Location], root: Rank, bytes: usize, choice: TwoLevelParameters) -> Result<Routed> {
    let two_level = two_level(policy, members, root, bytes, choice)?;
    let planned = |ranks: &Vec<Rank>| PlannedGroup { group: members[ranks[0]].group, decision: None };
    Ok(Routed {
        shape: Shape::new(members.len(), root, bytes),
        groups: two_level.groups.iter().map(planned).collect(),
        from_row: false,
        predicted_s: of_rows(policy, bytes)?,
        native_s: None,
        beyond: None,
        untuned: false,
        two_level,
        decided: Some(choice),
        schedule_between: None,
    })
}

/// What rows say of a size.
fn of_rows(policy: &CompiledPolicy, bytes: usize) -> Result<f64> {
    policy
        .two_level_seconds(ROUTED, bytes)
        .ok_or_else(|| Error::invalid(format!("time a {} over groups: no row says what it takes", ROUTED.name)))
}

/// The plan by which the whole message goes from group to group, and each group does what is best for it when it has it.
///
/// # Errors
/// As [`super::plan`].
pub fn whole(policy: &CompiledPolicy, members: &[Location], root: Rank, bytes: usize) -> Result<Routed> {
    Predictions::new(policy, members).whole(root, bytes)
}

pub(super) fn put_together(
    policy: &CompiledPolicy,
    members: &[Location],
    root: Rank,
    bytes: usize,
    inside: impl Fn(usize, &[Rank]) -> Result<Option<Inside>>,
) -> Result<Routed> {
    let mut groups = group_ranks(members, root);
    let (mut planned, mut intra_group, mut local_busy) = (Vec::new(), Vec::new(), Vec::new());
    for (group, ranks) in &mut groups {
        let (decision, busy) = inside(*group, ranks)?.map_or((None, 0.0), |(d, busy)| (Some(d), busy));
        if let Some(decision) = &decision {
            *ranks = placed(ranks, &decision.places);
        }
        intra_group.push(decision.as_ref().map_or(0.0, |d| d.predicted_s));
        local_busy.push(busy);
        planned.push(PlannedGroup { group: *group, decision });
    }
    let ranks: Vec<Vec<Rank>> = groups.into_iter().map(|(_, ranks)| ranks).collect();
    let coordinators: Vec<Location> = ranks.iter().map(|ranks| members[ranks[0]]).collect();
    let predicted_inside = intra_group[0];
    let schedule_between = if ranks.len() > 1 {
        let problem = across::problem(policy, &coordinators, bytes, intra_group, local_busy)?;
        let solution = solve(&problem);
        Some((problem, solution))
    } else {
        None
    };
    let decided = |g: &PlannedGroup| {
        // one rank has nobody to send to
        let alone = IntraGroup::of(ROUTED.fallback);
        g.decision.as_ref().map_or(alone, |d| IntraGroup { algorithm: d.algorithm, parameters: d.parameters })
    };
    let jobs = schedule_between.as_ref().map_or(Vec::new(), |(_, s)| s.best.jobs.clone());
    let intra_group = planned.iter().map(decided).collect();
    Ok(Routed {
        shape: Shape::new(members.len(), root, bytes),
        two_level: TwoLevel {
            bytes,
            groups: ranks,
            hosts: Vec::new(),
            inter_group: InterGroup::Tree(jobs),
            segment: 0,
            in_flight: 0,
            near: Vec::new(),
            peers: 0,
            intra_group,
        },
        groups: planned,
        decided: None,
        from_row: false,
        predicted_s: schedule_between.as_ref().map_or(predicted_inside, |(_, s)| s.best.completion),
        schedule_between,
        native_s: None,
        untuned: false,
        beyond: None,
    })
}

/// How long an intra-group broadcast over positions in their places keeps its coordinator from sending.
pub(super) fn busy(
    policy: &CompiledPolicy,
    group: usize,
    positions: &[usize],
    decision: &Decision,
    bytes: usize,
    built: &Built,
) -> Result<f64> {
    let shape = Shape::new(positions.len(), 0, bytes);
    let schedule = match built.schedule(decision.algorithm, &shape, &decision.parameters) {
        Err(Error::TooLarge(_)) => None,
        built => built?,
    };
    // of what cannot be replayed: at most as long as it takes
    let (Some(schedule), Some(inner)) = (schedule, policy.group_costs(group, &decision.model)) else {
        return Ok(decision.predicted_s);
    };
    let found = replay(&schedule, &Among { inner, positions: positions.to_vec() })?;
    // what corrects the whole corrects its part
    Ok(found.port_free[0] * decision.predicted_s / found.completion().max(f64::MIN_POSITIVE))
}

impl Routed {
    /// True if everybody should call the library's own broadcast.
    pub fn is_native(&self) -> bool {
        let beyond = self.beyond.as_ref().is_some_and(Beyond::is_native);
        let native = self.untuned || self.native_s.is_some();
        native || beyond || (self.groups.len() == 1 && self.two_level.local_native(0))
    }

    /// What a call takes, as far as is known: the library's own, where that is used.
    pub fn seconds(&self) -> Option<f64> {
        Some(self.native_s.unwrap_or(self.predicted_s)).filter(|_| !self.untuned)
    }

    /// The schedule that segments take over groups, if they do; a segment is the whole message where that is shorter.
    pub fn choice(&self) -> Option<TwoLevelParameters> {
        let (choice, h) = (self.decided?, &self.two_level);
        let (segment, in_flight) = match (choice.inter_group, &h.intra_group[0].parameters) {
            (InterGroupAlgorithm::OverAll, p) => (p.segment, p.in_flight),
            _ => (h.segment, h.in_flight),
        };
        Some(TwoLevelParameters { segment, flow: Flow { in_flight, ..choice.flow }, ..choice })
    }

    /// What is done, in a line.
    pub fn words(&self) -> String {
        let inside = self.groups[0].decision.as_ref().filter(|_| self.groups.len() == 1);
        match (self.choice(), inside) {
            (Some(choice), _) => TwoLevelParameters { flow: Flow::default(), ..choice }.words(self.shape.bytes),
            (None, Some(d)) => d.algorithm.words(&d.parameters),
            (None, None) => "the whole message from group to group, inside each as it is best there".into(),
        }
    }

    /// The same plan for a message of another size. Times stay those of this size.
    pub(super) fn for_bytes(&self, bytes: usize) -> Routed {
        let mut plan = self.clone();
        (plan.shape.bytes, plan.two_level.bytes) = (bytes, bytes);
        match plan.decided {
            Some(TwoLevelParameters { inter_group: InterGroupAlgorithm::OverAll, .. }) => {
                let parameters = &mut plan.two_level.intra_group[0].parameters;
                *parameters = bounded(*parameters, bytes);
            }
            Some(choice) => plan.two_level.segment = segment_of(choice.segment, bytes),
            None => {}
        }
        for (g, intra_group) in plan.groups.iter_mut().zip(&mut plan.two_level.intra_group) {
            if let Some(d) = &mut g.decision {
                d.parameters = bounded(d.parameters, bytes);
                intra_group.parameters = d.parameters;
            }
        }
        plan
    }

    /// The same with the times of its size, which may be another one than that which stands for the class. `stands`: it is that one, from the root whose times
    /// are known.
    ///
    /// # Errors
    /// [`crate::error::Error::Invalid`] if a link between two groups is not in the policy.
    pub(super) fn timed(mut self, policy: &CompiledPolicy, members: &[Location], stands: bool) -> Result<Routed> {
        let bytes = self.shape.bytes;
        if self.decided.is_none() {
            if !stands {
                self.time_whole(policy, members)?;
            }
        } else if self.from_row {
            self.predicted_s = of_rows(policy, bytes)?;
        } else {
            self.predicted_s = predict(policy, members, &self.two_level)?;
        }
        if let Some(beyond) = &self.beyond {
            self.native_s = beyond.is_native().then(|| beyond.native_at(bytes));
        }
        Ok(self)
    }

    /// Sets the times of a plan by which the whole message goes from group to group.
    fn time_whole(&mut self, policy: &CompiledPolicy, members: &[Location]) -> Result<()> {
        let bytes = self.shape.bytes;
        let (mut intra_group, mut local_busy, built) = (Vec::new(), Vec::new(), Built::default());
        for (g, ranks) in self.groups.iter_mut().zip(&self.two_level.groups) {
            let positions: Vec<usize> = ranks.iter().map(|&r| members[r].position).collect();
            let Some(d) = &mut g.decision else {
                intra_group.push(0.0);
                local_busy.push(0.0);
                continue;
            };
            d.predicted_s = policy.decided_seconds(g.group, &positions, d, bytes)?;
            intra_group.push(d.predicted_s);
            local_busy.push(busy(policy, g.group, &positions, d, bytes, &built)?);
        }
        self.predicted_s = intra_group[0];
        if let Some((problem, solution)) = &mut self.schedule_between {
            let coordinators: Vec<Location> = self.two_level.groups.iter().map(|ranks| members[ranks[0]]).collect();
            *problem = across::problem(policy, &coordinators, bytes, intra_group, local_busy)?;
            solution.best = timeline(problem, std::mem::take(&mut solution.best.jobs));
            self.predicted_s = solution.best.completion;
        }
        Ok(())
    }

    /// The largest message that any rank might send in it.
    pub(super) fn largest_message(&self) -> usize {
        let piece = |segment: usize| if segment == 0 { self.shape.bytes } else { segment.min(self.shape.bytes) };
        let inside = || {
            let IntraGroup { algorithm, parameters } = &self.two_level.intra_group[0];
            piece(parameters.segment).max(if algorithm.exchanges_halves { self.shape.bytes.div_ceil(2) } else { 0 })
        };
        match self.decided.map(|choice| choice.inter_group) {
            Some(InterGroupAlgorithm::OverAll) => inside(),
            Some(_) => piece(self.two_level.segment),
            None if self.groups.len() > 1 => self.shape.bytes,
            None => inside(),
        }
    }
}
