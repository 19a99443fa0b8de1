//! The MPI library's own collectives, on plain bytes.
#![allow(unsafe_code)] // MPI's C interface

use super::mpi::check;
use super::{Buffers, native};
use crate::collective::{Collective, allreduce, barrier, bcast};
use crate::error::{Error, Result};
use crate::schedule::Elements;
use mpi::ffi::{self, MPI_Comm, MPI_Datatype, MPI_Op};
use std::os::raw::c_int;

/// What is combined, as MPI says it.
#[derive(Clone, Copy)]
pub struct Operation {
    /// The type of one element.
    datatype: MPI_Datatype,
    /// Its bytes.
    bytes: usize,
    op: MPI_Op,
}

impl Operation {
    /// An operation on elements of so many bytes.
    pub fn new(datatype: MPI_Datatype, bytes: usize, op: MPI_Op) -> Operation {
        Operation { datatype, bytes, op }
    }

    /// The sum of such elements: what is measured, since it is what most programs ask for.
    pub fn sum(elements: Elements) -> Operation {
        // SAFETY: constants of the library
        unsafe {
            let datatype = if elements.bytes == size_of::<f64>() { ffi::RSMPI_DOUBLE } else { ffi::RSMPI_UINT8_T };
            let bytes = if elements.bytes == size_of::<f64>() { elements.bytes } else { 1 };
            Operation::new(datatype, bytes, ffi::RSMPI_SUM)
        }
    }

    /// `into := left op into`, by the library.
    ///
    /// # Errors
    /// MPI's reason, or spans that are not of whole elements.
    pub fn combine(&self, left: &[u8], into: &mut [u8]) -> Result<()> {
        let count = self.count(into.len())?;
        // SAFETY: as many elements in both, which do not overlap
        let code = unsafe { native::PMPI_Reduce_local(left.as_ptr().cast(), into.as_mut_ptr().cast(), count, self.datatype, self.op) };
        check("MPI_Reduce_local", code)
    }

    /// What it combines; whether it commutes is not known here.
    pub fn elements(&self) -> Elements {
        Elements { bytes: self.bytes, commute: false }
    }

    /// So many bytes in elements.
    fn count(&self, bytes: usize) -> Result<c_int> {
        let wrong = || Error::invalid(format!("combine {bytes} bytes in elements of {}", self.bytes));
        if !bytes.is_multiple_of(self.bytes) {
            return Err(wrong());
        }
        c_int::try_from(bytes / self.bytes).map_err(|_| wrong())
    }
}

/// What a collective is called with.
#[derive(Clone, Copy)]
pub struct Arguments {
    /// This rank's memory; without an input, what it gives lies in the output.
    pub buffers: Buffers,
    /// Bytes of the message or of a block.
    pub bytes: usize,
    /// The root; 0 where there is none.
    pub root: usize,
    /// What is combined, if anything is.
    pub operation: Option<Operation>,
}

impl Arguments {
    /// Of a collective whose one buffer is the message, which nothing is combined with.
    pub fn of_message(data: *mut u8, bytes: usize, root: usize) -> Arguments {
        Arguments { buffers: Buffers::in_place(data, bytes), bytes, root, operation: None }
    }

    /// What combines elements in a program that does this.
    ///
    /// # Errors
    /// Nothing was said, or as [`Operation::combine`].
    #[inline]
    pub fn combine(&self, left: &[u8], into: &mut [u8]) -> Result<()> {
        self.need_operation()?.combine(left, into)
    }

    fn need_operation(&self) -> Result<&Operation> {
        self.operation.as_ref().ok_or_else(|| Error::invalid("combine elements: no operation was given"))
    }
}

/// Calls one on these arguments, with the size as an `int`, of bytes or of elements.
type Call = unsafe fn(&Arguments, c_int, MPI_Comm) -> c_int;

const CALLS: [(&Collective, Call); 3] = [
    (&bcast::COLLECTIVE, |a, count, comm| {
        // SAFETY: the caller's
        unsafe { native::PMPI_Bcast(a.buffers.output().cast(), count, ffi::RSMPI_UINT8_T, a.root as c_int, comm) }
    }),
    (&barrier::COLLECTIVE, |_, _, comm| {
        // SAFETY: the caller's
        unsafe { native::PMPI_Barrier(comm) }
    }),
    (&allreduce::COLLECTIVE, |a, count, comm| {
        let operation = a.operation.unwrap_or(Operation::sum(Elements::default()));
        // SAFETY: the caller's
        unsafe {
            let given = given(a);
            let input = given.as_ref().map_or(a.buffers.input(), |copy| copy.as_ptr()).cast();
            native::PMPI_Allreduce(input, a.buffers.output().cast(), count, operation.datatype, operation.op, comm)
        }
    }),
];

/// A copy of what a rank gives where that lies in its output: the library's name for "in place" is known to C alone.
///
/// # Safety
/// The output must have the bytes.
unsafe fn given(a: &Arguments) -> Option<Vec<u8>> {
    // SAFETY: the caller's
    a.buffers.input().is_null().then(|| unsafe { std::slice::from_raw_parts(a.buffers.output(), a.bytes) }.to_vec())
}

/// Runs the library's own collective.
///
/// # Safety
/// The buffers must be as large as the collective's layout says, `comm` a valid communicator whose members all do this.
///
/// # Errors
/// MPI's reason.
pub unsafe fn run(collective: &Collective, arguments: &Arguments, comm: MPI_Comm) -> Result<()> {
    let wrong = |what: &str| Error::invalid(format!("call {}: {what}", collective.function));
    let (_, call) = CALLS.iter().find(|(c, _)| *c == collective).ok_or_else(|| wrong("it is not known here"))?;
    let count = match collective.combines {
        true => arguments.need_operation()?.count(arguments.bytes)?,
        false => c_int::try_from(arguments.bytes).map_err(|_| wrong("an int does not count its bytes"))?,
    };
    // SAFETY: the caller's
    check(collective.function, unsafe { call(arguments, count, comm) })
}
