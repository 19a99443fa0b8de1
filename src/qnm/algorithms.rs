//! What the algorithms of collective operations send, of which MPI libraries choose: closed forms of Thakur, Rabenseifner, Gropp
//! (International Journal of High Performance Computing Applications 19(1), 2005), Pjesivac-Grbovic and others (Cluster Computing 10, 2007)
//! and, for the butterfly, Traeff (EuroPVM/MPI 2005). `p` ranks, `m` bytes.

use super::partners::{Partners, Rounds};

/// What a process sends in one call, in the mean over all, and what the last one waits for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sent {
    /// Messages of a process.
    pub messages: f64,
    /// Bytes of a process, in all of them.
    pub bytes: f64,
    /// Messages one after the other, until the last process has what it needs.
    pub rounds: Rounds,
}

/// An algorithm.
pub type Algorithm = fn(f64, f64) -> Sent;

impl Sent {
    /// From messages and bytes of all processes; so many delays with such partners, and bytes on that way.
    fn of_all(p: f64, messages: f64, bytes: f64, partners: Partners, delays: f64, path_bytes: f64) -> Sent {
        Sent { messages: messages / p, bytes: bytes / p, rounds: Rounds::of(partners, delays, path_bytes) }
    }

    /// Each process sends in each of so many rounds, with such partners; bytes of all rounds.
    pub fn in_rounds(partners: Partners, rounds: f64, bytes: f64) -> Sent {
        Sent { messages: rounds, bytes, rounds: Rounds::of(partners, rounds, bytes) }
    }

    /// So many of the messages of a process start without waiting for the ones before, beside the one whose delay is counted.
    fn starting(self, more: f64) -> Sent {
        Sent { rounds: self.rounds.starting(more.max(0.0)), ..self }
    }

    /// One operation after the other.
    pub fn then(self, other: Sent) -> Sent {
        Sent { messages: self.messages + other.messages, bytes: self.bytes + other.bytes, rounds: self.rounds.and(other.rounds) }
    }
}

/// Rounds in which every rank can hear of all.
fn rounds(p: f64) -> f64 {
    p.log2().ceil()
}

/// The largest power of two among `p` ranks, its logarithm, and the ranks beyond it.
fn power(p: f64) -> (f64, f64, f64) {
    let log = p.log2().floor();
    (log.exp2(), log, p - log.exp2())
}

/// Ones in the binary digits of all ranks: blocks that go over a binomial tree that gathers one from each, or in Bruck's rounds.
fn ones(p: f64) -> f64 {
    (0..p as u64).map(|rank| f64::from(rank.count_ones())).sum()
}

/// Each rank but the root gets all bytes once, over a tree of so many levels.
fn tree(p: f64, m: f64, partners: Partners, levels: f64) -> Sent {
    Sent::of_all(p, p - 1.0, (p - 1.0) * m, partners, levels, levels * m)
}

/// The root with each other rank, through one port.
pub fn linear(p: f64, m: f64) -> Sent {
    Sent::of_all(p, p - 1.0, (p - 1.0) * m, Partners::Anyone, 1.0, (p - 1.0) * m).starting(p - 2.0)
}

/// The same, when the root asks each rank for the first part, and then for the rest.
pub fn linear_in_parts(p: f64, m: f64) -> Sent {
    Sent::of_all(p, 3.0 * (p - 1.0), (p - 1.0) * m, Partners::Anyone, 3.0, (p - 1.0) * m).starting(3.0 * (p - 2.0))
}

/// Rank to rank.
pub fn chain(p: f64, m: f64) -> Sent {
    tree(p, m, Partners::Next, p - 1.0)
}

/// Rank to rank, in segments of 8 KiB.
pub fn pipeline(p: f64, m: f64) -> Sent {
    const SEGMENT: f64 = 8192.0;
    let segments = (m / SEGMENT).ceil().max(1.0);
    let rounds = p - 2.0 + segments;
    Sent::of_all(p, (p - 1.0) * segments, (p - 1.0) * m, Partners::Next, rounds, rounds * m / segments)
}

/// Two children each.
pub fn binary(p: f64, m: f64) -> Sent {
    tree(p, m, Partners::Doubling, power(p).1)
}

/// Ranks that have it double in each round.
pub fn binomial(p: f64, m: f64) -> Sent {
    tree(p, m, Partners::Doubling, rounds(p))
}

/// Ranks that have it grow fourfold in each round.
pub fn knomial4(p: f64, m: f64) -> Sent {
    tree(p, m, Partners::Doubling, (rounds(p) / 2.0).ceil())
}

/// A broadcast by a binomial scatter and doubling.
pub fn scatter_doubling(p: f64, m: f64) -> Sent {
    let bytes = m * (p - 1.0) / p;
    let doubling = Sent { messages: p.log2(), bytes, rounds: Rounds::of(Partners::Doubling, rounds(p), bytes) };
    gather_binomial(p, m / p).then(doubling)
}

/// A broadcast by a binomial scatter and a ring.
pub fn scatter_ring(p: f64, m: f64) -> Sent {
    gather_binomial(p, m / p).then(ring(p, m / p))
}

/// A block to or from each rank over a binomial tree.
pub fn gather_binomial(p: f64, block: f64) -> Sent {
    Sent::of_all(p, p - 1.0, ones(p) * block, Partners::Doubling, rounds(p), (p - 1.0) * block)
}

/// A reduction by halves and a binomial gather.
pub fn halving_gather(p: f64, m: f64) -> Sent {
    halving(p, m / p).then(gather_binomial(p, m / p))
}

/// All in rounds, each rank with one at twice the distance.
pub fn dissemination(p: f64, m: f64) -> Sent {
    Sent::in_rounds(Partners::Doubling, rounds(p), rounds(p) * m)
}

/// To the root and back over a binomial tree.
pub fn up_and_down(p: f64, m: f64) -> Sent {
    binomial(p, m).then(binomial(p, m))
}

/// Pairs exchange all in each round; ranks beyond a power of two give theirs to a neighbour first, and get the result last.
pub fn doubling(p: f64, m: f64) -> Sent {
    let (power, log, beyond) = power(p);
    let all = log * power + 2.0 * beyond;
    let delays = log + if beyond > 0.0 { 2.0 } else { 0.0 };
    Sent::of_all(p, all, all * m, Partners::Doubling, delays, delays * m)
}

/// Rabenseifner's: halves and back. As MPICH has it, ranks beyond a power of two give all they have first, and get all last.
pub fn rabenseifner(p: f64, m: f64) -> Sent {
    let (power, log, beyond) = power(p);
    let inside = 2.0 * (power - 1.0) * m;
    let (more, more_bytes) = if beyond > 0.0 { (2.0, 2.0 * m) } else { (0.0, 0.0) };
    let (delays, path_bytes) = (2.0 * log + more, inside / power + more_bytes);
    Sent::of_all(p, 2.0 * log * power + 2.0 * beyond, inside + 2.0 * beyond * m, Partners::Doubling, delays, path_bytes)
}

/// The same as Open MPI has it: ranks beyond a power of two share the first sums with a neighbour, by halves.
pub fn rabenseifner_shared(p: f64, m: f64) -> Sent {
    let (power, log, beyond) = power(p);
    let inside = 2.0 * (power - 1.0) * m;
    let (more, more_bytes) = if beyond > 0.0 { (3.0, 2.0 * m) } else { (0.0, 0.0) };
    let (delays, path_bytes) = (2.0 * log + more, inside / power + more_bytes);
    Sent::of_all(p, 2.0 * log * power + 4.0 * beyond, inside + 2.5 * beyond * m, Partners::Doubling, delays, path_bytes)
}

/// A sum around a ring, block by block, and back.
pub fn ring_reduce(p: f64, m: f64) -> Sent {
    ring(p, m / p).then(ring(p, m / p))
}

/// Blocks go around.
pub fn ring(p: f64, block: f64) -> Sent {
    Sent::in_rounds(Partners::Next, p - 1.0, block * (p - 1.0))
}

/// A block to each other rank.
pub fn direct(p: f64, block: f64) -> Sent {
    Sent::in_rounds(Partners::Anyone, p - 1.0, block * (p - 1.0))
}

/// The same, all of them under way at once.
pub fn at_once(p: f64, block: f64) -> Sent {
    Sent { messages: p - 1.0, bytes: block * (p - 1.0), rounds: Rounds::of(Partners::Anyone, 1.0, block * (p - 1.0)) }.starting(p - 2.0)
}

/// Pairs of neighbours exchange two blocks at a time; an even number of ranks.
pub fn neighbours(p: f64, block: f64) -> Sent {
    Sent::in_rounds(Partners::Next, p / 2.0, block * (p - 1.0))
}

/// Blocks that a rank has double in each round.
pub fn gather_doubling(p: f64, block: f64) -> Sent {
    Sent::in_rounds(Partners::Doubling, rounds(p), block * (p - 1.0))
}

/// Bruck's: half of all blocks in each round.
pub fn bruck(p: f64, block: f64) -> Sent {
    Sent::in_rounds(Partners::Doubling, rounds(p), ones(p) * block)
}

/// Sums by halves, until each rank has its block; ranks beyond a power of two give all to a neighbour, and get their block.
pub fn halving(p: f64, block: f64) -> Sent {
    let (power, log, beyond) = power(p);
    let all = (power - 1.0) * p + beyond * (p + 1.0);
    let more = if beyond > 0.0 { 2.0 } else { 0.0 };
    let path = p * (power - 1.0) / power + if beyond > 0.0 { p + 1.0 } else { 0.0 };
    Sent::of_all(p, log * power + 2.0 * beyond, all * block, Partners::Doubling, log + more, path * block)
}

/// The same over a butterfly: blocks whose place is not its own mirror are exchanged last.
pub fn butterfly(p: f64, block: f64) -> Sent {
    let (power, log, _) = power(p);
    let swaps = power - (log / 2.0).ceil().exp2();
    halving(p, block).then(Sent::of_all(p, swaps, swaps * block, Partners::Anyone, 1.0, block))
}

/// A sum of blocks by doubling: nearly all of them in each round.
pub fn doubling_of_blocks(p: f64, block: f64) -> Sent {
    Sent::in_rounds(Partners::Doubling, rounds(p), 2.0 * (p - 1.0) * block)
}

/// A broadcast of halves over two binary trees, whose ranks then exchange them.
pub fn split_binary(p: f64, m: f64) -> Sent {
    let levels = power(p).1;
    Sent::of_all(p, 2.0 * (p - 1.0), (p - 1.0) * m, Partners::Doubling, levels + 1.0, (levels + 1.0) * m / 2.0)
}
