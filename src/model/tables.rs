//! All four costs as measured tables: pLogP with a transit time of its own.
//!
//! pLogP derives the transit of m bytes, `g(m) + L`, from a gap that was measured on a stream and a latency that was measured on
//! empty messages. Between sites this misses what a single large message waits for: the handshake of a rendezvous takes a round
//! trip before any byte moves, and a stream hides it. Here the transit is measured: `PRTT(1, 0, m) - PRTT(1, 0, 0)/2`,
//! and where it jumps the size is searched for at which it does, since just below it is the best size for a segment.

use super::{
    Cost, CostModel, Estimator, Lookup, Model, RankSet, Values, gap, gap_experiments, gap_noise, half_interval, not_negative, plogp, trip,
};
use crate::measure::Experiment;
use crate::stats::Place;
use crate::topology::Link;

/// Tables of all four costs.
pub const MODEL: Model = Model {
    name: "tables",
    citation: "this project; pLogP of Kielmann, Bal, Verstoep 2000 with a measured transit",
    scalars: &[],
    tables: &[
        (plogp::TABLE_SIZES, "message sizes, B, ascending"),
        ("os", "send overheads, s"),
        ("or", "receive overheads, s"),
        ("g", "gaps, s"),
        ("transit", "from a send's start until the message is usable, s"),
    ],
    least_ranks: 2,
    experiments,
    held_out: |_| Vec::new(),
    estimators: &[Estimator { name: "", fit }],
    build: |v| {
        let sizes = v.list(plogp::TABLE_SIZES)?.iter().map(|&m| m as usize).collect();
        let table = |name| v.list(name).map(<[f64]>::to_vec);
        Ok(Box::new(Tables { sizes, os: table("os")?, or: table("or")?, g: table("g")?, transit: table("transit")? }))
    },
};

struct Tables {
    sizes: Vec<usize>,
    os: Vec<f64>,
    or: Vec<f64>,
    g: Vec<f64>,
    transit: Vec<f64>,
}

impl CostModel for Tables {
    fn kinds(&self) -> usize {
        1
    }

    fn cost(&self, _: Link, bytes: usize) -> Cost {
        let place = Place::of(&self.sizes, bytes);
        let at = |table: &[f64]| place.at(table);
        let (g, transit) = (at(&self.g), at(&self.transit));
        // waiting for a handshake keeps neither port nor processor, and in a stream, whose gap this is, both keep up with it
        Cost { send_overhead: at(&self.os).min(g), gap: g, transit, recv_overhead: at(&self.or).min(g).min(transit), link_gap: 0.0 }
    }
}

/// Sizes are added where the transit jumps until they are so many.
const MOST: usize = 34;
/// Two sizes this close (as a share) enclose a jump tightly enough: a choice beside it is off for so few sizes, and each half of it costs a run.
const CLOSE: usize = 64;

fn experiments(rank_set: &RankSet, lookup: &Lookup) -> Vec<Experiment> {
    let (a, b) = rank_set.pair();
    let sizes = sizes(rank_set, lookup);
    let own = with_overheads(&sizes, rank_set, lookup);
    sizes
        .iter()
        .flat_map(|m| if own.contains(m) { plogp::of_size(rank_set, *m, lookup) } else { gap_experiments(a, b, *m).to_vec() })
        .collect()
}

/// The sizes that overheads are measured at: not those just above another one.
fn with_overheads(sizes: &[usize], rank_set: &RankSet, lookup: &Lookup) -> Vec<usize> {
    let apart = |k: usize| k == 0 || 10 * sizes[k] > 11 * sizes[k - 1];
    (0..sizes.len()).filter(|&k| apart(k)).map(|k| sizes[k]).filter(|&m| plogp::has_overheads(rank_set, m, lookup)).collect()
}

/// pLogP's sizes, and those that close in on each jump: where a message takes half a round trip more than the next smaller one, beyond
/// what its bytes take, by the gap and by the sizes beside, and noise explains. Libraries change protocols just below powers of two, with their headers, or at them: the upper
/// end of an interval is tried first, then the lower one, then its middle.
fn sizes(rank_set: &RankSet, lookup: &Lookup) -> Vec<usize> {
    let (a, b) = rank_set.pair();
    let own = plogp::sizes(rank_set, lookup);
    let mut sizes = own.clone();
    // as for pLogP: the medians that were measured, not those of a resample
    let measured = Lookup::new(lookup.samples);
    let time = |bytes: usize| Some((measured.time(&trip(a, b, bytes))?, gap(a, b, bytes, &measured)?));
    let noise = |bytes: usize| half_interval(&trip(a, b, bytes), lookup.samples) + gap_noise(a, b, bytes, lookup.samples);
    while sizes.len() < MOST {
        let Some(times) = sizes.iter().map(|&m| time(m)).collect::<Option<Vec<(f64, f64)>>>() else { break };
        let more = |k: usize| times[k].0 - times[k - 1].0 - (times[k].1 - times[k - 1].1).max(0.0);
        let unsure = |k: usize| noise(sizes[k]) + noise(sizes[k - 1]);
        let close = |size: usize| (size / CLOSE).max(64);
        let wide = |k: usize| sizes[k] - sizes[k - 1] > close(sizes[k]);
        // where both processors work on each byte, which a stream hides, the intervals beside take longer too; of the thin ones that the search made at
        // ends noise alone would be seen, as many times as they are narrower
        let width = |k: usize| (sizes[k] - sizes[k - 1]) as f64;
        let beside = |k: usize| {
            let (before, behind) = ((1..k).rev().find(|&n| wide(n)), (k + 1..sizes.len()).find(|&n| wide(n)));
            let all = before.into_iter().chain(behind);
            all.map(|n| more(n).max(0.0) * width(k) / width(n) + unsure(n)).fold(f64::INFINITY, f64::min)
        };
        let jumps = |k: usize| more(k) > times[0].0 / 2.0 + unsure(k) + beside(k);
        let inside = |k: usize| {
            let (low, high) = (sizes[k - 1], sizes[k]);
            let ends = [(high - close(high), high), (low + close(low), low)];
            let end = ends.into_iter().find(|(at, end)| own.contains(end) && (low + 1..high).contains(at));
            end.map_or((low + high) / 16 * 8, |(at, _)| at)
        };
        let wanted: Vec<usize> = (1..sizes.len()).filter(|&k| wide(k) && jumps(k)).map(inside).collect();
        if wanted.is_empty() {
            break;
        }
        sizes.extend(wanted);
        sizes.sort_unstable();
    }
    sizes
}

fn fit(rank_set: &RankSet, lookup: &Lookup) -> Option<(Values, Vec<String>)> {
    let (a, b) = rank_set.pair();
    let sizes = sizes(rank_set, lookup);
    let own = with_overheads(&sizes, rank_set, lookup);
    let (mut values, mut clamped) = plogp::fit_at(sizes, &own, rank_set, lookup)?;
    let time = |bytes: usize| lookup.time(&trip(a, b, bytes));
    let empty = time(0)?;
    let sizes = values.list(plogp::TABLE_SIZES).ok()?.to_vec();
    let transit =
        sizes.iter().map(|&m| Some(not_negative("transit", time(m as usize)? - empty / 2.0, &mut clamped))).collect::<Option<_>>()?;
    values.scalars.clear();
    Some((values.table("transit", transit), clamped))
}
