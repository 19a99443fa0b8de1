//! The collective operations: a folder each, one algorithm a file. Builders are pure and know no model.

pub mod bcast;
mod tree;

use crate::error::Result;
use crate::schedule::{Program, Schedule, pieces};
use crate::topology::Rank;
use serde::{Deserialize, Serialize};

pub use tree::Node;

/// What a collective is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shape {
    /// Number of ranks.
    pub ranks: usize,
    /// The root.
    pub root: Rank,
    /// Size of the message.
    pub bytes: usize,
}

impl Shape {
    /// A rank's position counted from the root.
    pub fn relative(&self, rank: Rank) -> usize {
        (rank + self.ranks - self.root) % self.ranks
    }

    /// The rank at a position counted from the root.
    pub fn absolute(&self, relative: usize) -> Rank {
        (relative + self.root) % self.ranks
    }
}

/// What can be chosen about an algorithm. Those that do not segment or have no radix ignore it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Bytes of a segment; 0: the whole message at once.
    pub segment: usize,
    /// Radix of a tree; 0: the algorithm's default.
    pub radix: usize,
}

/// Builds one rank's program.
pub type Builder = fn(me: Rank, shape: &Shape, parameters: &Parameters) -> Program;

/// An algorithm of a collective.
#[derive(Debug)]
pub struct Algorithm {
    /// Name in policies and on the command line.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
    /// True if it cuts the message into segments of a size that can be chosen.
    pub segmented: bool,
    /// The radices worth trying, if it has one.
    pub radices: &'static [usize],
    /// The builder; `None` for the library's own collective, which is called and not built.
    pub builder: Option<Builder>,
    /// The tree that it sends along, if it is a tree and nothing else: a node's place, for a number of nodes and a radix.
    pub tree: Option<fn(v: usize, ranks: usize, radix: usize) -> Node>,
}

impl Parameters {
    /// How many pieces an algorithm cuts a message into.
    pub fn pieces(&self, algorithm: &Algorithm, bytes: usize) -> usize {
        crate::schedule::pieces(bytes, if algorithm.segmented { self.segment } else { 0 })
    }
}

impl Algorithm {
    /// The schedule for all ranks; `None` for the library's own collective.
    pub fn schedule(&self, shape: &Shape, parameters: &Parameters) -> Option<Schedule> {
        let build = self.builder?;
        Some(Schedule::build(shape.ranks, |me| build(me, shape, parameters)))
    }

    /// As [`Algorithm::schedule`], for a size that somebody asks for: counted while it is built.
    ///
    /// # Errors
    /// [`crate::error::Error::TooLarge`].
    pub fn bounded_schedule(&self, shape: &Shape, parameters: &Parameters) -> Result<Option<Schedule>> {
        let Some(build) = self.builder else { return Ok(None) };
        let segment = if self.segmented { parameters.segment } else { 0 };
        let at_least = (shape.ranks.max(2) - 1).saturating_mul(self.heard_in(shape.bytes, segment));
        Schedule::bounded(shape.ranks, (shape.bytes, segment), at_least, |me| Ok(build(me, shape, parameters))).map(Some)
    }

    /// In how many messages a rank other than the root hears the whole message, at least.
    pub(crate) fn heard_in(&self, bytes: usize, segment: usize) -> usize {
        // of two halves one may come in one piece
        if self.segmented { pieces(bytes, segment).div_ceil(2) } else { 1 }
    }
}
