//! What one rank does in a collective, one after the other: programs, and calls of the library's own collectives.

use super::{Collective, Parameters, Shape, Size};
use crate::error::{Error, Result};
use crate::schedule::{Elements, Program};
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
    /// What a rank gives lies in its output, where steps before have left it.
    pub in_place: bool,
}

impl NativeCall {
    /// Of a collective among some ranks with the root at a position. Where it does not matter who comes first they are in order, so that calls
    /// from different roots are among the same ranks.
    pub fn new(collective: &'static Collective, mut ranks: Vec<Rank>, mut root: usize) -> NativeCall {
        if !collective.combines && collective.size != Size::Block {
            let of = ranks[root];
            ranks.sort_unstable();
            root = ranks.binary_search(&of).unwrap_or(root);
        }
        NativeCall { collective, ranks, root, in_place: false }
    }

    /// What one of its ranks does instead where the library cannot be called: what is taken where nothing is known, for so many bytes of such
    /// elements, whatever the operation.
    ///
    /// # Errors
    /// The rank is not among its ranks.
    pub fn program(&self, me: Rank, bytes: usize, elements: Elements) -> Result<Program> {
        let wrong = |what: &str| Error::invalid(format!("take the place of {} among {:?}: {what}", self.collective.function, self.ranks));
        let place = self.ranks.iter().position(|&r| r == me).ok_or_else(|| wrong(&format!("rank {me} is not one of them")))?;
        // of an operation nobody says that it commutes
        let elements = Elements { commute: false, ..elements };
        let shape = Shape { elements, in_place: self.in_place, ..Shape::new(self.ranks.len(), self.root, bytes) };
        let algorithm = self.collective.fallback;
        let program = algorithm.program(place, &shape, &Parameters::default()).filter(|_| (algorithm.fits)(&shape));
        Ok(program.ok_or_else(|| wrong("nothing does the same"))?.renamed(|r| self.ranks[r]))
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{COLLECTIVES, bcast, gather, reduce};
    use crate::schedule::{Schedule, check};

    #[test]
    fn what_takes_the_librarys_place_does_the_same_whatever_the_operation() {
        for collective in COLLECTIVES.iter().copied() {
            for (ranks, in_place) in [(1, false), (2, false), (5, false), (5, true), (8, false)] {
                let call = NativeCall {
                    in_place,
                    ..NativeCall::new(collective, (0..ranks).collect(), (ranks - 1) * usize::from(collective.rooted))
                };
                let elements = if collective.combines { Elements { bytes: 2, commute: false } } else { Elements::default() };
                let bytes = if collective.sized() { 30 } else { 0 };
                let programs = (0..ranks).map(|me| call.program(me, bytes, elements)).collect::<Result<_>>().unwrap();
                let shape = Shape { elements: Elements { commute: false, ..elements }, in_place, ..Shape::new(ranks, call.root, bytes) };
                check(&Schedule { programs }, &(collective.specification)(&shape))
                    .unwrap_or_else(|e| panic!("{} of {ranks}: {e}", collective.name));
            }
        }
        let said = NativeCall::new(&bcast::COLLECTIVE, vec![1, 5], 0).program(3, 1, Elements::default()).unwrap_err().to_string();
        assert!(said.contains("MPI_Bcast among [1, 5]: rank 3 is not one of them"), "{said}");
    }

    #[test]
    fn calls_from_any_root_are_among_the_same_ranks_where_order_does_not_matter() {
        let call = |collective, ranks: &[Rank]| NativeCall::new(collective, ranks.to_vec(), 0);
        let bcast = call(&bcast::COLLECTIVE, &[4, 2, 7]);
        assert_eq!((bcast.ranks, bcast.root), (vec![2, 4, 7], 1));
        for collective in [&gather::COLLECTIVE, &reduce::COLLECTIVE] {
            let call = call(collective, &[4, 2, 7]);
            assert_eq!((call.ranks, call.root), (vec![4, 2, 7], 0));
        }
    }
}
