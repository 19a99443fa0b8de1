//! What a network loses: where TCP runs over a switch, messages of some sizes from several senders that reach one receiver at once are now and then lost, and
//! sent again much later (the irregular region M1..M2 of a gather, Lastovetsky and O'Flynn). No cost of a message says it, since one sender's never are.

use super::inside::host_of;
use super::{Cost, CostModel, Pipe};
use crate::topology::{Link, Rank};
use crate::units;
use serde::{Deserialize, Serialize};

/// What a group's network loses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Losses {
    /// Messages from this size (M1)
    #[serde(rename = "from", deserialize_with = "units::de_bytes")]
    pub from_bytes: usize,
    /// ... to this one (M2) may be lost.
    #[serde(rename = "to", deserialize_with = "units::de_bytes")]
    pub to_bytes: usize,
    /// So many of those that meet another sender's are.
    pub share: f64,
    /// Seconds until a lost message is sent again.
    #[serde(deserialize_with = "units::de_seconds")]
    pub wait_s: f64,
}

impl Losses {
    /// True if messages of so many bytes may be lost.
    pub fn meet(&self, bytes: usize) -> bool {
        (self.from_bytes..=self.to_bytes).contains(&bytes)
    }
}

/// What may happen to a message that meets another sender's at its receiver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    /// How many of those that meet another one are lost.
    pub share: f64,
    /// Seconds until it is sent again.
    pub wait_s: f64,
    /// Seconds that its bytes take to come in.
    pub port_s: f64,
}

/// A group's messages, some of which may be lost.
pub(super) struct Losing {
    pub messages: Box<dyn CostModel>,
    pub losses: Losses,
    /// The host of each position, by number: what stays inside one is not lost.
    pub hosts: Vec<usize>,
    /// Seconds per byte of the network, where that is known.
    pub inverse_bandwidth: Option<f64>,
}

impl CostModel for Losing {
    fn kinds(&self) -> usize {
        self.messages.kinds()
    }

    fn kind(&self, link: Link) -> usize {
        self.messages.kind(link)
    }

    fn loses(&self) -> bool {
        true
    }

    fn loss(&self, link: Link, bytes: usize) -> Option<Loss> {
        let Losses { share, wait_s, .. } = self.losses;
        let of = |position: Rank| host_of(&self.hosts, position);
        let may_be_lost = self.losses.meet(bytes) && of(link.from) != of(link.to);
        may_be_lost.then(|| Loss { share, wait_s, port_s: self.port_in(link, bytes) })
    }

    /// By the bandwidth, where that is known: a sender's gap may be longer for another reason, as where its long messages wait.
    fn port_in(&self, link: Link, bytes: usize) -> f64 {
        self.inverse_bandwidth.map_or_else(|| self.messages.port_in(link, bytes), |each| each * bytes as f64)
    }

    fn cost(&self, link: Link, bytes: usize) -> Cost {
        self.messages.cost(link, bytes)
    }

    fn pipe(&self, link: Link, bytes: usize) -> Option<(Pipe, f64)> {
        self.messages.pipe(link, bytes)
    }

    fn processor(&self, rank: Rank, bytes: usize) -> f64 {
        self.messages.processor(rank, bytes)
    }

    fn copy(&self, rank: Rank, bytes: usize) -> f64 {
        self.messages.copy(rank, bytes)
    }

    fn combine(&self, rank: Rank, bytes: usize) -> f64 {
        self.messages.combine(rank, bytes)
    }
}

/// The same messages, of which none is lost.
pub struct Lossless<'a>(pub &'a dyn CostModel);

impl CostModel for Lossless<'_> {
    fn kinds(&self) -> usize {
        self.0.kinds()
    }

    fn kind(&self, link: Link) -> usize {
        self.0.kind(link)
    }

    fn cost(&self, link: Link, bytes: usize) -> Cost {
        self.0.cost(link, bytes)
    }

    fn pipe(&self, link: Link, bytes: usize) -> Option<(Pipe, f64)> {
        self.0.pipe(link, bytes)
    }

    fn processor(&self, rank: Rank, bytes: usize) -> f64 {
        self.0.processor(rank, bytes)
    }

    fn copy(&self, rank: Rank, bytes: usize) -> f64 {
        self.0.copy(rank, bytes)
    }

    fn combine(&self, rank: Rank, bytes: usize) -> f64 {
        self.0.combine(rank, bytes)
    }

    fn port_in(&self, link: Link, bytes: usize) -> f64 {
        self.0.port_in(link, bytes)
    }
}
