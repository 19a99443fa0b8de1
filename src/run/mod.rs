//! Running a policy: collectives for the `mpi` crate's communicators.
//!
//! ```no_run
//! use collwise::run::AdaptiveCollectives;
//! use mpi::traits::*;
//!
//! collwise::transport::mpi::abort_on_panic();
//! let universe = mpi::initialize().unwrap();
//! let world = universe.world();
//! // the policy is read from the file that COLLWISE_POLICY names, or given:
//! collwise::run::use_policy(collwise::policy::Policy::read("policy.toml".as_ref()).unwrap());
//! let mut data = vec![world.rank() as f64; 1024];
//! world.adaptive_bcast(0, &mut data[..]).unwrap();
//! ```
//!
//! A communicator's first call is the library's own. It gets its plans at the second, which is collective: agreement of all members on the policy,
//! their hosts matched to its groups, and tags on a private communicator. Where there is none yet one is made then: that of all
//! processes for a communicator of all of them, which serves all others from then on, or for a part of the processes one of their own, which goes with
//! the last communicator of these processes. With MPI_THREAD_MULTIPLE one thread at a time makes that of all processes, on all of them the same one, and
//! nobody waits for it: calls in other threads are the library's own meanwhile. Where setting up fails, every member uses the library's own collective
//! and the first one says why, once for each reason. Plans are kept by size and root.
//!
//! Under programs that are preloaded MPI_COMM_WORLD is set up in MPI_Init ([`raw::start`]), where that takes two messages of all processes, and not six: its
//! first collective has a plan, and so have those of all that are made of its processes.
#![allow(unsafe_code)] // MPI's C interface

mod adaptive;
mod addresses;
mod any;
mod call;
mod codes;
mod communicator;
mod datatype;
mod items;
mod join;
mod known;
mod nonblocking;
mod notice;
mod planned;
mod private;
mod quick;
pub mod raw;
mod refused;
mod settings;
#[cfg(feature = "cli")]
mod setup;
mod tags;
mod team;
mod under_way;
mod vector;

pub use adaptive::AdaptiveCollectives;
pub(crate) use any::adaptive_call;
pub use any::adaptive_collective;
pub(crate) use communicator::{duplicate, groups_in_use};
pub use nonblocking::Pending;
pub use private::contexts as private_communicators;
pub use settings::use_policy;
#[cfg(feature = "cli")]
pub(crate) use setup::RUNTIME;

use crate::error::Result;
use crate::topology::Rank;
use crate::transport::mpi::check;
use crate::transport::native;
use mpi::ffi;
use std::os::raw::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

/// This process's rank in a communicator.
fn rank(comm: ffi::MPI_Comm) -> Result<Rank> {
    let mut rank: c_int = 0;
    // SAFETY: out-parameter of the right type, a valid communicator
    check("MPI_Comm_rank", unsafe { native::PMPI_Comm_rank(comm, &mut rank) })?;
    Ok(rank as Rank)
}

/// This process's rank in MPI_COMM_WORLD.
fn world_rank() -> Result<Rank> {
    // SAFETY: a constant of the library
    rank(unsafe { ffi::RSMPI_COMM_WORLD })
}

/// What is done while errors on a communicator are returned; afterwards they are handled as before.
///
/// # Safety
/// The communicator must be valid.
unsafe fn quietly<R>(comm: ffi::MPI_Comm, done: impl FnOnce() -> R) -> R {
    static ALONE: Mutex<()> = Mutex::new(());
    // SAFETY: the caller's; out-parameters of the right types
    unsafe {
        // MPI_COMM_SELF is every thread's: one after the other, or one would keep what another one chose for the meantime
        let _alone = (comm == ffi::RSMPI_COMM_SELF).then(|| ALONE.lock().unwrap_or_else(PoisonError::into_inner));
        let mut handler = ffi::RSMPI_ERRORS_RETURN;
        let asked = native::PMPI_Comm_get_errhandler(comm, &mut handler);
        native::PMPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN);
        let result = done();
        // SimGrid's MPI gives a null pointer for its default, and does not take it back
        if asked == ffi::MPI_SUCCESS as c_int && handler != std::mem::zeroed() {
            native::PMPI_Comm_set_errhandler(comm, handler);
            native::PMPI_Errhandler_free(&mut handler);
        }
        result
    }
}

/// A duplicate starts without state: it is another communicator.
unsafe extern "C" fn no_copy(_: ffi::MPI_Comm, _: c_int, _: *mut c_void, _: *mut c_void, _: *mut c_void, flag: *mut c_int) -> c_int {
    // SAFETY: MPI passes a valid out-parameter
    unsafe { *flag = 0 };
    ffi::MPI_SUCCESS as c_int
}
