//! The MPI library's own collectives, on plain bytes.
#![allow(unsafe_code)] // MPI's C interface

use super::mpi::check;
use super::native;
use crate::collective::{Collective, barrier, bcast};
use crate::error::{Error, Result};
use mpi::ffi;
use std::os::raw::{c_int, c_void};

/// Calls one: the message, its bytes, the root, the communicator.
type Call = unsafe fn(*mut c_void, c_int, c_int, ffi::MPI_Comm) -> c_int;

const CALLS: [(&Collective, Call); 2] = [
    (&bcast::COLLECTIVE, |data, bytes, root, comm| {
        // SAFETY: the caller's
        unsafe { native::PMPI_Bcast(data, bytes, ffi::RSMPI_UINT8_T, root, comm) }
    }),
    (&barrier::COLLECTIVE, |_, _, _, comm| {
        // SAFETY: the caller's
        unsafe { native::PMPI_Barrier(comm) }
    }),
];

/// Runs the library's own collective.
///
/// # Safety
/// `data` must be valid for reads and writes of `bytes` bytes, `comm` a valid communicator whose members all do this.
///
/// # Errors
/// MPI's reason.
pub unsafe fn run(collective: &Collective, data: *mut u8, bytes: usize, root: usize, comm: ffi::MPI_Comm) -> Result<()> {
    let wrong = |what: &str| Error::invalid(format!("call {}: {what}", collective.function));
    let (_, call) = CALLS.iter().find(|(c, _)| *c == collective).ok_or_else(|| wrong("it is not known here"))?;
    let bytes = c_int::try_from(bytes).map_err(|_| wrong("an int does not count its bytes"))?;
    // SAFETY: the caller's
    check(collective.function, unsafe { call(data.cast(), bytes, root as c_int, comm) })
}
