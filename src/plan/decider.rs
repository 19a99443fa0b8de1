//! What is decided for one communicator: once for each class of sizes and roots, whoever asks.

use super::Location;
use super::common::InsideGroups;
use super::decided::{Class, Decided, Plan, decide};
use crate::collective::{Collective, Shape};
use crate::error::Result;
use crate::policy::CompiledPolicy;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

/// Decides what the members of one communicator do, and keeps it.
pub struct Decider<'a> {
    policy: &'a CompiledPolicy,
    members: Cow<'a, [Location]>,
    known: Mutex<FxHashMap<Class, Arc<Decided>>>,
    inside: Arc<InsideGroups>,
}

impl<'a> Decider<'a> {
    /// Nothing is decided yet.
    pub fn new(policy: &'a CompiledPolicy, members: impl Into<Cow<'a, [Location]>>) -> Decider<'a> {
        Decider { policy, members: members.into(), known: Mutex::default(), inside: Arc::default() }
    }

    /// The members.
    pub fn members(&self) -> &[Location] {
        &self.members
    }

    /// Plans a collective, as [`super::plan`].
    ///
    /// # Errors
    /// As there.
    pub fn plan(&self, collective: &'static Collective, shape: &Shape) -> Result<Plan> {
        let (policy, members) = (self.policy, self.members());
        collective.check_memory(members.len(), shape.bytes)?;
        let class = Class::of(policy, members, collective, shape)?;
        let plan = match &*self.decided(class)? {
            Decided::Form(plan) => plan.for_shape(policy, members, &class, shape)?,
            Decided::Routes(choice) => {
                let plan = Plan { next: choice.next.clone(), ..choice.plan(policy, members, shape.root)?.into() };
                plan.for_shape(policy, members, &class, shape)?
            }
        };
        plan.timed(policy, members, &class, shape)
    }

    /// What is decided for a class. Who asks while another one decides it does so too.
    fn decided(&self, class: Class) -> Result<Arc<Decided>> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(decided) = known().get(&class) {
            return Ok(Arc::clone(decided));
        }
        let decided = Arc::new(decide(self.policy, self.members(), &class, &self.inside)?);
        known().insert(class, Arc::clone(&decided));
        Ok(decided)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{COLLECTIVES, bcast};
    use crate::plan::{everybody, plan};
    use crate::policy::Policy;
    use crate::predict::EVENTS;
    use std::path::Path;

    fn without_the_first(policy: &str) -> (CompiledPolicy, Vec<Location>) {
        let policy = CompiledPolicy::new(Policy::read(Path::new(policy)).unwrap()).unwrap();
        let members = everybody(&policy.policy).into_iter().skip(1).collect();
        (policy, members)
    }

    /// A plan, and the events that it took.
    fn counted(plan: impl FnOnce() -> Result<Plan>) -> (Plan, u64) {
        let before = EVENTS.get();
        let plan = plan().unwrap();
        (plan, EVENTS.get() - before)
    }

    /// What is known from other sizes and roots makes no difference to what is planned.
    #[test]
    fn what_was_decided_before_makes_no_difference() {
        let (policy, members) = without_the_first("policies/hcl16.toml");
        let decider = Decider::new(&policy, &members[..]);
        for collective in COLLECTIVES.iter().copied().filter(|c| c.tuned) {
            let roots = if collective.rooted { vec![0, 7, members.len() - 1] } else { vec![0] };
            for (root, bytes) in
                roots.into_iter().flat_map(|root| collective.sizes(&[1, 8 << 10, 1 << 20]).into_iter().map(move |b| (root, b)))
            {
                let shape = collective.shape(members.len(), root, bytes);
                let anew = plan(&policy, &members, collective, &shape).unwrap();
                for known in [0, 1].map(|_| decider.plan(collective, &shape).unwrap()) {
                    assert_eq!((&known.form, known.predicted_s, &known.next), (&anew.form, anew.predicted_s, &anew.next), "{shape:?}");
                }
            }
        }
    }

    /// Nor does what trees take inside groups, which is charged with its events: from roots in several groups, of sizes that no row is for.
    #[test]
    fn what_trees_took_inside_groups_makes_no_difference() {
        let (policy, members) = without_the_first("policies/ccgrid2007.toml");
        let roots = [0, 20, 41, members.len() - 1];
        let mut shapes =
            [5000, 92_000, 3 << 20].map(|bytes| roots.map(|root| bcast::COLLECTIVE.shape(members.len(), root, bytes))).concat();
        let anew: Vec<(Plan, u64)> = shapes.iter().map(|shape| counted(|| plan(&policy, &members, &bcast::COLLECTIVE, shape))).collect();
        let mut known_of_more = 0;
        let mut expected: Vec<&(Plan, u64)> = anew.iter().collect();
        for _ in 0..2 {
            let decider = Decider::new(&policy, &members[..]);
            for (shape, (anew, events)) in shapes.iter().zip(&expected) {
                let trees = decider.inside.len();
                let (known, took) = counted(|| decider.plan(&bcast::COLLECTIVE, shape));
                assert_eq!((&known.form, known.predicted_s, &known.next), (&anew.form, anew.predicted_s, &anew.next), "{shape:?}");
                assert!(took == *events || took < *events && decider.inside.len() == trees, "{took} events for {events}: {shape:?}");
                known_of_more += usize::from(took == *events && trees > 0);
            }
            shapes.reverse();
            expected.reverse();
        }
        assert!(known_of_more > 0, "some decision used what another one knew");
    }
}
