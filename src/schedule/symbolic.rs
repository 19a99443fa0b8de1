//! A symbolic run: what lies in each rank's buffers, as pieces of ranks' data, after all operations.

use super::check::{Event, fault};
use super::memory::Memory;
use super::specification::{Elements, Piece, Specification};
use super::{Action, Buffer, Matching, Schedule, Span};
use crate::error::{Error, Result};
use crate::topology::Rank;
use rustc_hash::FxHashMap;

/// What lies in each rank's buffers at the end.
pub(super) fn run(schedule: &Schedule, pairs: &Matching, order: &[Event], specification: &Specification) -> Result<Vec<Memory>> {
    let mut memories: Vec<Memory> = specification.before.iter().map(|pieces| Memory::new(pieces)).collect();
    let mut under_way: FxHashMap<(Rank, usize), Vec<Piece>> = FxHashMap::default();
    for &(me, k, is_end) in order {
        let read = |memories: &[Memory], span: Span| {
            memories[me].read(span).map_err(|at| {
                Error::invalid(format!(
                    "check the schedule: operation {k} of rank {me} reads byte {at} of its {}, where nothing lies",
                    span.buffer.name()
                ))
            })
        };
        match (schedule.programs[me].action(k), is_end) {
            (Action::Send { span, .. }, false) if span.buffer != Buffer::Control => {
                let Some(receive) = pairs.partner(me, k) else { continue };
                under_way.insert(receive, moved(read(&memories, span)?, span.offset, Span::output(0, span.len)));
            }
            (Action::Recv { span, .. }, true) if span.buffer != Buffer::Control => {
                match under_way.remove(&(me, k)) {
                    Some(came) => moved(came, 0, span).into_iter().for_each(|p| memories[me].write(p)),
                    // only control messages are sent without pieces, and one of no bytes leaves nothing to write
                    None if span.len == 0 => {}
                    None => return fault(format!("operation {k} of rank {me} receives a control message into the message")),
                }
            }
            (Action::Copy { from, into }, true) => {
                let read = read(&memories, from)?;
                moved(read, from.offset, into).into_iter().for_each(|p| memories[me].write(p));
            }
            (Action::Combine { left, into }, true) => {
                let (left, right) = (moved(read(&memories, left)?, left.offset, into), read(&memories, into)?);
                let combined = combine(left, &right, specification.elements);
                let combined = combined.map_err(|what| Error::invalid(format!("check the schedule: operation {k} of rank {me} {what}")))?;
                combined.into_iter().for_each(|p| memories[me].write(p));
            }
            _ => {}
        }
    }
    Ok(memories)
}

/// Pieces of a span that begins at `begin`, in another span.
fn moved(pieces: Vec<Piece>, begin: usize, into: Span) -> Vec<Piece> {
    pieces.into_iter().map(|p| Piece { buffer: into.buffer, at: p.at - begin + into.offset, ..p }).collect()
}

/// The pieces of two operands, which lie in the same place, combined.
fn combine(left: Vec<Piece>, right: &[Piece], elements: Elements) -> std::result::Result<Vec<Piece>, String> {
    let mut all = Vec::new();
    for l in &left {
        for r in right.iter().filter(|r| r.at < l.end() && l.at < r.end()) {
            let (start, end) = (l.at.max(r.at), l.end().min(r.end()));
            let (l, r) = (l.part(start, end), r.part(start, end));
            if l.from != r.from {
                return Err(format!("combines place {} of one value with place {} of another", l.from, r.from));
            }
            if l.from % elements.bytes != 0 || l.len % elements.bytes != 0 {
                return Err(format!("combines bytes {} to {}, which are no elements of {}", l.from, l.from + l.len, elements.bytes));
            }
            let of = l.of.combined(&r.of, elements.commute).ok_or_else(|| {
                format!("combines ranks {:?} with {:?}", l.of.ranks().collect::<Vec<_>>(), r.of.ranks().collect::<Vec<_>>())
            })?;
            all.push(Piece { of, ..r });
        }
    }
    Ok(all)
}
