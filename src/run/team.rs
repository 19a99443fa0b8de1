//! Processes that are set up to run plans: their policy, their hosts' groups, a private communicator for their messages.
//!
//! All communicators of the same processes in the same order share one team, and the teams share one private communicator of all processes
//! where it is there: contexts are few (MPICH has about 2,000), and programs make communicators freely. Messages of different communicators
//! are told apart by their tags.

use super::communicator::give_up_all;
use super::datatype;
use super::private::{Private, all_tags, world};
use super::tags::tags;
use super::{no_copy, under_way};
use crate::collective::{Collective, Shape};
use crate::error::Result;
use crate::plan::{Planned, Planner};
use crate::topology::Rank;
use crate::transport::mpi::{MpiTransport, check};
use crate::transport::{Tag, native};
use mpi::ffi::{self, MPI_Comm};
use std::collections::BTreeMap;
use std::os::raw::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// So many teams are kept when their last communicator goes, until MPI ends: for programs that make and free communicators of the same processes
/// again and again. Only those whose messages go through the communicator of all processes: such a team has no context of MPI's, and keeps no more
/// than what was decided for it ([`Planner::rest`]). All others go with their last communicator.
pub const KEPT: usize = 32;

/// Collectives of one communicator that can be under way at the same time, each with tags of its own: fewer where MPI has few tags, so that
/// thousands of communicators can have some.
fn under_way(lanes: i64) -> i64 {
    (all_tags() / (4096 * lanes)).clamp(1, 16)
}

/// Processes that are set up.
pub struct Team {
    /// Ranks in MPI_COMM_WORLD.
    pub ranks: Vec<c_int>,
    /// Tells teams of the same processes apart; the same number on all of them.
    pub serial: i64,
    /// Of its policy.
    pub fingerprint: u64,
    /// What each size and root is done with.
    pub planner: Mutex<Planner>,
    /// Where its messages go: its own private communicator, or that of all processes.
    pub comm: MPI_Comm,
    /// The communicator, if it is its own.
    pub own: Mutex<Option<Private>>,
    /// The members' ranks there, if they are others than in the team.
    pub peers: Option<Arc<[c_int]>>,
    /// Communicators of some members, this process among them, for which a step called the library's own collective; `None` if they cannot have
    /// one. In an order that is the same on all processes, in which they are freed.
    pub among: Mutex<BTreeMap<Vec<Rank>, Option<Private>>>,
    /// Communicators may be made: not while other threads make theirs, which can block in Open MPI 4.1 for ever.
    pub may_make: bool,
    /// It stays until MPI ends. The same on all ranks.
    pub kept: bool,
    /// Tags that one collective has.
    pub lanes: i64,
    /// Communicators that use it, or are about to; changed under the lock of all teams only.
    pub users: AtomicUsize,
}

// SAFETY: MPI's handles may be used by any thread that may call MPI
unsafe impl Send for Team {}
// SAFETY: as above; nothing of a team changes but behind its locks
unsafe impl Sync for Team {}

/// Those of this process.
pub fn teams() -> MutexGuard<'static, Vec<Arc<Team>>> {
    static TEAMS: Mutex<Vec<Arc<Team>>> = Mutex::new(Vec::new());
    TEAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// MPI is about to end: nothing may be freed any more.
static ENDED: AtomicBool = AtomicBool::new(false);

/// True once MPI is about to end, and callbacks of its end alone are still called.
pub fn has_ended() -> bool {
    ENDED.load(Ordering::Relaxed)
}

/// A communicator's place in a team.
pub struct Place {
    /// The team.
    pub team: Arc<Team>,
    /// Tags that one collective has.
    lanes: i64,
    /// The first of the communicator's tags.
    tag: i64,
    /// Where they end.
    end: i64,
    /// The first one of the next collective: they are used in turns.
    next: i64,
    /// Messages are open that have them: nobody else gets them.
    kept: bool,
}

impl Place {
    /// With tags that were taken.
    pub fn new(team: Arc<Team>, tag: i64) -> Place {
        let (lanes, end) = (team.lanes, tag + tags_of(team.lanes));
        Place { team, lanes, tag, end, next: tag + 1, kept: false }
    }

    /// Its tags serve nobody any more.
    pub fn keep_tags(&mut self) {
        self.kept = true;
    }

    /// The first of the tags of the next collective.
    #[inline]
    pub fn next_tag(&mut self) -> Tag {
        let tag = self.next;
        self.next += self.lanes;
        if self.next == self.end {
            self.next = self.tag + 1;
        }
        // ranges are taken below the bound of tags
        tag as Tag
    }

    /// Where some members, this process among them, run the library's own collectives; made when it is asked for first, which is collective over
    /// them. `None` for all of them if they cannot have it.
    ///
    /// # Errors
    /// MPI's reason.
    pub fn among(&self, ranks: &[Rank]) -> Result<Option<MPI_Comm>> {
        let team = &self.team;
        if !team.may_make {
            return Ok(None);
        }
        let mut among = team.among.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = among.get(ranks) {
            return Ok(made.as_ref().map(Private::comm));
        }
        let members: Vec<c_int> = ranks.iter().map(|&r| team.peer(r)).collect();
        // SAFETY: the communicator lives as long as the team
        let parent = unsafe { MpiTransport::new(team.comm)? }.with_tag(self.tag as c_int);
        let made = Private::of_some(parent, self.tag as c_int, &members)?;
        let comm = made.as_ref().map(Private::comm);
        among.insert(ranks.to_vec(), made);
        Ok(comm)
    }
}

impl Drop for Place {
    /// The communicator leaves its team; with the last one goes what it holds.
    fn drop(&mut self) {
        if !self.kept {
            tags().give_back(self.tag);
        }
        self.team.leave();
    }
}

/// Tags that a communicator needs whose collectives have so many lanes: one is for making communicators.
pub fn tags_of(lanes: i64) -> i64 {
    1 + lanes * under_way(lanes)
}

impl Team {
    /// The rank of a member in the communicator of its messages.
    pub fn peer(&self, rank: Rank) -> c_int {
        self.peers.as_ref().map_or(rank as c_int, |peers| peers[rank])
    }

    fn planner(&self) -> MutexGuard<'_, Planner> {
        self.planner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What this rank does.
    ///
    /// # Errors
    /// The policy lacks what the plan needs.
    pub fn planned(&self, collective: &'static Collective, shape: &Shape) -> Result<Arc<Planned>> {
        self.planner().planned(collective, shape)
    }

    /// What all ranks do, in a line, and the seconds that it should take, if that is known.
    ///
    /// # Errors
    /// As [`Team::planned`].
    pub fn explain(&self, collective: &'static Collective, shape: &Shape) -> Result<(String, Option<f64>)> {
        self.planner().explain(collective, shape)
    }

    /// The policy's group of each rank.
    pub fn groups(&self) -> Vec<usize> {
        self.planner().members().iter().map(|m| m.group).collect()
    }

    /// One user less; with the last one goes the team, or what it holds if it is kept.
    pub fn leave(self: &Arc<Team>) {
        let mut all = teams();
        if self.users.fetch_sub(1, Ordering::Relaxed) == 1 && !has_ended() {
            if !self.kept {
                all.retain(|t| !Arc::ptr_eq(t, self));
            }
            // MPI has locks of its own, which it may hold when it calls this
            drop(all);
            self.planner().rest();
            self.free();
        }
    }

    /// Gives its communicators back. Where there are any, no other thread is about to use the team.
    fn free(&self) {
        let among = std::mem::take(&mut *self.among.lock().unwrap_or_else(PoisonError::into_inner));
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop((among, own));
    }
}

/// Frees everything: all communicators use the library's own collectives from then on. Collective over all processes, none of which may be in a collective of
/// ours in another thread.
pub fn end() {
    // two threads that first called at the same time have both had this called
    if has_ended() {
        return;
    }
    // all processes come here: what was begun and not waited for can complete
    under_way::finish_all();
    ENDED.store(true, Ordering::Relaxed);
    // SAFETY: what was under way is over, and no other thread calls MPI when one ends it
    unsafe { give_up_all() };
    datatype::give_up_all();
    let mut all = std::mem::take(&mut *teams());
    // in one order on all processes
    all.sort_by_key(|team| team.serial);
    all.iter().for_each(|team| team.free());
    let everybodys = world().take();
    drop(everybodys);
}

/// Has everything freed when MPI ends: the attributes of MPI_COMM_SELF are deleted first, while MPI still runs.
///
/// # Errors
/// MPI's reason.
pub fn free_at_the_end() -> Result<()> {
    unsafe extern "C" fn ended(_: MPI_Comm, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
        end();
        ffi::MPI_SUCCESS as c_int
    }
    static SET: OnceLock<()> = OnceLock::new();
    if SET.get().is_some() {
        return Ok(());
    }
    let mut key: c_int = 0;
    // SAFETY: callbacks with the signatures that MPI asks for; the attribute is never copied, since MPI_COMM_SELF's duplicates are others'
    unsafe {
        let (copy, nothing) = (Some(no_copy as _), std::ptr::null_mut());
        check("MPI_Comm_create_keyval", native::PMPI_Comm_create_keyval(copy, Some(ended), &mut key, nothing))?;
        check("MPI_Comm_set_attr", native::PMPI_Comm_set_attr(ffi::RSMPI_COMM_SELF, key, nothing))?;
        // it goes with the attribute
        check("MPI_Comm_free_keyval", native::PMPI_Comm_free_keyval(&mut key))?;
    }
    let _ = SET.set(());
    Ok(())
}
