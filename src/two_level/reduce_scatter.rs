//! The reduce-scatter through coordinators: each group's vectors are combined up its tree, coordinators exchange what they have of each other's groups'
//! blocks, packed, and deal out the result.

use super::blocks::{DOWN, Packed, deal, exchange, trees};
use super::coordinated::{Coordinated, Part, Through};
use super::reduce::combine_up;
use crate::collective::data_flow::DataFlow;
use crate::collective::reduce_scatter;
use crate::error::Result;
use crate::schedule::{Buffer, Program, Span};

pub(super) static THROUGH: Through = Through {
    collective: &reduce_scatter::COLLECTIVE,
    inside: trees,
    between: || vec![reduce_scatter::DIRECT],
    segmented: true,
    fits: Coordinated::keeps_order,
    longest_message: |_, shape| shape.ranks.saturating_mul(shape.bytes),
    program,
};

fn program(part: &Part) -> Result<Program> {
    let (shape, mut flow) = (part.shape, DataFlow::new());
    let (all, own) = (shape.ranks * shape.bytes, Span::output(0, shape.bytes));
    let given = if shape.in_place { Span::output(0, all) } else { Span::input(0, all) };
    let vector = Span::scratch(0, all);
    combine_up(&mut flow, part, (given, vector), all);
    let packed = Packed::new(part.groups, shape.bytes, flow.scratch());
    // of this group: what came, one group after the other
    let mine = part.ranks().len() * shape.bytes;
    let came = Span::scratch(flow.scratch() + packed.len(), part.groups.len() * mine);
    let result = Span::scratch(came.end(), mine);
    if part.parent.is_none() {
        let home = |group: usize| packed.home(group, vector);
        for group in 0..part.groups.len() {
            if home(group) == packed.group(group) {
                packed.runs(group, vector).for_each(|(into, from)| flow.copy(from, into));
            }
        }
        exchange(&mut flow, part, false, |block| match block.buffer {
            Buffer::Input => home(block.offset),
            Buffer::Output => result,
            _ => Span::output(block.offset * mine, mine).within(came),
        })?;
    }
    flow.in_lane(DOWN);
    deal(&mut flow, part, result, shape.bytes, Some(own));
    Ok(flow.done())
}
