//! Plans with the library's own collectives among groups, coordinators and all ranks, between programs: no builder makes such ones yet.

#[path = "../../../tests/common/mod.rs"]
mod common;

#[cfg(feature = "cli")]
use super::super::RUNTIME;
use super::super::communicator::{self, State, state};
use super::super::{AdaptiveCollectives, datatype, private_communicators, raw};
use super::*;
use crate::collective::{allreduce, barrier, bcast};
use crate::schedule::{Schedule, Span, check};
use crate::transport::library::Operation;
use common::mpi::{must_succeed, on_ranks, three_groups};
use mpi::datatype::{MutView, UserDatatype};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{AsRaw, Communicator, CommunicatorCollectives, Equivalence};
use std::collections::BTreeMap;
use std::sync::{Mutex, Weak};

const RANKS: usize = 8;
/// Bytes that are sent, and added.
const BYTES: usize = 1000;

/// The ranks of each group of several, and the first one of each group.
fn groups(of: &[usize]) -> (Vec<Vec<Rank>>, Vec<Rank>) {
    let mut groups: BTreeMap<usize, Vec<Rank>> = BTreeMap::new();
    of.iter().enumerate().for_each(|(rank, &group)| groups.entry(group).or_default().push(rank));
    let coordinators = groups.values().map(|ranks| ranks[0]).collect();
    (groups.into_values().filter(|ranks| ranks.len() > 1).collect(), coordinators)
}

/// A call among some ranks, as a step of one of them.
fn native(me: Rank, collective: &'static Collective, ranks: &[Rank], root: Rank, in_place: bool) -> Option<Step> {
    let root = ranks.iter().position(|&r| r == root).unwrap();
    ranks.contains(&me).then(|| Step::Native(NativeCall { in_place, ..NativeCall::new(collective, ranks.to_vec(), root) }))
}

/// A broadcast from a root: among the coordinators with the root, then, after each sent all to the last one of its group, from there inside groups, and
/// once more to all from the last rank.
fn broadcast(of: &[usize], me: Rank, root: Rank) -> Vec<Step> {
    let ((groups, coordinators), span) = (groups(of), Span::output(0, BYTES));
    let among: Vec<Rank> = coordinators.iter().map(|&c| if of[c] == of[root] { root } else { c }).collect();
    let mut steps: Vec<Step> = native(me, &bcast::COLLECTIVE, &among, root, false).into_iter().collect();
    if let Some(group) = groups.iter().find(|group| group.contains(&me)) {
        let from = among[coordinators.iter().position(|&c| c == group[0]).unwrap()];
        let last = *group.iter().rfind(|&&r| r != from).unwrap();
        let mut program = Program::new();
        if me == from {
            program.send(last, span, &[]);
        } else if me == last {
            program.recv(from, span, &[]);
        }
        steps.push(Step::Program(program));
        steps.extend(native(me, &bcast::COLLECTIVE, group, last, false));
    }
    steps.extend(native(me, &bcast::COLLECTIVE, &(0..of.len()).collect::<Vec<_>>(), of.len() - 1, false));
    steps
}

/// An allreduce: up a chain inside groups by programs, among coordinators in place, by programs to the last ones, and from there inside groups.
fn all_reduce(of: &[usize], me: Rank) -> Vec<Step> {
    let ((groups, coordinators), (input, output)) = (groups(of), (Span::input(0, BYTES), Span::output(0, BYTES)));
    let group = groups.iter().find(|group| group.contains(&me));
    let place = group.map_or(0, |group| group.iter().position(|&r| r == me).unwrap());
    let mut program = Program::new();
    let mut own = program.push(crate::schedule::Action::Copy { from: input, into: output }, &[]);
    if let Some(&next) = group.and_then(|group| group.get(place + 1)) {
        let scratch = Span { buffer: crate::schedule::Buffer::Scratch, offset: 0, len: BYTES };
        let come = program.recv(next, scratch, &[]);
        own = program.push(crate::schedule::Action::Combine { left: scratch, into: output }, &[own, come]);
    }
    if place > 0 {
        program.send(group.unwrap()[place - 1], output, &[own]);
    }
    let mut steps = vec![Step::Program(program)];
    steps.extend(native(me, &allreduce::COLLECTIVE, &coordinators, coordinators[0], true));
    if let Some(group) = group {
        let (first, last) = (group[0], group[group.len() - 1]);
        let mut program = Program::new();
        if me == first {
            program.send(last, output, &[]);
        } else if me == last {
            program.recv(first, output, &[]);
        }
        steps.push(Step::Program(program));
        steps.extend(native(me, &bcast::COLLECTIVE, group, last, false));
    }
    steps
}

/// A barrier: among coordinators between two inside groups.
fn barrier_of_groups(of: &[usize], me: Rank) -> Vec<Step> {
    let (groups, coordinators) = groups(of);
    let inside = || groups.iter().find_map(|group| native(me, &barrier::COLLECTIVE, group, group[0], false));
    let between = native(me, &barrier::COLLECTIVE, &coordinators, coordinators[0], false);
    inside().into_iter().chain(between).chain(inside()).collect()
}

/// What a collective is called with whose one buffer is the message.
fn of_message(data: *mut u8, bytes: usize, root: Rank) -> Arguments {
    Arguments { buffers: Buffers::in_place(data, bytes), bytes, root, operation: None }
}

/// The messages of all ranks' steps, one after the other, with what takes the place of the library's own.
fn schedule(steps: impl Fn(Rank) -> Vec<Step>, bytes: usize) -> Schedule {
    let program = |me: Rank| {
        let mut all = Program::new();
        for step in steps(me) {
            let before: Vec<_> = (0..all.len()).map(|op| op as u32).collect();
            let program = match step {
                Step::Program(program) => program,
                Step::Native(call) => call.program(me, bytes, Elements::default()).unwrap(),
            };
            all.append(&program, |r| r, &before);
        }
        all
    };
    Schedule { programs: (0..RANKS).map(program).collect() }
}

#[test]
fn steps_bring_about_what_the_collective_is_for() {
    let of = [0, 1, 2, 0, 1, 0, 1, 0];
    for root in 0..RANKS {
        check(&schedule(|me| broadcast(&of, me, root), BYTES), &bcast::specification(&Shape::new(RANKS, root, BYTES))).unwrap();
    }
    let all = (allreduce::COLLECTIVE.specification)(&Shape::new(RANKS, 0, BYTES));
    check(&schedule(|me| all_reduce(&of, me), BYTES), &all).unwrap();
    check(&schedule(|me| barrier_of_groups(&of, me), 0), &barrier::specification(&Shape::new(RANKS, 0, 0))).unwrap();
}

/// The plans of a communicator that is used again.
fn planned<'a>(comm: &SimpleCommunicator) -> &'a mut Planned {
    // SAFETY: a valid communicator, which nobody else uses
    match unsafe { (state(comm.as_raw()).unwrap(), state(comm.as_raw()).unwrap()).1 } {
        Some(State::Planned(planned)) => planned,
        Some(State::Later | State::Native) | None => panic!("it has no plans"),
    }
}

/// Runs all of them, and checks every byte.
fn run_all(comm: &SimpleCommunicator) {
    let (me, planned) = (comm.rank() as usize, planned(comm));
    let of = planned.groups();
    for root in 0..of.len() {
        let mut data = vec![if me == root { root as u8 + 1 } else { 0 }; BYTES];
        // SAFETY: the buffer is of the size that the steps say, as in all that follow
        unsafe { planned.run(&bcast::COLLECTIVE, &broadcast(&of, me, root), &of_message(data.as_mut_ptr(), BYTES, root)) }.unwrap();
        assert_eq!(data, vec![root as u8 + 1; BYTES], "from {root} at {me}");
        let (given, mut sum) = (vec![me as u8 + 1; BYTES], vec![0xEE; BYTES]);
        let operation = Some(Operation::measured(Elements::default()));
        let arguments = Arguments { buffers: Buffers::of(&given, &mut sum), bytes: BYTES, root: 0, operation };
        unsafe { planned.run(&allreduce::COLLECTIVE, &all_reduce(&of, me), &arguments) }.unwrap();
        assert_eq!(sum, vec![(1..=of.len()).fold(0, |all, rank| all ^ rank as u8); BYTES], "at {me}");
        unsafe { planned.run(&barrier::COLLECTIVE, &barrier_of_groups(&of, me), &of_message(std::ptr::null_mut(), 0, 0)) }.unwrap();
    }
}

/// Runs a part on ranks of three groups, of which none may fall back.
fn over_mpi(name: &str, threads: bool, part: impl Fn(&SimpleCommunicator)) {
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), RANKS);
    let mut environment = vec![("COLLWISE_POLICY", policy.as_path()), ("COLLWISE_HOSTS", &hosts)];
    environment.extend(threads.then_some(("COLLWISE_TEST_THREADS", Path::new("1"))));
    let said = must_succeed(on_ranks(&format!("run::planned::tests::{name}"), RANKS, &environment, part));
    assert!(!said.contains("library's own collectives"), "it fell back: {said}");
}

#[test]
fn steps_run_among_any_ranks_in_communicators_that_go_with_theirs() {
    over_mpi("steps_run_among_any_ranks_in_communicators_that_go_with_theirs", false, |world| {
        let comm = world.duplicate();
        run_all(&comm);
        // that of all processes, the group's, and those of the coordinators, with each root elsewhere; none where the whole communicator serves
        let (me, of) = (world.rank() as usize, planned(&comm).groups());
        let (roots, coordinators) = (of.iter().filter(|&&group| group == of[me]).count(), groups(&of).1);
        let others = if coordinators.contains(&me) { 1 + RANKS - roots - (coordinators.len() - 1) } else { 1 };
        assert_eq!(private_communicators(), 1 + usize::from(roots > 1) + others, "of {me}");
        // others of the same processes have the same
        run_all(&world.duplicate());
        assert_eq!(private_communicators(), 1 + usize::from(roots > 1) + others);
        drop(comm);
        world.barrier();
        assert_eq!(private_communicators(), 1);
        run_all(&world.duplicate());
        assert_eq!(private_communicators(), 1);
    });
}

#[test]
fn what_is_set_up_when_mpi_begins_has_plans_at_once() {
    over_mpi("what_is_set_up_when_mpi_begins_has_plans_at_once", false, |world| {
        raw::start().unwrap();
        // SAFETY: a valid communicator, which nobody else uses
        assert!(matches!(unsafe { state(world.as_raw()) }.unwrap(), Some(State::Planned(_))));
        run_all(world);
        // others go by the hosts that were gathered for it
        let backwards = world.split_by_color_with_key(mpi::topology::Color::with_value(0), -world.rank()).unwrap();
        // SAFETY: as above
        assert!(matches!(unsafe { state(backwards.as_raw()) }.unwrap(), Some(State::Planned(_))));
        let (mine, theirs) = (planned(world).groups(), planned(&backwards).groups());
        assert_eq!(mine, theirs.into_iter().rev().collect::<Vec<_>>());
        run_all(&backwards);
        run_all(&world.split_by_color(mpi::topology::Color::with_value(world.rank() % 2)).unwrap());
    });
}

#[test]
fn steps_run_without_communicators_where_several_threads_may_make_theirs() {
    over_mpi("steps_run_without_communicators_where_several_threads_may_make_theirs", true, |world| {
        run_all(world);
        assert_eq!(private_communicators(), 1);
    });
}

/// Rank 1 has the message, whatever the root.
#[cfg(feature = "cli")]
fn from_the_second(me: usize, ranks: usize) -> Program {
    let (mut program, all) = (Program::new(), Span::output(0, BYTES));
    if me == 1 {
        (0..ranks).filter(|&to| to != me).for_each(|to| _ = program.send(to, all, &[]));
    } else {
        program.recv(1, all, &[]);
    }
    program
}

#[cfg(feature = "cli")]
#[test]
fn what_is_measured_in_a_row_goes_by_its_steps_and_not_by_a_policy() {
    let name = "run::planned::tests::what_is_measured_in_a_row_goes_by_its_steps_and_not_by_a_policy";
    must_succeed(on_ranks(name, RANKS, &[], |world| {
        let hosts: Vec<String> = (0..world.size()).map(|rank| format!("h{}", rank / 2)).collect();
        assert!((RUNTIME.set_up)(world.as_raw(), &hosts).unwrap().is_some());
        for comm in [world.duplicate(), world.split_by_color(mpi::topology::Color::with_value(world.rank() % 2)).unwrap()] {
            let (me, ranks) = (comm.rank() as usize, comm.size() as usize);
            let mut data = vec![me as u8; BYTES];
            let buffers = Buffers::in_place(data.as_mut_ptr(), BYTES);
            let (arguments, layout) =
                (Arguments { buffers, bytes: BYTES, root: 0, operation: None }, crate::schedule::Layout { input: 0, output: BYTES });
            let steps = vec![Step::Program(from_the_second(me, ranks))];
            let call = (RUNTIME.call)(comm.as_raw(), &bcast::COLLECTIVE, steps, layout, &arguments).unwrap().unwrap();
            (0..10).for_each(|_| call().unwrap());
            assert_eq!(data, [1; BYTES], "of {me}");
            // from another root and among some ranks, and with items that are combined
            let (of, root) = ((0..ranks).map(|rank| rank % 2).collect::<Vec<_>>(), ranks - 1);
            let mut data = vec![if me == root { 7 } else { 0 }; BYTES];
            let message = of_message(data.as_mut_ptr(), BYTES, root);
            let call = (RUNTIME.call)(comm.as_raw(), &bcast::COLLECTIVE, broadcast(&of, me, root), layout, &message).unwrap().unwrap();
            call().unwrap();
            assert_eq!(data, [7; BYTES], "of {me}");
            // numbers, of which the library's own broadcast among some ranks has the bytes
            let number = Elements { bytes: size_of::<f64>(), commute: true };
            let (given, mut sum) = ((1.0 + me as f64).to_ne_bytes().repeat(BYTES / 8), vec![0; BYTES]);
            let operation = Some(Operation::measured(number));
            let arguments = Arguments { buffers: Buffers::of(&given, &mut sum), bytes: BYTES, root: 0, operation };
            let both = crate::schedule::Layout { input: BYTES, output: BYTES };
            let call = (RUNTIME.call)(comm.as_raw(), &allreduce::COLLECTIVE, all_reduce(&of, me), both, &arguments).unwrap().unwrap();
            call().unwrap();
            assert_eq!(sum, ((ranks * (ranks + 1)) as f64 / 2.0).to_ne_bytes().repeat(BYTES / 8), "of {me}");
        }
    }));
}

/// A broadcast's plan that the communicator remembers.
fn remembered(comm: &SimpleCommunicator) -> Weak<plan::Planned> {
    for _ in 0..3 {
        comm.adaptive_bcast(0, &mut [0u8; BYTES][..]).unwrap();
    }
    let plan = planned(comm).planned(&bcast::COLLECTIVE, |ranks| Shape::new(ranks, 0, BYTES));
    // the planner's, the communicator's, and this one
    assert!(matches!(*plan, plan::Planned::Run(_)) && Arc::strong_count(&plan) >= 3);
    Arc::downgrade(&plan)
}

#[test]
fn plans_go_with_their_communicator() {
    over_mpi("plans_go_with_their_communicator", false, |world| {
        let half = || world.split_by_color(mpi::topology::Color::with_value(world.rank() % 2)).unwrap();
        // with a team of its own, and with one that is kept
        for _ in 0..2 {
            let (comm, other) = (half(), half());
            let (plan, shared) = (remembered(&comm), remembered(&comm.duplicate()));
            drop(comm);
            assert_eq!((plan.strong_count(), shared.strong_count()), (0, 0));
            remembered(&other);
            remembered(world);
        }
    });
}

/// The world's plan, and what is found of it when MPI ends.
static PLAN: Mutex<Weak<plan::Planned>> = Mutex::new(Weak::new());

unsafe extern "C" fn at_the_end(_: ffi::MPI_Comm, _: c_int, _: *mut std::ffi::c_void, _: *mut std::ffi::c_void) -> c_int {
    let plans = PLAN.lock().unwrap().strong_count();
    let world = SimpleCommunicator::world();
    let mut data = [world.rank() as u8; BYTES];
    world.adaptive_bcast(3, &mut data[..]).unwrap();
    world.duplicate().adaptive_bcast(3, &mut data[..]).unwrap();
    let mut sum = [0u8; 1];
    world.adaptive_allreduce(&[1u8][..], &mut sum[..], mpi::collective::SystemOperation::sum()).unwrap();
    assert_eq!(usize::from(sum[0]), world.size() as usize);
    let pair = UserDatatype::vector(2, 1, 2, &u8::equivalent_datatype());
    // SAFETY: one item, which `data` holds
    let mut scattered = unsafe { MutView::with_count_and_datatype(&mut data[..], 1, &pair) };
    world.adaptive_bcast(3, &mut scattered).unwrap();
    let keys = keys_that_mpi_knows(&world);
    println!("at the end {plans} plans, {} private communicators, {keys} keys, {} came", private_communicators(), data[0]);
    0
}

/// How many of our attributes' keys MPI knows.
fn keys_that_mpi_knows(world: &SimpleCommunicator) -> usize {
    let (mut value, mut found) = (std::ptr::null_mut::<std::ffi::c_void>(), 0);
    let (on_communicators, on_datatypes) = (*communicator::KEYVAL.get().unwrap(), *datatype::KEYVAL.get().unwrap());
    // SAFETY: out-parameters of the right types; a key that MPI does not know is an error, which is returned
    let codes = unsafe {
        native::PMPI_Comm_set_errhandler(world.as_raw(), ffi::RSMPI_ERRORS_RETURN);
        let of_world = native::PMPI_Comm_get_attr(world.as_raw(), on_communicators, (&raw mut value).cast(), &mut found);
        [of_world, native::PMPI_Type_get_attr(ffi::RSMPI_UINT8_T, on_datatypes, (&raw mut value).cast(), &mut found)]
    };
    codes.into_iter().filter(|&code| code == ffi::MPI_SUCCESS as c_int).count()
}

/// Callbacks of MPI's end that were set before are called after ours, and may call collectives.
#[test]
fn plans_go_when_mpi_ends_and_collectives_are_the_librarys_own_from_then_on() {
    let name = "run::planned::tests::plans_go_when_mpi_ends_and_collectives_are_the_librarys_own_from_then_on";
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), 4);
    let said = must_succeed(on_ranks(name, 4, &[("COLLWISE_POLICY", &policy), ("COLLWISE_HOSTS", &hosts)], |world| {
        let mut key = 0;
        // SAFETY: callbacks with the signatures that MPI asks for
        unsafe {
            let (copy, nothing) = (Some(super::super::no_copy as _), std::ptr::null_mut());
            assert_eq!(native::PMPI_Comm_create_keyval(copy, Some(at_the_end), &mut key, nothing), 0);
            assert_eq!(native::PMPI_Comm_set_attr(ffi::RSMPI_COMM_SELF, key, nothing), 0);
        }
        *PLAN.lock().unwrap() = remembered(world);
        std::mem::forget(world.duplicate());
        let pair = UserDatatype::vector(2, 1, 2, &u8::equivalent_datatype());
        let mut data = [0u8; 4];
        // SAFETY: one item, which `data` holds
        let mut scattered = unsafe { MutView::with_count_and_datatype(&mut data[..], 1, &pair) };
        world.adaptive_bcast(3, &mut scattered).unwrap();
        drop(pair);
        assert_eq!(keys_that_mpi_knows(world), 2);
    }));
    assert!(common::mpi::is_child() || said.matches("at the end 0 plans, 0 private communicators, 0 keys, 3 came").count() == 4, "{said}");
}
