//! LogGP (Alexandrov et al. 1995): LogP with a gap per byte G for long messages.
//!
//! Fitted as in Hoefler, Lichei and Rehm (2007) from PRTT(n, d, s), the time for n messages of s bytes with a delay d between
//! them and one empty answer: g and G are intercept and slope of `y(s) = (PRTT(n,0,s) - PRTT(1,0,s)) / (n-1)` over `s - 1`, o is
//! the mean of `o_s = (PRTT(n,d,s) - PRTT(1,0,s)) / (n-1) - d` and the delayed receive, and L is half a round trip less both
//! overheads (the published code forgets to take them off).

use super::{
    Cost, CostModel, Estimator, Lookup, Model, RankSet, Values, delay_ns, gap, gap_experiments, not_negative, receive_overhead,
    receive_time,
};
use crate::measure::Experiment;
use crate::stats::fit_line;
use crate::topology::Link;

/// LogGP.
pub const MODEL: Model = Model {
    name: "loggp",
    citation: "Alexandrov et al., SPAA 1995; Hoefler, Lichei, Rehm, PMEO 2007",
    scalars: &[("L", "latency, s"), ("o", "overhead, s"), ("g", "gap per message, s"), ("G", "gap per byte, s/B")],
    tables: &[],
    least_ranks: 2,
    experiments,
    held_out: |_| Vec::new(),
    estimators: &[Estimator { name: "", fit }],
    build: |v| Ok(Box::new(LogGP { l: v.get("L")?, o: v.get("o")?, g: v.get("g")?, big_g: v.get("G")? })),
};

const GAP_SIZES: [usize; 6] = [1, 1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20];
const DELAYED: usize = 8;

struct LogGP {
    l: f64,
    o: f64,
    g: f64,
    big_g: f64,
}

impl CostModel for LogGP {
    fn kinds(&self) -> usize {
        1
    }

    fn cost(&self, _: Link, bytes: usize) -> Cost {
        let long = bytes.saturating_sub(1) as f64 * self.big_g;
        Cost {
            send_overhead: self.o,
            // the port streams a message's bytes while the processor is still on it
            gap: self.o.max(self.g + long),
            transit: self.o + long + self.l + self.o,
            link_gap: 0.0,
            recv_overhead: self.o,
        }
    }
}

/// The delayed train, once the time is known that one message takes.
fn delayed(rank_set: &RankSet, lookup: &Lookup) -> Option<(Experiment, f64)> {
    let (a, b) = rank_set.pair();
    let delay_ns = delay_ns(lookup.measured(&Experiment::SaturationTrain { a, b, bytes: 1, count: 1, delay_ns: 0 })?);
    Some((Experiment::SaturationTrain { a, b, bytes: 1, count: DELAYED, delay_ns }, delay_ns as f64 * 1e-9))
}

fn experiments(rank_set: &RankSet, lookup: &Lookup) -> Vec<Experiment> {
    let (a, b) = rank_set.pair();
    let mut all: Vec<Experiment> = GAP_SIZES.iter().flat_map(|&m| gap_experiments(a, b, m)).collect();
    all.push(Experiment::RoundTrip { a, b, out: 1, back: 1 });
    all.extend(delayed(rank_set, lookup).map(|(e, _)| e));
    all.extend(receive_time(a, b, 1, lookup));
    all
}

fn fit(rank_set: &RankSet, lookup: &Lookup) -> Option<(Values, Vec<String>)> {
    let (a, b) = rank_set.pair();
    let mut clamped = Vec::new();
    let points = GAP_SIZES.iter().map(|&m| Some(((m - 1) as f64, gap(a, b, m, lookup)?.max(1e-12)))).collect::<Option<Vec<_>>>()?;
    let line = fit_line(&points)?;
    let (train, delay) = delayed(rank_set, lookup)?;
    let one = lookup.time(&Experiment::SaturationTrain { a, b, bytes: 1, count: 1, delay_ns: 0 })?;
    let sent = not_negative("o_s", (lookup.time(&train)? - one) / (DELAYED - 1) as f64 - delay, &mut clamped);
    let o = (sent + receive_overhead(a, b, 1, lookup)?) / 2.0;
    let round_trip = lookup.time(&Experiment::RoundTrip { a, b, out: 1, back: 1 })?;
    let g = not_negative("g", line.intercept, &mut clamped);
    let big_g = not_negative("G", line.slope, &mut clamped);
    let l = not_negative("L", round_trip / 2.0 - 2.0 * o, &mut clamped);
    Some((Values::of(&[("L", l), ("o", o), ("g", g), ("G", big_g)]), clamped))
}
