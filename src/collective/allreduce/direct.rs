//! Everybody sends its vector to everybody, and each combines all of them: `(P-1) max(g(m), or(m) + c(m)) + L`, one latency whatever P. For short
//! vectors among few ranks far from each other; all combine in the order of ranks.

use super::super::{Algorithm, Parameters, Shape};
use super::own;
use crate::schedule::{OpId, Program, Span};
use crate::topology::Rank;

/// all to all at once
pub static ALGORITHM: Algorithm = Algorithm {
    name: "direct",
    summary: "everybody sends its vector to everybody, each combines all",
    citation: "Chan, Heimlich, Purkayastha, van de Geijn, Concurrency Computat. 19 (2007)",
    lanes: 2,
    builder: Some(program),
    ..Algorithm::NEW
};

/// Sends wait for nothing: what is combined has a lane of its own.
const COMBINES: u16 = 1;

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let (ranks, m, mut program) = (shape.ranks, shape.bytes, Program::new());
    let mine = own(shape);
    let others = || (1..ranks).map(|step| (me + step) % ranks);
    let sent: Vec<OpId> = others().map(|to| program.send(to, mine, &[])).collect();
    let place = |rank: Rank| Span::scratch(rank * m, m);
    let got: Vec<Option<OpId>> = (0..ranks).map(|from| (from != me).then(|| program.recv(from, place(from), &[]))).collect();
    program.in_lane(COMBINES);
    // ((0 op 1) op 2) ... on all ranks: each result lies where the next one is combined into
    let vector = |rank: Rank| if rank == me { mine } else { place(rank) };
    let mut so_far = (vector(0), Vec::from_iter(got[0]));
    for (rank, got) in got.iter().enumerate().skip(1) {
        let mut after = so_far.1;
        after.extend(got);
        let into = if rank == me && !shape.in_place {
            // what was given is not written
            after = vec![program.copy(mine, Span::output(0, m), &after)];
            Span::output(0, m)
        } else {
            vector(rank)
        };
        if rank == me && shape.in_place {
            after.extend(&sent);
        }
        so_far = (into, vec![program.combine(so_far.0, into, &after)]);
    }
    if so_far.0 != Span::output(0, m) {
        let mut after = so_far.1;
        if shape.in_place {
            after.extend(&sent);
        }
        program.copy(so_far.0, Span::output(0, m), &after);
    }
    program
}
