//! The alltoall through coordinators: each collects what its group gives, sends each other group's part in one message, and deals out what came. For short
//! blocks: every byte passes the coordinators. (Or [between counterparts](super::counterparts).)

use super::blocks::{DOWN, Packed, UP, blocks_of_a_group, collect, deal, exchange, largest, runs, trees};
use super::coordinated::{Part, Through};
use super::counterparts;
use crate::collective::alltoall;
use crate::collective::data_flow::DataFlow;
use crate::error::Result;
use crate::schedule::{Buffer, Program, Span};

/// Longer blocks are sent directly: a coordinator's port, and its memory, would hold up all of its group's.
const LONGEST_BLOCK: usize = 16 << 10;
/// What a rank may take; a coordinator all that its group gives, as it goes out, and as it came.
const MOST_MEMORY: usize = 128 << 20;

pub(super) static THROUGH: Through = Through {
    collective: &alltoall::COLLECTIVE,
    inside: || [trees(), vec![alltoall::ROTATED]].concat(),
    between: || vec![alltoall::DIRECT, alltoall::ROTATED, alltoall::PAIRWISE, alltoall::SPREAD],
    segmented: true,
    fits: |c, shape| {
        if c.by_counterparts() {
            return counterparts::memory(&c.groups, shape) <= MOST_MEMORY;
        }
        let memory = largest(&c.groups).saturating_mul(shape.ranks).saturating_mul(shape.bytes).saturating_mul(3);
        shape.bytes <= LONGEST_BLOCK && memory <= MOST_MEMORY
    },
    longest_message: |groups, shape| largest(groups).saturating_mul(blocks_of_a_group(groups, shape)),
    program,
};

fn program(part: &Part) -> Result<Program> {
    if part.by_counterparts {
        return counterparts::program(part);
    }
    let (shape, mut flow) = (part.shape, DataFlow::new());
    let (m, members, all) = (shape.bytes, part.ranks().len(), shape.ranks * shape.bytes);
    let own = if shape.in_place { Span::output(0, all) } else { Span::input(0, all) };
    // what the group's ranks give, one after the other, and at the end what they get
    let vectors = Span::scratch(0, members * all);
    flow.in_lane(UP);
    collect(&mut flow, part, own, vectors);
    if part.parent.is_none() {
        let (out, came) = (Packed::new(part.groups, members * m, vectors.len), Packed::new(part.groups, members * m, 2 * vectors.len));
        // from each rank, in turn, what is for a group
        for (group, ranks) in part.groups.iter().enumerate() {
            for p in 0..members {
                for (rank, positions) in runs(ranks) {
                    let from = Span::output(p * all + rank * m, positions.len() * m).within(vectors);
                    let into = Span::output((p * ranks.len() + positions.start) * m, from.len).within(out.group(group));
                    flow.copy(from, into);
                }
            }
        }
        exchange(
            &mut flow,
            part,
            false,
            |block| if block.buffer == Buffer::Input { out.group(block.offset) } else { came.group(block.offset) },
        )?;
        flow.in_lane(DOWN);
        // from each rank of a group, in turn, what is for each rank of this one
        for (group, ranks) in part.groups.iter().enumerate() {
            for (p, &rank) in ranks.iter().enumerate() {
                for q in 0..members {
                    let from = Span::output((p * members + q) * m, m).within(came.group(group));
                    flow.copy(from, Span::output(q * all + rank * m, m).within(vectors));
                }
            }
        }
    }
    flow.in_lane(DOWN);
    deal(&mut flow, part, vectors, all, Some(Span::output(0, all)));
    Ok(flow.done())
}
