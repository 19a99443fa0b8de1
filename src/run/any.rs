//! Any adaptive collective by its description, for what does the same with all of them.

#[cfg(doc)]
use super::AdaptiveCollectives;
use super::call::{self, Call};
use super::items::Items;
use crate::collective::{Collective, Size};
use crate::error::Result;
use crate::schedule::Layout;
use crate::topology::Rank;
use crate::transport::library::Arguments;
use mpi::collective::Operation;
use mpi::ffi;
use mpi::raw::AsRaw;
use mpi::traits::{Buffer, BufferMut};

/// An adaptive collective of buffers of this layout, to be called again and again.
///
/// # Safety
/// The buffers must be as long as the layout says, as long as it is called, and all members of the communicator call it.
///
/// # Errors
/// Nothing was said of what is combined.
pub(crate) unsafe fn adaptive_call(
    comm: ffi::MPI_Comm,
    collective: &'static Collective,
    layout: Layout,
    arguments: &Arguments,
) -> Result<impl Fn() -> Result<()> + use<>> {
    let call = Call::of(collective, comm, layout, arguments)?;
    // SAFETY: the caller's
    Ok(move || unsafe { call::run(&call) })
}

/// An adaptive collective of items that are given, and others that come: any of [`COLLECTIVES`](crate::collective::COLLECTIVES), by its description. A broadcast's
/// items are in `result`, a barrier has none; `root` counts where there is one, and `op` is what items are combined with, where they are.
///
/// ```no_run
/// use collwise::collective::collective;
/// use mpi::collective::SystemOperation;
/// use mpi::traits::*;
///
/// collwise::transport::mpi::abort_on_panic();
/// let universe = mpi::initialize().unwrap();
/// let world = universe.world();
/// let (mine, mut sum) = ([world.rank() as f64; 3], [0.0; 3]);
/// let allreduce = collective("allreduce").unwrap();
/// collwise::run::adaptive_collective(&world, allreduce, 0, &mine[..], &mut sum[..], Some(SystemOperation::sum())).unwrap();
/// ```
///
/// # Errors
/// As its method of [`AdaptiveCollectives`].
pub fn adaptive_collective<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
    comm: &impl AsRaw<Raw = ffi::MPI_Comm>,
    collective: &'static Collective,
    root: Rank,
    given: &S,
    result: &mut R,
    op: Option<O>,
) -> Result<()> {
    let root = if collective.rooted { root } else { 0 };
    let op = op.map(|op| (op.as_raw(), op.is_commutative()));
    let gives = collective.combines || collective.size == Size::Block;
    let given = if gives { Items::of(given) } else { Items::none() };
    let call = Call::new(collective, comm.as_raw(), root, (given, Items::of_mut(result)), op);
    // SAFETY: buffers are valid for their items, and borrowed by whoever calls this
    unsafe { call::run(&call) }
}
