//! The same for Fortran, as external procedures with the arguments of `use mpi` and `mpif.h`: handles are integers (of `use mpi_f08`, their
//! `%MPI_VAL`), and the code comes last.
//!
//! ```fortran
//! call collwise_bcast(values, 1000, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierror)
//! ```
//!
//! The names are lower case with an underscore behind them, as gfortran, Intel's, NVIDIA's and LLVM's compilers have it.

use super::nonblocking::{collwise_iallreduce, collwise_ibarrier, collwise_ibcast, collwise_request, collwise_test, collwise_wait};
use super::*;
use collwise::transport::mpi::symbol;
use mpi::ffi::{RSMPI_Comm_f2c, RSMPI_Op_f2c, RSMPI_Type_f2c};
use std::ffi::CString;
use std::sync::OnceLock;

/// An integer by its place.
type Int = *const c_int;
type Ints = *const c_int;
/// Any variable or array.
type Any = *mut c_void;

/// The address of a buffer as C has it: Fortran's `MPI_BOTTOM` and `MPI_IN_PLACE` are variables.
unsafe fn buffer(data: Any) -> Any {
    static CONSTANTS: OnceLock<(Vec<usize>, Vec<usize>)> = OnceLock::new();
    let (bottom, in_place) = CONSTANTS.get_or_init(|| (known(BOTTOM, c"mpipriv1_", 0), known(IN_PLACE, c"mpipriv1_", size_of::<c_int>())));
    match data.addr() {
        at if bottom.contains(&at) => std::ptr::null_mut(),
        at if in_place.contains(&at) => std::ptr::without_provenance_mut(raw::in_place().unwrap_or(at)),
        _ => data,
    }
}

/// Open MPI's names of variables, and MPICH's of `use mpi_f08`.
const BOTTOM: [&std::ffi::CStr; 5] =
    [c"mpi_fortran_bottom_", c"mpi_fortran_bottom", c"mpi_fortran_bottom__", c"MPI_FORTRAN_BOTTOM", c"MPIR_F08_MPI_BOTTOM"];
const IN_PLACE: [&std::ffi::CStr; 5] =
    [c"mpi_fortran_in_place_", c"mpi_fortran_in_place", c"mpi_fortran_in_place__", c"MPI_FORTRAN_IN_PLACE", c"MPIR_F08_MPI_IN_PLACE"];

/// The addresses of variables of some names, and of one in MPICH's common block.
fn known(names: [&std::ffi::CStr; 5], block: &std::ffi::CStr, offset: usize) -> Vec<usize> {
    let own = names.into_iter().filter_map(symbol).map(|found| found.addr());
    own.chain(symbol(block).map(|found| found.addr() + offset)).collect()
}

unsafe fn comm(handle: Int) -> MPI_Comm {
    unsafe { RSMPI_Comm_f2c(*handle) }
}

unsafe fn datatype(handle: Int) -> MPI_Datatype {
    unsafe { RSMPI_Type_f2c(*handle) }
}

unsafe fn op(handle: Int) -> MPI_Op {
    unsafe { RSMPI_Op_f2c(*handle) }
}

/// `collwise_init`: blanks stand for no file.
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_init_(policy: *const u8, code: *mut c_int, length: usize) {
    let text = unsafe { std::slice::from_raw_parts(policy, length) }.trim_ascii_end();
    let named = CString::new(text).unwrap_or_default();
    let policy = if text.is_empty() { std::ptr::null() } else { named.as_ptr() };
    unsafe { *code = library::collwise_init(policy) };
}

/// `collwise_finalize`
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_finalize_(code: *mut c_int) {
    unsafe { *code = library::collwise_finalize() };
}

/// `collwise_bcast`
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_bcast_(data: Any, n: Int, t: Int, root: Int, c: Int, code: *mut c_int) {
    unsafe { *code = collwise_bcast(buffer(data), *n, datatype(t), *root, comm(c)) };
}

/// `collwise_barrier`
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_barrier_(c: Int, code: *mut c_int) {
    unsafe { *code = collwise_barrier(comm(c)) };
}

/// `collwise_reduce`
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_reduce_(from: Any, into: Any, n: Int, t: Int, o: Int, root: Int, c: Int, code: *mut c_int) {
    unsafe { *code = collwise_reduce(buffer(from), buffer(into), *n, datatype(t), op(o), *root, comm(c)) };
}

/// `collwise_allreduce`
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_allreduce_(from: Any, into: Any, n: Int, t: Int, o: Int, c: Int, code: *mut c_int) {
    unsafe { *code = collwise_allreduce(buffer(from), buffer(into), *n, datatype(t), op(o), comm(c)) };
}

/// `collwise_reduce_scatter_block`
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_reduce_scatter_block_(from: Any, into: Any, n: Int, t: Int, o: Int, c: Int, code: *mut c_int) {
    unsafe { *code = collwise_reduce_scatter_block(buffer(from), buffer(into), *n, datatype(t), op(o), comm(c)) };
}

/// `collwise_reduce_scatter`
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_reduce_scatter_(from: Any, into: Any, counts: Ints, t: Int, o: Int, c: Int, code: *mut c_int) {
    unsafe { *code = collwise_reduce_scatter(buffer(from), buffer(into), counts, datatype(t), op(o), comm(c)) };
}

/// `collwise_gather`
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_gather_(from: Any, n: Int, t: Int, into: Any, m: Int, u: Int, root: Int, c: Int, code: *mut c_int) {
    unsafe { *code = collwise_gather(buffer(from), *n, datatype(t), buffer(into), *m, datatype(u), *root, comm(c)) };
}

/// `collwise_gatherv`
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_gatherv_(
    from: Any,
    n: Int,
    t: Int,
    into: Any,
    m: Ints,
    at: Ints,
    u: Int,
    root: Int,
    c: Int,
    code: *mut c_int,
) {
    unsafe { *code = collwise_gatherv(buffer(from), *n, datatype(t), buffer(into), m, at, datatype(u), *root, comm(c)) };
}

/// `collwise_scatter`
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_scatter_(from: Any, n: Int, t: Int, into: Any, m: Int, u: Int, root: Int, c: Int, code: *mut c_int) {
    unsafe { *code = collwise_scatter(buffer(from), *n, datatype(t), buffer(into), *m, datatype(u), *root, comm(c)) };
}

/// `collwise_scatterv`
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_scatterv_(
    from: Any,
    n: Ints,
    at: Ints,
    t: Int,
    into: Any,
    m: Int,
    u: Int,
    root: Int,
    c: Int,
    code: *mut c_int,
) {
    unsafe { *code = collwise_scatterv(buffer(from), n, at, datatype(t), buffer(into), *m, datatype(u), *root, comm(c)) };
}

/// `collwise_allgather`
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_allgather_(from: Any, n: Int, t: Int, into: Any, m: Int, u: Int, c: Int, code: *mut c_int) {
    unsafe { *code = collwise_allgather(buffer(from), *n, datatype(t), buffer(into), *m, datatype(u), comm(c)) };
}

/// `collwise_allgatherv`
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_allgatherv_(from: Any, n: Int, t: Int, into: Any, m: Ints, at: Ints, u: Int, c: Int, code: *mut c_int) {
    unsafe { *code = collwise_allgatherv(buffer(from), *n, datatype(t), buffer(into), m, at, datatype(u), comm(c)) };
}

/// `collwise_alltoall`
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_alltoall_(from: Any, n: Int, t: Int, into: Any, m: Int, u: Int, c: Int, code: *mut c_int) {
    unsafe { *code = collwise_alltoall(buffer(from), *n, datatype(t), buffer(into), *m, datatype(u), comm(c)) };
}

/// `collwise_alltoallv`
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_alltoallv_(
    from: Any,
    n: Ints,
    at: Ints,
    t: Int,
    into: Any,
    m: Ints,
    there: Ints,
    u: Int,
    c: Int,
    code: *mut c_int,
) {
    unsafe { *code = collwise_alltoallv(buffer(from), n, at, datatype(t), buffer(into), m, there, datatype(u), comm(c)) };
}

/// `collwise_ibcast`: a request is an integer that holds an address.
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_ibcast_(data: Any, n: Int, t: Int, root: Int, c: Int, request: *mut collwise_request, code: *mut c_int) {
    unsafe { *code = collwise_ibcast(buffer(data), *n, datatype(t), *root, comm(c), request) };
}

/// `collwise_iallreduce`
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_iallreduce_(
    from: Any,
    into: Any,
    n: Int,
    t: Int,
    o: Int,
    c: Int,
    request: *mut collwise_request,
    code: *mut c_int,
) {
    unsafe { *code = collwise_iallreduce(buffer(from), buffer(into), *n, datatype(t), op(o), comm(c), request) };
}

/// `collwise_ibarrier`
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_ibarrier_(c: Int, request: *mut collwise_request, code: *mut c_int) {
    unsafe { *code = collwise_ibarrier(comm(c), request) };
}

/// `collwise_wait`
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_wait_(request: *mut collwise_request, code: *mut c_int) {
    unsafe { *code = collwise_wait(request) };
}

/// `collwise_test`: 1 is true and 0 false for the compilers named above.
#[unsafe(no_mangle)]
unsafe extern "C" fn collwise_test_(request: *mut collwise_request, flag: *mut c_int, code: *mut c_int) {
    unsafe { *code = collwise_test(request, flag) };
}
