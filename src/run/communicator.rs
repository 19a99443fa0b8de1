//! What a communicator carries: its private duplicate and its plans, as an MPI attribute.

use super::settings;
use crate::error::{Error, Result};
use crate::plan::{Member, members, plan};
use crate::policy::CompiledPolicy;
use crate::schedule::{Program, Trace};
use crate::topology::Rank;
use crate::transport::Executor;
use crate::transport::mpi::{MpiTransport, check, gather_texts};
use mpi::ffi;
use mpi::raw::AsRaw;
use rustc_hash::FxHashMap;
use std::os::raw::{c_int, c_void};
use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Plans kept for one communicator; more sizes than that are planned again.
const PLANS: usize = 4096;

/// What a communicator is to this library.
pub enum State {
    /// It has plans.
    Planned(Box<Planned>),
    /// It uses the library's own collectives, and why.
    Native(String),
}

/// A communicator with plans.
pub struct Planned {
    policy: Arc<CompiledPolicy>,
    members: Vec<Member>,
    transport: MpiTransport,
    /// The members of this rank's group, in the order of the communicator.
    group_comm: ffi::MPI_Comm,
    group_ranks: Vec<Rank>,
    executor: Executor<ffi::MPI_Request>,
    plans: FxHashMap<(usize, Rank), Arc<Action>>,
    /// True for MPI_COMM_WORLD, whose attributes go when MPI itself goes: nothing may be freed then.
    for_ever: bool,
}

/// What one rank does for one size and root.
#[derive(Debug)]
pub enum Action {
    /// Call the library.
    Native,
    /// Run a program; then, if there is one, the library's broadcast in the own group from this position of it.
    Run(Program, Option<usize>),
}

impl State {
    /// Sets a communicator up. Collective; all members come to the same kind of state.
    ///
    /// # Errors
    /// MPI's reason.
    pub fn new(comm: ffi::MPI_Comm) -> Result<State> {
        let mut inter: c_int = 0;
        // SAFETY: the caller's communicator is valid
        check(0, "MPI_Comm_test_inter", unsafe { ffi::PMPI_Comm_test_inter(comm, &mut inter) })?;
        if inter != 0 {
            return Ok(State::Native("it joins two groups (an inter-communicator)".into()));
        }
        let private = duplicate(comm)?;
        // SAFETY: `private` was made here and lives as long as the state
        let transport = unsafe { MpiTransport::new(private)? };
        let prepared = settings::policy().and_then(|p| Ok((p, settings::host(world_rank()?)?)));
        let (fingerprint, host) = match &prepared {
            Ok((policy, host)) => (format!("{:016x}", policy.policy.fingerprint()), host.clone()),
            Err(e) => (format!("! {e}"), String::new()),
        };
        let told = gather_texts(private, &format!("{fingerprint}\n{host}"))?;
        let told: Vec<(&str, &str)> = told.iter().map(|t| t.split_once('\n').unwrap_or((t, ""))).collect();
        let disagree = told.iter().position(|(f, _)| f.starts_with('!') || *f != told[0].0);
        let reason = match (disagree, prepared) {
            (Some(rank), _) if told[rank].0.starts_with('!') => format!("rank {rank} failed to {}", told[rank].0.trim_start_matches("! ")),
            (Some(rank), _) => format!("rank {rank} has another policy than rank 0"),
            (None, Err(e)) => e.to_string(),
            (None, Ok((policy, _))) => {
                let hosts: Vec<String> = told.iter().map(|(_, h)| h.to_string()).collect();
                // the same names and policy everywhere: this fails everywhere or nowhere
                match members(&policy.policy, &hosts) {
                    Ok(members) => return Planned::new(comm, transport, policy, members).map(|p| State::Planned(Box::new(p))),
                    Err(e) => format!("failed to {e}"),
                }
            }
        };
        free(private);
        if transport.rank_is_first() {
            eprintln!("collwise: a communicator of {} ranks uses the MPI library's own collectives: {reason}", told.len());
        }
        Ok(State::Native(reason))
    }
}

impl Planned {
    fn new(comm: ffi::MPI_Comm, transport: MpiTransport, policy: Arc<CompiledPolicy>, members: Vec<Member>) -> Result<Planned> {
        let me = crate::transport::Transport::rank(&transport);
        let group = members[me].group;
        // SAFETY: out-parameter of the right type; every member makes the same call
        let group_comm = unsafe {
            let mut out = ffi::RSMPI_COMM_NULL;
            check(me, "MPI_Comm_split", ffi::PMPI_Comm_split(transport.comm(), group as c_int, me as c_int, &mut out))?;
            out
        };
        let group_ranks = (0..members.len()).filter(|&r| members[r].group == group).collect();
        // SAFETY: a constant of the library
        let for_ever = comm == unsafe { ffi::RSMPI_COMM_WORLD };
        let plans = FxHashMap::default();
        Ok(Planned { policy, members, transport, group_comm, group_ranks, executor: Executor::default(), plans, for_ever })
    }

    /// What to do for a size and root.
    ///
    /// # Errors
    /// The root is outside the communicator.
    pub fn action(&mut self, bytes: usize, root: Rank) -> Result<Arc<Action>> {
        if let Some(action) = self.plans.get(&(bytes, root)) {
            return Ok(Arc::clone(action));
        }
        if self.plans.len() >= PLANS {
            self.plans.clear();
        }
        let plan = plan(&self.policy, &self.members, root, bytes)?;
        let me = crate::transport::Transport::rank(&self.transport);
        let action = Arc::new(if plan.is_native() {
            Action::Native
        } else {
            let k = plan.hierarchy.group_of(me);
            let coordinator = plan.hierarchy.groups[k][0];
            let position = self.group_ranks.iter().position(|&r| r == coordinator);
            Action::Run(plan.program(me), position.filter(|_| plan.hierarchy.local_native(k)))
        });
        self.plans.insert((bytes, root), Arc::clone(&action));
        Ok(action)
    }

    /// Runs a program, and the group's own broadcast after it.
    ///
    /// # Safety
    /// `data` must be valid for reads and writes of `len` bytes.
    ///
    /// # Errors
    /// MPI's reason.
    pub unsafe fn run(&mut self, program: &Program, then_from: Option<usize>, data: *mut u8, len: usize) -> Result<()> {
        if let Some(folder) = settings::trace_folder() {
            let mut trace = Trace::new(program.len());
            // SAFETY: the caller vouches for `data`
            unsafe { self.executor.run(&mut self.transport, program, data, len, Some(&mut trace))? };
            self.write_trace(folder, program, &trace, len)?;
        } else {
            // SAFETY: the caller vouches for `data`
            unsafe { self.executor.run(&mut self.transport, program, data, len, None)? };
        }
        let Some(root) = then_from else { return Ok(()) };
        let me = crate::transport::Transport::rank(&self.transport);
        let count = c_int::try_from(len).map_err(|_| Error::Rank { rank: me, reason: format!("{len} bytes are more than MPI counts") })?;
        // SAFETY: as above
        let code = unsafe { ffi::PMPI_Bcast(data.cast::<c_void>(), count, ffi::RSMPI_UINT8_T, root as c_int, self.group_comm) };
        check(me, "MPI_Bcast", code)
    }

    /// Appends what this rank did to its file in the trace folder: a JSON line for each broadcast, with each operation's start and
    /// end on this rank's clock.
    fn write_trace(&self, folder: &Path, program: &Program, trace: &Trace, bytes: usize) -> Result<()> {
        use std::io::Write;
        let path = folder.join(format!("rank-{}.jsonl", world_rank()?));
        let actions: Vec<_> = program.actions().collect();
        let line = serde_json::json!({ "bytes": bytes, "ranks": self.members.len(), "actions": actions, "start_s": trace.start, "end_s": trace.end });
        let written = std::fs::OpenOptions::new().create(true).append(true).open(&path).and_then(|mut file| writeln!(file, "{line}"));
        written.map_err(|reason| Error::Io { action: "write", path, reason })
    }

    /// Each member's place in the policy.
    pub fn members(&self) -> &[Member] {
        &self.members
    }
}

/// The policy's group of each rank of a communicator, if it has a policy. Collective.
pub(crate) fn groups_in_use(comm: &impl AsRaw<Raw = ffi::MPI_Comm>) -> Result<Option<Vec<usize>>> {
    // SAFETY: a communicator of the `mpi` crate is valid
    match unsafe { state(comm.as_raw())? } {
        State::Planned(planned) => Ok(Some(planned.members().iter().map(|m| m.group).collect())),
        State::Native(_) => Ok(None),
    }
}

/// This process's rank in MPI_COMM_WORLD.
fn world_rank() -> Result<usize> {
    let mut rank: c_int = 0;
    // SAFETY: MPI is initialised wherever there is a communicator
    check(0, "MPI_Comm_rank", unsafe { ffi::PMPI_Comm_rank(ffi::RSMPI_COMM_WORLD, &mut rank) })?;
    Ok(rank as usize)
}

/// A private duplicate that returns errors instead of ending the job.
pub(crate) fn duplicate(comm: ffi::MPI_Comm) -> Result<ffi::MPI_Comm> {
    // SAFETY: out-parameter of the right type; `comm` is valid
    unsafe {
        let mut private = ffi::RSMPI_COMM_NULL;
        check(0, "MPI_Comm_dup", ffi::PMPI_Comm_dup(comm, &mut private))?;
        check(0, "MPI_Comm_set_errhandler", ffi::PMPI_Comm_set_errhandler(private, ffi::RSMPI_ERRORS_RETURN))?;
        Ok(private)
    }
}

fn free(mut comm: ffi::MPI_Comm) {
    // SAFETY: made by this module, used by nobody else
    unsafe { ffi::PMPI_Comm_free(&mut comm) };
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
    check(0, "MPI_Comm_create_keyval", unsafe {
        ffi::PMPI_Comm_create_keyval(Some(no_copy), Some(dropped), &mut key, std::ptr::null_mut())
    })?;
    Ok(*KEYVAL.get_or_init(|| key))
}

/// A duplicate starts without state: it is another communicator.
unsafe extern "C" fn no_copy(_: ffi::MPI_Comm, _: c_int, _: *mut c_void, _: *mut c_void, _: *mut c_void, flag: *mut c_int) -> c_int {
    // SAFETY: MPI passes a valid out-parameter
    unsafe { *flag = 0 };
    ffi::MPI_SUCCESS as c_int
}

/// The communicator goes, and its state with it.
unsafe extern "C" fn dropped(_: ffi::MPI_Comm, _: c_int, state: *mut c_void, _: *mut c_void) -> c_int {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    // SAFETY: set in `state` below from a box, and given up here for good
    let state = unsafe { Box::from_raw(state.cast::<State>()) };
    if let State::Planned(planned) = *state
        && !planned.for_ever
    {
        free(planned.group_comm);
        free(planned.transport.comm());
    }
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
        check(0, "MPI_Comm_get_attr", ffi::PMPI_Comm_get_attr(comm, key, (&raw mut found).cast::<c_void>(), &mut flag))?;
        if flag == 0 {
            found = Box::into_raw(Box::new(State::new(comm)?));
            check(0, "MPI_Comm_set_attr", ffi::PMPI_Comm_set_attr(comm, key, found.cast::<c_void>()))?;
        }
        Ok(&mut *found)
    }
}
