//! The pipeline: blocks move away from the root side by side, the farthest rank's first: `(P-1) (g(m) + L)` for whole blocks, and for blocks of k segments of s
//! bytes `(P-1) k g(s) + L` or `k g(s) + (P-2) (g(s) + L) + L`, whichever is longer.

use super::super::blocks::Blocks;
use super::super::data_flow::DataFlow;
use super::super::{Algorithm, Parameters, Shape};
use super::{given, keep};
use crate::schedule::{Program, Span};
use crate::topology::Rank;

/// pipeline from the root
pub static ALGORITHM: Algorithm = Algorithm {
    name: "segmented_chain",
    summary: "pipeline: blocks move side by side away from the root, the farthest rank's first",
    citation: "Barchet-Estefanel, Mounie 2004, Table 2",
    segmented: true,
    whole: true,
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, parameters: &Parameters) -> Program {
    let (mut flow, v, ranks) = (DataFlow::new(), shape.relative(me), shape.ranks);
    let (places, blocks) = (Blocks::by_position(shape), Blocks::by_rank(shape));
    let (after, before) = (shape.absolute((v + 1) % ranks), shape.absolute((v + ranks - 1) % ranks));
    for position in (v.max(1)..ranks).rev() {
        let rank = shape.absolute(position);
        let block = match position {
            _ if v == 0 => given(&blocks, rank..rank + 1),
            _ if position == v => Span::output(0, blocks.one(me).len),
            _ => Span::scratch(places.span(v + 1..position).len, places.one(position).len),
        };
        for part in shape.cut(block, parameters.segment) {
            if v > 0 {
                flow.recv(before, part);
            }
            if position > v {
                flow.send(after, part);
            }
        }
    }
    if v == 0 {
        keep(&mut flow, shape, &blocks);
    }
    flow.done()
}
