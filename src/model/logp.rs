//! LogP (Culler et al. 1993): latency L, overhead o, gap g, for packets of w bytes; a message of m bytes is `p = ceil(m/w)`
//! packets. Fitted as in Culler et al. (IEEE Micro 1996): o from timed sends and delayed receives, g from a saturation train, L
//! from what is left of a round trip.

use super::{
    Cost, CostModel, Estimator, Lookup, Model, RankSet, Values, gap, gap_experiments, not_negative, receive_overhead, receive_time,
};
use crate::measure::Experiment;
use crate::topology::Link;

/// LogP.
pub const MODEL: Model = Model {
    name: "logp",
    citation: "Culler et al., PPoPP 1993",
    scalars: &[("L", "latency, s"), ("o", "overhead, s"), ("g", "gap, s"), ("w", "packet size, B")],
    tables: &[],
    least_ranks: 2,
    experiments,
    held_out: |_| Vec::new(),
    estimators: &[Estimator { name: "", fit }],
    build: |v| Ok(Box::new(LogP { l: v.get("L")?, o: v.get("o")?, g: v.get("g")?, w: v.get("w")?.max(1.0) as usize })),
};

/// The packet: LogP's "small message", here what fits in one Ethernet frame with its headers.
const PACKET: usize = 1024;

struct LogP {
    l: f64,
    o: f64,
    g: f64,
    w: usize,
}

impl CostModel for LogP {
    fn kinds(&self) -> usize {
        1
    }

    fn cost(&self, _: Link, bytes: usize) -> Cost {
        let packets = bytes.div_ceil(self.w).max(1) as f64;
        let pace = self.o.max(self.g);
        Cost {
            send_overhead: packets * self.o,
            gap: packets * pace,
            transit: self.o + (packets - 1.0) * pace + self.l + self.o,
            // the receives of earlier packets overlap the sends of later ones
            link_gap: 0.0,
            recv_overhead: (packets * self.o).min(self.o + (packets - 1.0) * pace + self.l + self.o),
        }
    }
}

fn experiments(rank_set: &RankSet, lookup: &Lookup) -> Vec<Experiment> {
    let (a, b) = rank_set.pair();
    let mut all = vec![Experiment::RoundTrip { a, b, out: PACKET, back: PACKET }, Experiment::SendTime { a, b, bytes: PACKET }];
    all.extend(gap_experiments(a, b, PACKET));
    all.extend(receive_time(a, b, PACKET, lookup));
    all
}

fn fit(rank_set: &RankSet, lookup: &Lookup) -> Option<(Values, Vec<String>)> {
    let (a, b) = rank_set.pair();
    let mut clamped = Vec::new();
    let round_trip = lookup.time(&Experiment::RoundTrip { a, b, out: PACKET, back: PACKET })?;
    let received = receive_overhead(a, b, PACKET, lookup)?;
    let o = (lookup.time(&Experiment::SendTime { a, b, bytes: PACKET })? + received) / 2.0;
    let g = not_negative("g", gap(a, b, PACKET, lookup)?, &mut clamped);
    let l = not_negative("L", round_trip / 2.0 - 2.0 * o, &mut clamped);
    Some((Values::of(&[("L", l), ("o", o), ("g", g), ("w", PACKET as f64)]), clamped))
}
