//! What a communicator carries: its place in a team of processes, as an MPI attribute.

use super::join::{Joined, join, join_at_start};
use super::known::{Memory, spread};
use super::notice::{Reason, Why, once};
use super::planned::Planned;
use super::private::Group;
use super::quick::Calls;
use super::team::{free_at_the_end, has_ended};
use super::{no_copy, rank, world_rank};
use crate::error::Result;
use crate::library::is_first_rank;
use crate::transport::mpi::{check, check_launcher, is_initialized};
use crate::transport::native;
use mpi::ffi;
use mpi::raw::AsRaw;
use std::collections::BTreeSet;
use std::os::raw::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// What a communicator carries, and what goes with it. Its memory serves another one afterwards, and is never given back: other threads may be looking at whose it is.
pub(super) struct Attached {
    /// Whose it is; [`NOBODY`]'s between two.
    handle: AtomicUsize,
    comm: ffi::MPI_Comm,
    /// What its calls came to, once there are some.
    pub calls: Option<Box<Calls>>,
    state: State,
    /// How many ranks it has; of one that joins two groups nothing is said.
    pub ranks: usize,
    /// What its calls were looked up for.
    pub known: Memory,
}

/// The handle of no communicator.
const NOBODY: usize = usize::MAX;

/// The memory of what communicators carried that went.
fn spare() -> MutexGuard<'static, Vec<usize>> {
    static SPARE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Attached {
    /// What a communicator carries that is in such a state.
    fn new(comm: ffi::MPI_Comm, state: State) -> Result<*mut Attached> {
        let (ranks, remote) = sizes(comm)?;
        let ranks = if remote.is_some() { 0 } else { ranks };
        let handle = AtomicUsize::new(handle(comm));
        let attached = Attached { handle, comm, calls: None, state, ranks, known: Memory::default() };
        let Some(place) = spare().pop() else { return Ok(Box::into_raw(Box::new(attached))) };
        let (place, Attached { handle, comm, calls, state, ranks, known }) = (place as *mut Attached, attached);
        // SAFETY: nobody's; others may look whose it is meanwhile, and at nothing else
        unsafe {
            ((*place).comm, (*place).ranks) = (comm, ranks);
            ((*place).calls, (*place).state, (*place).known) = (calls, state, known);
            (*place).handle.store(handle.into_inner(), Ordering::Release);
        }
        Ok(place)
    }

    /// It is nobody's any more: what it has is given up, and its memory is kept for another one.
    ///
    /// # Safety
    /// It must be one of [`Attached::new`]'s, whose communicator goes.
    unsafe fn give_up(attached: *mut Attached) {
        // SAFETY: the caller's; whoever looks at it now finds that it is nobody's
        unsafe {
            (*attached).handle.store(NOBODY, Ordering::Release);
            Attached::clear(attached);
        }
        spare().push(attached as usize);
    }

    /// Only the library's own is called from here on, and nothing is remembered.
    ///
    /// # Safety
    /// Nobody may use it; whose it is may be looked at.
    unsafe fn clear(attached: *mut Attached) {
        // SAFETY: the caller's
        unsafe { ((*attached).calls, (*attached).state, (*attached).known) = (None, State::Native, Memory::default()) };
    }
}

/// A communicator's handle as a number.
#[inline]
fn handle(comm: ffi::MPI_Comm) -> usize {
    comm.0 as usize
}

/// What a communicator is to this library.
pub(super) enum State {
    /// It was used once, and may get plans when it is used again.
    Later,
    /// It has plans.
    Planned(Box<Planned>),
    /// It uses the library's own collectives.
    Native,
}

impl State {
    /// Sets a communicator up. Collective; all members come to the same kind of state. `again`: it was used before.
    fn new(comm: ffi::MPI_Comm, again: bool) -> Result<State> {
        let (ranks, remote) = sizes(comm)?;
        if remote.is_some() {
            if speaks_for_both(comm).unwrap_or(false) {
                Reason::new(Why::InterCommunicator, "it joins two groups (an inter-communicator)").tell_once(ranks);
            }
            return Ok(State::Native);
        }
        if ranks == 1 {
            alone();
            return Ok(State::Native);
        }
        let me = rank(comm)?;
        Ok(match join(comm, ranks, again)? {
            Joined::Here(place) => State::Planned(Box::new(Planned::new(comm, place, me))),
            Joined::Later => State::Later,
            Joined::Never(reason) => {
                if me == 0 {
                    reason.tell_once(ranks);
                }
                State::Native
            }
        })
    }
}

/// The ranks of a communicator, and those of the other group if it joins two.
pub(super) fn sizes(comm: ffi::MPI_Comm) -> Result<(usize, Option<usize>)> {
    let (mut own, mut inter, mut remote): (c_int, c_int, c_int) = (0, 0, 0);
    // SAFETY: the caller's communicator is valid
    unsafe {
        check("MPI_Comm_size", native::PMPI_Comm_size(comm, &mut own))?;
        check("MPI_Comm_test_inter", native::PMPI_Comm_test_inter(comm, &mut inter))?;
        if inter != 0 {
            check("MPI_Comm_remote_size", native::PMPI_Comm_remote_size(comm, &mut remote))?;
        }
    }
    Ok((own as usize, (inter != 0).then_some(remote as usize)))
}

/// True on one process of an inter-communicator: of the two groups' first ones, the lower in MPI_COMM_WORLD.
fn speaks_for_both(comm: ffi::MPI_Comm) -> Result<bool> {
    if rank(comm)? > 0 {
        return Ok(false);
    }
    let mut remote = Group::empty();
    // SAFETY: a valid inter-communicator, an out-parameter of the right type
    check("MPI_Comm_remote_group", unsafe { native::PMPI_Comm_remote_group(comm, remote.out()) })?;
    // a process that is not in the world speaks last
    let other = remote.ranks_in(&Group::world()?, 1)?.map(|found| found[0] as usize);
    Ok(other.is_none_or(|other| world_rank().is_ok_and(|own| own < other)))
}

/// One rank alone needs nothing; but a launcher of another MPI library starts many programs of one rank each, and the user should know.
fn alone() {
    // SAFETY: a constant of the library
    let Ok((world, _)) = sizes(unsafe { ffi::RSMPI_COMM_WORLD }) else { return };
    if let Err(e) = check_launcher(world)
        && is_first_rank()
    {
        once(Why::Launcher, || format!("every rank runs by itself: failed to {e}"));
    }
}

/// The policy's group of each rank of a communicator, if it has a policy. Collective.
pub(crate) fn groups_in_use(comm: &impl AsRaw<Raw = ffi::MPI_Comm>) -> Result<Option<Vec<usize>>> {
    // what only a communicator gets that is used again is wanted at once
    // SAFETY: a communicator of the `mpi` crate is valid
    match unsafe {
        state(comm.as_raw())?;
        state(comm.as_raw())?
    } {
        Some(State::Planned(planned)) => Ok(Some(planned.groups())),
        Some(State::Later | State::Native) | None => Ok(None),
    }
}

/// A private duplicate that returns errors instead of ending the job.
pub(crate) fn duplicate(comm: ffi::MPI_Comm) -> Result<ffi::MPI_Comm> {
    // SAFETY: out-parameter of the right type; `comm` is valid
    unsafe {
        let mut private = ffi::RSMPI_COMM_NULL;
        check("MPI_Comm_dup", native::PMPI_Comm_dup(comm, &mut private))?;
        check("MPI_Comm_set_errhandler", native::PMPI_Comm_set_errhandler(private, ffi::RSMPI_ERRORS_RETURN))?;
        Ok(private)
    }
}

/// So many communicators are found without asking MPI, unless two of them want the same place.
const RECENT: usize = 64;

/// What communicators carry that were used lately, each in the place of its [`handle`]: one that went is nobody's.
static RECENTS: [AtomicPtr<Attached>; RECENT] = [const { AtomicPtr::new(std::ptr::null_mut()) }; RECENT];

/// What is attached to all communicators that are there, by its address.
fn all() -> MutexGuard<'static, BTreeSet<usize>> {
    static ALL: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// MPI has said that it is about to end: no communicator carries anything any more, and all use the library's own collectives, which callbacks may
/// still call.
///
/// # Safety
/// No collective may be under way.
pub(super) unsafe fn give_up_all() {
    let Some(&key) = KEYVAL.get() else { return };
    let all: Vec<usize> = all().iter().copied().collect();
    for address in all {
        let attached = address as *mut Attached;
        // SAFETY: what is registered is there, and so is its communicator; the caller vouches that nobody uses it
        unsafe {
            Attached::clear(attached);
            // MPI is in the middle of deleting that one's attributes
            if (*attached).comm != ffi::RSMPI_COMM_SELF && is_initialized() {
                native::PMPI_Comm_delete_attr((*attached).comm, key);
            }
        }
    }
    // SAFETY: made by this module; where something still has it, it goes with that
    unsafe { native::PMPI_Comm_free_keyval(&mut { key }) };
}

/// The attribute under which a communicator keeps its state.
pub(super) static KEYVAL: OnceLock<c_int> = OnceLock::new();

/// The same, once there is one.
fn keyval() -> Result<c_int> {
    if let Some(&key) = KEYVAL.get() {
        return Ok(key);
    }
    free_at_the_end()?;
    let mut key: c_int = 0;
    // SAFETY: callbacks with the signatures that MPI asks for
    check("MPI_Comm_create_keyval", unsafe {
        native::PMPI_Comm_create_keyval(Some(no_copy), Some(dropped), &mut key, std::ptr::null_mut())
    })?;
    let taken = *KEYVAL.get_or_init(|| key);
    if taken != key {
        // SAFETY: another thread's came first, and nobody knows this one
        unsafe { native::PMPI_Comm_free_keyval(&mut key) };
    }
    Ok(taken)
}

/// The communicator goes, and its state with it.
unsafe extern "C" fn dropped(_: ffi::MPI_Comm, _: c_int, state: *mut c_void, _: *mut c_void) -> c_int {
    all().remove(&(state as usize));
    // SAFETY: set in `state` below, and its communicator's alone
    unsafe { Attached::give_up(state.cast()) };
    ffi::MPI_SUCCESS as c_int
}

/// The state of a communicator, set up at first use (collective then); nothing once MPI has said that it is about to end.
///
/// # Safety
/// `comm` must be valid, and no other thread may use its state: MPI forbids two collectives on one communicator at a time.
///
/// # Errors
/// MPI's reason.
pub(super) unsafe fn state<'a>(comm: ffi::MPI_Comm) -> Result<Option<&'a mut State>> {
    if has_ended() {
        return Ok(None);
    }
    // SAFETY: the caller's, and pointers that were set by this function
    unsafe {
        let mut found = kept(comm)?;
        let again = !found.is_null();
        if !again {
            // kept before the others are spoken to: what is here cannot fail afterwards
            found = attach(comm, keyval()?, State::Later)?;
        }
        if let State::Later = (*found).state {
            (*found).state = State::new(comm, again)?;
        }
        Ok(Some(&mut (*found).state))
    }
}

/// Gives a communicator something to carry.
///
/// # Safety
/// It must be valid, and carry nothing yet.
unsafe fn attach(comm: ffi::MPI_Comm, key: c_int, state: State) -> Result<*mut Attached> {
    let made = Attached::new(comm, state)?;
    // SAFETY: the caller's; what was made stays where it is
    let set = check("MPI_Comm_set_attr", unsafe { native::PMPI_Comm_set_attr(comm, key, made.cast::<c_void>()) });
    if let Err(e) = set {
        // nobody carries it, whose end would give it up
        // SAFETY: made above
        unsafe { Attached::give_up(made) };
        return Err(e);
    }
    all().insert(made as usize);
    Ok(made)
}

/// Sets MPI_COMM_WORLD up, before anything else is and while one thread runs. Collective.
///
/// # Errors
/// MPI's reason.
pub(super) fn start() -> Result<()> {
    // SAFETY: a constant of the library
    let comm = unsafe { ffi::RSMPI_COMM_WORLD };
    if sizes(comm)?.0 == 1 {
        return Ok(());
    }
    let (me, key) = (rank(comm)?, keyval()?);
    if let Some(place) = join_at_start(comm)? {
        // SAFETY: the communicator is MPI's, and carries nothing yet
        unsafe { attach(comm, key, State::Planned(Box::new(Planned::new(comm, place, me))))? };
    }
    Ok(())
}

/// What a communicator carries, if it was set up; nothing is set up, and nobody waits.
///
/// # Safety
/// As [`state`].
pub(super) unsafe fn attached(comm: ffi::MPI_Comm) -> Option<NonNull<Attached>> {
    if let Some(found) = recent(comm) {
        return Some(found);
    }
    // what cannot be asked was not set up: what comes next says why
    // SAFETY: the caller's
    let attached = NonNull::new(unsafe { kept(comm).ok()? })?;
    place(comm).store(attached.as_ptr(), Ordering::Release);
    Some(attached)
}

/// The same of a communicator that was used lately; MPI is not asked, and need not run. It counts on [`dropped`]: what is attached to a communicator while its attributes
/// are deleted, by collectives that another attribute's callback makes there, may stay behind under Open MPI.
#[inline]
pub(super) fn recent(comm: ffi::MPI_Comm) -> Option<NonNull<Attached>> {
    let found = NonNull::new(place(comm).load(Ordering::Acquire))?;
    // SAFETY: the memory stays, whoever's it is
    (unsafe { (*found.as_ptr()).handle.load(Ordering::Acquire) } == handle(comm)).then_some(found)
}

/// Where what a communicator carries is found, if no other one came after it.
#[inline]
fn place(comm: ffi::MPI_Comm) -> &'static AtomicPtr<Attached> {
    &RECENTS[spread(handle(comm)) % RECENT]
}

/// The plans of a communicator that has some; nothing is set up, and nobody waits.
///
/// # Safety
/// As [`state`].
///
/// # Errors
/// MPI's reason.
pub(super) unsafe fn planned<'a>(comm: ffi::MPI_Comm) -> Result<Option<&'a mut Planned>> {
    // SAFETY: the caller's; a state stays where it is until its communicator goes
    Ok(match unsafe { kept(comm)?.as_mut() }.map(|attached| &mut attached.state) {
        Some(State::Planned(planned)) => Some(planned),
        Some(State::Later | State::Native) | None => None,
    })
}

/// What a communicator carries; null if that is nothing.
unsafe fn kept(comm: ffi::MPI_Comm) -> Result<*mut Attached> {
    if has_ended() {
        return Ok(std::ptr::null_mut());
    }
    let (mut found, mut flag): (*mut Attached, c_int) = (std::ptr::null_mut(), 0);
    // SAFETY: MPI writes the attribute's value, a pointer that was set in `state`
    let code = unsafe { native::PMPI_Comm_get_attr(comm, keyval()?, (&raw mut found).cast::<c_void>(), &mut flag) };
    check("MPI_Comm_get_attr", code)?;
    Ok(if flag == 0 { std::ptr::null_mut() } else { found })
}
