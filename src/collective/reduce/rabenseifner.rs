//! A reduce-scatter by recursive halving, then a gather of the blocks up a binomial tree to the root: `2 n a + 2 (P-1)/P m b + (P-1)/P m c` with `n = log2 P`, and
//! `a + m b + m c` more where P is no power of two.

use super::super::blocks::Blocks;
use super::super::core::Core;
use super::super::data_flow::DataFlow;
use super::super::fold::Vector;
use super::super::halving::{Halves, halve};
use super::super::{Algorithm, Parameters, Shape};
use super::{given, home};
use crate::schedule::{Program, Span};
use crate::topology::Rank;

/// recursive halving, then a gather
pub static ALGORITHM: Algorithm = Algorithm {
    name: "rabenseifner",
    summary: "reduce-scatter by recursive halving, then a gather to the root",
    citation: "Rabenseifner 2004; Thakur, Rabenseifner, Gropp 2005",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let (mut flow, whole) = (DataFlow::new(), Span::output(0, shape.bytes));
    let core = Core::power_of_two(shape.ranks, shape.root);
    let mut vector = Vector::new(shape, given(shape, me), home(shape, me), shape.bytes);
    if let Some(other) = core.other(me) {
        if !core.goes_on(me) {
            vector.send(&mut flow, other, whole);
            return flow.done();
        }
        vector.take_in(&mut flow, other, whole, me < other);
    }
    let blocks = Blocks::cut(shape, core.size);
    let mut kept = halve(&mut flow, &mut vector, core, me, &blocks);
    let (position, root) = (core.position(me), core.position(shape.root));
    for round in (0..core.halvings()).rev() {
        let (partner, apart) = (core.rank(position ^ 1 << round), (position ^ root) >> round);
        if apart > 0 {
            vector.send(&mut flow, partner, blocks.span(kept));
            return flow.done();
        }
        let Halves { all, other } = Halves::around(kept.clone(), position, round);
        vector.settle(&mut flow, blocks.span(kept));
        flow.recv(partner, blocks.span(other).within(home(shape, me)));
        kept = all;
    }
    vector.settle(&mut flow, whole);
    flow.done()
}
