//! Addresses that mean something else than where items lie.

use crate::library::Library;
use crate::transport::mpi::library_version;
use std::os::raw::c_void;
use std::sync::OnceLock;

/// True for `MPI_IN_PLACE`.
#[inline]
pub fn is_in_place(data: *const c_void) -> bool {
    in_place() == Some(data.addr())
}

/// The value of `MPI_IN_PLACE`, which headers alone say; nothing where that is not known.
pub fn in_place() -> Option<usize> {
    static FOUND: OnceLock<Option<usize>> = OnceLock::new();
    *FOUND.get_or_init(|| match Library::of(&library_version()) {
        Library::OpenMpi => Some(1),
        Library::Mpich => Some((-1isize) as usize),
        Library::Smpi => Some((-222isize) as usize),
        Library::Simulator | Library::Other => None,
    })
}

/// True of addresses that mean something else, as `MPI_IN_PLACE` and `MPI_BOTTOM` do, whatever the library is.
#[inline]
pub fn is_special(address: *const c_void) -> bool {
    const NEXT_TO_NOTHING: usize = 4096; // no memory of a program begins there, nor ends at the last address
    address.addr().wrapping_add(NEXT_TO_NOTHING) < 2 * NEXT_TO_NOTHING
}
