//! The scatter through coordinators: the root sends each the blocks of its group, packed, in one message, and they deal them out.

use super::blocks::{BETWEEN, DOWN, Packed, UP, blocks_of_a_group, deal, exchange, trees};
use super::coordinated::{Part, Through};
use crate::collective::data_flow::DataFlow;
use crate::collective::scatter;
use crate::error::Result;
use crate::schedule::{Buffer, Program, Span};

pub(super) static THROUGH: Through = Through {
    collective: &scatter::COLLECTIVE,
    inside: trees,
    between: || vec![scatter::FLAT],
    segmented: true,
    fits: |_, _| true,
    longest_message: blocks_of_a_group,
    program,
};

fn program(part: &Part) -> Result<Program> {
    let (shape, mut flow) = (part.shape, DataFlow::new());
    let (me, at_root) = (part.ranks()[part.position], part.group == 0);
    let packed = Packed::new(part.groups, shape.bytes, 0);
    let all = Span::input(0, packed.len());
    let home = |group: usize| if at_root { packed.home(group, all) } else { packed.group(group) };
    if part.parent.is_none() {
        flow.in_lane(UP);
        for group in (0..part.groups.len()).filter(|_| at_root).rev() {
            if home(group) == packed.group(group) {
                packed.runs(group, all).for_each(|(into, from)| flow.copy(from, into));
            }
        }
        exchange(&mut flow, part, true, |block| match block.buffer {
            Buffer::Input => home(block.offset),
            _ => home(part.group),
        })?;
    }
    // what goes far leaves first, also where the blocks of the root's own group are granted before it is its turn
    flow.in_lane(if at_root { BETWEEN } else { DOWN });
    let own = Span::output(0, shape.bytes);
    deal(&mut flow, part, home(part.group), shape.bytes, (!shape.in_place || me != shape.root).then_some(own));
    Ok(flow.done())
}
