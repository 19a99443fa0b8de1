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

use super::processors::Processors;
use super::{Cost, CostModel, Estimator, Lookup, Model, RankSet, Values, not_negative};
use crate::measure::Experiment;
use crate::stats::{mean, median};
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
    build: |v| Box::new(Lmo { l: v.get("L"), processors: Processors::new(v) }),
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

fn experiments(rank_set: &RankSet, _: &Lookup) -> Vec<Experiment> {
    triplets(rank_set.ranks.len()).flat_map(|t| [0, BYTES].map(|m| of_triplet(rank_set, t, m))).flatten().collect()
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
    let mut settle = |name: &str, lists: &[Vec<f64>]| -> Option<Vec<f64>> {
        lists.iter().enumerate().map(|(i, l)| Some(not_negative(&format!("{name}[{i}]"), median(l)?, &mut clamped))).collect()
    };
    let (c, t) = (settle("C", &c)?, settle("t", &t)?);
    let per_byte: Vec<(usize, usize, f64)> = pairs.iter().map(|&(i, j, zero, full)| (i, j, (full - zero) / BYTES as f64)).collect();
    let (t, inverse_b) = apart_from_port(&c, t, &per_byte)?;
    let latencies: Vec<f64> = pairs.iter().map(|&(i, j, zero, _)| zero / 2.0 - c[i] - c[j]).collect();
    let l = not_negative("L", median(&latencies)?, &mut clamped);
    let inverse_b = not_negative("inverse_b", inverse_b, &mut clamped);
    Some((Values::of(&[("L", l), ("inverse_b", inverse_b)]).table("C", c).table("t", t), clamped))
}

/// Sends that take so much more than the shortest are limited by their processors.
const BEYOND_PORT: f64 = 0.05;
/// Round trips that processors alone explain to this share of what a byte takes are not looked into.
const EXPLAINED: f64 = 0.02;
/// Rounds in which processors that the port hides are found from each other's round trips: each halves what is left of a wrong beginning at least.
const ROUNDS: usize = 30;

/// What processors take per byte, and the network, from what sends take and from the pairs' round trips. A send that follows another waits for the processor or,
/// where that is faster, for the port: then it says nothing of the processor. So it is where processors of the group differ and the fastest
/// sends do not agree with the round trips: a byte is on the network for as long as on the port, and the round trips tell of the processors.
fn apart_from_port(fixed: &[f64], sends: Vec<f64>, trips: &[(usize, usize, f64)]) -> Option<(Vec<f64>, f64)> {
    let rest = |t: &[f64]| trips.iter().map(|&(i, j, trip)| trip - t[i] - t[j]).collect::<Vec<_>>();
    let off = |t: &[f64], b: f64| mean(&rest(t).iter().map(|r| (r - b).abs()).collect::<Vec<_>>());
    let (network, typical) = (median(&rest(&sends))?, median(&trips.iter().map(|t| t.2).collect::<Vec<_>>())?);
    let whole: Vec<f64> = fixed.iter().zip(&sends).map(|(c, t)| c / BYTES as f64 + t).collect();
    let port = whole.iter().copied().fold(f64::INFINITY, f64::min);
    let hidden: Vec<bool> = whole.iter().map(|&s| s <= (1.0 + BEYOND_PORT) * port).collect();
    if off(&sends, network)? <= EXPLAINED * typical {
        return Some((sends, network));
    }
    let mut t = sends.clone();
    for _ in 0..ROUNDS {
        for i in (0..t.len()).filter(|&i| hidden[i]) {
            let with = trips.iter().filter(|(a, b, _)| *a == i || *b == i);
            let own: Vec<f64> = with.map(|&(a, b, trip)| trip - port - t[if a == i { b } else { a }]).collect();
            t[i] = (t[i] + median(&own)?.clamp(0.0, port)) / 2.0;
        }
    }
    // it has more to choose from
    Some(if 2.0 * off(&t, port)? < off(&sends, network)? { (t, port) } else { (sends, network) })
}
