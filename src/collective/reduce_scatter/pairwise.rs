//! In step k each rank sends its block to the rank k after it, and combines what the rank k before it sends: `(P-1) (a + m b + m c)`. No block moves twice.
//!
//! Values come from the rank before, the one before that, and so on. Where the operation does not commute, those of higher ranks, which come after
//! those of rank 0, are combined by themselves.

use super::super::blocks::Blocks;
use super::super::data_flow::DataFlow;
use super::super::fold::places;
use super::super::{Algorithm, Parameters, Shape};
use super::given;
use crate::schedule::{OpId, Program, Span};
use crate::topology::Rank;

/// each rank sends every block to its rank
pub static ALGORITHM: Algorithm = Algorithm {
    name: "pairwise",
    summary: "P - 1 steps, in each of which a rank sends one block to its rank and combines one that comes",
    citation: "Thakur, Rabenseifner, Gropp 2005",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let (mut flow, ranks, bytes, commutes) = (DataFlow::new(), shape.ranks, shape.bytes, shape.elements.commute);
    let (blocks, given) = (Blocks::by_rank(shape), given(shape));
    let (own, result, apart) = (blocks.one(me).within(given), Span::output(0, bytes), Span::scratch(0, bytes));
    // where the values of this rank and lower ones are combined, and those of higher ranks; in place, the result's bytes are sent first
    let (low, high) = match shape.in_place {
        true => (own, apart),
        false if commutes || me + 1 == ranks => (result, apart),
        false => (apart, result),
    };
    let places = places(bytes).min(ranks);
    let (mut value, mut higher) = (own, None);
    let (mut came, mut arrived): (Option<(Rank, Span)>, Option<OpId>) = (None, None);
    for step in 1..=ranks {
        let mut comes = None;
        if step < ranks {
            let (to, from) = ((me + step) % ranks, (me + ranks - step) % ranks);
            flow.send_after(to, blocks.one(to).within(given), arrived.as_slice());
            let into = match from {
                _ if commutes && step == 1 && value != low => low,
                from if !commutes && from > me && from + 1 == ranks => high,
                _ => Span::scratch((1 + step % places) * bytes, bytes),
            };
            arrived = flow.recv(from, into);
            comes = Some((from, into));
        }
        // while the next ones are under way
        match came {
            Some((from, into)) if !commutes && from > me => match higher {
                None => higher = Some(into),
                Some(higher) => flow.combine(into, higher),
            },
            Some((_, into)) if into == low => {
                flow.combine(own, low);
                value = low;
            }
            Some((_, into)) => {
                flow.copy(value, low);
                value = low;
                flow.combine(into, value);
            }
            None => {}
        }
        came = comes;
    }
    if let Some(higher) = higher {
        flow.combine(value, higher);
        value = higher;
    }
    flow.copy(value, result);
    flow.done()
}
