//! The replay equals the closed forms of the literature (in their corrected form) wherever these are exact.

use collwise::collective::{Parameters, Shape, bcast, collective};
use collwise::model::{Cost, CostModel, Values, model};
use collwise::predict::completion;
use collwise::topology::{Link, Rank};

/// pLogP with affine gap and overheads that never bind: the machine that the formulas speak of.
struct PLogP {
    l: f64,
    g0: f64,
    g_byte: f64,
    /// os and or as shares of g
    overheads: (f64, f64),
}

impl PLogP {
    fn g(&self, m: usize) -> f64 {
        self.g0 + self.g_byte * m as f64
    }
}

impl CostModel for PLogP {
    fn cost(&self, _: Link, bytes: usize) -> Cost {
        let g = self.g(bytes);
        Cost { send_overhead: self.overheads.0 * g, gap: g, transit: g + self.l, recv_overhead: self.overheads.1 * g, link_gap: 0.0 }
    }
}

const MACHINES: [PLogP; 4] = [
    PLogP { l: 30e-6, g0: 12e-6, g_byte: 9e-9, overheads: (0.3, 0.2) },
    PLogP { l: 5e-3, g0: 10e-6, g_byte: 8e-9, overheads: (0.5, 0.5) },
    PLogP { l: 0.0, g0: 1e-6, g_byte: 1e-9, overheads: (1.0, 0.0) },
    PLogP { l: 1e-6, g0: 1e-3, g_byte: 0.0, overheads: (0.0, 0.0) },
];

fn ceil_log2(n: usize) -> f64 {
    n.next_power_of_two().ilog2() as f64
}

fn floor_log2(n: usize) -> f64 {
    n.ilog2() as f64
}

/// Asserts that an algorithm takes `want(machine, ranks, bytes)` on every machine, for every rank count, size and root.
fn exact(name: &str, ranks: impl Iterator<Item = usize> + Clone, want: impl Fn(&PLogP, usize, usize) -> f64) {
    exact_within(name, ranks, 1e-9, want);
}

fn exact_within(name: &str, ranks: impl Iterator<Item = usize> + Clone, tolerance: f64, want: impl Fn(&PLogP, usize, usize) -> f64) {
    let algorithm = bcast::algorithm(name).unwrap();
    let parameters = Parameters::default();
    for machine in &MACHINES {
        for p in ranks.clone() {
            for bytes in [1, 1000, 16384, 250_000] {
                for root in [0, p - 1] {
                    let shape = Shape::new(p, root, bytes);
                    let got = completion(&algorithm.schedule(&shape, &parameters).unwrap(), machine).unwrap();
                    let want = want(machine, p, bytes);
                    assert!((got / want - 1.0).abs() < tolerance, "{name} P={p} m={bytes} root={root}: {got} is not {want}");
                }
            }
        }
    }
}

#[test]
fn flat() {
    exact("flat", 2..=64, |x, p, m| (p - 1) as f64 * x.g(m) + x.l);
}

#[test]
fn flat_rendezvous() {
    // the handshakes overlap; asking everybody may take longer
    // than the first answer, and then a root that spends time on receiving is a little slower
    exact_within("flat_rendezvous", 2..=64, 1e-2, |x, p, m| {
        let (p, g1) = ((p - 1) as f64, x.g(1));
        (2.0 * g1 + 2.0 * x.l).max(p * g1) + p * x.g(m) + x.l
    });
}

#[test]
fn chain() {
    exact("chain", 2..=64, |x, p, m| (p - 1) as f64 * (x.g(m) + x.l));
}

#[test]
fn chain_rendezvous() {
    exact("chain_rendezvous", 2..=64, |x, p, m| (p - 1) as f64 * (x.g(m) + 2.0 * x.g(1) + 3.0 * x.l));
}

#[test]
fn binomial() {
    exact("binomial", 2..=64, |x, p, m| ceil_log2(p) * x.g(m) + floor_log2(p) * x.l);
}

#[test]
fn binary_of_full_trees() {
    exact("binary", [3, 7, 15, 31, 63].into_iter(), |x, p, m| floor_log2(p + 1) * (2.0 * x.g(m) + x.l) - 2.0 * x.g(m) - x.l);
}

#[test]
fn knomial_of_full_trees() {
    exact("knomial", [4, 16, 64].into_iter(), |x, p, m| floor_log2(p) / 2.0 * (3.0 * x.g(m) + x.l));
}

/// Whole segments only: the formulas know no short last one.
fn exact_segmented(name: &str, ranks: impl Iterator<Item = usize> + Clone, want: impl Fn(&PLogP, usize, f64, f64) -> f64) {
    let algorithm = bcast::algorithm(name).unwrap();
    for machine in &MACHINES {
        for p in ranks.clone() {
            for (segment, k) in [(1024, 1), (1024, 7), (8192, 16), (100, 33)] {
                let shape = Shape::new(p, p / 2, segment * k);
                let got = completion(&algorithm.schedule(&shape, &Parameters::of(segment, 0)).unwrap(), machine).unwrap();
                let want = want(machine, p, k as f64, machine.g(segment));
                assert!((got / want - 1.0).abs() < 1e-9, "{name} P={p} k={k} s={segment}: {got} is not {want}");
            }
        }
    }
}

#[test]
fn segmented_flat() {
    exact_segmented("segmented_flat", 2..=64, |x, p, k, g| (p - 1) as f64 * k * g + x.l);
}

#[test]
fn segmented_chain() {
    exact_segmented("segmented_chain", 2..=64, |x, p, k, g| (p - 1) as f64 * (g + x.l) + (k - 1.0) * g);
}

#[test]
fn segmented_binomial() {
    exact_segmented("segmented_binomial", 2..=64, |x, p, k, g| ceil_log2(p) * k * g + floor_log2(p) * x.l);
}

#[test]
fn segmented_binary_of_full_trees() {
    exact_segmented("segmented_binary", [3, 7, 15, 31, 63].into_iter(), |x, p, k, g| floor_log2(p) * (2.0 * g + x.l) + 2.0 * (k - 1.0) * g);
}

#[test]
fn a_relay_with_one_processor_sets_the_pace_of_a_pipeline() {
    // os + or > g: the period is os + or (E10 of the reference; BSM04 "slightly underestimates" pipelines)
    struct Slow;
    impl CostModel for Slow {
        fn cost(&self, _: Link, _: usize) -> Cost {
            Cost { send_overhead: 0.9, gap: 1.0, transit: 1.5, recv_overhead: 0.6, link_gap: 0.0 }
        }
    }
    // (P-1)(g+L) + (k-1)(os+or): a relay takes a segment in and sends one in turns
    let algorithm = bcast::algorithm("segmented_chain").unwrap();
    for p in 3..=64 {
        let shape = Shape::new(p, 0, 50);
        let got = completion(&algorithm.schedule(&shape, &Parameters::of(1, 0)).unwrap(), &Slow).unwrap();
        let want = (p - 1) as f64 * 1.5 + 49.0 * 1.5;
        assert!((got / want - 1.0).abs() < 1e-9, "P={p}: {got} is not {want}");
    }
}

#[test]
fn overheads_above_the_gap_starve_no_send() {
    // under LogGP with o = 2 g a relay's period is 2 o; a port is no longer busy than max(o, g + (s-1)G)
    let (l, o, g, big_g) = (5e-6, 6e-6, 3e-6, 1e-9);
    let values = Values::of(&[("L", l), ("o", o), ("g", g), ("G", big_g)]);
    let costs = model("loggp").unwrap().costs(&values).unwrap();
    let time = |name: &str, p, segment| {
        let shape = Shape::new(p, 0, 64 << 10);
        let schedule = bcast::algorithm(name).unwrap().schedule(&shape, &Parameters::of(segment, 0)).unwrap();
        completion(&schedule, costs.as_ref()).unwrap()
    };
    for (p, segment) in [(3, 512), (16, 512), (64, 4096)] {
        let (k, long) = (((64 << 10) / segment) as f64, (segment - 1) as f64 * big_g);
        let hop = 2.0 * o + l + long;
        let want = (p - 1) as f64 * hop + (k - 1.0) * 2.0 * o;
        let got = time("segmented_chain", p, segment);
        assert!((got / want - 1.0).abs() < 1e-9, "chain P={p} s={segment}: {got} is not {want}");
        let want = ((p - 1) as f64 * k - 1.0) * o.max(g + long) + hop;
        let got = time("segmented_flat", p, segment);
        assert!((got / want - 1.0).abs() < 1e-9, "flat P={p} s={segment}: {got} is not {want}");
    }
}

#[test]
fn a_window_holds_messages_back_until_it_holds_bandwidth_times_delay() {
    // a gap of 1 and a transit of 6: w messages leave in each transit, and six fill the link
    struct Long;
    impl CostModel for Long {
        fn cost(&self, _: Link, _: usize) -> Cost {
            Cost { send_overhead: 0.0, gap: 1.0, transit: 6.0, recv_overhead: 0.0, link_gap: 0.0 }
        }
    }
    let wanted = Long.cost(Link { from: 0, to: 1 }, 1).in_flight();
    assert_eq!(wanted, 6);
    let time = |p, k, in_flight| {
        let shape = Shape::new(p, 0, k);
        let parameters = Parameters { in_flight, ..Parameters::of(1, 0) };
        completion(&bcast::algorithm("segmented_chain").unwrap().schedule(&shape, &parameters).unwrap(), &Long).unwrap()
    };
    for (p, k) in [(2, 1), (2, 6), (2, 7), (2, 50), (5, 50), (9, 64)] {
        for w in 1..=6 {
            let hops = (p - 1) as f64 * 6.0;
            assert_eq!(time(p, k, w), ((k - 1) / w) as f64 * 6.0 + ((k - 1) % w) as f64 + hops, "P={p} k={k} w={w}");
        }
        for w in [0, 7, 20, 64] {
            assert_eq!(time(p, k, w), time(p, k, wanted), "P={p} k={k} w={w}");
        }
    }
}

#[test]
fn scatter_ring() {
    // sum_j g(min(2^j, P-2^j) m/P) + floor(log2 P) L + (P-1)(g(m/P) + L) for affine g; no rank is sent what it holds already, so
    // this is reached, never exceeded
    for machine in &MACHINES {
        for p in 3..=33 {
            let block = 512;
            let shape = Shape::new(p, 0, block * p);
            let got = completion(&bcast::algorithm("scatter_ring").unwrap().schedule(&shape, &Parameters::default()).unwrap(), machine);
            let got = got.unwrap();
            let scatter: f64 = (0..p.next_power_of_two().ilog2()).map(|j| machine.g((1 << j).min(p - (1 << j)) * block)).sum();
            let bound = scatter + floor_log2(p) * machine.l + (p - 1) as f64 * (machine.g(block) + machine.l);
            assert!(got <= bound * (1.0 + 1e-9), "P={p}: {got} above {bound}");
            assert!(got >= 0.5 * bound, "P={p}: {got} far below {bound}");
        }
    }
}

#[test]
fn scatter_doubling_of_powers_of_two_is_below_its_closed_form() {
    for machine in &MACHINES {
        for p in [2, 4, 8, 16, 32, 64] {
            let block = 512;
            let shape = Shape::new(p, 0, block * p);
            let schedule = bcast::algorithm("scatter_doubling").unwrap().schedule(&shape, &Parameters::default()).unwrap();
            let got = completion(&schedule, machine).unwrap();
            let k = ceil_log2(p) as u32;
            let scatter: f64 = (0..k).map(|j| machine.g((1 << j) * block)).sum::<f64>() + k as f64 * machine.l;
            let gather: f64 = (0..k).map(|j| machine.g((1 << j) * block) + machine.l).sum();
            assert!(got <= (scatter + gather) * (1.0 + 1e-9) && got >= 0.45 * (scatter + gather), "P={p}: {got}, {}", scatter + gather);
        }
    }
}

/// What an algorithm of a collective takes on a machine, from the first and from a middle root, for whole messages or blocks of several sizes, must be
/// `want(machine, ranks, bytes)`.
fn takes<M: CostModel>(
    [name, algorithm]: [&str; 2],
    machines: &[M],
    ranks: impl Iterator<Item = usize> + Clone,
    parameters: Parameters,
    want: impl Fn(&M, usize, usize) -> f64,
) {
    let collective = collective(name).unwrap();
    let algorithm = collective.algorithm(algorithm).unwrap();
    for machine in machines {
        for p in ranks.clone() {
            for bytes in if parameters.segment == 0 { [64, 4096, 1 << 16] } else { [64, 320, 1600] } {
                for root in if collective.rooted { vec![0, p / 2] } else { vec![0] } {
                    let schedule = algorithm.schedule(&collective.shape(p, root, bytes), &parameters).unwrap();
                    let (got, want) = (completion(&schedule, machine).unwrap(), want(machine, p, bytes));
                    assert!((got / want - 1.0).abs() < 1e-9, "{name} {} P={p} m={bytes} root={root}: {got} is not {want}", algorithm.name);
                }
            }
        }
    }
}

/// Hockney with a time for combining: a message takes `a + m b`, combining it `m c`.
struct Hockney {
    a: f64,
    b: f64,
    c: f64,
}

impl Hockney {
    fn of(&self, messages: f64, bytes: f64, combined: f64) -> f64 {
        messages * self.a + bytes * self.b + combined * self.c
    }
}

impl CostModel for Hockney {
    fn cost(&self, _: Link, bytes: usize) -> Cost {
        let t = self.of(1.0, bytes as f64, 0.0);
        Cost { send_overhead: t, gap: t, transit: t, recv_overhead: 0.0, link_gap: 0.0 }
    }

    fn combine(&self, _: Rank, bytes: usize) -> f64 {
        self.c * bytes as f64
    }
}

const HOCKNEY: [Hockney; 3] =
    [Hockney { a: 20e-6, b: 8e-9, c: 1e-9 }, Hockney { a: 1e-6, b: 1e-10, c: 2e-10 }, Hockney { a: 5e-3, b: 9e-8, c: 0.0 }];

const POWERS: [usize; 6] = [2, 4, 8, 16, 32, 64];

#[test]
fn scatters() {
    let none = Parameters::default();
    takes(["scatter", "flat"], &MACHINES, 2..=64, none, |x, p, m| (p - 1) as f64 * x.g(m) + x.l);
    takes(["scatter", "chain"], &MACHINES, 2..=33, none, |x, p, m| (1..p).map(|j| x.g(j * m)).sum::<f64>() + (p - 1) as f64 * x.l);
    takes(["scatter", "segmented_chain"], &MACHINES, 2..=64, none, |x, p, m| (p - 1) as f64 * (x.g(m) + x.l));
    takes(["scatter", "segmented_chain"], &MACHINES, 2..=33, Parameters::of(64, 0), |x, p, m| {
        let (g, k) = (x.g(64), (m / 64) as f64);
        x.l + ((p - 1) as f64 * k * g).max(k * g + (p - 2) as f64 * (g + x.l))
    });
    takes(["scatter", "binomial"], &MACHINES, 2..=64, none, |x, p, m| {
        let sent = (0..p.next_power_of_two().ilog2()).map(|j| x.g((1 << j).min(p - (1 << j)) * m));
        sent.sum::<f64>() + floor_log2(p) * x.l
    });
    takes(["scatter", "knomial"], &MACHINES, POWERS_OF_FOUR.into_iter(), none, by_fours);
}

const POWERS_OF_FOUR: [usize; 3] = [4, 16, 64];

/// A k-nomial tree of radix 4: the last child of each level has the longest way.
fn by_fours(x: &PLogP, p: usize, m: usize) -> f64 {
    (0..p.ilog(4)).map(|j| 3.0 * x.g(4usize.pow(j) * m) + x.l).sum()
}

#[test]
fn gathers() {
    let none = Parameters::default();
    // they come together, and the root takes in their bytes one after the other: its port, or its processor where that is slower
    takes(["gather", "flat"], &MACHINES, 2..=64, none, |x, p, m| {
        x.g(m) + x.l + (p - 2) as f64 * (x.g_byte * m as f64).max(x.overheads.1 * x.g(m))
    });
    takes(["gather", "chain"], &MACHINES, 2..=33, none, |x, p, m| (1..p).map(|j| x.g(j * m)).sum::<f64>() + (p - 1) as f64 * x.l);
    takes(["gather", "segmented_chain"], &MACHINES, 2..=64, none, |x, p, m| (p - 1) as f64 * (x.g(m) + x.l));
    takes(["gather", "binomial"], &MACHINES, POWERS.into_iter(), none, |x, p, m| {
        (0..p.ilog2()).map(|j| x.g(m << j)).sum::<f64>() + floor_log2(p) * x.l
    });
    // children that end at the same time come together: a root takes in their bytes one after the other, and their overheads side by side with those
    for x in &MACHINES {
        for (p, m) in POWERS_OF_FOUR.into_iter().flat_map(|p| [64, 4096, 1 << 16].map(|m| (p, m))) {
            let gather = collective("gather").unwrap();
            let got = completion(&gather.algorithm("knomial").unwrap().schedule(&gather.shape(p, p / 2, m), &none).unwrap(), x).unwrap();
            let bytes = 3.0 * (0..p.ilog(4)).map(|j| 4usize.pow(j) * m).sum::<usize>() as f64 * x.g_byte;
            assert!(got <= by_fours(x, p, m) * (1.0 + 1e-9) && got >= bytes, "P={p} m={m}: {got}, {}", by_fours(x, p, m));
        }
    }
}

#[test]
fn allgathers() {
    let none = Parameters::default();
    let all = |p: usize, m: usize| ((p - 1) * m) as f64;
    takes(["allgather", "ring"], &HOCKNEY, 2..=33, none, |x, p, m| x.of((p - 1) as f64, all(p, m), 0.0));
    takes(["allgather", "recursive_doubling"], &HOCKNEY, POWERS.into_iter(), none, |x, p, m| x.of(floor_log2(p), all(p, m), 0.0));
    takes(["allgather", "bruck"], &HOCKNEY, 2..=64, none, |x, p, m| x.of(ceil_log2(p), all(p, m), 0.0));
    takes(["allgather", "neighbour_exchange"], &HOCKNEY, (2..=64).step_by(2), none, |x, p, m| x.of((p / 2) as f64, all(p, m), 0.0));
    takes(["allgather", "direct"], &HOCKNEY, 2..=33, none, |x, p, m| x.of((p - 1) as f64, all(p, m), 0.0));
    takes(["allgather", "gather_bcast"], &HOCKNEY, POWERS.into_iter(), none, |x, p, m| {
        x.of(2.0 * floor_log2(p), all(p, m) + floor_log2(p) * (p * m) as f64, 0.0)
    });
}

#[test]
fn alltoalls() {
    let none = Parameters::default();
    takes(["alltoall", "pairwise"], &MACHINES, 2..=33, none, |x, p, m| (p - 1) as f64 * (x.g(m) + x.l));
    // less for other numbers of ranks, where some rounds need not wait for the one before
    takes(["alltoall", "bruck"], &MACHINES, POWERS.into_iter(), none, |x, p, m| {
        let moved = |j: u32| (1..p).filter(|i| i >> j & 1 == 1).count();
        (0..p.next_power_of_two().ilog2()).map(|j| x.g(moved(j) * m) + x.l).sum::<f64>()
    });
    // all at once: between the bounds of BSM04
    for algorithm in ["direct", "rotated"] {
        let collective = collective("alltoall").unwrap();
        for (machine, p) in MACHINES.iter().flat_map(|x| (2..=33).map(move |p| (x, p))) {
            let schedule = collective.algorithm(algorithm).unwrap().schedule(&collective.shape(p, 0, 1000), &none).unwrap();
            let (got, g, n) = (completion(&schedule, machine).unwrap(), machine.g(1000), (p - 1) as f64);
            // those who all send to the same rank at the same time wait at its port besides, which the bounds do not know
            let waits = if algorithm == "direct" { (n - 1.0) * machine.g_byte * 1000.0 } else { 0.0 };
            let (low, high) =
                (n * g * (machine.overheads.0 + machine.overheads.1) + machine.l, n * g * (1.0 + machine.overheads.1) + machine.l + waits);
            assert!(got >= low * (1.0 - 1e-9) && got <= high * (1.0 + 1e-9), "{algorithm} P={p}: {got} is not {low} to {high}");
        }
    }
}

#[test]
fn reductions() {
    let none = Parameters::default();
    takes(["reduce", "binomial"], &HOCKNEY, POWERS.into_iter(), none, |x, p, m| floor_log2(p) * x.of(1.0, m as f64, m as f64));
    takes(["reduce", "chain"], &HOCKNEY, 2..=33, none, |x, p, m| (p - 1) as f64 * x.of(1.0, m as f64, m as f64));
    let parts = |p: usize, m: usize| ((p - 1) * m / p) as f64;
    takes(["reduce", "rabenseifner"], &HOCKNEY, POWERS[..3].iter().copied(), none, |x, p, m| {
        x.of(2.0 * floor_log2(p), 2.0 * parts(p, m), parts(p, m))
    });
}

#[test]
fn a_pipeline_reduces_at_the_pace_of_its_slowest_part() {
    // a port that is busy for a gap, beside a processor that combines
    struct Machine(PLogP, f64);
    impl CostModel for Machine {
        fn cost(&self, link: Link, bytes: usize) -> Cost {
            self.0.cost(link, bytes)
        }
        fn combine(&self, _: Rank, bytes: usize) -> f64 {
            self.1 * self.0.g(bytes)
        }
    }
    for c in [0.0, 0.5, 1.0, 2.0] {
        let machine = Machine(PLogP { l: 30e-6, g0: 12e-6, g_byte: 9e-9, overheads: (0.0, 0.0) }, c);
        takes(["reduce", "segmented_chain"], &[machine], 2..=33, Parameters::of(64, 0), |x, p, m| {
            let (g, l) = (x.0.g(64), x.0.l);
            (p - 1) as f64 * (g + l + c * g) + ((m / 64) as f64 - 1.0) * g * c.max(1.0)
        });
    }
}

#[test]
fn allreduces() {
    let none = Parameters::default();
    let parts = |p: usize, m: usize| ((p - 1) * m / p) as f64;
    takes(["allreduce", "recursive_doubling"], &HOCKNEY, POWERS.into_iter(), none, |x, p, m| floor_log2(p) * x.of(1.0, m as f64, m as f64));
    takes(["allreduce", "knomial"], &HOCKNEY, 2..=16, Parameters::of(0, 16), |x, p, m| (p - 1) as f64 * x.of(1.0, m as f64, m as f64));
    takes(["allreduce", "rabenseifner"], &HOCKNEY, POWERS[..3].iter().copied(), none, |x, p, m| {
        x.of(2.0 * floor_log2(p), 2.0 * parts(p, m), parts(p, m))
    });
    takes(["allreduce", "ring"], &HOCKNEY, [2, 4, 8].into_iter(), none, |x, p, m| {
        x.of(2.0 * (p - 1) as f64, 2.0 * parts(p, m), parts(p, m))
    });
    takes(["allreduce", "reduce_bcast"], &HOCKNEY, POWERS.into_iter(), none, |x, p, m| floor_log2(p) * x.of(2.0, 2.0 * m as f64, m as f64));
}

#[test]
fn reduce_scatters() {
    let none = Parameters::default();
    let all = |p: usize, m: usize| ((p - 1) * m) as f64;
    takes(["reduce_scatter", "recursive_halving"], &HOCKNEY, POWERS.into_iter(), none, |x, p, m| x.of(floor_log2(p), all(p, m), all(p, m)));
    takes(["reduce_scatter", "pairwise"], &HOCKNEY, 2..=33, none, |x, p, m| x.of((p - 1) as f64, all(p, m), all(p, m)));
    takes(["reduce_scatter", "ring"], &HOCKNEY, 2..=33, none, |x, p, m| x.of((p - 1) as f64, all(p, m), all(p, m)));
}
