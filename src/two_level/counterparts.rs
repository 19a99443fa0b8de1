//! The alltoall between counterparts (over lanes, Träff and Hunold, CLUSTER 2020; locality-aware, Bienz, Schafer and Skjellum, EuroMPI 2023): each rank exchanges
//! with the one at its position in each other group one message, which holds its blocks for all ranks of that group, and the ranks of each group exchange inside
//! what came. All ranks of a group share what goes far, and each block goes far once.
//!
//! Of groups of unlike sizes, what a rank sends goes to its position modulo their size. The group's own blocks are exchanged while what goes far is under way.
//! As a whole, what a rank passes on to another one is one message, as soon as all of it came; in segments each block goes on as soon as it came.

use super::blocks::{BETWEEN, DOWN, Packed, UP, largest};
use super::coordinated::{MOST_AT_ONCE, Part};
use crate::collective::Shape;
use crate::collective::data_flow::DataFlow;
use crate::error::Result;
use crate::schedule::{Buffer, Elements, Lane, Program, Span};
use crate::topology::Rank;

/// Bytes of its own that a rank takes, at most: all that it gives, packed, what comes from far, that as it is passed on, and what is passed on to it.
pub fn memory(groups: &[Vec<Rank>], shape: &Shape) -> usize {
    // there may be one more for each of its group than as many as all ranks have
    let came = shape.ranks.saturating_add(groups.len().saturating_mul(largest(groups)));
    came.saturating_mul(3).saturating_add(shape.ranks).saturating_mul(shape.bytes)
}

/// A message from another group: a block of `rank`, one of group `group`, for each rank of this one.
struct Came {
    group: usize,
    rank: Rank,
    blocks: Span,
}

/// The ranks of a group that a position of one of so many ranks gets messages from.
fn sources(ranks: &[Rank], position: usize, members: usize) -> impl Iterator<Item = Rank> {
    ranks.iter().copied().skip(position).step_by(members)
}

pub fn program(part: &Part) -> Result<Program> {
    let (shape, own, mut flow) = (part.shape, part.ranks(), DataFlow::new());
    let (m, members, me) = (shape.bytes, own.len(), part.position);
    let given = if shape.in_place { Span::output(0, shape.ranks * m) } else { Span::input(0, shape.ranks * m) };
    let of = |blocks: Span, k: usize| Span::output(k * m, m).within(blocks);
    let result = |rank: Rank| Span::output(rank * m, m);
    // in the order in which messages come from the left
    let n = part.groups.len();
    let groups: Vec<usize> = (1..n).map(|step| (part.group + n - step) % n).collect();
    flow.in_lane(UP);
    let packed = Packed::new(part.groups, m, 0);
    for &group in groups.iter().rev().filter(|&&group| packed.home(group, given) == packed.group(group)) {
        packed.runs(group, given).for_each(|(into, from)| flow.copy(from, into));
    }
    // in place, blocks inside make room for those that come
    let inside = |k: usize| if shape.in_place { of(packed.group(part.group), k) } else { of(given, own[k]) };
    (0..members).filter(|_| shape.in_place).for_each(|k| flow.copy(result(own[k]), inside(k)));
    let mut scratch = packed.len();
    let mut place = |len: usize| {
        scratch += len;
        Span::scratch(scratch - len, len)
    };
    let came: Vec<Came> = (groups.iter())
        .flat_map(|&group| sources(&part.groups[group], me, members).map(move |rank| (group, rank)))
        .map(|(group, rank)| Came { group, rank, blocks: place(members * m) })
        .collect();
    let one = Shape { ranks: n, root: 0, bytes: 1, in_place: false, elements: Elements::default() };
    let messages = |group: usize, block: Span| match block.buffer {
        Buffer::Input => vec![(part.groups[group][me % part.groups[group].len()], packed.home(group, given))],
        _ => came.iter().filter(|c| c.group == group).map(|c| (c.rank, c.blocks)).collect(),
    };
    // (what an algorithm copies is the block of the own group)
    flow.embed_messages(&part.between(&one)?, shape, (BETWEEN, part.segment), messages, |_| Span::scratch(0, 0));

    let others = || (1..members).map(|step| ((me + step) % members, (me + members - step) % members));
    flow.in_lane(UP);
    for (to, from) in others() {
        flow.send(own[to], inside(to));
        flow.recv(own[from], result(own[from]));
    }
    flow.copy(inside(me), result(own[me]));
    let lane = |group: usize| BETWEEN + (part.lanes() + group % MOST_AT_ONCE) as Lane;
    if part.segment > 0 {
        // each block in pieces that are alike
        let cut = |block: Span| shape.cut(block, m.div_ceil(m.div_ceil(part.segment).max(1)));
        for c in &came {
            flow.in_lane(lane(c.group));
            for (to, _) in others() {
                for piece in cut(of(c.blocks, to)) {
                    flow.send(own[to], piece);
                }
            }
            flow.copy(of(c.blocks, me), result(c.rank));
        }
        for &group in &groups {
            flow.in_lane(lane(group));
            for (from, rank) in others().flat_map(|(_, from)| sources(&part.groups[group], from, members).map(move |rank| (from, rank))) {
                for piece in cut(result(rank)) {
                    flow.recv(own[from], piece);
                }
            }
        }
        return Ok(flow.done());
    }
    let rows: Vec<Span> = (0..members).map(|to| if came.len() == 1 { of(came[0].blocks, to) } else { place(came.len() * m) }).collect();
    for (k, c) in came.iter().enumerate() {
        flow.in_lane(lane(c.group));
        flow.copy(of(c.blocks, me), result(c.rank));
        others().for_each(|(to, _)| flow.copy(of(c.blocks, to), of(rows[to], k)));
    }
    flow.in_lane(DOWN);
    for (to, _) in others() {
        flow.send(own[to], rows[to]);
    }
    for (_, from) in others() {
        let ranks: Vec<Rank> = groups.iter().flat_map(|&group| sources(&part.groups[group], from, members)).collect();
        let row = if let [rank] = ranks[..] { result(rank) } else { place(ranks.len() * m) };
        flow.recv(own[from], row);
        ranks.iter().enumerate().for_each(|(k, &rank)| flow.copy(of(row, k), result(rank)));
    }
    Ok(flow.done())
}
