//! The algorithms of another library, as far as they can be replayed.

use crate::collective::{Algorithm, Collective};
use crate::library::Library;

/// An algorithm of another library.
#[derive(Debug)]
pub struct LibraryAlgorithm {
    /// Its number in Open MPI's rule files; 0 where a library goes by names alone.
    pub id: u32,
    /// The library's name of it.
    pub name: &'static str,
    /// What is replayed for it: one of ours, or one that is built for it.
    pub algorithm: &'static Algorithm,
    /// True if it cuts messages into segments of a size that can be chosen.
    pub segmented: bool,
    /// The fan-outs worth trying; none where there is nothing to choose.
    pub fan_outs: &'static [usize],
    /// True if what it does among so many ranks is what is predicted; elsewhere it is another algorithm, or an error.
    pub fits: fn(ranks: usize) -> bool,
    /// True if it deals vectors out in blocks of whole elements: where there are fewer of these than ranks it is another algorithm, or none.
    pub blocks: bool,
    /// True if its result is right for operations that commute alone.
    pub commuting: bool,
}

impl LibraryAlgorithm {
    /// One that leaves nothing to choose, and does what this one does among any number of ranks.
    pub const fn new(id: u32, name: &'static str, algorithm: &'static Algorithm) -> LibraryAlgorithm {
        LibraryAlgorithm { id, name, algorithm, segmented: false, fan_outs: &[], fits: |_| true, blocks: false, commuting: false }
    }
}

// an algorithm is the one static that describes it

impl PartialEq for LibraryAlgorithm {
    fn eq(&self, other: &LibraryAlgorithm) -> bool {
        std::ptr::eq(self, other)
    }
}

/// What a table has of a collective; nothing where that is not in it.
pub fn of(table: &[(&Collective, &'static [LibraryAlgorithm])], collective: &Collective) -> &'static [LibraryAlgorithm] {
    table.iter().find(|(of, _)| *of == collective).map_or(&[], |(_, algorithms)| algorithms)
}

/// What a library is told to do; where it is told nothing it decides by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// The algorithm.
    pub algorithm: &'static LibraryAlgorithm,
    /// Bytes of its segments; 0: whole messages.
    pub segment: usize,
    /// Its fan-out; 0: there is nothing to choose.
    pub fan_out: usize,
}

impl Choice {
    /// It in words, for people.
    pub fn words(&self) -> String {
        let fan_out = if self.fan_out == 0 { String::new() } else { format!(" of fan-out {}", self.fan_out) };
        let segment = if self.segment == 0 { String::new() } else { format!(" in {}", crate::units::bytes(self.segment)) };
        format!("{}{fan_out}{segment}", self.name())
    }

    /// The library's name of the algorithm.
    pub fn name(&self) -> &'static str {
        self.algorithm.name
    }
}

/// A library that decisions are made for.
#[derive(Debug)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Whose times of the policy are its own.
    pub library: Library,
    /// Its algorithms of a collective.
    pub algorithms: fn(&Collective) -> &'static [LibraryAlgorithm],
    /// True if it looks a size up by arguments that MPI lets ranks set as they like: then all sizes must have one algorithm.
    pub one_for_all_sizes: fn(&Collective) -> bool,
    /// True if it can be told an algorithm for operations that commute, and another one for others.
    pub knows_commuting: bool,
}
