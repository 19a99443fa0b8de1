//! Calls that were looked up, remembered so that the next ones like them run at once: one memory for all collectives.

use super::call::Prepared;
use super::communicator::{GENERATION, State, state};
use super::planned::Planned;
use crate::collective::{Collective, Step};
use crate::error::Result;
use crate::plan;
use crate::topology::Rank;
use mpi::ffi;
use std::cell::Cell;
use std::os::raw::c_int;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// So many calls are remembered by each thread: programs repeat a few, such as a length and then the data.
const REMEMBERED: usize = 8;

thread_local! {
    static KNOWN: [Cell<Option<Box<Known>>>; REMEMBERED] = const { [const { Cell::new(None) }; REMEMBERED] };
}

/// What is asked for, as far as what is done hangs on it.
#[derive(Clone, Copy)]
pub struct Asked {
    /// What is called.
    pub collective: &'static Collective,
    /// Where.
    pub comm: ffi::MPI_Comm,
    /// How many items of which type a rank gives in all; not looked at where it gives none.
    pub given: (c_int, ffi::MPI_Datatype),
    /// As for what it gives.
    pub got: (c_int, ffi::MPI_Datatype),
    /// The root; 0 where there is none.
    pub root: Rank,
    /// What this rank gives lies where its result goes, as far as these are two buffers.
    pub in_place: bool,
    /// The operation commutes, if there is one.
    pub commutes: bool,
}

impl Asked {
    /// Where a call like this is remembered: those that a program makes in turns are of several communicators, or of several collectives.
    #[inline]
    fn place(&self) -> usize {
        let mixed = (self.comm.0 as usize >> 4)
            ^ (std::ptr::from_ref(self.collective) as usize)
            ^ (self.given.0 as usize)
            ^ ((self.got.0 as usize) << 8)
            ^ (self.root << 20);
        // the upper bits of a product hang on all bits (Knuth's multiplicative hashing)
        ((mixed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % REMEMBERED
    }

    #[inline]
    fn is_like(&self, other: &Asked) -> bool {
        (self.comm == other.comm)
            & (self.given.0 == other.given.0)
            & (self.got.0 == other.got.0)
            & (self.root == other.root)
            & (self.given.1 == other.given.1)
            & (self.got.1 == other.got.1)
            & std::ptr::eq(self.collective, other.collective)
            & (self.in_place == other.in_place)
            & (self.commutes == other.commutes)
    }
}

/// A call that was looked up.
pub struct Known {
    asked: Asked,
    generation: u64,
    /// It holds for the next call like it: not while its communicator is still to be set up, nor of datatypes that the user made, whose handles may be freed
    /// and come to mean other ones.
    holds: bool,
    /// What is done; without it the library's own runs.
    planned: Option<(NonNull<Planned>, Arc<plan::Planned>)>,
    /// What it says of the caller's memory.
    prepared: Prepared,
}

impl Known {
    /// What is known of a call, or is looked up now, which sets its communicator up.
    ///
    /// # Safety
    /// It must be valid for MPI's function, and no other collective be under way on its communicator.
    ///
    /// # Errors
    /// What is wrong with it, or MPI's reason.
    #[inline]
    pub unsafe fn of(asked: &Asked) -> Result<Box<Known>> {
        // a thread that ends may have let go of it
        let known = KNOWN.try_with(|known| known[asked.place()].take()).ok().flatten();
        match known {
            Some(known) if known.asked.is_like(asked) && known.generation == GENERATION.load(Ordering::Relaxed) => Ok(known),
            // SAFETY: the caller's
            _ => unsafe { Known::new(asked) },
        }
    }

    #[cold]
    unsafe fn new(asked: &Asked) -> Result<Box<Known>> {
        // SAFETY: the caller vouches for the call; MPI allows one collective on a communicator at a time
        let prepared = unsafe { Prepared::new(asked)? };
        let (mut planned, mut holds) = (None, false);
        if prepared.may_be_planned() {
            // SAFETY: as above
            let state = unsafe { state(asked.comm)? };
            holds = !matches!(state, State::Later) && prepared.is_predefined();
            if let State::Planned(of) = state {
                let plan = of.planned(asked.collective, |ranks| prepared.shape(asked, ranks));
                planned = Some((NonNull::from(&mut **of), plan));
            }
        }
        let generation = GENERATION.load(Ordering::Relaxed);
        Ok(Box::new(Known { asked: *asked, generation, holds, planned, prepared }))
    }

    /// What it says of the caller's memory, and the steps of its plan with who runs them; no steps where the library's own is to run.
    ///
    /// # Safety
    /// Its communicator must be there, and be used by nobody else.
    #[inline]
    pub unsafe fn parts(&mut self) -> (&Prepared, Option<(&mut Planned, &[Step])>) {
        let steps = match &self.planned {
            Some((planned, plan)) if let plan::Planned::Run(steps) = &**plan => {
                // SAFETY: a communicator's state stays where it is until it goes, and the generation with it
                Some((unsafe { &mut *planned.as_ptr() }, &steps[..]))
            }
            _ => None,
        };
        (&self.prepared, steps)
    }

    /// Keeps it for the next call like it, if it holds.
    #[inline]
    pub fn remember(self: Box<Known>) {
        if self.holds {
            let place = self.asked.place();
            let _ = KNOWN.try_with(|known| known[place].set(Some(self)));
        }
    }
}
