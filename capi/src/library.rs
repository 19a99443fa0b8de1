//! The library itself: its policy, what it would do, and what its codes mean.

use collwise::error::Error;
use collwise::policy::Policy;
use collwise::run::{raw, use_policy};
use mpi::ffi::{self, MPI_Comm, MPI_Count};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::os::raw::c_int;
use std::path::Path;

/// Uses the policy in this file from now on, for communicators that have no plans yet; with a null pointer the one that the environment variable
/// COLLWISE_POLICY names, if it names one. Call it on all ranks alike, before or after `MPI_Init`. A program that never calls it uses what COLLWISE_POLICY
/// names, too. A file that cannot be used is an error, of which `collwise_strerror` says what is wrong.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_init(policy: *const c_char) -> c_int {
    if policy.is_null() {
        return raw::code(raw::read_settings());
    }
    let named = unsafe { CStr::from_ptr(policy) }.to_string_lossy();
    raw::code(Policy::read(Path::new(&*named)).map(use_policy))
}

/// For what is preloaded: sets MPI_COMM_WORLD up, in `MPI_Init`. Collective over all processes.
///
/// cbindgen:ignore
#[unsafe(no_mangle)]
pub extern "C" fn collwise_start() -> c_int {
    raw::code(raw::start())
}

/// Frees all that is kept for communicators, which use the MPI library's own collectives from then on. Collective over all processes, before
/// `MPI_Finalize`, which does the same where it is not called.
#[unsafe(no_mangle)]
pub extern "C" fn collwise_finalize() -> c_int {
    raw::finalize();
    ffi::MPI_SUCCESS as c_int
}

/// Writes what a collective does on a communicator, in a line that ends with a zero and is cut to `size` bytes, and the seconds that it should take, or -1
/// where the policy does not say; each if its pointer is not null. `collective` is bcast, barrier, reduce, allreduce, reduce_scatter, gather, scatter,
/// allgather or alltoall; `bytes` are those of the message or of a block. Not collective: communicators have plans from their second collective of this
/// library on at the latest.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collwise_explain(
    collective: *const c_char,
    bytes: MPI_Count,
    root: c_int,
    comm: MPI_Comm,
    text: *mut c_char,
    size: usize,
    seconds: *mut f64,
) -> c_int {
    let explained = || {
        let name = unsafe { CStr::from_ptr(collective) }.to_string_lossy();
        let wrong = |what: &str| Error::invalid(format!("explain {name} of {bytes} bytes from rank {root}: {what} is negative"));
        let bytes = usize::try_from(bytes).map_err(|_| wrong("the size"))?;
        let root = usize::try_from(root).map_err(|_| wrong("the root"))?;
        unsafe { raw::explain(&name, bytes, root, comm) }
    };
    match explained() {
        Ok((said, takes)) => {
            unsafe {
                if !text.is_null() {
                    write(&said, text, size);
                }
                if !seconds.is_null() {
                    *seconds = takes.unwrap_or(-1.0);
                }
            }
            ffi::MPI_SUCCESS as c_int
        }
        Err(error) => raw::code(Err(error)),
    }
}

/// What a code means: of the last error of this thread what was wrong, and of other codes MPI's words. The text stays until this thread's next call.
#[unsafe(no_mangle)]
pub extern "C" fn collwise_strerror(code: c_int) -> *const c_char {
    thread_local! {
        static TEXT: RefCell<CString> = RefCell::default();
    }
    let said = raw::reason(code).map_or_else(|| raw::words(code), |reason| format!("failed to {reason}"));
    TEXT.with(|text| {
        *text.borrow_mut() = CString::new(said.replace('\0', " ")).unwrap_or_default();
        text.borrow().as_ptr()
    })
}

/// A text with a zero behind it, as far as there is room.
unsafe fn write(said: &str, text: *mut c_char, size: usize) {
    let Some(most) = size.checked_sub(1) else { return };
    let cut = (0..=most.min(said.len())).rev().find(|&end| said.is_char_boundary(end)).unwrap_or(0);
    unsafe {
        std::ptr::copy_nonoverlapping(said.as_ptr(), text.cast(), cut);
        *text.add(cut) = 0;
    }
}
