//! `adaptive_ibcast`, `adaptive_iallreduce` and `adaptive_ibarrier`: begun in the same order, completed by each rank in its own, beside blocking calls.
#![cfg(feature = "mpi")]
#![allow(unsafe_code)] // views of scattered items, and communicators in threads

#[path = "programs/begun.rs"]
mod begun;
mod common;
#[path = "programs/resident.rs"]
mod resident;

use begun::{Begun, complete};
use collwise::error::{Error, Result};
use collwise::run::{AdaptiveCollectives, Pending};
use common::byte;
use common::mpi::{
    ERRORS, adaptive, adaptive_and_traced, map, map_of_all, must_succeed, note_errors, on_ranks, own_inside, return_errors, three_groups,
    traced, with_maps,
};
use mpi::collective::SystemOperation;
use mpi::datatype::{MutView, UserDatatype};
use mpi::request::Scope;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use resident::resident;
use std::os::raw::c_int;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Gives it plans: at its second blocking call.
fn set_up(comm: &SimpleCommunicator) {
    for _ in 0..2 {
        comm.adaptive_barrier().unwrap();
    }
}

const BCAST: usize = 0;
const ALLREDUCE: usize = 1;
const IN_PLACE: usize = 2;
const BARRIER: usize = 3;
/// From here on they block: the same ones, and an allgather.
const BLOCKING: usize = 4;
const ALLGATHER: usize = 8;

/// A call, drawn alike on all ranks.
struct Call {
    kind: usize,
    comm: usize,
    root: usize,
    given: Vec<i64>,
    got: Vec<i64>,
}

/// A number of a rank's.
fn number(rank: usize, k: usize, mark: usize) -> i64 {
    (k * 31 + rank * 1_000_003 + mark * 77_777) as i64
}

impl Call {
    fn draw(random: &mut impl Rng, comms: &[&SimpleCommunicator], kinds: usize, mark: usize) -> Call {
        let (kind, comm) = (random.random_range(0..kinds), random.random_range(0..comms.len()));
        let (ranks, me) = (comms[comm].size() as usize, comms[comm].rank() as usize);
        let root = random.random_range(0..ranks);
        let len = [0, 1, 100, 1000, 9000, 60_000][random.random_range(0..6)];
        let given: Vec<i64> = (0..len).map(|k| number(me, k, mark)).collect();
        let got = match kind % BLOCKING {
            _ if kind == ALLGATHER => vec![-1; len * ranks],
            BCAST if me == root => given.clone(),
            IN_PLACE => given.clone(),
            _ => vec![-1; len],
        };
        Call { kind, comm, root, given, got }
    }

    /// Carries it out, if it blocks, or begins it.
    fn begin<'a, S: Scope<'a>>(&'a mut self, comms: &[&SimpleCommunicator], scope: S) -> Option<Begun<'a, S>> {
        let (comm, sum) = (comms[self.comm], SystemOperation::sum());
        let (given, got) = (&self.given[..], &mut self.got[..]);
        match self.kind {
            BCAST => return Some(Begun::Some(comm.adaptive_ibcast(scope, self.root, got).unwrap())),
            ALLREDUCE => return Some(Begun::Some(comm.adaptive_iallreduce(scope, given, got, sum).unwrap())),
            IN_PLACE => return Some(Begun::Some(comm.adaptive_iallreduce_in_place(scope, got, sum).unwrap())),
            BARRIER => return Some(Begun::Barrier(comm.adaptive_ibarrier().unwrap())),
            ALLGATHER => comm.adaptive_allgather(given, got).unwrap(),
            kind => match kind - BLOCKING {
                BCAST => comm.adaptive_bcast(self.root, got).unwrap(),
                ALLREDUCE => comm.adaptive_allreduce(given, got, sum).unwrap(),
                IN_PLACE => comm.adaptive_allreduce_in_place(got, sum).unwrap(),
                _ => comm.adaptive_barrier().unwrap(),
            },
        }
        None
    }

    fn check(&self, comms: &[&SimpleCommunicator], mark: usize) {
        let (ranks, len) = (comms[self.comm].size() as usize, self.given.len());
        let want = |k: usize| match self.kind % BLOCKING {
            _ if self.kind == ALLGATHER => number(k / len, k % len, mark),
            BCAST => number(self.root, k, mark),
            BARRIER => -1,
            _ => (0..ranks).map(|r| number(r, k, mark)).sum(),
        };
        let wrong = self.got.iter().enumerate().position(|(k, &x)| x != want(k));
        assert_eq!(wrong, None, "kind {} of {len} from {} on {} at {}", self.kind, self.root, self.comm, comms[self.comm].rank());
        let me = comms[self.comm].rank() as usize;
        assert!(self.given.iter().enumerate().all(|(k, &x)| x == number(me, k, mark)), "what was given was written");
    }
}

/// Rounds of calls of which each rank completes some between others, in an order of its own.
fn in_any_order(comms: &[&SimpleCommunicator], kinds: usize, rounds: u64) {
    for round in 0..rounds {
        let mut alike = Xoshiro256PlusPlus::seed_from_u64(round);
        let mut own = Xoshiro256PlusPlus::seed_from_u64(round * 1000 + comms[0].rank() as u64 + 1);
        let mark = |k: usize| round as usize * 100 + k;
        let mut calls: Vec<Call> = (0..24).map(|k| Call::draw(&mut alike, comms, kinds, mark(k))).collect();
        mpi::request::scope(|scope| {
            let mut open = Vec::new();
            for call in &mut calls {
                open.extend(call.begin(comms, scope));
                complete(&mut open, &mut own, false);
            }
            complete(&mut open, &mut own, true);
        });
        calls.iter().enumerate().for_each(|(k, call)| call.check(comms, mark(k)));
    }
}

#[test]
fn ranks_complete_them_in_any_order_with_blocking_calls_between() {
    adaptive("ranks_complete_them_in_any_order_with_blocking_calls_between", 8, |world| {
        // before there are plans, they are the library's own
        in_any_order(&[world], BLOCKING, 3);
        set_up(world);
        in_any_order(&[world], ALLGATHER + 1, 40);
    });
}

#[test]
fn on_several_communicators_they_get_further_wherever_a_rank_waits() {
    adaptive("on_several_communicators_they_get_further_wherever_a_rank_waits", 8, |world| {
        let other = world.duplicate();
        let half = world.split_by_color(Color::with_value(world.rank() % 2)).unwrap();
        [world, &other, &half].into_iter().for_each(set_up);
        in_any_order(&[world, &other], BLOCKING, 30);
        in_any_order(&[&half, &other], BLOCKING, 30);
    });
}

#[test]
fn the_librarys_own_inside_groups_is_done_by_messages() {
    let name = "the_librarys_own_inside_groups_is_done_by_messages";
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), 8);
    own_inside(&policy);
    let said = must_succeed(on_ranks(name, 8, &[("COLLWISE_POLICY", &policy), ("COLLWISE_HOSTS", &hosts)], |world| {
        set_up(world);
        in_any_order(&[world], ALLGATHER + 1, 20);
    }));
    assert!(!said.contains("library's own collectives"), "{said}");
}

#[test]
fn without_a_policy_they_are_the_librarys_own() {
    must_succeed(on_ranks("without_a_policy_they_are_the_librarys_own", 4, &[], |world| {
        set_up(world);
        in_any_order(&[world], ALLGATHER + 1, 10);
    }));
}

#[test]
fn they_go_by_the_plans_of_the_blocking_calls() {
    adaptive_and_traced("they_go_by_the_plans_of_the_blocking_calls", 8, |world| {
        let (given, mut sum, mut data) = (vec![1.0; 1000], vec![0.0; 1000], vec![0u8; 50_000]);
        for blocks in [true, false] {
            let before = traced();
            if blocks {
                set_up(world);
                let before = traced();
                world.adaptive_bcast(3, &mut data[..]).unwrap();
                world.adaptive_allreduce(&given[..], &mut sum[..], SystemOperation::sum()).unwrap();
                world.adaptive_barrier().unwrap();
                assert_eq!(traced(), before + 3);
                continue;
            }
            mpi::request::scope(|scope| {
                let bcast = world.adaptive_ibcast(scope, 3, &mut data[..]).unwrap();
                let all = world.adaptive_iallreduce(scope, &given[..], &mut sum[..], SystemOperation::sum()).unwrap();
                let barrier = world.adaptive_ibarrier().unwrap();
                barrier.wait().unwrap();
                bcast.wait().unwrap();
                all.wait().unwrap();
            });
            assert_eq!(traced(), before + 3);
        }
    });
}

#[test]
fn scattered_items_come_to_their_places_whatever_the_other_ranks_types_are() {
    adaptive("scattered_items_come_to_their_places_whatever_the_other_ranks_types_are", 8, |world| {
        const BYTES: usize = 30_000;
        set_up(world);
        let every_second = UserDatatype::vector(BYTES as c_int, 1, 2, &u8::equivalent_datatype());
        let scattered = world.rank() % 2 == 1;
        for root in 0..8 {
            let step = if scattered { 2 } else { 1 };
            let mut data = vec![0xAAu8; BYTES * step];
            if world.rank() as usize == root {
                (0..BYTES).for_each(|k| data[k * step] = byte(k, root));
            }
            if scattered {
                // SAFETY: an item of the type fits into the data
                let mut view = unsafe { MutView::with_count_and_datatype(&mut data[..], 1, &every_second) };
                mpi::request::scope(|scope| world.adaptive_ibcast(scope, root, &mut view).unwrap().wait().unwrap());
            } else {
                mpi::request::scope(|scope| drop(world.adaptive_ibcast(scope, root, &mut data[..]).unwrap()));
            }
            let wrong = (0..BYTES).find(|&k| data[k * step] != byte(k, root) || (step == 2 && data[2 * k + 1] != 0xAA));
            assert_eq!(wrong, None, "from {root} at {}", world.rank());
        }
    });
}

#[test]
fn an_operation_that_does_not_commute_keeps_the_order_of_ranks() {
    adaptive("an_operation_that_does_not_commute_keeps_the_order_of_ranks", 8, |world| {
        set_up(world);
        for count in [1usize, 3000, 40_000] {
            let mut all: Vec<u64> = (0..count).flat_map(|k| map(world.rank() as usize, k)).collect();
            with_maps(&mut all, |maps, after| {
                mpi::request::scope(|scope| world.adaptive_iallreduce_in_place(scope, maps, after).unwrap().wait().unwrap());
            });
            assert!((0..count).all(|k| all[2 * k..2 * k + 2] == map_of_all(8, k)), "{count} maps");
        }
    });
}

#[test]
fn thousands_take_no_more_memory_than_some() {
    adaptive("thousands_take_no_more_memory_than_some", 8, |world| {
        set_up(world);
        let (given, mut sum, mut data) = (vec![1i64; 2000], vec![0i64; 2000], vec![0u8; 5000]);
        let mut some = |rounds: usize| {
            for round in 0..rounds {
                let root = round % 8;
                data.fill(if world.rank() as usize == root { round as u8 } else { !(round as u8) });
                mpi::request::scope(|scope| {
                    let bcast = world.adaptive_ibcast(scope, root, &mut data[..]).unwrap();
                    let all = world.adaptive_iallreduce(scope, &given[..], &mut sum[..], SystemOperation::sum()).unwrap();
                    drop(world.adaptive_ibarrier().unwrap());
                    all.wait().unwrap();
                    bcast.wait().unwrap();
                });
                assert!(data.iter().all(|&x| x == round as u8) && sum.iter().all(|&x| x == 8));
            }
        };
        some(200);
        let before = resident();
        some(800);
        let more = resident().saturating_sub(before);
        // a kilobyte and a half of each of 2,400 would be more
        assert!(more < 3 << 20, "{more} bytes more");
    });
}

#[test]
fn more_than_there_are_tags_for_are_under_way_at_once() {
    adaptive("more_than_there_are_tags_for_are_under_way_at_once", 8, |world| {
        const MANY: usize = 200;
        set_up(world);
        // tags are used again by calls from other roots, of which one comes late: what waits for it is overtaken by what came after
        let root = |k: usize| (k + k / 4) % 8;
        let mut data: Vec<Vec<u8>> =
            (0..MANY).map(|k| vec![if root(k) == world.rank() as usize { k as u8 } else { 255 }; 3000 - 10 * k]).collect();
        if world.rank() == 0 {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        mpi::request::scope(|scope| {
            let begun = data.iter_mut().enumerate().map(|(k, data)| world.adaptive_ibcast(scope, root(k), &mut data[..]).unwrap());
            let mut begun: Vec<_> = begun.collect();
            // nobody has waited for anything; a blocking call comes between
            world.adaptive_bcast(5, &mut [0u8; 3000][..]).unwrap();
            if world.rank() % 2 == 0 {
                begun.reverse();
            }
            begun.into_iter().for_each(|pending| pending.wait().unwrap());
        });
        assert!(data.iter().enumerate().all(|(k, data)| data.iter().all(|&x| x == k as u8)));
    });
}

#[test]
fn a_communicator_that_is_freed_completes_what_is_under_way() {
    adaptive("a_communicator_that_is_freed_completes_what_is_under_way", 8, |world| {
        for round in 0..10 {
            let part = if round % 2 == 0 { world.duplicate() } else { world.split_by_color(Color::with_value(world.rank() / 4)).unwrap() };
            set_up(&part);
            let (ranks, mut data) = (part.size(), vec![part.rank() as u8; 20_000]);
            let mut sum = vec![part.rank() as i64; 3000];
            mpi::request::scope(|scope| {
                let bcast = part.adaptive_ibcast(scope, 1, &mut data[..]).unwrap();
                let all = part.adaptive_iallreduce_in_place(scope, &mut sum[..], SystemOperation::sum()).unwrap();
                drop(part);
                all.wait().unwrap();
                bcast.wait().unwrap();
            });
            assert!(data.iter().all(|&x| x == 1) && sum.iter().all(|&x| x == i64::from(ranks * (ranks - 1) / 2)));
        }
        // what is never waited for is over when MPI ends
        std::mem::forget(world.adaptive_ibarrier().unwrap());
    });
}

/// A communicator that another thread may use.
struct Own(SimpleCommunicator);
// SAFETY: MPI_THREAD_MULTIPLE is on, and one thread uses it
unsafe impl Send for Own {}

#[test]
fn threads_have_some_under_way_each() {
    let name = "threads_have_some_under_way_each";
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), 4);
    let environment = [("COLLWISE_POLICY", policy.as_path()), ("COLLWISE_HOSTS", &hosts), ("COLLWISE_TEST_THREADS", Path::new("1"))];
    must_succeed(on_ranks(name, 4, &environment, |world| {
        set_up(world);
        let comms: Vec<Own> = (0..3).map(|_| Own(world.duplicate())).collect();
        comms.iter().for_each(|comm| set_up(&comm.0));
        std::thread::scope(|scope| {
            for comm in comms {
                scope.spawn(move || {
                    let comm = comm;
                    in_any_order(&[&comm.0], ALLGATHER + 1, 10);
                });
            }
        });
    }));
}

#[test]
fn wrong_arguments_are_refused_before_anything_begins() {
    adaptive("wrong_arguments_are_refused_before_anything_begins", 2, |world| {
        set_up(world);
        return_errors(world);
        let (mut data, mut short) = (vec![0u8; 10], vec![0.0; 2]);
        mpi::request::scope(|scope| {
            let e = world.adaptive_ibcast(scope, 2, &mut data[..]).err().unwrap();
            assert!(e.to_string().contains("call MPI_Ibcast"), "{e}");
            let e = world.adaptive_iallreduce(scope, &[1.0; 3][..], &mut short[..], SystemOperation::sum()).err().unwrap();
            assert!(e.to_string().contains("24 bytes that are given and 16 that come"), "{e}");
        });
        world.adaptive_ibarrier().unwrap().wait().unwrap();
    });
}

/// Rank 1 has room for half of what rank 0 sends.
#[test]
fn an_error_is_told_once_to_who_waits_after_the_communicators_handler() {
    adaptive("an_error_is_told_once_to_who_waits_after_the_communicators_handler", 2, |world| {
        let fails = world.rank() == 1;
        for how in 0..3 {
            let comm = world.duplicate();
            // MPICH asks MPI_COMM_WORLD's handler about messages of any communicator
            return_errors(world);
            note_errors(&comm);
            set_up(&comm);
            let mut data = vec![7u8; if fails { 50 } else { 100 }];
            let told = |result: Result<()>| match result {
                Ok(()) => assert!(!fails),
                Err(Error::Mpi { rank, .. }) => assert_eq!((fails, rank), (true, 1)),
                Err(e) => panic!("{e}"),
            };
            mpi::request::scope(|scope| {
                let mut pending = comm.adaptive_ibcast(scope, 0, &mut data[..]).unwrap();
                match how {
                    0 => told(pending.wait()),
                    1 => {
                        let over = loop {
                            match pending.test() {
                                Ok(false) => std::thread::yield_now(),
                                over => break over,
                            }
                        };
                        told(over.map(|_| ()));
                        assert!(pending.test().unwrap(), "it stays over");
                    }
                    _ => drop(pending),
                }
            });
            assert_eq!(ERRORS.load(Ordering::Relaxed), if fails { how + 1 } else { 0 });
        }
    });
}

/// What has the tags of a call that failed is told so, and does not wait for ever for what that one's open receives took; all others end as they shall.
#[test]
fn what_failed_leaves_nobody_waiting_on_its_rank() {
    adaptive("what_failed_leaves_nobody_waiting_on_its_rank", 2, |world| {
        const MANY: usize = 60;
        return_errors(world);
        set_up(world);
        let fails = world.rank() == 1;
        let mut data: Vec<Vec<u8>> =
            (0..MANY).map(|k| vec![if fails { 0 } else { k as u8 }; if fails && k == 0 { 50 } else { 100 }]).collect();
        let mut told = Vec::new();
        mpi::request::scope(|scope| {
            let begun = data.iter_mut().map(|data| world.adaptive_ibcast(scope, 0, &mut data[..]).unwrap());
            let begun: Vec<_> = begun.collect();
            told = begun.into_iter().map(Pending::wait).collect();
        });
        let failed = told.iter().filter(|result| result.is_err()).count();
        if !fails {
            assert_eq!(failed, 0);
            return;
        }
        assert!(matches!(told[0], Err(Error::Mpi { rank: 1, .. })));
        let lost =
            |result: &Result<()>| result.as_ref().is_err_and(|e| e.to_string().contains("after one that failed and had the same tags"));
        // those of every sixteenth call
        let others: Vec<usize> = (1..MANY).filter(|&k| told[k].is_err()).collect();
        assert!(!others.is_empty() && others.len() < 10 && others.iter().all(|&k| lost(&told[k])), "{others:?}");
        let right = |k: usize| told[k].is_err() || data[k].iter().all(|&x| x == k as u8);
        assert!((1..MANY).all(right));
    });
}
