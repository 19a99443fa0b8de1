//! Plans of one communicator as they are asked for: decided once for each root and class of sizes, then only cut to size.

use super::{Choice, Location, Plan, PredictedForms, by_form, stand_in};
use crate::collective::{Collective, Shape, Step};
use crate::error::{Error, Result};
use crate::policy::CompiledPolicy;
use crate::topology::Rank;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// What programs may take in memory, together: some hundred different broadcasts of thousands of segments.
const MOST_BYTES: usize = 16 << 20;
/// Plans of classes are kept as long as they name so many ranks together (about 8 MB): a dozen classes from every root of 200 ranks.
const MOST_RANKS: usize = 1 << 19;

/// What was decided is kept for so many classes and groups of the root: all that twenty groups meet. Beyond, all is decided anew as it is met.
const MOST_CHOICES: usize = 1 << 10;

/// What one rank does for one size and root.
#[derive(Debug)]
pub enum Planned {
    /// Everybody calls the library's own broadcast.
    Native,
    /// What this rank does instead.
    Run(Vec<Step>),
}

/// What messages can be.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of one.
    pub bytes: usize,
    /// Lanes that are told apart.
    pub lanes: usize,
}

/// What was asked for.
type Asked = (Shape, &'static Collective);

/// Plans for one rank of a communicator.
pub struct Planner {
    policy: Arc<CompiledPolicy>,
    members: Vec<Location>,
    me: Rank,
    limits: Limits,
    /// What was decided, by class of sizes, whether the size is above all that were measured, and who stands in for the root.
    choices: FxHashMap<(usize, bool, usize), Choice>,
    /// Who sends to whom, by that and the root.
    plans: FxHashMap<(usize, bool, Rank), Plan>,
    /// Those that are kept, the oldest first.
    decided: VecDeque<(usize, bool, Rank)>,
    /// What was predicted of collectives that have forms.
    forms: PredictedForms,
    planned: FxHashMap<Asked, Arc<Planned>>,
    /// What was planned, the oldest first.
    order: VecDeque<Asked>,
    /// What the programs of `planned` take.
    bytes: usize,
}

impl Planner {
    /// A planner for rank `me` of a communicator with these members.
    pub fn new(policy: Arc<CompiledPolicy>, members: Vec<Location>, me: Rank, limits: Limits) -> Planner {
        let (choices, plans, decided, forms, planned, order) = Default::default();
        Planner { policy, members, me, limits, choices, plans, decided, forms, planned, order, bytes: 0 }
    }

    /// The members.
    pub fn members(&self) -> &[Location] {
        &self.members
    }

    /// What this rank does. Every rank of the communicator comes to the same plan.
    ///
    /// # Errors
    /// As [`super::plan`] and [`super::plan_form`], the first time; after that it is the library's own.
    pub fn planned(&mut self, collective: &'static Collective, shape: &Shape) -> Result<Arc<Planned>> {
        let asked = (*shape, collective);
        if let Some(planned) = self.planned.get(&asked) {
            return Ok(Arc::clone(planned));
        }
        let planned = if by_form(collective) { self.form(collective, shape) } else { self.broadcast(shape) };
        // what cannot be planned is the library's own from then on
        let (planned, failed) = planned.map_or_else(|e| (Planned::Native, Err(e)), |planned| (planned, Ok(())));
        let planned = Arc::new(planned);
        self.keep(asked, &planned);
        failed.map(|()| planned)
    }

    /// What this rank does in a broadcast.
    fn broadcast(&mut self, shape: &Shape) -> Result<Planned> {
        let plan = self.plan(shape.bytes, shape.root)?.for_bytes(shape.bytes);
        let possible = plan.largest_message() <= self.limits.bytes && plan.two_level.lanes() <= self.limits.lanes;
        Ok(if plan.is_native() || !possible { Planned::Native } else { Planned::Run(plan.two_level.steps(self.me)?) })
    }

    /// What this rank does in a collective that has forms.
    fn form(&mut self, collective: &'static Collective, shape: &Shape) -> Result<Planned> {
        let form = self.forms.form(&self.policy, &self.members, collective, shape)?;
        let possible = form.largest_message(shape) <= self.limits.bytes && form.lanes() <= self.limits.lanes;
        let native = form.is_native() || !possible;
        Ok(if native { Planned::Native } else { Planned::Run(vec![Step::Program(form.program(self.me, shape)?)]) })
    }

    /// The plan for the class of a size.
    fn plan(&mut self, bytes: usize, root: Rank) -> Result<&Plan> {
        let (class, above) = (self.policy.size_class(bytes), bytes > self.policy.largest_measured());
        let key = (class, above, root);
        if self.plans.contains_key(&key) {
            return Ok(&self.plans[&key]);
        }
        if root >= self.members.len() {
            return Err(Error::invalid(format!("plan a broadcast from rank {root} of {} ranks", self.members.len())));
        }
        let stand_in = stand_in(&self.policy, &self.members, root);
        if self.choices.len() >= MOST_CHOICES && !self.choices.contains_key(&(class, above, stand_in)) {
            self.choices.clear();
        }
        let choice = match self.choices.entry((class, above, stand_in)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Choice::new(&self.policy, &self.members, stand_in, bytes)?),
        };
        if self.decided.len() >= (MOST_RANKS / self.members.len()).max(16)
            && let Some(oldest) = self.decided.pop_front()
        {
            self.plans.remove(&oldest);
        }
        let plan = choice.plan(&self.policy, &self.members, root)?;
        self.decided.push_back(key);
        Ok(self.plans.entry(key).or_insert(plan))
    }

    /// Keeps a plan, and lets the oldest ones go where all together are too large.
    fn keep(&mut self, key: Asked, planned: &Arc<Planned>) {
        self.bytes += planned.memory();
        self.planned.insert(key, Arc::clone(planned));
        self.order.push_back(key);
        while self.bytes > MOST_BYTES
            && self.order.len() > 1
            && let Some(oldest) = self.order.pop_front()
        {
            self.bytes -= self.planned.remove(&oldest).map_or(0, |p| p.memory());
        }
    }

    /// Bytes that the programs kept take.
    pub fn memory(&self) -> usize {
        self.bytes
    }
}

impl Planned {
    /// Bytes in memory.
    fn memory(&self) -> usize {
        // with its place in the maps
        let steps = if let Planned::Run(steps) = self { steps.iter().map(Step::memory).sum() } else { 0 };
        size_of::<Planned>() + 2 * size_of::<Asked>() + steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{COLLECTIVES, bcast};
    use crate::plan::plan;
    use crate::policy::Policy;
    use std::path::Path;

    /// All hosts of the CCGrid platform but one.
    fn planner(me: Rank) -> Planner {
        let policy = Arc::new(CompiledPolicy::new(Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap()).unwrap());
        let of = |(group, g): (usize, &crate::policy::GroupPolicy)| (0..g.hosts.len()).map(move |position| Location { group, position });
        let members: Vec<Location> = policy.policy.groups.iter().enumerate().flat_map(of).take(77).collect();
        Planner::new(policy, members, me, Limits { bytes: i32::MAX as usize, lanes: 65_535 })
    }

    #[test]
    fn what_runs_is_what_plan_says() {
        for me in [0, 13, 40, 76] {
            let mut planner = planner(me);
            for (bytes, root) in [(1, 0), (5000, 40), (92_000, 3), (70_000, 3), (3 << 20, 0), (1 << 20, 76), (100 << 20, 0)] {
                let said = plan(&planner.policy, &planner.members, root, bytes).unwrap();
                match &*planner.planned(&bcast::COLLECTIVE, &Shape::new(77, root, bytes)).unwrap() {
                    Planned::Native => assert!(said.is_native()),
                    Planned::Run(steps) => assert_eq!(steps[0], Step::Program(said.program(me).unwrap()), "{bytes} from {root} at {me}"),
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_planned_is_an_error_once_and_then_the_librarys_own() {
        let mut policy = Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap();
        // as no file that is read can say
        policy.groups[0].models.clear();
        policy.groups[0].choices.clear();
        let members = (0..5).map(|position| Location { group: 0, position }).collect();
        let policy = Arc::new(CompiledPolicy::new(policy).unwrap());
        let mut planner = Planner::new(policy, members, 0, Limits { bytes: i32::MAX as usize, lanes: 1 });
        // what was not tuned is the library's own anyway
        for collective in COLLECTIVES.into_iter().filter(|c| !by_form(c) || !c.sized()) {
            let shape = collective.shape(5, 0, if collective.sized() { 1000 } else { 0 });
            let said = planner.planned(collective, &shape).unwrap_err().to_string();
            assert!(said.contains("no model of that group"), "{said}");
            assert!(matches!(*planner.planned(collective, &shape).unwrap(), Planned::Native));
        }
    }

    #[test]
    fn thousands_of_sizes_are_decided_once_for_each_class_and_kept_in_few_megabytes() {
        let mut planner = planner(13);
        for k in 0..4000 {
            planner.planned(&bcast::COLLECTIVE, &Shape::new(77, 0, (5 << 19) + k * 64)).unwrap();
            assert!(planner.memory() <= MOST_BYTES);
        }
        assert_eq!(planner.choices.len(), 1);
        assert!(planner.planned.len() > 50 && planner.planned.len() == planner.order.len());
        // the last ones are still there, the first ones went
        let last = (5 << 19) + 3999 * 64;
        let known = |bytes| planner.planned.contains_key(&(Shape::new(77, 0, bytes), &bcast::COLLECTIVE));
        assert!(known(last) && !known(5 << 19));
    }

    #[test]
    fn the_oldest_decision_goes_where_there_are_too_many_and_no_other() {
        let mut planner = planner(13);
        let most = MOST_RANKS / planner.members.len();
        // as if so many had been decided, of roots that there are not
        planner.decided.extend((0..most - 1).map(|k| (0, false, 1000 + k)));
        planner.planned(&bcast::COLLECTIVE, &Shape::new(77, 1, 5000)).unwrap();
        let (class, first) = (planner.policy.size_class(5000), planner.plans.len());
        planner.planned(&bcast::COLLECTIVE, &Shape::new(77, 2, 5000)).unwrap();
        assert_eq!((planner.decided.len(), planner.decided[0], planner.plans.len()), (most, (0, false, 1001), first + 1));
        assert!(planner.plans.contains_key(&(class, false, 1)));
    }

    #[test]
    fn above_what_was_measured_the_librarys_own_runs_unless_ours_is_predicted_to_win() {
        let policy = planner(0).policy;
        let largest = policy.largest_measured();
        let one_host = |group: usize, ranks: usize| -> Vec<Location> { (0..ranks).map(|position| Location { group, position }).collect() };
        // one message from one rank to another is what any library sends
        let two = plan(&policy, &one_host(0, 2), 0, largest + 1).unwrap();
        assert!(two.is_native() && two.beyond.is_some(), "{:?}", two.beyond);
        assert!(plan(&policy, &one_host(0, 2), 0, largest).unwrap().beyond.is_none());
        let everybody: Vec<Location> =
            (0..policy.policy.groups.len()).flat_map(|g| one_host(g, policy.policy.groups[g].hosts.len())).collect();
        let all = plan(&policy, &everybody, 0, 4 * largest).unwrap();
        let beyond = all.beyond.unwrap();
        assert!(!all.is_native() && beyond.native_s > 1.5 * beyond.own_s, "{beyond:?}");
        assert!((3.0..4.1).contains(&(all.predicted_s / beyond.own_s)), "{} of {beyond:?}", all.predicted_s);
    }
}
