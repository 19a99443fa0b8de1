//! Van de Geijn's broadcast for large messages: a binomial scatter of P blocks, then a ring allgather. Every byte crosses each
//! port about twice: `sum_j g(min(2^j, P-2^j) m/P) + floor(log2 P) L + (P-1) (g(m/P) + L)`.

use super::super::blocks::Blocks;
use super::super::tree::subtree;
use super::super::{Algorithm, Parameters, Shape};
use super::scatter::scatter;
use crate::schedule::Program;
use crate::topology::Rank;

/// Scatter, then ring allgather.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "scatter_ring",
    summary: "binomial scatter of P blocks, then a ring allgather",
    citation: "van de Geijn; Thakur, Rabenseifner, Gropp 2005",
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let mut program = Program::new();
    let ranks = shape.ranks;
    if ranks < 2 {
        return program;
    }
    let blocks = Blocks::cut(shape, ranks);
    let v = shape.relative(me);
    let (next, previous) = ((v + 1) % ranks, (v + ranks - 1) % ranks);
    let scattered = scatter(&mut program, v, shape, &blocks);
    // nobody is sent a block that it holds since the scatter
    for (_, block) in blocks.around(v) {
        let came = (!subtree(v, ranks).contains(&block)).then(|| program.recv(shape.absolute(previous), blocks.one(block), &[]));
        if !subtree(next, ranks).contains(&block) {
            program.send(shape.absolute(next), blocks.one(block), came.or(scattered).as_slice());
        }
    }
    program
}
