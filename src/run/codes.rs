//! Errors as C has them: MPI's codes, with words for each.

use crate::error::{Error, Result};
use crate::library::Library;
use crate::transport::mpi::{check, is_initialized, library_version};
use crate::transport::native;
use mpi::ffi::{self, MPI_Comm as Comm};
use std::cell::RefCell;
use std::os::raw::c_int;

thread_local! {
    /// The last code of this thread's, and what was wrong.
    static LAST: RefCell<Option<(c_int, String)>> = const { RefCell::new(None) };
}

/// The code of what one of these came to, without a communicator whose error handler could be called.
pub fn code(result: Result<()>) -> c_int {
    match result {
        Ok(()) => ffi::MPI_SUCCESS as c_int,
        Err(error) => {
            let code = if let Error::Mpi { code, .. } = error { code } else { other_error() };
            LAST.with(|last| *last.borrow_mut() = Some((code, error.to_string())));
            code
        }
    }
}

/// `MPI_ERR_OTHER`, which SMPI's header hides from Rust.
fn other_error() -> c_int {
    match Library::of(&library_version()) {
        Library::OpenMpi => 16,
        Library::Mpich => 15,
        Library::Smpi | Library::Simulator | Library::Other => 12,
    }
}

/// What was wrong the last time that this thread got a code from here.
pub fn reason(code: c_int) -> Option<String> {
    LAST.with(|last| last.borrow().as_ref().filter(|(of, _)| *of == code).map(|(_, text)| text.clone()))
}

/// MPI's words for a code.
pub fn words(code: c_int) -> String {
    if !is_initialized() {
        return format!("code {code} of MPI, whose words it has after MPI_Init");
    }
    match check("MPI", code) {
        Err(Error::Mpi { reason, .. }) => reason,
        _ => "no error".into(),
    }
}

/// The code of what a call on a communicator came to. MPI's errors were handed to its error handler; others are now.
pub(super) fn told(comm: Comm, result: Result<()>) -> c_int {
    let is_ours = matches!(&result, Err(error) if !matches!(error, Error::Mpi { .. }));
    let code = code(result);
    if is_ours {
        // SAFETY: the caller's communicator
        unsafe { native::PMPI_Comm_call_errhandler(comm, code) };
    }
    code
}
