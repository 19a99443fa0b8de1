//! Ranks that take other places in an algorithm than those of their numbers: the fast ones where most is done, such as at the root of a large subtree.
//!
//! A scatter or a gather of blocks that lie by rank, along a tree over places: a heterogeneous binomial tree (Hatta, Shibusawa 2000) whose largest
//! subtrees belong to the fastest processors. At the root, blocks of one message that do not lie in a row are packed.

use super::data_flow::DataFlow;
use super::{Algorithm, Collective, Parameters, Shape, Size};
use crate::schedule::{Action, Buffer, Program, Span};
use crate::topology::Rank;

/// One rank's program where the place v has the rank `order[v]`, the root's first; `None` for the library's own collective, and a rank without a place.
pub fn program(
    collective: &Collective,
    algorithm: &Algorithm,
    me: Rank,
    shape: &Shape,
    parameters: &Parameters,
    order: &[Rank],
) -> Option<Program> {
    let place = order.iter().position(|&rank| rank == me)?;
    let program = algorithm.builder?(place, &Shape { root: 0, ..*shape }, parameters).renamed(|place| order[place]);
    let layout = (collective.layout)(shape, me);
    // the buffer with a block of each rank, if one of this rank's is such
    let blocks = match collective.size {
        Size::Block if layout.input > shape.bytes => Some(Buffer::Input),
        Size::Block if layout.output > shape.bytes => Some(Buffer::Output),
        _ => None,
    };
    let by_rank = |blocks| by_rank(&program, blocks, shape.bytes, order);
    Some(parameters.hold_back(blocks.map(by_rank).unwrap_or(program)))
}

/// A program with the blocks of places, in one of its buffers, where those of their ranks lie.
fn by_rank(program: &Program, blocks: Buffer, block: usize, order: &[Rank]) -> Program {
    let mut flow = DataFlow::new();
    let places = |span: Span| span.offset / block..span.end().div_ceil(block);
    let packs = |span: Span| span.buffer == blocks && places(span).len() > 1;
    let own = |span: Span| {
        let place = span.offset / block;
        if span.buffer == blocks { Span { offset: order[place] * block + span.offset % block, ..span } } else { span }
    };
    // each whole block of a span of several, where its rank has it, and where it lies in the span
    let each = |span: Span| {
        places(span).map(move |place| (own(Span { offset: place * block, len: block, ..span }), Span::scratch(place * block, block)))
    };
    for action in program.actions() {
        match action {
            Action::Send { to, span } if packs(span) => {
                each(span).for_each(|(own, packed)| flow.copy(own, packed));
                flow.send(to, Span::scratch(span.offset, span.len));
            }
            Action::Recv { from, span } if packs(span) => {
                flow.recv(from, Span::scratch(span.offset, span.len));
                each(span).for_each(|(own, packed)| flow.copy(packed, own));
            }
            Action::Send { to, span } => drop(flow.send(to, own(span))),
            Action::Recv { from, span } => drop(flow.recv(from, own(span))),
            Action::Copy { from, into } => flow.copy(own(from), own(into)),
            Action::Combine { left, into } => flow.combine(own(left), own(into)),
            Action::Delay { .. } => {}
        }
    }
    flow.done()
}
