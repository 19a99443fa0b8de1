//! The run of a comparison.
//!
//! Contestants take turns within a repetition, so that they see the same conditions. A repetition begins when the root knows that all
//! others have entered it, and takes from the root's start, or where no root begins from the time at which all agreed to, until the last rank is
//! done, on the root's clock; of several calls in a row, the time of each is their share. Buffers are checked and filled when everybody is done.

use super::library::{Forced, forced};
use super::memory::Memory;
use super::report::{ADAPTIVE, Report, Row, TWO_LEVEL};
use crate::collective::{Collective, NATIVE, bcast};
use crate::error::{Error, Result};
use crate::intercluster::Job;
use crate::plan::LONGEST_MESSAGE;
use crate::platform::Platform;
use crate::run::groups_in_use;
use crate::schedule::Program;
use crate::topology::Rank;
use crate::transport::clocks::Clocks;
use crate::transport::library::Ready;
use crate::transport::mpi::{MpiTransport, check, gather_names, library_version, now};
use crate::transport::{Control, Executor, Ping, Task, Transport, native};
use crate::two_level::{Coordinated, InterGroup, IntraGroup, Through, TwoLevel, has_routes, through};
use crate::units;
use mpi::ffi;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{AsRaw, Communicator};
use std::collections::BTreeSet;

pub use super::library::ENVIRONMENT;

/// The group of a host, or of a machine that stands for a whole group and has its name.
fn group_of_host(platform: &Platform, host: &str) -> Option<usize> {
    let of_group = platform.groups.iter().position(|g| g.name == host);
    of_group.or_else(|| platform.host_names().iter().position(|n| n == host).map(|k| platform.host_groups()[k]))
}

/// What is compared.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The collective.
    pub collective: &'static Collective,
    /// Sizes.
    pub sizes: Vec<usize>,
    /// Roots.
    pub roots: Vec<Rank>,
    /// Repetitions that count.
    pub repetitions: usize,
    /// Repetitions before them.
    pub warm_ups: usize,
    /// Calls of each repetition, one right after the other: with several, ranks that are through go on without the others, as in programs.
    pub in_a_row: usize,
    /// Compare with each of the library's algorithms too.
    pub forced: bool,
    /// The platform whose groups the two-level broadcast takes; without it, the policy's.
    pub platform: Option<Platform>,
}

/// A way to do it.
enum Contestant {
    Adaptive,
    Library(ffi::MPI_Comm),
    TwoLevel,
}

/// A comparison on a communicator.
pub struct Comparison<'a> {
    world: &'a SimpleCommunicator,
    transport: MpiTransport,
    /// What the two-level form runs over: its own, as each contestant has, and not what all have just been brought together by.
    two_level: MpiTransport,
    executor: Executor<ffi::MPI_Request>,
    groups: Vec<usize>,
    collective: &'static Collective,
    /// On the root: what it knows about the others'.
    clocks: Clocks,
    contestants: Vec<(String, Contestant)>,
}

/// Refuses what cannot be compared, on all ranks alike. Collective.
///
/// # Errors
/// One rank, a root that there is not, or a policy that is for other hosts.
pub fn check_comparable(world: &SimpleCommunicator, settings: &Settings) -> Result<()> {
    let ranks = world.size() as usize;
    if ranks < 2 {
        return Err(Error::invalid(
            "compare collectives of one rank: it has nobody to send to; start several, such as `mpirun -n 8 collwise bench ...`",
        ));
    }
    if let Some(root) = settings.roots.iter().find(|&&r| r >= ranks) {
        return Err(Error::invalid(format!("compare collectives from rank {root} of {ranks} ranks")));
    }
    let all = |&root: &Rank| settings.sizes.iter().map(move |&bytes| (root, bytes));
    for (root, bytes) in settings.roots.iter().flat_map(all) {
        let collective = settings.collective;
        let layout = (collective.layout)(&collective.shape(ranks, root, bytes), root);
        if layout.input.max(layout.output) > LONGEST_MESSAGE {
            let (one, size, most) = (collective.one(), units::bytes(bytes), units::bytes(LONGEST_MESSAGE + 1));
            return Err(Error::invalid(format!("compare {one} of {size} over {ranks} ranks: all that a rank has must be below {most}")));
        }
    }
    known_groups(world).map(|_| ())
}

/// The group of each rank by the policy in use.
fn known_groups(world: &SimpleCommunicator) -> Result<Vec<usize>> {
    groups_in_use(world)?.ok_or_else(|| Error::invalid("compare: the policy does not fit these ranks"))
}

/// Runs a comparison that [`check_comparable`] found possible; the report on rank 0. Collective. `note` is called after each root and size.
///
/// # Errors
/// MPI's reason.
pub fn compare(world: &SimpleCommunicator, settings: &Settings, mut note: impl FnMut()) -> Result<Option<Report>> {
    let mut comparison = Comparison::new(world, settings)?;
    let hosts = gather_names(comparison.transport.comm())?;
    if let Some(groups) = settings.platform.as_ref().and_then(|p| hosts.iter().map(|h| group_of_host(p, h)).collect::<Option<Vec<_>>>()) {
        comparison.groups = groups;
    }
    let mut rows = Vec::new();
    for &root in &settings.roots {
        for &bytes in &settings.sizes {
            let offset = comparison.offset(root)?;
            rows.extend(comparison.size(root, bytes, settings, offset)?);
            note();
        }
    }
    Ok((world.rank() == 0).then(|| Report {
        collective: settings.collective.name.into(),
        library: library_version(),
        date: crate::units::utc_now(),
        hosts,
        rows,
    }))
}

impl<'a> Comparison<'a> {
    fn new(world: &'a SimpleCommunicator, settings: &Settings) -> Result<Comparison<'a>> {
        let collective = settings.collective;
        // SAFETY: what is made here lives until MPI ends
        let private = || unsafe { MpiTransport::new(crate::run::duplicate(world.as_raw())?) };
        let (transport, two_level) = (private()?, private()?);
        let groups = known_groups(world)?;
        let mut contestants = vec![
            (ADAPTIVE.to_string(), Contestant::Adaptive),
            (NATIVE.into(), Contestant::Library(crate::run::duplicate(world.as_raw())?)),
        ];
        if has_routes(collective) || through(collective).is_some() {
            contestants.push((TWO_LEVEL.into(), Contestant::TwoLevel));
        }
        if settings.forced {
            let all = forced(world.as_raw(), collective)?;
            contestants.extend(all.into_iter().map(|Forced { name, comm }| (name, Contestant::Library(comm))));
        }
        let (executor, clocks) = (Executor::default(), Clocks::default());
        Ok(Comparison { world, transport, two_level, executor, groups, collective, clocks, contestants })
    }

    /// What to add to this rank's clock to get the root's. All clocks are looked at for each size: between two they drift.
    fn offset(&mut self, root: Rank) -> Result<f64> {
        let me = self.transport.rank();
        if me != root {
            self.transport.serve_looks(root)?;
            return Ok(self.transport.receive_times(root, 1)?[0]);
        }
        let others: Vec<Rank> = (0..self.groups.len()).filter(|&r| r != root).collect();
        // what jumped is known anew, and nothing has been timed yet
        self.transport.look_at(&others, &mut self.clocks)?;
        self.transport.end_looks(&others, false)?;
        let at = now();
        let offset = |r: Rank| self.clocks.get(r).map_or(0.0, |clock| at - clock.theirs(at));
        let offsets: Vec<f64> = others.iter().map(|&r| offset(r)).collect();
        others.iter().zip(&offsets).try_for_each(|(&r, &o)| self.transport.send_times(r, &[o]))?;
        Ok(0.0)
    }

    /// All contestants on one size; the rows are right on rank 0.
    fn size(&mut self, root: Rank, bytes: usize, settings: &Settings, offset: f64) -> Result<Vec<Row>> {
        let shape = self.collective.shape(self.groups.len(), root, bytes);
        let me = self.transport.rank();
        let two_level = match through(self.collective) {
            _ if has_routes(self.collective) => two_level(&self.groups, root, bytes)?.program(me)?,
            Some(through) => coordinated(&self.groups, through, root)?.program(me, &shape)?,
            // nobody does it so
            None => Program::new(),
        };
        let mut memory = Memory::new(self.collective, &shape, me);
        let mut seconds = vec![Vec::new(); self.contestants.len()];
        let mut wrong = vec![0.0; self.contestants.len()];
        for repetition in 0..settings.warm_ups + settings.repetitions {
            for k in turns(self.contestants.len(), repetition) {
                let mark = repetition * 64 + k;
                memory.fill(mark);
                let (start, end) = self.once(k, root, &mut memory, &two_level, settings.in_a_row)?;
                let bad = if memory.is_right(mark) { 0.0 } else { 1.0 };
                let last = self.largest(end + offset)?;
                // where no root begins, from when the last rank was to
                let counts = me == root || !self.collective.root_begins();
                let first = self.largest(if counts { start + offset } else { f64::NEG_INFINITY })?;
                wrong[k] += self.largest(bad)?;
                if repetition >= settings.warm_ups {
                    seconds[k].push((last - first) / settings.in_a_row as f64);
                }
            }
        }
        let row = |((name, _), (seconds, wrong)): (&(String, Contestant), (Vec<f64>, f64))| Row {
            root,
            bytes,
            contestant: name.clone(),
            seconds,
            wrong: wrong as usize,
        };
        Ok(self.contestants.iter().zip(seconds.into_iter().zip(wrong)).map(row).collect())
    }

    /// So many calls in a row: this rank's start and end.
    fn once(&mut self, k: usize, root: Rank, memory: &mut Memory, two_level: &Program, calls: usize) -> Result<(f64, f64)> {
        let (me, ranks) = (self.transport.rank(), self.groups.len());
        let others = (0..ranks).filter(|&r| r != root);
        let (collective, arguments) = (self.collective, memory.arguments());
        let combine = |left: &[u8], into: &mut [u8]| arguments.combine(left, into);
        // as programs call them, which know their arguments
        // SAFETY: buffers of the sizes that the collective's layout says; the communicators last as long as this
        let (adaptive, native) = unsafe {
            let adaptive = crate::run::adaptive_call(self.world.as_raw(), collective, memory.layout, &arguments)?;
            let native = match self.contestants[k].1 {
                Contestant::Library(comm) => Some(Ready::new(collective, &arguments, comm)?),
                Contestant::Adaptive | Contestant::TwoLevel => None,
            };
            (adaptive, native)
        };
        if me == root {
            self.transport.receive_signals(others.clone())?;
        } else {
            self.transport.send_times(root, &[])?;
        }
        let start = if self.collective.root_begins() {
            now()
        } else {
            let others: Vec<Rank> = others.clone().collect();
            let answered_s = self.transport.ask(root, &others)?;
            self.transport.start_together(root, &others, &self.clocks, answered_s)?
        };
        for _ in 0..calls {
            match (&self.contestants[k].1, &native) {
                (Contestant::TwoLevel, _) => {
                    // SAFETY: buffers of the sizes that the collective's layout says, borrowed for this call
                    unsafe { self.executor.run(&mut self.two_level, &mut Task::new(two_level).combining(&combine), arguments.buffers, 0)? }
                }
                (_, Some(native)) => native.run()?,
                (_, None) => adaptive()?,
            }
        }
        let end = now();
        // nobody checks bytes while others still wait for theirs
        if me == root {
            self.transport.receive_signals(others.clone())?;
            others.clone().try_for_each(|r| self.transport.send_times(r, &[]))?;
        } else {
            self.transport.send_times(root, &[])?;
            self.transport.receive_times(root, 0)?;
        }
        Ok((start, end))
    }

    /// The largest of all ranks' values, on rank 0.
    fn largest(&self, value: f64) -> Result<f64> {
        let mut out = 0.0f64;
        let (from, to) = ((&raw const value).cast(), (&raw mut out).cast());
        // SAFETY: one double in, one out
        let code = unsafe { native::PMPI_Reduce(from, to, 1, ffi::RSMPI_DOUBLE, ffi::RSMPI_MAX, 0, self.transport.comm()) };
        check("MPI_Reduce", code)?;
        Ok(out)
    }
}

/// The order of so many contestants in a repetition: each is first as often, and each follows each other one as often (a Latin square balanced for what is left behind, of
/// buffers or a network's windows; Williams, Australian J. Sci. Res. A 2, 1949). Of an odd number that takes two squares, one the other backwards.
fn turns(contestants: usize, repetition: usize) -> Vec<usize> {
    let to_and_fro = |turn: usize| if turn % 2 == 1 { turn.div_ceil(2) } else { contestants - turn / 2 };
    let mut order: Vec<usize> = (0..contestants).map(|turn| (to_and_fro(turn) + repetition) % contestants).collect();
    if contestants % 2 == 1 && repetition / contestants % 2 == 1 {
        order.reverse();
    }
    order
}

/// The ranks of each group: the root's first, in it the root first.
fn groups(group_of: &[usize], root: Rank) -> Result<Vec<Vec<Rank>>> {
    let own = *group_of.get(root).ok_or_else(|| Error::invalid(format!("begin at rank {root} of {} ranks", group_of.len())))?;
    let others: BTreeSet<usize> = group_of.iter().copied().filter(|&g| g != own).collect();
    let ranks = |group: usize| {
        let mut ranks: Vec<Rank> = (0..group_of.len()).filter(|&r| group_of[r] == group).collect();
        ranks.sort_by_key(|&r| (r != root, r));
        ranks
    };
    Ok(std::iter::once(own).chain(others).map(ranks).collect())
}

/// The textbook's broadcast over groups, by each rank's group: the root sends to every other group's first rank, then a binomial tree in each
/// group.
fn two_level(group_of: &[usize], root: Rank, bytes: usize) -> Result<TwoLevel> {
    let groups = groups(group_of, root)?;
    let local = IntraGroup::of(bcast::BINOMIAL);
    let jobs = (1..groups.len()).map(|to| Job::Send { from: 0, to }).collect();
    Ok(TwoLevel {
        bytes,
        intra_group: vec![local; groups.len()],
        groups,
        hosts: Vec::new(),
        inter_group: InterGroup::Tree(jobs),
        segment: 0,
        in_flight: 0,
        near: Vec::new(),
        peers: 0,
    })
}

/// Of so many ranks no other tree of this crate has all below the root.
const MANY: usize = 1 << 10;

/// The textbook's collective through coordinators: everybody sends to the first rank of its group, the root of its own, these do what is simplest, and
/// send to everybody.
fn coordinated(group_of: &[usize], through: &Through, root: Rank) -> Result<Coordinated> {
    let collective = through.collective;
    let groups = groups(group_of, if collective.rooted { root } else { 0 })?;
    let (inside, between) = ((through.inside)().into_iter().find(|a| a.is_star(MANY, 0)), (through.between)().into_iter().next());
    let (Some(inside), Some(between)) = (inside, between) else {
        return Err(Error::invalid(format!("take {} through coordinators as textbooks do: it has no star", collective.one())));
    };
    Ok(Coordinated { collective, groups, inside: IntraGroup::of(inside), between: IntraGroup::of(between), segment: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each is first as often, and each follows each other one as often.
    #[test]
    fn contestants_take_turns() {
        for n in 1..9 {
            let squares = if n % 2 == 1 { 2 } else { 1 };
            let all: Vec<Vec<usize>> = (0..squares * n).map(|repetition| turns(n, repetition)).collect();
            for a in 0..n {
                assert_eq!(all.iter().filter(|order| order[0] == a).count(), squares, "{n}: {a} is first");
                for b in (0..n).filter(|&b| b != a) {
                    let follows = all.iter().flat_map(|order| order.windows(2)).filter(|pair| **pair == [a, b]).count();
                    assert_eq!(follows, squares, "{n}: {b} after {a}");
                }
            }
        }
    }

    #[test]
    fn the_two_level_broadcast_reaches_groups_of_any_number() {
        // four ranks of a platform with more groups than ranks
        let groups = [0, 1, 4, 5];
        for root in 0..4 {
            let two_level = two_level(&groups, root, 10).unwrap();
            let mut ranks = two_level.ranks();
            assert_eq!(ranks[0], root);
            ranks.sort_unstable();
            assert_eq!(ranks, [0, 1, 2, 3]);
            crate::schedule::check(&two_level.schedule(4).unwrap(), &two_level.specification(4)).unwrap();
        }
        assert!(two_level(&groups, 4, 10).is_err());
    }
}
