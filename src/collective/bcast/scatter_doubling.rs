//! Binomial scatter, then an allgather by recursive doubling: `2 ceil(log2 P)` latencies where the ring needs `P`.
//!
//! Doubling needs a power of two: the first `2^h <= P` positions scatter and gather, and then each of the others gets the whole
//! message from the position `2^h` before it.

use super::super::blocks::Blocks;
use super::super::tree::subtree;
use super::super::{Algorithm, Parameters, Shape};
use super::scatter::scatter;
use crate::schedule::{OpId, Program, Span};
use crate::topology::Rank;

/// Scatter, then recursive doubling.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "scatter_doubling",
    summary: "binomial scatter, then an allgather by recursive doubling",
    citation: "Thakur, Rabenseifner, Gropp 2005",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let mut program = Program::new();
    let v = shape.relative(me);
    let core = 1 << shape.ranks.ilog2();
    let whole = Span::output(0, shape.bytes);
    if v >= core {
        program.recv(shape.absolute(v - core), whole, &[]);
        return program;
    }
    let blocks = Blocks::cut(shape, core);
    let mut held: Vec<OpId> = scatter(&mut program, v, shape, &blocks).into_iter().collect();
    let mut width = 1;
    while width < core {
        let partner = v ^ width;
        let range = |u: usize| u / width * width..u / width * width + width;
        let span = |u: usize| blocks.span(range(u));
        // nobody is sent what it holds since the scatter
        let lacks = |u: usize, from: usize| span(from).len > 0 && !subtree(u, core).contains(&range(from).start);
        if lacks(partner, v) {
            program.send(shape.absolute(partner), span(v), &held);
        }
        if lacks(v, partner) {
            held.push(program.recv(shape.absolute(partner), span(partner), &[]));
        }
        width *= 2;
    }
    if v + core < shape.ranks {
        program.send(shape.absolute(v + core), whole, &held);
    }
    program
}
