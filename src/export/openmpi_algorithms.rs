//! The algorithms of Open MPI's `coll/tuned` that rules may name and that can be replayed: numbers as in 4.1, 5.0 and 6.0.
//!
//! Trees that differ from ours are built here: over groups it hangs on the tree which messages cross.

use super::library::{LibraryAlgorithm, of};
use crate::collective::data_flow::DataFlow;
use crate::collective::tree::{Node, chain, flat, knomial, tree_program};
use crate::collective::{Algorithm, Collective, Parameters, Shape};
use crate::collective::{allgather, allreduce, alltoall, barrier, bcast, gather, reduce, scatter};
use crate::schedule::{Program, Span};
use crate::topology::Rank;

/// The algorithms of a collective; none where rules are left to the library.
pub fn algorithms(collective: &Collective) -> &'static [LibraryAlgorithm] {
    of(&ALGORITHMS, collective)
}

static ALGORITHMS: [(&Collective, &[LibraryAlgorithm]); 8] = [
    (&allgather::COLLECTIVE, &ALLGATHER),
    (&allreduce::COLLECTIVE, &ALLREDUCE),
    (&alltoall::COLLECTIVE, &ALLTOALL),
    (&barrier::COLLECTIVE, &BARRIER),
    (&bcast::COLLECTIVE, &BCAST),
    (&gather::COLLECTIVE, &GATHER),
    (&reduce::COLLECTIVE, &REDUCE),
    (&scatter::COLLECTIVE, &SCATTER),
];

const fn plain(id: u32, name: &'static str, ours: &'static Algorithm) -> LibraryAlgorithm {
    LibraryAlgorithm::new(id, name, ours)
}

/// One that deals vectors out in blocks.
const fn blocks(id: u32, name: &'static str, ours: &'static Algorithm) -> LibraryAlgorithm {
    LibraryAlgorithm { blocks: true, ..plain(id, name, ours) }
}

const fn tree(id: u32, name: &'static str, algorithm: &'static Algorithm) -> LibraryAlgorithm {
    LibraryAlgorithm { segmented: true, ..LibraryAlgorithm::new(id, name, algorithm) }
}

/// One whose root serves a rank when the one before is done.
const fn one_by_one(name: &'static str, algorithm: &'static Algorithm) -> LibraryAlgorithm {
    LibraryAlgorithm::new(1, name, algorithm)
}

static BCAST: [LibraryAlgorithm; 9] = [
    plain(1, "basic_linear", &bcast::flat::ALGORITHM),
    LibraryAlgorithm { fan_outs: &[2, 4, 8], ..tree(2, "chain", &CHAINS) },
    tree(3, "pipeline", &PIPELINE),
    tree(4, "split_binary_tree", &SPLIT_BINARY),
    tree(5, "binary_tree", &BINARY),
    tree(6, "binomial", &BINOMIAL),
    tree(7, "knomial", &KNOMIAL),
    LibraryAlgorithm { fits: usize::is_power_of_two, ..plain(8, "scatter_allgather", &bcast::scatter_doubling::ALGORITHM) },
    plain(9, "scatter_allgather_ring", &bcast::scatter_ring::ALGORITHM),
];

static REDUCE: [LibraryAlgorithm; 6] = [
    one_by_one("linear", &LINEAR_REDUCE),
    LibraryAlgorithm { fan_outs: &[2, 4, 8], commuting: true, ..tree(2, "chain", &REDUCE_CHAINS) },
    LibraryAlgorithm { commuting: true, ..tree(3, "pipeline", &REDUCE_PIPELINE) },
    LibraryAlgorithm { commuting: true, ..tree(4, "binary", &REDUCE_BINARY) },
    LibraryAlgorithm { commuting: true, ..tree(5, "binomial", &REDUCE_BINOMIAL) },
    blocks(7, "rabenseifner", &reduce::rabenseifner::ALGORITHM),
];

static ALLREDUCE: [LibraryAlgorithm; 4] = [
    plain(3, "recursive_doubling", &allreduce::recursive_doubling::ALGORITHM),
    LibraryAlgorithm { commuting: true, ..blocks(4, "ring", &allreduce::ring::ALGORITHM) },
    LibraryAlgorithm { commuting: true, segmented: true, ..blocks(5, "segmented_ring", &allreduce::segmented_ring::ALGORITHM) },
    blocks(6, "rabenseifner", &allreduce::rabenseifner::ALGORITHM),
];

static ALLGATHER: [LibraryAlgorithm; 4] = [
    plain(2, "bruck", &allgather::bruck::ALGORITHM),
    LibraryAlgorithm { fits: usize::is_power_of_two, ..plain(3, "recursive_doubling", &allgather::recursive_doubling::ALGORITHM) },
    plain(4, "ring", &allgather::ring::ALGORITHM),
    LibraryAlgorithm { fits: |ranks| ranks.is_multiple_of(2), ..plain(5, "neighbor", &allgather::neighbour_exchange::ALGORITHM) },
];

static ALLTOALL: [LibraryAlgorithm; 3] = [
    plain(1, "linear", &alltoall::rotated::ALGORITHM),
    plain(2, "pairwise", &alltoall::pairwise::ALGORITHM),
    plain(3, "modified_bruck", &alltoall::bruck::ALGORITHM),
];

static BARRIER: [LibraryAlgorithm; 4] = [
    plain(1, "linear", &barrier::flat::ALGORITHM),
    plain(2, "double_ring", &barrier::double_ring::ALGORITHM),
    plain(4, "bruck", &barrier::dissemination::ALGORITHM),
    plain(6, "tree", &barrier::tree::ALGORITHM),
];

static GATHER: [LibraryAlgorithm; 2] = [one_by_one("basic_linear", &LINEAR_GATHER), plain(2, "binomial", &gather::binomial::ALGORITHM)];

static SCATTER: [LibraryAlgorithm; 2] = [one_by_one("basic_linear", &LINEAR_SCATTER), plain(2, "binomial", &scatter::binomial::ALGORITHM)];

/// A broadcast along a tree, segment by segment; a radix is the fan-out.
macro_rules! down {
    ($name:literal, $summary:literal, $tree:expr) => {
        Algorithm {
            name: $name,
            summary: $summary,
            citation: "Open MPI, coll/tuned",
            segmented: true,
            builder: Some(|me, shape, p| tree_program(me, shape, p, |v, n| $tree(v, n, p.radix))),
            ..Algorithm::NEW
        }
    };
}

/// A reduction along a tree, segment by segment; a radix is the fan-out.
macro_rules! up {
    ($name:literal, $summary:literal, $tree:expr) => {
        Algorithm {
            name: $name,
            summary: $summary,
            citation: "Open MPI, coll/tuned",
            segmented: true,
            builder: Some(|me, shape, p| reduce::tree_program(me, shape, p.segment, |v, n| $tree(v, n, p.radix))),
            ..Algorithm::NEW
        }
    };
}

static CHAINS: Algorithm = down!("chains", "chains that begin at the root", chains);
static PIPELINE: Algorithm = down!("pipeline", "one chain", |v, n, _| chain(v, n));
static BINARY: Algorithm = down!("binary_tree", "binary tree, level by level", |v, n, _| levels(v, n));
static BINOMIAL: Algorithm = down!("binomial", "binomial tree, neighbours first", |v, n, _| binomial(v, n));
static KNOMIAL: Algorithm = down!("knomial", "tree of radix 4", |v, n, _| knomial(v, n, 4));
static SPLIT_BINARY: Algorithm = Algorithm {
    name: "split_binary_tree",
    summary: "halves of the message down the two sides of a binary tree, then partners swap",
    citation: "Open MPI, coll/tuned",
    segmented: true,
    exchanges_halves: true,
    builder: Some(|me, shape, p| bcast::split_binary::along(me, shape, p, levels)),
    ..Algorithm::NEW
};
static REDUCE_CHAINS: Algorithm = up!("chains", "chains that end at the root", chains);
static REDUCE_PIPELINE: Algorithm = up!("pipeline", "one chain", |v, n, _| chain(v, n));
static REDUCE_BINARY: Algorithm = up!("binary", "binary tree, level by level", |v, n, _| levels(v, n));
static REDUCE_BINOMIAL: Algorithm = up!("binomial", "binomial tree", |v, n, _| knomial(v, n, 2));

/// Unlike ours it asks for a vector when the one before is combined: each waits for a handshake of its own.
static LINEAR_REDUCE: Algorithm = Algorithm {
    name: "linear",
    summary: "all to the root, which receives from one after the other, the last rank first",
    citation: "Open MPI, coll/base",
    builder: Some(linear_reduce),
    ..Algorithm::NEW
};

fn linear_reduce(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let (mut flow, result) = (DataFlow::new(), Span::output(0, shape.bytes));
    let given = if shape.in_place && me == shape.root { result } else { Span::input(0, shape.bytes) };
    if me != shape.root {
        flow.send(shape.root, given);
        return flow.done();
    }
    let [own, other] = [0, 1].map(|k| Span::scratch(k * shape.bytes, shape.bytes));
    let own = if shape.in_place { own } else { given };
    flow.copy(given, own);
    let mut came = None;
    for from in (0..shape.ranks).rev() {
        let last = from == shape.ranks - 1;
        match (from == me, last) {
            (true, true) => flow.copy(own, result),
            (true, false) => flow.combine(own, result),
            (false, true) => came = flow.recv(from, result),
            (false, false) => {
                came = flow.recv_after(from, other, came.as_slice()).or(came);
                flow.combine(other, result);
            }
        }
    }
    flow.done()
}

/// As [`LINEAR_REDUCE`], the first rank first.
static LINEAR_GATHER: Algorithm = Algorithm {
    name: "basic_linear",
    summary: "all to the root, which receives from one after the other",
    citation: "Open MPI, coll/base",
    builder: Some(|me, shape, _| in_turn(me, shape, true)),
    ..Algorithm::NEW
};

/// As [`LINEAR_GATHER`], the other way round.
static LINEAR_SCATTER: Algorithm = Algorithm {
    name: "basic_linear",
    summary: "the root sends to one after the other",
    citation: "Open MPI, coll/base",
    builder: Some(|me, shape, _| in_turn(me, shape, false)),
    ..Algorithm::NEW
};

/// The root's blocks, one after the other: those that come, or that it sends.
fn in_turn(me: Rank, shape: &Shape, comes: bool) -> Program {
    let (mut flow, bytes) = (DataFlow::new(), shape.bytes);
    let (all, own) =
        if comes { (Span::output as fn(_, _) -> _, Span::input(0, bytes)) } else { (Span::input as fn(_, _) -> _, Span::output(0, bytes)) };
    if me != shape.root {
        if comes {
            flow.send(shape.root, own)
        } else {
            flow.recv(shape.root, own)
        };
        return flow.done();
    }
    let mut before = None;
    for peer in 0..shape.ranks {
        let (block, after) = (all(peer * bytes, bytes), before.as_slice());
        match (peer == me, comes) {
            (true, _) if shape.in_place => {}
            (true, true) => flow.copy(own, block),
            (true, false) => flow.copy(block, own),
            (false, true) => before = flow.recv_after(peer, block, after).or(before),
            (false, false) => before = flow.send_after(peer, block, after).or(before),
        }
    }
    flow.done()
}

/// A binary tree in which level k are the positions from `2^k - 1` on, and the children of a position on it are `2^k` and `2^(k+1)` further.
///
/// ```text
///   0 -> 1, 2    1 -> 3, 5    2 -> 4, 6    3 -> 7, 11
/// ```
fn levels(v: usize, ranks: usize) -> Node {
    let wide = 1 << (v + 1).ilog2();
    let first = wide - 1;
    // above it are half as many positions, each with two children: the near one if it is in the first half of its level
    let parent = (v > 0).then(|| if v - first < wide / 2 { v - wide / 2 } else { v - wide });
    Node { parent, children: [v + wide, v + 2 * wide].into_iter().filter(|&c| c < ranks).collect() }
}

/// A binomial tree in which a position's parent is it without its highest bit, the nearest children first.
///
/// ```text
///   0 -> 1, 2, 4    1 -> 3, 5    2 -> 6    3 -> 7
/// ```
fn binomial(v: usize, ranks: usize) -> Node {
    let above = if v == 0 { 1 } else { 2 << v.ilog2() };
    let children = std::iter::successors(Some(above), |step| Some(2 * step)).map(|step| v + step).take_while(|&c| c < ranks).collect();
    Node { parent: (v > 0).then(|| v - above / 2), children }
}

/// So many chains of positions that follow each other, as long as each other or one shorter, the longer ones first.
fn chains(v: usize, ranks: usize, fan_out: usize) -> Node {
    let others = ranks - 1;
    if others <= fan_out {
        return flat(v, ranks);
    }
    let heads = |k: usize| 1 + k * (others / fan_out) + k.min(others % fan_out);
    let is_head = |v: usize| (0..fan_out).any(|k| heads(k) == v);
    if v == 0 {
        return Node { parent: None, children: (0..fan_out).map(heads).collect() };
    }
    let parent = if is_head(v) { 0 } else { v - 1 };
    Node { parent: Some(parent), children: (v + 1..ranks).take(1).filter(|&next| !is_head(next)).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::COLLECTIVES;
    use crate::schedule::check;

    #[test]
    fn every_algorithm_does_what_its_collective_is_for_among_any_number_of_ranks() {
        for collective in COLLECTIVES.iter().copied() {
            for library in algorithms(collective) {
                let algorithm = library.algorithm;
                let fan_outs = if library.fan_outs.is_empty() { &[0][..] } else { library.fan_outs };
                for (ranks, &fan_out) in (1..24).flat_map(|ranks| fan_outs.iter().map(move |fan_out| (ranks, fan_out))) {
                    for (root, segment) in [(0, 0), (ranks - 1, 64)] {
                        let bytes = if collective.sized() { 1000 } else { 0 };
                        let shape = collective.shape(ranks, if collective.rooted { root } else { 0 }, bytes);
                        if !(library.fits)(ranks) || !(algorithm.fits)(&shape) {
                            continue;
                        }
                        let schedule = algorithm.schedule(&shape, &Parameters::of(segment, fan_out)).unwrap();
                        check(&schedule, &(collective.specification)(&shape))
                            .unwrap_or_else(|e| panic!("{} {} among {ranks}: {e}", collective.name, library.name));
                    }
                }
            }
        }
    }

    #[test]
    fn trees_are_those_of_the_library() {
        let children = |tree: fn(usize, usize) -> Node, ranks: usize| (0..4).map(|v| tree(v, ranks).children).collect::<Vec<_>>();
        assert_eq!(children(levels, 16), [vec![1, 2], vec![3, 5], vec![4, 6], vec![7, 11]]);
        assert_eq!(children(binomial, 8), [vec![1, 2, 4], vec![3, 5], vec![6], vec![7]]);
        // seven others in three chains: 1 2 3, 4 5, 6 7
        assert_eq!(chains(0, 8, 3).children, [1, 4, 6]);
        let parents: Vec<usize> = (1..8).filter_map(|v| chains(v, 8, 3).parent).collect();
        assert_eq!(parents, [0, 1, 2, 0, 4, 0, 6]);
    }
}
