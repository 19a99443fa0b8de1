//! What broadcasts over groups are predicted to take: each is predicted once, however often it is asked about.

use super::Location;
use super::across::predict_within;
use crate::error::Result;
use crate::policy::CompiledPolicy;
use crate::two_level::TwoLevel;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// Predictions for the members of one communicator.
pub struct Predictions<'a> {
    pub(super) policy: &'a CompiledPolicy,
    pub(super) members: &'a [Location],
    found: RefCell<FxHashMap<TwoLevel, Found>>,
}

/// What is known of one, in seconds.
#[derive(Clone, Copy)]
enum Found {
    Takes(f64),
    /// It was cut off there.
    TakesLongerThan(f64),
}

impl<'a> Predictions<'a> {
    /// None yet.
    pub fn new(policy: &'a CompiledPolicy, members: &'a [Location]) -> Predictions<'a> {
        Predictions { policy, members, found: RefCell::default() }
    }

    /// As [`predict_within`]: what takes longer than `limit_s` takes for ever.
    ///
    /// # Errors
    /// As there.
    pub fn within(&self, two_level: &TwoLevel, limit_s: f64) -> Result<f64> {
        let known = self.found.borrow().get(two_level).copied();
        let found = match known {
            Some(found @ Found::Takes(_)) => found,
            Some(found @ Found::TakesLongerThan(least)) if limit_s <= least => found,
            _ => {
                let seconds = predict_within(self.policy, self.members, two_level, limit_s)?;
                let found = if seconds <= limit_s { Found::Takes(seconds) } else { Found::TakesLongerThan(limit_s) };
                self.found.borrow_mut().insert(two_level.clone(), found);
                found
            }
        };
        Ok(match found {
            Found::Takes(seconds) if seconds <= limit_s => seconds,
            _ => f64::INFINITY,
        })
    }
}
