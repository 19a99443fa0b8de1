//! A program written as if its operations were carried out one by one, in order: each comes after those before it that use the same bytes, where
//! one of the two writes them, and after nothing else. So receives are posted as early as their place allows.

use super::Shape;
use crate::schedule::{Action, Buffer, Lane, OpId, Program, Span};
use crate::topology::Rank;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Who used the bytes of a span last.
#[derive(Debug, Clone, Default)]
struct Use {
    end: usize,
    written: Option<OpId>,
    /// Since then.
    read: SmallVec<[OpId; 4]>,
}

/// A program under construction. Nothing is done with spans of no bytes.
#[derive(Debug, Default)]
pub struct DataFlow {
    program: Program,
    /// Of each buffer, by first byte; they do not overlap.
    uses: [BTreeMap<usize, Use>; 4],
    /// Of each buffer, where what is known to be used ends: what follows was not used, and most programs go on from there.
    ends: [usize; 4],
    /// What the operation that is added comes after.
    after: Vec<OpId>,
}

impl DataFlow {
    pub fn new() -> DataFlow {
        DataFlow::default()
    }

    /// The program.
    pub fn done(self) -> Program {
        self.program
    }

    /// The lane of what is added from now on.
    pub fn in_lane(&mut self, lane: Lane) {
        self.program.in_lane(lane);
    }

    /// Bytes of scratch that are used so far.
    pub fn scratch(&self) -> usize {
        self.program.scratch()
    }

    /// Adds the operations of a program that works on other places, among ranks of other names, in lanes from `lane` on, each in pieces of at most
    /// `segment` bytes (0: whole) of whole elements of `shape`. They come after what they came after there, and what they would disturb here.
    pub fn embed(
        &mut self,
        other: &Program,
        shape: &Shape,
        (lane, segment): (Lane, usize),
        rename: impl Fn(Rank) -> Rank,
        place: impl Fn(Span) -> Span,
    ) {
        self.embed_messages(other, shape, (lane, segment), |peer, span| [(rename(peer), place(span))], &place);
    }

    /// As [`DataFlow::embed`], where each message may be several, each with its peer, or none.
    pub fn embed_messages<M: IntoIterator<Item = (Rank, Span)>>(
        &mut self,
        other: &Program,
        shape: &Shape,
        (lane, segment): (Lane, usize),
        messages: impl Fn(Rank, Span) -> M,
        place: impl Fn(Span) -> Span,
    ) {
        let mut added: Vec<Option<OpId>> = Vec::with_capacity(other.len());
        for (k, action) in other.actions().enumerate() {
            let after: SmallVec<[OpId; 8]> = other.after(k).iter().filter_map(|&op| added[op as usize]).collect();
            self.in_lane(lane + other.lane(k));
            self.program.in_flight(other.in_flight_said(k));
            let cut = |span: Span| shape.cut(place(span), segment);
            let pieces = |peer: Rank, span: Span| {
                let all = messages(peer, span).into_iter();
                all.flat_map(|(peer, whole)| shape.cut(whole, segment).map(move |piece| (peer, piece)))
            };
            added.push(match action {
                Action::Send { to, span } => pieces(to, span).filter_map(|(to, piece)| self.send_after(to, piece, &after)).last(),
                Action::Recv { from, span } => pieces(from, span).filter_map(|(from, piece)| self.recv_after(from, piece, &after)).last(),
                Action::Copy { from, into } => {
                    let pairs = cut(from).zip(cut(into)).filter(|(from, into)| from != into);
                    pairs.filter_map(|(from, into)| self.add_between(from, into, &after, Program::copy)).last()
                }
                Action::Combine { left, into } => {
                    cut(left).zip(cut(into)).filter_map(|(left, into)| self.add_between(left, into, &after, Program::combine)).last()
                }
                Action::Delay { .. } => None,
            });
        }
        self.program.in_flight(0);
    }

    /// Adds a send.
    pub fn send(&mut self, to: Rank, span: Span) -> Option<OpId> {
        self.send_after(to, span, &[])
    }

    /// Adds a send that waits for other operations too.
    pub fn send_after(&mut self, to: Rank, span: Span, after: &[OpId]) -> Option<OpId> {
        self.add(Some(span), None, after, |program, after| program.send(to, span, after))
    }

    /// Adds a receive.
    pub fn recv(&mut self, from: Rank, span: Span) -> Option<OpId> {
        self.recv_after(from, span, &[])
    }

    /// Adds a receive that waits for other operations too.
    pub fn recv_after(&mut self, from: Rank, span: Span, after: &[OpId]) -> Option<OpId> {
        self.add(None, Some(span), after, |program, after| program.recv(from, span, after))
    }

    /// Adds a copy, unless it is there already.
    pub fn copy(&mut self, from: Span, into: Span) {
        if from != into {
            self.add_between(from, into, &[], Program::copy);
        }
    }

    /// Adds `into := left op into`.
    pub fn combine(&mut self, left: Span, into: Span) {
        self.add_between(left, into, &[], Program::combine);
    }

    /// Adds what reads one span and writes another one.
    fn add_between(&mut self, from: Span, into: Span, after: &[OpId], push: fn(&mut Program, Span, Span, &[OpId]) -> OpId) -> Option<OpId> {
        self.add(Some(from), Some(into), after, |program, after| push(program, from, into, after))
    }

    fn add(
        &mut self,
        reads: Option<Span>,
        writes: Option<Span>,
        after: &[OpId],
        push: impl FnOnce(&mut Program, &[OpId]) -> OpId,
    ) -> Option<OpId> {
        if writes.or(reads).is_none_or(|span| span.len == 0) {
            return None;
        }
        let op = self.program.len() as OpId;
        let mut all = std::mem::take(&mut self.after);
        all.clear();
        all.extend(after);
        if let Some(span) = reads {
            self.read(span, op, &mut all);
        }
        if let Some(span) = writes {
            self.write(span, op, &mut all);
        }
        if all.len() > 1 {
            all.sort_unstable();
            all.dedup();
        }
        let added = push(&mut self.program, &all);
        self.after = all;
        Some(added)
    }

    /// Notes that an operation reads a span, and what it comes after.
    fn read(&mut self, span: Span, op: OpId, after: &mut Vec<OpId>) {
        if span.buffer == Buffer::Input {
            return; // which is never written
        }
        if let Some(used) = self.used(span) {
            after.extend(used.written);
            return used.read.push(op);
        }
        let mut next = span.offset;
        for begin in self.split(span) {
            let Some(used) = self.of(span.buffer).get_mut(&begin) else { continue };
            let end = used.end;
            after.extend(used.written);
            used.read.push(op);
            self.note(span.buffer, next..begin, op);
            next = end;
        }
        self.note(span.buffer, next..span.end(), op);
    }

    /// Bytes that nothing used so far are read.
    fn note(&mut self, buffer: Buffer, bytes: std::ops::Range<usize>, op: OpId) {
        if !bytes.is_empty() {
            self.insert(buffer, bytes.start, Use { end: bytes.end, written: None, read: SmallVec::from_slice(&[op]) });
        }
    }

    /// Notes that an operation writes a span, and what it comes after.
    fn write(&mut self, span: Span, op: OpId, after: &mut Vec<OpId>) {
        if self.overwrite(span, op, after) {
            return;
        }
        let parts = self.split(span);
        // it was a part of one
        if parts.len() == 1 && self.overwrite(span, op, after) {
            return;
        }
        for begin in parts {
            if let Some(used) = self.of(span.buffer).remove(&begin) {
                after.extend(used.written.into_iter().chain(used.read));
            }
        }
        self.insert(span.buffer, span.offset, Use { end: span.end(), written: Some(op), read: SmallVec::new() });
    }

    /// The same of a span that was used as it is; false if it was not.
    fn overwrite(&mut self, span: Span, op: OpId, after: &mut Vec<OpId>) -> bool {
        let Some(used) = self.used(span) else { return false };
        after.extend(used.written.replace(op));
        after.extend(used.read.drain(..));
        true
    }

    fn insert(&mut self, buffer: Buffer, begin: usize, used: Use) {
        let end = &mut self.ends[buffer as usize];
        *end = used.end.max(*end);
        self.of(buffer).insert(begin, used);
    }

    /// The uses of a buffer.
    fn of(&mut self, buffer: Buffer) -> &mut BTreeMap<usize, Use> {
        &mut self.uses[buffer as usize]
    }

    /// Who used a span that was used as it is, and not in parts or as a part: most are.
    fn used(&mut self, span: Span) -> Option<&mut Use> {
        if self.ends[span.buffer as usize] <= span.offset {
            return None;
        }
        self.of(span.buffer).get_mut(&span.offset).filter(|used| used.end == span.end())
    }

    /// Splits what lies across the ends of a span, and says where what lies in it begins.
    fn split(&mut self, span: Span) -> SmallVec<[usize; 8]> {
        let (begin, end) = (span.offset, span.end());
        if self.ends[span.buffer as usize] <= begin {
            return SmallVec::new();
        }
        let uses = self.of(span.buffer);
        // the last one that begins before the end: most spans are new, or a part of it from its first byte on
        let Some((&at, used)) = uses.range_mut(..end).next_back().filter(|(_, used)| used.end > begin) else { return SmallVec::new() };
        let right = (used.end > end).then(|| used.clone());
        used.end = used.end.min(end);
        let inside = (at < begin).then(|| used.clone());
        if at < begin {
            used.end = begin;
        }
        let parts = right.into_iter().map(|right| (end, right)).chain(inside.into_iter().map(|inside| (begin, inside)));
        parts.for_each(|(at, part)| drop(uses.insert(at, part)));
        if at <= begin {
            return SmallVec::from_slice(&[begin]);
        }
        if let Some((_, used)) = uses.range_mut(..begin).next_back()
            && used.end > begin
        {
            let right = used.clone();
            used.end = begin;
            uses.insert(begin, right);
        }
        uses.range(begin..end).map(|(&at, _)| at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_come_after_those_that_they_would_disturb() {
        let mut flow = DataFlow::new();
        let (left, right, both) = (Span::output(0, 4), Span::output(4, 4), Span::output(0, 8));
        flow.send(1, both); // 0
        flow.recv(1, left); // 1: when the send is complete
        flow.send(2, right); // 2: bytes that were only read
        flow.recv(2, Span::output(2, 4)); // 3: after the sends and the other receive
        flow.send(3, both); // 4: of what three operations left
        flow.recv(3, Span::scratch(0, 4)); // 5
        flow.combine(Span::scratch(0, 4), left); // 6
        flow.copy(left, left);
        flow.send(1, Span::output(8, 0));
        flow.send(1, Span::input(0, 8)); // 7
        let program = flow.done();
        let after: Vec<&[OpId]> = (0..program.len()).map(|k| program.after(k)).collect();
        assert_eq!(after, [&[][..], &[0], &[], &[0, 1, 2], &[1, 3], &[], &[1, 3, 4, 5], &[]]);
    }
}
