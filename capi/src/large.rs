//! Large counts: as the functions without `_c`, by counts that an `int` need not hold.
//!
//! What an `int` holds goes there. Longer messages go as one item of a datatype that is made for it, and are combined in pieces. Lists of counts or places of
//! which an `int` does not hold all are the MPI library's own, if it has such functions (MPI 4); else that is the error `MPI_ERR_COUNT`.

use super::*;
use collwise::transport::mpi::symbol;
use collwise::transport::native;
use mpi::ffi::{self, MPI_Aint, MPI_Count};
use std::ffi::CStr;
use std::ptr::null_mut;

/// Items of a made datatype, or combined at once.
const PIECE: MPI_Count = 1 << 30;

/// Items as an `int` counts them.
struct Counted {
    count: c_int,
    datatype: MPI_Datatype,
    /// The datatype was made for it.
    made: bool,
}

impl Counted {
    /// A message of so many items.
    unsafe fn new(count: MPI_Count, datatype: MPI_Datatype) -> Result<Counted, c_int> {
        if let Ok(count) = c_int::try_from(count) {
            return Ok(Counted { count, datatype, made: false });
        }
        let (mut lb, mut extent) = (0, 0);
        let (mut piece, mut pieces, mut rest, mut both, mut all) = (datatype, datatype, datatype, datatype, datatype);
        unsafe {
            done(native::PMPI_Type_get_extent(datatype, &mut lb, &mut extent))?;
            let many = c_int::try_from(count / PIECE).map_err(|_| ffi::MPI_ERR_COUNT as c_int)?;
            done(native::PMPI_Type_contiguous(PIECE as c_int, datatype, &mut piece))?;
            done(native::PMPI_Type_contiguous(many, piece, &mut pieces))?;
            done(native::PMPI_Type_contiguous((count % PIECE) as c_int, datatype, &mut rest))?;
            let (lengths, places) = ([1, 1], [0, (count - count % PIECE) as MPI_Aint * extent]);
            done(native::PMPI_Type_create_struct(2, lengths.as_ptr(), places.as_ptr(), [pieces, rest].as_ptr(), &mut both))?;
            // without what a compiler would add at the end of a structure
            done(native::PMPI_Type_create_resized(both, lb, count as MPI_Aint * extent, &mut all))?;
            done(native::PMPI_Type_commit(&mut all))?;
            [piece, pieces, rest, both].iter_mut().try_for_each(|part| done(native::PMPI_Type_free(part)))?;
        }
        Ok(Counted { count: 1, datatype: all, made: true })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if self.made {
            unsafe { native::PMPI_Type_free(&mut self.datatype) };
        }
    }
}

fn done(code: c_int) -> Result<(), c_int> {
    if code == ffi::MPI_SUCCESS as c_int { Ok(()) } else { Err(code) }
}

/// Hands a code of ours to the communicator's error handler.
unsafe fn refused(comm: MPI_Comm) -> c_int {
    let code = ffi::MPI_ERR_COUNT as c_int;
    unsafe { native::PMPI_Comm_call_errhandler(comm, code) };
    code
}

/// The datatype's extent.
unsafe fn extent(datatype: MPI_Datatype) -> Result<isize, c_int> {
    let (mut lb, mut extent) = (0, 0);
    done(unsafe { native::PMPI_Type_get_extent(datatype, &mut lb, &mut extent) })?;
    #[allow(clippy::unnecessary_cast)] // another type of as many bits under MPICH
    Ok(extent as isize)
}

/// So many items in pieces that an `int` counts, each from its place on in bytes; the first code that is an error.
unsafe fn in_pieces(count: MPI_Count, datatype: MPI_Datatype, mut call: impl FnMut(isize, c_int) -> c_int) -> c_int {
    if let Ok(count) = c_int::try_from(count) {
        return call(0, count);
    }
    let mut all = || {
        let extent = unsafe { extent(datatype)? };
        let mut begin = 0;
        while begin < count {
            let some = (count - begin).min(PIECE);
            done(call(begin as isize * extent, some as c_int))?;
            begin += some;
        }
        Ok(())
    };
    all().err().unwrap_or(ffi::MPI_SUCCESS as c_int)
}

/// What is given, so many bytes on; in place stays that.
fn later(sendbuf: *const c_void, bytes: isize) -> *const c_void {
    if raw::is_in_place(sendbuf) { sendbuf } else { sendbuf.wrapping_byte_offset(bytes) }
}

/// A count that is the root's word alone: what others give may be anything.
fn of_the_root(count: MPI_Count, root: c_int, comm: MPI_Comm) -> MPI_Count {
    if raw::at_root(root, comm) == Some(false) { 0 } else { count }
}

/// The code of a call on items as an `int` counts them.
unsafe fn counted<const N: usize>(all: [(MPI_Count, MPI_Datatype); N], call: impl FnOnce([(c_int, MPI_Datatype); N]) -> c_int) -> c_int {
    let counted: Result<Vec<Counted>, c_int> = all.iter().map(|&(count, datatype)| unsafe { Counted::new(count, datatype) }).collect();
    match counted {
        Ok(counted) => call(std::array::from_fn(|k| (counted[k].count, counted[k].datatype))),
        Err(code) => code,
    }
}

/// As `collwise_bcast`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_bcast_c(
    buffer: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> c_int {
    unsafe { counted([(count, datatype)], |[(n, t)]| raw::bcast(buffer, n, t, root, comm)) }
}

/// As `collwise_reduce`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_reduce_c(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    root: c_int,
    comm: MPI_Comm,
) -> c_int {
    let piece = |at, n| unsafe { raw::reduce(later(sendbuf, at), recvbuf.wrapping_byte_offset(at), n, datatype, op, root, comm) };
    unsafe { in_pieces(count, datatype, piece) }
}

/// As `collwise_allreduce`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_allreduce_c(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> c_int {
    let piece = |at, n| unsafe { raw::allreduce(later(sendbuf, at), recvbuf.wrapping_byte_offset(at), n, datatype, op, comm) };
    unsafe { in_pieces(count, datatype, piece) }
}

/// As `collwise_reduce_scatter_block`; long blocks are reduced one after the other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_reduce_scatter_block_c(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> c_int {
    if let Ok(count) = c_int::try_from(recvcount) {
        return unsafe { raw::reduce_scatter_block(sendbuf, recvbuf, count, datatype, op, comm) };
    }
    let all = || unsafe {
        let (mut ranks, mut me) = (0, 0);
        done(native::PMPI_Comm_size(comm, &mut ranks))?;
        done(native::PMPI_Comm_rank(comm, &mut me))?;
        let block = recvcount as isize * extent(datatype)?;
        // in place the result's place holds what is given for others: it comes at the end
        let in_place = raw::is_in_place(sendbuf);
        let mut result = if in_place { std::slice::from_raw_parts(recvbuf.cast::<u8>(), block as usize).to_vec() } else { Vec::new() };
        let into = if in_place { result.as_mut_ptr().cast() } else { recvbuf };
        let given = if in_place { recvbuf.cast_const() } else { sendbuf };
        for root in 0..ranks {
            let into = if root == me { into } else { null_mut() };
            done(collwise_reduce_c(given.wrapping_byte_offset(root as isize * block), into, recvcount, datatype, op, root, comm))?;
        }
        std::ptr::copy_nonoverlapping(result.as_ptr(), recvbuf.cast(), result.len());
        Ok(())
    };
    all().err().unwrap_or(ffi::MPI_SUCCESS as c_int)
}

/// As `collwise_gather`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_gather_c(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> c_int {
    let call = |[(n, t), (m, u)]: [(c_int, MPI_Datatype); 2]| unsafe { raw::gather(sendbuf, n, t, recvbuf, m, u, root, comm) };
    unsafe { counted([(sendcount, sendtype), (of_the_root(recvcount, root, comm), recvtype)], call) }
}

/// As `collwise_scatter`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_scatter_c(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> c_int {
    let call = |[(n, t), (m, u)]: [(c_int, MPI_Datatype); 2]| unsafe { raw::scatter(sendbuf, n, t, recvbuf, m, u, root, comm) };
    unsafe { counted([(of_the_root(sendcount, root, comm), sendtype), (recvcount, recvtype)], call) }
}

/// As `collwise_allgather`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_allgather_c(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> c_int {
    let call = |[(n, t), (m, u)]: [(c_int, MPI_Datatype); 2]| unsafe { raw::allgather(sendbuf, n, t, recvbuf, m, u, comm) };
    unsafe { counted([(sendcount, sendtype), (recvcount, recvtype)], call) }
}

/// As `collwise_alltoall`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_alltoall_c(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> c_int {
    let call = |[(n, t), (m, u)]: [(c_int, MPI_Datatype); 2]| unsafe { raw::alltoall(sendbuf, n, t, recvbuf, m, u, comm) };
    unsafe { counted([(sendcount, sendtype), (recvcount, recvtype)], call) }
}

/// A list as ints; nothing if one of them holds it not. A null list, which does not count on this rank, stays that.
unsafe fn ints<T: Copy + TryInto<c_int>>(list: *const T, comm: MPI_Comm) -> Option<Vec<c_int>> {
    let (mut ranks, mut inter) = (0, 0);
    unsafe {
        native::PMPI_Comm_size(comm, &mut ranks);
        native::PMPI_Comm_test_inter(comm, &mut inter);
        if inter != 0 {
            native::PMPI_Comm_remote_size(comm, &mut ranks);
        }
        if list.is_null() {
            return Some(Vec::new());
        }
        std::slice::from_raw_parts(list, ranks as usize).iter().map(|&number| number.try_into().ok()).collect()
    }
}

/// The address of a list, null if it is none.
fn address(list: &[c_int]) -> *const c_int {
    if list.is_empty() { std::ptr::null() } else { list.as_ptr() }
}

/// The library's own function of large counts, if it has one, for a call on a communicator.
fn own(name: &CStr, comm: MPI_Comm) -> Option<*mut c_void> {
    raw::settle(comm);
    symbol(name)
}

/// As `collwise_gatherv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_gatherv_c(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const MPI_Count,
    displs: *const MPI_Aint,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> c_int {
    type Own = unsafe extern "C" fn(
        *const c_void,
        MPI_Count,
        MPI_Datatype,
        *mut c_void,
        *const MPI_Count,
        *const MPI_Aint,
        MPI_Datatype,
        c_int,
        MPI_Comm,
    ) -> c_int;
    unsafe {
        // the root alone knows whether an int holds all of them: where the library has a function for that, it is always this one
        match own(c"PMPI_Gatherv_c", comm) {
            Some(found) => std::mem::transmute::<*mut c_void, Own>(found)(
                sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm,
            ),
            None => match (ints(recvcounts, comm), ints(displs, comm)) {
                (Some(counts), Some(places)) => counted([(sendcount, sendtype)], |[(n, t)]| {
                    raw::gatherv(sendbuf, n, t, recvbuf, address(&counts), address(&places), recvtype, root, comm)
                }),
                _ => refused(comm),
            },
        }
    }
}

/// As `collwise_scatterv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_scatterv_c(
    sendbuf: *const c_void,
    sendcounts: *const MPI_Count,
    displs: *const MPI_Aint,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> c_int {
    type Own = unsafe extern "C" fn(
        *const c_void,
        *const MPI_Count,
        *const MPI_Aint,
        MPI_Datatype,
        *mut c_void,
        MPI_Count,
        MPI_Datatype,
        c_int,
        MPI_Comm,
    ) -> c_int;
    unsafe {
        match own(c"PMPI_Scatterv_c", comm) {
            Some(found) => std::mem::transmute::<*mut c_void, Own>(found)(
                sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm,
            ),
            None => match (ints(sendcounts, comm), ints(displs, comm)) {
                (Some(counts), Some(places)) => counted([(recvcount, recvtype)], |[(m, u)]| {
                    raw::scatterv(sendbuf, address(&counts), address(&places), sendtype, recvbuf, m, u, root, comm)
                }),
                _ => refused(comm),
            },
        }
    }
}

/// As `collwise_allgatherv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_allgatherv_c(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const MPI_Count,
    displs: *const MPI_Aint,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> c_int {
    type Own = unsafe extern "C" fn(
        *const c_void,
        MPI_Count,
        MPI_Datatype,
        *mut c_void,
        *const MPI_Count,
        *const MPI_Aint,
        MPI_Datatype,
        MPI_Comm,
    ) -> c_int;
    unsafe {
        // places may differ between ranks, and what an int does not hold on one would be another function there
        match own(c"PMPI_Allgatherv_c", comm) {
            Some(found) => {
                std::mem::transmute::<*mut c_void, Own>(found)(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm)
            }
            None => match (ints(recvcounts, comm), ints(displs, comm)) {
                (Some(counts), Some(places)) => counted([(sendcount, sendtype)], |[(n, t)]| {
                    raw::allgatherv(sendbuf, n, t, recvbuf, address(&counts), address(&places), recvtype, comm)
                }),
                _ => refused(comm),
            },
        }
    }
}

/// As `collwise_alltoallv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_alltoallv_c(
    sendbuf: *const c_void,
    sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const MPI_Count,
    rdispls: *const MPI_Aint,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> c_int {
    type Own = unsafe extern "C" fn(
        *const c_void,
        *const MPI_Count,
        *const MPI_Aint,
        MPI_Datatype,
        *mut c_void,
        *const MPI_Count,
        *const MPI_Aint,
        MPI_Datatype,
        MPI_Comm,
    ) -> c_int;
    unsafe {
        match own(c"PMPI_Alltoallv_c", comm) {
            Some(found) => {
                let own = std::mem::transmute::<*mut c_void, Own>(found);
                own(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm)
            }
            None => match (ints(sendcounts, comm), ints(sdispls, comm), ints(recvcounts, comm), ints(rdispls, comm)) {
                (Some(n), Some(from), Some(m), Some(to)) => {
                    raw::alltoallv(sendbuf, address(&n), address(&from), sendtype, recvbuf, address(&m), address(&to), recvtype, comm)
                }
                _ => refused(comm),
            },
        }
    }
}

/// As `collwise_reduce_scatter`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_reduce_scatter_c(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcounts: *const MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> c_int {
    type Own = unsafe extern "C" fn(*const c_void, *mut c_void, *const MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm) -> c_int;
    unsafe {
        // all ranks give the same counts
        match (ints(recvcounts, comm), own(c"PMPI_Reduce_scatter_c", comm)) {
            (Some(counts), _) => raw::reduce_scatter(sendbuf, recvbuf, address(&counts), datatype, op, comm),
            (None, Some(found)) => std::mem::transmute::<*mut c_void, Own>(found)(sendbuf, recvbuf, recvcounts, datatype, op, comm),
            (None, None) => refused(comm),
        }
    }
}
