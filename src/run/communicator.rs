//! What a communicator carries: its place in a team of processes, as an MPI attribute.

use super::notice::{Reason, Why, once};
use super::settings;
use super::team::{Place, join, rank, world_rank};
use crate::collective::Collective;
use crate::error::{Error, Result};
use crate::schedule::{Program, Trace};
use crate::topology::Rank;
use crate::transport::Executor;
use crate::transport::mpi::{MpiTransport, check, check_launcher};
use crate::transport::native;
use mpi::ffi;
use mpi::raw::AsRaw;
use std::os::raw::{c_int, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What a communicator is to this library.
pub(super) enum State {
    /// It has plans.
    Planned(Box<Planned>),
    /// It uses the library's own collectives.
    Native,
}

/// A communicator with plans.
pub(super) struct Planned {
    place: Place,
    transport: MpiTransport,
    executor: Executor<ffi::MPI_Request>,
}

impl State {
    /// Sets a communicator up. Collective; all members come to the same kind of state.
    fn new(comm: ffi::MPI_Comm) -> Result<State> {
        let (ranks, remote) = sizes(comm)?;
        if remote.is_some() {
            if speaks_for_both(comm)? {
                Reason::new(Why::InterCommunicator, "it joins two groups (an inter-communicator)").tell_once(ranks);
            }
            return Ok(State::Native);
        }
        if ranks == 1 {
            alone()?;
            return Ok(State::Native);
        }
        match join(comm, ranks)? {
            Ok(place) => Planned::new(place).map(|p| State::Planned(Box::new(p))),
            Err(reason) => {
                if rank(comm)? == 0 {
                    reason.tell_once(ranks);
                }
                Ok(State::Native)
            }
        }
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
    let mut other: c_int = 0;
    // SAFETY: a valid inter-communicator, lists of one entry; the groups are freed here
    unsafe {
        let (mut remote, mut world) = (ffi::RSMPI_GROUP_EMPTY, ffi::RSMPI_GROUP_EMPTY);
        check("MPI_Comm_remote_group", native::PMPI_Comm_remote_group(comm, &mut remote))?;
        check("MPI_Comm_group", native::PMPI_Comm_group(ffi::RSMPI_COMM_WORLD, &mut world))?;
        check("MPI_Group_translate_ranks", native::PMPI_Group_translate_ranks(remote, 1, &0, world, &mut other))?;
        native::PMPI_Group_free(&mut remote);
        native::PMPI_Group_free(&mut world);
    }
    Ok((world_rank()? as c_int) < other || other < 0)
}

/// One rank alone needs nothing; but a launcher of another MPI library starts many programs of one rank each, and the user should know.
fn alone() -> Result<()> {
    // SAFETY: a constant of the library
    let (world, _) = sizes(unsafe { ffi::RSMPI_COMM_WORLD })?;
    let later = ["OMPI_COMM_WORLD_RANK", "PMI_RANK"].iter().any(|name| std::env::var(name).is_ok_and(|rank| rank != "0"));
    if let Err(e) = check_launcher(world)
        && !later
    {
        once(Why::Launcher, || format!("every rank runs by itself: failed to {e}"));
    }
    Ok(())
}

impl Planned {
    fn new(place: Place) -> Result<Planned> {
        // SAFETY: the team's communicator lives as long as the place in it
        let transport = unsafe { MpiTransport::new(place.team.comm())? }.with_tag(place.tag());
        Ok(Planned { place, transport, executor: Executor::default() })
    }

    /// What to do in a collective, for a size and root.
    ///
    /// # Errors
    /// The policy lacks what the plan needs.
    pub fn planned(&self, collective: &'static Collective, bytes: usize, root: Rank) -> Result<Arc<crate::plan::Planned>> {
        self.place.team.planned(collective, bytes, root)
    }

    /// Runs a program, and the library's own broadcast inside this rank's group after it, from the rank `then_from`.
    ///
    /// # Safety
    /// `data` must be valid for reads and writes of `len` bytes.
    ///
    /// # Errors
    /// MPI's reason.
    pub unsafe fn run(&mut self, program: &Program, then_from: Option<Rank>, data: *mut u8, len: usize) -> Result<()> {
        let mut trace = settings::trace_folder().map(|_| Trace::new(program.len()));
        // SAFETY: the caller vouches for `data`
        unsafe { self.executor.run(&mut self.transport, program, data, len, trace.as_mut())? };
        if let Some((comm, root)) = then_from.and_then(|root| self.place.team.in_group(root)) {
            // plans keep what is broadcast so below what an `int` counts
            // SAFETY: as above
            let code = unsafe { native::PMPI_Bcast(data.cast::<c_void>(), len as c_int, ffi::RSMPI_UINT8_T, root, comm) };
            check("MPI_Bcast", code)?;
        }
        // what is communicated does not hang on what can be written
        if let (Some(folder), Some(trace)) = (settings::trace_folder(), trace)
            && let Err(e) = self.write_trace(folder, program, &trace, len)
        {
            once(Why::Trace, || format!("failed to {e}; this rank goes on without its trace"));
        }
        Ok(())
    }

    /// Appends what this rank did to its file in the trace folder: a JSON line for each broadcast, with each operation's start and
    /// end on this rank's clock.
    fn write_trace(&self, folder: &Path, program: &Program, trace: &Trace, bytes: usize) -> Result<()> {
        use std::io::Write;
        let path = folder.join(format!("rank-{}.jsonl", world_rank()?));
        let actions: Vec<_> = program.actions().collect();
        let ranks = self.place.team.groups().len();
        let line = serde_json::json!({ "bytes": bytes, "ranks": ranks, "actions": actions, "start_s": trace.start, "end_s": trace.end });
        let written = std::fs::OpenOptions::new().create(true).append(true).open(&path).and_then(|mut file| writeln!(file, "{line}"));
        written.map_err(|reason| Error::Io { action: "write", path, reason })
    }
}

/// The policy's group of each rank of a communicator, if it has a policy. Collective.
pub(crate) fn groups_in_use(comm: &impl AsRaw<Raw = ffi::MPI_Comm>) -> Result<Option<Vec<usize>>> {
    // SAFETY: a communicator of the `mpi` crate is valid
    match unsafe { state(comm.as_raw())? } {
        State::Planned(planned) => Ok(Some(planned.place.team.groups())),
        State::Native => Ok(None),
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

/// Counts the communicators that went: what was remembered by handle is void when this changes, since handles are used again.
pub(super) static GENERATION: AtomicU64 = AtomicU64::new(0);

/// The attribute under which a communicator keeps its state.
fn keyval() -> Result<c_int> {
    static KEYVAL: OnceLock<c_int> = OnceLock::new();
    if let Some(&key) = KEYVAL.get() {
        return Ok(key);
    }
    let mut key: c_int = 0;
    // SAFETY: callbacks with the signatures that MPI asks for
    check("MPI_Comm_create_keyval", unsafe {
        native::PMPI_Comm_create_keyval(Some(no_copy), Some(dropped), &mut key, std::ptr::null_mut())
    })?;
    Ok(*KEYVAL.get_or_init(|| key))
}

/// A duplicate starts without state: it is another communicator.
pub(super) unsafe extern "C" fn no_copy(
    _: ffi::MPI_Comm,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: MPI passes a valid out-parameter
    unsafe { *flag = 0 };
    ffi::MPI_SUCCESS as c_int
}

/// The communicator goes, and its state with it.
unsafe extern "C" fn dropped(_: ffi::MPI_Comm, _: c_int, state: *mut c_void, _: *mut c_void) -> c_int {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    // SAFETY: set in `state` below from a box, and given up here for good
    drop(unsafe { Box::from_raw(state.cast::<State>()) });
    ffi::MPI_SUCCESS as c_int
}

/// The state of a communicator, set up at first use (collective then).
///
/// # Safety
/// `comm` must be valid, and no other thread may use its state: MPI forbids two collectives on one communicator at a time.
///
/// # Errors
/// MPI's reason.
pub(super) unsafe fn state<'a>(comm: ffi::MPI_Comm) -> Result<&'a mut State> {
    let key = keyval()?;
    let (mut found, mut flag): (*mut State, c_int) = (std::ptr::null_mut(), 0);
    // SAFETY: MPI writes the attribute's value, a pointer that was set below
    unsafe {
        check("MPI_Comm_get_attr", native::PMPI_Comm_get_attr(comm, key, (&raw mut found).cast::<c_void>(), &mut flag))?;
        if flag == 0 {
            found = Box::into_raw(Box::new(State::new(comm)?));
            check("MPI_Comm_set_attr", native::PMPI_Comm_set_attr(comm, key, found.cast::<c_void>()))?;
        }
        Ok(&mut *found)
    }
}
