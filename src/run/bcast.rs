//! The adaptive broadcast.

use super::communicator::{Action, GENERATION, Planned, State, state};
use crate::error::{Error, Result};
use crate::schedule::Program;
use crate::topology::Rank;
use crate::transport::mpi::check;
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
    /// Buffers of any datatype work; one whose bytes are not contiguous is packed first.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no such root, [`Error::Rank`] with MPI's reason if a message failed: other messages of the
    /// broadcast may then still be open, so keep the buffer until the job ends and use the communicator no more. Without a policy that
    /// fits, the library's own broadcast runs, which is no error.
    fn adaptive_bcast<B: BufferMut + ?Sized>(&self, root: Rank, buffer: &mut B) -> Result<()>;
}

impl<C: Communicator + AsRaw<Raw = ffi::MPI_Comm>> AdaptiveCollectives for C {
    #[inline]
    fn adaptive_bcast<B: BufferMut + ?Sized>(&self, root: Rank, buffer: &mut B) -> Result<()> {
        let (count, datatype) = (buffer.count(), buffer.as_datatype().as_raw());
        let arguments = Arguments { data: buffer.pointer_mut(), count, datatype, root: root as c_int, comm: self.as_raw() };
        // the handle of a type that the user made may be freed and come to mean another one; decided when this is compiled
        let lasting = type_name::<B::Out>() == type_name::<SystemDatatype>();
        if lasting && LAST_NATIVE.get().is_some_and(|last| last.is(&arguments)) {
            // SAFETY: a buffer is valid for `count` items of its datatype, and borrowed exclusively
            return unsafe { arguments.native() };
        }
        // SAFETY: as above
        unsafe { bcast(arguments, lasting) }
    }
}

/// A call that ends in the library's own broadcast, remembered so that the next one like it goes there at once.
#[derive(Clone, Copy)]
struct Call {
    comm: ffi::MPI_Comm,
    datatype: ffi::MPI_Datatype,
    count: c_int,
    root: c_int,
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
    root: c_int,
    comm: ffi::MPI_Comm,
}

impl Arguments {
    /// Calls the library.
    #[inline]
    unsafe fn native(self) -> Result<()> {
        // an empty slice's address may be 1, which is MPI_IN_PLACE in some libraries
        let data = if self.count == 0 { std::ptr::null_mut() } else { self.data };
        // SAFETY: the arguments of a caller who vouched for them
        check(0, "MPI_Bcast", unsafe { ffi::PMPI_Bcast(data, self.count, self.datatype, self.root, self.comm) })
    }
}

/// The broadcast as planned. `lasting`: the datatype's handle means this type for ever.
unsafe fn bcast(arguments: Arguments, lasting: bool) -> Result<()> {
    let Arguments { count, datatype, root, comm, .. } = arguments;
    let mut size = 0;
    // SAFETY: a valid datatype
    check(0, "MPI_Type_size", unsafe { ffi::PMPI_Type_size(datatype, &mut size) })?;
    let bytes = size.max(0) as usize * count.max(0) as usize;
    if bytes == 0 {
        // SAFETY: the caller's arguments
        return unsafe { arguments.native() };
    }
    // SAFETY: the caller vouches for the communicator; MPI allows one collective on it at a time
    let (action, planned) = match unsafe { state(comm)? } {
        State::Native(_) => (None, None),
        State::Planned(planned) => {
            let root = usize::try_from(root).map_err(|_| Error::invalid(format!("broadcast from rank {root}")))?;
            (Some(planned.action(bytes, root)?), Some(planned))
        }
    };
    match (action.as_deref(), planned) {
        // SAFETY: the caller's arguments
        (Some(Action::Run(program, then_from)), Some(planned)) => unsafe { run(planned, program, *then_from, bytes, arguments) },
        _ => {
            if lasting {
                LAST_NATIVE.set(Some(Call { comm, datatype, count, root, generation: GENERATION.load(Ordering::Relaxed) }));
            }
            // SAFETY: the caller's arguments
            unsafe { arguments.native() }
        }
    }
}

unsafe fn run(planned: &mut Planned, program: &Program, then_from: Option<usize>, bytes: usize, arguments: Arguments) -> Result<()> {
    let Arguments { data, count, datatype, comm, .. } = arguments;
    // SAFETY: a valid datatype
    if let Some(start) = unsafe { one_piece(datatype, count)? } {
        // SAFETY: the bytes of a contiguous buffer begin at its true lower bound
        return unsafe { planned.run(program, then_from, data.cast::<u8>().wrapping_offset(start), bytes) };
    }
    let mut packed = vec![0u8; bytes];
    let too_large = |_| Error::invalid(format!("broadcast {bytes} bytes that are not contiguous: MPI packs at most 2 GiB"));
    let (size, mut at) = (c_int::try_from(bytes).map_err(too_large)?, 0);
    // SAFETY: `packed` has the size of the type map; MPI checks the rest
    unsafe {
        let out = packed.as_mut_ptr();
        check(0, "MPI_Pack", ffi::PMPI_Pack(data, count, datatype, out.cast(), size, &mut at, comm))?;
        planned.run(program, then_from, out, bytes)?;
        at = 0;
        check(0, "MPI_Unpack", ffi::PMPI_Unpack(out.cast(), size, &mut at, data, count, datatype, comm))
    }
}

/// Where the bytes of a buffer begin, from its address, if they lie in one piece.
unsafe fn one_piece(datatype: ffi::MPI_Datatype, count: c_int) -> Result<Option<isize>> {
    let (mut size, mut lb, mut extent, mut true_lb, mut true_extent) = (0, 0, 0, 0, 0);
    // SAFETY: out-parameters of the right types
    unsafe {
        check(0, "MPI_Type_size", ffi::PMPI_Type_size(datatype, &mut size))?;
        check(0, "MPI_Type_get_extent", ffi::PMPI_Type_get_extent(datatype, &mut lb, &mut extent))?;
        check(0, "MPI_Type_get_true_extent", ffi::PMPI_Type_get_true_extent(datatype, &mut true_lb, &mut true_extent))?;
    }
    let piece = true_extent == size as ffi::MPI_Aint && (count <= 1 || extent == true_extent);
    #[allow(clippy::unnecessary_cast)] // MPI_Aint is another type elsewhere
    Ok(piece.then_some(true_lb as isize))
}
