//! Blocks of ranks on their way through coordinators: collected up a group's tree, exchanged between coordinators packed group by group, dealt out down a
//! tree.

use super::coordinated::Part;
use crate::collective::data_flow::DataFlow;
use crate::collective::{Algorithm, Shape, bcast};
use crate::error::Result;
use crate::schedule::{Lane, Span};
use crate::topology::Rank;
use std::ops::Range;

/// The lanes of what goes up, and of what goes down, and the first of those between coordinators.
pub const UP: Lane = 0;
pub const DOWN: Lane = 1;
pub const BETWEEN: Lane = 2;

/// The trees whose subtrees are positions that follow each other, so that their blocks are sent as they lie.
pub fn trees() -> Vec<&'static Algorithm> {
    // the first of a position's children is the next one
    bcast::trees().filter(|a| a.tree.is_some_and(|tree| tree(1, 7, 2).children.into_iter().min().is_none_or(|child| child == 2))).collect()
}

/// Blocks of so many bytes of all ranks, packed group by group in the order of `groups`.
pub struct Packed<'a> {
    groups: &'a [Vec<Rank>],
    /// The blocks before each group's.
    before: Vec<usize>,
    bytes: usize,
    /// Where they begin in the scratch.
    at: usize,
}

impl<'a> Packed<'a> {
    /// From a place of the scratch on.
    pub fn new(groups: &'a [Vec<Rank>], bytes: usize, at: usize) -> Packed<'a> {
        let before = groups.iter().scan(0, |sum, group| Some(std::mem::replace(sum, *sum + group.len()))).collect();
        Packed { groups, before, bytes, at }
    }

    /// The bytes of all.
    pub fn len(&self) -> usize {
        self.groups.iter().map(Vec::len).sum::<usize>() * self.bytes
    }

    /// Where a group's are.
    pub fn group(&self, group: usize) -> Span {
        Span::scratch(self.at + self.before[group] * self.bytes, self.groups[group].len() * self.bytes)
    }

    /// Where a group's are in `whole`, in which they lie in the order of ranks, if they follow each other there; else where they are packed.
    pub fn home(&self, group: usize, whole: Span) -> Span {
        let mut runs = runs(&self.groups[group]);
        match (runs.next(), runs.next()) {
            (Some((rank, positions)), None) => self.in_order(rank, positions.len()).within(whole),
            _ => self.group(group),
        }
    }

    /// Each run of ranks of a group that follow each other: its blocks as they are packed, and in `whole`.
    pub fn runs(&self, group: usize, whole: Span) -> impl Iterator<Item = (Span, Span)> {
        let packed = self.group(group);
        runs(&self.groups[group]).map(move |(rank, positions)| {
            (
                Span::output(positions.start * self.bytes, positions.len() * self.bytes).within(packed),
                self.in_order(rank, positions.len()).within(whole),
            )
        })
    }

    fn in_order(&self, rank: Rank, blocks: usize) -> Span {
        Span::output(rank * self.bytes, blocks * self.bytes)
    }
}

/// How many ranks the largest group has.
pub fn largest(groups: &[Vec<Rank>]) -> usize {
    groups.iter().map(Vec::len).max().unwrap_or(0)
}

/// Bytes of a block of each of its ranks.
pub fn blocks_of_a_group(groups: &[Vec<Rank>], shape: &Shape) -> usize {
    largest(groups).saturating_mul(shape.bytes)
}

/// Runs of ranks that follow each other: the first one, and their positions.
pub fn runs(ranks: &[Rank]) -> impl Iterator<Item = (Rank, Range<usize>)> {
    let mut begin = 0;
    ranks.chunk_by(|a, b| a + 1 == *b).map(move |run| {
        let positions = begin..begin + run.len();
        begin = positions.end;
        (run[0], positions)
    })
}

/// What some positions from `first` on have in `whole`, each so many bytes.
fn held(whole: Span, first: usize, positions: Range<usize>, bytes: usize) -> Span {
    Span::output((positions.start - first) * bytes, positions.len() * bytes).within(whole)
}

/// Brings what each rank of a group has, all the same number of bytes, to the coordinator, where it gets `into` by positions.
pub fn collect(flow: &mut DataFlow, part: &Part, own: Span, into: Span) {
    let (v, ranks, node) = (part.position, part.ranks(), part.node(part.position));
    let into = if v == 0 { into } else { Span::scratch(0, part.below(v).len() * own.len) };
    let ready = if v > 0 && node.children.is_empty() {
        own
    } else {
        flow.copy(own, held(into, v, v..v + 1, own.len));
        into
    };
    // those with the smallest subtrees, which are served last, are ready first
    for &child in node.children.iter().rev() {
        flow.recv(ranks[child], held(into, v, part.below(child), own.len));
    }
    if let Some(parent) = node.parent {
        flow.send(ranks[parent], ready);
    }
}

/// The way back: deals out what the coordinator has in `from`, by positions; each rank gets `own`, of so many bytes, if it wants it.
pub fn deal(flow: &mut DataFlow, part: &Part, from: Span, bytes: usize, own: Option<Span>) {
    let (v, ranks, node) = (part.position, part.ranks(), part.node(part.position));
    let mut from = if v == 0 { from } else { Span::scratch(0, part.below(v).len() * bytes) };
    if let Some(parent) = node.parent {
        if let (true, Some(own)) = (node.children.is_empty(), own) {
            from = own;
        }
        flow.recv(ranks[parent], from);
    }
    for &child in &node.children {
        flow.send(ranks[child], held(from, v, part.below(child), bytes));
    }
    if let Some(own) = own {
        flow.copy(held(from, v, v..v + 1, bytes), own);
    }
}

/// What coordinators do among each other with packed blocks, of which each group has one: `place` says where the block lies that the algorithm, for blocks
/// of one byte, has at a place. Messages are cut into the segments.
pub fn exchange(flow: &mut DataFlow, part: &Part, in_place: bool, place: impl Fn(Span) -> Span) -> Result<()> {
    let one = Shape { ranks: part.groups.len(), root: 0, bytes: 1, in_place, elements: crate::schedule::Elements::default() };
    flow.embed(&part.between(&one)?, part.shape, (BETWEEN, part.segment), |group| part.groups[group][0], place);
    Ok(())
}
