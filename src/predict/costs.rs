//! What messages cost, kept by sender and receiver.

use super::Run;
use crate::model::{Cost, CostModel, Pipe};
use crate::topology::{Link, Rank};

/// Of so many peers each rank keeps what messages cost: those of a tree that many messages go down, in whatever lanes. By stream there would be more to keep
/// than a processor has near.
pub(super) const PEERS: usize = 4;

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

/// What is kept of each rank's messages to or from others, or of all messages where they cost the same on all links.
pub(super) struct Kept<K> {
    /// Where that of each rank begins; empty where all is kept together.
    begin: Vec<u32>,
    known: Vec<Option<K>>,
}

impl<K: Clone> Kept<K> {
    /// Room for so many peers of each rank, as far as they are told apart.
    pub(super) fn new(model: &dyn CostModel, peers: impl Iterator<Item = usize>) -> Kept<K> {
        if model.same_on_all_links() {
            return Kept { begin: Vec::new(), known: vec![None] };
        }
        let mut begin = vec![0];
        begin.extend(peers.scan(0, |end, peers| {
            *end += if peers > 1 { PEERS as u32 } else { peers as u32 };
            Some(*end)
        }));
        Kept { known: vec![None; begin[begin.len() - 1] as usize], begin }
    }

    /// Where that is kept of a rank's messages to or from a peer.
    #[inline]
    fn of(&mut self, rank: Rank, peer: Rank) -> &mut Option<K> {
        if self.begin.is_empty() {
            return &mut self.known[0];
        }
        let (begin, end) = (self.begin[rank] as usize, self.begin[rank + 1] as usize);
        &mut self.known[if end - begin > 1 { begin + peer % PEERS } else { begin }]
    }
}

impl Run<'_> {
    /// What a message costs, and what it shares with others.
    #[inline]
    pub(super) fn cost(&mut self, link: Link, bytes: usize) -> (Cost, Option<(Pipe, f64)>) {
        let same = self.known.begin.is_empty();
        let kept = self.known.of(link.from, link.to);
        if let Some(known) = kept.as_ref().filter(|known| known.bytes == bytes && (same || known.peer == link.to)) {
            return (known.cost, known.pipe);
        }
        let (cost, pipe) = (self.model.cost(link, bytes), self.model.pipe(link, bytes));
        *kept = Some(Known { peer: link.to, bytes, cost, pipe });
        (cost, pipe)
    }

    /// How long the bytes of a message keep the port of the rank that receives it.
    pub(super) fn port_in(&mut self, rank: u32, op: usize) -> f64 {
        let program = &self.schedule.programs[rank as usize];
        let bytes = program.bytes(op);
        if self.known_in.begin.is_empty()
            && let Some(known) = self.known_in.known[0].as_ref().filter(|known| known.bytes == bytes)
        {
            return known.seconds; // from whomever it comes
        }
        let Some((from, _)) = program.message(op) else { return 0.0 };
        let kept = self.known_in.of(rank as Rank, from);
        if let Some(known) = kept.as_ref().filter(|known| known.bytes == bytes && known.peer == from) {
            return known.seconds;
        }
        let seconds = self.model.port_in(Link { from, to: rank as Rank }, bytes);
        *kept = Some(KnownIn { peer: from, bytes, seconds });
        seconds
    }
}
