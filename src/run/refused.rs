//! Arguments that MPI's functions refuse. They are left to the library's own function, which knows MPI's code for each and hands it to the communicator's
//! error handler; so they must be found before anything is planned or sent.

use super::datatype::Layout;
use super::quietly;
use super::team::has_ended;
use crate::transport::native;
use mpi::ffi;
use std::os::raw::c_int;
use std::ptr::null_mut;

/// A root as MPI counts ranks: what an `int` does not hold is no rank either. `MPI_ROOT` and `MPI_PROC_NULL` are negative.
pub fn as_mpi_counts(root: usize) -> c_int {
    c_int::try_from(root as isize).unwrap_or(c_int::MAX)
}

/// True if there cannot be so many items of a datatype, it is not committed, or an operation cannot combine them.
///
/// # Safety
/// The datatype and the operation must be valid, or null.
pub unsafe fn refuses((count, datatype): (i64, ffi::MPI_Datatype), op: Option<ffi::MPI_Op>) -> bool {
    // SAFETY: a constant of the library; the caller's
    unsafe { count < 0 || datatype == ffi::RSMPI_DATATYPE_NULL || op.is_some_and(|op| !combines(op, datatype)) || !is_committed(datatype) }
}

/// True if a datatype is committed, or that cannot be asked any more.
unsafe fn is_committed(datatype: ffi::MPI_Datatype) -> bool {
    // SAFETY: the caller's
    has_ended() || unsafe { Layout::is_committed(datatype) }.unwrap_or(true)
}

/// True if an operation combines items of a datatype, of which the library is asked: about no items, and with nobody else. Once MPI is about to end, that one
/// is no more: all calls are the library's own then, which says so itself.
///
/// # Safety
/// As [`refuses`].
pub unsafe fn combines(op: ffi::MPI_Op, datatype: ffi::MPI_Datatype) -> bool {
    if has_ended() {
        return true;
    }
    // SAFETY: a constant of the library; nothing is read or written
    unsafe {
        let alone = ffi::RSMPI_COMM_SELF;
        let code = quietly(alone, || native::PMPI_Allreduce(null_mut(), null_mut(), 0, datatype, op, alone));
        code == ffi::MPI_SUCCESS as c_int
    }
}

/// True of MPI's own operations on numbers: they commute, and their handles mean the same for ever.
pub fn is_predefined(op: ffi::MPI_Op) -> bool {
    // SAFETY: constants of the library
    unsafe {
        use ffi::{RSMPI_BAND as BAND, RSMPI_BOR as BOR, RSMPI_BXOR as BXOR, RSMPI_LAND as LAND, RSMPI_LOR as LOR, RSMPI_LXOR as LXOR};
        [ffi::RSMPI_SUM, ffi::RSMPI_MAX, ffi::RSMPI_MIN, ffi::RSMPI_PROD, LAND, LOR, LXOR, BAND, BOR, BXOR].contains(&op)
    }
}
