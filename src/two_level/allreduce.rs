//! The allreduce through coordinators: each group's vectors are combined up its tree, the coordinators exchange what they have, and the result goes
//! down the tree. Each datum crosses between two groups as often as the coordinators' algorithm sends it, whatever the groups' sizes, and in segments
//! the three levels work at once.

use super::blocks::{BETWEEN, DOWN, UP};
use super::coordinated::{Coordinated, Part, Through};
use crate::collective::{Shape, allreduce, bcast};
use crate::error::Result;
use crate::schedule::{Buffer, Lane, OpId, Program, Span};

pub(super) static THROUGH: Through = Through {
    collective: &allreduce::COLLECTIVE,
    inside: || bcast::trees().collect(),
    between: || allreduce::COLLECTIVE.built().collect(),
    segmented: true,
    fits: Coordinated::keeps_order,
    longest_message: |_, shape| shape.bytes,
    program,
};

/// Segments that one child's partial results lie in, in turns.
const IN_TURNS: usize = 2;

/// Where results of the children are put, and what coordinators use for each segment under way.
struct Scratch {
    segment: usize,
    children: usize,
    /// Segments that coordinators work on at once.
    at_once: usize,
    /// Bytes that the coordinators' algorithm uses for a segment.
    between: usize,
}

impl Scratch {
    /// Of the n-th child, for the k-th segment.
    fn of_child(&self, n: usize, k: usize, len: usize) -> Span {
        Span::scratch((n * IN_TURNS + k % IN_TURNS) * self.segment, len)
    }

    /// Where what coordinators use for the k-th segment begins.
    fn of_between(&self, k: usize) -> usize {
        self.children * IN_TURNS * self.segment + (k % self.at_once) * self.between
    }
}

fn program(part: &Part) -> Result<Program> {
    let (shape, n) = (part.shape, part.groups.len());
    let segments: Vec<Span> = shape.segments(part.segment).collect();
    let between = |len: usize| part.between(&Shape { ranks: n, root: 0, bytes: len, in_place: true, ..*shape });
    let exchange = if part.parent.is_none() { Some(between(segments[0].len)?) } else { None };
    let aligned = |bytes: usize| bytes.next_multiple_of(size_of::<u128>());
    let scratch = Scratch {
        segment: aligned(segments[0].len),
        children: part.children.len(),
        at_once: part.at_once(),
        between: aligned(exchange.as_ref().map_or(0, Program::scratch)),
    };
    let mut program = Program::new();
    // what was done for each segment that must be over before its memory serves another one
    let mut combined: Vec<Vec<OpId>> = Vec::new();
    let mut exchanged: Vec<Vec<OpId>> = Vec::new();
    for (k, &span) in segments.iter().enumerate() {
        program.in_lane(UP);
        let before = k.checked_sub(IN_TURNS).map_or(&[][..], |earlier| &combined[earlier]);
        let (own, ready) = combine_up(&mut program, part, span, |child| scratch.of_child(child, k, span.len), before);
        combined.push(ready.clone());
        let result: Vec<OpId> = if let Some(parent) = part.parent {
            let sent = program.send(parent, own, &ready);
            // it may be sent from where the result goes
            let after = if own.buffer == Buffer::Output { &[sent][..] } else { &[] };
            program.in_lane(DOWN);
            vec![program.recv(parent, span, after)]
        } else {
            let mut after = ready;
            after.extend(k.checked_sub(scratch.at_once).map_or(&[][..], |earlier| &exchanged[earlier]));
            let place = |s: Span| match s.buffer {
                Buffer::Output => Span { offset: span.offset + s.offset, ..s },
                Buffer::Scratch => Span { offset: scratch.of_between(k) + s.offset, ..s },
                Buffer::Input | Buffer::Control => s,
            };
            let lane = BETWEEN + (k % scratch.at_once * part.lanes()) as Lane;
            // the last one may be shorter
            let short = if span.len == segments[0].len { None } else { Some(between(span.len)?) };
            let exchange = short.as_ref().or(exchange.as_ref());
            let all = exchange.map_or(0..0, |p| program.embed(p, |g| part.groups[g][0], place, lane, &after));
            exchanged.push(if all.is_empty() { after } else { all.collect() });
            exchanged[k].clone()
        };
        program.in_lane(DOWN);
        for &child in &part.children {
            program.send(child, span, &result);
        }
    }
    Ok(program)
}

/// Combines what a rank has of a span with what its children send. Gives where that lies and what it comes after, after which the scratch may be used again
/// too.
///
/// With an operation that does not commute in the order of ranks, of which this one is the first: what lies left is combined into what comes from the next child.
fn combine_up(program: &mut Program, part: &Part, span: Span, scratch: impl Fn(usize) -> Span, before: &[OpId]) -> (Span, Vec<OpId>) {
    let (mut at, mut last) = (if part.shape.in_place { span } else { Span { buffer: Buffer::Input, ..span } }, Vec::new());
    if part.children.is_empty() && part.parent.is_some() {
        return (at, last);
    }
    // the children with the smallest subtrees, which are served last, are ready first
    let mut children: Vec<usize> = (0..part.children.len()).rev().collect();
    let commute = part.shape.elements.commute;
    if !commute {
        children.sort_unstable_by_key(|&k| part.children[k]);
    } else if at != span {
        last = vec![program.copy(at, span, &[])];
        at = span;
    }
    for k in children {
        last.push(program.recv(part.children[k], scratch(k), before));
        let (left, into) = if commute { (scratch(k), at) } else { (at, scratch(k)) };
        last = vec![program.combine(left, into, &last)];
        at = into;
    }
    if at != span {
        last = vec![program.copy(at, span, &last)];
    }
    (span, last)
}
