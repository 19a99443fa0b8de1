//! Alltoall: a block from each rank for each other.
//!
//! Formulas use pLogP terms for blocks of m bytes: `g(m)` gap, `L` latency, `os`, `or` overheads, P ranks. Where all send at once, receivers and switches
//! are contended for: from `(P-1) (os(m) + or(m)) + L` to `(P-1) (g(m) + or(m)) + L` (Barchet-Estefanel and Mounie 2004, Table 3).

use super::blocks::Blocks;
use super::data_flow::DataFlow;
use super::{Algorithm, Collective, Shape, Size};
use crate::schedule::{Layout, OpId, Piece, Program, Span, Specification, segments};
use crate::topology::Rank;

pub(crate) mod bruck;
mod direct;
mod native;
pub(crate) mod pairwise;
pub(crate) mod rotated;
mod split_rotated;
mod spread;

/// Every alltoall algorithm.
pub const ALGORITHMS: &[&Algorithm] = &[
    &direct::ALGORITHM,
    &rotated::ALGORITHM,
    &split_rotated::ALGORITHM,
    &pairwise::ALGORITHM,
    &spread::ALGORITHM,
    &bruck::ALGORITHM,
    &native::ALGORITHM,
];

/// One that goes between coordinators too: it sends each block by itself, at its place.
pub static DIRECT: &Algorithm = &direct::ALGORITHM;
/// One that goes between coordinators too: it sends each block by itself, at its place.
pub static ROTATED: &Algorithm = &rotated::ALGORITHM;
/// One that goes between coordinators too: it sends each block by itself, at its place.
pub static PAIRWISE: &Algorithm = &pairwise::ALGORITHM;
/// One that goes between coordinators too: it sends each block by itself, at its place.
pub static SPREAD: &Algorithm = &spread::ALGORITHM;

/// The alltoall.
pub static COLLECTIVE: Collective = Collective {
    name: "alltoall",
    function: "MPI_Alltoall",
    rooted: false,
    size: Size::Block,
    combines: false,
    tuned: true,
    layout,
    specification,
    places: |_| None,
    fallback: &rotated::ALGORITHM,
    algorithms: ALGORITHMS,
    open_mpi: &[("linear", 1), ("pairwise", 2), ("modified_bruck", 3), ("linear_sync", 4)],
};

/// P blocks of each, and as many for it to get; in place, they lie where the others come.
pub fn layout(shape: &Shape, _: Rank) -> Layout {
    let all = shape.ranks * shape.bytes;
    Layout { input: if shape.in_place { 0 } else { all }, output: all }
}

/// What an alltoall is for: each rank's block of everybody's, in the order of ranks.
pub fn specification(shape: &Shape) -> Specification {
    let mut specification = shape.specification(layout);
    let Span { buffer, len, .. } = given(shape, Blocks::by_rank(shape).all());
    for (rank, (before, after)) in specification.before.iter_mut().zip(&mut specification.after).enumerate() {
        before.push(Piece { buffer, ..Piece::input(len, rank) });
        after.extend((0..shape.ranks).map(|from| Piece::output(from * shape.bytes, shape.bytes, from, rank * shape.bytes)));
    }
    specification
}

/// Where some of a rank's own blocks lie.
fn given(shape: &Shape, blocks: Span) -> Span {
    if shape.in_place { blocks } else { blocks.within(Span::input(0, shape.ranks * shape.bytes)) }
}

/// Sends each block to its rank, in this order and in segments (0: in one piece), and receives from the rank that is as far before this one; each send
/// waits for what was sent and what came `window` steps before.
fn directly(me: Rank, shape: &Shape, order: impl Iterator<Item = Rank>, window: usize, segment: usize) -> Program {
    let (mut flow, ranks, blocks) = (DataFlow::new(), shape.ranks, Blocks::by_rank(shape));
    // in place, blocks make room for those that come
    let mut copies: Vec<Option<Span>> = vec![None; if shape.in_place { ranks } else { 0 }];
    let mut out_of_the_way = |flow: &mut DataFlow, k: usize| match copies.get_mut(k) {
        None => given(shape, blocks.one(k)),
        Some(copy) => *copy.get_or_insert_with(|| {
            let copy = blocks.one(k).within(Span::scratch(0, blocks.all().len));
            flow.copy(blocks.one(k), copy);
            copy
        }),
    };
    let mut steps: Vec<Vec<OpId>> = Vec::new();
    for to in order {
        let from = (2 * me + ranks - to) % ranks;
        let before = steps.len().checked_sub(window).map(|k| &steps[k][..]);
        // both before anything is sent: of many segments the last ones wait for a receiver, and with them what comes after them
        let block = out_of_the_way(&mut flow, to);
        out_of_the_way(&mut flow, from);
        let sent = segments(shape.bytes, segment).filter_map(|part| flow.send_after(to, part.within(block), before.unwrap_or_default()));
        let mut step: Vec<OpId> = sent.collect();
        step.extend(segments(shape.bytes, segment).filter_map(|part| flow.recv(from, part.within(blocks.one(from)))));
        steps.push(step);
    }
    flow.copy(given(shape, blocks.one(me)), blocks.one(me));
    flow.done()
}

/// The other ranks from the right neighbour on.
fn from_the_right(me: Rank, ranks: usize) -> impl Iterator<Item = Rank> {
    (1..ranks).map(move |step| (me + step) % ranks)
}
