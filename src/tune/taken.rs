//! Which of the schedules over all groups that were measured at a size is taken: a fast one that keeps no rank for long, so that the next call can begin soon.

use super::across::{Candidate, experiment};
use super::chosen::{as_fast, choosing, fastest};
use crate::decide::{ALIKE, NATIVE_MARGIN};
use crate::error::Result;
use crate::library::Library;
use crate::measure::{Experiment, Session};
use crate::plan::{self, Location};
use crate::policy::CompiledPolicy;

/// A rank that is kept for so many times as long is kept for far less: a root that sends to all 23 others at four sites by itself wins up to three percent
/// alone where messages are short, and loses ten in a row.
const FAR_LESS: f64 = 0.5;

/// The place of the fastest candidate; of those that runs do not tell from it the one whose busiest rank has the least to do. Where programs' calls overlap, as they
/// do over MPI, one whose busiest rank has [far less](FAR_LESS) to do may take a few percent longer alone. `None` where nothing was measured.
///
/// # Errors
/// An algorithm that there is not.
pub(super) fn taken(session: &Session, policy: &CompiledPolicy, members: &[Location], candidates: &[Candidate]) -> Result<Option<usize>> {
    let samples = session.samples();
    let experiments: Vec<Experiment> = candidates.iter().map(experiment).collect();
    let Some(fastest) = fastest(samples, &experiments) else { return Ok(None) };
    let busy_s = |k: usize| plan::busiest(policy, members, &candidates[k].two_level);
    let as_fast = as_fast(samples, &experiments, fastest);
    let taken = least_busy(fastest, &as_fast, 1.0 - ALIKE, busy_s)?;
    if !session.has_native() || !Library::of(&session.settings().library).lets_calls_overlap() {
        return Ok(Some(taken));
    }
    let time = |k: usize| choosing(samples, &experiments[k]);
    let limit_s = time(fastest).unwrap_or(0.0) * (1.0 + NATIVE_MARGIN);
    let near: Vec<usize> = (0..candidates.len()).filter(|&k| time(k).is_some_and(|time_s| time_s <= limit_s)).collect();
    least_busy(taken, &near, FAR_LESS, busy_s).map(Some)
}

/// Of some that busy their busiest rank for so long, the one that does so the least, if that is less than so many times what the one does that is taken.
fn least_busy(taken: usize, others: &[usize], by: f64, busy_s: impl Fn(usize) -> Result<f64>) -> Result<usize> {
    if others.iter().all(|&k| k == taken) {
        return Ok(taken);
    }
    let limit_s = busy_s(taken)? * by;
    let (mut least, mut least_s) = (taken, f64::INFINITY);
    for &k in others {
        let busy_s = busy_s(k)?;
        if busy_s < limit_s && busy_s < least_s * (1.0 - ALIKE) {
            (least, least_s) = (k, busy_s);
        }
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_busy_is_taken_if_it_is_by_enough() {
        let found = |others: &[usize], by: f64| least_busy(0, others, by, |k| Ok([10.0, 9.95, 6.0, 4.0, 3.99][k])).unwrap();
        assert_eq!((found(&[0], 0.99), found(&[], 0.99)), (0, 0));
        assert_eq!(found(&[0, 1], 0.99), 0, "within a percent");
        assert_eq!((found(&[0, 1, 2], 0.99), found(&[2, 0, 1], 0.99)), (2, 2));
        assert_eq!((found(&[0, 1, 2], 0.5), found(&[0, 2, 3, 4], 0.5)), (0, 3), "the first one of those that are alike");
    }
}
