//! The processes of a communicator, set up to run plans: their policy, their hosts' groups, a private communicator for their messages.
//!
//! All communicators of the same processes in the same order share one team: contexts are few (MPICH has about 2,000), and programs
//! duplicate communicators freely. Messages of different communicators are told apart by their tags.

use super::notice::{Reason, Why};
use super::settings;
use crate::collective::{Collective, bcast};
use crate::error::{Error, Result};
use crate::plan::{Limits, Member, Planned, Planner, members};
use crate::policy::CompiledPolicy;
use crate::topology::Rank;
use crate::transport::mpi::{check, gather_texts, tag_bound};
use crate::transport::native;
use mpi::ffi::{self, MPI_Comm};
use std::collections::BTreeSet;
use std::os::raw::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Contexts that a process takes at most: few beside MPICH's 2,000, which the program's own communicators need too, and enough for
/// programs whose processes are in rows, columns and planes of grids.
const MOST_CONTEXTS: usize = 64;
/// The first teams are kept when their last communicator goes: for programs that make and free communicators of the same processes again
/// and again.
const KEPT: usize = 32;

/// Processes that are set up.
pub struct Team {
    /// Ranks in MPI_COMM_WORLD.
    ranks: Vec<c_int>,
    /// Tells teams of the same processes apart; the same number on all of them.
    serial: i64,
    fingerprint: u64,
    planner: Mutex<Planner>,
    comm: MPI_Comm,
    /// The members of this rank's group, where plans may end in the library's own broadcast there.
    group: Option<Group>,
    /// Another communicator may use it at the same time.
    shared: bool,
    /// It stays until MPI ends. The same on all ranks, so that all free it at the same time.
    kept: bool,
    /// Tags that each communicator has.
    lanes: i64,
    /// Communicators that use it, or are about to; changed under the lock of all teams only.
    users: AtomicUsize,
    /// The numbers of its communicators, given out by the first rank.
    numbers: Mutex<Numbers>,
}

/// Numbers of communicators: none is given out twice at the same time, and each as late again as possible.
#[derive(Debug, Default)]
struct Numbers {
    next: i64,
    used: BTreeSet<i64>,
}

impl Numbers {
    /// A number below `bound`, if one is free.
    fn take(&mut self, bound: i64) -> Option<i64> {
        let number = (self.next..bound).chain(0..self.next.min(bound)).find(|n| !self.used.contains(n))?;
        self.used.insert(number);
        self.next = number + 1;
        Some(number)
    }
}

/// A communicator of the members of one group.
struct Group {
    comm: MPI_Comm,
    /// Ranks in the team, in the group's order.
    ranks: Vec<Rank>,
}

// SAFETY: MPI's handles may be used by any thread that may call MPI
unsafe impl Send for Team {}
// SAFETY: as above; nothing of a team changes but behind its locks
unsafe impl Sync for Team {}

fn teams() -> MutexGuard<'static, Vec<Arc<Team>>> {
    static TEAMS: Mutex<Vec<Arc<Team>>> = Mutex::new(Vec::new());
    TEAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// MPI is about to end: nothing may be freed any more.
static ENDED: AtomicBool = AtomicBool::new(false);

/// A communicator's place in a team.
pub struct Place {
    /// The team.
    pub team: Arc<Team>,
    /// The communicator's number in it.
    number: i64,
}

impl Place {
    /// The first of the communicator's tags.
    pub fn tag(&self) -> c_int {
        // numbers are given out below the bound of tags
        (self.number * self.team.lanes) as c_int
    }
}

impl Drop for Place {
    /// The communicator leaves its team; the last one frees it, unless it is kept.
    fn drop(&mut self) {
        self.team.numbers().used.remove(&self.number);
        leave(&self.team);
    }
}

/// What each rank says before a communicator is set up; the greatest of each is what all hear.
#[derive(Clone, Copy)]
struct Vote([i64; 10]);

impl Vote {
    /// `serial`: of a team that is there, -1 for none. `next`: the number and the new team's serial that the first rank gives out.
    fn new(ready: bool, fingerprint: u64, serial: i64, (contexts, teams): (usize, usize), threads: bool, next: Option<(i64, i64)>) -> Vote {
        let (number, new_serial) = next.unwrap_or((i64::MIN, i64::MIN));
        let print = fingerprint as i64;
        // the greatest of the complements is the complement of the least
        let (unready, threads) = (i64::from(!ready), i64::from(threads));
        Vote([unready, print, !print, serial, !serial, contexts as i64, number, new_serial, teams as i64, threads])
    }

    fn all_ready(&self) -> bool {
        self.0[0] == 0
    }

    fn one_policy(&self) -> bool {
        self.0[1] == !self.0[2]
    }

    fn one_team(&self) -> bool {
        self.0[3] == !self.0[4] && self.0[3] >= 0
    }

    fn room(&self) -> bool {
        self.0[5] < MOST_CONTEXTS as i64
    }

    fn number(&self) -> i64 {
        self.0[6]
    }

    fn threads(&self) -> bool {
        self.0[9] > 0
    }

    fn kept(&self) -> bool {
        self.0[8] < KEPT as i64
    }

    /// The greatest of all ranks' votes.
    fn cast(mut self, comm: MPI_Comm) -> Result<Vote> {
        let own = self.0;
        let (n, from, to) = (own.len() as c_int, own.as_ptr().cast::<c_void>(), self.0.as_mut_ptr().cast::<c_void>());
        // SAFETY: lists of the length that is passed
        let code = unsafe { native::PMPI_Allreduce(from, to, n, ffi::RSMPI_INT64_T, ffi::RSMPI_MAX, comm) };
        check("MPI_Allreduce", code)?;
        Ok(self)
    }
}

/// Finds or makes the team of a communicator. Collective; all ranks come to the same answer.
///
/// # Errors
/// MPI's reason.
pub fn join(comm: MPI_Comm, ranks: usize) -> Result<std::result::Result<Place, Reason>> {
    static SERIALS: AtomicI64 = AtomicI64::new(0);
    let world = world_ranks(comm, ranks)?;
    let prepared = settings::policy().and_then(|p| Ok((p, settings::host(world_rank()?)?)));
    let fingerprint = prepared.as_ref().map_or(0, |(p, _)| p.fingerprint());
    // whoever finds a team is its user from then on, so that nobody frees it meanwhile
    let (known, contexts, there) = {
        let all = teams();
        let mine = |t: &&Arc<Team>| t.shared && t.fingerprint == fingerprint && Some(&t.ranks) == world.as_ref();
        let known = all.iter().find(mine).cloned();
        if let Some(team) = &known {
            team.users.fetch_add(1, Ordering::Relaxed);
        }
        (known, all.iter().map(|t| t.contexts()).sum::<usize>(), all.len())
    };
    let me = rank(comm)?;
    let next = (me == 0).then(|| {
        // a new team's first communicator is number 0
        let number = known.as_ref().map_or(Some(0), |team| team.numbers().take(team.most_numbers()));
        (number.unwrap_or(-1), SERIALS.fetch_add(1, Ordering::Relaxed))
    });
    let serial = known.as_ref().map_or(-1, |team| team.serial);
    let ready = prepared.is_ok() && world.is_some();
    let vote = Vote::new(ready, fingerprint, serial, (contexts, there), threads_are_many()?, next).cast(comm)?;
    let agreed = vote.all_ready() && vote.one_policy();
    if let Some(team) = known {
        // one that not all members found is left again
        let given = next.map_or(-1, |n| n.0);
        let place = Place { team, number: if vote.one_team() { vote.number() } else { given } };
        if agreed && vote.one_team() && vote.number() >= 0 {
            return Ok(Ok(place));
        }
    }
    if agreed && vote.one_team() {
        return Ok(Err(Reason::new(Why::Contexts, "all tags of its processes' private communicator are in use; free some communicators")));
    }
    // a communicator that is made here while other threads make theirs can block in Open MPI 4.1, for ever
    if agreed && vote.threads() && !is_whole_world(world.as_deref())? {
        let text = "with MPI_THREAD_MULTIPLE only communicators of all processes, in their order in MPI_COMM_WORLD, have plans";
        return Ok(Err(Reason::new(Why::Threads, text)));
    }
    if agreed && !vote.room() {
        let text = format!("the {MOST_CONTEXTS} private communicators that this library allows itself are in use; free some communicators");
        return Ok(Err(Reason::new(Why::Contexts, text)));
    }
    let members = match agree(comm, &world, &prepared)? {
        Ok(members) => members,
        Err(reason) => return Ok(Err(reason)),
    };
    // ready, as all are
    let (Ok((policy, _)), Some(ranks)) = (prepared, world) else {
        return Err(Error::invalid("set up a communicator: its members disagree"));
    };
    let Some(team) = Team::new(comm, me, ranks, &vote, policy, members)? else {
        return Ok(Err(Reason::new(Why::Contexts, "MPI has no context left for a private communicator; free some communicators")));
    };
    let team = Arc::new(team);
    teams().push(Arc::clone(&team));
    free_at_the_end()?;
    Ok(Ok(Place { team, number: 0 }))
}

/// The members by policy and hosts, if all ranks can go by the same policy.
fn agree(
    comm: MPI_Comm,
    world: &Option<Vec<c_int>>,
    prepared: &Result<(Arc<CompiledPolicy>, String)>,
) -> Result<std::result::Result<Vec<Member>, Reason>> {
    let own = match (prepared, world) {
        (_, None) => "?".into(),
        (Ok((policy, host)), Some(_)) => format!("{:016x}\n{host}", policy.fingerprint()),
        (Err(e), Some(_)) => format!("! {e}"),
    };
    let told = gather_texts(comm, &own)?;
    let told: Vec<(&str, &str)> = told.iter().map(|t| t.split_once('\n').unwrap_or((t, ""))).collect();
    if told.iter().any(|t| t.0 == "?") {
        return Ok(Err(Reason::new(Why::Outside, "some of its processes are not in MPI_COMM_WORLD")));
    }
    if let Some((rank, (text, _))) = told.iter().enumerate().find(|(_, t)| t.0.starts_with('!')) {
        return Ok(Err(Reason::new(Why::Policy, format!("rank {rank} failed to {}", text.trim_start_matches("! ")))));
    }
    if let Some(rank) = told.iter().position(|t| t.0 != told[0].0) {
        return Ok(Err(Reason::new(Why::Policy, format!("rank {rank} has another policy than rank 0"))));
    }
    let hosts: Vec<String> = told.iter().map(|(_, h)| h.to_string()).collect();
    // the same names and policy everywhere: this fails everywhere or nowhere
    let found = prepared.as_ref().map_err(|e| e.to_string()).and_then(|(p, _)| members(&p.policy, &hosts).map_err(|e| e.to_string()));
    Ok(found.map_err(|text| Reason::new(Why::Host, format!("failed to {text}"))))
}

impl Team {
    /// `None` on all ranks if MPI has no context left.
    fn new(
        comm: MPI_Comm,
        me: Rank,
        ranks: Vec<c_int>,
        vote: &Vote,
        policy: Arc<CompiledPolicy>,
        members: Vec<Member>,
    ) -> Result<Option<Team>> {
        let Some(private) = private(comm)? else { return Ok(None) };
        let group = if ends_in_groups(&policy, &members) {
            let own = members[me].group;
            let Some(comm) = group_comm(private, own, me)? else {
                free(private);
                return Ok(None);
            };
            Some(Group { comm, ranks: (0..members.len()).filter(|&r| members[r].group == own).collect() })
        } else {
            None
        };
        // threads may use two communicators at the same time, but not the library's collectives on one of a group
        let shared = group.is_none() || !threads_are_many()?;
        let fingerprint = policy.fingerprint();
        // messages go between groups in as many lanes as there are other groups at most
        let groups = members.iter().map(|m| m.group).collect::<BTreeSet<_>>().len();
        let lanes = (groups as i64 - 1).clamp(1, i64::from(tag_bound()));
        // MPI counts a message's bytes in an `int`
        let limits = Limits { bytes: c_int::MAX as usize, lanes: lanes as usize };
        let planner = Mutex::new(Planner::new(policy, members, me, limits));
        let mut numbers = Numbers::default();
        numbers.take(1);
        Ok(Some(Team {
            ranks,
            serial: vote.0[7],
            fingerprint,
            planner,
            comm: private,
            group,
            shared,
            kept: shared && vote.kept(),
            lanes,
            users: AtomicUsize::new(1),
            numbers: Mutex::new(numbers),
        }))
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many communicators can have tags of their own.
    fn most_numbers(&self) -> i64 {
        (i64::from(tag_bound()) + 1) / self.lanes
    }

    /// The private communicator.
    pub fn comm(&self) -> MPI_Comm {
        self.comm
    }

    fn planner(&self) -> MutexGuard<'_, Planner> {
        self.planner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What this rank does in a collective, for a size and root.
    ///
    /// # Errors
    /// The policy lacks what the plan needs.
    pub fn planned(&self, collective: &'static Collective, bytes: usize, root: Rank) -> Result<Arc<Planned>> {
        self.planner().planned(collective, bytes, root)
    }

    /// The policy's group of each rank.
    pub fn groups(&self) -> Vec<usize> {
        self.planner().members().iter().map(|m| m.group).collect()
    }

    /// The communicator of this rank's group, and the place of a rank in it.
    pub fn in_group(&self, rank: Rank) -> Option<(MPI_Comm, c_int)> {
        let group = self.group.as_ref()?;
        Some((group.comm, group.ranks.iter().position(|&r| r == rank)? as c_int))
    }

    fn contexts(&self) -> usize {
        1 + usize::from(self.group.is_some())
    }

    fn free(&self) {
        self.group.iter().for_each(|g| free(g.comm));
        free(self.comm);
    }
}

/// One user less; the last one frees the team, unless it is kept.
fn leave(team: &Arc<Team>) {
    let mut all = teams();
    if team.users.fetch_sub(1, Ordering::Relaxed) == 1 && !team.kept && !ENDED.load(Ordering::Relaxed) {
        all.retain(|t| !Arc::ptr_eq(t, team));
        // MPI has locks of its own, which it may hold when it calls this
        drop(all);
        team.free();
    }
}

/// True if a plan for several groups may end in the library's own broadcast inside them.
fn ends_in_groups(policy: &CompiledPolicy, members: &[Member]) -> bool {
    let several = members.iter().any(|m| m.group != members[0].group);
    several
        && policy
            .policy
            .groups
            .iter()
            .any(|g| g.rows(&bcast::COLLECTIVE).iter().any(|row| row.algorithm == bcast::COLLECTIVE.native().name))
}

fn threads_are_many() -> Result<bool> {
    let mut provided: c_int = 0;
    // SAFETY: out-parameter of the right type
    check("MPI_Query_thread", unsafe { native::PMPI_Query_thread(&mut provided) })?;
    Ok(provided == ffi::MPI_THREAD_MULTIPLE as c_int)
}

/// A private communicator of the same processes, or `None` on all of them. Not a duplicate: that would call the copy functions of the
/// program's attributes.
fn private(comm: MPI_Comm) -> Result<Option<MPI_Comm>> {
    // SAFETY: a valid communicator, out-parameters of the right types; what the communicator does about errors is as before afterwards
    let (code, made) = unsafe {
        let (mut handler, mut group, mut made) = (ffi::RSMPI_ERRORS_RETURN, ffi::RSMPI_GROUP_EMPTY, ffi::RSMPI_COMM_NULL);
        check("MPI_Comm_group", native::PMPI_Comm_group(comm, &mut group))?;
        check("MPI_Comm_get_errhandler", native::PMPI_Comm_get_errhandler(comm, &mut handler))?;
        check("MPI_Comm_set_errhandler", native::PMPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN))?;
        let code = native::PMPI_Comm_create(comm, group, &mut made);
        // SimGrid's MPI gives a null pointer for its default, and does not take it back
        if handler != std::mem::zeroed() {
            check("MPI_Comm_set_errhandler", native::PMPI_Comm_set_errhandler(comm, handler))?;
            native::PMPI_Errhandler_free(&mut handler);
        }
        native::PMPI_Group_free(&mut group);
        (code, made)
    };
    everywhere(comm, code, made)
}

/// A communicator of the ranks of one group.
fn group_comm(private: MPI_Comm, group: usize, me: Rank) -> Result<Option<MPI_Comm>> {
    // SAFETY: out-parameter of the right type; every member makes the same call
    let (code, made) = unsafe {
        let mut made = ffi::RSMPI_COMM_NULL;
        (native::PMPI_Comm_split(private, group as c_int, me as c_int, &mut made), made)
    };
    everywhere(private, code, made)
}

/// A communicator that was made on all ranks of `among`, else none.
fn everywhere(among: MPI_Comm, code: c_int, made: MPI_Comm) -> Result<Option<MPI_Comm>> {
    // SAFETY: a constant of the library
    let ours = code == ffi::MPI_SUCCESS as c_int && made != unsafe { ffi::RSMPI_COMM_NULL };
    let all = Vote([i64::from(!ours), 0, 0, 0, 0, 0, 0, 0, 0, 0]).cast(among)?.all_ready();
    if ours && !all {
        free(made);
    }
    if all {
        // SAFETY: made above
        check("MPI_Comm_set_errhandler", unsafe { native::PMPI_Comm_set_errhandler(made, ffi::RSMPI_ERRORS_RETURN) })?;
    }
    Ok(all.then_some(made))
}

fn free(mut comm: MPI_Comm) {
    // SAFETY: made by this module, used by nobody else
    unsafe { native::PMPI_Comm_free(&mut comm) };
}

/// Has everything freed when MPI ends: the attributes of MPI_COMM_SELF are deleted first, while MPI still runs.
fn free_at_the_end() -> Result<()> {
    unsafe extern "C" fn ended(_: MPI_Comm, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
        ENDED.store(true, Ordering::Relaxed);
        let all = std::mem::take(&mut *teams());
        all.iter().for_each(|team| team.free());
        ffi::MPI_SUCCESS as c_int
    }
    static SET: OnceLock<()> = OnceLock::new();
    if SET.set(()).is_err() {
        return Ok(());
    }
    let mut key: c_int = 0;
    // SAFETY: callbacks with the signatures that MPI asks for; the attribute is never copied, since MPI_COMM_SELF's duplicates are others'
    unsafe {
        let (copy, nothing) = (Some(super::communicator::no_copy as _), std::ptr::null_mut());
        check("MPI_Comm_create_keyval", native::PMPI_Comm_create_keyval(copy, Some(ended), &mut key, nothing))?;
        check("MPI_Comm_set_attr", native::PMPI_Comm_set_attr(ffi::RSMPI_COMM_SELF, key, nothing))
    }
}

/// The ranks of a communicator's processes in MPI_COMM_WORLD, if they are all there.
fn world_ranks(comm: MPI_Comm, ranks: usize) -> Result<Option<Vec<c_int>>> {
    let own: Vec<c_int> = (0..ranks as c_int).collect();
    let mut found = vec![0 as c_int; ranks];
    // SAFETY: lists of the length that is passed; the groups are freed here
    unsafe {
        let (mut group, mut world) = (ffi::RSMPI_GROUP_EMPTY, ffi::RSMPI_GROUP_EMPTY);
        check("MPI_Comm_group", native::PMPI_Comm_group(comm, &mut group))?;
        check("MPI_Comm_group", native::PMPI_Comm_group(ffi::RSMPI_COMM_WORLD, &mut world))?;
        let code = native::PMPI_Group_translate_ranks(group, ranks as c_int, own.as_ptr(), world, found.as_mut_ptr());
        check("MPI_Group_translate_ranks", code)?;
        native::PMPI_Group_free(&mut group);
        native::PMPI_Group_free(&mut world);
        Ok((!found.contains(&ffi::RSMPI_UNDEFINED)).then_some(found))
    }
}

/// True for all processes of MPI_COMM_WORLD in their order.
fn is_whole_world(ranks: Option<&[c_int]>) -> Result<bool> {
    let mut size: c_int = 0;
    // SAFETY: a constant of the library, an out-parameter of the right type
    check("MPI_Comm_size", unsafe { native::PMPI_Comm_size(ffi::RSMPI_COMM_WORLD, &mut size) })?;
    Ok(ranks.is_some_and(|ranks| ranks.iter().copied().eq(0..size)))
}

/// This process's rank in a communicator.
pub fn rank(comm: MPI_Comm) -> Result<Rank> {
    let mut rank: c_int = 0;
    // SAFETY: out-parameter of the right type, a valid communicator
    check("MPI_Comm_rank", unsafe { native::PMPI_Comm_rank(comm, &mut rank) })?;
    Ok(rank as Rank)
}

/// This process's rank in MPI_COMM_WORLD.
pub fn world_rank() -> Result<Rank> {
    // SAFETY: a constant of the library
    rank(unsafe { ffi::RSMPI_COMM_WORLD })
}
