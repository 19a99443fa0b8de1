//! What messages cost, kept by sender and receiver.

use super::Run;
use crate::model::{Cost, Pipe};
use crate::topology::{Link, Rank};

/// Of so many peers each rank keeps what messages cost: those of a tree that many messages go down, in whatever lanes. By stream there would be more to keep
/// than a processor has near.
const PEERS: usize = 4;

/// What a message costs. All but the last one of a pipeline are of one length: it is not looked up for each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    peer: Rank,
    bytes: usize,
    cost: Cost,
    pipe: Option<(Pipe, f64)>,
}

/// How long a message keeps the port that it comes in by.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownIn {
    peer: Rank,
    bytes: usize,
    seconds: f64,
}

/// Room for what is known of so many ranks.
pub(super) fn room<K: Clone>(ranks: usize) -> Vec<Option<K>> {
    vec![None; PEERS * ranks]
}

/// Where that is kept of a rank's messages to or from a peer.
fn place(rank: Rank, peer: Rank) -> usize {
    PEERS * rank + peer % PEERS
}

impl Run<'_> {
    /// What a message costs, and what it shares with others.
    pub(super) fn cost(&mut self, link: Link, bytes: usize) -> (Cost, Option<(Pipe, f64)>) {
        let at = place(link.from, link.to);
        if let Some(known) = self.known[at].filter(|known| (known.peer, known.bytes) == (link.to, bytes)) {
            return (known.cost, known.pipe);
        }
        let (cost, pipe) = (self.model.cost(link, bytes), self.model.pipe(link, bytes));
        self.known[at] = Some(Known { peer: link.to, bytes, cost, pipe });
        (cost, pipe)
    }

    /// How long the bytes of a message keep the port of the rank that receives it.
    pub(super) fn port_in(&mut self, rank: u32, op: usize) -> f64 {
        let Some((from, bytes)) = self.machines[rank as usize].program.message(op) else { return 0.0 };
        let at = place(rank as Rank, from);
        if let Some(known) = self.known_in[at].filter(|known| (known.peer, known.bytes) == (from, bytes)) {
            return known.seconds;
        }
        let seconds = self.model.port_in(Link { from, to: rank as Rank }, bytes);
        self.known_in[at] = Some(KnownIn { peer: from, bytes, seconds });
        seconds
    }
}
