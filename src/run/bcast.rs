//! The adaptive broadcast.

use super::communicator::{Action, GENERATION, Planned, State, state};
use crate::error::{Error, Result};
use crate::topology::Rank;
use crate::transport::mpi::check;
use mpi::ffi;
use mpi::raw::AsRaw;
use mpi::traits::{BufferMut, Communicator};
use std::cell::Cell;
use std::os::raw::{c_int, c_void};
use std::sync::atomic::Ordering;

/// Adaptive collectives on communicators of the `mpi` crate.
pub trait AdaptiveCollectives {
    /// Broadcasts `buffer` from `root` to all ranks of the communicator, in the way that the policy chose for this size and these
    /// ranks. Collective; every rank passes a buffer of the same signature.
    ///
    /// Buffers of any datatype work; one whose bytes are not contiguous is packed first.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no such root, [`Error::Rank`] with MPI's reason if a message failed. Without a policy that
    /// fits, the library's own broadcast runs, which is no error.
    fn adaptive_bcast<B: BufferMut + ?Sized>(&self, root: Rank, buffer: &mut B) -> Result<()>;
}

impl<C: Communicator + AsRaw<Raw = ffi::MPI_Comm>> AdaptiveCollectives for C {
    fn adaptive_bcast<B: BufferMut + ?Sized>(&self, root: Rank, buffer: &mut B) -> Result<()> {
        let (count, datatype) = (buffer.count(), buffer.as_datatype().as_raw());
        // SAFETY: a buffer is valid for `count` items of its datatype, and borrowed exclusively
        unsafe { bcast(buffer.pointer_mut(), count, datatype, root as c_int, self.as_raw()) }
    }
}

/// A call that ends in the library's own broadcast, remembered so that the next one like it goes there at once.
#[derive(Clone, Copy, PartialEq)]
struct Call {
    comm: ffi::MPI_Comm,
    datatype: ffi::MPI_Datatype,
    count: c_int,
    root: c_int,
    generation: u64,
}

thread_local! {
    static LAST_NATIVE: Cell<Option<Call>> = const { Cell::new(None) };
}

/// The broadcast with the arguments of `MPI_Bcast`.
///
/// # Safety
/// As `MPI_Bcast`: a buffer of `count` items, and valid handles.
///
/// # Errors
/// As [`AdaptiveCollectives::adaptive_bcast`].
pub unsafe fn bcast(data: *mut c_void, count: c_int, datatype: ffi::MPI_Datatype, root: c_int, comm: ffi::MPI_Comm) -> Result<()> {
    let call = Call { comm, datatype, count, root, generation: GENERATION.load(Ordering::Relaxed) };
    if LAST_NATIVE.get() == Some(call) {
        // SAFETY: the caller's arguments
        return check(0, "MPI_Bcast", unsafe { ffi::PMPI_Bcast(data, count, datatype, root, comm) });
    }
    // SAFETY: the caller vouches for the arguments
    unsafe { planned_bcast(data, call) }
}

unsafe fn planned_bcast(data: *mut c_void, call: Call) -> Result<()> {
    let Call { comm, datatype, count, root, .. } = call;
    // SAFETY: the caller of `bcast` vouches for the communicator; MPI allows one collective on it at a time
    let state = unsafe { state(comm)? };
    // SAFETY: a valid datatype
    let layout = unsafe { Layout::of(datatype, count)? };
    let action = match state {
        State::Native(_) => None,
        State::Planned(planned) => {
            let root = usize::try_from(root).map_err(|_| Error::invalid(format!("broadcast from rank {root}")))?;
            Some((planned.action(layout.bytes, root)?, planned))
        }
    };
    match action.as_ref().map(|(a, p)| (&**a, p)) {
        None | Some((Action::Native, _)) => {
            // a handle of a type that the user made may come to mean another type
            if layout.named {
                LAST_NATIVE.set(Some(Call { generation: GENERATION.load(Ordering::Relaxed), ..call }));
            }
            // SAFETY: the caller's arguments
            check(0, "MPI_Bcast", unsafe { ffi::PMPI_Bcast(data, count, datatype, root, comm) })
        }
        Some((Action::Run(..), _)) => {
            let Some((action, planned)) = action else { return Ok(()) };
            let Action::Run(program, then_from) = &*action else { return Ok(()) };
            // SAFETY: `layout` describes the caller's buffer
            unsafe { run(planned, program, *then_from, data, &layout, call) }
        }
    }
}

unsafe fn run(
    planned: &mut Planned,
    program: &crate::schedule::Program,
    then_from: Option<usize>,
    data: *mut c_void,
    layout: &Layout,
    call: Call,
) -> Result<()> {
    if layout.contiguous {
        // SAFETY: the bytes of a contiguous buffer begin at its true lower bound
        return unsafe { planned.run(program, then_from, data.cast::<u8>().offset(layout.start), layout.bytes) };
    }
    let mut packed = vec![0u8; layout.bytes];
    let (size, mut at) = (layout.bytes as c_int, 0);
    // SAFETY: `packed` has the size of the type map; MPI checks the rest
    unsafe {
        let out = packed.as_mut_ptr();
        check(0, "MPI_Pack", ffi::PMPI_Pack(data, call.count, call.datatype, out.cast(), size, &mut at, call.comm))?;
        planned.run(program, then_from, out, layout.bytes)?;
        at = 0;
        check(0, "MPI_Unpack", ffi::PMPI_Unpack(out.cast(), size, &mut at, data, call.count, call.datatype, call.comm))
    }
}

/// How a buffer lies in memory.
struct Layout {
    /// Bytes of data in it.
    bytes: usize,
    /// True if they lie in one piece.
    contiguous: bool,
    /// Where the piece begins, from the buffer's address.
    start: isize,
    /// True for a type of the library.
    named: bool,
}

impl Layout {
    unsafe fn of(datatype: ffi::MPI_Datatype, count: c_int) -> Result<Layout> {
        let (mut size, mut combiner, mut unused) = (0, 0, [0; 3]);
        let (mut lb, mut extent, mut true_lb, mut true_extent) = (0, 0, 0, 0);
        // SAFETY: out-parameters of the right types
        unsafe {
            check(0, "MPI_Type_size", ffi::PMPI_Type_size(datatype, &mut size))?;
            let [a, b, c] = &mut unused;
            check(0, "MPI_Type_get_envelope", ffi::PMPI_Type_get_envelope(datatype, a, b, c, &mut combiner))?;
            let named = combiner == ffi::MPI_COMBINER_NAMED as c_int;
            check(0, "MPI_Type_get_extent", ffi::PMPI_Type_get_extent(datatype, &mut lb, &mut extent))?;
            check(0, "MPI_Type_get_true_extent", ffi::PMPI_Type_get_true_extent(datatype, &mut true_lb, &mut true_extent))?;
            let one_piece = true_extent == size as ffi::MPI_Aint && (count <= 1 || extent == true_extent);
            let bytes = size as usize * count.max(0) as usize;
            Ok(Layout { bytes, contiguous: one_piece, start: true_lb as isize, named })
        }
    }
}
