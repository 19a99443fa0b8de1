//! LMO (Lastovetsky, Mkwawa, O'Flynn 2006; extended 2008): processors and network apart, `T_ij(M) = C_i + t_i M + L + M/b +
//! C_j + t_j M`. C_i and t_i differ by processor; L and b are those of the group's switch, alike for all its links by the way
//! groups are made.
//!
//! Latency and processor delay cannot be told apart by round trips alone: one-to-two experiments tell them. Two estimators:
//!
//! - `published` (CPM08): `C_i = (T_ijk(0) - max_x T_ix(0)) / 2`, `t_i = (T_ijk(M) - max_x T_ix(M) - 2 C_i) / M`;
//! - `corrected`: on a machine whose replies overlap, the root spends one C_i more than in a round trip, not two: the larger of
//!   both send orders gives `C_i = T*_ijk(0) - max_x T_ix(0)`, `t_i = (T*_ijk(M) - max_x T_ix(M) - C_i) / M` exactly.
//!
//! The one that predicts held-out one-to-many experiments better is taken.
//!
//! Either tells what a send keeps from the next one: the processor or, where that is faster, the port, and then it says nothing of the processor. So
//! a send and a receive are timed alone too, which no port hides, and a processor's t_i is by the lesser of both.

use super::processors::Processors;
use super::{Cost, CostModel, Estimator, Lookup, Model, RankSet, Values, delay_ns, not_negative};
use crate::measure::Experiment;
use crate::stats::median;
use crate::topology::{Link, Rank};

/// LMO.
pub const MODEL: Model = Model {
    name: "lmo",
    citation: "Lastovetsky, Rychkov, O'Flynn, EuroPVM/MPI 2008",
    scalars: &[("L", "latency of the network, s"), ("inverse_b", "inverse bandwidth of the network, s/B")],
    tables: &[("C", "fixed processor delay of each position, s"), ("t", "processor delay per byte of each position, s/B")],
    least_ranks: 3,
    experiments,
    held_out,
    estimators: &[
        Estimator { name: "corrected", fit: |r, l| fit(r, l, true) },
        Estimator { name: "published", fit: |r, l| fit(r, l, false) },
    ],
    build: |v| Ok(Box::new(Lmo { l: v.get("L")?, processors: Processors::new(v)? })),
};

/// The message of the experiments with data: large enough that t_i shows, below the protocol switch of common libraries.
const BYTES: usize = 32 << 10;

struct Lmo {
    l: f64,
    processors: Processors,
}

impl CostModel for Lmo {
    fn cost(&self, link: Link, bytes: usize) -> Cost {
        let (send, receive) = (self.processors.seconds(link.from, bytes), self.processors.seconds(link.to, bytes));
        let transit = send + self.l + self.processors.port(bytes) + receive;
        Cost { send_overhead: send, gap: send.max(self.processors.port(bytes)), transit, link_gap: 0.0, recv_overhead: receive }
    }

    /// A send's gap is the processor's where that takes longer, and says nothing of the port then.
    fn port_in(&self, _: Link, bytes: usize) -> f64 {
        self.processors.port(bytes)
    }

    fn processor(&self, rank: Rank, bytes: usize) -> f64 {
        self.processors.seconds(rank, bytes)
    }
}

/// Each position's triplets: itself as the root, and two others.
fn triplets(n: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let each = if n < 5 { 1 } else { 2 };
    (0..n).flat_map(move |i| (0..each).map(move |k| (i, (i + 1 + 2 * k) % n, (i + 2 + 2 * k) % n)))
}

/// The experiments of one triplet and size: both orders of one-to-two, and both round trips with an empty answer.
fn of_triplet(rank_set: &RankSet, (i, j, k): (usize, usize, usize), out: usize) -> [Experiment; 4] {
    let [root, j, k] = [i, j, k].map(|x| rank_set.ranks[x]);
    let round_trip = |leaves: [Rank; 2]| Experiment::OneToManyRoundTrip { root, leaves: leaves.to_vec(), out, back: 0 };
    let trip = |b| Experiment::RoundTrip { a: root, b, out, back: 0 };
    [round_trip([j, k]), round_trip([k, j]), trip(j), trip(k)]
}

/// A send and a receive of one position alone, once the round trip is known that the receive must wait for.
fn alone(rank_set: &RankSet, i: usize, lookup: &Lookup) -> Option<[Experiment; 2]> {
    let [a, b] = [i, i + 1].map(|x| rank_set.ranks[x % rank_set.ranks.len()]);
    let round_trip = lookup.measured(&Experiment::RoundTrip { a, b, out: BYTES, back: 0 })?;
    let receive = Experiment::ReceiveTime { a, b, bytes: BYTES, delay_ns: delay_ns(round_trip) };
    Some([Experiment::SendTime { a, b, bytes: BYTES }, receive])
}

fn experiments(rank_set: &RankSet, lookup: &Lookup) -> Vec<Experiment> {
    let n = rank_set.ranks.len();
    let of_triplets = triplets(n).flat_map(|t| [0, BYTES].map(|m| of_triplet(rank_set, t, m))).flatten();
    of_triplets.chain((0..n).filter_map(|i| alone(rank_set, i, lookup)).flatten()).collect()
}

fn held_out(rank_set: &RankSet) -> Vec<Experiment> {
    let (root, leaves) = (rank_set.ranks[0], rank_set.ranks[1..].to_vec());
    [0, BYTES / 2, BYTES].map(|out| Experiment::OneToManyRoundTrip { root, leaves: leaves.clone(), out, back: 0 }).to_vec()
}

fn fit(rank_set: &RankSet, lookup: &Lookup, corrected: bool) -> Option<(Values, Vec<String>)> {
    let n = rank_set.ranks.len();
    let mut clamped = Vec::new();
    let (mut c, mut t): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (vec![Vec::new(); n], vec![Vec::new(); n]);
    // pairs: (i, j, T_ij(0), T_ij(M)) with an empty answer
    let mut pairs = Vec::new();
    for (i, j, k) in triplets(n) {
        let times = |m| of_triplet(rank_set, (i, j, k), m).iter().map(|e| lookup.time(e)).collect::<Option<Vec<f64>>>();
        let (zero, full) = (times(0)?, times(BYTES)?);
        let extra = |x: &[f64]| if corrected { x[0].max(x[1]) - x[2].max(x[3]) } else { x[0] - x[2].max(x[3]) };
        let share = if corrected { 1.0 } else { 2.0 };
        let c_i = extra(&zero) / share;
        c[i].push(c_i);
        t[i].push((extra(&full) - share * c_i) / BYTES as f64);
        pairs.push((i, j, zero[2], full[2]));
        pairs.push((i, k, zero[3], full[3]));
    }
    for (i, t_i) in t.iter_mut().enumerate() {
        let [send, receive] = alone(rank_set, i, lookup)?.map(|e| lookup.time(&e));
        let own = ((send? + receive?) / 2.0 - median(&c[i])?) / BYTES as f64;
        *t_i = vec![median(t_i)?.min(own)];
    }
    let mut settle = |name: &str, lists: &[Vec<f64>]| -> Option<Vec<f64>> {
        lists.iter().enumerate().map(|(i, l)| Some(not_negative(&format!("{name}[{i}]"), median(l)?, &mut clamped))).collect()
    };
    let (c, t) = (settle("C", &c)?, settle("t", &t)?);
    let latencies: Vec<f64> = pairs.iter().map(|&(i, j, zero, _)| zero / 2.0 - c[i] - c[j]).collect();
    let l = not_negative("L", median(&latencies)?, &mut clamped);
    let per_byte: Vec<f64> = pairs.iter().map(|&(i, j, zero, full)| (full - zero) / BYTES as f64 - t[i] - t[j]).collect();
    let inverse_b = not_negative("inverse_b", median(&per_byte)?, &mut clamped);
    Some((Values::of(&[("L", l), ("inverse_b", inverse_b)]).table("C", c).table("t", t), clamped))
}
