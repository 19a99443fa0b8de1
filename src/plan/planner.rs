//! Plans of one communicator as they are asked for: decided once for each root and class of sizes, then only cut to size.

use super::Location;
use super::decided::{Class, Decided, Plan, decide};
use super::oldest::Oldest;
use crate::collective::{Collective, Shape, Step};
use crate::error::Result;
use crate::policy::CompiledPolicy;
use crate::topology::Rank;
use std::sync::Arc;

/// What programs may take in memory, together: some hundred different broadcasts of thousands of segments.
const MOST_BYTES: usize = 16 << 20;
/// Plans of classes are kept as long as they name so many ranks together (about 8 MB): a dozen classes from every root of 200 ranks.
const MOST_RANKS: usize = 1 << 19;

/// What is decided of routes, which name no ranks, is as large as that of so many.
const CHOICE: usize = MOST_RANKS >> 10;

/// What one rank does for one size and root.
#[derive(Debug)]
pub enum Planned {
    /// Everybody calls the library's own broadcast.
    Native,
    /// What this rank does instead.
    Run(Vec<Step>),
}

/// What was asked for.
type Asked = (Shape, &'static Collective);

/// Plans for one rank of a communicator.
pub struct Planner {
    policy: Arc<CompiledPolicy>,
    members: Vec<Location>,
    me: Rank,
    /// So many lanes of messages are told apart.
    lanes: usize,
    /// What was decided for a class.
    decided: Oldest<Class, Decided>,
    /// Who sends to whom along routes, by that and the root.
    routed: Oldest<(Class, Rank), Plan>,
    planned: Oldest<Asked, Arc<Planned>>,
}

impl Planner {
    /// A planner for rank `me` of a communicator with these members, where so many lanes of messages are told apart.
    pub fn new(policy: Arc<CompiledPolicy>, members: Vec<Location>, me: Rank, lanes: usize) -> Planner {
        let most = MOST_RANKS.max(16 * members.len());
        let (decided, routed, planned) = (Oldest::new(most), Oldest::new(most), Oldest::new(MOST_BYTES));
        Planner { policy, members, me, lanes, decided, routed, planned }
    }

    /// The members.
    pub fn members(&self) -> &[Location] {
        &self.members
    }

    /// What this rank does. Every rank of the communicator comes to the same plan.
    ///
    /// # Errors
    /// As [`super::plan`], the first time; after that it is the library's own.
    pub fn planned(&mut self, collective: &'static Collective, shape: &Shape) -> Result<Arc<Planned>> {
        let asked = (*shape, collective);
        if let Some(planned) = self.planned.get(&asked) {
            return Ok(Arc::clone(planned));
        }
        let planned = self.plan(collective, shape);
        // what cannot be planned is the library's own from then on
        let (planned, failed) = planned.map_or_else(|e| (Planned::Native, Err(e)), |planned| (planned, Ok(())));
        let planned = Arc::new(planned);
        self.planned.keep(asked, Arc::clone(&planned), planned.memory());
        failed.map(|()| planned)
    }

    fn plan(&mut self, collective: &'static Collective, shape: &Shape) -> Result<Planned> {
        let Planner { policy, members, decided, routed, .. } = self;
        let class = Class::of(policy, members, collective, shape)?;
        let weight = |decided: &Decided| if let Decided::Form(_) = decided { members.len() } else { CHOICE };
        let plan = match decided.get_or_keep(class, weight, || decide(policy, members, &class, &Arc::default()))? {
            Decided::Form(plan) => plan,
            Decided::Routes(choice) => {
                let from_root = || choice.plan(policy, members, shape.root).map(Plan::from);
                routed.get_or_keep((class, shape.root), |_| members.len(), from_root)?
            }
        };
        let plan = plan.for_shape(policy, members, &class, shape)?;
        let native = plan.is_native() || plan.form.lanes() > self.lanes;
        Ok(if native { Planned::Native } else { Planned::Run(plan.form.steps(self.me, shape)?) })
    }

    /// What all ranks do, in a line, and the seconds that it should take, if that is known.
    ///
    /// # Errors
    /// As [`super::plan`].
    pub fn explain(&self, collective: &'static Collective, shape: &Shape) -> Result<(String, Option<f64>)> {
        let plan = super::plan(&self.policy, &self.members, collective, shape)?;
        Ok((plan.words(), plan.predicted_s))
    }

    /// Lets go of all but what was decided: nobody asks at the moment, and if somebody does again, plans and programs follow from it soon.
    pub fn rest(&mut self) {
        self.routed.clear();
        self.planned.clear();
    }

    /// Bytes that the programs kept take.
    pub fn memory(&self) -> usize {
        self.planned.weight()
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
    use crate::two_level::has_routes;
    use std::path::Path;

    /// All hosts of the CCGrid platform but one.
    fn planner(me: Rank) -> Planner {
        let policy = Arc::new(CompiledPolicy::new(Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap()).unwrap());
        let members: Vec<Location> = crate::plan::everybody(&policy.policy).into_iter().take(77).collect();
        Planner::new(policy, members, me, 65_535)
    }

    #[test]
    fn what_runs_is_what_plan_says() {
        for me in [0, 13, 40, 76] {
            let mut planner = planner(me);
            for (bytes, root) in [(0, 40), (1, 0), (5000, 40), (92_000, 3), (70_000, 3), (3 << 20, 0), (1 << 20, 76), (100 << 20, 0)] {
                let shape = Shape::new(77, root, bytes);
                let said = plan(&planner.policy, &planner.members, &bcast::COLLECTIVE, &shape).unwrap();
                match &*planner.planned(&bcast::COLLECTIVE, &shape).unwrap() {
                    Planned::Native => assert!(said.is_native()),
                    Planned::Run(steps) => assert_eq!(*steps, said.form.steps(me, &shape).unwrap(), "{bytes} from {root} at {me}"),
                }
            }
        }
    }

    #[test]
    fn a_root_that_is_not_there_and_messages_that_mpi_does_not_count_are_told_apart() {
        let mut planner = planner(13);
        for collective in COLLECTIVES.iter().copied().filter(|c| c.rooted) {
            let said = planner.planned(collective, &collective.shape(77, 77, 8)).unwrap_err().to_string();
            assert!(said.contains(&format!("plan {} from rank 77 of 77 ranks", collective.one())), "{said}");
        }
        let gather = COLLECTIVES.iter().copied().find(|c| c.name == "gather").unwrap();
        for (bytes, too_long) in [(16 << 20, false), (40 << 20, true)] {
            let shape = gather.shape(77, 0, bytes);
            let said = plan(&planner.policy, &planner.members, gather, &shape).unwrap();
            let native = matches!(*planner.planned(gather, &shape).unwrap(), Planned::Native);
            assert_eq!((said.too_long, said.is_native(), native), (too_long, too_long, too_long), "{bytes}");
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
        let mut planner = Planner::new(policy, members, 0, 1);
        // what was not tuned is the library's own anyway
        for collective in COLLECTIVES.iter().copied().filter(|c| has_routes(c) || !c.sized()) {
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
            planner.planned(&bcast::COLLECTIVE, &Shape::new(77, 0, 3_200_000 + k * 64)).unwrap();
            assert!(planner.memory() <= MOST_BYTES);
        }
        assert_eq!(planner.decided.weight(), CHOICE);
        // the last ones are still there, the first ones went
        let known = |k: usize| planner.planned.get(&(Shape::new(77, 0, 3_200_000 + k * 64), &bcast::COLLECTIVE)).is_some();
        assert!(known(3999) && known(3950) && !known(0));
    }

    #[test]
    fn the_oldest_decision_goes_where_there_are_too_many_and_no_other() {
        let mut planner = planner(13);
        let class = |planner: &Planner, bytes: usize, root: Rank| {
            Class::of(&planner.policy, &planner.members, &bcast::COLLECTIVE, &Shape::new(77, root, bytes)).unwrap()
        };
        let ask = |planner: &mut Planner, bytes| drop(planner.planned(&bcast::COLLECTIVE, &Shape::new(77, 1, bytes)).unwrap());
        let classes = [5000, 92_000].map(|bytes| class(&planner, bytes, 1));
        // as if so many had been decided, and planned, from roots that there are not
        let elsewhere = |k: usize| Class { shape: Shape { root: 1000 + k, ..classes[0].shape }, ..classes[0] };
        let decided = |planner: &Planner| decide(&planner.policy, &planner.members, &classes[0], &Arc::default()).unwrap();
        let Decided::Routes(choice) = decided(&planner) else { panic!("a broadcast goes along routes") };
        let plan = Plan::from(choice.plan(&planner.policy, &planner.members, 1).unwrap());
        let (most_decided, most_routed) = (MOST_RANKS / CHOICE, MOST_RANKS / planner.members.len());
        for k in 1..most_decided {
            let decided = decided(&planner);
            planner.decided.keep(elsewhere(k), decided, CHOICE);
        }
        (1..most_routed).for_each(|k| planner.routed.keep((elsewhere(k), 1), plan.clone(), 77));
        let gone = |planner: &Planner| {
            let decided = (1..most_decided).filter(|&k| planner.decided.get(&elsewhere(k)).is_none()).count();
            [decided, (1..most_routed).filter(|&k| planner.routed.get(&(elsewhere(k), 1)).is_none()).count()]
        };
        ask(&mut planner, 5000);
        assert_eq!(gone(&planner), [0, 0]);
        ask(&mut planner, 92_000);
        assert_eq!(gone(&planner), [1, 1]);
        for class in classes {
            assert!(planner.decided.get(&class).is_some() && planner.routed.get(&(class, 1)).is_some());
        }
    }

    #[test]
    fn a_planner_that_nobody_asks_keeps_what_was_decided_and_comes_to_the_same_plans() {
        let mut planner = planner(13);
        let shapes: Vec<Shape> = (0..30).map(|k| Shape::new(77, 0, 1000 * k + 1)).collect();
        let all = |planner: &mut Planner| -> Vec<String> {
            shapes.iter().map(|shape| format!("{:?}", planner.planned(&bcast::COLLECTIVE, shape).unwrap())).collect()
        };
        let before = all(&mut planner);
        let decided = planner.decided.weight();
        planner.rest();
        assert_eq!((planner.decided.weight(), planner.routed.weight(), planner.memory()), (decided, 0, 0));
        assert_eq!(all(&mut planner), before);
        assert_eq!(planner.decided.weight(), decided);
    }

    #[test]
    fn above_what_was_measured_the_librarys_own_runs_unless_ours_is_predicted_to_win() {
        let policy = planner(0).policy;
        let largest = policy.largest_measured(&bcast::COLLECTIVE);
        let one_host = |group: usize, ranks: usize| -> Vec<Location> { (0..ranks).map(|position| Location { group, position }).collect() };
        let planned = |members: &[Location], bytes: usize| {
            let plan = plan(&policy, members, &bcast::COLLECTIVE, &Shape::new(members.len(), 0, bytes)).unwrap();
            (plan.is_native(), plan.routed().unwrap().clone())
        };
        // one message from one rank to another is what any library sends
        let (is_native, two) = planned(&one_host(0, 2), largest + 1);
        assert!(is_native && two.beyond.is_some(), "{:?}", two.beyond);
        assert!(planned(&one_host(0, 2), largest).1.beyond.is_none());
        let everybody: Vec<Location> =
            (0..policy.policy.groups.len()).flat_map(|g| one_host(g, policy.policy.groups[g].hosts.len())).collect();
        let (is_native, all) = planned(&everybody, 4 * largest);
        let beyond = all.beyond.unwrap();
        assert!(!is_native && beyond.native_s > 1.5 * beyond.own_s, "{beyond:?}");
        assert!((3.0..4.1).contains(&(all.predicted_s / beyond.own_s)), "{} of {beyond:?}", all.predicted_s);
    }
}
