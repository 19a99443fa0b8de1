//! Bytes that calls send, from those of their arguments that mean something where they are given: others may be anything.

use crate::library::{Handle, Mpi};
use std::ffi::{c_int, c_void};

/// So many elements of a type: an `int`, or a large count.
pub type Block<Count> = (Count, Handle);

/// A list of numbers of elements, and their type.
pub type Blocks = (*const c_int, Handle);

/// A list of numbers of elements, and one of their types.
pub type Mixed = (*const c_int, *const c_void);

/// Whose ranks are meant.
#[derive(Clone, Copy)]
pub enum Within {
    Communicator(Handle),
    Window(Handle),
}

impl Within {
    /// The caller's rank in `MPI_COMM_WORLD`, and how many ranks further the partner is there; none where it is nobody, or not there.
    pub unsafe fn distance(self, mpi: &Mpi, rank: c_int) -> Option<(usize, isize)> {
        if mpi.is_nobody(rank) {
            return None;
        }
        let mut found = [-1];
        // SAFETY: the caller's, with room for one
        unsafe {
            match self {
                Within::Communicator(comm) => mpi.in_world(comm, &[rank], &mut found),
                Within::Window(window) => mpi.in_world_of_window(window, &[rank], &mut found),
            }
        }
        distance(mpi.rank(), found[0])
    }
}

fn distance(own: usize, to: c_int) -> Option<(usize, isize)> {
    let to = usize::try_from(to).ok()?;
    Some((own, isize::try_from(to).ok()?.checked_sub_unsigned(own)?))
}

/// What a call sends.
pub struct Sent {
    /// Bytes in all.
    pub bytes: usize,
    to: To,
}

/// The partners that a call has by its arguments or its communicator.
enum To {
    /// It has none.
    Nobody,
    /// One, to whom all of it goes.
    One(Within, c_int),
    /// Ranks of a communicator, and bytes to each.
    Each(Handle, Vec<(c_int, usize)>),
}

impl From<usize> for Sent {
    fn from(bytes: usize) -> Sent {
        Sent { bytes, to: To::Nobody }
    }
}

impl Sent {
    /// All of it to one.
    pub fn towards(self, within: Within, rank: c_int) -> Sent {
        Sent { to: To::One(within, rank), ..self }
    }

    /// So much to each neighbour by its place, if that is anybody.
    unsafe fn neighbours(mpi: &Mpi, comm: Handle, bytes: impl Fn(usize) -> usize) -> Sent {
        // SAFETY: the caller's
        let all = unsafe { mpi.neighbours(comm) }.into_iter().enumerate();
        let to: Vec<(c_int, usize)> = all.filter(|(_, rank)| !mpi.is_nobody(*rank)).map(|(k, rank)| (rank, bytes(k))).collect();
        Sent { bytes: to.iter().map(|one| one.1).sum(), to: To::Each(comm, to) }
    }

    /// The caller's rank in `MPI_COMM_WORLD`, how many ranks further each partner is that is there, and bytes to it.
    pub unsafe fn partners(&self, mpi: &Mpi) -> impl Iterator<Item = ((usize, isize), usize)> {
        // most calls have one at most, for whom there shall be no lists
        let (one, many) = match &self.to {
            To::Nobody => (None, Vec::new()),
            // SAFETY: the caller's
            To::One(within, rank) => (unsafe { within.distance(mpi, *rank) }.map(|far| (far, self.bytes)), Vec::new()),
            To::Each(comm, to) => {
                let ranks: Vec<c_int> = to.iter().map(|one| one.0).collect();
                let (mut found, own) = (vec![-1; ranks.len()], mpi.rank());
                // SAFETY: the caller's, with as much room
                unsafe { mpi.in_world(*comm, &ranks, &mut found) };
                (None, found.into_iter().zip(to).filter_map(|(rank, (_, bytes))| Some((distance(own, rank)?, *bytes))).collect())
            }
        };
        one.into_iter().chain(many)
    }
}

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

/// As [`partners`], each with a type of its own.
pub unsafe fn partners_of_types(mpi: &Mpi, comm: Handle, all: Mixed) -> usize {
    // SAFETY: the caller's; the lists have an entry for each process that is talked to
    unsafe {
        let ranks = mpi.remote(comm).unwrap_or_else(|| mpi.place(comm).1);
        (0..ranks).map(|k| mixed(mpi, all, k)).sum()
    }
}

/// To all neighbours that the communicator knows, as much to each.
pub unsafe fn to_neighbours(mpi: &Mpi, comm: Handle, block: Block<c_int>) -> Sent {
    // SAFETY: the caller's
    unsafe {
        let each = mpi.bytes(block.0, block.1);
        Sent::neighbours(mpi, comm, |_| each)
    }
}

/// By a list with an entry for each neighbour.
pub unsafe fn neighbours(mpi: &Mpi, comm: Handle, all: Blocks) -> Sent {
    // SAFETY: the caller's; the list has an entry for each neighbour
    unsafe { Sent::neighbours(mpi, comm, |k| one(mpi, all, k as c_int)) }
}

/// As [`neighbours`], each with a type of its own.
pub unsafe fn neighbours_of_types(mpi: &Mpi, comm: Handle, all: Mixed) -> Sent {
    // SAFETY: the caller's; the lists have an entry for each neighbour
    unsafe { Sent::neighbours(mpi, comm, |k| mixed(mpi, all, k)) }
}

/// Bytes of a list with an entry for each process of the caller's group.
pub unsafe fn group(mpi: &Mpi, comm: Handle, all: Blocks) -> usize {
    // SAFETY: the caller's
    unsafe { sum(mpi, all, mpi.place(comm).1) }
}

unsafe fn one(mpi: &Mpi, (counts, datatype): Blocks, rank: c_int) -> usize {
    // SAFETY: the list has such an entry
    unsafe { if counts.is_null() { 0 } else { mpi.bytes(*counts.add(rank as usize), datatype) } }
}

unsafe fn mixed(mpi: &Mpi, (counts, datatypes): Mixed, place: usize) -> usize {
    // SAFETY: the lists have such an entry
    unsafe { if counts.is_null() || datatypes.is_null() { 0 } else { mpi.bytes(*counts.add(place), mpi.handle_in(datatypes, place)) } }
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
