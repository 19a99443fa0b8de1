//! The library's own broadcast from another root than the one that choices are made from.
//!
//! Its trees turn with the root: from rank 0 of sites whose ranks are neighbours a binomial tree may cross the wide area once, and from the rank beside it twice, one
//! after the other. Ours are made for each root. So where the library's own is preferred by little, it must not lose as much elsewhere.

use super::chosen::{IN_A_ROW, choosing, verdict};
use crate::decide::NATIVE_MARGIN;
use crate::error::Result;
use crate::library::Library;
use crate::measure::{Experiment, Session};

/// Ours and the library's own.
pub(super) type Pair = (Experiment, Experiment);

/// Of broadcasts from the first rank, each with the same from another one, those in which ours is to be taken though runs from the first rank alone prefer the library's
/// own: in the sum of both roots it is clearly faster, and neither calls in a row nor runs from the other root speak against it.
///
/// # Errors
/// The session's.
pub(super) fn better_elsewhere(session: &mut Session, pairs: &[(Pair, Pair)]) -> Result<Vec<bool>> {
    let is_doubted = |session: &Session, (own, native): &Pair| {
        verdict(session.samples(), session.settings(), own, native).is_some_and(|v| v.native && !v.is_refused && v.native_s.is_some())
    };
    let mut open: Vec<&(Pair, Pair)> = pairs.iter().filter(|(first, _)| is_doubted(session, first)).collect();
    let known = |session: &Session, (own, native): &Pair| [own, native].iter().all(|e| session.samples().get(e).is_some());
    // an older recording has none of these
    open.retain(|(_, other)| session.can_measure() || known(session, other));
    let field = |(own, native): &Pair| vec![own.clone(), native.clone()];
    session.race("what the library's own takes from another root", &open.iter().map(|(_, other)| field(other)).collect::<Vec<_>>())?;
    open.retain(|(first, other)| {
        let sum = |of: fn(&Pair) -> &Experiment| Some(choosing(session.samples(), of(first))? + choosing(session.samples(), of(other))?);
        let (own_s, native_s) = (sum(|pair| &pair.0), sum(|pair| &pair.1));
        own_s.zip(native_s).is_some_and(|(own_s, native_s)| own_s * (1.0 + NATIVE_MARGIN) <= native_s)
    });
    if Library::of(&session.settings().library).lets_calls_overlap() {
        session.in_a_row(IN_A_ROW, open.iter().flat_map(|(first, other)| [field(first), field(other)]).collect())?;
    }
    let found = |(own, native): &Pair| verdict(session.samples(), session.settings(), own, native);
    open.retain(|(first, other)| found(first).is_some_and(|v| !v.is_refused) && found(other).is_some_and(|v| !v.native));
    Ok(pairs.iter().map(|pair| open.iter().any(|open| std::ptr::eq(*open, pair))).collect())
}
