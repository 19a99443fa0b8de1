//! What all ranks that the policy knows do, from the first one as root, for sizes that several sections show.

use super::choices::tuned;
use crate::collective::Collective;
use crate::error::Result;
use crate::plan::{Decider, Location, MANY_RANKS, Plan, everybody};
use crate::policy::CompiledPolicy;
use crate::predict::EVENTS;
use crate::topology::Rank;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// The sizes of decision maps, and of the slider.
const SIZES: [usize; 6] = [1, 1 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20];
/// The same among [`MANY_RANKS`]: there each decision and each schedule takes longer.
const FEW_SIZES: [usize; 4] = [1, 8 << 10, 256 << 10, 4 << 20];

/// Plans, each made once.
pub(super) struct Plans<'a> {
    pub compiled: &'a CompiledPolicy,
    /// The sizes that are shown, of what has one.
    pub sizes: &'static [usize],
    decider: Decider<'a>,
    from_first: BTreeMap<(&'static Collective, usize), Plan>,
}

impl Plans<'_> {
    /// Of the collectives that the policy has rows for.
    ///
    /// # Errors
    /// As [`Decider::plan`].
    pub fn new(compiled: &CompiledPolicy) -> Result<Plans<'_>> {
        let members = everybody(&compiled.policy);
        let sizes: &'static [usize] = if members.len() >= MANY_RANKS { &FEW_SIZES } else { &SIZES };
        let decider = Decider::new(compiled, members);
        // sizes of one class one after the other: what is decided for the first one is there for the others
        let of = |c: &'static Collective| {
            let class = |bytes: &usize| compiled.size_class(c, *bytes);
            let all = c.sizes(sizes);
            all.chunk_by(|a, b| class(a) == class(b)).map(|alike| (c, alike.to_vec())).collect::<Vec<_>>()
        };
        let all: Vec<(&'static Collective, Vec<usize>)> = tuned(&compiled.policy).flat_map(of).collect();
        let planned = |(c, sizes): (&'static Collective, Vec<usize>)| {
            let of_size = |bytes: usize| Ok(((c, bytes), decider.plan(c, &c.shape(decider.members().len(), 0, bytes))?));
            sizes.into_iter().map(of_size).collect::<Result<Vec<_>>>()
        };
        // the first one's error, whoever comes to one first
        let planned = all.into_par_iter().map(planned).collect::<Vec<Result<Vec<_>>>>();
        let from_first = planned.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        Ok(Plans { compiled, sizes, decider, from_first })
    }

    /// All ranks.
    pub fn members(&self) -> &[Location] {
        self.decider.members()
    }

    /// What all ranks do.
    ///
    /// # Errors
    /// As [`Decider::plan`].
    pub fn of_all(&self, collective: &'static Collective, root: Rank, bytes: usize) -> Result<Plan> {
        match self.from_first.get(&(collective, bytes)).filter(|_| root == 0) {
            Some(known) => Ok(known.clone()),
            None => self.decider.plan(collective, &collective.shape(self.members().len(), root, bytes)),
        }
    }
}

/// Things that took this many events or fewer for their last size are decided together for their next one: that is nothing.
const NOTHING: u64 = 1 << 10;

/// Decides for things at sizes, in the order of these: always next those that took the fewest events at the size before, as long as what these took is left of
/// so many; what is not decided is `None`. Work is counted, not timed: the same is decided on every machine, on however many processors.
///
/// # Errors
/// Those of deciding.
pub(super) fn as_far_as<T: Sync, R: Send>(
    things: &[(T, Vec<usize>)],
    events: u64,
    decide: impl Fn(&T, usize) -> Result<R> + Sync,
) -> Result<Vec<Vec<Option<R>>>> {
    let mut found: Vec<Vec<Option<R>>> = things.iter().map(|_| Vec::new()).collect();
    let (mut took, mut left) = (vec![0; things.len()], events);
    loop {
        let mut open: Vec<usize> = (0..things.len()).filter(|&k| found[k].len() < things[k].1.len()).collect();
        open.sort_by_key(|&k| took[k]);
        let about_as_much = open.first().map_or(0, |&k| NOTHING.max(2 * took[k]));
        let (mut wave, mut sum) = (open, 0);
        wave.retain(|&k| {
            sum += took[k];
            took[k] <= about_as_much && sum < left
        });
        if wave.is_empty() {
            break;
        }
        let next: Vec<(&T, usize)> = wave.iter().map(|&k| (&things[k].0, things[k].1[found[k].len()])).collect();
        let decided = next.into_par_iter().map(|(thing, size)| {
            let before = EVENTS.get();
            Ok((decide(thing, size)?, EVENTS.get() - before))
        });
        for (k, (one, own)) in wave.into_iter().zip(decided.collect::<Result<Vec<(R, u64)>>>()?) {
            found[k].push(Some(one));
            (took[k], left) = (own, left.saturating_sub(own));
        }
    }
    for (own, (_, sizes)) in found.iter_mut().zip(things) {
        own.resize_with(sizes.len(), || None);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Costs are known only once they were paid, and the cheapest go on as long as there is something left.
    #[test]
    fn what_costs_least_is_decided_first() {
        let pay = |each: u64| EVENTS.set(EVENTS.get() + each);
        let things = [(10_000, vec![1, 2, 3]), (3_000, vec![1, 2, 3]), (100, vec![1, 2, 3])];
        let decided = |events: u64| {
            let all = as_far_as(&things, events, |&each, size| {
                pay(each * size as u64);
                Ok(size)
            });
            all.unwrap().into_iter().map(|own| own.into_iter().flatten().count()).collect::<Vec<_>>()
        };
        assert_eq!(decided(u64::MAX), [3, 3, 3]);
        assert_eq!(decided(20_000), [1, 2, 3]);
        assert_eq!(decided(40_000), [2, 3, 3]);
        assert_eq!(decided(0), [0, 0, 0]);
        let failed = as_far_as(&things, 1, |_, _| Err::<(), _>(crate::error::Error::invalid("none".to_string())));
        assert!(failed.is_err());
    }
}
