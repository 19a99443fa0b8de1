//! What messages cost, kept by sender and receiver.

use super::Run;
use super::order::NONE;
use crate::model::{Cost, CostModel, Pipe};
use crate::topology::{Link, Rank};

/// Of so many peers each rank keeps what messages cost: those of a tree that many messages go down, in whatever lanes. By stream there would be more to keep
/// than a processor has near.
pub(super) const PEERS: usize = 4;

/// So many kinds of links are kept near a processor; of more, each rank keeps those of its peers.
const KINDS: usize = 1 << 12;

/// What a message costs. All but the last one of a pipeline are of one length: it is not looked up for each.
#[derive(Debug, Clone)]
pub(super) struct Known {
    of: Of,
    cost: Cost,
    pipe: Option<Box<(Pipe, f64)>>,
}

const _: () = assert!(size_of::<Known>() <= 64, "as much as a processor has near at once");

/// What something is known of: the peer, or the link's kind, or [`NONE`]; and how many bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Of(u32, usize);

/// How long a message keeps the port that it comes in by.
#[derive(Debug, Clone)]
pub(super) struct KnownIn {
    of: Of,
    seconds: f64,
}

impl Default for Known {
    fn default() -> Known {
        Known { of: Of(NONE, 0), cost: Cost::default(), pipe: None }
    }
}

impl Default for KnownIn {
    fn default() -> KnownIn {
        KnownIn { of: Of(NONE, 0), seconds: 0.0 }
    }
}

/// What is kept of messages on links of each kind, or else of each rank's messages to or from others.
pub(super) struct Kept<K> {
    /// Where that of each rank begins; empty where it is kept by kind.
    begin: Vec<u32>,
    known: Vec<K>,
}

impl<K: Clone + Default> Kept<K> {
    /// Room for each kind of link, or for so many peers of each rank, whichever is less.
    pub(super) fn new(model: &dyn CostModel, peers: impl Iterator<Item = usize>) -> Kept<K> {
        let kinds = model.kinds();
        if kinds == 1 {
            return Kept { begin: Vec::new(), known: vec![K::default()] };
        }
        let mut begin = vec![0];
        begin.extend(peers.scan(0, |end, peers| {
            *end += if peers > 1 { PEERS as u32 } else { peers as u32 };
            Some(*end)
        }));
        let peers = begin[begin.len() - 1] as usize;
        if (1..=KINDS.min(peers)).contains(&kinds) {
            return Kept { begin: Vec::new(), known: vec![K::default(); kinds] };
        }
        Kept { known: vec![K::default(); peers], begin }
    }

    /// True if what is kept is the same for all messages of a size.
    #[inline]
    fn is_one(&self) -> bool {
        self.begin.is_empty() && self.known.len() == 1
    }

    /// Where that is kept of a rank's messages to or from a peer, on this link, and of what.
    #[inline]
    fn of(&mut self, model: &dyn CostModel, link: Link, rank: Rank, peer: Rank) -> (&mut K, u32) {
        if self.is_one() {
            return (&mut self.known[0], 0);
        }
        if self.begin.is_empty() {
            let kind = model.kind(link);
            return (&mut self.known[kind], kind as u32);
        }
        let (begin, end) = (self.begin[rank] as usize, self.begin[rank + 1] as usize);
        (&mut self.known[if end - begin > 1 { begin + peer % PEERS } else { begin }], peer as u32)
    }
}

impl Run<'_> {
    /// What a message costs, and what it shares with others.
    #[inline]
    pub(super) fn cost(&mut self, link: Link, bytes: usize) -> (Cost, Option<(Pipe, f64)>) {
        let (kept, of) = self.known.of(self.model, link, link.from, link.to);
        if kept.of == Of(of, bytes) {
            return (kept.cost, kept.pipe.as_deref().copied());
        }
        let (cost, pipe) = (self.model.cost(link, bytes), self.model.pipe(link, bytes));
        *kept = Known { of: Of(of, bytes), cost, pipe: pipe.map(Box::new) };
        (cost, pipe)
    }

    /// How long the bytes of a message keep the port of the rank that receives it.
    pub(super) fn port_in_of(&mut self, rank: u32, op: usize) -> f64 {
        let program = &self.schedule.programs[rank as usize];
        let bytes = program.bytes(op);
        if self.known_in.is_one() && self.known_in.known[0].of == Of(0, bytes) {
            return self.known_in.known[0].seconds; // from whomever it comes
        }
        program.message(op).map_or(0.0, |(from, _)| self.port_in(Link { from, to: rank as Rank }, bytes))
    }

    /// The same of a message on a link.
    #[inline]
    pub(super) fn port_in(&mut self, link: Link, bytes: usize) -> f64 {
        let (kept, of) = self.known_in.of(self.model, link, link.to, link.from);
        if kept.of == Of(of, bytes) {
            return kept.seconds;
        }
        let seconds = self.model.port_in(link, bytes);
        *kept = KnownIn { of: Of(of, bytes), seconds };
        seconds
    }
}
