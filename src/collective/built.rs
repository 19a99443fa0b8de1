//! Schedules that were built for a prediction, for others that want the same ones.

use super::{Algorithm, Parameters, Shape};
use crate::error::Result;
use crate::schedule::Schedule;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Messages of all the schedules that are kept, at most: 4 to 15 MB. Those of groups of tens of ranks are far fewer, and to build one takes half as long as to
/// replay it.
const MOST_KEPT: usize = 1 << 16;

/// What a schedule is built from.
type Key = (*const Algorithm, Shape, Parameters);

/// Schedules over groups: those of groups of as many ranks are the same, whatever their networks.
#[derive(Default)]
pub struct Built {
    schedules: RefCell<FxHashMap<Key, Rc<Schedule>>>,
    messages: Cell<usize>,
}

impl Built {
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
        let messages = self.messages.get() + schedule.messages();
        if messages <= MOST_KEPT {
            self.messages.set(messages);
            self.schedules.borrow_mut().insert(key, Rc::clone(&schedule));
        }
        Ok(Some(schedule))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::bcast;

    #[test]
    fn what_was_built_is_built_once_as_long_as_there_is_room() {
        let built = Built::default();
        let of = |ranks: usize, segment: usize| {
            let algorithm = bcast::COLLECTIVE.algorithm("segmented_chain").unwrap();
            built.schedule(algorithm, &Shape::new(ranks, 0, 1 << 20), &Parameters::of(segment, 0)).unwrap().unwrap()
        };
        let first = of(8, 1 << 10);
        assert_eq!(first.messages(), 7 << 10);
        assert!(Rc::ptr_eq(&first, &of(8, 1 << 10)));
        assert!(!Rc::ptr_eq(&first, &of(8, 2 << 10)) && !Rc::ptr_eq(&first, &of(7, 1 << 10)));
        let large = of(65, 1 << 10);
        assert_eq!(large, of(65, 1 << 10));
        assert!(!Rc::ptr_eq(&large, &of(65, 1 << 10)), "{} messages are too many to keep", large.messages());
    }
}
