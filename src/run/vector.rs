//! Collectives whose blocks may have other sizes on each rank.
//!
//! Of `MPI_Allgatherv` and `MPI_Reduce_scatter` all ranks know all sizes: where blocks are about as long as each other, they are filled up to the longest
//! and go by the plans of blocks of one size. Of the others one rank alone knows all sizes, or none does: ranks cannot decide alike, and the library's own
//! run, as they do where blocks differ much.

use super::call::{Items, Side, given_at, got_at};
use super::communicator::{State, sizes, state};
use super::datatype::{Direction, Layout, copy_items};
use super::planned::Planned;
use super::{rank, under_way};
use crate::collective::{Collective, Shape, allgather, reduce_scatter};
use crate::error::{Error, Result};
use crate::plan;
use crate::schedule::Elements;
use crate::transport::library::{Arguments, Operation};
use crate::transport::mpi::check;
use crate::transport::{Buffers, native};
use mpi::ffi::{MPI_Comm, MPI_Datatype, MPI_Op};
use mpi::traits::{AsRaw, PartitionedBuffer, PartitionedBufferMut};
use std::os::raw::c_int;
use std::sync::Arc;

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
        return Err(Error::invalid(format!("{function} with {} blocks for {ranks} ranks", counts.len())));
    }
    if let Some(count) = counts.iter().find(|&&count| count < 0) {
        return Err(Error::invalid(format!("{function} with a block of {count} items")));
    }
    Ok(())
}

/// So many ranks that a rank of a communicator has blocks for.
fn peers(comm: MPI_Comm) -> Result<usize> {
    sizes(comm).map(|(own, remote)| remote.unwrap_or(own))
}

/// The longest of some blocks, where filling up all others makes them longer by an eighth at most: what is sent more costs less then than a better
/// algorithm wins.
fn filled_up(blocks: impl Iterator<Item = usize> + Clone) -> Option<usize> {
    let (most, all, count) = (blocks.clone().max()?, blocks.clone().sum::<usize>(), blocks.count());
    (most > 0 && most.saturating_mul(count) <= all + all / 8).then_some(most)
}

/// What is planned for blocks of so many bytes, if something is. Collective.
///
/// # Safety
/// The communicator must be valid, and no other collective be under way on it.
unsafe fn planned<'p>(
    comm: MPI_Comm,
    collective: &'static Collective,
    (bytes, elements): (usize, Elements),
) -> Result<Option<(&'p mut Planned, Arc<plan::Planned>)>> {
    // SAFETY: the caller's
    let State::Planned(planned) = (unsafe { state(comm)? }) else { return Ok(None) };
    let plan = planned.planned(collective, |ranks| Shape { elements, ..Shape::new(ranks, 0, bytes) });
    Ok(matches!(*plan, plan::Planned::Run(_)).then_some((&mut **planned, plan)))
}

/// Runs a plan on copies, which are given back.
unsafe fn run(
    (planned, plan): (&mut Planned, Arc<plan::Planned>),
    (given, mut got): (Vec<u8>, Vec<u8>),
    bytes: usize,
    operation: Option<Operation>,
) -> Result<Vec<u8>> {
    let plan::Planned::Run(steps) = &*plan else { return Ok(got) };
    let arguments = Arguments { buffers: Buffers::of(&given, &mut got), bytes, root: 0, operation };
    // SAFETY: the caller made them as long as the collective's layout says
    if let Err(e) = unsafe { planned.run(steps, &arguments) } {
        // other messages may still be open: they go where they were told to
        std::mem::forget((given, got));
        return Err(e);
    }
    Ok(got)
}

/// Brings each rank's block to all.
///
/// # Safety
/// The arguments must be valid for `MPI_Allgatherv`.
///
/// # Errors
/// [`Error::Invalid`] with what is wrong with them, before anything is sent; or MPI's reason.
pub(super) unsafe fn allgatherv(comm: MPI_Comm, given: Items, got: Blocks) -> Result<()> {
    let (ranks, remote) = sizes(comm)?;
    got.check("MPI_Allgatherv", remote.unwrap_or(ranks))?;
    // SAFETY: the caller's arguments
    unsafe {
        let (from, into) = (Layout::of(given.datatype)?, Layout::of(got.datatype)?);
        let block = |k: usize| got.counts[k] as usize * into.size;
        let count = given.count.max(0) as usize;
        if let (None, Some(bytes)) = (remote, filled_up((0..ranks).map(block))) {
            let (own, mine) = (count * from.size, block(rank(comm)?));
            if own != mine {
                return Err(Error::invalid(format!("MPI_Allgatherv of {own} bytes where {mine} come")));
            }
            if let Some(found) = planned(comm, &allgather::COLLECTIVE, (bytes, Elements::default()))? {
                let mut packed = vec![0u8; bytes];
                copy_items(Direction::Pack, given.data, count, given.datatype, packed.as_mut_ptr(), comm)?;
                let mut all = run(found, (packed, vec![0u8; ranks * bytes]), bytes, None)?;
                for (k, packed) in all.chunks_exact_mut(bytes).enumerate() {
                    let place = got.data.wrapping_offset(into.after(1) * got.places[k] as isize);
                    copy_items(Direction::Unpack, place, got.counts[k] as usize, got.datatype, packed.as_mut_ptr(), comm)?;
                }
                return Ok(());
            }
        }
        under_way::finish(comm, None);
        let (n, t) = (given.count, given.datatype);
        let (counts, places) = (got.counts.as_ptr(), got.places.as_ptr());
        let code = native::PMPI_Allgatherv(given.data.cast(), n, t, got.data.cast(), counts, places, got.datatype, comm);
        check("MPI_Allgatherv", code)
    }
}

/// Combines what all give, and brings each rank its block of that.
///
/// # Safety
/// The arguments must be valid for `MPI_Reduce_scatter`.
///
/// # Errors
/// As [`allgatherv`].
pub(super) unsafe fn reduce_scatter(
    comm: MPI_Comm,
    (given, got): (Items, Items),
    counts: &[c_int],
    (op, commute): (MPI_Op, bool),
) -> Result<()> {
    const FUNCTION: &str = "MPI_Reduce_scatter";
    let (ranks, remote) = sizes(comm)?;
    let me = rank(comm)?;
    check_counts(FUNCTION, ranks, counts)?;
    let all: usize = counts.iter().map(|&count| count as usize).sum();
    if given.count.max(0) as usize != all || got.count != counts[me] {
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
        let elements = side.and_then(|side| Some((side, side.elements(commute).filter(|elements| elements.bytes > 0)?)));
        if let (Some(most), Some((side, elements))) = (most, elements) {
            let (item, bytes) = (elements.bytes, most * elements.bytes);
            if let Some(found) = planned(comm, &reduce_scatter::COLLECTIVE, (bytes, elements))? {
                let mut packed = vec![0u8; all * item];
                side.copy(Direction::Pack, given.data, packed.as_mut_ptr())?;
                let filled = fill_up(&packed, counts, item, most);
                let operation = Operation::new(given.datatype, item, op);
                let mut result = run(found, (filled, vec![0u8; bytes]), bytes, Some(operation))?;
                if let Some(own) = Side::new((got.count, got.datatype), 1, true)? {
                    own.copy(Direction::Unpack, got.data, result.as_mut_ptr())?;
                }
                return Ok(());
            }
        }
        under_way::finish(comm, None);
        let code = native::PMPI_Reduce_scatter(given.data.cast(), got.data.cast(), counts.as_ptr(), given.datatype, op, comm);
        check(FUNCTION, code)
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

/// Brings each rank's block to the root: the library's own.
///
/// # Safety
/// The arguments must be valid for `MPI_Gatherv`.
///
/// # Errors
/// As [`allgatherv`].
pub(super) unsafe fn gatherv(comm: MPI_Comm, root: usize, given: Items, got: Blocks) -> Result<()> {
    check_root("MPI_Gatherv", comm, root, &got)?;
    under_way::finish(comm, None);
    let (counts, places) = (got.counts.as_ptr(), got.places.as_ptr());
    // SAFETY: the caller's arguments
    check("MPI_Gatherv", unsafe {
        let data = given.data.cast_const().cast();
        native::PMPI_Gatherv(data, given.count, given.datatype, got.data.cast(), counts, places, got.datatype, root as c_int, comm)
    })
}

/// Brings each rank its block of what the root gives: the library's own.
///
/// # Safety
/// The arguments must be valid for `MPI_Scatterv`.
///
/// # Errors
/// As [`allgatherv`].
pub(super) unsafe fn scatterv(comm: MPI_Comm, root: usize, given: Blocks, got: Items) -> Result<()> {
    check_root("MPI_Scatterv", comm, root, &given)?;
    under_way::finish(comm, None);
    let (counts, places) = (given.counts.as_ptr(), given.places.as_ptr());
    // SAFETY: the caller's arguments
    check("MPI_Scatterv", unsafe {
        let data = given.data.cast_const().cast();
        native::PMPI_Scatterv(data, counts, places, given.datatype, got.data.cast(), got.count, got.datatype, root as c_int, comm)
    })
}

/// Refuses a root that there is not, and, at the root, other than a block for each rank.
fn check_root(function: &str, comm: MPI_Comm, root: usize, at_root: &Blocks) -> Result<()> {
    let (ranks, remote) = sizes(comm)?;
    if remote.is_some() {
        return Ok(());
    }
    if root >= ranks {
        return Err(Error::invalid(format!("{function} with root {root} of {ranks} ranks")));
    }
    if rank(comm)? == root { at_root.check(function, ranks) } else { Ok(()) }
}

/// Brings each rank a block from each rank: the library's own.
///
/// # Safety
/// The arguments must be valid for `MPI_Alltoallv`.
///
/// # Errors
/// As [`allgatherv`].
pub(super) unsafe fn alltoallv(comm: MPI_Comm, given: Blocks, got: Blocks) -> Result<()> {
    let peers = peers(comm)?;
    given.check("MPI_Alltoallv", peers)?;
    got.check("MPI_Alltoallv", peers)?;
    under_way::finish(comm, None);
    let (counts, places) = (given.counts.as_ptr(), given.places.as_ptr());
    let (also, into) = (got.counts.as_ptr(), got.places.as_ptr());
    // SAFETY: the caller's arguments
    check("MPI_Alltoallv", unsafe {
        let data = given.data.cast_const().cast();
        native::PMPI_Alltoallv(data, counts, places, given.datatype, got.data.cast(), also, into, got.datatype, comm)
    })
}
