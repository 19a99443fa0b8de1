//! Communicators of our own: made on all processes or on none, and freed by the time MPI ends.

use super::quietly;
use crate::error::{Error, Result};
use crate::topology::Rank;
use crate::transport::mpi::{MpiTransport, check, tag_bound};
use crate::transport::native;
use mpi::ffi::{self, MPI_Comm};
use std::os::raw::c_int;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Contexts that a process takes at most: few beside MPICH's 2,000, which the program's own communicators need too, and enough for
/// programs whose processes are in rows, columns and planes of grids.
pub const MOST_CONTEXTS: usize = 64;

static CONTEXTS: AtomicUsize = AtomicUsize::new(0);

/// How many private communicators this process has: each is a context of the MPI library, which has few.
pub fn contexts() -> usize {
    CONTEXTS.load(Ordering::Relaxed)
}

/// A communicator of our own, which returns errors. Whoever drops it frees it: all its processes, then.
#[derive(Debug)]
pub struct Private(MPI_Comm);

// SAFETY: MPI's handles may be used by any thread that may call MPI
unsafe impl Send for Private {}
// SAFETY: as above
unsafe impl Sync for Private {}

impl Drop for Private {
    fn drop(&mut self) {
        CONTEXTS.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: made by this module, used by nobody else
        unsafe { native::PMPI_Comm_free(&mut self.0) };
    }
}

impl Private {
    /// Its handle.
    pub fn comm(&self) -> MPI_Comm {
        self.0
    }

    /// What MPI made, if it did.
    fn made(code: c_int, comm: MPI_Comm) -> Option<Private> {
        // SAFETY: a constant of the library
        if code != ffi::MPI_SUCCESS as c_int || comm == unsafe { ffi::RSMPI_COMM_NULL } {
            return None;
        }
        CONTEXTS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: made just now; where this fails, errors end the job
        unsafe { native::PMPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN) };
        Some(Private(comm))
    }

    /// One of the processes of `group`, which has those of `comm`; `None` on all of them if MPI has no context left. Not a duplicate: that
    /// would call the copy functions of the program's attributes.
    ///
    /// # Errors
    /// MPI's reason, where the processes cannot speak with each other.
    pub fn of(comm: MPI_Comm, group: &Group) -> Result<Option<Private>> {
        // SAFETY: a valid communicator, an out-parameter of the right type
        let own = unsafe {
            let mut made = ffi::RSMPI_COMM_NULL;
            let code = quietly(comm, || native::PMPI_Comm_create(comm, group.0, &mut made));
            Private::made(code, made)
        };
        let all = greatest([i64::from(own.is_none())], comm)? == [0];
        Ok(own.filter(|_| all))
    }

    /// One of all processes, when MPI has just begun: there are contexts, and if it fails all the same that is as fatal as in MPI_Init.
    ///
    /// # Errors
    /// MPI's reason, where the program's error handler for MPI_COMM_WORLD goes on.
    pub fn at_start(comm: MPI_Comm, group: &Group) -> Result<Private> {
        // SAFETY: a valid communicator, an out-parameter of the right type
        unsafe {
            let mut made = ffi::RSMPI_COMM_NULL;
            let code = native::PMPI_Comm_create(comm, group.0, &mut made);
            check("MPI_Comm_create", code)?;
            Private::made(code, made).ok_or_else(|| Error::invalid("make a private communicator of all processes"))
        }
    }

    /// One of some members of a private communicator, this process among them; `None` on all of them if one cannot have it. Collective over these
    /// members only. `parent` has a tag that nothing else uses.
    ///
    /// # Errors
    /// MPI's reason, where the processes cannot speak with each other.
    pub fn of_some(mut parent: MpiTransport, tag: c_int, members: &[c_int]) -> Result<Option<Private>> {
        let group = Group::of(parent.comm()).and_then(|all| all.some(members));
        let ready = contexts() < MOST_CONTEXTS && group.is_ok() && has_context();
        let ranks: Vec<Rank> = members.iter().map(|&r| r as Rank).collect();
        let (true, Ok(group)) = (all_say(&mut parent, &ranks, ready)?, group) else { return Ok(None) };
        // SAFETY: out-parameter of the right type; every member makes the same call
        let own = unsafe {
            let mut made = ffi::RSMPI_COMM_NULL;
            let code = native::PMPI_Comm_create_group(parent.comm(), group.0, tag, &mut made);
            Private::made(code, made)
        };
        let all = all_say(&mut parent, &ranks, own.is_some())?;
        Ok(own.filter(|_| all))
    }
}

/// True if all these ranks say yes.
fn all_say(transport: &mut MpiTransport, ranks: &[Rank], yes: bool) -> Result<bool> {
    use crate::transport::{Control, Transport};
    let own = f64::from(u8::from(yes));
    if transport.rank() != ranks[0] {
        transport.send_times(ranks[0], &[own])?;
        return Ok(transport.receive_times(ranks[0], 1)?[0] > 0.0);
    }
    let others: Vec<(Rank, usize)> = ranks[1..].iter().map(|&r| (r, 1)).collect();
    let all = yes && transport.receive_times_of_each(&others)?.iter().all(|said| said[0] > 0.0);
    ranks[1..].iter().try_for_each(|&r| transport.send_times(r, &[f64::from(u8::from(all))]))?;
    Ok(all)
}

/// The greatest of all ranks' numbers, each.
///
/// # Errors
/// MPI's reason.
pub fn greatest<const N: usize>(own: [i64; N], comm: MPI_Comm) -> Result<[i64; N]> {
    let mut all = own;
    // SAFETY: lists of the length that is passed
    let code = unsafe {
        native::PMPI_Allreduce(own.as_ptr().cast(), all.as_mut_ptr().cast(), N as c_int, ffi::RSMPI_INT64_T, ffi::RSMPI_MAX, comm)
    };
    check("MPI_Allreduce", code)?;
    Ok(all)
}

/// A group of processes.
pub struct Group(ffi::MPI_Group);

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: made by MPI for this module; the empty one is a constant
        unsafe {
            if self.0 != ffi::RSMPI_GROUP_EMPTY {
                native::PMPI_Group_free(&mut self.0);
            }
        }
    }
}

impl Group {
    /// The processes of a communicator.
    ///
    /// # Errors
    /// MPI's reason, as in all that follow.
    pub fn of(comm: MPI_Comm) -> Result<Group> {
        // SAFETY: a valid communicator, an out-parameter of the right type
        unsafe {
            let mut group = ffi::RSMPI_GROUP_EMPTY;
            check("MPI_Comm_group", native::PMPI_Comm_group(comm, &mut group))?;
            Ok(Group(group))
        }
    }

    /// One of no processes, for [`Group::out`].
    pub fn empty() -> Group {
        // SAFETY: a constant of the library
        Group(unsafe { ffi::RSMPI_GROUP_EMPTY })
    }

    /// Where MPI writes a group.
    pub fn out(&mut self) -> *mut ffi::MPI_Group {
        &mut self.0
    }

    /// Those of MPI_COMM_WORLD.
    ///
    /// # Errors
    /// As above.
    pub fn world() -> Result<Group> {
        // SAFETY: a constant of the library
        Group::of(unsafe { ffi::RSMPI_COMM_WORLD })
    }

    fn some(&self, ranks: &[c_int]) -> Result<Group> {
        // SAFETY: a list of the length that is passed
        unsafe {
            let mut group = ffi::RSMPI_GROUP_EMPTY;
            check("MPI_Group_incl", native::PMPI_Group_incl(self.0, ranks.len() as c_int, ranks.as_ptr(), &mut group))?;
            Ok(Group(group))
        }
    }

    /// The ranks in `other` of the first `count` processes, if they are all there.
    ///
    /// # Errors
    /// As above.
    pub fn ranks_in(&self, other: &Group, count: usize) -> Result<Option<Vec<c_int>>> {
        let own: Vec<c_int> = (0..count as c_int).collect();
        let mut found = vec![0 as c_int; count];
        // SAFETY: lists of the length that is passed
        let code = unsafe { native::PMPI_Group_translate_ranks(self.0, count as c_int, own.as_ptr(), other.0, found.as_mut_ptr()) };
        check("MPI_Group_translate_ranks", code)?;
        // SAFETY: a constant of the library
        Ok((!found.contains(unsafe { &ffi::RSMPI_UNDEFINED })).then_some(found))
    }
}

/// All processes, in MPI_COMM_WORLD's order.
#[derive(Debug)]
pub struct World {
    /// Where all others' messages can go too.
    pub comm: Private,
    /// The host of each.
    pub hosts: Vec<String>,
}

impl World {
    /// Of the processes by their ranks in MPI_COMM_WORLD, all of them.
    pub fn new(comm: Private, hosts: impl Iterator<Item = (c_int, String)>) -> World {
        let mut hosts: Vec<_> = hosts.collect();
        hosts.sort();
        World { comm, hosts: hosts.into_iter().map(|(_, host)| host).collect() }
    }
}

/// What is known of all processes, once it was found out.
pub fn world() -> MutexGuard<'static, Option<World>> {
    static MADE: Mutex<Option<World>> = Mutex::new(None);
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

static MAKING: AtomicBool = AtomicBool::new(false);

/// One thread's turn to make a communicator for others to share, until it is dropped.
///
/// Threads of which each makes one at the same time, on some processes in another order than on others, would need an order of their own, and
/// Open MPI 4.1 may block for ever. So nobody waits for a turn: who has none on all processes does without plans this time.
pub struct Turn(());

impl Turn {
    /// The turn, if no other thread has it.
    pub fn take() -> Option<Turn> {
        let free = MAKING.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok();
        // made only if it is: what is dropped gives the turn back
        free.then(|| Turn(()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        MAKING.store(false, Ordering::Release);
    }
}

/// True if MPI has a context left on this process: asked for before several make a communicator together, since in Open MPI 4.1 those who have
/// one wait for ever for one who has not. Local.
pub fn has_context() -> bool {
    // SAFETY: a constant of the library
    let alone = unsafe { ffi::RSMPI_COMM_SELF };
    Group::of(alone).and_then(|group| Private::of(alone, &group)).is_ok_and(|made| made.is_some())
}

/// How many tags there are.
pub fn all_tags() -> i64 {
    i64::from(tag_bound()) + 1
}
