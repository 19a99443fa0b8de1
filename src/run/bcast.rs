//! The adaptive broadcast.

use super::barrier::barrier;
use super::communicator::{GENERATION, State, sizes, state};
use super::datatype::{Direction, Layout, copy_items};
use super::planned::Planned;
use crate::collective::Step;
use crate::collective::bcast::COLLECTIVE;
use crate::error::{Error, Result};
use crate::plan;
use crate::topology::Rank;
use crate::transport::mpi::check;
use crate::transport::native;
use mpi::datatype::SystemDatatype;
use mpi::ffi;
use mpi::raw::AsRaw;
use mpi::traits::{BufferMut, Communicator};
use std::any::type_name;
use std::cell::Cell;
use std::os::raw::{c_int, c_void};
use std::sync::atomic::Ordering;

/// Adaptive collectives on communicators of the `mpi` crate.
pub trait AdaptiveCollectives {
    /// Broadcasts `buffer` from `root` to all ranks of the communicator, in the way that the policy chose for this size and these
    /// ranks. Collective; every rank passes a buffer of the same signature.
    ///
    /// Buffers of any datatype work; one whose bytes do not lie in one piece and in order is packed first. An inter-communicator uses
    /// the library's own broadcast; there `root` is a rank of the other group, and in the root's own group `MPI_ROOT as usize` at the
    /// root and `MPI_PROC_NULL as usize` elsewhere.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no such root, before anything is sent. [`Error::Mpi`] with MPI's code and reason if a message failed, after
    /// the communicator's error handler was called as by `MPI_Bcast`: MPI's default one ends the job. Where it returns, other messages of the
    /// broadcast may still be open, so keep the buffer until the job ends and use the communicator no more. Without a policy that fits, the
    /// library's own broadcast runs, which is no error.
    fn adaptive_bcast<B: BufferMut + ?Sized>(&self, root: Rank, buffer: &mut B) -> Result<()>;

    /// Returns when all ranks of the communicator have called it, in the way that the policy chose for these ranks. Collective. On an
    /// inter-communicator, and without a policy that fits, the library's own barrier runs.
    ///
    /// # Errors
    /// [`Error::Rank`] with MPI's reason if a message failed: use the communicator no more.
    fn adaptive_barrier(&self) -> Result<()>;
}

impl<C: Communicator + AsRaw<Raw = ffi::MPI_Comm>> AdaptiveCollectives for C {
    #[inline]
    fn adaptive_bcast<B: BufferMut + ?Sized>(&self, root: Rank, buffer: &mut B) -> Result<()> {
        let (count, datatype) = (buffer.count(), buffer.as_datatype().as_raw());
        let arguments = Arguments { data: buffer.pointer_mut(), count, datatype, root, comm: self.as_raw() };
        // the handle of a type that the user made may be freed and come to mean another one; decided when this is compiled
        let lasting = type_name::<B::Out>() == type_name::<SystemDatatype>();
        if lasting && LAST_NATIVE.get().is_some_and(|last| last.is(&arguments)) {
            // SAFETY: a buffer is valid for `count` items of its datatype, and borrowed exclusively
            return unsafe { arguments.native() };
        }
        // SAFETY: as above
        unsafe { bcast(arguments, lasting) }
    }

    fn adaptive_barrier(&self) -> Result<()> {
        // SAFETY: a communicator of the `mpi` crate is valid
        unsafe { barrier(self.as_raw()) }
    }
}

/// A call that ends in the library's own broadcast, remembered so that the next one like it goes there at once.
#[derive(Clone, Copy)]
struct Call {
    comm: ffi::MPI_Comm,
    datatype: ffi::MPI_Datatype,
    count: c_int,
    root: Rank,
    generation: u64,
}

impl Call {
    #[inline]
    fn is(&self, a: &Arguments) -> bool {
        (self.comm == a.comm) & (self.count == a.count) & (self.root == a.root) & (self.datatype == a.datatype)
            && self.generation == GENERATION.load(Ordering::Relaxed)
    }
}

thread_local! {
    static LAST_NATIVE: Cell<Option<Call>> = const { Cell::new(None) };
}

/// The arguments of `MPI_Bcast`.
#[derive(Clone, Copy)]
struct Arguments {
    data: *mut c_void,
    count: c_int,
    datatype: ffi::MPI_Datatype,
    root: Rank,
    comm: ffi::MPI_Comm,
}

impl Arguments {
    /// Refuses a root that there is not.
    fn check_root(&self) -> Result<()> {
        let (ranks, remote) = sizes(self.comm)?;
        // SAFETY: a constant of the library
        let special = [ffi::MPI_ROOT as usize, unsafe { ffi::RSMPI_PROC_NULL } as usize];
        if self.root < remote.unwrap_or(ranks) || (remote.is_some() && special.contains(&self.root)) {
            return Ok(());
        }
        Err(Error::invalid(format!("broadcast from rank {} of {} ranks", self.root, remote.unwrap_or(ranks))))
    }

    /// Calls the library. The root was checked.
    #[inline]
    unsafe fn native(self) -> Result<()> {
        // an empty slice's address may be 1, which is MPI_IN_PLACE in some libraries
        let data = if self.count == 0 { std::ptr::null_mut() } else { self.data };
        // SAFETY: the arguments of a caller who vouched for them
        check("MPI_Bcast", unsafe { native::PMPI_Bcast(data, self.count, self.datatype, self.root as c_int, self.comm) })
    }
}

/// The broadcast as planned. `lasting`: the datatype's handle means this type for ever.
unsafe fn bcast(arguments: Arguments, lasting: bool) -> Result<()> {
    arguments.check_root()?;
    let Arguments { count, datatype, root, comm, .. } = arguments;
    // SAFETY: a valid datatype
    let layout = unsafe { Layout::of(datatype)? };
    let bytes = layout.size * count.max(0) as usize;
    if bytes == 0 {
        // SAFETY: the caller's arguments
        return unsafe { arguments.native() };
    }
    // SAFETY: the caller vouches for the communicator; MPI allows one collective on it at a time
    let state = unsafe { state(comm)? };
    if let State::Planned(planned) = state
        && let plan::Planned::Run(steps) = &*planned.planned(&COLLECTIVE, bytes, root)?
    {
        // SAFETY: the caller's arguments
        return unsafe { run(planned, steps, layout, arguments) };
    }
    if lasting && !matches!(state, State::Later) {
        LAST_NATIVE.set(Some(Call { comm, datatype, count, root, generation: GENERATION.load(Ordering::Relaxed) }));
    }
    // SAFETY: the caller's arguments
    unsafe { arguments.native() }
}

unsafe fn run(planned: &mut Planned, steps: &[Step], layout: Layout, arguments: Arguments) -> Result<()> {
    let Arguments { data, count, datatype, comm, .. } = arguments;
    let (data, count) = (data.cast::<u8>(), count as usize);
    let bytes = layout.size * count;
    if let Some(start) = layout.one_piece(count) {
        // SAFETY: the bytes of the caller's buffer
        let done = unsafe { planned.run(steps, data.wrapping_offset(start), bytes) };
        return done.map_err(|e| handled(comm, e));
    }
    let mut packed = vec![0u8; bytes];
    // SAFETY: `packed` has the size of the type map; the caller vouches for the rest
    unsafe {
        copy_items(Direction::Pack, data, count, datatype, packed.as_mut_ptr(), comm)?;
        planned.run(steps, packed.as_mut_ptr(), bytes).map_err(|e| handled(comm, e))?;
        copy_items(Direction::Unpack, data, count, datatype, packed.as_mut_ptr(), comm)?;
    }
    Ok(())
}

/// Hands what failed on our private communicator, which returns errors, to the error handler of the caller's: what the program chose
/// happens, as with `MPI_Bcast`. Most programs chose nothing, and end.
#[cold]
pub(super) fn handled(comm: ffi::MPI_Comm, error: Error) -> Error {
    if let Error::Mpi { code, .. } = error {
        // SAFETY: the caller's communicator, a code that MPI returned
        unsafe { native::PMPI_Comm_call_errhandler(comm, code) };
    }
    error
}
