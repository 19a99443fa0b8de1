//! What messages cost, kept by stream.

use super::Run;
use crate::model::{Cost, Pipe};
use crate::topology::{Link, Rank};

/// It pays to keep costs where a stream has so many messages.
const KEPT: usize = 4;

/// What a message on a stream costs. All but the last one of a stream are of one length mostly: it is not looked up for each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    bytes: usize,
    cost: Cost,
    pipe: Option<(Pipe, f64)>,
}

/// Room for what is known of so many streams of so many operations; none where it is not kept.
pub(super) fn kept(ops: usize, streams: usize) -> Vec<Option<Known>> {
    if ops >= KEPT * streams { vec![None; streams] } else { Vec::new() }
}

impl Run<'_> {
    /// What a message costs, and what it shares with others.
    pub(super) fn cost(&mut self, rank: u32, op: usize, link: Link, bytes: usize) -> (Cost, Option<(Pipe, f64)>) {
        let stream = self.streams.at(rank as Rank, self.machines[rank as usize].program.stream(op));
        if let Some(Some(known)) = self.known.get(stream)
            && known.bytes == bytes
        {
            return (known.cost, known.pipe);
        }
        let (cost, pipe) = (self.model.cost(link, bytes), self.model.pipe(link, bytes));
        if let Some(known) = self.known.get_mut(stream) {
            *known = Some(Known { bytes, cost, pipe });
        }
        (cost, pipe)
    }
}
