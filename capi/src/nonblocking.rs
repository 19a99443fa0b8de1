//! Collectives that do not block.

use collwise::run::{Pending, raw};
use mpi::ffi::{MPI_Comm, MPI_Datatype, MPI_Op, MPI_SUCCESS};
use std::os::raw::{c_int, c_void};

/// What is kept for a collective that was begun.
pub struct collwise_operation(Pending<'static>);

/// A collective that was begun; null when it is over.
pub type collwise_request = *mut collwise_operation;

/// One that was begun is kept at an address; of one that could not be, that is null.
unsafe fn keep((code, pending): (c_int, Option<Pending<'static>>), request: *mut collwise_request) -> c_int {
    // SAFETY: the caller's
    unsafe { *request = pending.map_or(std::ptr::null_mut(), |pending| Box::into_raw(Box::new(collwise_operation(pending)))) };
    code
}

/// Begins a broadcast, as `MPI_Ibcast`; `collwise_wait` or `collwise_test` ends it. All ranks begin the collectives of a communicator, blocking or not,
/// in the same order, and end them in any. It gets further while the process is in `collwise_wait`, `collwise_test` or a blocking collective
/// of this library, and in no other call. A communicator has plans for it after its second blocking collective of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_ibcast(
    buffer: *mut c_void,
    count: c_int,
    datatype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    request: *mut collwise_request,
) -> c_int {
    unsafe { keep(raw::ibcast(buffer, count, datatype, root, comm), request) }
}

/// Begins what `MPI_Iallreduce` does, by the rules of `collwise_ibcast`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_iallreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: c_int,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
    request: *mut collwise_request,
) -> c_int {
    unsafe { keep(raw::iallreduce(sendbuf, recvbuf, count, datatype, op, comm), request) }
}

/// Begins a barrier, by the rules of `collwise_ibcast`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_ibarrier(comm: MPI_Comm, request: *mut collwise_request) -> c_int {
    unsafe { keep(raw::ibarrier(comm), request) }
}

/// Waits until a collective is over, and makes its request null. Of a null request there is nothing to wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_wait(request: *mut collwise_request) -> c_int {
    unsafe {
        if (*request).is_null() {
            return MPI_SUCCESS as c_int;
        }
        let operation = Box::from_raw(std::mem::replace(&mut *request, std::ptr::null_mut()));
        raw::code(operation.0.wait())
    }
}

/// Gets all collectives further that are under way; `flag` is 1 if this one is over, whose request is null then, and 0 if it is not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_test(request: *mut collwise_request, flag: *mut c_int) -> c_int {
    unsafe {
        let Some(operation) = (*request).as_mut() else {
            *flag = 1;
            return MPI_SUCCESS as c_int;
        };
        let tested = operation.0.test();
        // one that failed is over too
        let is_over = !matches!(tested, Ok(false));
        *flag = c_int::from(is_over);
        if is_over {
            drop(Box::from_raw(std::mem::replace(&mut *request, std::ptr::null_mut())));
        }
        raw::code(tested.map(drop))
    }
}
