//! Rows for all sizes: what was taken where choices were made, and between these sizes what is predicted to be the best of what was taken near.

use super::between::{Close, ProtocolChange, best_from};
use super::{ALIKE, halfway, is_native_between, is_within_a_call, nearest};
use crate::error::Result;
use crate::stats;

/// What was taken at so many sizes on each side may be the best between them.
const REACH: usize = 2;

/// A choice that was made at one size.
pub struct Made<K> {
    /// The size.
    pub bytes: usize,
    /// What was taken; `None`: the library's own.
    pub taken: Option<K>,
    /// What was measured: with its time as predicted, and as measured. Where nothing was, what is taken is one more to be compared by predictions.
    pub measured: Vec<(K, f64, f64)>,
    /// What the library's own took, if it was measured.
    pub native_s: Option<f64>,
}

/// What is taken from a size up to the next row's.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<K> {
    /// It holds from this size on.
    pub from: usize,
    /// The size that it was made at: one where a choice was made, else, where it holds for none of them, one in its middle.
    pub at: usize,
    /// What is taken; `None`: the library's own.
    pub taken: Option<K>,
    /// What it takes there, as predicted from what was measured near.
    pub seconds: f64,
}

/// Rows from choices that were made at some sizes, in ascending order. `changes`: where the network changes. Where one row ends and the next begins is found
/// as closely as `close` says. `predict`: what one
/// takes at a size, as models say, or for ever if it takes longer than some seconds; it is corrected by what was measured of it, or at sizes
/// where it was not, of one that is `alike`.
///
/// # Errors
/// Those of `predict`.
pub fn rows<K: PartialEq + Clone>(
    made: &[Made<K>],
    changes: &[ProtocolChange],
    close: Close,
    mut predict: impl FnMut(&K, usize, f64) -> Result<f64>,
    alike: impl Fn(&K, &K) -> bool,
) -> Result<Vec<Row<K>>> {
    let sizes: Vec<usize> = made.iter().map(|m| m.bytes).collect();
    // all that was taken somewhere, by number
    let mut all: Vec<&K> = Vec::new();
    for taken in made.iter().filter_map(|m| m.taken.as_ref()) {
        if !all.contains(&taken) {
            all.push(taken);
        }
    }
    let number = |taken: &Option<K>| taken.as_ref().and_then(|t| all.iter().position(|k| *k == t));
    let mut seconds = |k: usize, bytes: usize, limit_s: f64| {
        let correction = correction(made, all[k], &alike, bytes);
        Ok(predict(all[k], bytes, limit_s / correction * stats::ROUNDING)? * correction)
    };
    let mut best = |bytes: usize| -> Result<(Option<usize>, Vec<Option<usize>>)> {
        let above = sizes.partition_point(|&s| s < bytes);
        if let Some(at) = made.get(above).filter(|m| m.bytes == bytes && !m.measured.is_empty()) {
            return Ok((number(&at.taken), Vec::new()));
        }
        let bytes = changes.iter().fold(bytes, |bytes, change| change.beyond(bytes));
        let mut found: Vec<(usize, f64)> = Vec::new();
        for k in near(made, above).into_iter().filter_map(|m| number(&m.taken)) {
            if found.iter().all(|&(known, _)| known != k) {
                let least = found.iter().map(|f| f.1).fold(f64::INFINITY, f64::min);
                found.push((k, seconds(k, bytes, least * (1.0 + ALIKE))?));
            }
        }
        let Some(&(first, own)) = found.iter().min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0))) else {
            return Ok((None, Vec::new()));
        };
        let native = native_seconds(made, bytes);
        // where candidates are only predicted nothing was decided against the library's own
        let measured = made.iter().filter(|m| !m.measured.is_empty());
        let nearest = nearest(measured, |m| m.bytes, bytes, changes);
        let (preferred, taken_near) = (nearest.is_some_and(is_native_preferred), nearest.is_some_and(|m| m.taken.is_none()));
        let is_natives = |native| is_native_between(own, native, taken_near, preferred);
        // of what is too short for predictions to tell it apart, what won at the nearest size
        let as_nearest = native.filter(|&native| is_within_a_call(own, native)).and(nearest).and_then(|m| number(&m.taken));
        let (first, own) = found.iter().copied().find(|f| Some(f.0) == as_nearest).unwrap_or((first, own));
        let taken = if native.is_some_and(is_natives) { None } else { Some(first) };
        let least = native.filter(|_| taken.is_none()).unwrap_or(own);
        let as_good = |t: f64| t <= least * (1.0 + ALIKE) && (!preferred || t * (1.0 + ALIKE) >= least);
        let all = found.iter().map(|&(k, t)| (Some(k), t)).chain(native.map(|native| (None, native)));
        Ok((taken, all.filter(|&(k, t)| k != taken && as_good(t)).map(|(k, _)| k).collect()))
    };
    let found = best_from(&sizes, changes, close, &mut best)?;
    let mut rows = Vec::new();
    for (n, &(from, k)) in found.iter().enumerate() {
        let end = found.get(n + 1).map_or(usize::MAX, |next| next.0);
        let measured_at = made.iter().filter(|m| !m.measured.is_empty()).map(|m| m.bytes);
        let made_here: Vec<usize> = measured_at.filter(|s| (from..end).contains(s)).collect();
        let places = if made_here.is_empty() { vec![halfway(from, end - 1)] } else { made_here };
        for (m, &at) in places.iter().enumerate() {
            let seconds = match k {
                Some(k) => measured(made, all[k], at).map_or_else(|| seconds(k, at, f64::INFINITY), Ok)?,
                None => native_seconds(made, at).unwrap_or(f64::NAN),
            };
            let begin = if m == 0 { from } else { halfway(places[m - 1], at) };
            rows.push(Row { from: begin, at, taken: k.map(|k| all[k].clone()), seconds });
        }
    }
    // the first row holds for all that is smaller
    rows.iter_mut().take(1).for_each(|row| row.from = 0);
    Ok(rows)
}

/// The choices made at sizes around the one that is the first above a size, the nearest first: one of these is the fastest mostly, and what takes longer is
/// not predicted to its end.
fn near<K>(made: &[Made<K>], above: usize) -> Vec<&Made<K>> {
    let mut places: Vec<usize> = (above.saturating_sub(REACH)..(above + REACH).min(made.len())).collect();
    places.sort_by_key(|&k| if k < above { above - k - 1 } else { k - above });
    places.into_iter().map(|k| &made[k]).collect()
}

/// What one took at a size that a choice was made at, if it was measured there.
fn measured<K: PartialEq>(made: &[Made<K>], what: &K, bytes: usize) -> Option<f64> {
    let of_size = made.iter().find(|m| m.bytes == bytes)?;
    of_size.measured.iter().find(|(k, ..)| k == what).map(|m| m.2)
}

/// What a prediction of one must be multiplied with at a size: measured over predicted, between the sizes at which it was measured.
fn correction<K: PartialEq>(made: &[Made<K>], what: &K, alike: impl Fn(&K, &K) -> bool, bytes: usize) -> f64 {
    let ratio = |m: &Made<K>| {
        let known = m.measured.iter().find(|(k, ..)| k == what).or_else(|| m.measured.iter().find(|(k, ..)| alike(k, what)));
        let (_, predicted, measured) = known?;
        (*predicted > 0.0 && *measured > 0.0).then_some((m.bytes, measured / predicted))
    };
    let (sizes, ratios): (Vec<usize>, Vec<f64>) = made.iter().filter_map(ratio).unzip();
    let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else { return 1.0 };
    stats::interpolate(&sizes, &ratios, bytes.clamp(*first, *last))
}

/// What the library's own takes at a size between those at which it was measured.
pub fn native_seconds<K>(made: &[Made<K>], bytes: usize) -> Option<f64> {
    let (sizes, times): (Vec<usize>, Vec<f64>) = made.iter().filter_map(|m| Some((m.bytes, m.native_s?))).unzip();
    let (first, last) = (*sizes.first()?, *sizes.last()?);
    Some(stats::interpolate(&sizes, &times, bytes.clamp(first, last)))
}

/// True where the library's own was taken though a call of it takes longer alone, in doubt or for calls in a row: that holds as far as a row does.
fn is_native_preferred<K>(made: &Made<K>) -> bool {
    made.taken.is_none() && made.native_s.is_some_and(|native| made.measured.iter().any(|m| m.2 < native))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::CLOSE;

    /// A handshake for messages above 64 KiB, which "whole" waits for and "cut" does not.
    fn predict(what: &&str, bytes: usize, _: f64) -> Result<f64> {
        Ok(match *what {
            "whole" => 1e-5 + 1e-9 * bytes as f64 + if bytes > 65_536 { 1e-4 } else { 0.0 },
            _ => 4e-5 + 0.8e-9 * bytes as f64,
        })
    }

    fn made(bytes: usize, taken: Option<&'static str>, slower: f64, native_s: Option<f64>) -> Made<&'static str> {
        let measured = |what| (what, predict(&what, bytes, f64::INFINITY).unwrap(), slower * predict(&what, bytes, f64::INFINITY).unwrap());
        Made { bytes, taken, measured: vec![measured("whole"), measured("cut")], native_s }
    }

    #[test]
    fn rows_end_where_the_network_changes_and_not_half_way_between_sizes() {
        let made =
            [made(1 << 10, Some("whole"), 1.3, None), made(1 << 16, Some("whole"), 1.1, None), made(1 << 20, Some("cut"), 1.2, None)];
        let found = rows(&made, &[ProtocolChange { before: 65_536, after: 65_537 }], CLOSE, predict, |_, _| false).unwrap();
        assert_eq!(
            found.iter().map(|r| (r.from, r.at, r.taken)).collect::<Vec<_>>(),
            [(0, 1 << 10, Some("whole")), (1 << 13, 1 << 16, Some("whole")), (65_537, 1 << 20, Some("cut"))]
        );
        assert!((found[2].seconds / (1.2 * predict(&"cut", 1 << 20, f64::INFINITY).unwrap()) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_librarys_own_is_preferred_as_far_as_it_was_taken_though_it_is_slower_alone() {
        let native = |bytes: usize| 1.5 * predict(&"whole", bytes, f64::INFINITY).unwrap();
        let made = [made(1 << 8, None, 1.0, Some(native(1 << 8))), made(1 << 14, Some("whole"), 1.0, Some(native(1 << 14)))];
        let found = rows(&made, &[], CLOSE, predict, |_, _| false).unwrap();
        let [(0, None), (from, Some("whole"))] = found.iter().map(|r| (r.from, r.taken)).collect::<Vec<_>>()[..] else {
            panic!("{found:?}")
        };
        assert!((1 << 10..=1 << 12).contains(&from), "{from} is about half way, in times as large");
        assert_eq!(found[0].seconds, native(1 << 8), "what it takes");
    }

    #[test]
    fn what_is_too_short_to_be_predicted_goes_as_the_nearest_size_did() {
        let short = |_: &&str, bytes: usize, _: f64| Ok(2e-7 + 1e-11 * bytes as f64);
        let of = |bytes: usize, taken: Option<&'static str>, times: f64| {
            let own_s = short(&"whole", bytes, f64::INFINITY).unwrap();
            Made { bytes, taken, measured: vec![("whole", own_s, own_s)], native_s: Some(times * own_s) }
        };
        let found = |times: f64| {
            let made = [of(1, Some("whole"), times), of(64, Some("whole"), 1.1), of(1024, None, times), of(8192, None, 1.1)];
            let found = rows(&made, &[], CLOSE, short, |_, _| false).unwrap();
            found.iter().map(|r| (r.from, r.at, r.taken)).collect::<Vec<_>>()
        };
        // halfway, to 2 %
        assert_eq!(found(1.1), [(0, 1, Some("whole")), (8, 64, Some("whole")), (261, 1024, None), (2897, 8192, None)]);
        assert_eq!(found(0.9)[..2], found(1.1)[..2], "whoever seems to win");
    }

    #[test]
    fn of_what_is_too_short_to_be_predicted_the_way_of_the_nearest_size_is_taken() {
        // what seems to be faster by 10 ns was taken at the larger size alone
        let short = |what: &&str, bytes: usize, _: f64| Ok(if *what == "whole" { 2e-7 } else { 1.9e-7 } + 1e-11 * bytes as f64);
        let of = |bytes: usize, taken: &'static str| {
            let time = |what| short(&what, bytes, f64::INFINITY).unwrap();
            let measured = ["whole", "cut"].map(|what| (what, time(what), time(what)));
            Made { bytes, taken: Some(taken), measured: measured.into(), native_s: Some(1.1 * time("whole")) }
        };
        let made = [of(64, "whole"), of(1024, "cut")];
        let from = |changes: &[ProtocolChange]| {
            let found = rows(&made, changes, CLOSE, short, |_, _| false).unwrap();
            found.iter().map(|r| (r.from, r.taken.unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(from(&[]), [(0, "whole"), (256, "cut")], "halfway, to 2 %");
        assert_eq!(from(&[ProtocolChange { before: 128, after: 129 }]), [(0, "whole"), (129, "cut")], "where the network changes");
    }

    #[test]
    fn what_predictions_miss_is_learnt_from_one_alike_where_that_is_nearer() {
        // a pipeline in two windows: at the largest size it is faster than predicted, at the middle one, where only the narrow one was measured,
        // slower
        let steady = |bytes: usize| 1e-5 + 1e-9 * bytes as f64;
        let of = |bytes, taken, narrow: Option<f64>, wide: Option<f64>| {
            let time = |slower: f64| (0.9 * steady(bytes), slower * 0.9 * steady(bytes));
            let measured = [("tree", Some(1.0 / 0.9)), ("narrow pipeline", narrow), ("wide pipeline", wide)];
            let measured = measured.into_iter().filter_map(|(k, slower)| Some((k, time(slower?).0, time(slower?).1)));
            Made { bytes, taken: Some(taken), measured: measured.collect(), native_s: None }
        };
        let made = [of(1 << 19, "tree", None, None), of(1 << 20, "tree", Some(1.3), None), of(1 << 22, "wide pipeline", None, Some(0.7))];
        let predict = |_: &&str, bytes: usize, _: f64| Ok(0.9 * steady(bytes));
        let alike = |a: &&str, b: &&str| a.contains("pipeline") && b.contains("pipeline");
        let ends = |alike: &dyn Fn(&&str, &&str) -> bool| {
            let found = rows(&made, &[], CLOSE, predict, alike).unwrap();
            found.iter().map(|r| (r.at, r.taken.unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(ends(&alike), [(1 << 19, "tree"), (1 << 20, "tree"), (1 << 22, "wide pipeline")]);
        assert!(ends(&|_, _| false).iter().any(|&(at, taken)| at < 1 << 20 && taken == "wide pipeline"));
    }

    #[test]
    fn the_librarys_own_is_taken_between_sizes_where_no_other_clearly_wins() {
        let slow = |bytes: usize| Some(2.0 * predict(&"whole", bytes, f64::INFINITY).unwrap());
        let quick = |bytes: usize| Some(0.5 * predict(&"cut", bytes, f64::INFINITY).unwrap());
        let made = [
            made(1 << 10, Some("whole"), 1.0, slow(1 << 10)),
            made(1 << 13, Some("whole"), 1.0, slow(1 << 13)),
            made(1 << 20, None, 1.0, quick(1 << 20)),
        ];
        let found = rows(&made, &[], CLOSE, predict, |_, _| false).unwrap();
        assert_eq!(found.iter().map(|r| r.taken).collect::<Vec<_>>(), [Some("whole"), Some("whole"), None]);
        assert!((8193..1 << 20).contains(&found[2].from), "{found:?}");
    }
}
