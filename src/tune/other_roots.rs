//! The library's own broadcast from another root than the one that choices are made from.
//!
//! Its trees turn with the root: from rank 0 of sites whose ranks are neighbours a binomial tree may cross the wide area once, and from the rank beside it twice, one
//! after the other. Ours are made for each root. So where the library's own is preferred by little, it must not lose as much elsewhere.

use super::chosen::{IN_A_ROW, Verdict, choosing, verdict};
use crate::decide::NATIVE_MARGIN;
use crate::error::Result;
use crate::library::Library;
use crate::measure::{Experiment, Session};

/// Ours and the library's own.
pub(super) type Pair = (Experiment, Experiment);

/// Of broadcasts from the first rank, each with the same from another one, those in which ours is to be taken though runs from the first rank alone prefer the library's
/// own: in the sum of both roots it is clearly faster, calls in a row from the first one speak against it by a few percent at most, and neither they nor runs from the
/// other root do there.
///
/// # Errors
/// The session's.
pub(super) fn better_elsewhere(session: &mut Session, pairs: &[(Pair, Pair)]) -> Result<Vec<bool>> {
    let is_refused = |v: &Verdict| v.is_refused && !v.is_hardly_refused;
    let is_doubted = |session: &Session, (own, native): &Pair| {
        let by_little = |v: &Verdict| v.native_s.is_some_and(|native_s| v.own_s <= native_s * (1.0 + NATIVE_MARGIN));
        verdict(session.samples(), session.settings(), own, native).is_some_and(|v| v.native && !is_refused(&v) && by_little(&v))
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
    open.retain(|(first, other)| found(first).is_some_and(|v| !is_refused(&v)) && found(other).is_some_and(|v| !v.native));
    Ok(pairs.iter().map(|pair| open.iter().any(|open| std::ptr::eq(*open, pair))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Probe, Runs, Settings};

    /// A round trip takes a microsecond for each byte out, and for each byte back as long in a row.
    struct Told;

    impl Probe for Told {
        fn settings(&self) -> Settings {
            let (text, hosts, placement) = (String::new, vec!["a".into(), "b".into()], vec!["0".into(); 2]);
            let library = "Open MPI v4.1.4".into();
            Settings { format: 1, platform: text(), hosts, library, timer: text(), date: text(), build: text(), placement }
        }

        fn run(&mut self, batches: &[Vec<Experiment>], repetitions: usize) -> Result<Vec<Runs>> {
            let runs = |e: &Experiment| Runs { seconds: vec![bytes(e).0 * 1e-6; repetitions], clock_error_s: 0.0 };
            Ok(batches.iter().flatten().map(runs).collect())
        }

        fn in_a_row(&mut self, batches: &[Vec<Experiment>], _: usize) -> Result<Vec<Runs>> {
            Ok(batches.iter().flatten().map(|e| Runs { seconds: vec![bytes(e).1 * 1e-6], clock_error_s: 0.0 }).collect())
        }

        fn has_native(&self) -> bool {
            true
        }

        fn elapsed(&self) -> f64 {
            0.0
        }
    }

    fn bytes(experiment: &Experiment) -> (f64, f64) {
        match *experiment {
            Experiment::RoundTrip { out, back, .. } => (out as f64, back as f64),
            _ => panic!("{experiment} is no round trip"),
        }
    }

    #[test]
    fn ours_is_taken_where_the_librarys_own_loses_more_elsewhere_than_it_wins() {
        let found = |[own, native, own_there, native_there]: [(usize, usize); 4]| {
            let of = |(out, back)| Experiment::RoundTrip { a: 0, b: 1, out, back };
            let pair = ((of(own), of(native)), (of(own_there), of(native_there)));
            let (mut probe, first) = (Told, pair.0.clone());
            let mut session = Session::new(&mut probe);
            session.measure("first", &[first.0, first.1]).unwrap();
            better_elsewhere(&mut session, &[pair]).unwrap()[0]
        };
        let (alike, twice) = ([(8900, 500), (9000, 501)], [(9000, 502), (18000, 900)]);
        assert!(found([alike[0], alike[1], twice[0], twice[1]]));
        assert!(found([(8900, 520), alike[1], twice[0], twice[1]]), "ours is hardly slower in a row");
        assert!(!found([alike[0], alike[1], (9000, 502), (9100, 503)]), "it is as good there");
        assert!(!found([(8900, 500), (6000, 501), twice[0], twice[1]]), "it is far better from the first");
        assert!(!found([(8900, 500), (10000, 501), twice[0], twice[1]]), "ours is taken anyhow");
        assert!(!found([(8900, 800), (9000, 501), twice[0], twice[1]]), "ours is slower in a row");
        assert!(!found([alike[0], alike[1], (9000, 2000), (12000, 900)]), "or there, where that is short enough to be run in a row");
    }
}
