//! A plan: what crosses between groups and what happens inside them, put together for one communicator, root and size.

mod across;
mod adapted;
mod beyond;
mod candidates;
mod farthest_first;
mod fastest;
mod form_flow;
mod form_plan;
mod form_words;
mod forms;
mod leaps;
mod members;
mod oldest;
mod planner;
mod poly_model;
mod predictions;
mod segments;
mod weight;

use crate::collective::{Built, Collective, Shape, bcast};
use crate::decide::placed;
use crate::error::{Error, Result};
use crate::intercluster::{Problem, Solution, solve, timeline};
use crate::model::Among;
use crate::policy::{CompiledPolicy, Decision, TwoLevelRow, bounded};
use crate::predict::replay;
use crate::schedule::{Program, Schedule};
use crate::topology::Rank;
use crate::two_level::{InterGroup, InterGroupAlgorithm, IntraGroup, TwoLevel};
use rustc_hash::FxHashMap;
use std::rc::Rc;

use across::segment_of;
pub use across::{Flow, TwoLevelParameters, busiest, predict, seconds, two_level, two_level_parameters, unlike_processors};
pub use beyond::Beyond;
pub use candidates::{TwoLevelCandidate, TwoLevelCandidates, TwoLevelChoice, choice_name};
pub use form_plan::{FormPlan, plan_form};
pub use forms::{Form, by_form, forms};
pub use leaps::leaps_of;
pub use members::{Location, group_ranks, members, placement};
pub use planner::{Planned, Planner};
pub use poly_model::PolyModel;
pub use predictions::Predictions;
pub use segments::in_all_segments;

/// The part of a group that is in the communicator; its ranks are the two_level's.
#[derive(Debug, Clone)]
pub struct PlannedGroup {
    /// The policy's group.
    pub group: usize,
    /// What it does when the whole message is there; `None` for one rank, and where segments pass through.
    pub decision: Option<Decision>,
}

/// What is done where nothing of ours is better, in words.
pub const OWN: &str = "the MPI library's own";

/// The bytes of one message, at most: MPI counts them by an `int`. What might have a longer one is the library's own.
pub const LONGEST_MESSAGE: usize = i32::MAX as usize;

/// A plan.
#[derive(Debug, Clone)]
pub struct Plan {
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

/// Plans a broadcast. The same input gives the same plan on every rank.
///
/// Algorithms are decided at one size of a class ([`CompiledPolicy::size_class`]), for all sizes of it and all roots, and who sends to whom
/// for all sizes of it, so that a new size costs no new decision ([`Planner`]); times are those of the size asked for.
///
/// # Errors
/// [`Error::Invalid`] if the root is outside, or a link between two groups is not in the policy.
pub fn plan(policy: &CompiledPolicy, members: &[Location], root: Rank, bytes: usize) -> Result<Plan> {
    let mut plan = decided(policy, members, root, bytes)?.for_bytes(bytes);
    if plan.decided.is_none() {
        plan.time_whole(policy, members)?;
    } else if plan.from_row {
        plan.predicted_s = policy.two_level_seconds(&bcast::COLLECTIVE, bytes);
    } else {
        plan.predicted_s = predict(policy, members, &plan.two_level)?;
    }
    if let Some(beyond) = &plan.beyond {
        plan.native_s = beyond.native_at(bytes);
    }
    Ok(plan)
}

/// The plan at the size that stands for the class of `bytes`.
fn decided(policy: &CompiledPolicy, members: &[Location], root: Rank, bytes: usize) -> Result<Plan> {
    Choice::new(policy, members, stand_in(policy, members, &bcast::COLLECTIVE, root)?, bytes)?.plan(policy, members, root)
}

/// The rank for which it is decided what is done from a root: the first of its group, all of which are alike, or the root itself where the
/// processors differ. Whatever is planned begins here.
///
/// # Errors
/// [`Error::Invalid`] if the root is outside.
fn stand_in(policy: &CompiledPolicy, members: &[Location], collective: &Collective, root: Rank) -> Result<Rank> {
    let outside = || Error::invalid(format!("plan {} from rank {root} of {} ranks", collective.one(), members.len()));
    let group = members.get(root).ok_or_else(outside)?.group;
    let first = || members.iter().position(|m| m.group == group).unwrap_or(root);
    Ok(if policy.has_unlike_processors(group) { root } else { first() })
}

/// What is decided for a class of sizes, for all roots that have one [`stand_in`].
#[derive(Debug, Clone)]
struct Choice {
    /// The size that stands for the class.
    bytes: usize,
    /// How the message crosses groups; `None` if it goes as a whole and each group does what is best for it, or there is one group.
    over_groups: TwoLevelChoice,
    /// By the policy's group: what is best for it, and how long that keeps its coordinator from sending.
    inside: FxHashMap<usize, Inside>,
    beyond: Option<Beyond>,
}

/// What a group of several ranks does with a whole message, and how long that keeps its coordinator from sending.
type Inside = (Decision, f64);

impl Choice {
    /// Decides for a root.
    fn new(policy: &CompiledPolicy, members: &[Location], root: Rank, bytes: usize) -> Result<Choice> {
        let at = policy.size_class(&bcast::COLLECTIVE, bytes);
        let predictions = Rc::new(Predictions::new(policy, members));
        let over_groups = match crossing_row(policy, members, at) {
            Some(row) if !as_tuned(policy, members, root) => adapted::choice(&predictions, root, at, row)?,
            Some(row) => choice_of(row)?,
            None => None,
        };
        let mut choice = Choice { bytes: at, over_groups, inside: FxHashMap::default(), beyond: None };
        if over_groups.is_none() {
            for (group, ranks) in group_ranks(members, root) {
                choice.inside.extend(predictions.inside(group, &ranks, at)?.map(|found| (group, found)));
            }
        }
        if bytes > policy.largest_measured(&bcast::COLLECTIVE) {
            choice.beyond = Some(beyond::weigh(policy, members, &choice.plan(policy, members, root)?)?);
        }
        Ok(choice)
    }

    /// The plan from a root.
    fn plan(&self, policy: &CompiledPolicy, members: &[Location], root: Rank) -> Result<Plan> {
        let row = crossing_row(policy, members, self.bytes);
        let mut plan = match self.over_groups {
            Some(choice) => pipelined(policy, members, root, self.bytes, choice)?,
            None => put_together(policy, members, root, self.bytes, |group, _| Ok(self.inside.get(&group).cloned()))?,
        };
        let as_measured = policy.is_as_measured(&bcast::COLLECTIVE, members.len(), &placement(members));
        plan.from_row = row.is_some() && as_tuned(policy, members, root);
        plan.native_s = row.and_then(|row| row.evidence.native_s.filter(|_| as_measured && row.native));
        plan.beyond = self.beyond;
        plan.untuned = untuned(policy, members, &bcast::COLLECTIVE);
        Ok(plan)
    }
}

/// True if the policy has no row of a collective for such ranks.
fn untuned(policy: &CompiledPolicy, members: &[Location], collective: &'static Collective) -> bool {
    let (group, groups) = (members[0].group, &policy.policy.groups);
    if members.iter().all(|m| m.group == group) {
        return groups[group].rows(collective).is_empty();
    }
    // where no row says how a broadcast crosses groups, each group does what its own rows say
    let inside = || !by_form(collective) && groups.iter().any(|g| !g.rows(collective).is_empty());
    policy.policy.two_level(collective).is_empty() && !inside()
}

/// The row that says how messages cross groups, if there are several.
fn crossing_row<'a>(policy: &'a CompiledPolicy, members: &[Location], bytes: usize) -> Option<&'a TwoLevelRow> {
    policy.two_level(&bcast::COLLECTIVE, bytes).filter(|_| members.iter().any(|m| m.group != members[0].group))
}

/// The schedule that a row says; `None` if each group does what its own row says.
fn choice_of(row: &TwoLevelRow) -> Result<TwoLevelChoice> {
    let named = row.intra_group.as_ref().filter(|_| !row.is_per_group());
    named.map(|name| TwoLevelParameters::of(row, bcast::algorithm(name)?)).transpose()
}

/// True if all groups are there, about as large as those that were tuned, and the root is as it was then.
fn as_tuned(policy: &CompiledPolicy, members: &[Location], root: Rank) -> bool {
    let Location { group, position } = members[root];
    // rank 0 was the root, and the first group is its
    group == 0 && (position == 0 || !policy.has_unlike_processors(0)) && about_whole(policy, members)
}

/// True if all groups are there, about as large as those that were tuned.
fn about_whole(policy: &CompiledPolicy, members: &[Location]) -> bool {
    let size = |group: usize| members.iter().filter(|m| m.group == group).count();
    (0..policy.policy.groups.len()).all(|k| policy.is_about_whole(k, size(k)))
}

/// Segments pass through the groups in a schedule.
fn pipelined(policy: &CompiledPolicy, members: &[Location], root: Rank, bytes: usize, choice: TwoLevelParameters) -> Result<Plan> {
    let two_level = two_level(policy, members, root, bytes, choice)?;
    let planned = |ranks: &Vec<Rank>| PlannedGroup { group: members[ranks[0]].group, decision: None };
    Ok(Plan {
        shape: Shape::new(members.len(), root, bytes),
        groups: two_level.groups.iter().map(planned).collect(),
        from_row: false,
        predicted_s: policy.two_level_seconds(&bcast::COLLECTIVE, bytes),
        native_s: None,
        beyond: None,
        untuned: false,
        two_level,
        decided: Some(choice),
        schedule_between: None,
    })
}

/// The plan by which the whole message goes from group to group, and each group does what is best for it when it has it.
///
/// # Errors
/// As [`plan`].
pub fn whole(policy: &CompiledPolicy, members: &[Location], root: Rank, bytes: usize) -> Result<Plan> {
    Predictions::new(policy, members).whole(root, bytes)
}

fn put_together(
    policy: &CompiledPolicy,
    members: &[Location],
    root: Rank,
    bytes: usize,
    inside: impl Fn(usize, &[Rank]) -> Result<Option<Inside>>,
) -> Result<Plan> {
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
        let alone = IntraGroup::of(bcast::COLLECTIVE.fallback);
        g.decision.as_ref().map_or(alone, |d| IntraGroup { algorithm: d.algorithm, parameters: d.parameters })
    };
    let jobs = schedule_between.as_ref().map_or(Vec::new(), |(_, s)| s.best.jobs.clone());
    let intra_group = planned.iter().map(decided).collect();
    Ok(Plan {
        shape: Shape::new(members.len(), root, bytes),
        two_level: TwoLevel {
            bytes,
            groups: ranks,
            hosts: Vec::new(),
            inter_group: InterGroup::Tree(jobs),
            segment: 0,
            in_flight: 0,
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
fn busy(policy: &CompiledPolicy, group: usize, positions: &[usize], decision: &Decision, bytes: usize, built: &Built) -> Result<f64> {
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

impl Plan {
    /// True if everybody should call the library's own broadcast.
    pub fn is_native(&self) -> bool {
        let beyond = self.beyond.as_ref().is_some_and(Beyond::is_native);
        let native = self.untuned || self.native_s.is_some() || self.is_too_long();
        native || beyond || (self.groups.len() == 1 && self.two_level.local_native(0))
    }

    /// What a call takes, as far as is known: the library's own, where that is used.
    pub fn seconds(&self) -> Option<f64> {
        Some(self.native_s.unwrap_or(self.predicted_s)).filter(|_| !self.untuned)
    }

    /// True if a message of it might be longer than [`LONGEST_MESSAGE`].
    pub fn is_too_long(&self) -> bool {
        self.largest_message() > LONGEST_MESSAGE
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
            _ if self.is_native() => OWN.into(),
            (Some(choice), _) => TwoLevelParameters { flow: Flow::default(), ..choice }.words(self.shape.bytes),
            (None, Some(d)) => d.algorithm.words(&d.parameters),
            (None, None) => "the whole message from group to group, inside each as it is best there".into(),
        }
    }

    /// The same plan for a message of another size. Times stay those of this size.
    fn for_bytes(&self, bytes: usize) -> Plan {
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
    fn largest_message(&self) -> usize {
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

    /// What a rank sends and receives; intra-group broadcasts by the library come after it.
    ///
    /// # Errors
    /// As [`TwoLevel::program`].
    pub fn program(&self, me: Rank) -> Result<Program> {
        self.two_level.program(me)
    }

    /// The programs of all ranks.
    ///
    /// # Errors
    /// As [`TwoLevel::schedule`].
    pub fn schedule(&self) -> Result<Schedule> {
        self.two_level.schedule(self.shape.ranks)
    }
}
