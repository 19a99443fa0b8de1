//! The adaptive allreduce.

use super::datatype::Layout;
use super::known::{self, Call};
use crate::collective::allreduce::COLLECTIVE;
use crate::error::{Error, Result};
use crate::transport::Buffers;
use crate::transport::library::{self, Operation};
use crate::transport::mpi::check;
use crate::transport::native;
use mpi::ffi;
use std::os::raw::{c_int, c_void};

/// The arguments of `MPI_Allreduce`.
#[derive(Clone, Copy)]
pub(super) struct Arguments {
    /// What this rank gives; `None`: it lies in `output`, where the result goes.
    pub input: Option<*const c_void>,
    pub output: *mut c_void,
    pub count: c_int,
    pub datatype: ffi::MPI_Datatype,
    pub op: ffi::MPI_Op,
    pub commutes: bool,
    pub comm: ffi::MPI_Comm,
}

impl Arguments {
    /// What is asked for.
    #[inline]
    pub fn call(&self) -> Call {
        let Arguments { input, count, datatype, commutes, comm, .. } = *self;
        Call { in_place: input.is_none(), commutes, ..Call::new(&COLLECTIVE, comm, datatype, count, 0) }
    }

    /// The same of items that lie in one piece from `start` on, as bytes.
    pub fn at(&self, layout: Layout, start: isize) -> library::Arguments {
        let Arguments { input, output, count, datatype, op, .. } = *self;
        let bytes = layout.size * count as usize;
        let from = input.map_or((std::ptr::null(), 0), |input| (input.cast::<u8>().wrapping_offset(start), bytes));
        let buffers = Buffers::new(from, (output.cast::<u8>().wrapping_offset(start), bytes));
        library::Arguments { buffers, bytes, root: 0, operation: Some(Operation::new(datatype, layout.size, op)) }
    }

    /// What is given to the library, and the memory of that if it is a copy: its name for "in place" is known to C alone.
    ///
    /// # Safety
    /// The arguments must be valid for `MPI_Allreduce`.
    pub unsafe fn given(&self, layout: Layout) -> (Vec<u8>, *const c_void) {
        if let Some(input) = self.input {
            return (Vec::new(), input);
        }
        let (begin, bytes) = layout.reach(self.count.max(0) as usize);
        let mut copy = vec![0u8; bytes];
        // SAFETY: all that the items reach is the caller's, and fits into the copy
        unsafe { std::ptr::copy_nonoverlapping(self.output.cast::<u8>().wrapping_offset(begin), copy.as_mut_ptr(), bytes) };
        let input = copy.as_ptr().wrapping_offset(-begin).cast();
        (copy, input)
    }

    /// Calls the library.
    unsafe fn native(self, layout: Layout) -> Result<()> {
        let Arguments { output, count, datatype, op, comm, .. } = self;
        // SAFETY: the arguments of a caller who vouched for them
        unsafe {
            let (_copy, input) = self.given(layout);
            check("MPI_Allreduce", native::PMPI_Allreduce(input, output, count, datatype, op, comm))
        }
    }
}

/// The allreduce as planned, or the library's own: where there is no plan, where items do not lie in one piece (which all ranks have alike), or
/// where an operation does not commute and the plan is for those that do.
///
/// # Safety
/// The arguments must be valid for `MPI_Allreduce`.
///
/// # Errors
/// MPI's reason.
#[inline]
pub(super) unsafe fn allreduce(arguments: Arguments) -> Result<()> {
    let items = arguments.count.max(0) as usize;
    // SAFETY: the caller's arguments
    unsafe {
        known::run(
            arguments.call(),
            |layout| Ok(layout.size * items > 0 && layout.one_piece(items).is_some()),
            |planned, layout| match (planned, layout.one_piece(items)) {
                (Some((planned, steps)), Some(start)) => planned.run(steps, &arguments.at(layout, start)),
                _ => arguments.native(layout),
            },
        )
    }
}

/// Refuses buffers that are not alike, before anything is sent.
///
/// # Errors
/// [`Error::Invalid`].
pub(super) fn check_alike(given: (c_int, ffi::MPI_Datatype), got: (c_int, ffi::MPI_Datatype)) -> Result<()> {
    if given.0 != got.0 || given.1 != got.1 {
        return Err(Error::invalid(format!("combine {} items into {}: both must be as many, of one datatype", given.0, got.0)));
    }
    Ok(())
}
