//! In each round partners exchange halves of the blocks that are left to each, the farthest first, and combine the half that they keep:
//! `n a + (P-1) m (b + c)` with `n = log2 P`; where P is no power of two, all blocks of the ranks beyond go to their neighbours first. The operation must
//! commute: the ranks of a value do not follow each other.

use super::super::blocks::Blocks;
use super::super::core::Core;
use super::super::data_flow::DataFlow;
use super::super::fold::Vector;
use super::super::{Algorithm, Parameters, Shape};
use super::given;
use crate::schedule::{Program, Span};
use crate::topology::Rank;

/// partners exchange halves of what is left
pub static ALGORITHM: Algorithm = Algorithm {
    name: "recursive_halving",
    summary: "partners exchange halves of the blocks that are left, half as far in each round",
    citation: "Thakur, Rabenseifner, Gropp 2005",
    fits: |shape| shape.elements.commute,
    wants: "an operation that commutes",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let (mut flow, blocks, result) = (DataFlow::new(), Blocks::by_rank(shape), Span::output(0, shape.bytes));
    let (core, given, all) = (Core::power_of_two(shape.ranks, 0), given(shape), blocks.all());
    let home = if shape.in_place { given } else { all.within(Span::scratch(0, all.len)) };
    let mut vector = Vector::new(shape, given, home, if shape.in_place { 0 } else { all.len });
    if let Some(other) = core.other(me) {
        if !core.goes_on(me) {
            vector.send(&mut flow, other, all);
            flow.recv(other, result);
            return flow.done();
        }
        vector.take_in(&mut flow, other, all, me < other);
    }
    let (position, mut kept) = (core.position(me), 0..core.size);
    for round in (0..core.halvings()).rev() {
        let (middle, partner) = ((kept.start + kept.end) / 2, core.rank(position ^ 1 << round));
        let (low, high) = (kept.start..middle, middle..kept.end);
        let (keep, give) = if position < middle { (low, high) } else { (high, low) };
        vector.send(&mut flow, partner, blocks.span(core.ranks(give)));
        vector.take_in(&mut flow, partner, blocks.span(core.ranks(keep.clone())), me < partner);
        kept = keep;
    }
    if let Some(other) = core.other(me) {
        vector.send(&mut flow, other, blocks.one(other));
    }
    flow.copy(blocks.one(me).within(vector.at), result);
    flow.done()
}
