//! Collectives whose blocks may have other sizes on each rank.
//!
//! Of `MPI_Allgatherv` and `MPI_Reduce_scatter` all ranks know all sizes: where blocks are about as long as each other, they are filled up to the longest
//! and go by the plans of blocks of one size. Of the others one rank alone knows all sizes, or none does: ranks cannot decide alike, and the library's own
//! run, as they do where blocks differ much.

use super::call::{Call, run_plan};
use super::communicator::sizes;
use super::datatype::{Direction, Layout, copy_items};
use super::items::{Items, Side, given_at, got_at};
use super::known::Known;
use super::refused::{as_mpi_counts, refuses};
use super::{rank, under_way};
use crate::collective::{Collective, allgather, reduce_scatter};
use crate::error::{Error, Result};
use crate::transport::mpi::check;
use crate::transport::native;
use mpi::ffi::{self, MPI_Comm, MPI_Datatype, MPI_Op};
use mpi::traits::{AsRaw, PartitionedBuffer, PartitionedBufferMut};
use std::os::raw::{c_int, c_void};
use std::ptr::{copy_nonoverlapping, null_mut};

/// Blocks of a caller's, one for each rank.
#[derive(Clone, Copy)]
pub(super) struct Blocks<'a> {
    data: *mut u8,
    datatype: MPI_Datatype,
    counts: &'a [c_int],
    /// In items.
    places: &'a [c_int],
}

impl<'a> Blocks<'a> {
    /// As C says them.
    pub fn new(data: *mut u8, datatype: MPI_Datatype, counts: &'a [c_int], places: &'a [c_int]) -> Blocks<'a> {
        Blocks { data, datatype, counts, places }
    }

    /// To be read.
    pub fn of<B: PartitionedBuffer + ?Sized>(buffer: &'a B) -> Blocks<'a> {
        let (counts, places, datatype) = (buffer.counts(), buffer.displs(), buffer.as_datatype().as_raw());
        Blocks { data: given_at(buffer.pointer(), is_nothing(counts)), datatype, counts, places }
    }

    /// To be written.
    pub fn of_mut<B: PartitionedBufferMut + ?Sized>(buffer: &'a mut B) -> Blocks<'a> {
        let (data, datatype) = (buffer.pointer_mut(), buffer.as_datatype().as_raw());
        let (counts, places) = (buffer.counts(), buffer.displs());
        Blocks { data: got_at(data, is_nothing(counts)), datatype, counts, places }
    }

    /// True if MPI's function refuses them.
    fn refused(&self) -> bool {
        // SAFETY: the caller's datatype
        self.counts.iter().any(|&count| unsafe { refuses((i64::from(count), self.datatype), None) })
    }

    /// One of them. What is refused lies anywhere.
    fn block(&self, k: usize) -> Result<Items> {
        // SAFETY: the caller's datatype, if it is one
        let place = if self.refused() { 0 } else { unsafe { Layout::of(self.datatype)? }.after(1) * self.places[k] as isize };
        Ok(Items { data: self.data.wrapping_offset(place), count: i64::from(self.counts[k]), datatype: self.datatype })
    }

    /// A copy of those from `k` to before `end`, with what lies between them, and the address in it from which their places count: the library's name for "in
    /// place" is known to C alone. What is refused stays as it is.
    ///
    /// # Safety
    /// The blocks must be the caller's memory.
    unsafe fn copied(&self, k: usize, end: usize) -> Result<(Vec<u8>, Blocks<'a>)> {
        if self.refused() {
            return Ok((Vec::new(), *self));
        }
        // SAFETY: the caller's datatype
        let layout = unsafe { Layout::of(self.datatype)? };
        let reach = |k: usize| {
            let (begin, bytes) = layout.reach(self.counts[k] as usize);
            let begin = layout.after(1) * self.places[k] as isize + begin;
            (begin, begin + bytes as isize)
        };
        let some = (k..end).filter(|&k| self.counts[k] > 0).map(reach);
        let (begin, end) = some.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1))).unwrap_or((0, 0));
        // an address of its own, also of nothing
        let mut copy = vec![0u8; ((end - begin) as usize).max(1)];
        // SAFETY: all of them is the caller's, and fits into the copy
        unsafe { copy_nonoverlapping(self.data.wrapping_offset(begin), copy.as_mut_ptr(), (end - begin) as usize) };
        let data = copy.as_mut_ptr().wrapping_offset(-begin);
        Ok((copy, Blocks { data, ..*self }))
    }

    /// Refuses other than one for each rank.
    fn check(&self, function: &str, ranks: usize) -> Result<()> {
        check_counts(function, ranks, self.counts)?;
        if self.places.len() != ranks {
            return Err(Error::invalid(format!("{function} with {} places for {ranks} ranks", self.places.len())));
        }
        Ok(())
    }
}

fn is_nothing(counts: &[c_int]) -> bool {
    counts.iter().all(|&count| count == 0)
}

fn check_counts(function: &str, ranks: usize, counts: &[c_int]) -> Result<()> {
    if counts.len() != ranks {
        let of = if ranks == 1 { "rank" } else { "ranks" };
        return Err(Error::invalid(format!("{function} with {} blocks for {ranks} {of}", counts.len())));
    }
    Ok(())
}

/// The longest of some blocks, where filling up all others makes them longer by an eighth at most: what is sent more costs less then than a better
/// algorithm wins.
fn filled_up(blocks: impl Iterator<Item = usize> + Clone) -> Option<usize> {
    let (most, all, count) = (blocks.clone().max()?, blocks.clone().sum::<usize>(), blocks.count());
    (most > 0 && most.saturating_mul(count) <= all + all / 8).then_some(most)
}

/// Runs the plan of a collective of blocks of one size on what is `packed`, if there is a plan, which is remembered; gives what came, in so many bytes.
/// Collective.
///
/// # Safety
/// As for MPI's function of blocks of one size, with what is packed.
unsafe fn by_plan(
    (collective, comm): (&'static Collective, MPI_Comm),
    [given, got]: [(i64, MPI_Datatype); 2],
    operation: Option<(MPI_Op, bool)>,
    bytes: usize,
    packed: impl FnOnce() -> Result<Vec<u8>>,
) -> Result<Option<Vec<u8>>> {
    let call = |input: *mut u8, output: *mut u8| {
        let items = |data, (count, datatype)| Items { data, count, datatype };
        Call::new(collective, comm, 0, (items(input, given), items(output, got)), operation)
    };
    let mut came = None;
    // SAFETY: the caller's
    unsafe {
        let mut known = Known::of(&call(null_mut(), null_mut()).asked)?;
        if known.is_planned() {
            let (mut input, mut output) = (packed()?, vec![0u8; bytes]);
            if let Err(e) = run_plan(&mut known, &call(input.as_mut_ptr(), output.as_mut_ptr())) {
                // other messages may still be open: they go where they were told to
                std::mem::forget((input, output));
                return Err(e);
            }
            came = Some(output);
        }
        known.remember();
    }
    Ok(came)
}

/// Refuses to work in place between two groups of ranks.
fn check_in_place(function: &str, remote: Option<usize>) -> Result<()> {
    let refused = || Error::invalid(format!("{function} in place between two groups of ranks"));
    if remote.is_none() { Ok(()) } else { Err(refused()) }
}

/// Brings each rank's block to all; without what is given, that lies in its place.
///
/// # Safety
/// The arguments must be valid for `MPI_Allgatherv`.
///
/// # Errors
/// [`Error::Invalid`] where they are none of MPI's function, before anything is sent; or MPI's reason.
pub(super) unsafe fn allgatherv(comm: MPI_Comm, given: Option<Items>, got: Blocks) -> Result<()> {
    const FUNCTION: &str = "MPI_Allgatherv";
    let (ranks, remote) = sizes(comm)?;
    got.check(FUNCTION, remote.unwrap_or(ranks))?;
    let me = rank(comm)?;
    let in_place = given.is_none();
    if in_place {
        check_in_place(FUNCTION, remote)?;
    }
    let mut given = given.map_or_else(|| got.block(me), Ok)?;
    let library = |given: Items| {
        let (data, counts, places) = (given.data.cast_const().cast(), got.counts.as_ptr(), got.places.as_ptr());
        // SAFETY: the caller's arguments
        check(FUNCTION, unsafe {
            native::PMPI_Allgatherv(data, given.count as c_int, given.datatype, got.data.cast(), counts, places, got.datatype, comm)
        })
    };
    // SAFETY: the caller's arguments
    unsafe {
        if got.refused() || refuses((given.count, given.datatype), None) {
            return library(given);
        }
        let (from, into) = (Layout::of(given.datatype)?, Layout::of(got.datatype)?);
        let block = |k: usize| got.counts[k] as usize * into.size;
        let count = given.count as usize;
        if remote.is_none()
            && let Some(bytes) = filled_up((0..ranks).map(block))
        {
            let (own, mine) = (count * from.size, block(me));
            if own != mine {
                return Err(Error::invalid(format!("{FUNCTION} of {own} bytes where {mine} come")));
            }
            let packed = || {
                let mut packed = vec![0u8; bytes];
                copy_items(Direction::Pack, given.data, count, given.datatype, packed.as_mut_ptr(), comm)?;
                Ok(packed)
            };
            // what an int does not count is the library's own on all ranks
            if let (Ok(one), Ok(all)) = (c_int::try_from(bytes), c_int::try_from(ranks * bytes)) {
                let items = [one, all].map(|bytes| (i64::from(bytes), ffi::RSMPI_UINT8_T));
                if let Some(mut all) = by_plan((&allgather::COLLECTIVE, comm), items, None, ranks * bytes, packed)? {
                    for (k, packed) in all.chunks_exact_mut(bytes).enumerate() {
                        let Items { data, count, datatype } = got.block(k)?;
                        copy_items(Direction::Unpack, data, count as usize, datatype, packed.as_mut_ptr(), comm)?;
                    }
                    return Ok(());
                }
            }
        }
        under_way::finish(comm, None);
        let copy = if in_place { Some(got.copied(me, me + 1)?) } else { None };
        if let Some((_, own)) = &copy {
            given = own.block(me)?;
        }
        library(given)
    }
}

/// Combines what all give, and brings each rank its block of that; without a place for it, to the beginning of what it gave.
///
/// # Safety
/// The arguments must be valid for `MPI_Reduce_scatter`.
///
/// # Errors
/// As [`allgatherv`].
pub(super) unsafe fn reduce_scatter(
    comm: MPI_Comm,
    (given, got): (Items, Option<Items>),
    counts: &[c_int],
    (op, commute): (MPI_Op, bool),
) -> Result<()> {
    const FUNCTION: &str = "MPI_Reduce_scatter";
    let (ranks, remote) = sizes(comm)?;
    let me = rank(comm)?;
    check_counts(FUNCTION, ranks, counts)?;
    let in_place = got.is_none();
    if in_place {
        check_in_place(FUNCTION, remote)?;
    }
    let got = got.unwrap_or(Items { count: i64::from(counts[me]), ..given });
    let library = |data: *const c_void| {
        // SAFETY: the caller's arguments
        let code = unsafe { native::PMPI_Reduce_scatter(data, got.data.cast(), counts.as_ptr(), given.datatype, op, comm) };
        check(FUNCTION, code)
    };
    // what the operation does not combine has no plan
    // SAFETY: as above
    if counts.iter().any(|&count| unsafe { refuses((i64::from(count), given.datatype), None) }) {
        return library(given.data.cast_const().cast());
    }
    let all: usize = counts.iter().map(|&count| count as usize).sum();
    if usize::try_from(given.count) != Ok(all) || got.count != i64::from(counts[me]) {
        let (given, got, mine) = (given.count, got.count, counts[me]);
        return Err(Error::invalid(format!("{FUNCTION} of {given} items of {all} that are counted, and into {got} of {mine}")));
    }
    if given.datatype != got.datatype {
        return Err(Error::invalid(format!("{FUNCTION} with items of two datatypes")));
    }
    // SAFETY: the caller's arguments
    unsafe {
        let most = filled_up(counts.iter().map(|&count| count as usize)).filter(|_| remote.is_none());
        let side = Side::new((given.count, given.datatype), 1, true)?;
        let item = side.and_then(|side| Some((side, side.elements(commute).filter(|elements| elements.bytes > 0)?.bytes)));
        if let (Some(most), Some((side, item))) = (most, item)
            && let (Ok(one), Ok(filled)) = (c_int::try_from(most), c_int::try_from(most * ranks))
        {
            let packed = || {
                let mut packed = vec![0u8; all * item];
                side.copy(Direction::Pack, given.data, packed.as_mut_ptr())?;
                Ok(fill_up(&packed, counts, item, most))
            };
            let items = [filled, one].map(|count| (i64::from(count), given.datatype));
            let which = (&reduce_scatter::COLLECTIVE, comm);
            if let Some(mut result) = by_plan(which, items, Some((op, commute)), most * item, packed)? {
                if let Some(own) = Side::new((got.count, got.datatype), 1, true)? {
                    own.copy(Direction::Unpack, got.data, result.as_mut_ptr())?;
                }
                return Ok(());
            }
        }
        under_way::finish(comm, None);
        let copy = side.filter(|_| in_place).map(|side| side.copied(given.data, 0, all));
        library(copy.as_ref().map_or(given.data.cast::<c_void>(), |(_, address)| *address).cast_const())
    }
}

/// Each block of a vector with the vector's first item again and again behind it: what an operation can combine, whatever it is.
fn fill_up(vector: &[u8], counts: &[c_int], item: usize, most: usize) -> Vec<u8> {
    let mut filled = Vec::with_capacity(counts.len() * most * item);
    let mut rest = vector;
    for (k, &count) in counts.iter().enumerate() {
        let (block, behind) = rest.split_at(count as usize * item);
        rest = behind;
        filled.extend_from_slice(block);
        while filled.len() < (k + 1) * most * item {
            filled.extend_from_slice(&vector[..item]);
        }
    }
    filled
}

/// A collective of the library's own between each rank's block and all of them at a root.
pub(super) struct AtRoot {
    function: &'static str,
    call: unsafe fn(&Items, &Blocks, c_int, MPI_Comm) -> c_int,
}

// SAFETY of both: the caller's
/// Brings each rank's block to the root.
pub(super) static GATHERV: AtRoot = AtRoot {
    function: "MPI_Gatherv",
    call: |given, got, root, comm| unsafe {
        let (data, counts, places) = (given.data.cast_const().cast(), got.counts.as_ptr(), got.places.as_ptr());
        native::PMPI_Gatherv(data, given.count as c_int, given.datatype, got.data.cast(), counts, places, got.datatype, root, comm)
    },
};
/// Brings each rank its block of what the root gives.
pub(super) static SCATTERV: AtRoot = AtRoot {
    function: "MPI_Scatterv",
    call: |got, given, root, comm| unsafe {
        let (data, counts, places) = (given.data.cast_const().cast(), given.counts.as_ptr(), given.places.as_ptr());
        native::PMPI_Scatterv(data, counts, places, given.datatype, got.data.cast(), got.count as c_int, got.datatype, root, comm)
    },
};

impl AtRoot {
    /// Calls it.
    ///
    /// # Safety
    /// The arguments must be valid for its function.
    ///
    /// # Errors
    /// As [`allgatherv`].
    pub unsafe fn run(&self, comm: MPI_Comm, root: usize, own: Items, all: Blocks) -> Result<()> {
        let (ranks, remote) = sizes(comm)?;
        if remote.is_none() && rank(comm)? == root {
            all.check(self.function, ranks)?;
        }
        under_way::finish(comm, None);
        // SAFETY: the caller's arguments
        check(self.function, unsafe { (self.call)(&own, &all, as_mpi_counts(root), comm) })
    }

    /// The same where the root's own block stays in its place. Elsewhere there is one block.
    ///
    /// # Safety
    /// As [`AtRoot::run`].
    ///
    /// # Errors
    /// As there, or there are more blocks.
    pub unsafe fn run_in_place(&self, comm: MPI_Comm, root: usize, blocks: Blocks) -> Result<()> {
        let ((ranks, remote), me) = (sizes(comm)?, rank(comm)?);
        check_in_place(self.function, remote)?;
        blocks.check(self.function, if me == root { ranks } else { 1 })?;
        // SAFETY: the caller's arguments
        unsafe {
            if me != root {
                return self.run(comm, root, blocks.block(0)?, blocks);
            }
            let (_copy, own) = blocks.copied(me, me + 1)?;
            self.run(comm, root, own.block(me)?, blocks)
        }
    }
}

/// Brings each rank a block from each rank: the library's own. Without what is given, that is where what comes goes.
///
/// # Safety
/// The arguments must be valid for `MPI_Alltoallv`.
///
/// # Errors
/// As [`allgatherv`].
pub(super) unsafe fn alltoallv(comm: MPI_Comm, given: Option<Blocks>, got: Blocks) -> Result<()> {
    const FUNCTION: &str = "MPI_Alltoallv";
    let (ranks, remote) = sizes(comm)?;
    let peers = remote.unwrap_or(ranks);
    got.check(FUNCTION, peers)?;
    let (_copy, given) = match given {
        Some(given) => (Vec::new(), given),
        None => {
            check_in_place(FUNCTION, remote)?;
            // SAFETY: the caller's arguments
            unsafe { got.copied(0, peers)? }
        }
    };
    given.check(FUNCTION, peers)?;
    under_way::finish(comm, None);
    let (counts, places) = (given.counts.as_ptr(), given.places.as_ptr());
    let (also, into) = (got.counts.as_ptr(), got.places.as_ptr());
    // SAFETY: the caller's arguments
    check(FUNCTION, unsafe {
        let data = given.data.cast_const().cast();
        native::PMPI_Alltoallv(data, counts, places, given.datatype, got.data.cast(), also, into, got.datatype, comm)
    })
}
