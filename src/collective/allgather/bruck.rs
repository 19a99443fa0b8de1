//! In round k each rank sends the blocks that it has, its own first, to the rank `2^k` before it: as many rounds as recursive doubling for any P,
//! `ceil(log2 P) a + (P-1) m b`, and copies that bring all blocks to their places.

use super::super::blocks::{Blocks, runs};
use super::super::data_flow::DataFlow;
use super::super::{Algorithm, Parameters, Shape};
use super::given;
use crate::schedule::{Program, Span};
use crate::topology::Rank;

/// blocks that double in each round, any number of ranks
pub static ALGORITHM: Algorithm = Algorithm {
    name: "bruck",
    summary: "twice as many blocks go twice as far in each round, for any number of ranks",
    citation: "Bruck et al., IEEE Transactions on Parallel and Distributed Systems 8 (1997)",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let (mut flow, ranks, own) = (DataFlow::new(), shape.ranks, given(shape, me));
    // counted from this rank on, as if it were the root
    let from_me = Shape { root: me, ..*shape };
    let (places, blocks) = (Blocks::by_position(&from_me), Blocks::by_rank(shape));
    let place = |positions| places.span(positions).within(Span::scratch(0, places.all().len));
    if ranks > 1 {
        flow.copy(own, place(0..1));
    }
    let mut have = 1;
    while have < ranks {
        let more = have.min(ranks - have);
        flow.send((me + ranks - have) % ranks, if have == 1 { own } else { place(0..more) });
        flow.recv((me + have) % ranks, place(have..have + more));
        have += more;
    }
    flow.copy(own, blocks.one(me));
    let mut position = 1;
    for run in runs(&from_me, 1..ranks) {
        flow.copy(place(position..position + run.len()), blocks.span(run.clone()));
        position += run.len();
    }
    flow.done()
}
