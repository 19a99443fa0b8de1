//! The binomial scatter that two broadcasts begin with. Not an algorithm of its own here.

use super::super::Shape;
use super::super::blocks::Blocks;
use super::super::tree::knomial;
use crate::schedule::{OpId, Program};

/// The blocks that a node holds after the scatter: those of its subtree, which has as many nodes as the value of v's lowest set
/// bit; the root's is the whole tree.
pub fn subtree(v: usize, ranks: usize) -> std::ops::Range<usize> {
    if v == 0 { 0..ranks } else { v..(v + (v & v.wrapping_neg())).min(ranks) }
}

/// Scatters blocks down the binomial tree: each node gets the blocks of its whole subtree and passes its children's on. Empty
/// spans are not sent. Returns the receive that brought this node's blocks, if it needed one.
pub fn scatter(program: &mut Program, v: usize, shape: &Shape, blocks: &Blocks) -> Option<OpId> {
    let node = knomial(v, blocks.count, 2);
    let span = |v: usize| blocks.span(subtree(v, blocks.count).start, subtree(v, blocks.count).end);
    let got = node.parent.filter(|_| span(v).len > 0).map(|p| program.recv(shape.absolute(p), span(v), &[]));
    for &child in node.children.iter().filter(|&&c| span(c).len > 0) {
        program.send(shape.absolute(child), span(child), got.as_slice());
    }
    got
}
