//! The adaptive barrier.

use super::known::{self, Call};
use crate::collective::barrier::COLLECTIVE;
use crate::error::Result;
use crate::transport::library::{self, Arguments};
use mpi::ffi;
use std::ptr::null_mut;

/// The barrier as planned, or the library's own.
///
/// # Safety
/// `comm` must be valid, and no other collective be under way on it.
///
/// # Errors
/// MPI's reason.
pub(super) unsafe fn barrier(comm: ffi::MPI_Comm) -> Result<()> {
    let nothing = Arguments::of_message(null_mut(), 0, 0);
    // SAFETY: a constant of the library: of no bytes any datatype does; the caller vouches for the rest, every member comes to the same kind of plan
    unsafe {
        known::run(
            Call::new(&COLLECTIVE, comm, ffi::RSMPI_UINT8_T, 0, 0),
            |_| Ok(true),
            |planned, _| match planned {
                Some((planned, steps)) => planned.run(steps, &nothing),
                None => library::run(&COLLECTIVE, &nothing, comm),
            },
        )
    }
}
