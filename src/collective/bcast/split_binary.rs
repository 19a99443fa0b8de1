//! Split binary tree (Pjesivac-Grbovic et al. 2007): the two halves of the message go down two trees at once, then partners
//! swap halves. Each node moves half the bytes of a binary tree.
//!
//! ```text
//! positions    1 3 5 ... : the left tree, first half       2 4 6 ... : the right tree, second half
//! partners     (1,2) (3,4) (5,6) ...; a last one without partner gets its missing half from the right tree's last node
//! ```

use super::super::tree::{Node, binary};
use super::super::{Algorithm, Parameters, Shape};
use crate::schedule::{OpId, Program, Span, growing_segments};
use crate::topology::Rank;

/// Halves down two binary trees, then an exchange.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "split_binary",
    summary: "halves of the message down two binary trees, then partners swap",
    citation: "Pjesivac-Grbovic et al., Cluster Computing 10 (2007)",
    segmented: true,
    exchanges_halves: true,
    whole: true,
    builder: Some(program),
    ..Algorithm::NEW
};

/// The two halves: what the left and what the right tree carries.
fn halves(bytes: usize) -> [(usize, usize); 2] {
    let first = bytes.div_ceil(2);
    [(0, first), (first, bytes - first)]
}

/// The segments of a half.
fn parts(half: (usize, usize), parameters: &Parameters) -> impl Iterator<Item = Span> + Clone {
    growing_segments(half.1, parameters.segment, parameters.in_flight).map(move |s| Span::output(s.offset + half.0, s.len))
}

fn program(me: Rank, shape: &Shape, parameters: &Parameters) -> Program {
    along(me, shape, parameters, binary)
}

/// The halves down two trees of this shape.
pub(crate) fn along(me: Rank, shape: &Shape, parameters: &Parameters, tree: fn(usize, usize) -> Node) -> Program {
    let mut program = Program::new();
    let v = shape.relative(me);
    let sides = [shape.ranks / 2, (shape.ranks - 1) / 2]; // nodes of the left and of the right tree
    let place = |side: usize, index: usize| shape.absolute(2 * index + 1 + side);
    let halves = halves(shape.bytes);
    if v == 0 {
        root(&mut program, shape, parameters, &halves);
        return program;
    }
    let (side, index) = ((v - 1) % 2, (v - 1) / 2);
    let node = tree(index, sides[side]);
    let parent = node.parent.map_or(shape.root, |p| place(side, p));
    let mut got: Vec<OpId> = Vec::new();
    for span in parts(halves[side], parameters) {
        let part = program.recv(parent, span, &[]);
        got.push(part);
        for &child in &node.children {
            program.send(place(side, child), span, &[part]);
        }
    }
    // the exchange; without a right tree (two ranks) the root itself sends both halves
    let other = 1 - side;
    let (mine, missing) = (halves[side], halves[other]);
    let missing = Span::output(missing.0, missing.1);
    if sides[1] == 0 {
        program.recv(shape.root, missing, &[]);
        return program;
    }
    let partner = index.min(sides[other] - 1);
    if partner == index {
        program.send(place(other, index), Span::output(mine.0, mine.1), &got);
    }
    if side == 1 && index + 1 == sides[1] && sides[0] > sides[1] {
        program.send(place(0, index + 1), Span::output(mine.0, mine.1), &got);
    }
    program.recv(place(other, partner), missing, &[]);
    program
}

/// The root feeds both trees in turns.
fn root(program: &mut Program, shape: &Shape, parameters: &Parameters, halves: &[(usize, usize); 2]) {
    if shape.ranks < 2 {
        return;
    }
    let (mut left, mut right) = (parts(halves[0], parameters), parts(halves[1], parameters));
    if shape.ranks == 2 {
        for span in left {
            program.send(shape.absolute(1), span, &[]);
        }
        program.send(shape.absolute(1), Span::output(halves[1].0, halves[1].1), &[]);
        return;
    }
    loop {
        let pair = [left.next(), right.next()];
        if pair == [None, None] {
            return;
        }
        for (child, span) in pair.into_iter().enumerate().filter_map(|(side, span)| Some((side + 1, span?))) {
            program.send(shape.absolute(child), span, &[]);
        }
    }
}
