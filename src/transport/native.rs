//! The MPI library's own functions, by the names behind its names: `PMPI_...`.
//!
//! Whoever wraps MPI's calls may define these names too: a profiler that is preloaded, since Fortran's `MPI_Bcast` calls `PMPI_Bcast` in some
//! libraries, or a library that this crate is a part of, which would then call itself. So they are not called as the linker bound them, but
//! looked up in the file of the MPI library, all at once, at the first call of any. Where that cannot be found (a program that is linked
//! statically) they are what the linker bound.
#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)] // each is what its namesake is

use crate::loaded::{file_of, loaded};
use libc::{c_char, c_int, c_void};
use mpi::ffi::{
    self, MPI_Aint as Aint, MPI_Comm as Comm, MPI_Count, MPI_Datatype as Datatype, MPI_Errhandler as Errhandler, MPI_Group as Group,
    MPI_Op, MPI_Request as Request, MPI_Status as Status,
};
use std::ffi::CString;
use std::sync::OnceLock;

type Place = *mut c_void;
type Int = *mut c_int;
type Ints = *const c_int;
/// What is called where a `T` with an attribute is duplicated, or deleted; the names of their types differ between libraries.
type Copied<T> = Option<unsafe extern "C" fn(T, c_int, Place, Place, Place, Int) -> c_int>;
type Deleted<T> = Option<unsafe extern "C" fn(T, c_int, Place, Place) -> c_int>;

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        /// Where they are.
        #[allow(missing_docs)]
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($type),*) -> $result,)*
        }

        impl Functions {
            fn find() -> Functions {
                let library = library();
                Functions {
                    $($name: match function(library, stringify!($name)) {
                        // SAFETY: MPI's function of this name has the type of the one that was linked
                        Some(found) => unsafe { std::mem::transmute::<Place, unsafe extern "C" fn($($type),*) -> $result>(found) },
                        None => ffi::$name,
                    },)*
                }
            }
        }

        /// One of them by MPI's name of it; or another function of the MPI library's, which nothing here calls by name.
        pub fn by_name(name: &str) -> Option<Place> {
            match format!("P{name}").as_str() {
                $(stringify!($name) => Some(functions().$name as Place),)*
                other => function(library(), other),
            }
        }

        $(
            #[doc = concat!("The MPI library's own `", stringify!($name), "`.")]
            #[inline]
            pub unsafe fn $name($($argument: $type),*) -> $result {
                // SAFETY: the caller's arguments
                unsafe { (functions().$name)($($argument),*) }
            }
        )*
    };
}

functions! {
    PMPI_Abort(comm: Comm, code: c_int) -> c_int;
    PMPI_Allgather(data: *const c_void, n: c_int, t: Datatype, into: Place, m: c_int, u: Datatype, comm: Comm) -> c_int;
    PMPI_Allgatherv(data: *const c_void, n: c_int, t: Datatype, into: Place, counts: Ints, places: Ints, u: Datatype, comm: Comm) -> c_int;
    PMPI_Allreduce(data: *const c_void, into: Place, n: c_int, t: Datatype, op: MPI_Op, comm: Comm) -> c_int;
    PMPI_Alltoall(data: *const c_void, n: c_int, t: Datatype, into: Place, m: c_int, u: Datatype, comm: Comm) -> c_int;
    PMPI_Alltoallv(
        data: *const c_void, counts: Ints, places: Ints, t: Datatype,
        into: Place, also: Ints, there: Ints, u: Datatype, comm: Comm
    ) -> c_int;
    PMPI_Barrier(comm: Comm) -> c_int;
    PMPI_Bcast(data: Place, n: c_int, t: Datatype, root: c_int, comm: Comm) -> c_int;
    PMPI_Comm_call_errhandler(comm: Comm, code: c_int) -> c_int;
    PMPI_Comm_create(comm: Comm, group: Group, made: *mut Comm) -> c_int;
    PMPI_Comm_create_group(comm: Comm, group: Group, tag: c_int, made: *mut Comm) -> c_int;
    PMPI_Comm_create_keyval(copy: Copied<Comm>, delete: Deleted<Comm>, key: Int, extra: Place) -> c_int;
    PMPI_Comm_delete_attr(comm: Comm, key: c_int) -> c_int;
    PMPI_Comm_dup(comm: Comm, made: *mut Comm) -> c_int;
    PMPI_Comm_free(comm: *mut Comm) -> c_int;
    PMPI_Comm_free_keyval(key: Int) -> c_int;
    PMPI_Comm_get_attr(comm: Comm, key: c_int, value: Place, found: Int) -> c_int;
    PMPI_Comm_get_errhandler(comm: Comm, handler: *mut Errhandler) -> c_int;
    PMPI_Comm_group(comm: Comm, group: *mut Group) -> c_int;
    PMPI_Comm_rank(comm: Comm, rank: Int) -> c_int;
    PMPI_Comm_remote_group(comm: Comm, group: *mut Group) -> c_int;
    PMPI_Comm_remote_size(comm: Comm, size: Int) -> c_int;
    PMPI_Comm_set_attr(comm: Comm, key: c_int, value: Place) -> c_int;
    PMPI_Comm_set_errhandler(comm: Comm, handler: Errhandler) -> c_int;
    PMPI_Comm_size(comm: Comm, size: Int) -> c_int;
    PMPI_Comm_test_inter(comm: Comm, flag: Int) -> c_int;
    PMPI_Errhandler_free(handler: *mut Errhandler) -> c_int;
    PMPI_Error_string(code: c_int, text: *mut c_char, length: Int) -> c_int;
    PMPI_Get_library_version(text: *mut c_char, length: Int) -> c_int;
    PMPI_Get_processor_name(text: *mut c_char, length: Int) -> c_int;
    PMPI_Gather(data: *const c_void, n: c_int, t: Datatype, into: Place, m: c_int, u: Datatype, root: c_int, comm: Comm) -> c_int;
    PMPI_Gatherv(
        data: *const c_void, n: c_int, t: Datatype,
        into: Place, counts: Ints, places: Ints, u: Datatype, root: c_int, comm: Comm
    ) -> c_int;
    PMPI_Group_free(group: *mut Group) -> c_int;
    PMPI_Group_incl(group: Group, n: c_int, ranks: Ints, made: *mut Group) -> c_int;
    PMPI_Group_translate_ranks(group: Group, n: c_int, ranks: Ints, other: Group, found: Int) -> c_int;
    PMPI_Iallreduce(data: *const c_void, into: Place, n: c_int, t: Datatype, op: MPI_Op, comm: Comm, request: *mut Request) -> c_int;
    PMPI_Ibarrier(comm: Comm, request: *mut Request) -> c_int;
    PMPI_Ibcast(data: Place, n: c_int, t: Datatype, root: c_int, comm: Comm, request: *mut Request) -> c_int;
    PMPI_Initialized(flag: Int) -> c_int;
    PMPI_Irecv(data: Place, n: c_int, t: Datatype, from: c_int, tag: c_int, comm: Comm, request: *mut Request) -> c_int;
    PMPI_Isend(data: *const c_void, n: c_int, t: Datatype, to: c_int, tag: c_int, comm: Comm, request: *mut Request) -> c_int;
    PMPI_Issend(data: *const c_void, n: c_int, t: Datatype, to: c_int, tag: c_int, comm: Comm, request: *mut Request) -> c_int;
    PMPI_Op_commutative(op: MPI_Op, commutes: Int) -> c_int;
    PMPI_Pack(data: *const c_void, n: c_int, t: Datatype, into: Place, size: c_int, at: Int, comm: Comm) -> c_int;
    PMPI_Query_thread(provided: Int) -> c_int;
    PMPI_Recv(data: Place, n: c_int, t: Datatype, from: c_int, tag: c_int, comm: Comm, status: *mut Status) -> c_int;
    PMPI_Reduce(data: *const c_void, into: Place, n: c_int, t: Datatype, op: MPI_Op, root: c_int, comm: Comm) -> c_int;
    PMPI_Reduce_local(data: *const c_void, into: Place, n: c_int, t: Datatype, op: MPI_Op) -> c_int;
    PMPI_Reduce_scatter(data: *const c_void, into: Place, counts: Ints, t: Datatype, op: MPI_Op, comm: Comm) -> c_int;
    PMPI_Reduce_scatter_block(data: *const c_void, into: Place, n: c_int, t: Datatype, op: MPI_Op, comm: Comm) -> c_int;
    PMPI_Scatter(data: *const c_void, n: c_int, t: Datatype, into: Place, m: c_int, u: Datatype, root: c_int, comm: Comm) -> c_int;
    PMPI_Scatterv(
        data: *const c_void, counts: Ints, places: Ints, t: Datatype,
        into: Place, n: c_int, u: Datatype, root: c_int, comm: Comm
    ) -> c_int;
    PMPI_Send(data: *const c_void, n: c_int, t: Datatype, to: c_int, tag: c_int, comm: Comm) -> c_int;
    PMPI_Test(request: *mut Request, flag: Int, status: *mut Status) -> c_int;
    PMPI_Type_commit(t: *mut Datatype) -> c_int;
    PMPI_Type_contiguous(n: c_int, t: Datatype, made: *mut Datatype) -> c_int;
    PMPI_Type_create_hindexed(n: c_int, lengths: Ints, places: *const Aint, t: Datatype, made: *mut Datatype) -> c_int;
    PMPI_Type_create_hindexed_block(n: c_int, length: c_int, places: *const Aint, t: Datatype, made: *mut Datatype) -> c_int;
    PMPI_Type_create_hvector(n: c_int, length: c_int, stride: Aint, t: Datatype, made: *mut Datatype) -> c_int;
    PMPI_Type_create_indexed_block(n: c_int, length: c_int, places: Ints, t: Datatype, made: *mut Datatype) -> c_int;
    PMPI_Type_create_keyval(copy: Copied<Datatype>, delete: Deleted<Datatype>, key: Int, extra: Place) -> c_int;
    PMPI_Type_create_resized(t: Datatype, lb: Aint, extent: Aint, made: *mut Datatype) -> c_int;
    PMPI_Type_create_struct(n: c_int, lengths: Ints, places: *const Aint, types: *const Datatype, made: *mut Datatype) -> c_int;
    PMPI_Type_create_subarray(n: c_int, sizes: Ints, parts: Ints, starts: Ints, order: c_int, t: Datatype, made: *mut Datatype) -> c_int;
    PMPI_Type_dup(t: Datatype, made: *mut Datatype) -> c_int;
    PMPI_Type_free(t: *mut Datatype) -> c_int;
    PMPI_Type_free_keyval(key: Int) -> c_int;
    PMPI_Type_get_attr(t: Datatype, key: c_int, value: Place, found: Int) -> c_int;
    PMPI_Type_get_contents(t: Datatype, n: c_int, m: c_int, k: c_int, ints: Int, places: *mut Aint, types: *mut Datatype) -> c_int;
    PMPI_Type_get_envelope(t: Datatype, ints: Int, places: Int, types: Int, combiner: Int) -> c_int;
    PMPI_Type_get_extent(t: Datatype, lb: *mut Aint, extent: *mut Aint) -> c_int;
    PMPI_Type_get_true_extent(t: Datatype, lb: *mut Aint, extent: *mut Aint) -> c_int;
    PMPI_Type_indexed(n: c_int, lengths: Ints, places: Ints, t: Datatype, made: *mut Datatype) -> c_int;
    PMPI_Type_set_attr(t: Datatype, key: c_int, value: Place) -> c_int;
    PMPI_Type_size_x(t: Datatype, size: *mut MPI_Count) -> c_int;
    PMPI_Type_vector(n: c_int, length: c_int, stride: c_int, t: Datatype, made: *mut Datatype) -> c_int;
    PMPI_Unpack(data: *const c_void, size: c_int, at: Int, into: Place, n: c_int, t: Datatype, comm: Comm) -> c_int;
    PMPI_Wait(request: *mut Request, status: *mut Status) -> c_int;
    PMPI_Waitany(n: c_int, requests: *mut Request, which: Int, status: *mut Status) -> c_int;
    PMPI_Wtime() -> f64;
}

/// Where the library's functions are.
#[inline]
pub fn functions() -> &'static Functions {
    static FOUND: OnceLock<Functions> = OnceLock::new();
    FOUND.get_or_init(Functions::find)
}

/// A function by its name in a library.
fn function(library: Option<Place>, name: &str) -> Option<Place> {
    let name = CString::new(name).ok()?;
    // SAFETY: the handle of a library that stays loaded
    let found = unsafe { libc::dlsym(library?, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// A function of the MPI library that not every one has.
pub fn newer(name: &str) -> Option<Place> {
    function(library(), name)
}

/// The MPI library's handle: of the files that are loaded and define its functions themselves the last one, since what wraps them comes before
/// it in the order in which names are looked up. This crate's own file is none, nor is one that only needs the library.
fn library() -> Option<Place> {
    let own = file_of(library as *const c_void);
    loaded().into_iter().rev().find_map(|(name, begin)| {
        // SAFETY: a name that ends with a zero; what is loaded already is not loaded again, and runs no code
        unsafe {
            let library = libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if library.is_null() {
                return None;
            }
            let file = function(Some(library), "PMPI_Get_library_version").and_then(|found| file_of(found));
            if file == Some(begin) && file != own {
                return Some(library);
            }
            libc::dlclose(library);
            None
        }
    })
}
