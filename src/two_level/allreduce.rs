//! The allreduce through coordinators: each group's vectors are combined up its tree, the coordinators exchange what they have, and the result goes
//! down the tree. Each datum crosses between two groups as often as the coordinators' algorithm sends it, whatever the groups' sizes, and in segments
//! the three levels work at once.

use super::coordinated::{Coordinated, Part, Through};
use crate::collective::{Shape, allreduce, bcast};
use crate::error::Result;
use crate::schedule::{Buffer, Lane, OpId, Program, Span};

pub(super) static THROUGH: Through = Through {
    collective: &allreduce::COLLECTIVE,
    trees: || bcast::trees().collect(),
    between: || allreduce::COLLECTIVE.built().collect(),
    segmented: true,
    fits: Coordinated::keeps_order,
    longest_message: |_, shape| shape.bytes,
    program,
};

/// Segments that one child's partial results lie in, in turns.
const IN_TURNS: usize = 2;

/// The lanes of what goes up and down, and the first of those between coordinators.
const UP: Lane = 0;
const DOWN: Lane = 1;
pub(super) const BETWEEN: Lane = 2;

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
        let (own, ready, used) = combine_up(&mut program, part, span, |child| scratch.of_child(child, k, span.len), before);
        combined.push(used);
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

/// Combines what a rank has of a span with what its children send. Gives where that lies, what it comes after, and the operations after which the
/// scratch may be used again.
fn combine_up(
    program: &mut Program,
    part: &Part,
    span: Span,
    scratch: impl Fn(usize) -> Span,
    before: &[OpId],
) -> (Span, Vec<OpId>, Vec<OpId>) {
    let input = Span { buffer: Buffer::Input, ..span };
    if part.children.is_empty() && part.parent.is_some() {
        return (if part.shape.in_place { span } else { input }, Vec::new(), Vec::new());
    }
    if !part.shape.elements.commute {
        return combine_in_order(program, part, span, scratch, before);
    }
    let mut last: Vec<OpId> = if part.shape.in_place { Vec::new() } else { vec![program.copy(input, span, &[])] };
    let mut used = Vec::new();
    // the children with the smallest subtrees, which are served last, are ready first
    for (k, &child) in part.children.iter().enumerate().rev() {
        let got = program.recv(child, scratch(k), before);
        last.push(got);
        last = vec![program.combine(scratch(k), span, &last)];
        used.clone_from(&last);
    }
    (span, last, used)
}

/// The same in the order of ranks, this one's first: what lies left is combined into what comes from the next child.
fn combine_in_order(
    program: &mut Program,
    part: &Part,
    span: Span,
    scratch: impl Fn(usize) -> Span,
    before: &[OpId],
) -> (Span, Vec<OpId>, Vec<OpId>) {
    let mut left = if part.shape.in_place { span } else { Span { buffer: Buffer::Input, ..span } };
    let mut last = Vec::new();
    let mut children: Vec<usize> = (0..part.children.len()).collect();
    children.sort_unstable_by_key(|&k| part.children[k]);
    for k in children {
        last.push(program.recv(part.children[k], scratch(k), before));
        last = vec![program.combine(left, scratch(k), &last)];
        left = scratch(k);
    }
    if left != span {
        last = vec![program.copy(left, span, &last)];
    }
    (span, last.clone(), last)
}
