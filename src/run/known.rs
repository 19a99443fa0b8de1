//! Calls that were looked up, remembered with their communicator so that the next ones like them run at once: one memory for all collectives.

use super::call::Prepared;
use super::communicator::{State, attached, state};
use super::planned::Planned;
use super::quick::Way;
use super::refused::is_predefined;
use crate::collective::{Collective, Step};
use crate::error::Result;
use crate::plan;
use crate::topology::Rank;
use mpi::ffi;
use std::ptr::NonNull;
use std::sync::Arc;

/// So many calls of a communicator are remembered: programs repeat a few, such as a length and then the data.
const REMEMBERED: usize = 8;

/// The calls of a communicator that are remembered.
#[derive(Default)]
pub struct Memory([Option<Box<Known>>; REMEMBERED]);

impl Memory {
    /// A call like it, given away: what calls of the same communicator find or remember while it is carried out, from inside a user's reduction, is their own.
    #[inline]
    fn take(&mut self, asked: &Asked) -> Option<Box<Known>> {
        self.0[asked.place()].take_if(|known| known.asked.is_like(asked))
    }
}

/// What is asked for, as far as what is done hangs on it.
#[derive(Clone, Copy)]
pub struct Asked {
    /// What is called.
    pub collective: &'static Collective,
    /// Where.
    pub comm: ffi::MPI_Comm,
    /// How many items of which type a rank gives in all; not looked at where it gives none.
    pub given: (i64, ffi::MPI_Datatype),
    /// As for what it gives.
    pub got: (i64, ffi::MPI_Datatype),
    /// The root; 0 where there is none.
    pub root: Rank,
    /// What this rank gives lies where its result goes, as far as these are two buffers.
    pub in_place: bool,
    /// What items are combined with, if they are.
    pub op: Option<ffi::MPI_Op>,
    /// The operation commutes, if there is one.
    pub commutes: bool,
}

impl Asked {
    /// Where a call like this is remembered: those that a program makes in turns are of several collectives, or of several sizes.
    #[inline]
    fn place(&self) -> usize {
        let collective = std::ptr::from_ref(self.collective) as usize;
        spread(collective ^ (self.given.0 as usize) ^ ((self.got.0 as usize) << 8) ^ (self.root << 20)) % REMEMBERED
    }

    /// What items are combined with; anything where they are not.
    pub fn operation(&self) -> ffi::MPI_Op {
        // SAFETY: a constant of the library
        self.op.unwrap_or(unsafe { ffi::RSMPI_SUM })
    }

    #[inline]
    fn is_like(&self, other: &Asked) -> bool {
        (self.given.0 == other.given.0)
            & (self.got.0 == other.got.0)
            & (self.root == other.root)
            & (self.given.1 == other.given.1)
            & (self.got.1 == other.got.1)
            & std::ptr::eq(self.collective, other.collective)
            & (self.in_place == other.in_place)
            & (self.op == other.op)
            & (self.commutes == other.commutes)
    }
}

/// The upper bits of a product, which hang on all bits (Knuth's multiplicative hashing).
#[inline]
pub fn spread(mixed: usize) -> usize {
    ((mixed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize
}

/// A call that was looked up.
pub struct Known {
    asked: Asked,
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
        // SAFETY: the caller's
        unsafe {
            match attached(asked.comm).and_then(|found| (*found.as_ptr()).known.take(asked)) {
                Some(known) => Ok(known),
                None => Known::new(asked),
            }
        }
    }

    #[cold]
    unsafe fn new(asked: &Asked) -> Result<Box<Known>> {
        // SAFETY: the caller vouches for the call; MPI allows one collective on a communicator at a time
        let prepared = unsafe { Prepared::new(asked)? };
        // what has no bytes, or nobody else can combine, is the library's own whatever is planned
        let (mut planned, mut holds) = (None, prepared.is_predefined() && !prepared.refused);
        if prepared.may_be_planned() {
            // SAFETY: as above
            let state = unsafe { state(asked.comm)? };
            holds = !matches!(state, Some(State::Later)) && prepared.is_predefined();
            if let Some(State::Planned(of)) = state {
                let plan = of.planned(asked.collective, |ranks| prepared.shape(asked, ranks));
                planned = matches!(*plan, plan::Planned::Run(_)).then_some((NonNull::from(&mut **of), plan));
            }
        }
        Ok(Box::new(Known { asked: *asked, holds, planned, prepared }))
    }

    /// What carries calls like this out by some steps, whatever is planned; none where their communicator has no plans, or nothing is to do. What its last calls came to is forgotten.
    /// Collective. Steps may have more lanes than the policy's collectives, and tags then that belong to later calls: calls that block keep the order of their messages
    /// between any two ranks all the same.
    ///
    /// # Safety
    /// As [`Known::of`].
    ///
    /// # Errors
    /// As there.
    #[cfg(feature = "cli")]
    pub unsafe fn by_steps(asked: &Asked, steps: Vec<Step>) -> Result<Option<Box<Known>>> {
        // SAFETY: the caller's; what only a communicator gets that is used again is wanted at once
        unsafe {
            state(asked.comm)?;
            let Some(State::Planned(of)) = state(asked.comm)? else { return Ok(None) };
            let prepared = Prepared::new(asked)?;
            if prepared.nothing {
                return Ok(None);
            }
            // not what was remembered of calls like it
            super::quick::forget(asked.comm);
            let planned = Some((NonNull::from(&mut **of), Arc::new(plan::Planned::Run(steps))));
            Ok(Some(Box::new(Known { asked: *asked, holds: true, planned, prepared })))
        }
    }

    /// What it says of the caller's memory.
    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// True if it has a plan.
    pub fn is_planned(&self) -> bool {
        self.planned.is_some()
    }

    /// How the next call like it is carried out, if that is one call of MPI's, or none: not of an operation that the user made, whose handle may come to mean another one.
    pub fn way(&self) -> Option<Way> {
        if !self.holds || !self.asked.op.is_none_or(is_predefined) {
            return None;
        }
        match &self.planned {
            _ if self.prepared.nothing => Some(Way::Nothing),
            None => Some(self.prepared.librarys_way()),
            Some((planned, plan)) => match &**plan {
                plan::Planned::Run(steps) if let [Step::Program(program)] = &steps[..] => {
                    // SAFETY: a communicator's plans stay where they are until it goes, or MPI ends, and this with it
                    let called = |rank| unsafe { planned.as_ref().peer(rank) };
                    self.prepared.message(&self.asked, program, called).map(|message| Way::Message(*planned, message))
                }
                _ => None,
            },
        }
    }

    /// What it says of the caller's memory, and the steps of its plan with who runs them; no steps where the library's own is to run.
    ///
    /// # Safety
    /// Its communicator must be there, and be used by nobody else.
    #[inline]
    pub unsafe fn parts(&mut self) -> (&Prepared, Option<(&mut Planned, &[Step])>) {
        let steps = match &self.planned {
            Some((planned, plan)) if let plan::Planned::Run(steps) = &**plan => {
                // SAFETY: a communicator's plans stay where they are until it goes, or MPI ends, and this with it
                Some((unsafe { &mut *planned.as_ptr() }, &steps[..]))
            }
            _ => None,
        };
        (&self.prepared, steps)
    }

    /// Keeps it for the next call like it, if it holds.
    ///
    /// # Safety
    /// As [`Known::parts`].
    #[inline]
    pub unsafe fn remember(self: Box<Known>) {
        // SAFETY: the caller's
        if self.holds
            && let Some(found) = unsafe { attached(self.asked.comm) }
        {
            // SAFETY: as above
            let place = unsafe { &mut (*found.as_ptr()).known.0[self.asked.place()] };
            *place = Some(self);
        }
    }
}
