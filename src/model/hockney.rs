//! Hockney (1994): `T(m) = alpha + beta m`. Fitted to half round trips by least squares on relative residuals.

use super::{Cost, CostModel, Estimator, Lookup, Model, RankSet, Values, not_negative};
use crate::measure::Experiment;
use crate::stats::fit_line;
use crate::topology::Link;

/// Hockney's model. Here beta is the time per byte, the inverse of the bandwidth.
pub const MODEL: Model = Model {
    name: "hockney",
    citation: "Hockney, Parallel Computing 20 (1994)",
    scalars: &[("alpha_s", "latency, s"), ("beta_s_per_byte", "inverse bandwidth, s/B")],
    tables: &[],
    least_ranks: 2,
    experiments,
    held_out: |_| Vec::new(),
    estimators: &[Estimator { name: "", fit }],
    build: |v| Ok(Box::new(Hockney { alpha: v.get("alpha_s")?, beta: v.get("beta_s_per_byte")? })),
};

const ROUND_TRIP_SIZES: [usize; 6] = [0, 1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20];

struct Hockney {
    alpha: f64,
    beta: f64,
}

impl CostModel for Hockney {
    fn kinds(&self) -> usize {
        1
    }

    fn cost(&self, _: Link, bytes: usize) -> Cost {
        let t = self.alpha + self.beta * bytes as f64;
        Cost { send_overhead: t, gap: t, transit: t, link_gap: 0.0, recv_overhead: 0.0 }
    }
}

fn experiments(rank_set: &RankSet, _: &Lookup) -> Vec<Experiment> {
    let (a, b) = rank_set.pair();
    ROUND_TRIP_SIZES.iter().map(|&m| Experiment::RoundTrip { a, b, out: m, back: m }).collect()
}

fn fit(rank_set: &RankSet, lookup: &Lookup) -> Option<(Values, Vec<String>)> {
    let points = experiments(rank_set, lookup)
        .iter()
        .zip(ROUND_TRIP_SIZES)
        .map(|(e, m)| Some((m as f64, lookup.time(e)? / 2.0)))
        .collect::<Option<Vec<_>>>()?;
    let line = fit_line(&points)?;
    let mut clamped = Vec::new();
    let alpha = not_negative("alpha_s", line.intercept, &mut clamped);
    let beta = not_negative("beta_s_per_byte", line.slope, &mut clamped);
    Some((Values::of(&[("alpha_s", alpha), ("beta_s_per_byte", beta)]), clamped))
}
