//! pLogP (Kielmann, Bal, Verstoep 2000): gap and overheads are functions of the message size, kept as tables and interpolated.
//!
//! `L = RTT(0)/2 - g(0)`; g(m) by saturation trains at every size (the tool's `-flood` mode: its default, a difference of round
//! trips, is wrong where the protocol changes); os(m) by timed sends; or(m) by delayed receives. Sizes are added where a table's
//! next entry is not what the two before it extrapolate to, beyond what noise explains.

use super::{
    Cost, CostModel, Estimator, Lookup, Model, RankSet, Values, gap, gap_experiments, gap_noise, not_negative, receive_overhead,
    receive_time, trip,
};
use crate::measure::Experiment;
use crate::stats::interpolate;
use crate::topology::{FAR_S, Link};

/// The table of message sizes.
pub const TABLE_SIZES: &str = "bytes";

/// pLogP.
pub const MODEL: Model = Model {
    name: "plogp",
    citation: "Kielmann, Bal, Verstoep, IPDPS workshops 2000",
    scalars: &[("L", "latency, s")],
    tables: &[(TABLE_SIZES, "message sizes, B, ascending"), ("os", "send overheads, s"), ("or", "receive overheads, s"), ("g", "gaps, s")],
    least_ranks: 2,
    experiments,
    held_out: |_| Vec::new(),
    estimators: &[Estimator { name: "", fit }],
    build: |v| {
        let sizes = v.list(TABLE_SIZES)?.iter().map(|&m| m as usize).collect();
        let table = |name| v.list(name).map(<[f64]>::to_vec);
        Ok(Box::new(PLogP { l: v.get("L")?, sizes, os: table("os")?, or: table("or")?, g: table("g")? }))
    },
};

/// The sizes to begin with.
const FIRST: [usize; 9] = [0, 1, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// A table entry that differs by so much from its extrapolation asks for a size in between (Kielmann's `max_diff`).
const MAX_DIFFERENCE: f64 = 0.20;
/// Sizes are added until they are so many.
const MOST: usize = 24;

struct PLogP {
    l: f64,
    sizes: Vec<usize>,
    os: Vec<f64>,
    or: Vec<f64>,
    g: Vec<f64>,
}

impl CostModel for PLogP {
    fn kinds(&self) -> usize {
        1
    }

    fn cost(&self, _: Link, bytes: usize) -> Cost {
        let at = |table: &[f64]| interpolate(&self.sizes, table, bytes);
        // os and or above g do occur on real networks, above all where a send waits for a handshake: such waiting keeps neither
        // the port nor the processor from other messages
        let g = at(&self.g);
        Cost { send_overhead: at(&self.os).min(g), gap: g, transit: g + self.l, link_gap: 0.0, recv_overhead: at(&self.or).min(g) }
    }
}

/// Sizes at which overheads are not measured but taken from both neighbours: copying is linear between changes of protocol.
const BETWEEN: [usize; 5] = [1, 1 << 10, 4 << 10, 256 << 10, 1 << 20];

/// A link between sites (a round trip, in seconds) makes a handshake that shows in overheads nothing but waiting.
const LONG_LINK_S: f64 = 2.0 * FAR_S;

/// True if overheads are measured at a size: not between two others, and not where they would be a handshake's wait.
pub(super) fn has_overheads(rank_set: &RankSet, bytes: usize, lookup: &Lookup) -> bool {
    let (a, b) = rank_set.pair();
    let waits = || {
        let (empty, time) = (lookup.measured(&trip(a, b, 0))?, lookup.measured(&trip(a, b, bytes))?);
        Some(empty > LONG_LINK_S && time - gap(a, b, bytes, &Lookup::new(lookup.samples))? > 1.5 * empty)
    };
    !BETWEEN.contains(&bytes) && waits() != Some(true)
}

/// The experiments of one size.
pub(super) fn of_size(rank_set: &RankSet, bytes: usize, lookup: &Lookup) -> Vec<Experiment> {
    let (a, b) = rank_set.pair();
    let mut all = gap_experiments(a, b, bytes).to_vec();
    if !has_overheads(rank_set, bytes, lookup) {
        return all;
    }
    // once it is known that no handshake is in them
    all.extend(lookup.measured(&trip(a, b, bytes)).map(|_| Experiment::SendTime { a, b, bytes }));
    all.extend(receive_time(a, b, bytes, lookup));
    all
}

pub(super) fn experiments(rank_set: &RankSet, lookup: &Lookup) -> Vec<Experiment> {
    sizes(rank_set, lookup).into_iter().flat_map(|m| of_size(rank_set, m, lookup)).collect()
}

/// The sizes that are wanted: the first ones, and midpoints where what is measured so far does not extrapolate.
pub(super) fn sizes(rank_set: &RankSet, lookup: &Lookup) -> Vec<usize> {
    let (a, b) = rank_set.pair();
    let mut sizes = FIRST.to_vec();
    // gaps of the medians that were measured, not of a resample: all fits must agree on the sizes
    let measured = Lookup::new(lookup.samples);
    loop {
        let Some(gaps) = sizes.iter().map(|&m| gap(a, b, m, &measured)).collect::<Option<Vec<f64>>>() else { return sizes };
        // between sites the gap of a small message is a small difference of long times: its noise asks for nothing
        let noise: Vec<f64> = sizes.iter().map(|&m| gap_noise(a, b, m, lookup.samples)).collect();
        let wanted: Vec<usize> = (2..sizes.len())
            .filter(|&k| {
                let expected = interpolate(&sizes[k - 2..k], &gaps[k - 2..k], sizes[k]);
                let reach = (sizes[k] - sizes[k - 1]) as f64 / (sizes[k - 1] - sizes[k - 2]) as f64;
                let spread = noise[k] + (1.0 + reach) * noise[k - 1] + reach * noise[k - 2];
                (gaps[k] - expected).abs() > MAX_DIFFERENCE * gaps[k].max(1e-9) + spread
            })
            .map(|k| (sizes[k - 1] + sizes[k]) / 2 / 4 * 4)
            .filter(|m| sizes.iter().all(|s| s.abs_diff(*m) >= 32.max(*m / 8)))
            .take(MOST - sizes.len())
            .collect();
        if wanted.is_empty() {
            return sizes;
        }
        sizes.extend(wanted);
        sizes.sort_unstable();
    }
}

fn fit(rank_set: &RankSet, lookup: &Lookup) -> Option<(Values, Vec<String>)> {
    let sizes = sizes(rank_set, lookup);
    let own: Vec<usize> = sizes.iter().copied().filter(|&m| has_overheads(rank_set, m, lookup)).collect();
    fit_at(sizes, &own, rank_set, lookup)
}

/// The parameters with tables at some sizes, of which overheads were measured at some (`own`). Beyond the largest of these they go on from the
/// two below.
pub(super) fn fit_at(sizes: Vec<usize>, own: &[usize], rank_set: &RankSet, lookup: &Lookup) -> Option<(Values, Vec<String>)> {
    let (a, b) = rank_set.pair();
    let mut clamped = Vec::new();
    let at_all = |overhead: &dyn Fn(usize) -> Option<f64>| -> Option<Vec<f64>> {
        let known: Vec<f64> = own.iter().map(|&m| overhead(m)).collect::<Option<_>>()?;
        let at = |m: &usize| match own.binary_search(m) {
            Ok(k) => known[k],
            Err(k) if k < own.len() => interpolate(own, &known, *m),
            Err(k) => interpolate(&own[k.saturating_sub(2)..k], &known[k.saturating_sub(2)..k], *m),
        };
        Some(sizes.iter().map(at).collect())
    };
    let g: Vec<f64> = sizes.iter().map(|&m| Some(not_negative("g", gap(a, b, m, lookup)?, &mut clamped))).collect::<Option<_>>()?;
    let os = at_all(&|bytes| lookup.time(&Experiment::SendTime { a, b, bytes }))?;
    let or = at_all(&|m| receive_overhead(a, b, m, lookup))?;
    for (name, table) in [("os", &os), ("or", &or)] {
        if let Some(k) = (0..sizes.len()).find(|&k| table[k] > 1.1 * g[k]) {
            clamped.push(format!(
                "{name} is above g at {} bytes and {} other sizes",
                sizes[k],
                (k + 1..sizes.len()).filter(|&j| table[j] > 1.1 * g[j]).count()
            ));
        }
    }
    let round_trip = lookup.time(&trip(a, b, 0))?;
    let l = not_negative("L", round_trip / 2.0 - g[0], &mut clamped);
    let bytes = sizes.iter().map(|&m| m as f64).collect();
    Some((Values::of(&[("L", l)]).table(TABLE_SIZES, bytes).table("os", os).table("or", or).table("g", g), clamped))
}
