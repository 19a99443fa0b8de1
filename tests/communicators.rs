//! Communicators of all kinds, in all numbers, and what is said about those that use the library's own broadcast.
#![cfg(feature = "mpi")]
#![allow(unsafe_code)] // MPI's own interface, and the environment of a process of one thread

mod common;

use collwise::error::Error;
use collwise::run::{AdaptiveCollectives, private_communicators};
use common::mpi::{adaptive, check_bcast, is_child, must_succeed, on_ranks, own_inside, return_errors, text, three_groups};
use mpi::ffi;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::*;
use std::os::raw::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs a part on ranks that no policy fits; gives what was said.
fn without_policy(name: &str, ranks: usize, part: impl Fn(&SimpleCommunicator)) -> String {
    must_succeed(on_ranks(name, ranks, &[], part))
}

#[test]
fn a_root_that_is_not_there_is_an_error_on_every_path() {
    let refused = |world: &SimpleCommunicator| {
        let alone = world.split_by_color(Color::with_value(world.rank())).unwrap();
        for comm in [world, &alone] {
            return_errors(comm);
            for root in [comm.size() as usize, 1 << 32, usize::MAX] {
                // a size that was broadcast from rank 0 before, a new one, and none
                comm.adaptive_bcast(0, &mut [0u8; 4][..]).unwrap();
                for bytes in [4, 5000, 0] {
                    let e = comm.adaptive_bcast(root, &mut vec![0u8; bytes][..]).unwrap_err();
                    assert!(matches!(e, Error::Mpi { .. }), "{e}");
                }
            }
        }
    };
    let name = "a_root_that_is_not_there_is_an_error_on_every_path";
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), 3);
    must_succeed(on_ranks(name, 3, &[("COLLWISE_POLICY", &policy), ("COLLWISE_HOSTS", &hosts)], |world| {
        refused(world);
        // a policy that fits no host
        collwise::run::use_policy(collwise::policy::Policy::read(&common::file("policies/hcl16.toml")).unwrap());
        refused(&world.duplicate());
    }));
}

#[test]
fn thousands_of_communicators_live_at_the_same_time() {
    adaptive("thousands_of_communicators_live_at_the_same_time", 4, |world| {
        let many: Vec<SimpleCommunicator> = (0..1500).map(|_| world.duplicate()).collect();
        for round in 0..2 {
            many.iter().for_each(|comm| {
                let mut data = if comm.rank() == 1 { [round, 2, 3] } else { [9; 3] };
                comm.adaptive_bcast(1, &mut data[..]).unwrap();
                assert_eq!(data, [round, 2, 3]);
            });
        }
        check_bcast(&many[700], &[1000]);
    });
}

/// The first five processes of six, in the `k`-th order.
fn five_in_order(world: &SimpleCommunicator, k: usize) -> Option<SimpleCommunicator> {
    let mut order: Vec<i32> = (0..5).collect();
    let mut rest = k;
    (1..5).for_each(|n| {
        order.swap(n, rest % (n + 1));
        rest /= n + 1;
    });
    let me = world.rank() as usize;
    let color = if me < 5 { Color::with_value(0) } else { Color::undefined() };
    world.split_by_color_with_key(color, *order.get(me).unwrap_or(&0))
}

#[test]
fn communicators_of_many_groups_of_processes_fall_back_where_contexts_run_short() {
    let name = "communicators_of_many_groups_of_processes_fall_back_where_contexts_run_short";
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), 6);
    let said = must_succeed(on_ranks(name, 6, &[("COLLWISE_POLICY", &policy), ("COLLWISE_HOSTS", &hosts)], |world| {
        // all orders of five processes are groups of their own
        let many: Vec<SimpleCommunicator> = (0..100).filter_map(|k| five_in_order(world, k)).collect();
        many.iter().for_each(|comm| check_bcast(comm, &[100]));
        assert_eq!(private_communicators(), if world.rank() < 5 { 64 } else { 0 });
    }));
    if !is_child() {
        let times = said.matches("free some communicators").count();
        assert!((1..=5).contains(&times), "{times}, not once for each process that is a first rank: {said}");
    }
}

#[test]
fn one_private_communicator_serves_all_once_that_of_all_processes_is_there() {
    adaptive("one_private_communicator_serves_all_once_that_of_all_processes_is_there", 6, |world| {
        check_bcast(world, &[1, 5000]);
        assert_eq!(private_communicators(), 1);
        let many: Vec<SimpleCommunicator> = (0..100).filter_map(|k| five_in_order(world, k)).collect();
        many.iter().for_each(|comm| check_bcast(comm, &[100, 5000]));
        let backwards = world.split_by_color_with_key(Color::with_value(0), -world.rank()).unwrap();
        check_bcast(&backwards, &[100, 70_000]);
        assert_eq!(private_communicators(), 1);
    });
}

#[test]
fn what_is_used_once_or_by_one_rank_takes_no_private_communicator() {
    adaptive("what_is_used_once_or_by_one_rank_takes_no_private_communicator", 6, |world| {
        let half = world.split_by_color(Color::with_value(world.rank() % 2)).unwrap();
        let alone = world.split_by_color(Color::with_value(world.rank())).unwrap();
        let mut data = if half.rank() == 1 { [5u8; 100] } else { [0; 100] };
        half.adaptive_bcast(1, &mut data[..]).unwrap();
        assert_eq!((data, private_communicators()), ([5; 100], 0));
        (0..3).for_each(|_| alone.adaptive_bcast(0, &mut data[..]).unwrap());
        assert_eq!(private_communicators(), 0);
        check_bcast(&half, &[100, 5000]);
        assert_eq!(private_communicators(), 1);
    });
}

#[test]
fn groups_have_communicators_where_a_plan_needs_them() {
    let name = "groups_have_communicators_where_a_plan_needs_them";
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), 8);
    own_inside(&policy);
    must_succeed(on_ranks(name, 8, &[("COLLWISE_POLICY", &policy), ("COLLWISE_HOSTS", &hosts)], |world| {
        check_bcast(world, &[1, 5000]);
        // none for the host that is alone in its group
        let alone = private_communicators() == 1;
        let mut all = 0i32;
        world.all_reduce_into(&i32::from(alone), &mut all, mpi::collective::SystemOperation::sum());
        assert_eq!(all, 1);
        let comm = world.duplicate();
        check_bcast(&comm, &[100, 5000]);
        assert_eq!(private_communicators(), if alone { 1 } else { 2 });
    }));
}

#[test]
fn communicators_that_come_and_go() {
    adaptive("communicators_that_come_and_go", 5, |world| {
        for k in 0..300 {
            let comm = world.duplicate();
            check_bcast(&comm, &[64 + k]);
            // and one of other processes each time
            let part = world.split_by_color(Color::with_value((world.rank() as usize + k) as i32 % 3)).unwrap();
            check_bcast(&part, &[64 + k]);
        }
    });
}

/// What a call came to is remembered with its communicator, whose handle is another one's afterwards, of other processes: with it all that was remembered goes.
#[test]
fn the_same_calls_on_communicators_that_come_and_go() {
    adaptive("the_same_calls_on_communicators_that_come_and_go", 5, |world| {
        for k in 0..200 {
            let part = world.split_by_color(Color::with_value((world.rank() as usize * (k % 3 + 1) + k) as i32 % 2)).unwrap();
            // set up by the second, remembered by the third, by which the fourth goes; then beside what does not block
            check_bcast(&part, &[64; 4]);
            let mut data = [0u8; 64];
            mpi::request::scope(|scope| {
                let one = part.adaptive_ibcast(scope, 0, &mut data[..]).unwrap();
                check_bcast(&part, &[64]);
                one.wait().unwrap();
            });
        }
    });
}

#[test]
fn mpi_ends_with_communicators_that_were_never_freed() {
    adaptive("mpi_ends_with_communicators_that_were_never_freed", 5, |world| {
        for k in 0..40 {
            let part = world.split_by_color(Color::with_value((world.rank() + k) % 2)).unwrap();
            check_bcast(&part, &[64, 3000]);
            std::mem::forget(part);
            if k == 20 {
                check_bcast(world, &[64]);
            }
            let comm = world.duplicate();
            check_bcast(&comm, &[64]);
            std::mem::forget(comm);
        }
    });
}

static COPIES: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn copy(_: ffi::MPI_Comm, _: c_int, _: *mut c_void, _: *mut c_void, _: *mut c_void, flag: *mut c_int) -> c_int {
    COPIES.fetch_add(1, Ordering::Relaxed);
    unsafe { *flag = 0 };
    0
}

unsafe extern "C" fn delete(_: ffi::MPI_Comm, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    0
}

#[test]
fn the_programs_attributes_are_not_copied() {
    adaptive("the_programs_attributes_are_not_copied", 3, |world| {
        let mut key = 0;
        unsafe {
            assert_eq!(ffi::MPI_Comm_create_keyval(Some(copy), Some(delete), &mut key, std::ptr::null_mut()), 0);
            assert_eq!(ffi::MPI_Comm_set_attr(world.as_raw(), key, std::ptr::null_mut()), 0);
        }
        check_bcast(world, &[1, 5000]);
        assert_eq!(COPIES.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn what_many_communicators_have_is_said_once() {
    let name = "what_many_communicators_have_is_said_once";
    let said = without_policy(name, 4, |world| {
        let many: Vec<SimpleCommunicator> = (0..40).map(|_| world.duplicate()).collect();
        many.iter().for_each(|comm| check_bcast(comm, &[1, 5000]));
    });
    if !is_child() {
        assert_eq!(said.matches("uses the MPI library's own collectives").count(), 1, "{said}");
    }
}

#[test]
fn inter_communicators_use_the_librarys_own_and_say_so() {
    let name = "inter_communicators_use_the_librarys_own_and_say_so";
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), 5);
    let said = must_succeed(on_ranks(name, 5, &[("COLLWISE_POLICY", &policy), ("COLLWISE_HOSTS", &hosts)], |world| {
        let me = world.rank();
        let side = world.split_by_color(Color::with_value(i32::from(me >= 2))).unwrap();
        let both = unsafe {
            let mut both = ffi::RSMPI_COMM_NULL;
            assert_eq!(ffi::MPI_Intercomm_create(side.as_raw(), 0, world.as_raw(), if me < 2 { 2 } else { 0 }, 7, &mut both), 0);
            mpi::topology::InterCommunicator::from_raw(both)
        };
        let root = match me {
            0 => unsafe { ffi::RSMPI_PROC_NULL as usize },
            1 => ffi::MPI_ROOT as usize,
            _ => 1,
        };
        let mut data = if me == 1 { [1, 2, 3] } else { [0; 3] };
        both.adaptive_bcast(root, &mut data[..]).unwrap();
        assert_eq!(data, if me == 0 { [0; 3] } else { [1, 2, 3] });
        if me >= 2 {
            // SAFETY: a valid communicator
            unsafe { ffi::MPI_Comm_set_errhandler(both.as_raw(), ffi::RSMPI_ERRORS_RETURN) };
            assert!(matches!(both.adaptive_bcast(2, &mut data[..]), Err(Error::Mpi { .. })));
        }
    }));
    if !is_child() {
        assert_eq!(said.matches("inter-communicator").count(), 1, "{said}");
    }
}

#[test]
fn a_trace_that_one_rank_cannot_write_changes_nothing() {
    let name = "a_trace_that_one_rank_cannot_write_changes_nothing";
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), 8);
    // whole messages between groups, and the library's own broadcast inside them
    own_inside(&policy);
    let said = must_succeed(on_ranks(name, 8, &[("COLLWISE_POLICY", &policy), ("COLLWISE_HOSTS", &hosts)], |world| {
        let folder = tempfile::tempdir().unwrap();
        let traces = if world.rank() == 3 { std::path::PathBuf::from("/proc/no/such/folder") } else { folder.path().into() };
        // SAFETY: this process has no other thread that reads the environment
        unsafe { std::env::set_var("COLLWISE_TRACE", &traces) };
        check_bcast(world, &[1, 5000]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), usize::from(world.rank() != 3));
    }));
    if !is_child() {
        assert_eq!(said.matches("goes on without its trace").count(), 1, "{said}");
        assert!(!said.contains("library's own collectives"), "it fell back: {said}");
    }
}

#[test]
fn programs_under_another_librarys_launcher_are_told() {
    let name = "programs_under_another_librarys_launcher_are_told";
    if is_child() {
        let universe = mpi::initialize().unwrap();
        return universe.world().adaptive_bcast(0, &mut [1u8; 8][..]).unwrap();
    }
    let run = |rank: &str| {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name, "--nocapture"]).envs([("COLLWISE_TEST_CHILD", "1"), ("PMI_SIZE", "4"), ("PMI_RANK", rank)]);
        text(&command.output().unwrap())
    };
    let said = run("0");
    assert!(said.contains("the launcher says 4") && said.contains("1 passed"), "{said}");
    assert!(!run("2").contains("the launcher says"), "one rank speaks");
}

/// A communicator in a thread that has it to itself.
struct Own(SimpleCommunicator);
// SAFETY: MPI was started for several threads
unsafe impl Send for Own {}

/// Runs a part on four ranks, where MPI was started for several threads; gives what was said. `own`: the policy is that of [`own_inside`].
fn several_threads(name: &str, own: bool, part: impl Fn(&SimpleCommunicator)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), 4);
    if own {
        own_inside(&policy);
    }
    let environment =
        [("COLLWISE_POLICY", policy.as_path()), ("COLLWISE_HOSTS", &hosts), ("COLLWISE_TEST_THREADS", std::path::Path::new("1"))];
    must_succeed(on_ranks(name, 4, &environment, part))
}

/// Four threads that duplicate, split, broadcast and free at the same time.
fn four_threads(world: &SimpleCommunicator) {
    let bases: Vec<Own> = (0..4).map(|_| Own(world.duplicate())).collect();
    std::thread::scope(|scope| {
        for (k, base) in bases.into_iter().enumerate() {
            scope.spawn(move || {
                let base = base;
                for round in 0..15 {
                    let part = base.0.split_by_color(Color::with_value((base.0.rank() + round) % 2)).unwrap();
                    for comm in [&base.0.duplicate(), &part, &base.0] {
                        check_bcast(comm, &[8 + k, 3000, 70_000 + 1000 * k]);
                    }
                }
            });
        }
    });
}

#[test]
fn threads_broadcast_at_the_same_time() {
    let said = several_threads("threads_broadcast_at_the_same_time", false, |world| {
        check_bcast(world, &[8]);
        four_threads(world);
        assert_eq!(private_communicators(), 1);
    });
    assert!(!said.contains("library's own collectives"), "it fell back: {said}");
}

#[test]
fn threads_make_no_communicators_of_groups() {
    let said = several_threads("threads_make_no_communicators_of_groups", true, |world| {
        check_bcast(world, &[8, 5000]);
        four_threads(world);
        assert_eq!(private_communicators(), 1);
    });
    assert!(!said.contains("library's own collectives"), "it fell back: {said}");
}

#[test]
fn parts_that_several_threads_could_use_have_plans_once_the_whole_has() {
    let said = several_threads("parts_that_several_threads_could_use_have_plans_once_the_whole_has", false, |world| {
        let part = || world.split_by_color(Color::with_value(world.rank() % 2)).unwrap();
        let first = part();
        (0..2).for_each(|_| check_bcast(&first, &[8, 3000]));
        assert_eq!(private_communicators(), 0);
        check_bcast(world, &[8]);
        check_bcast(&part(), &[8, 3000]);
        assert_eq!(private_communicators(), 1);
    });
    if !is_child() {
        let times = said.matches("MPI_THREAD_MULTIPLE").count();
        assert_eq!(times, 2, "once for each first rank of a part: {said}");
    }
}

#[test]
fn threads_that_first_use_communicators_at_the_same_time_wait_for_nobody() {
    several_threads("threads_that_first_use_communicators_at_the_same_time_wait_for_nobody", false, |world| {
        // whole communicators and parts, all of them new, in an order of its own on each process
        let bases: Vec<Own> = (0..4).map(|_| Own(world.duplicate())).collect();
        std::thread::scope(|scope| {
            for (k, base) in bases.into_iter().enumerate() {
                scope.spawn(move || {
                    let base = base;
                    std::thread::sleep(std::time::Duration::from_micros((base.0.rank() as u64 * 7 + k as u64 * 5) % 4 * 300));
                    for round in 0..20 {
                        check_bcast(&base.0, &[8 + k, 3000 + round]);
                        base.0.adaptive_barrier().unwrap();
                        let mut sum = 0;
                        base.0.adaptive_allreduce(&(k as i32), &mut sum, mpi::collective::SystemOperation::sum()).unwrap();
                        assert_eq!(sum, k as i32 * base.0.size());
                    }
                });
            }
        });
        // whoever came first made it, for all
        check_bcast(world, &[8]);
        assert_eq!(private_communicators(), 1);
    });
}

/// All ranks are on one machine, whose clock they share.
#[test]
fn nobody_leaves_an_adaptive_barrier_before_everybody_has_come() {
    let clock = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    adaptive("nobody_leaves_an_adaptive_barrier_before_everybody_has_come", 6, |world| {
        let odd = world.split_by_color(Color::with_value(world.rank() % 2)).unwrap();
        let alone = world.split_by_color(Color::with_value(world.rank())).unwrap();
        for comm in [world, &odd, &alone, &world.duplicate()] {
            for late in 0..comm.size() {
                if comm.rank() == late {
                    std::thread::sleep(std::time::Duration::from_millis(3));
                }
                let came = clock();
                comm.adaptive_barrier().unwrap();
                let (mut times, gone) = (vec![0.0; comm.size() as usize], clock());
                comm.all_gather_into(&came, &mut times[..]);
                assert!(times.iter().all(|&t| t <= gone), "rank {} left at {gone}, they came at {times:?}", comm.rank());
            }
        }
        // both collectives take turns on one communicator
        for round in 0..50 {
            let mut data = [if world.rank() == round % 6 { round } else { -1 }; 100];
            world.adaptive_bcast((round % 6) as usize, &mut data[..]).unwrap();
            world.adaptive_barrier().unwrap();
            assert_eq!(data, [round; 100]);
        }
    });
}
