//! The adaptive barrier.

use super::bcast::handled;
use super::communicator::{GENERATION, State, state};
use crate::collective::Shape;
use crate::collective::barrier::COLLECTIVE;
use crate::error::Result;
use crate::plan;
use crate::transport::library::{self, Arguments};
use mpi::ffi;
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

thread_local! {
    /// The communicator that last used the library's own, so that the next call on it goes there at once, and [`GENERATION`] then.
    static LAST_NATIVE: Cell<Option<(ffi::MPI_Comm, u64)>> = const { Cell::new(None) };
}

/// The barrier as planned, or the library's own.
///
/// # Safety
/// `comm` must be valid, and no other collective be under way on it.
///
/// # Errors
/// MPI's reason.
pub(super) unsafe fn barrier(comm: ffi::MPI_Comm) -> Result<()> {
    if LAST_NATIVE.get() != Some((comm, GENERATION.load(Ordering::Relaxed))) {
        // SAFETY: the caller vouches for the communicator
        let state = unsafe { state(comm)? };
        if let State::Planned(planned) = state
            && let plan::Planned::Run(steps) = &*planned.planned(&COLLECTIVE, |ranks| Shape::new(ranks, 0, 0))
        {
            // SAFETY: its messages are empty
            return unsafe { planned.run(steps, &Arguments::of_message(null_mut(), 0, 0)) }.map_err(|e| handled(comm, e));
        }
        if !matches!(state, State::Later) {
            LAST_NATIVE.set(Some((comm, GENERATION.load(Ordering::Relaxed))));
        }
    }
    // SAFETY: no bytes; every member comes to the same kind of state and plan
    unsafe { library::run(&COLLECTIVE, &Arguments::of_message(null_mut(), 0, 0), comm) }
}
