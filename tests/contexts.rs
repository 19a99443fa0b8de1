//! What MPI has little of: contexts and tags. Where they run out every rank falls back alike and one says so; what nobody uses any more is given back.
#![cfg(feature = "mpi")]
#![allow(unsafe_code)] // MPI's own interface, and the environment of a process of one thread

mod common;

use collwise::run::{AdaptiveCollectives, private_communicators};
use common::mpi::{adaptive, check_bcast, is_child, must_succeed, on_ranks, own_inside, three_groups};
use mpi::collective::SystemOperation;
use mpi::ffi;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::*;

/// Runs a part on ranks of three groups; gives what was said.
fn in_three_groups(name: &str, ranks: usize, own: bool, part: impl Fn(&SimpleCommunicator)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), ranks);
    if own {
        own_inside(&policy);
    }
    must_succeed(on_ranks(name, ranks, &[("COLLWISE_POLICY", &policy), ("COLLWISE_HOSTS", &hosts)], part))
}

/// Takes all contexts that MPI has left on this rank.
fn take_all_contexts() -> Vec<ffi::MPI_Comm> {
    let mut taken = Vec::new();
    // SAFETY: a constant of the library, out-parameters of the right type
    unsafe {
        ffi::MPI_Comm_set_errhandler(ffi::RSMPI_COMM_SELF, ffi::RSMPI_ERRORS_RETURN);
        let mut comm = ffi::RSMPI_COMM_NULL;
        while ffi::MPI_Comm_dup(ffi::RSMPI_COMM_SELF, &mut comm) == 0 {
            taken.push(comm);
        }
    }
    assert!(taken.len() > 1000, "{}", taken.len());
    taken
}

fn give_back(taken: &mut [ffi::MPI_Comm]) {
    // SAFETY: made above
    taken.iter_mut().for_each(|comm| assert_eq!(unsafe { ffi::MPI_Comm_free(comm) }, 0));
}

#[test]
fn where_one_rank_has_no_context_left_all_fall_back_and_one_says_so_once() {
    let name = "where_one_rank_has_no_context_left_all_fall_back_and_one_says_so_once";
    let said = in_three_groups(name, 4, false, |world| {
        let [whole, more, later] = [world.duplicate(), world.duplicate(), world.duplicate()];
        let part = world.split_by_color(Color::with_value(i32::from(world.rank() == 3))).unwrap();
        let mut taken = if world.rank() == 1 { take_all_contexts() } else { Vec::new() };
        for comm in [&whole, &part, &more] {
            check_bcast(comm, &[1, 5000]);
            comm.adaptive_barrier().unwrap();
        }
        assert_eq!(private_communicators(), 0);
        let last = taken.len().saturating_sub(10);
        give_back(&mut taken[last..]);
        // those that fell back stay so, others have plans
        check_bcast(&whole, &[1, 5000]);
        assert_eq!(private_communicators(), 0);
        check_bcast(&later, &[1, 5000]);
        assert_eq!(private_communicators(), 1);
    });
    if !is_child() {
        assert_eq!(said.matches("MPI has no context left").count(), 1, "{said}");
        assert_eq!(said.matches("library's own collectives").count(), 1, "{said}");
    }
}

#[test]
fn a_step_does_without_a_communicator_where_one_of_its_ranks_has_no_context_left() {
    let name = "a_step_does_without_a_communicator_where_one_of_its_ranks_has_no_context_left";
    let said = in_three_groups(name, 8, true, |world| {
        (0..2).for_each(|_| world.adaptive_barrier().unwrap());
        assert_eq!(private_communicators(), 1);
        let taken = if world.rank() == 1 { take_all_contexts() } else { Vec::new() };
        check_bcast(world, &[1, 5000, 70_000]);
        // the groups that have a communicator of their own now: of three groups one has one rank, and one has none left
        let own = i32::from(private_communicators() == 2);
        let (mut all, mut ranks) = (0i32, vec![0i32; 8]);
        world.all_reduce_into(&own, &mut all, SystemOperation::sum());
        world.all_gather_into(&own, &mut ranks[..]);
        assert!((2..=4).contains(&all) && ranks[1] == 0 && taken.len() != 1, "{ranks:?}");
    });
    assert!(!said.contains("library's own collectives"), "it fell back: {said}");
}

#[test]
fn contexts_are_taken_at_the_second_call_and_given_back_with_the_communicator() {
    adaptive("contexts_are_taken_at_the_second_call_and_given_back_with_the_communicator", 6, |world| {
        let call = |comm: &SimpleCommunicator| {
            let mut data = if comm.rank() == 1 { [5u8; 100] } else { [0; 100] };
            comm.adaptive_bcast(1, &mut data[..]).unwrap();
            assert_eq!(data, [5; 100]);
        };
        // first calls, of each kind
        call(world);
        world.duplicate().adaptive_barrier().unwrap();
        let (mut sum, [half, other]) = (0, [0, 1].map(|_| world.split_by_color(Color::with_value(world.rank() % 2)).unwrap()));
        half.adaptive_allreduce(&1, &mut sum, SystemOperation::sum()).unwrap();
        assert_eq!((sum, private_communicators()), (3, 0));
        // its own, which others of the same processes share, and which goes with the last
        call(&half);
        (0..2).for_each(|_| call(&other));
        assert_eq!(private_communicators(), 1);
        drop(half);
        call(&other);
        assert_eq!(private_communicators(), 1);
        drop(other);
        assert_eq!(private_communicators(), 0);
        // many of the same processes one after the other: none stays
        for _ in 0..40 {
            let half = world.split_by_color(Color::with_value(world.rank() % 2)).unwrap();
            (0..3).for_each(|_| call(&half));
            assert_eq!(private_communicators(), 1);
        }
        assert_eq!(private_communicators(), 0);
        call(world);
        assert_eq!(private_communicators(), 1);
    });
}

#[test]
fn communicators_of_groups_go_with_the_last_communicator_that_used_them() {
    let name = "communicators_of_groups_go_with_the_last_communicator_that_used_them";
    let said = in_three_groups(name, 8, true, |world| {
        (0..2).for_each(|_| world.adaptive_barrier().unwrap());
        // of five processes, two of each of two groups at least: their team is kept, and holds nothing
        for _ in 0..3 {
            let five = world.split_by_color(Color::with_value(i32::from(world.rank() < 5))).unwrap();
            check_bcast(&five, &[1, 5000]);
            let twice = five.duplicate();
            drop(five);
            check_bcast(&twice, &[1, 5000]);
            let mut most = 0;
            world.all_reduce_into(&(private_communicators() as i32), &mut most, SystemOperation::max());
            assert_eq!(most, 2);
            drop(twice);
            assert_eq!(private_communicators(), 1);
        }
    });
    assert!(!said.contains("library's own collectives"), "it fell back: {said}");
}

/// As many tags as MPI promises at least, which most libraries have many more of; false if this library does not let itself be told so.
fn few_tags() -> bool {
    let (mut bound, mut found): (*mut i32, i32) = (std::ptr::null_mut(), 0);
    let mut get = || {
        // SAFETY: MPI gives the address of an `int` that lasts; nobody else looks at it yet
        unsafe {
            let code = ffi::MPI_Comm_get_attr(ffi::RSMPI_COMM_WORLD, ffi::MPI_TAG_UB as i32, (&raw mut bound).cast(), &mut found);
            assert!(code == 0 && found != 0 && *bound >= 32_767);
            bound
        }
    };
    // SAFETY: as above
    unsafe {
        *get() = 32_767;
        *get() == 32_767
    }
}

#[test]
fn with_as_few_tags_as_mpi_promises_they_are_used_again_and_without_any_all_fall_back_alike() {
    let name = "with_as_few_tags_as_mpi_promises_they_are_used_again_and_without_any_all_fall_back_alike";
    let said = in_three_groups(name, 4, false, |world| {
        if !few_tags() {
            return println!("this library has its own number of tags");
        }
        let folder = tempfile::tempdir().unwrap();
        // SAFETY: this process has no other thread that reads the environment
        unsafe { std::env::set_var("COLLWISE_TRACE", folder.path()) };
        // how many broadcasts had plans
        let file = folder.path().join(format!("rank-{}.jsonl", world.rank()));
        let planned = || std::fs::read_to_string(&file).map_or(0, |text| text.lines().count());
        let call = |comm: &SimpleCommunicator, mark: u8| {
            let before = planned();
            let mut data = vec![if comm.rank() == 1 { mark } else { 0 }; 3000];
            comm.adaptive_bcast(1, &mut data[..]).unwrap();
            assert!(data.iter().all(|&byte| byte == mark));
            planned() - before
        };
        assert_eq!([call(world, 1), call(world, 2)], [0, 1]);
        // on one of them again and again: its tags are used in turns
        (0..100).for_each(|k| assert_eq!(call(world, k), 1));
        let mut many: Vec<SimpleCommunicator> = (0..1000).map(|_| world.duplicate()).collect();
        let has: Vec<usize> = many.iter().map(|comm| call(comm, 3)).collect();
        let with: usize = has.iter().sum();
        assert!((500..1000).contains(&with) && has[..with].iter().all(|&has| has == 1), "{with}");
        let (mut least, mut most) = (0u64, 0u64);
        world.all_reduce_into(&(with as u64), &mut least, SystemOperation::min());
        world.all_reduce_into(&(with as u64), &mut most, SystemOperation::max());
        assert_eq!((least, most), (with as u64, with as u64));
        // what is freed others get, one by one and again and again; those that fell back stay so
        many.drain(100..200);
        assert_eq!(call(&many[999 - 100], 4), 0);
        let new: Vec<SimpleCommunicator> = (0..100).map(|_| world.duplicate()).collect();
        assert_eq!(new.iter().map(|comm| call(comm, 5)).sum::<usize>(), 100);
        drop(new);
        for k in 0..300 {
            let one = world.duplicate();
            assert_eq!(call(&one, k as u8) + call(&one, 7), 2, "{k}");
        }
        check_bcast(&many[50], &[1, 5000, 200_000]);
    });
    if !is_child() && !said.contains("its own number of tags") {
        assert_eq!(said.matches("all tags of private communicators are in use").count(), 1, "{said}");
    }
}
