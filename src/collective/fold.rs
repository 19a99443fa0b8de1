//! Vectors that are combined: of two ranks, and up a tree.
//!
//! `into := left op into` overwrites one operand, what the caller gives is only read, and a rank's own value may be either operand. So a value goes to
//! and fro between two places; it is never copied to be combined, but where an operation that does not commute wants the caller's data on the right.

use super::Shape;
use super::data_flow::DataFlow;
use super::tree::Node;
use crate::schedule::{Buffer, Span};
use crate::topology::Rank;

/// Receives into memory of its own that a rank posts before it wants them, in bytes: short messages come at once, whatever else is waited for, and
/// long ones take no more memory than two vectors.
const POSTED_EARLY: usize = 4 << 20;

/// How many places of so many bytes are received into in turns.
pub fn places(bytes: usize) -> usize {
    (POSTED_EARLY / bytes.max(1)).max(2)
}

/// A rank's vector while it is combined with those of others. Parts of it are spans that count from its beginning.
pub struct Vector {
    /// Where it is now.
    pub at: Span,
    /// Where it shall be at the end.
    pub home: Span,
    /// Where it may be besides.
    spare: Span,
    commutes: bool,
}

impl Vector {
    /// A vector that lies in `given` and shall get to `home`; its second place begins at `spare` of the scratch.
    pub fn new(shape: &Shape, given: Span, home: Span, spare: usize) -> Vector {
        Vector { at: given, home, spare: Span::scratch(spare, given.len), commutes: shape.elements.commute }
    }

    /// Receives a part of a rank's vector and combines it with this one's; `lower`: this one's is the left operand.
    pub fn take_in(&mut self, flow: &mut DataFlow, from: Rank, part: Span, lower: bool) {
        let is_input = |at: Span| at.buffer == Buffer::Input;
        if is_input(self.at) && !lower && !self.commutes {
            flow.copy(part.within(self.at), part.within(self.spare));
            self.at = self.spare;
        }
        let other = if self.at == self.home { self.spare } else { self.home };
        let (mine, came) = (part.within(self.at), part.within(other));
        flow.recv(from, came);
        if is_input(self.at) || (lower && !self.commutes) {
            flow.combine(mine, came);
            self.at = other;
        } else {
            flow.combine(came, mine);
        }
    }

    /// Sends a part.
    pub fn send(&self, flow: &mut DataFlow, to: Rank, part: Span) {
        flow.send(to, part.within(self.at));
    }

    /// Brings a part home.
    pub fn settle(&mut self, flow: &mut DataFlow, part: Span) {
        flow.copy(part.within(self.at), part.within(self.home));
        self.at = self.home;
    }
}

/// Combines everybody's vector up a tree of the positions from the root on, segment by segment; the root's ends at `home`. A node combines in the
/// order of its children, its own first, so that the ranks of each value follow each other if the root is rank 0. `named`: the ranks of the tree as the program
/// calls them.
pub fn up(
    flow: &mut DataFlow,
    me: Rank,
    shape: &Shape,
    segment: usize,
    (given, home): (Span, Span),
    tree: impl Fn(usize, usize) -> Node,
    named: impl Fn(Rank) -> Rank,
) {
    let Node { parent, mut children } = tree(shape.relative(me), shape.ranks);
    children.sort_unstable();
    let (bytes, places) = (shape.bytes, places(shape.bytes).min(children.len()));
    let first = if home.buffer == Buffer::Scratch { bytes } else { 0 };
    for segment in shape.segments(segment) {
        let mut at = given;
        for (k, &child) in children.iter().enumerate() {
            let ends = k + 1 == children.len() && given != home;
            let other = if ends { home } else { Span::scratch(first + k % places * bytes, bytes) };
            flow.recv(named(shape.absolute(child)), segment.within(other));
            if at == home && shape.elements.commute {
                flow.combine(segment.within(other), segment.within(home));
            } else {
                flow.combine(segment.within(at), segment.within(other));
                at = other;
            }
        }
        match parent {
            Some(parent) => drop(flow.send(named(shape.absolute(parent)), segment.within(at))),
            None => flow.copy(segment.within(at), segment.within(home)),
        }
    }
}
