//! Blocks go as far as the digits of their distance say (base r): in a round for each digit, r - 1 messages carry all blocks that have to go so many times
//! `r^k` on. For r = 2: `sum_j (g(n_j m) + L)` for j below `ceil(log2 P)`, where `n_j` numbers below P have bit j, and copies. Few messages, and each block moves
//! several times: for short blocks.

use super::super::blocks::Blocks;
use super::super::data_flow::DataFlow;
use super::super::{Algorithm, Parameters, Shape};
use super::given;
use crate::schedule::{Program, Span};
use crate::topology::Rank;

/// blocks together, in a round for each digit of their distance
pub static ALGORITHM: Algorithm = Algorithm {
    name: "bruck",
    summary: "blocks together, a round for each digit of their distance (radix, default 2)",
    citation: "Bruck et al., IEEE Transactions on Parallel and Distributed Systems 8 (1997)",
    radices: &[2, 3, 4, 8],
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, parameters: &Parameters) -> Program {
    let (mut flow, ranks, bytes, radix) = (DataFlow::new(), shape.ranks, shape.bytes, parameters.radix.max(2));
    let blocks = Blocks::by_rank(shape);
    // the block that goes a distance from here, and then those that have as far to go as it had: it lies where the last of them came
    let mut at: Vec<Span> = (0..ranks).map(|distance| given(shape, blocks.one((me + distance) % ranks))).collect();
    let (mut step, mut scratch) = (1, 0);
    while step < ranks {
        for digit in (1..radix).take_while(|digit| digit * step < ranks) {
            let moves: Vec<usize> = (0..ranks).filter(|distance| distance / step % radix == digit).collect();
            let len = moves.len() * bytes;
            let out = pack(&mut flow, moves.iter().map(|&distance| at[distance]), Span::scratch(scratch, len));
            flow.send((me + digit * step) % ranks, out);
            flow.recv((me + ranks - digit * step) % ranks, Span::scratch(scratch + len, len));
            for (k, distance) in moves.into_iter().enumerate() {
                at[distance] = Span::scratch(scratch + len + k * bytes, bytes);
            }
            scratch += 2 * len;
        }
        step *= radix;
    }
    for (distance, from) in at.into_iter().enumerate() {
        flow.copy(from, blocks.one((me + ranks - distance) % ranks));
    }
    flow.done()
}

/// Brings spans into a row, in as few copies as possible; none, if they are one.
fn pack(flow: &mut DataFlow, spans: impl Iterator<Item = Span>, into: Span) -> Span {
    let mut rows: Vec<Span> = Vec::new();
    for span in spans {
        match rows.last_mut() {
            Some(row) if row.buffer == span.buffer && row.end() == span.offset => row.len += span.len,
            _ => rows.push(span),
        }
    }
    if let [row] = rows[..] {
        return row;
    }
    let mut next = into.offset;
    for row in rows {
        flow.copy(row, Span { offset: next, len: row.len, ..into });
        next += row.len;
    }
    into
}
