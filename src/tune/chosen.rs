//! Which of some ways that were measured is taken, and what it takes: found by runs that did not choose it.

use crate::decide::beats_native;
use crate::error::Result;
use crate::measure::{DRIFTED, Experiment, Samples, Session};
use crate::stats;

/// What a way took in the runs that choose: where some of a field were remeasured in turns only those say which is the fastest, and only by these
/// runs.
pub(super) fn choosing(samples: &Samples, experiment: &Experiment) -> Option<f64> {
    let sample = samples.get(experiment)?;
    stats::median(if sample.remeasured.is_empty() { &sample.seconds } else { &sample.remeasured })
}

/// True if a way was remeasured in turns with its rivals.
pub(super) fn is_remeasured(samples: &Samples, experiment: &Experiment) -> bool {
    samples.get(experiment).is_some_and(|sample| !sample.remeasured.is_empty())
}

/// The place of the fastest of some ways.
pub(super) fn fastest(samples: &Samples, ways: &[Experiment]) -> Option<usize> {
    let some = ways.iter().any(|e| is_remeasured(samples, e));
    let known = ways.iter().enumerate().filter(|(_, e)| !some || is_remeasured(samples, e));
    known.filter_map(|(k, e)| Some((k, choosing(samples, e)?))).min_by(|a, b| a.1.total_cmp(&b.1)).map(|(k, _)| k)
}

/// Runs what was chosen again, each with the library's own, if there is one that is not far slower or faster.
pub(super) fn confirm(session: &mut Session, chosen: Vec<(Experiment, Experiment)>) -> Result<()> {
    let field = |(own, native): (Experiment, Experiment)| {
        let times = choosing(session.samples(), &own).zip(choosing(session.samples(), &native));
        let in_doubt = times.is_some_and(|(own, native)| own.max(native) <= DRIFTED * own.min(native));
        if in_doubt { vec![own, native] } else { vec![own] }
    };
    let fields: Vec<Vec<Experiment>> = chosen.into_iter().map(field).collect();
    session.confirm("what was chosen, confirmed", &fields)
}

/// What was found of a way that was chosen, and of the library's own beside it.
pub(super) struct Verdict {
    pub own_s: f64,
    pub native_s: Option<f64>,
    /// The library's own is taken.
    pub native: bool,
}

/// By the runs that [confirmed](confirm) the choice, where there are some.
pub(super) fn verdict(samples: &Samples, own: &Experiment, native: &Experiment) -> Option<Verdict> {
    let confirmed = |e: &Experiment| samples.get(e).map_or(&[][..], |sample| &sample.confirmed);
    let time = |e: &Experiment| stats::median(confirmed(e)).or_else(|| choosing(samples, e));
    let (own_s, native_s) = (time(own)?, time(native));
    // adaptive must never be a loss: what is not clearly faster stays with the library
    let clearly = stats::is_less(confirmed(own), confirmed(native));
    Some(Verdict { own_s, native_s, native: native_s.is_some_and(|native| !beats_native(own_s, native, clearly)) })
}
