//! What one rank does in a collective, one after the other: programs, and calls of the library's own collectives.

use super::Collective;
use crate::schedule::Program;
use crate::topology::Rank;

/// A call of the library's own collective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeCall {
    /// Which one.
    pub collective: &'static Collective,
    /// Among whom.
    pub ranks: Vec<Rank>,
    /// The root's position among them.
    pub root: usize,
}

/// A step of one rank.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Messages and what is done with them.
    Program(Program),
    /// The library's own collective.
    Native(NativeCall),
}

impl Step {
    /// Bytes in memory.
    pub fn memory(&self) -> usize {
        match self {
            Step::Program(program) => program.memory(),
            Step::Native(call) => size_of_val(call.ranks.as_slice()),
        }
    }
}
