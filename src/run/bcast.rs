//! The adaptive broadcast.

use super::allreduce::{self, allreduce, check_alike};
use super::barrier::barrier;
use super::call::{self, Items};
use super::communicator::sizes;
use super::datatype::{Direction, Layout, copy_items};
use super::known::{self, Call};
use super::nonblocking::{Pending, iallreduce, ibarrier, ibcast};
use super::planned::Planned;
use crate::collective::Step;
use crate::collective::bcast::COLLECTIVE;
use crate::collective::{Collective, allgather, alltoall, gather, reduce, reduce_scatter, scatter};
use crate::error::{Error, Result};
use crate::topology::Rank;
use crate::transport::mpi::check;
use crate::transport::{library, native};
use mpi::collective::Operation;
use mpi::ffi;
use mpi::raw::AsRaw;
use mpi::request::Scope;
use mpi::traits::{Buffer, BufferMut, Communicator};
use std::os::raw::{c_int, c_void};

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

    /// Combines what all ranks give, element by element, and brings the result to all of them: `mpi`'s `all_reduce_into`, in the way that the policy
    /// chose for this size and these ranks. Collective; every rank passes as many items of the same datatype, and the same operation. All ranks get
    /// the same bits. What has no items in one piece runs by the library's own, as does an operation that does not commute where the policy's
    /// way wants one that does.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the buffers are not alike; else as for [`AdaptiveCollectives::adaptive_bcast`].
    fn adaptive_allreduce<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(&self, given: &S, result: &mut R, op: O) -> Result<()>;

    /// As [`AdaptiveCollectives::adaptive_allreduce`], where `data` is what this rank gives, and is replaced by the result.
    ///
    /// # Errors
    /// As there.
    fn adaptive_allreduce_in_place<B: BufferMut + ?Sized, O: Operation>(&self, data: &mut B, op: O) -> Result<()>;

    /// As [`AdaptiveCollectives::adaptive_allreduce`], with the result at the root alone; elsewhere `result` is not looked at, and may be empty.
    ///
    /// # Errors
    /// As there, or there is no such root.
    fn adaptive_reduce<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        root: Rank,
        given: &S,
        result: &mut R,
        op: O,
    ) -> Result<()>;

    /// As [`AdaptiveCollectives::adaptive_reduce`], where `data` is what this rank gives, and at the root is replaced by the result.
    ///
    /// # Errors
    /// As there.
    fn adaptive_reduce_in_place<B: BufferMut + ?Sized, O: Operation>(&self, root: Rank, data: &mut B, op: O) -> Result<()>;

    /// Combines what all ranks give, a block for each of them, and brings each block of the result to its rank: `mpi`'s `reduce_scatter_block_into`.
    /// Otherwise as [`AdaptiveCollectives::adaptive_allreduce`].
    ///
    /// # Errors
    /// As there.
    fn adaptive_reduce_scatter_block<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        given: &S,
        result: &mut R,
        op: O,
    ) -> Result<()>;

    /// As [`AdaptiveCollectives::adaptive_reduce_scatter_block`], where `data` is what this rank gives, and its block of the result comes at the
    /// beginning; what lies behind it afterwards is not said.
    ///
    /// # Errors
    /// As there.
    fn adaptive_reduce_scatter_block_in_place<B: BufferMut + ?Sized, O: Operation>(&self, data: &mut B, op: O) -> Result<()>;

    /// Brings what each rank gives, a block, to the root, in the order of ranks. Elsewhere `result` is not looked at, and may be empty. Ranks may
    /// describe a block by different datatypes of one signature; what does not lie in one piece is packed first.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no such root, or its buffer has not as many items for each rank; else as for
    /// [`AdaptiveCollectives::adaptive_bcast`].
    fn adaptive_gather<S: Buffer + ?Sized, R: BufferMut + ?Sized>(&self, root: Rank, given: &S, result: &mut R) -> Result<()>;

    /// As [`AdaptiveCollectives::adaptive_gather`], where `data` is the block that this rank gives; at the root all blocks, its own in its place.
    ///
    /// # Errors
    /// As there.
    fn adaptive_gather_in_place<B: BufferMut + ?Sized>(&self, root: Rank, data: &mut B) -> Result<()>;

    /// Brings each rank its block of what the root gives. Elsewhere `given` is not looked at, and may be empty. Otherwise as
    /// [`AdaptiveCollectives::adaptive_gather`].
    ///
    /// # Errors
    /// As there.
    fn adaptive_scatter<S: Buffer + ?Sized, R: BufferMut + ?Sized>(&self, root: Rank, given: &S, result: &mut R) -> Result<()>;

    /// As [`AdaptiveCollectives::adaptive_scatter`], where `data` is where this rank gets its block; at the root all blocks, of which its own stays.
    ///
    /// # Errors
    /// As there.
    fn adaptive_scatter_in_place<B: BufferMut + ?Sized>(&self, root: Rank, data: &mut B) -> Result<()>;

    /// Brings what each rank gives, a block, to all ranks, in the order of ranks. Otherwise as [`AdaptiveCollectives::adaptive_gather`].
    ///
    /// # Errors
    /// As there.
    fn adaptive_allgather<S: Buffer + ?Sized, R: BufferMut + ?Sized>(&self, given: &S, result: &mut R) -> Result<()>;

    /// As [`AdaptiveCollectives::adaptive_allgather`], where this rank's block lies in its place of `data`.
    ///
    /// # Errors
    /// As there.
    fn adaptive_allgather_in_place<B: BufferMut + ?Sized>(&self, data: &mut B) -> Result<()>;

    /// Brings each rank a block from each rank: of what a rank gives, the k-th goes to rank k, and of what it gets, the k-th comes from there.
    /// Otherwise as [`AdaptiveCollectives::adaptive_gather`].
    ///
    /// # Errors
    /// As there.
    fn adaptive_alltoall<S: Buffer + ?Sized, R: BufferMut + ?Sized>(&self, given: &S, result: &mut R) -> Result<()>;

    /// As [`AdaptiveCollectives::adaptive_alltoall`], where what comes replaces what is given.
    ///
    /// # Errors
    /// As there.
    fn adaptive_alltoall_in_place<B: BufferMut + ?Sized>(&self, data: &mut B) -> Result<()>;

    /// Returns when all ranks of the communicator have called it, in the way that the policy chose for these ranks. Collective. On an
    /// inter-communicator, and without a policy that fits, the library's own barrier runs.
    ///
    /// # Errors
    /// [`Error::Mpi`] with MPI's code and reason if a message failed, after the communicator's error handler was called: use the communicator no
    /// more.
    fn adaptive_barrier(&self) -> Result<()>;

    /// Begins what [`AdaptiveCollectives::adaptive_bcast`] does, without waiting for any rank, as `mpi`'s `immediate_broadcast_into`: the buffer is lent
    /// until it is over, for which the scope vouches. All ranks begin the collectives of a communicator, blocking or not, in the same order, and complete
    /// them in any. What is begun blocking on one rank is so on all of them.
    ///
    /// A non-blocking call sets nothing up, since that waits for other ranks: before the communicator's second blocking call
    /// ([`AdaptiveCollectives::adaptive_barrier`] twice does) the library's own non-blocking broadcast runs.
    ///
    /// ```no_run
    /// use collwise::run::AdaptiveCollectives;
    /// use mpi::collective::SystemOperation;
    /// use mpi::traits::*;
    ///
    /// collwise::transport::mpi::abort_on_panic();
    /// let universe = mpi::initialize().unwrap();
    /// let world = universe.world();
    /// for _ in 0..2 {
    ///     world.adaptive_barrier().unwrap();
    /// }
    /// let (mine, mut sum, mut panel) = (vec![world.rank() as f64; 1000], vec![0.0; 1000], vec![0u8; 1 << 20]);
    /// mpi::request::scope(|scope| {
    ///     let mut bcast = world.adaptive_ibcast(scope, 0, &mut panel[..]).unwrap();
    ///     let all = world.adaptive_iallreduce(scope, &mine[..], &mut sum[..], SystemOperation::sum()).unwrap();
    ///     // computing, and now and then
    ///     bcast.test().unwrap();
    ///     // in any order
    ///     all.wait().unwrap();
    ///     bcast.wait().unwrap();
    /// });
    /// ```
    ///
    /// # Errors
    /// As there; what comes later is told by [`Pending::wait`] or [`Pending::test`].
    fn adaptive_ibcast<'a, B: BufferMut + ?Sized + 'a, S: Scope<'a>>(
        &self,
        scope: S,
        root: Rank,
        buffer: &'a mut B,
    ) -> Result<Pending<'a, S>>;

    /// Begins what [`AdaptiveCollectives::adaptive_allreduce`] does, by the rules of [`AdaptiveCollectives::adaptive_ibcast`].
    ///
    /// # Errors
    /// As there.
    fn adaptive_iallreduce<'a, G: Buffer + ?Sized + 'a, R: BufferMut + ?Sized + 'a, O: Operation + 'a, S: Scope<'a>>(
        &self,
        scope: S,
        given: &'a G,
        result: &'a mut R,
        op: O,
    ) -> Result<Pending<'a, S>>;

    /// Begins what [`AdaptiveCollectives::adaptive_allreduce_in_place`] does, by the rules of [`AdaptiveCollectives::adaptive_ibcast`].
    ///
    /// # Errors
    /// As there.
    fn adaptive_iallreduce_in_place<'a, B: BufferMut + ?Sized + 'a, O: Operation + 'a, S: Scope<'a>>(
        &self,
        scope: S,
        data: &'a mut B,
        op: O,
    ) -> Result<Pending<'a, S>>;

    /// Begins a barrier, by the rules of [`AdaptiveCollectives::adaptive_ibcast`]: it is over when all ranks have begun it.
    ///
    /// # Errors
    /// As for [`AdaptiveCollectives::adaptive_barrier`].
    fn adaptive_ibarrier(&self) -> Result<Pending<'static>>;
}

impl<C: Communicator + AsRaw<Raw = ffi::MPI_Comm>> AdaptiveCollectives for C {
    #[inline]
    fn adaptive_bcast<B: BufferMut + ?Sized>(&self, root: Rank, buffer: &mut B) -> Result<()> {
        let (count, datatype) = (buffer.count(), buffer.as_datatype().as_raw());
        let arguments = Arguments { data: buffer.pointer_mut(), count, datatype, root, comm: self.as_raw() };
        // SAFETY: a buffer is valid for `count` items of its datatype, and borrowed exclusively
        unsafe { bcast(arguments) }
    }

    fn adaptive_allreduce<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(&self, given: &S, result: &mut R, op: O) -> Result<()> {
        // SAFETY: buffers are valid for their items, and borrowed
        unsafe { allreduce(two_buffers(self.as_raw(), given, result, &op)?) }
    }

    fn adaptive_allreduce_in_place<B: BufferMut + ?Sized, O: Operation>(&self, data: &mut B, op: O) -> Result<()> {
        // SAFETY: as above
        unsafe { allreduce(one_buffer(self.as_raw(), data, &op)) }
    }

    fn adaptive_reduce<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        root: Rank,
        given: &S,
        result: &mut R,
        op: O,
    ) -> Result<()> {
        run(self, &reduce::COLLECTIVE, root, (Items::of(given), Items::of_mut(result)), Some(&op))
    }

    fn adaptive_reduce_in_place<B: BufferMut + ?Sized, O: Operation>(&self, root: Rank, data: &mut B, op: O) -> Result<()> {
        run_in_place(self, &reduce::COLLECTIVE, root, data, Some(&op))
    }

    fn adaptive_reduce_scatter_block<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        given: &S,
        result: &mut R,
        op: O,
    ) -> Result<()> {
        run(self, &reduce_scatter::COLLECTIVE, 0, (Items::of(given), Items::of_mut(result)), Some(&op))
    }

    fn adaptive_reduce_scatter_block_in_place<B: BufferMut + ?Sized, O: Operation>(&self, data: &mut B, op: O) -> Result<()> {
        run_in_place(self, &reduce_scatter::COLLECTIVE, 0, data, Some(&op))
    }

    fn adaptive_gather<S: Buffer + ?Sized, R: BufferMut + ?Sized>(&self, root: Rank, given: &S, result: &mut R) -> Result<()> {
        run(self, &gather::COLLECTIVE, root, (Items::of(given), Items::of_mut(result)), NONE)
    }

    fn adaptive_gather_in_place<B: BufferMut + ?Sized>(&self, root: Rank, data: &mut B) -> Result<()> {
        run_in_place(self, &gather::COLLECTIVE, root, data, NONE)
    }

    fn adaptive_scatter<S: Buffer + ?Sized, R: BufferMut + ?Sized>(&self, root: Rank, given: &S, result: &mut R) -> Result<()> {
        run(self, &scatter::COLLECTIVE, root, (Items::of(given), Items::of_mut(result)), NONE)
    }

    fn adaptive_scatter_in_place<B: BufferMut + ?Sized>(&self, root: Rank, data: &mut B) -> Result<()> {
        run_in_place(self, &scatter::COLLECTIVE, root, data, NONE)
    }

    fn adaptive_allgather<S: Buffer + ?Sized, R: BufferMut + ?Sized>(&self, given: &S, result: &mut R) -> Result<()> {
        run(self, &allgather::COLLECTIVE, 0, (Items::of(given), Items::of_mut(result)), NONE)
    }

    fn adaptive_allgather_in_place<B: BufferMut + ?Sized>(&self, data: &mut B) -> Result<()> {
        run_in_place(self, &allgather::COLLECTIVE, 0, data, NONE)
    }

    fn adaptive_alltoall<S: Buffer + ?Sized, R: BufferMut + ?Sized>(&self, given: &S, result: &mut R) -> Result<()> {
        run(self, &alltoall::COLLECTIVE, 0, (Items::of(given), Items::of_mut(result)), NONE)
    }

    fn adaptive_alltoall_in_place<B: BufferMut + ?Sized>(&self, data: &mut B) -> Result<()> {
        run_in_place(self, &alltoall::COLLECTIVE, 0, data, NONE)
    }

    fn adaptive_barrier(&self) -> Result<()> {
        // SAFETY: a communicator of the `mpi` crate is valid
        unsafe { barrier(self.as_raw()) }
    }

    fn adaptive_ibcast<'a, B: BufferMut + ?Sized + 'a, S: Scope<'a>>(
        &self,
        scope: S,
        root: Rank,
        buffer: &'a mut B,
    ) -> Result<Pending<'a, S>> {
        let (count, datatype) = (buffer.count(), buffer.as_datatype().as_raw());
        let arguments = Arguments { data: buffer.pointer_mut(), count, datatype, root, comm: self.as_raw() };
        // SAFETY: as for the blocking one, until the end of the scope, which ends the program where it is not over
        unsafe { ibcast(arguments, scope) }
    }

    fn adaptive_iallreduce<'a, G: Buffer + ?Sized + 'a, R: BufferMut + ?Sized + 'a, O: Operation + 'a, S: Scope<'a>>(
        &self,
        scope: S,
        given: &'a G,
        result: &'a mut R,
        op: O,
    ) -> Result<Pending<'a, S>> {
        // SAFETY: as above
        unsafe { iallreduce(two_buffers(self.as_raw(), given, result, &op)?, scope) }
    }

    fn adaptive_iallreduce_in_place<'a, B: BufferMut + ?Sized + 'a, O: Operation + 'a, S: Scope<'a>>(
        &self,
        scope: S,
        data: &'a mut B,
        op: O,
    ) -> Result<Pending<'a, S>> {
        // SAFETY: as above
        unsafe { iallreduce(one_buffer(self.as_raw(), data, &op), scope) }
    }

    fn adaptive_ibarrier(&self) -> Result<Pending<'static>> {
        // SAFETY: a communicator of the `mpi` crate is valid
        unsafe { ibarrier(self.as_raw()) }
    }
}

/// An allreduce with an input and an output, which must be alike.
fn two_buffers<G: Buffer + ?Sized, R: BufferMut + ?Sized>(
    comm: ffi::MPI_Comm,
    given: &G,
    result: &mut R,
    op: &impl Operation,
) -> Result<allreduce::Arguments> {
    check_alike((given.count(), given.as_datatype().as_raw()), (result.count(), result.as_datatype().as_raw()))?;
    Ok(allreduce::Arguments { input: Some(given.pointer()), ..one_buffer(comm, result, op) })
}

/// An allreduce in place.
fn one_buffer<B: BufferMut + ?Sized>(comm: ffi::MPI_Comm, data: &mut B, op: &impl Operation) -> allreduce::Arguments {
    let (count, datatype, op, commutes) = (data.count(), data.as_datatype().as_raw(), op.as_raw(), op.is_commutative());
    allreduce::Arguments { input: None, output: data.pointer_mut(), count, datatype, op, commutes, comm }
}

/// Of what combines nothing.
const NONE: Option<&mpi::collective::SystemOperation> = None;

/// A collective of items that are given, and others that come.
fn run<O: Operation>(
    comm: &impl AsRaw<Raw = ffi::MPI_Comm>,
    collective: &'static Collective,
    root: Rank,
    (given, got): (Items, Items),
    op: Option<&O>,
) -> Result<()> {
    let operation = op.map(|op| (op.as_raw(), op.is_commutative()));
    // SAFETY: buffers are valid for their items, and borrowed by whoever calls this
    unsafe { call::run(call::Call { collective, given, got, in_place: false, root, operation, comm: comm.as_raw() }) }
}

/// A collective of items that are given, and replaced by those that come.
fn run_in_place<B: BufferMut + ?Sized, O: Operation>(
    comm: &impl AsRaw<Raw = ffi::MPI_Comm>,
    collective: &'static Collective,
    root: Rank,
    data: &mut B,
    op: Option<&O>,
) -> Result<()> {
    let (items, operation) = (Items::of_mut(data), op.map(|op| (op.as_raw(), op.is_commutative())));
    // SAFETY: as above
    unsafe { call::run(call::Call { collective, given: items, got: items, in_place: true, root, operation, comm: comm.as_raw() }) }
}

/// The arguments of `MPI_Bcast`.
#[derive(Clone, Copy)]
pub(super) struct Arguments {
    pub data: *mut c_void,
    pub count: c_int,
    pub datatype: ffi::MPI_Datatype,
    pub root: Rank,
    pub comm: ffi::MPI_Comm,
}

impl Arguments {
    /// Refuses a root that there is not.
    pub fn check_root(&self) -> Result<()> {
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

/// The broadcast as planned, or the library's own.
///
/// # Safety
/// The arguments must be valid for `MPI_Bcast`.
#[inline]
unsafe fn bcast(arguments: Arguments) -> Result<()> {
    let Arguments { count, datatype, root, comm, .. } = arguments;
    // SAFETY: the caller's arguments
    unsafe {
        known::run(
            Call::new(&COLLECTIVE, comm, datatype, count, root),
            |layout| arguments.check_root().map(|()| layout.size > 0 && count > 0),
            |planned, layout| match planned {
                Some((planned, steps)) => run_plan(planned, steps, layout, arguments),
                None => arguments.native(),
            },
        )
    }
}

unsafe fn run_plan(planned: &mut Planned, steps: &[Step], layout: Layout, arguments: Arguments) -> Result<()> {
    let Arguments { data, count, datatype, root, comm } = arguments;
    let (data, count) = (data.cast::<u8>(), count as usize);
    let bytes = layout.size * count;
    if let Some(start) = layout.one_piece(count) {
        // SAFETY: the bytes of the caller's buffer
        return unsafe { planned.run(steps, &library::Arguments::of_message(data.wrapping_offset(start), bytes, root)) };
    }
    let mut packed = vec![0u8; bytes];
    // SAFETY: `packed` has the size of the type map; the caller vouches for the rest
    unsafe {
        copy_items(Direction::Pack, data, count, datatype, packed.as_mut_ptr(), comm)?;
        if let Err(e) = planned.run(steps, &library::Arguments::of_message(packed.as_mut_ptr(), bytes, root)) {
            // other messages of the broadcast may still be open: they go where they were told to
            std::mem::forget(packed);
            return Err(e);
        }
        copy_items(Direction::Unpack, data, count, datatype, packed.as_mut_ptr(), comm)?;
    }
    Ok(())
}
