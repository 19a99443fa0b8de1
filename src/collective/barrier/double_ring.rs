//! Twice around a ring: the first round tells rank 0 that everybody is there, the second one tells everybody else. `(2 P - 1) (g + L)`, and no
//! rank ever has two messages to deal with.

use super::super::{Algorithm, Parameters, Shape};
use crate::schedule::{Program, Span};
use crate::topology::Rank;

/// twice around a ring
pub static ALGORITHM: Algorithm = Algorithm {
    name: "double_ring",
    summary: "twice around a ring",
    citation: "Pjesivac-Grbovic et al., Cluster Computing 10 (2007)",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let (mut program, ranks, token) = (Program::new(), shape.ranks, Span::control(0));
    if ranks == 1 {
        return program;
    }
    let (before, after) = ((me + ranks - 1) % ranks, (me + 1) % ranks);
    let mut received = Vec::new();
    for round in 0..2 {
        if me > 0 {
            received = vec![program.recv(before, token, &[])];
        }
        // the last rank ends the second round
        if round == 0 || after > 0 {
            program.send(after, token, &received);
        }
        if me == 0 && round == 0 {
            received = vec![program.recv(before, token, &[])];
        }
    }
    program
}
