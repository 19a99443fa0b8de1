//! The allgather through coordinators: each collects its group's blocks, they exchange them packed, and each group's blocks go down all trees as soon as they
//! are there.

use super::blocks::{DOWN, Packed, UP, blocks_of_a_group, collect, exchange, trees};
use super::coordinated::{Part, Through};
use crate::collective::allgather;
use crate::collective::data_flow::DataFlow;
use crate::error::Result;
use crate::schedule::{Buffer, Program, Span};

pub(super) static THROUGH: Through = Through {
    collective: &allgather::COLLECTIVE,
    inside: trees,
    between: || vec![allgather::DIRECT, allgather::RING],
    segmented: true,
    fits: |_, _| true,
    longest_message: blocks_of_a_group,
    program,
};

fn program(part: &Part) -> Result<Program> {
    let (shape, mut flow, n) = (part.shape, DataFlow::new(), part.groups.len());
    let me = part.ranks()[part.position];
    // what a rank collects for those above it lies before
    let packed =
        Packed::new(part.groups, shape.bytes, if part.parent.is_some() { part.below(part.position).len() * shape.bytes } else { 0 });
    let all = Span::output(0, packed.len());
    let own = if shape.in_place { Span::output(me * shape.bytes, shape.bytes) } else { Span::input(0, shape.bytes) };
    let home = |group: usize| packed.home(group, all);
    flow.in_lane(UP);
    collect(&mut flow, part, own, home(part.group));
    if part.parent.is_none() {
        exchange(&mut flow, part, true, |block| match block.buffer {
            Buffer::Output => home(block.offset),
            _ => home(part.group),
        })?;
    }
    flow.in_lane(DOWN);
    // in the order in which they come from the left
    for group in (0..n).map(|step| (part.group + n - step) % n) {
        for piece in shape.cut(home(group), part.segment) {
            if let Some(parent) = part.parent {
                flow.recv(parent, piece);
            }
            for &child in &part.children {
                flow.send(child, piece);
            }
        }
    }
    for group in 0..n {
        if home(group) == packed.group(group) {
            packed.runs(group, all).for_each(|(from, into)| flow.copy(from, into));
        }
    }
    Ok(flow.done())
}
