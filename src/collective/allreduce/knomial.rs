//! Recursive doubling of radix r: in each round up to r ranks exchange all that they have, each with each: about `log_r P` latencies, one if r is at least
//! P, and `(r - 1)` times the bytes of recursive doubling in each. All combine the same operands in the same order.
//!
//! Where P is no product of numbers that are at most r, some ranks give and get in a round of their own.

use super::super::core::Core;
use super::super::data_flow::DataFlow;
use super::super::fold::Vector;
use super::super::{Algorithm, Parameters, Shape};
use super::among;
use crate::schedule::{Buffer, Program, Span};
use crate::topology::Rank;

/// groups of radix ranks exchange whole vectors
pub static ALGORITHM: Algorithm = Algorithm {
    name: "knomial",
    summary: "in each round as many ranks as the radix (default 4) exchange whole vectors",
    citation: "Ruefenacht, Bull, Booth, Parallel Computing 69 (2017): recursive multiplying",
    radices: &[3, 4, 8, 16],
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, parameters: &Parameters) -> Program {
    let radix = if parameters.radix == 0 { 4 } else { parameters.radix.max(2) };
    let rounds = rounds(shape.ranks, radix);
    let core = Core::new(shape.ranks, rounds.iter().product(), 0);
    among(me, shape, core, |flow, vector| {
        let (position, mut distance) = (core.position(me), 1);
        for members in rounds {
            let mine = position / distance % members;
            let all: Vec<Rank> = (0..members).map(|k| core.rank(position - mine * distance + k * distance)).collect();
            exchange(flow, vector, shape, &all, mine);
            distance *= members;
        }
    })
}

/// How many ranks exchange in each round: as many as the radix at most, all ranks if their number is such a product, else more than half of them.
fn rounds(ranks: usize, radix: usize) -> Vec<usize> {
    factors(ranks, radix).unwrap_or_else(|| {
        let (mut rounds, mut rest) = (Vec::new(), ranks);
        while rest > 1 {
            rounds.push(radix.min(rest));
            rest /= radix.min(rest);
        }
        rounds
    })
}

/// A number as a product of few numbers that are at most `most`, if it is one.
fn factors(mut number: usize, most: usize) -> Option<Vec<usize>> {
    let mut factors = Vec::new();
    while number > 1 {
        let factor = (2..=most.min(number)).rev().find(|factor| number.is_multiple_of(*factor))?;
        factors.push(factor);
        number /= factor;
    }
    Some(factors)
}

/// Ranks, of which this one is the `mine`-th, exchange what they have, and combine it in their order.
fn exchange(flow: &mut DataFlow, vector: &mut Vector, shape: &Shape, ranks: &[Rank], mine: usize) {
    let (bytes, commutes, members) = (shape.bytes, shape.elements.commute, ranks.len());
    // a second home, and a place for what comes from each other one
    let place = |k: usize| Span::scratch(k * bytes, bytes);
    if vector.at.buffer == Buffer::Input && mine > 0 && !commutes {
        flow.copy(vector.at, place(0));
        vector.at = place(0);
    }
    let own = vector.at;
    let last = if mine + 1 == members && commutes { members - 2 } else { members - 1 };
    let operand = |k: usize| match k {
        k if k == mine => own,
        k if k == last => {
            if own == vector.home {
                place(0)
            } else {
                vector.home
            }
        }
        k => place(1 + k - usize::from(k > mine)),
    };
    for step in 1..members {
        flow.send(ranks[(mine + step) % members], own);
        let k = (mine + members - step) % members;
        flow.recv(ranks[k], operand(k));
    }
    let mut at = operand(0);
    for k in 1..members {
        // what is sent stays as it is where the operation commutes
        if k == mine && commutes {
            flow.combine(own, at);
        } else {
            flow.combine(at, operand(k));
            at = operand(k);
        }
    }
    vector.at = at;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_cover_at_least_half_of_the_ranks() {
        for ranks in 1..300 {
            for radix in 2..20 {
                let rounds = rounds(ranks, radix);
                let product: usize = rounds.iter().product();
                assert!(product <= ranks && 2 * product > ranks && rounds.iter().all(|&n| n <= radix), "{ranks} {radix}: {rounds:?}");
            }
        }
        assert_eq!((rounds(6, 8), rounds(20, 8), rounds(64, 4), rounds(7, 3)), (vec![6], vec![5, 4], vec![4, 4, 4], vec![3, 2]));
    }
}
