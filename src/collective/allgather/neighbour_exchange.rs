//! Ranks in pairs: first the two of a pair exchange their blocks, then each exchanges the two blocks that came last with its neighbour to the left and to the
//! right in turns: `P/2` messages, half of the ring's, `P/2 a + (P-1) m b`. The number of ranks must be even.
//!
//! ```text
//!   6 ranks:   (0 1) (2 3) (4 5)      0) (1 2) (3 4) (5      (0 1) (2 3) (4 5)
//! ```

use super::super::blocks::Blocks;
use super::super::data_flow::DataFlow;
use super::super::{Algorithm, Parameters, Shape};
use super::given;
use crate::schedule::Program;
use crate::topology::Rank;

/// two blocks to either neighbour in turns
pub static ALGORITHM: Algorithm = Algorithm {
    name: "neighbour_exchange",
    summary: "neighbours exchange the two blocks that came last, to the left and to the right in turns",
    citation: "Chen, Zhang, Zhang, Yuan, HPC Asia 2005",
    fits: |shape| shape.ranks.is_multiple_of(2) || shape.ranks == 1,
    wants: "an even number of ranks",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let (mut flow, blocks, ranks) = (DataFlow::new(), Blocks::by_rank(shape), shape.ranks);
    let (left, right) = ((me + ranks - 1) % ranks, (me + 1) % ranks);
    let own = given(shape, me);
    if ranks > 1 {
        let partner = me ^ 1;
        flow.send(partner, own);
        flow.recv(partner, blocks.one(partner));
    }
    flow.copy(own, blocks.one(me));
    // the pair of blocks that a rank got last; even ranks turn to the left first, and to each side pairs come from ever farther
    let pairs = ranks / 2;
    let got = |rank: Rank, round: usize| {
        let far = round.div_ceil(2);
        // rounds 1, 2, 3, ... brought an even rank pairs -1, +1, -2, ... and an odd one +1, -1, +2, ...
        let to_the_left = rank.is_multiple_of(2) == (round % 2 == 1);
        (rank / 2 + if to_the_left { pairs - far } else { far }) % pairs
    };
    let pair = |k: usize| blocks.span(2 * k..2 * k + 2);
    for round in 1..pairs {
        let partner = if me.is_multiple_of(2) == (round % 2 == 1) { left } else { right };
        let out = if round == 1 { me / 2 } else { got(me, round - 1) };
        flow.send(partner, pair(out));
        flow.recv(partner, pair(got(me, round)));
    }
    flow.done()
}
