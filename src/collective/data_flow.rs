//! A program written as if its operations were carried out one by one, in order: each comes after those before it that use the same bytes, where
//! one of the two writes them, and after nothing else. So receives are posted as early as their place allows.

use crate::schedule::{Buffer, OpId, Program, Span};
use crate::topology::Rank;
use std::collections::BTreeMap;

/// Who used the bytes of a span last.
#[derive(Debug, Clone, Default)]
struct Use {
    end: usize,
    written: Option<OpId>,
    /// Since then.
    read: Vec<OpId>,
}

/// A program under construction. Nothing is done with spans of no bytes.
#[derive(Debug, Default)]
pub struct DataFlow {
    program: Program,
    /// By buffer and first byte; they do not overlap.
    uses: BTreeMap<(Buffer, usize), Use>,
}

impl DataFlow {
    pub fn new() -> DataFlow {
        DataFlow::default()
    }

    /// The program.
    pub fn done(self) -> Program {
        self.program
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
        self.add(None, Some(span), &[], |program, after| program.recv(from, span, after))
    }

    /// Adds a copy, unless it is there already.
    pub fn copy(&mut self, from: Span, into: Span) {
        if from != into {
            self.add(Some(from), Some(into), &[], |program, after| program.copy(from, into, after));
        }
    }

    /// Adds `into := left op into`.
    pub fn combine(&mut self, left: Span, into: Span) {
        self.add(Some(left), Some(into), &[], |program, after| program.combine(left, into, after));
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
        let mut after = after.to_vec();
        if let Some(span) = reads {
            self.read(span, op, &mut after);
        }
        if let Some(span) = writes {
            self.write(span, op, &mut after);
        }
        after.sort_unstable();
        after.dedup();
        Some(push(&mut self.program, &after))
    }

    /// Notes that an operation reads a span, and what it comes after.
    fn read(&mut self, span: Span, op: OpId, after: &mut Vec<OpId>) {
        if span.buffer == Buffer::Input {
            return; // which is never written
        }
        let mut next = span.offset;
        for key in self.split(span) {
            let Some(used) = self.uses.get_mut(&key) else { continue };
            let (begin, end) = (key.1, used.end);
            after.extend(used.written);
            used.read.push(op);
            self.note(span.buffer, next..begin, op);
            next = end;
        }
        self.note(span.buffer, next..span.offset + span.len, op);
    }

    /// Bytes that nothing used so far are read.
    fn note(&mut self, buffer: Buffer, bytes: std::ops::Range<usize>, op: OpId) {
        if !bytes.is_empty() {
            self.uses.insert((buffer, bytes.start), Use { end: bytes.end, written: None, read: vec![op] });
        }
    }

    /// Notes that an operation writes a span, and what it comes after.
    fn write(&mut self, span: Span, op: OpId, after: &mut Vec<OpId>) {
        for key in self.split(span) {
            if let Some(used) = self.uses.remove(&key) {
                after.extend(used.written.into_iter().chain(used.read));
            }
        }
        self.uses.insert((span.buffer, span.offset), Use { end: span.offset + span.len, written: Some(op), read: Vec::new() });
    }

    /// Splits what lies across the ends of a span, and says what lies in it.
    fn split(&mut self, span: Span) -> Vec<(Buffer, usize)> {
        for at in [span.offset, span.offset + span.len] {
            if let Some((&key, used)) = self.uses.range_mut((span.buffer, 0)..(span.buffer, at)).next_back()
                && used.end > at
            {
                let right = used.clone();
                used.end = at;
                self.uses.insert((key.0, at), right);
            }
        }
        self.uses.range((span.buffer, span.offset)..(span.buffer, span.offset + span.len)).map(|(&key, _)| key).collect()
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
