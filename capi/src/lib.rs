//! The adaptive collectives as a C library: MPI's functions by the names `collwise_...`, with the same arguments and the same codes.
//!
//! `include/collwise.h` is made of this file's and its neighbours' functions; a test compares. Programs in Fortran call them as external procedures
//! with handles of `use mpi` ([`fortran`]).
//!
//! No panic leaves here: one ends the job with its reason, as a fault of MPI's own would.
#![allow(unsafe_code)] // C's interface
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)] // each has the contract of its namesake
#![allow(non_camel_case_types)] // C's names

/// cbindgen:ignore
mod fortran;
mod large;
mod library;
mod nonblocking;

use collwise::run::raw;
use mpi::ffi::{MPI_Comm, MPI_Datatype, MPI_Op};
use std::os::raw::{c_int, c_void};

/// `MPI_Bcast`, in the way that the policy has for its size, its root and the communicator's hosts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_bcast(buffer: *mut c_void, count: c_int, datatype: MPI_Datatype, root: c_int, comm: MPI_Comm) -> c_int {
    unsafe { raw::bcast(buffer, count, datatype, root, comm) }
}

/// `MPI_Barrier`, as [`collwise_bcast`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_barrier(comm: MPI_Comm) -> c_int {
    unsafe { raw::barrier(comm) }
}

/// `MPI_Reduce`, as [`collwise_bcast`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_reduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: c_int,
    datatype: MPI_Datatype,
    op: MPI_Op,
    root: c_int,
    comm: MPI_Comm,
) -> c_int {
    unsafe { raw::reduce(sendbuf, recvbuf, count, datatype, op, root, comm) }
}

/// `MPI_Allreduce`, as [`collwise_bcast`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: c_int,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> c_int {
    unsafe { raw::allreduce(sendbuf, recvbuf, count, datatype, op, comm) }
}

/// `MPI_Reduce_scatter_block`, as [`collwise_bcast`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_reduce_scatter_block(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcount: c_int,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> c_int {
    unsafe { raw::reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm) }
}

/// `MPI_Reduce_scatter`, as [`collwise_bcast`] where blocks are about as long as each other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_reduce_scatter(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcounts: *const c_int,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> c_int {
    unsafe { raw::reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm) }
}

/// `MPI_Gather`, as [`collwise_bcast`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_gather(
    sendbuf: *const c_void,
    sendcount: c_int,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: c_int,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> c_int {
    unsafe { raw::gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm) }
}

/// `MPI_Gatherv`: the library's own, since the root alone knows all sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_gatherv(
    sendbuf: *const c_void,
    sendcount: c_int,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const c_int,
    displs: *const c_int,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> c_int {
    unsafe { raw::gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm) }
}

/// `MPI_Scatter`, as [`collwise_bcast`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_scatter(
    sendbuf: *const c_void,
    sendcount: c_int,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: c_int,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> c_int {
    unsafe { raw::scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm) }
}

/// `MPI_Scatterv`: the library's own, since the root alone knows all sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_scatterv(
    sendbuf: *const c_void,
    sendcounts: *const c_int,
    displs: *const c_int,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: c_int,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> c_int {
    unsafe { raw::scatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm) }
}

/// `MPI_Allgather`, as [`collwise_bcast`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_allgather(
    sendbuf: *const c_void,
    sendcount: c_int,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: c_int,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> c_int {
    unsafe { raw::allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm) }
}

/// `MPI_Allgatherv`, as [`collwise_bcast`] where blocks are about as long as each other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_allgatherv(
    sendbuf: *const c_void,
    sendcount: c_int,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const c_int,
    displs: *const c_int,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> c_int {
    unsafe { raw::allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm) }
}

/// `MPI_Alltoall`, as [`collwise_bcast`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_alltoall(
    sendbuf: *const c_void,
    sendcount: c_int,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: c_int,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> c_int {
    unsafe { raw::alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm) }
}

/// `MPI_Alltoallv`: the library's own, since no rank knows all sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_alltoallv(
    sendbuf: *const c_void,
    sendcounts: *const c_int,
    sdispls: *const c_int,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const c_int,
    rdispls: *const c_int,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> c_int {
    unsafe { raw::alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm) }
}
