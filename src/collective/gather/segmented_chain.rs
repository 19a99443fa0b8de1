//! The pipeline: blocks move towards the root side by side, each rank's own first, so that the farthest come last: `(P-1) (g(m) + L)` for whole blocks, and for
//! blocks of k segments of s bytes `(P-1) k g(s) + L` or `k g(s) + (P-2) (g(s) + L) + L`, whichever is longer.

use super::super::blocks::Blocks;
use super::super::data_flow::DataFlow;
use super::super::{Algorithm, Parameters, Shape};
use super::given;
use crate::schedule::{Program, Span};
use crate::topology::Rank;

/// pipeline towards the root
pub static ALGORITHM: Algorithm = Algorithm {
    name: "segmented_chain",
    summary: "pipeline: blocks move side by side towards the root, each rank's own first",
    citation: "Barchet-Estefanel, Mounie 2004, Table 2",
    segmented: true,
    whole: true,
    builder: Some(program),
    mirrors: Some(&super::super::scatter::segmented_chain::ALGORITHM),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, parameters: &Parameters) -> Program {
    let (mut flow, v, ranks) = (DataFlow::new(), shape.relative(me), shape.ranks);
    let (places, blocks) = (Blocks::by_position(shape), Blocks::by_rank(shape));
    let (after, before) = (shape.absolute((v + 1) % ranks), shape.absolute((v + ranks - 1) % ranks));
    for position in v..ranks {
        let block = match position {
            _ if position == v => given(shape, me),
            _ if v == 0 => blocks.one(shape.absolute(position)),
            _ => Span::scratch(places.span(v + 1..position).len, places.one(position).len),
        };
        for part in shape.cut(block, parameters.segment) {
            if position > v {
                flow.recv(after, part);
            }
            if v > 0 {
                flow.send(before, part);
            }
        }
    }
    if v == 0 {
        flow.copy(given(shape, me), blocks.one(me));
    }
    flow.done()
}
