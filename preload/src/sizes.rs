//! Bytes that calls send, from those of their arguments that mean something where they are given: others may be anything.

use crate::library::{Handle, Mpi};
use std::ffi::c_int;

/// So many elements of a type: an `int`, or a large count.
pub type Block<Count> = (Count, Handle);

/// A list of numbers of elements, and their type.
pub type Blocks = (*const c_int, Handle);

/// Bytes to a process, if there is one.
pub unsafe fn to(mpi: &Mpi, dest: c_int, block: Block<impl Into<i64>>) -> usize {
    // SAFETY: the caller's
    if mpi.is_nobody(dest) { 0 } else { unsafe { mpi.bytes(block.0, block.1) } }
}

/// Which arguments of a call with a root mean something.
enum Side {
    Root,
    Others,
    /// Of the root's group in an inter-communicator: none.
    Neither,
}

unsafe fn side(mpi: &Mpi, root: c_int, comm: Handle) -> Side {
    // SAFETY: the caller's
    unsafe {
        if mpi.is_nobody(root) {
            Side::Neither
        } else if mpi.is_root(root) || (mpi.remote(comm).is_none() && mpi.place(comm).0 == root) {
            Side::Root
        } else {
            Side::Others
        }
    }
}

/// Bytes of a block that the root says one way, and all others another.
pub unsafe fn rooted(mpi: &Mpi, root: c_int, comm: Handle, at_root: Block<impl Into<i64>>, elsewhere: Block<impl Into<i64>>) -> usize {
    // SAFETY: the caller's
    unsafe {
        match side(mpi, root, comm) {
            Side::Root => mpi.bytes(at_root.0, at_root.1),
            Side::Others => mpi.bytes(elsewhere.0, elsewhere.1),
            Side::Neither => 0,
        }
    }
}

/// As [`rooted`], where the root has a list; what it says for the root itself, or in the mean where the root is in another group.
pub unsafe fn rooted_list(mpi: &Mpi, root: c_int, comm: Handle, at_root: Blocks, elsewhere: Block<c_int>) -> usize {
    // SAFETY: the caller's
    unsafe {
        match (side(mpi, root, comm), mpi.remote(comm)) {
            (Side::Root, None) => one(mpi, at_root, root),
            (Side::Root, Some(ranks)) => sum(mpi, at_root, ranks) / ranks.max(1),
            (Side::Others, _) => mpi.bytes(elsewhere.0, elsewhere.1),
            (Side::Neither, _) => 0,
        }
    }
}

/// Bytes that a process gives to all: by the list of what everybody gives, since with `MPI_IN_PLACE` only that means something.
pub unsafe fn given(mpi: &Mpi, comm: Handle, all: Blocks, own: Block<c_int>) -> usize {
    // SAFETY: the caller's
    unsafe { if mpi.remote(comm).is_some() { mpi.bytes(own.0, own.1) } else { one(mpi, all, mpi.place(comm).0) } }
}

/// Bytes of a list with an entry for each process that is talked to.
pub unsafe fn partners(mpi: &Mpi, comm: Handle, all: Blocks) -> usize {
    // SAFETY: the caller's
    unsafe { sum(mpi, all, mpi.remote(comm).unwrap_or_else(|| mpi.place(comm).1)) }
}

/// Bytes to all neighbours that the communicator knows, as many to each.
pub unsafe fn to_neighbours(mpi: &Mpi, comm: Handle, block: Block<c_int>) -> usize {
    // SAFETY: the caller's
    unsafe { mpi.bytes(block.0, block.1).saturating_mul(mpi.neighbours(comm).into_iter().filter(|is| *is).count()) }
}

/// Bytes of a list with an entry for each neighbour.
pub unsafe fn neighbours(mpi: &Mpi, comm: Handle, (counts, datatype): Blocks) -> usize {
    // SAFETY: the caller's; the list has an entry for each neighbour
    unsafe {
        let all = mpi.neighbours(comm).into_iter().enumerate().filter(|(_, is)| *is && !counts.is_null());
        let elements: usize = all.map(|(k, _)| usize::try_from(*counts.add(k)).unwrap_or(0)).sum();
        elements.saturating_mul(mpi.bytes(1, datatype))
    }
}

/// Bytes of a list with an entry for each process of the caller's group.
pub unsafe fn group(mpi: &Mpi, comm: Handle, all: Blocks) -> usize {
    // SAFETY: the caller's
    unsafe { sum(mpi, all, mpi.place(comm).1) }
}

unsafe fn one(mpi: &Mpi, (counts, datatype): Blocks, rank: c_int) -> usize {
    // SAFETY: the list has an entry for each rank of the caller's group
    unsafe { if counts.is_null() { 0 } else { mpi.bytes(*counts.add(rank as usize), datatype) } }
}

unsafe fn sum(mpi: &Mpi, (counts, datatype): Blocks, entries: usize) -> usize {
    if counts.is_null() {
        return 0;
    }
    // SAFETY: the caller vouches for the number of entries
    let counts = unsafe { std::slice::from_raw_parts(counts, entries) };
    let elements: usize = counts.iter().map(|c| usize::try_from(*c).unwrap_or(0)).sum();
    // SAFETY: the caller's
    elements.saturating_mul(unsafe { mpi.bytes(1, datatype) })
}
