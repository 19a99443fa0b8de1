//! The binomial scatter that two broadcasts begin with. Not an algorithm of its own here.

use super::super::Shape;
use super::super::blocks::Blocks;
use super::super::tree::{knomial, subtree};
use crate::schedule::{OpId, Program};

/// Scatters blocks down the binomial tree: each node gets the blocks of its whole subtree and passes its children's on. Empty
/// spans are not sent. Returns the receive that brought this node's blocks, if it needed one.
pub fn scatter(program: &mut Program, v: usize, shape: &Shape, blocks: &Blocks) -> Option<OpId> {
    let node = knomial(v, blocks.count(), 2);
    let span = |v: usize| blocks.span(subtree(v, blocks.count()));
    let got = node.parent.filter(|_| span(v).len > 0).map(|p| program.recv(shape.absolute(p), span(v), &[]));
    for &child in node.children.iter().filter(|&&c| span(c).len > 0) {
        program.send(shape.absolute(child), span(child), got.as_slice());
    }
    got
}
