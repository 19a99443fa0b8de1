//! What was found out for predictions of one group, for those of others: schedules that are the same, and which were the fastest.

use super::{Algorithm, Parameters, Shape};
use crate::error::{Error, Result};
use crate::schedule::Schedule;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Messages of all the schedules that are kept, at most: 4 to 15 MB. To build one takes half as long as to replay it.
const MOST_KEPT: usize = 1 << 16;

/// What a schedule is built from.
type Key = (*const Algorithm, Shape, Parameters);

/// An algorithm with its parameters.
pub type With = (&'static Algorithm, Parameters);

/// Schedules over groups: those of groups of as many ranks are the same, whatever their networks.
#[derive(Default)]
pub struct Built {
    schedules: RefCell<FxHashMap<Key, Rc<Schedule>>>,
    messages: Cell<usize>,
    /// What was found in groups where all candidates were compared, if others are to be spared that.
    compared: Option<RefCell<Vec<Compared>>>,
}

/// What was found where all candidates were compared.
struct Compared {
    group: Alike,
    /// The fastest, in that order.
    fastest: Vec<With>,
}

/// What tells whether candidates are as good in one group as in another one.
#[derive(Debug, Clone, Copy)]
pub struct Alike {
    /// How many ranks.
    pub ranks: usize,
    /// The size of the message.
    pub bytes: usize,
    /// Seconds that messages of no bytes and of this size are under way, and keep a port.
    pub seconds: [f64; 4],
}

/// So many of the fastest of one group are compared in those like it.
const MOST_ALIKE: usize = 8;
/// Groups are alike whose messages take no more than so many times as long in one as in the other.
const AS_FAST: f64 = 1.25;

impl Alike {
    /// True if what is fastest in one group is among the fastest in the other one: of about as many ranks, powers of two being their own kind.
    fn is_like(&self, other: &Alike) -> bool {
        let (few, many) = (self.ranks.min(other.ranks), self.ranks.max(other.ranks));
        let as_fast = |(a, b): (&f64, &f64)| a.max(*b) <= AS_FAST * a.min(*b);
        let same_kind = self.bytes == other.bytes && self.ranks.is_power_of_two() == other.ranks.is_power_of_two();
        same_kind && many <= 2 * few && self.seconds.iter().zip(&other.seconds).all(as_fast)
    }
}

impl Built {
    /// For many ranks, where all of them wait for what is decided: in groups that are alike only what was fast in the first one is compared.
    pub fn for_many_ranks() -> Built {
        Built { compared: Some(RefCell::default()), ..Built::default() }
    }

    /// The fastest of a group that is like this one; none if there is no such group where all candidates were compared.
    pub fn fastest_like(&self, group: &Alike) -> Vec<With> {
        let Some(compared) = &self.compared else { return Vec::new() };
        compared.borrow().iter().find(|known| known.group.is_like(group)).map_or(Vec::new(), |known| known.fastest.clone())
    }

    /// Keeps what was found where all candidates were compared.
    pub fn keep_fastest(&self, group: Alike, fastest: impl Iterator<Item = With>) {
        if let Some(compared) = &self.compared {
            compared.borrow_mut().push(Compared { group, fastest: fastest.take(MOST_ALIKE).collect() });
        }
    }

    /// [`Algorithm::bounded_schedule`].
    ///
    /// # Errors
    /// As there.
    pub fn schedule(&self, algorithm: &'static Algorithm, shape: &Shape, parameters: &Parameters) -> Result<Option<Rc<Schedule>>> {
        let key = (std::ptr::from_ref(algorithm), *shape, *parameters);
        if let Some(known) = self.schedules.borrow().get(&key) {
            return Ok(Some(Rc::clone(known)));
        }
        let Some(schedule) = algorithm.bounded_schedule(shape, parameters)?.map(Rc::new) else { return Ok(None) };
        let messages = schedule.messages();
        if messages <= MOST_KEPT {
            let mut kept = self.schedules.borrow_mut();
            if self.messages.get() + messages > MOST_KEPT {
                // what is asked for again is mostly so soon: under one model after the other
                kept.clear();
                self.messages.set(0);
            }
            self.messages.set(self.messages.get() + messages);
            kept.insert(key, Rc::clone(&schedule));
        }
        Ok(Some(schedule))
    }

    /// The same, to be predicted.
    ///
    /// # Errors
    /// As there, and of an algorithm whose messages are not known.
    pub fn to_predict(&self, algorithm: &'static Algorithm, shape: &Shape, parameters: &Parameters) -> Result<Rc<Schedule>> {
        let schedule = self.schedule(algorithm, shape, parameters)?;
        schedule.ok_or_else(|| Error::invalid(format!("predict {}: its messages are not known", algorithm.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::bcast;

    #[test]
    fn what_was_built_is_kept_as_long_as_there_is_room() {
        let built = Built::default();
        let of = |ranks: usize, segment: usize| {
            let algorithm = bcast::COLLECTIVE.algorithm("segmented_chain").unwrap();
            built.schedule(algorithm, &Shape::new(ranks, 0, 1 << 20), &Parameters::of(segment, 0)).unwrap().unwrap()
        };
        let first = of(8, 1 << 10);
        assert_eq!(first.messages(), 7 << 10);
        assert!(Rc::ptr_eq(&first, &of(8, 1 << 10)));
        assert!(!Rc::ptr_eq(&first, &of(8, 2 << 10)) && !Rc::ptr_eq(&first, &of(7, 1 << 10)));
        let large = of(66, 1 << 10);
        assert_eq!(large, of(66, 1 << 10));
        assert!(!Rc::ptr_eq(&large, &of(66, 1 << 10)), "{} messages are too many to keep", large.messages());
        assert!(Rc::ptr_eq(&first, &of(8, 1 << 10)));
        // as many as there is room for take the room of all others
        let all = of(65, 1 << 10);
        assert!(Rc::ptr_eq(&all, &of(65, 1 << 10)) && all.messages() == MOST_KEPT);
        let again = of(8, 1 << 10);
        assert!(!Rc::ptr_eq(&first, &again) && first == again && built.messages.get() == again.messages());
    }

    #[test]
    fn among_many_ranks_groups_alike_compare_what_was_fast_in_the_first() {
        let group = |ranks: usize, seconds: f64| Alike { ranks, bytes: 8, seconds: [seconds; 4] };
        let fastest: Vec<With> = bcast::COLLECTIVE.built().map(|algorithm| (algorithm, Parameters::default())).collect();
        let (built, few) = (Built::for_many_ranks(), Built::default());
        for built in [&built, &few] {
            built.keep_fastest(group(20, 1e-4), fastest.iter().copied());
        }
        let known = built.fastest_like(&group(40, 1.2e-4));
        assert_eq!(known, fastest[..MOST_ALIKE]);
        assert!(few.fastest_like(&group(20, 1e-4)).is_empty());
        // of a faster network, of far more ranks, and a power of two
        for other in [group(20, 7e-5), group(41, 1e-4), group(32, 1e-4)] {
            assert!(built.fastest_like(&other).is_empty(), "{other:?}");
        }
    }
}
