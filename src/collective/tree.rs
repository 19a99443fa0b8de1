//! Tree shapes apart from sending, and the one program that sends along any tree.
//!
//! Positions are relative to the root (0 is the root), children in the order in which they are served.

use super::{Parameters, Shape};
use crate::schedule::{OpId, Program, Span, growing_segments};
use crate::topology::Rank;
use std::ops::Range;

/// One node's place in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// `None` for the root.
    pub parent: Option<usize>,
    /// In the order in which they are served.
    pub children: Vec<usize>,
}

/// Every node is the root's child.
pub fn flat(v: usize, ranks: usize) -> Node {
    Node { parent: (v > 0).then_some(0), children: if v == 0 { (1..ranks).collect() } else { vec![] } }
}

/// Every node has one child.
pub fn chain(v: usize, ranks: usize) -> Node {
    Node { parent: v.checked_sub(1), children: (v + 1..ranks).take(1).collect() }
}

/// A heap: the children of v are 2v+1 and 2v+2.
pub fn binary(v: usize, ranks: usize) -> Node {
    Node { parent: (v > 0).then(|| (v - 1) / 2), children: [2 * v + 1, 2 * v + 2].into_iter().filter(|&c| c < ranks).collect() }
}

/// The r-nomial tree: a node's parent is the node with its lowest digit (base r) that is not zero set to zero. The farthest
/// children, which have the largest subtrees, are served first; for r = 2 this is MPICH's order, high mask to low.
///
/// ```text
///   r = 2, 8 nodes:   0 -> 4, 2, 1     4 -> 6, 5     2 -> 3     6 -> 7
/// ```
pub fn knomial(v: usize, ranks: usize, radix: usize) -> Node {
    let radix = radix.max(2);
    // `step` is the weight of v's lowest digit that is not zero; for the root, the first power that is not below `ranks`
    let mut step = 1;
    while step < ranks && (v / step).is_multiple_of(radix) {
        step *= radix;
    }
    let parent = (v > 0).then(|| v - (v / step % radix) * step);
    let mut children = Vec::new();
    while step > 1 {
        step /= radix;
        children.extend((1..radix).map(|d| v + d * step).take_while(|&c| c < ranks));
    }
    Node { parent, children }
}

/// The nodes below a node of the binomial tree, and itself: as many as the value of v's lowest set bit; the root's are all.
pub fn subtree(v: usize, ranks: usize) -> Range<usize> {
    subtree_of(v, ranks, 2)
}

/// The same of the r-nomial tree: as many as the weight of v's lowest digit that is not zero.
pub fn subtree_of(v: usize, ranks: usize, radix: usize) -> Range<usize> {
    let (radix, mut step) = (radix.max(2), 1);
    while step < ranks && (v / step).is_multiple_of(radix) {
        step *= radix;
    }
    v..(v + step).min(ranks)
}

/// Sends the message along a tree, segment by segment: a node passes on a segment to all its children before it turns to the
/// next one, and receives meanwhile.
pub fn tree_program(me: Rank, shape: &Shape, parameters: &Parameters, tree: impl Fn(usize, usize) -> Node) -> Program {
    let node = tree(shape.relative(me), shape.ranks);
    let each = node.children.len() + usize::from(node.parent.is_some());
    let segments = growing_segments(shape.bytes, parameters.segment, parameters.in_flight);
    let mut program = Program::with_room(each * segments.clone().count());
    for span in segments {
        let got = node.parent.map(|p| program.recv(shape.absolute(p), span, &[]));
        for &child in &node.children {
            program.send(shape.absolute(child), span, got.as_slice());
        }
    }
    program
}

/// Sends the message along a tree with an explicit handshake on each edge: one byte asks, one byte grants, then the message.
/// All of a node's children are asked before the first is served, so that their answers overlap.
pub fn rendezvous_program(me: Rank, shape: &Shape, tree: impl Fn(usize, usize) -> Node) -> Program {
    let mut program = Program::new();
    let node = tree(shape.relative(me), shape.ranks);
    let (ask, whole) = (Span::control(1), Span::output(0, shape.bytes));
    let got = node.parent.map(|p| {
        let parent = shape.absolute(p);
        let asked = program.recv(parent, ask, &[]);
        program.send(parent, ask, &[asked]);
        program.recv(parent, whole, &[])
    });
    for &child in &node.children {
        program.send(shape.absolute(child), ask, got.as_slice());
    }
    for &child in &node.children {
        let granted = program.recv(shape.absolute(child), ask, &[]);
        program.send(shape.absolute(child), whole, &[granted]);
    }
    program
}

/// Empty messages up a tree, each when those of all children are there, and then down.
pub fn up_and_down(node: &Node) -> Program {
    let (mut program, token) = (Program::new(), Span::control(0));
    let mut received: Vec<OpId> = node.children.iter().map(|&c| program.recv(c, token, &[])).collect();
    if let Some(parent) = node.parent {
        program.send(parent, token, &received);
        received = vec![program.recv(parent, token, &[])];
    }
    down(&mut program, &node.children, token, &received);
    program
}

/// Passes something on to each child when all was received that comes first. The others start behind the first one: of a thousand children none has a list of
/// a thousand of its own.
pub fn down(program: &mut Program, children: &[Rank], token: Span, received: &[OpId]) {
    for (k, &child) in children.iter().enumerate() {
        program.send(child, token, if k == 0 { received } else { &[] });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_down_a_wide_tree_has_one_list_of_what_comes_up() {
        let node = Node { parent: None, children: (1..1001).collect() };
        let program = up_and_down(&node);
        let after: usize = (0..program.len()).map(|op| program.after(op).len()).sum();
        assert_eq!((program.len(), after), (2000, 1000));
    }

    #[test]
    fn parents_and_children_agree_and_reach_everybody() {
        type Tree = dyn Fn(usize, usize) -> Node;
        let shapes: [(&str, &Tree); 6] = [
            ("flat", &flat),
            ("chain", &chain),
            ("binary", &binary),
            ("binomial", &|v, n| knomial(v, n, 2)),
            ("3-nomial", &|v, n| knomial(v, n, 3)),
            ("8-nomial", &|v, n| knomial(v, n, 8)),
        ];
        for (name, tree) in shapes {
            for ranks in 1..70 {
                for v in 0..ranks {
                    let node = tree(v, ranks);
                    assert_eq!(node.parent.is_none(), v == 0, "{name} {v} of {ranks}");
                    assert!(node.children.iter().all(|&c| c < ranks && c > v && tree(c, ranks).parent == Some(v)), "{name} {v} of {ranks}");
                    assert!(node.parent.is_none_or(|p| tree(p, ranks).children.contains(&v)), "{name} {v} of {ranks}");
                }
            }
        }
        for (radix, ranks) in [(2, 70), (3, 70), (8, 70)] {
            for v in 0..ranks {
                let mut below: Vec<usize> =
                    knomial(v, ranks, radix).children.into_iter().flat_map(|c| subtree_of(c, ranks, radix)).collect();
                below.push(v);
                below.sort_unstable();
                assert_eq!(below, subtree_of(v, ranks, radix).collect::<Vec<_>>(), "{v} of {ranks}, radix {radix}");
            }
        }
        assert_eq!(knomial(0, 8, 2).children, [4, 2, 1]);
        assert_eq!(knomial(4, 8, 2).children, [6, 5]);
        assert_eq!(knomial(0, 9, 3).children, [3, 6, 1, 2]);
    }
}
