//! A reduce-scatter and an allgather, both by messages from everybody to everybody: each combines its block of all vectors and sends the result to
//! all. `2 ((P-1) max(g(m/P), or(m/P) + c(m/P)) + L)`: two latencies whatever P, and each byte crosses each port about twice.

use super::super::{Algorithm, Parameters, Shape};
use super::{blocks, own};
use crate::schedule::{OpId, Program, Span};
use crate::topology::Rank;

/// reduce-scatter and allgather, all to all
pub static ALGORITHM: Algorithm = Algorithm {
    name: "direct_scatter",
    summary: "everybody combines one block of all vectors and sends it to everybody",
    citation: "Chan, Heimlich, Purkayastha, van de Geijn, Concurrency Computat. 19 (2007)",
    lanes: 2,
    builder: Some(program),
    ..Algorithm::NEW
};

/// Blocks that are sent out wait for nothing: what is combined has a lane of its own.
const COMBINES: u16 = 1;

fn program(me: Rank, shape: &Shape, _: &Parameters) -> Program {
    let (ranks, mut program) = (shape.ranks, Program::new());
    let (blocks, mine) = (blocks(shape), own(shape));
    let in_mine = |block: Span| Span { buffer: mine.buffer, ..block };
    let others = || (1..ranks).map(|step| (me + step) % ranks);
    let sent: Vec<(Rank, OpId)> =
        others().filter(|&to| blocks.one(to).len > 0).map(|to| (to, program.send(to, in_mine(blocks.one(to)), &[]))).collect();
    let block = blocks.one(me);
    program.in_lane(COMBINES);
    let mut sent_result = Vec::new();
    if block.len > 0 {
        let mut last: Option<(Span, Vec<OpId>)> = None;
        for rank in 0..ranks {
            let place = Span::scratch(rank * block.len, block.len);
            let (from, mut after) = if rank != me {
                program.in_lane(0);
                let got = program.recv(rank, place, &[]);
                program.in_lane(COMBINES);
                (place, vec![got])
            } else if shape.in_place {
                (block, Vec::new())
            } else {
                (block, vec![program.copy(in_mine(block), block, &[])])
            };
            if let Some((left, before)) = last {
                after.extend(before);
                after = vec![program.combine(left, from, &after)];
            }
            last = Some((from, after));
        }
        let (result, mut ready) = last.unwrap_or((block, Vec::new()));
        if result != block {
            ready = vec![program.copy(result, block, &ready)];
        }
        sent_result.extend(others().map(|to| program.send(to, block, &ready)));
    }
    for from in others().filter(|&from| blocks.one(from).len > 0) {
        // where nothing lies any more that is still sent
        let open = sent.iter().filter(|(to, _)| shape.in_place && *to == from).map(|(_, op)| *op);
        let open: Vec<OpId> = open.collect();
        program.recv(from, blocks.one(from), &open);
    }
    program
}
