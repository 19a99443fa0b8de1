//! Random mixes of collectives, every byte checked against what MPI says: all of them, blocking and not, in place and not, of several datatypes, by operations
//! that commute and ones that do not, on communicators of several kinds that are freed and made again, from several threads at the same time.
//!
//! ```text
//! COLLWISE_POLICY=policy.toml mpirun -n 8 target/release/examples/random_mix [SECONDS] [SEED] [THREADS]
//! ```
//!
//! Each thread has communicators of its own. Some of its batches block, on any of them; some begin calls on one of them and complete each at a time that
//! each rank draws for itself, with blocking calls of the same communicator between; some begin calls on all of them. Between rounds of batches one
//! communicator of each thread is freed and another one made. At the end memory has not grown since a third of the time.
#![allow(unsafe_code)] // user operations, datatypes by their handles, and communicators in threads

#[path = "begun.rs"]
mod begun;
#[path = "random_mix_items.rs"]
mod items;
#[path = "resident.rs"]
mod resident;

use begun::complete;
use collwise::run::{AdaptiveCollectives, private_communicators};
use items::{By, Handles, Item, Items, Map, after};
use mpi::collective::{SystemOperation, UnsafeUserOperation};
use mpi::datatype::UserDatatype;
use mpi::request::LocalScope;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use resident::resident;
use std::time::{Duration, Instant};

/// Communicators of each thread, batches of a round, and calls of a batch.
const COMMUNICATORS: usize = 3;
const BATCHES: usize = 4;
const CALLS: usize = 12;
/// Items of a block.
const COUNTS: [usize; 6] = [0, 1, 3, 100, 1000, 9000];
/// What caches and allocators may take after a third of the time, in bytes.
const MORE: usize = 24 << 20;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Bcast,
    Barrier,
    Allreduce,
    Reduce,
    ReduceScatter,
    Allgather,
    Gather,
    Scatter,
    Alltoall,
    Ibcast,
    Iallreduce,
    Ibarrier,
}

use Kind::*;

/// The blocking ones first.
const KINDS: [Kind; 12] =
    [Bcast, Barrier, Allreduce, Reduce, ReduceScatter, Allgather, Gather, Scatter, Alltoall, Ibcast, Iallreduce, Ibarrier];
const BLOCKING: usize = 9;

impl Kind {
    fn combines(self) -> bool {
        matches!(self, Allreduce | Reduce | ReduceScatter | Iallreduce)
    }

    fn has_in_place(self) -> bool {
        !matches!(self, Bcast | Barrier | Ibcast | Ibarrier)
    }
}

/// What all ranks draw alike.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    kind: Kind,
    /// Which of the thread's communicators.
    comm: usize,
    root: usize,
    count: usize,
    in_place: bool,
    by: By,
    mark: u64,
}

/// Something to call with what is checked afterwards.
trait Work {
    /// Carries it out, if it blocks, or begins it.
    fn begin<'a, 's>(&'a mut self, comm: &SimpleCommunicator, handles: &Handles, scope: &'s LocalScope<'a>) -> Option<Begun<'a, 's>>;
    fn check(&self);
}

/// What is under way in a scope of the `mpi` crate.
type Begun<'a, 's> = begun::Begun<'a, &'s LocalScope<'a>>;

/// A call of one rank.
struct Call<T> {
    drawn: Drawn,
    me: usize,
    ranks: usize,
    given: Items<T>,
    got: Items<T>,
}

impl<T: Item> Call<T> {
    fn new(drawn: Drawn, comm: &SimpleCommunicator, handles: &Handles, own: &mut impl Rng) -> Call<T> {
        let (me, ranks) = (comm.rank() as usize, comm.size() as usize);
        let drawn = Drawn { root: drawn.root % ranks, ..drawn };
        let Drawn { kind, root, count, in_place, .. } = drawn;
        let at_root = |blocks: usize| if me == root { blocks } else { 0 };
        let (given, got) = match kind {
            Barrier | Ibarrier => (0, 0),
            Bcast | Ibcast => (0, 1),
            Allreduce | Iallreduce => (1, 1),
            Reduce => (1, at_root(1)),
            ReduceScatter => (ranks, 1),
            Allgather => (1, ranks),
            Gather => (1, at_root(ranks)),
            Scatter => (at_root(ranks), 1),
            Alltoall => (ranks, ranks),
        };
        let (given, got) = if in_place { (0, given.max(got)) } else { (given, got) };
        let mut apart = || !kind.combines() && own.random_bool(0.2);
        let mut call =
            Call { drawn, me, ranks, given: Items::new(given, count, apart(), handles), got: Items::new(got, count, apart(), handles) };
        let number = call.numbers();
        (0..given).for_each(|block| call.given.fill(block, |k| number(me, block, k)));
        match kind {
            Bcast | Ibcast if me == root => call.got.fill(0, |k| number(root, 0, k)),
            Allgather if in_place => call.got.fill(me, |k| number(me, 0, k)),
            Gather if in_place => call.got.fill(at_root(me), |k| number(me, 0, k)),
            Scatter if in_place && me != root => {}
            _ if in_place => (0..got).for_each(|block| call.got.fill(block, |k| number(me, block, k))),
            _ => {}
        }
        call
    }

    /// What a rank gives in a block.
    fn numbers(&self) -> impl Fn(usize, usize, usize) -> T + use<T> {
        let Drawn { count, mark, .. } = self.drawn;
        move |rank, block, k| {
            let place = (block * count + k) as u64;
            T::of(place.wrapping_mul(2_654_435_761).wrapping_add((rank as u64 + 1).wrapping_mul(0x9E37_79B9) ^ mark))
        }
    }
}

impl<T: Item> Work for Call<T> {
    fn begin<'a, 's>(&'a mut self, comm: &SimpleCommunicator, handles: &Handles, scope: &'s LocalScope<'a>) -> Option<Begun<'a, 's>> {
        let Drawn { kind, root, in_place, by, .. } = self.drawn;
        let op = by.operation(handles);
        let (given, got) = (&self.given, &mut self.got);
        match (kind, in_place) {
            (Bcast, _) => comm.adaptive_bcast(root, got),
            (Barrier, _) => comm.adaptive_barrier(),
            (Allreduce, false) => comm.adaptive_allreduce(given, got, op),
            (Allreduce, true) => comm.adaptive_allreduce_in_place(got, op),
            (Reduce, false) => comm.adaptive_reduce(root, given, got, op),
            (Reduce, true) => comm.adaptive_reduce_in_place(root, got, op),
            (ReduceScatter, false) => comm.adaptive_reduce_scatter_block(given, got, op),
            (ReduceScatter, true) => comm.adaptive_reduce_scatter_block_in_place(got, op),
            (Allgather, false) => comm.adaptive_allgather(given, got),
            (Allgather, true) => comm.adaptive_allgather_in_place(got),
            (Gather, false) => comm.adaptive_gather(root, given, got),
            (Gather, true) => comm.adaptive_gather_in_place(root, got),
            (Scatter, false) => comm.adaptive_scatter(root, given, got),
            (Scatter, true) => comm.adaptive_scatter_in_place(root, got),
            (Alltoall, false) => comm.adaptive_alltoall(given, got),
            (Alltoall, true) => comm.adaptive_alltoall_in_place(got),
            (Ibcast, _) => return Some(Begun::Some(comm.adaptive_ibcast(scope, root, got).unwrap())),
            (Iallreduce, false) => return Some(Begun::Some(comm.adaptive_iallreduce(scope, given, got, op).unwrap())),
            (Iallreduce, true) => return Some(Begun::Some(comm.adaptive_iallreduce_in_place(scope, got, op).unwrap())),
            (Ibarrier, _) => return Some(Begun::Barrier(comm.adaptive_ibarrier().unwrap())),
        }
        .unwrap();
        None
    }

    fn check(&self) {
        let (Drawn { kind, root, in_place, by, .. }, me, ranks, number) = (self.drawn, self.me, self.ranks, self.numbers());
        let folded = |block: usize, k: usize| (1..ranks).fold(number(0, block, k), |left, r| left.combined(number(r, block, k), by));
        let got = self.got.wrong(|block, k| match kind {
            Barrier | Ibarrier => None,
            Bcast | Ibcast => Some(number(root, 0, k)),
            Allreduce | Iallreduce => Some(folded(0, k)),
            Reduce if me == root => Some(folded(0, k)),
            // what is said of others' places is that nobody writes there
            Reduce => Some(number(me, 0, k)),
            ReduceScatter => (block == 0).then(|| folded(me, k)),
            Gather if me != root => Some(number(me, 0, k)),
            Allgather | Gather => Some(number(block, 0, k)),
            Scatter if in_place && me == root => Some(number(me, block, k)),
            Scatter => Some(number(root, me, k)),
            Alltoall => Some(number(block, me, k)),
        });
        let given = self.given.wrong(|block, k| Some(number(me, block, k)));
        assert!(
            got.is_none() && given.is_none(),
            "rank {me} of {ranks}, {:?}: it got (block, item, what is there) {got:?}, and of what it gave {given:?} was written",
            self.drawn
        );
    }
}

/// A call of some items.
fn work(drawn: Drawn, item: usize, comm: &SimpleCommunicator, handles: &Handles, own: &mut impl Rng) -> Box<dyn Work> {
    let by = |by| Drawn { by, ..drawn };
    let number = if drawn.mark.is_multiple_of(3) { By::Max } else { By::Sum };
    match item {
        // Open MPI 4.1 adds bytes up to 255, and no further
        0 => Box::new(Call::<u8>::new(by(By::Xor), comm, handles, own)),
        1 => Box::new(Call::<i32>::new(by(number), comm, handles, own)),
        2 => Box::new(Call::<u64>::new(by(number), comm, handles, own)),
        3 => Box::new(Call::<f64>::new(by(number), comm, handles, own)),
        _ => Box::new(Call::<Map>::new(by(By::Maps), comm, handles, own)),
    }
}

/// A communicator that one thread uses at a time; none on ranks that are not in it.
struct Own(Option<SimpleCommunicator>);
// SAFETY: MPI_THREAD_MULTIPLE is on, and one thread uses it
unsafe impl Send for Own {}
// SAFETY: as above
unsafe impl Sync for Own {}

/// A communicator of some kind.
fn make(world: &SimpleCommunicator, kind: usize) -> Own {
    let me = world.rank();
    Own(match kind % 5 {
        0 => Some(world.duplicate()),
        1 => world.split_by_color(Color::with_value(me % 2)),
        2 => world.split_by_color_with_key(Color::with_value(0), -me),
        3 => world.split_by_color(Color::with_value(me / 3)),
        _ => world.split_by_color(if me == kind as i32 % world.size() { Color::undefined() } else { Color::with_value(0) }),
    })
}

/// A batch of calls of one thread.
fn batch(comms: &[Own], handles: &Handles, seed: u64, world_rank: u64) -> usize {
    let mut alike = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut own = Xoshiro256PlusPlus::seed_from_u64(seed ^ (world_rank + 1) << 40);
    // what blocks on a communicator gets what is under way on others no further if it is the library's own
    let (kinds, only) = match alike.random_range(0..4) {
        0 | 1 => (0..BLOCKING, None),
        2 => (0..KINDS.len(), Some(alike.random_range(0..comms.len()))),
        _ => (BLOCKING..KINDS.len(), None),
    };
    let mut calls: Vec<(usize, Box<dyn Work>)> = Vec::new();
    for _ in 0..CALLS {
        let kind = KINDS[alike.random_range(kinds.clone())];
        let drawn = Drawn {
            kind,
            comm: only.unwrap_or(alike.random_range(0..comms.len())),
            root: alike.random_range(0..64),
            count: COUNTS[alike.random_range(0..COUNTS.len())],
            in_place: alike.random_bool(0.4) && kind.has_in_place(),
            by: By::Sum,
            mark: alike.random(),
        };
        let item = alike.random_range(0..5);
        if let Own(Some(comm)) = &comms[drawn.comm] {
            calls.push((drawn.comm, work(drawn, item, comm, handles, &mut own)));
        }
    }
    mpi::request::scope(|scope| {
        let mut open = Vec::new();
        for (comm, call) in &mut calls {
            let Own(Some(comm)) = &comms[*comm] else { continue };
            open.extend(call.begin(comm, handles, scope));
            complete(&mut open, &mut own, false);
        }
        complete(&mut open, &mut own, true);
    });
    calls.iter().for_each(|(_, call)| call.check());
    calls.len()
}

/// What was done.
pub struct Done {
    /// Calls of this rank.
    pub calls: usize,
    /// Communicators that were made.
    pub communicators: usize,
    /// Bytes in memory after a third of the time, and at the end.
    pub resident: (usize, usize),
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let (early, late) = (self.resident.0 >> 10, self.resident.1 >> 10);
        write!(
            f,
            "{} calls, {} communicators made, {early} KiB in memory after a third of the time and {late} at the end",
            self.calls, self.communicators
        )
    }
}

/// Mixes collectives for so long.
pub fn mix(world: &SimpleCommunicator, time: Duration, seed: u64, threads: usize) -> Done {
    // SAFETY: it reads and writes as many maps as MPI says
    let maps = unsafe { UnsafeUserOperation::associative(after) };
    let pair = UserDatatype::contiguous(2, &u64::equivalent_datatype());
    let handles = Handles { pair: pair.as_raw(), maps: maps.as_raw() };
    let (start, me) = (Instant::now(), world.rank() as u64);
    let mut comms: Vec<Vec<Own>> = (0..threads).map(|t| (0..COMMUNICATORS).map(|k| make(world, t + k)).collect()).collect();
    let (mut calls, mut made, mut early) = (0, threads * COMMUNICATORS, None);
    for round in 0u64.. {
        // by the first rank's clock
        let mut passed = start.elapsed().as_secs_f64() / time.as_secs_f64();
        world.process_at_rank(0).broadcast_into(&mut passed);
        if passed > 1.0 / 3.0 && early.is_none() {
            early = Some(resident());
        }
        if passed > 1.0 {
            break;
        }
        calls += std::thread::scope(|scope| {
            let mine = |(thread, comms): (usize, &Vec<Own>)| {
                let of_thread = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(round * 1000 + thread as u64);
                (0..BATCHES as u64).map(|k| batch(comms, &handles, of_thread.wrapping_add(k << 32), me)).sum::<usize>()
            };
            let running: Vec<_> = comms.iter().enumerate().map(|of| scope.spawn(move || mine(of))).collect();
            running.into_iter().map(|thread| thread.join().expect("a thread of calls")).sum::<usize>()
        });
        // one communicator of each thread goes, another one comes
        for (thread, comms) in comms.iter_mut().enumerate() {
            comms.remove(0);
            comms.push(make(world, round as usize + thread));
            made += 1;
        }
    }
    drop(comms);
    world.barrier();
    let resident = (early.unwrap_or(0), resident());
    assert!(resident.1 < resident.0 + MORE, "memory grew from {} to {} bytes", resident.0, resident.1);
    assert!(private_communicators() <= 1, "{} private communicators are left", private_communicators());
    Done { calls, communicators: made, resident }
}

#[allow(dead_code)] // the test calls what it calls
fn main() {
    collwise::transport::mpi::abort_on_panic();
    let argument = |k: usize, other: u64| std::env::args().nth(k).map_or(other, |text| text.parse().expect("a number"));
    let (seconds, seed, threads) = (argument(1, 10), argument(2, 1), argument(3, 2));
    let (universe, level) = mpi::initialize_with_threading(mpi::Threading::Multiple).expect("MPI is running already");
    assert!(threads == 1 || level == mpi::Threading::Multiple, "threads want MPI_THREAD_MULTIPLE");
    let world = universe.world();
    let done = mix(&world, Duration::from_secs(seconds), seed, threads as usize);
    let (mut all, mine) = (0u64, done.calls as u64);
    world.all_reduce_into(&mine, &mut all, SystemOperation::sum());
    if world.rank() == 0 {
        println!("seed {seed}, {} ranks of {threads} threads each: {all} calls, every byte is right; rank 0: {done}", world.size());
    }
}
