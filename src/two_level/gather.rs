//! The gather through coordinators: each collects its group's blocks and sends them to the root, packed, in one message.

use super::blocks::{Packed, UP, blocks_of_a_group, collect, exchange, trees};
use super::coordinated::{Part, Through};
use crate::collective::data_flow::DataFlow;
use crate::collective::gather;
use crate::error::Result;
use crate::schedule::{Buffer, Program, Span};

pub(super) static THROUGH: Through = Through {
    collective: &gather::COLLECTIVE,
    inside: trees,
    between: || vec![gather::FLAT],
    segmented: true,
    fits: |_, _| true,
    longest_message: blocks_of_a_group,
    program,
};

fn program(part: &Part) -> Result<Program> {
    let (shape, mut flow) = (part.shape, DataFlow::new());
    let (me, at_root) = (part.ranks()[part.position], part.group == 0);
    let packed = Packed::new(part.groups, shape.bytes, 0);
    let all = Span::output(0, packed.len());
    let own = if shape.in_place && me == shape.root { Span::output(me * shape.bytes, shape.bytes) } else { Span::input(0, shape.bytes) };
    let home = |group: usize| if at_root { packed.home(group, all) } else { packed.group(group) };
    flow.in_lane(UP);
    collect(&mut flow, part, own, home(part.group));
    if part.parent.is_some() {
        return Ok(flow.done());
    }
    exchange(&mut flow, part, true, |block| match block.buffer {
        Buffer::Output => home(block.offset),
        _ => home(part.group),
    })?;
    for group in (0..part.groups.len()).filter(|_| at_root) {
        if home(group) == packed.group(group) {
            packed.runs(group, all).for_each(|(from, into)| flow.copy(from, into));
        }
    }
    Ok(flow.done())
}
