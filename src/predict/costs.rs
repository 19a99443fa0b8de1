//! What messages cost, kept by stream.

use super::Run;
use crate::model::{Cost, Pipe};
use crate::topology::{Link, Rank};

/// It pays to keep costs where a stream has so many messages.
const KEPT: usize = 4;

/// What a message costs. All but the last one of a stream are of one length mostly: it is not looked up for each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    to: Rank,
    bytes: usize,
    cost: Cost,
    pipe: Option<(Pipe, f64)>,
}

/// How long a message on a stream keeps the port that it comes in by.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownIn {
    bytes: usize,
    seconds: f64,
}

/// True if what is known of so many streams of so many operations is kept.
pub(super) fn keeps(ops: usize, streams: usize) -> bool {
    streams > 0 && ops >= KEPT * streams
}

impl Run<'_> {
    /// What a message costs, and what it shares with others.
    pub(super) fn cost(&mut self, rank: u32, op: usize, link: Link, bytes: usize) -> (Cost, Option<(Pipe, f64)>) {
        // of streams that are kept each, of others what each rank sent last
        let last = || rank as usize;
        let at = if self.known_in.is_empty() { last() } else { self.streams.at(rank as Rank, self.machines[last()].program.stream(op)) };
        if let Some(known) = self.known[at].filter(|known| (known.to, known.bytes) == (link.to, bytes)) {
            return (known.cost, known.pipe);
        }
        let (cost, pipe) = (self.model.cost(link, bytes), self.model.pipe(link, bytes));
        self.known[at] = Some(Known { to: link.to, bytes, cost, pipe });
        (cost, pipe)
    }

    /// How long the bytes of a message keep the port of the rank that receives it.
    pub(super) fn port_in(&mut self, rank: u32, op: usize) -> f64 {
        let program = self.machines[rank as usize].program;
        let Some((from, bytes)) = program.message(op) else { return 0.0 };
        let stream = self.streams.at(rank as Rank, program.stream(op));
        if let Some(Some(known)) = self.known_in.get(stream)
            && known.bytes == bytes
        {
            return known.seconds;
        }
        let seconds = self.model.port_in(Link { from, to: rank as Rank }, bytes);
        if let Some(known) = self.known_in.get_mut(stream) {
            *known = Some(KnownIn { bytes, seconds });
        }
        seconds
    }
}
