//! How a communicator finds its team, or makes one: all its ranks vote, and come to the same answer.

use super::notice::{Reason, Why};
use super::private::{Group, MOST_CONTEXTS, Private, Turn, World, all_tags, contexts, greatest, has_context, world};
use super::settings;
use super::tags::tags;
use super::team::{KEPT, Place, Team, tags_of, teams};
use super::{rank, world_rank};
use crate::collective::COLLECTIVES;
use crate::error::{Error, Result};
use crate::plan::{Location, Planner, members};
use crate::policy::CompiledPolicy;
use crate::topology::Rank;
use crate::transport::mpi::{check, gather_texts};
use crate::transport::native;
use crate::two_level::{MOST_LANES, has_routes};
use mpi::ffi::{self, MPI_Comm};
use std::os::raw::c_int;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What becomes of a communicator.
pub enum Joined {
    /// It has a place in a team.
    Here(Place),
    /// Not yet: a private communicator is made only for those that are used again, and by one thread at a time.
    Later,
    /// It uses the library's own collectives.
    Never(Reason),
}

/// What a rank knows before any is asked.
struct Prepared {
    policy: Arc<CompiledPolicy>,
    host: String,
    group: Group,
    world: Group,
    /// Ranks in MPI_COMM_WORLD.
    ranks: Vec<c_int>,
    /// Processes of MPI_COMM_WORLD.
    all: usize,
    me: Rank,
    threads: bool,
}

impl Prepared {
    fn new(comm: MPI_Comm, group: Group, world: Group, ranks: Vec<c_int>) -> Result<Prepared> {
        let (policy, host) = (settings::policy()?, settings::host(world_rank()?)?);
        // SAFETY: a constant of the library
        let all = super::communicator::sizes(unsafe { ffi::RSMPI_COMM_WORLD })?.0;
        Ok(Prepared { policy, host, group, world, ranks, all, me: rank(comm)?, threads: threads_are_many()? })
    }

    /// Lanes of a collective: a broadcast goes between groups in as many as there are other groups at most, and others through coordinators in as
    /// many as segments are exchanged at once.
    fn lanes(&self) -> i64 {
        let policy = &self.policy.policy;
        let forms =
            policy.collectives.iter().any(|(collective, over)| collective.sized() && !has_routes(collective) && !over.two_level.is_empty());
        // and what takes the library's place in a step has some
        let instead = COLLECTIVES.iter().map(|c| c.fallback.lanes).max().unwrap_or(1);
        (policy.groups.len() - 1).max(if forms { MOST_LANES } else { instead }) as i64
    }
}

/// What each rank says before a communicator is set up; the greatest of each is what all hear. A number that all must have alike is said with its
/// complement: the greatest of the complements is the complement of the least.
struct Vote([i64; 15]);

const READY: usize = 0;
const POLICY: usize = 1;
const TEAM: usize = 3;
const WORLD: usize = 5;
const CONTEXTS: usize = 7;
const TAG: usize = 8;
const BEYOND: usize = 9;
const SERIAL: usize = 10;
const TEAMS: usize = 11;
const THREADS: usize = 12;
const BUSY: usize = 13;
const FULL: usize = 14;

/// Of a team or a communicator that is not there.
const NONE: i64 = -1;

impl Vote {
    fn alike(&self, number: usize) -> bool {
        self.0[number] == !self.0[number + 1]
    }

    /// All can go by one policy.
    fn agreed(&self) -> bool {
        self.0[READY] == 0 && self.alike(POLICY)
    }

    /// All found the same one.
    fn found(&self, number: usize) -> bool {
        self.alike(number) && self.somebody_found(number)
    }

    /// One rank at least found one.
    fn somebody_found(&self, number: usize) -> bool {
        self.0[number] != NONE
    }

    /// So many tags that are free on all ranks, taken; none where no others are left than some that may not be free everywhere, or other threads may take them.
    fn tags(&self, count: i64) -> Option<i64> {
        let from = self.0[BEYOND];
        (self.0[THREADS] == 0 && from <= all_tags() - count && tags().take(from, count)).then_some(from)
    }

    /// What becomes of a communicator instead, if no private one may be made for its messages: the only one of all processes, or one of its own.
    fn instead_of_making(&self, whole: bool, again: bool) -> Option<Joined> {
        if !again {
            return Some(Joined::Later);
        }
        // a communicator that is made here while other threads make theirs can block in Open MPI 4.1, for ever
        if self.0[THREADS] > 0 && !whole && !self.somebody_found(WORLD) {
            let text = "with MPI_THREAD_MULTIPLE a communicator of a part of the processes has plans only if one of all of them had plans before it was used \
                        twice: use one of all processes twice first";
            return Some(never(Why::Threads, text));
        }
        if self.0[BUSY] > 0 {
            return Some(Joined::Later);
        }
        if self.0[CONTEXTS] >= MOST_CONTEXTS as i64 {
            let text = format!(
                "the {MOST_CONTEXTS} private communicators that this library allows itself are in use; free some communicators, \
                 or use one of all processes twice before others: all that are used after it can share it"
            );
            return Some(never(Why::Contexts, text));
        }
        (self.0[FULL] > 0).then(no_context)
    }
}

/// A number that no other process gives out.
fn serial(me: Rank, in_world: c_int) -> i64 {
    static NEXT: AtomicI64 = AtomicI64::new(0);
    if me > 0 { i64::MIN } else { NEXT.fetch_add(1, Ordering::Relaxed) << 31 | i64::from(in_world) }
}

/// Finds or makes the team of a communicator. Collective; all ranks come to the same answer. `again`: it was used before.
///
/// # Errors
/// MPI's reason, where the ranks cannot speak with each other.
pub fn join(comm: MPI_Comm, ranks: usize, again: bool) -> Result<Joined> {
    // all know that without a word: where a process is of another world, so is another one for it. That one may be without this library
    let (group, world) = (Group::of(comm)?, Group::world()?);
    let Some(ranks) = group.ranks_in(&world, ranks)? else {
        return Ok(never(Why::Outside, "some of its processes are not in MPI_COMM_WORLD"));
    };
    let prepared = Prepared::new(comm, group, world, ranks);
    let fingerprint = prepared.as_ref().map_or(0, |p| p.policy.fingerprint());
    // whoever finds a team is its user from then on, so that nobody frees it meanwhile
    let (known, there) = {
        let all = teams();
        let mine = |t: &&Arc<Team>| t.fingerprint == fingerprint && prepared.as_ref().is_ok_and(|p| p.ranks == t.ranks);
        let known = all.iter().rev().find(mine).cloned();
        if let Some(team) = &known {
            team.users.fetch_add(1, Ordering::Relaxed);
        }
        (known, all.len())
    };
    let answer = vote_and_join(comm, prepared, known.as_ref(), there, again);
    if let Some(team) = known
        && !matches!(&answer, Ok(Joined::Here(place)) if Arc::ptr_eq(&place.team, &team))
    {
        team.leave();
    }
    answer
}

fn vote_and_join(comm: MPI_Comm, prepared: Result<Prepared>, known: Option<&Arc<Team>>, there: usize, again: bool) -> Result<Joined> {
    let ready = prepared.as_ref().ok();
    let count = ready.map_or(0, |p| tags_of(p.lanes()));
    let team = known.map_or(NONE, |t| t.serial);
    let turn = if again { Turn::take() } else { None };
    // looked for in this thread's turn, in which no other makes it; who finds it makes none
    let shared = if world().is_some() { 1 } else { NONE };
    let turn = turn.filter(|_| shared == NONE);
    let (busy, full) = (i64::from(turn.is_none()), i64::from(turn.is_some() && !has_context()));
    let print = ready.map_or(0, |p| p.policy.fingerprint() as i64);
    let (tag, beyond) = {
        let tags = tags();
        (tags.propose(count, all_tags()).unwrap_or(i64::MAX), tags.beyond())
    };
    let next = ready.map_or(i64::MIN, |p| serial(p.me, p.ranks[0]));
    let threads = i64::from(ready.is_some_and(|p| p.threads));
    let unready = i64::from(ready.is_none());
    let there = there as i64;
    let own = [unready, print, !print, team, !team, shared, !shared, contexts() as i64, tag, beyond, next, there, threads, busy, full];
    let vote = Vote(greatest(own, comm)?);
    if !vote.agreed() {
        return Ok(Joined::Never(disagreement(comm, &prepared)?));
    }
    let prepared = prepared?;
    let team = match known.filter(|_| vote.found(TEAM)) {
        Some(team) => Arc::clone(team),
        None => match prepared.new_team(comm, &vote, again)? {
            Ok(team) => team,
            Err(instead) => return Ok(instead),
        },
    };
    drop(turn);
    if let Some(tag) = vote.tags(count).map_or_else(|| agree_on_tags(comm, count, vote.0[TAG]), |tag| Ok(Some(tag)))? {
        return Ok(Joined::Here(Place::new(team, tag)));
    }
    if !vote.found(TEAM) {
        team.leave();
    }
    Ok(never(Why::Contexts, "all tags of private communicators are in use; free some communicators"))
}

fn never(why: Why, text: impl Into<String>) -> Joined {
    Joined::Never(Reason::new(why, text))
}

fn no_context() -> Joined {
    never(Why::Contexts, "MPI has no context left for a private communicator; free some communicators")
}

/// Takes so many tags that are free on all ranks, from `proposed` on. Collective. `None` on all of them if there are none.
fn agree_on_tags(comm: MPI_Comm, count: i64, proposed: i64) -> Result<Option<i64>> {
    let (mut at, mut wrapped) = (proposed, false);
    loop {
        if at > all_tags() - count {
            // nothing is free behind the last ones, of one rank at least: once more from the front
            if wrapped {
                return Ok(None);
            }
            (at, wrapped) = (0, true);
        }
        let taken = tags().take(at, count);
        // where not all could, each looks behind it; threads that try for two communicators at once draw apart since one of them comes first
        let then = tags().free(if taken { at } else { at + 1 }, count, all_tags()).unwrap_or(i64::MAX);
        match greatest([i64::from(!taken), then], comm) {
            Ok([0, _]) => return Ok(Some(at)),
            other => {
                if taken {
                    tags().give_back(at);
                }
                at = other?[1].max(at + 1);
            }
        }
    }
}

/// Why the ranks cannot go by one policy. Collective.
fn disagreement(comm: MPI_Comm, prepared: &Result<Prepared>) -> Result<Reason> {
    let own = match prepared {
        Ok(Prepared { policy, .. }) => format!("{:016x}", policy.fingerprint()),
        Err(e) => format!("! {e}"),
    };
    let told = gather_texts(comm, &own)?;
    Ok(if let Some((rank, text)) = told.iter().enumerate().find(|(_, t)| t.starts_with('!')) {
        Reason::new(Why::Policy, format!("rank {rank} failed to {}", text.trim_start_matches("! ")))
    } else {
        let rank = told.iter().position(|t| *t != told[0]).unwrap_or(0);
        Reason::new(Why::Policy, format!("rank {rank} has another policy than rank 0"))
    })
}

impl Prepared {
    /// Makes the team of these processes, which all go by one policy, or says on all of them what becomes of the communicator instead.
    fn new_team(self, comm: MPI_Comm, vote: &Vote, again: bool) -> Result<std::result::Result<Arc<Team>, Joined>> {
        let (whole, shared) = (self.ranks.len() == self.all, vote.found(WORLD));
        if let Some(instead) = if shared { None } else { vote.instead_of_making(whole, again) } {
            return Ok(Err(instead));
        }
        let known = world().as_ref().filter(|_| shared).map(|world| self.ranks.iter().map(|&r| world.hosts[r as usize].clone()).collect());
        let hosts = known.map_or_else(|| gather_texts(comm, &self.host), Ok)?;
        // the same names and policy everywhere: this fails everywhere or nowhere
        let members = match members(&self.policy.policy, &hosts) {
            Ok(members) => members,
            Err(e) => return Ok(Err(never(Why::Host, format!("failed to {e}")))),
        };
        let mut own = None;
        if !shared {
            let Some(made) = Private::of(comm, if whole { &self.world } else { &self.group })? else { return Ok(Err(no_context())) };
            if whole {
                *world() = Some(World::new(made, self.ranks.iter().copied().zip(hosts)));
            } else {
                own = Some(made);
            }
        }
        let kept = own.is_none() && vote.0[TEAMS] < KEPT as i64;
        self.team(members, own, kept, vote.0[SERIAL], vote.0[THREADS] == 0).map(Ok)
    }

    /// The team of these processes, with a communicator of its own or that of all processes.
    fn team(self, members: Vec<Location>, own: Option<Private>, kept: bool, serial: i64, may_make: bool) -> Result<Arc<Team>> {
        let lanes = self.lanes();
        let Prepared { policy, ranks, me, .. } = self;
        let through = own.as_ref().map(Private::comm).or_else(|| world().as_ref().map(|world| world.comm.comm()));
        let through = through.ok_or_else(|| Error::invalid("find the private communicator of all processes"))?;
        // in the world's order everybody's rank is the one there
        let in_order = own.is_some() || ranks.iter().copied().eq(0..ranks.len() as c_int);
        let team = Arc::new(Team {
            serial,
            fingerprint: policy.fingerprint(),
            planner: Mutex::new(Planner::new(policy, members, me, lanes as usize)),
            comm: through,
            kept,
            own: Mutex::new(own),
            peers: (!in_order).then(|| ranks.clone().into()),
            among: Mutex::default(),
            may_make,
            lanes,
            users: AtomicUsize::new(1),
            ranks,
        });
        teams().push(Arc::clone(&team));
        Ok(team)
    }
}

/// The place of MPI_COMM_WORLD, as it is in MPI_Init: all tags are free, and no other thread is there. Two messages of all processes instead of the six of a
/// vote. Nothing where they cannot all go by one policy, or it does not have their hosts: what says so are the first collectives. Collective.
///
/// # Errors
/// MPI's reason.
pub fn join_at_start(comm: MPI_Comm) -> Result<Option<Place>> {
    let group = Group::world()?;
    let Some(ranks) = group.ranks_in(&group, super::communicator::sizes(comm)?.0)? else { return Ok(None) };
    let prepared = Prepared::new(comm, group, Group::world()?, ranks);
    let own = prepared.as_ref().map_or(String::new(), |p| format!("{:016x}{}{}", p.policy.fingerprint(), u8::from(p.threads), p.host));
    let said = gather_texts(comm, &own)?;
    let Ok(prepared) = prepared else { return Ok(None) };
    let print = said[0].get(..16);
    if print.is_none() || said.iter().any(|text| text.get(..16) != print) {
        return Ok(None);
    }
    let hosts: Vec<String> = said.iter().map(|text| text[17..].to_string()).collect();
    let Ok(members) = members(&prepared.policy.policy, &hosts) else { return Ok(None) };
    let may_make = said.iter().all(|text| text[16..].starts_with('0'));
    let made = Private::at_start(comm, &prepared.world)?;
    *world() = Some(World::new(made, (0..).zip(hosts)));
    let count = tags_of(prepared.lanes());
    let serial = serial(0, 0);
    let team = prepared.team(members, None, true, serial, may_make)?;
    if !tags().take(0, count) {
        return Err(Error::invalid("take the first tags: some are in use"));
    }
    Ok(Some(Place::new(team, 0)))
}

fn threads_are_many() -> Result<bool> {
    let mut provided: c_int = 0;
    // SAFETY: out-parameter of the right type
    check("MPI_Query_thread", unsafe { native::PMPI_Query_thread(&mut provided) })?;
    Ok(provided == ffi::MPI_THREAD_MULTIPLE as c_int)
}
