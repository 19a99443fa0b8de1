//! The adaptive collectives as methods of the `mpi` crate's communicators.

use super::call::{self, Call};
use super::items::Items;
use super::nonblocking::{IALLREDUCE, IBARRIER, IBCAST, Pending, begin};
use super::vector::{self, Blocks, GATHERV, SCATTERV};
use crate::collective::{Collective, allgather, allreduce, alltoall, barrier, bcast, gather, reduce, reduce_scatter, scatter};
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::topology::Rank;
use mpi::Count;
use mpi::collective::Operation;
use mpi::ffi;
use mpi::raw::AsRaw;
use mpi::request::{Scope, StaticScope};
use mpi::traits::{Buffer, BufferMut, Communicator, PartitionedBuffer, PartitionedBufferMut};

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
    /// [`Error::Mpi`] with MPI's code and reason if there is no such root or a message failed, after the communicator's error handler was called as
    /// by `MPI_Bcast`: MPI's default one ends the job. Where it returns after a message failed, others of the broadcast may still be open, so keep
    /// the buffer until the job ends and use the communicator no more. Without a policy that fits, the library's own broadcast runs: no error.
    /// What is no call of `MPI_Bcast` at all is an [`Error::Invalid`], here and in all that follow, before anything is sent.
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
    /// As there.
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
    /// [`Error::Invalid`] if the root's buffer has not as many items for each rank; else as for
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

    /// As [`AdaptiveCollectives::adaptive_allgather`], of blocks that may have other sizes on each rank. All ranks know the sizes of all: where blocks are
    /// about as long as each other, they are filled up to the longest, and go by the plan of an allgather of such blocks; else the library's own
    /// runs.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is not a block for each rank, or this rank's has other bytes than it gives; else as for
    /// [`AdaptiveCollectives::adaptive_bcast`].
    fn adaptive_allgatherv<S: Buffer + ?Sized, R: PartitionedBufferMut + ?Sized>(&self, given: &S, result: &mut R) -> Result<()>;

    /// As [`AdaptiveCollectives::adaptive_allgatherv`], where this rank's block lies in its place of `data`.
    ///
    /// # Errors
    /// As there.
    fn adaptive_allgatherv_in_place<B: PartitionedBufferMut + ?Sized>(&self, data: &mut B) -> Result<()>;

    /// As [`AdaptiveCollectives::adaptive_reduce_scatter_block`], where each rank gets as many items as `counts` says, which is the same on all ranks. By the
    /// rule of [`AdaptiveCollectives::adaptive_allgatherv`]; blocks are filled up with items of this rank's, and what is made of these is
    /// not looked at.
    ///
    /// # Errors
    /// As there.
    fn adaptive_reduce_scatter<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        given: &S,
        counts: &[Count],
        result: &mut R,
        op: O,
    ) -> Result<()>;

    /// As [`AdaptiveCollectives::adaptive_reduce_scatter`], where `data` is what this rank gives, and at its beginning gets its block of the result.
    ///
    /// # Errors
    /// As there.
    fn adaptive_reduce_scatter_in_place<B: BufferMut + ?Sized, O: Operation>(&self, data: &mut B, counts: &[Count], op: O) -> Result<()>;

    /// As [`AdaptiveCollectives::adaptive_gather`], of blocks that may have other sizes on each rank. The root alone knows all of them, so that ranks could
    /// not decide alike: the library's own runs.
    ///
    /// # Errors
    /// As for [`AdaptiveCollectives::adaptive_allgatherv`].
    fn adaptive_gatherv<S: Buffer + ?Sized, R: PartitionedBufferMut + ?Sized>(&self, root: Rank, given: &S, result: &mut R) -> Result<()>;

    /// As [`AdaptiveCollectives::adaptive_gatherv`], where `data` is the block that this rank gives, alone; at the root all blocks, its own in its place.
    ///
    /// # Errors
    /// As there, or there are several blocks at a rank that is not the root.
    fn adaptive_gatherv_in_place<B: PartitionedBufferMut + ?Sized>(&self, root: Rank, data: &mut B) -> Result<()>;

    /// As [`AdaptiveCollectives::adaptive_scatter`], by the rule of [`AdaptiveCollectives::adaptive_gatherv`].
    ///
    /// # Errors
    /// As there.
    fn adaptive_scatterv<S: PartitionedBuffer + ?Sized, R: BufferMut + ?Sized>(&self, root: Rank, given: &S, result: &mut R) -> Result<()>;

    /// As [`AdaptiveCollectives::adaptive_scatterv`], where `data` is where this rank gets its block, alone; at the root all blocks, of which its own stays.
    ///
    /// # Errors
    /// As for [`AdaptiveCollectives::adaptive_gatherv_in_place`].
    fn adaptive_scatterv_in_place<B: PartitionedBufferMut + ?Sized>(&self, root: Rank, data: &mut B) -> Result<()>;

    /// As [`AdaptiveCollectives::adaptive_alltoall`], of blocks that may have any sizes. No rank knows all of them: the library's own runs.
    ///
    /// # Errors
    /// As for [`AdaptiveCollectives::adaptive_allgatherv`].
    fn adaptive_alltoallv<S: PartitionedBuffer + ?Sized, R: PartitionedBufferMut + ?Sized>(&self, given: &S, result: &mut R) -> Result<()>;

    /// As [`AdaptiveCollectives::adaptive_alltoallv`], where what comes replaces what is given: each two ranks give each other as much.
    ///
    /// # Errors
    /// As there.
    fn adaptive_alltoallv_in_place<B: PartitionedBufferMut + ?Sized>(&self, data: &mut B) -> Result<()>;

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
        run(self, &bcast::COLLECTIVE, root, (Items::none(), Items::of_mut(buffer)), NONE)
    }

    #[inline]
    fn adaptive_allreduce<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(&self, given: &S, result: &mut R, op: O) -> Result<()> {
        run(self, &allreduce::COLLECTIVE, 0, (Items::of(given), Items::of_mut(result)), Some(&op))
    }

    #[inline]
    fn adaptive_allreduce_in_place<B: BufferMut + ?Sized, O: Operation>(&self, data: &mut B, op: O) -> Result<()> {
        run_in_place(self, &allreduce::COLLECTIVE, 0, data, Some(&op))
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

    fn adaptive_allgatherv<S: Buffer + ?Sized, R: PartitionedBufferMut + ?Sized>(&self, given: &S, result: &mut R) -> Result<()> {
        // SAFETY: buffers are valid for their items, and borrowed, as in all that follow
        unsafe { vector::allgatherv(self.as_raw(), Some(Items::of(given)), Blocks::of_mut(result)) }
    }

    fn adaptive_allgatherv_in_place<B: PartitionedBufferMut + ?Sized>(&self, data: &mut B) -> Result<()> {
        // SAFETY: as above
        unsafe { vector::allgatherv(self.as_raw(), None, Blocks::of_mut(data)) }
    }

    fn adaptive_reduce_scatter<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        given: &S,
        counts: &[Count],
        result: &mut R,
        op: O,
    ) -> Result<()> {
        let (items, operation) = ((Items::of(given), Some(Items::of_mut(result))), (op.as_raw(), op.is_commutative()));
        // SAFETY: as above
        unsafe { vector::reduce_scatter(self.as_raw(), items, counts, operation) }
    }

    fn adaptive_reduce_scatter_in_place<B: BufferMut + ?Sized, O: Operation>(&self, data: &mut B, counts: &[Count], op: O) -> Result<()> {
        // SAFETY: as above
        unsafe { vector::reduce_scatter(self.as_raw(), (Items::of_mut(data), None), counts, (op.as_raw(), op.is_commutative())) }
    }

    fn adaptive_gatherv<S: Buffer + ?Sized, R: PartitionedBufferMut + ?Sized>(&self, root: Rank, given: &S, result: &mut R) -> Result<()> {
        // SAFETY: as above
        unsafe { GATHERV.run(self.as_raw(), root, Items::of(given), Blocks::of_mut(result)) }
    }

    fn adaptive_gatherv_in_place<B: PartitionedBufferMut + ?Sized>(&self, root: Rank, data: &mut B) -> Result<()> {
        // SAFETY: as above
        unsafe { GATHERV.run_in_place(self.as_raw(), root, Blocks::of_mut(data)) }
    }

    fn adaptive_scatterv<S: PartitionedBuffer + ?Sized, R: BufferMut + ?Sized>(&self, root: Rank, given: &S, result: &mut R) -> Result<()> {
        // SAFETY: as above
        unsafe { SCATTERV.run(self.as_raw(), root, Items::of_mut(result), Blocks::of(given)) }
    }

    fn adaptive_scatterv_in_place<B: PartitionedBufferMut + ?Sized>(&self, root: Rank, data: &mut B) -> Result<()> {
        // SAFETY: as above
        unsafe { SCATTERV.run_in_place(self.as_raw(), root, Blocks::of_mut(data)) }
    }

    fn adaptive_alltoallv<S: PartitionedBuffer + ?Sized, R: PartitionedBufferMut + ?Sized>(&self, given: &S, result: &mut R) -> Result<()> {
        // SAFETY: as above
        unsafe { vector::alltoallv(self.as_raw(), Some(Blocks::of(given)), Blocks::of_mut(result)) }
    }

    fn adaptive_alltoallv_in_place<B: PartitionedBufferMut + ?Sized>(&self, data: &mut B) -> Result<()> {
        // SAFETY: as above
        unsafe { vector::alltoallv(self.as_raw(), None, Blocks::of_mut(data)) }
    }

    #[inline]
    fn adaptive_barrier(&self) -> Result<()> {
        run(self, &barrier::COLLECTIVE, 0, (Items::none(), Items::none()), NONE)
    }

    fn adaptive_ibcast<'a, B: BufferMut + ?Sized + 'a, S: Scope<'a>>(
        &self,
        scope: S,
        root: Rank,
        buffer: &'a mut B,
    ) -> Result<Pending<'a, S>> {
        let call = Call::new(&bcast::COLLECTIVE, self.as_raw(), root, (Items::none(), Items::of_mut(buffer)), None);
        // SAFETY: as for the blocking one, until the end of the scope, which ends the program where it is not over
        unsafe { begin(&call, &IBCAST, scope) }
    }

    fn adaptive_iallreduce<'a, G: Buffer + ?Sized + 'a, R: BufferMut + ?Sized + 'a, O: Operation + 'a, S: Scope<'a>>(
        &self,
        scope: S,
        given: &'a G,
        result: &'a mut R,
        op: O,
    ) -> Result<Pending<'a, S>> {
        let items = (Items::of(given), Items::of_mut(result));
        let call = Call::new(&allreduce::COLLECTIVE, self.as_raw(), 0, items, operation(Some(&op)));
        // SAFETY: as above
        unsafe { begin(&call, &IALLREDUCE, scope) }
    }

    fn adaptive_iallreduce_in_place<'a, B: BufferMut + ?Sized + 'a, O: Operation + 'a, S: Scope<'a>>(
        &self,
        scope: S,
        data: &'a mut B,
        op: O,
    ) -> Result<Pending<'a, S>> {
        let call = Call::in_place(&allreduce::COLLECTIVE, self.as_raw(), 0, Items::of_mut(data), operation(Some(&op)));
        // SAFETY: as above
        unsafe { begin(&call, &IALLREDUCE, scope) }
    }

    fn adaptive_ibarrier(&self) -> Result<Pending<'static>> {
        let call = Call::new(&barrier::COLLECTIVE, self.as_raw(), 0, (Items::none(), Items::none()), None);
        // SAFETY: a communicator of the `mpi` crate is valid
        unsafe { begin(&call, &IBARRIER, StaticScope) }
    }
}

/// Of what combines nothing.
const NONE: Option<&mpi::collective::SystemOperation> = None;

/// An operation, and whether it commutes.
#[inline]
fn operation<O: Operation>(op: Option<&O>) -> Option<(ffi::MPI_Op, bool)> {
    op.map(|op| (op.as_raw(), op.is_commutative()))
}

/// A collective of items that are given, and others that come.
#[inline(always)]
fn run<O: Operation>(
    comm: &impl AsRaw<Raw = ffi::MPI_Comm>,
    collective: &'static Collective,
    root: Rank,
    items: (Items, Items),
    op: Option<&O>,
) -> Result<()> {
    // SAFETY: buffers are valid for their items, and borrowed by whoever calls this
    unsafe { call::run(&Call::new(collective, comm.as_raw(), root, items, operation(op))) }
}

/// A collective of items that are given, and replaced by those that come.
#[inline]
fn run_in_place<B: BufferMut + ?Sized, O: Operation>(
    comm: &impl AsRaw<Raw = ffi::MPI_Comm>,
    collective: &'static Collective,
    root: Rank,
    data: &mut B,
    op: Option<&O>,
) -> Result<()> {
    // SAFETY: as above
    unsafe { call::run(&Call::in_place(collective, comm.as_raw(), root, Items::of_mut(data), operation(op))) }
}
