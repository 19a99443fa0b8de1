//! Schedules drawn at random deliver the same bytes in the symbolic run, over threads, over MPI and over SMPI; threads, replay and simulator
//! carry them out by the same rules.

mod common;

use collwise::collective::{Algorithm, COLLECTIVES, Parameters, Shape, placed_program};
use collwise::model::{CostModel, Values, model};
use collwise::platform::{Noise, Placement, Platform};
use collwise::predict::replay;
use collwise::schedule::{Action, Elements, Fold, Layout, OpId, Piece, Program, Schedule, Span, Specification, Trace, WINDOW, check};
use collwise::sim::{Disturbance, Simulator};
use collwise::transport::Executor;
use collwise::transport::threads::{run_with, transports};
use common::rules::{Carried, broken};
use common::schedules::{Drawn, drawn, operation, run_rank};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// No message is so long.
const MANY: usize = 1 << 30;

/// Runs what is drawn from a seed over threads, and checks every byte.
fn over_threads(drawn: &Drawn, seed: u64) -> Vec<Trace> {
    std::thread::scope(|scope| {
        let run = |mut transport| scope.spawn(move || run_rank(&mut Executor::default(), &mut transport, drawn, seed));
        let all: Vec<_> = transports(drawn.schedule.ranks()).into_iter().map(run).collect();
        all.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// Three groups, whose hosts send messages above so many bytes with a handshake.
fn simulator(eager: usize) -> Simulator {
    let text = common::THREE_GROUPS.replace("[hosts]\n", &format!("[hosts]\neager_limit_bytes = {eager}\n"));
    Simulator::new(&Platform::parse("three", &text).unwrap(), Placement::Slot).unwrap()
}

/// Models whose receivers pay nothing, something for each message, and something for each packet.
fn machines() -> Vec<Box<dyn CostModel>> {
    let of = |name: &str, values: &[(&str, f64)]| model(name).unwrap().costs(&Values::of(values)).unwrap();
    vec![
        of("hockney", &[("alpha_s", 1e-5), ("beta_s_per_byte", 1e-9)]),
        of("loggp", &[("L", 5e-6), ("o", 6e-6), ("g", 3e-6), ("G", 1e-9)]),
        of("logp", &[("L", 5e-6), ("o", 6e-6), ("g", 3e-6), ("w", 50.0)]),
    ]
}

proptest! {
    #![proptest_config(common::cases(200))]

    #[test]
    fn over_threads_and_in_the_symbolic_run(seed in 0u64.., ranks in 2usize..6, steps in 0usize..200, bytes in 1usize..200) {
        let drawn = drawn(seed, ranks, steps, bytes);
        check(&drawn.schedule, &drawn.specification).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let traces = over_threads(&drawn, seed);
        let threads = Carried { traces: &traces, posts: false, unsaid: WINDOW, eager: usize::MAX };
        prop_assert_eq!(broken(&drawn.schedule, &threads), None, "over threads");
        for costs in machines() {
            let traces = replay(&drawn.schedule, costs.as_ref()).unwrap().traces;
            let replayed = Carried { traces: &traces, posts: false, unsaid: usize::MAX, eager: usize::MAX };
            prop_assert_eq!(broken(&drawn.schedule, &replayed), None, "replayed");
        }
        for eager in [MANY, 20, 0] {
            let traces = simulator(eager).run(&drawn.schedule, &mut Disturbance::new(Noise::default(), seed)).unwrap();
            let simulated = Carried { traces: &traces, posts: true, unsaid: WINDOW, eager };
            prop_assert_eq!(broken(&drawn.schedule, &simulated), None, "simulated, eager up to {} bytes", eager);
        }
    }
}

/// A message passed on waits for the receive of the one before it in its stream, which waits for a third rank.
#[test]
fn receives_of_a_stream_are_posted_in_order() {
    const LATE: f64 = 0.05;
    let token = Span::control(1);
    let mut programs = vec![Program::new(); 4];
    programs[0].send(1, token, &[]);
    programs[0].send(1, token, &[]);
    programs[2].push(Action::Delay { seconds: LATE }, &[]);
    programs[2].send(1, token, &[]);
    let late = programs[1].recv(2, token, &[]);
    programs[1].recv(0, token, &[late]);
    let second = programs[1].recv(0, token, &[]);
    programs[1].send(3, token, &[second]);
    programs[3].recv(1, token, &[]);
    let nothing = Drawn::without_bytes(Schedule { programs });
    check(&nothing.schedule, &nothing.specification).unwrap();
    let replayed = machines().into_iter().map(|costs| replay(&nothing.schedule, costs.as_ref()).unwrap().traces);
    let simulated = [MANY, 0].map(|eager| simulator(eager).run(&nothing.schedule, &mut Disturbance::new(Noise::default(), 0)).unwrap());
    for traces in replayed.chain(simulated).chain([over_threads(&nothing, 0)]) {
        assert!(traces[3].end[0] > LATE, "{traces:?}");
    }
}

#[cfg(feature = "mpi")]
#[test]
fn random_schedules_over_mpi() {
    use mpi::traits::*;
    common::mpi::must_succeed(common::mpi::on_ranks("random_schedules_over_mpi", 4, &[], |world| {
        let private = world.duplicate();
        // SAFETY: `private` outlives the transport
        #[allow(unsafe_code)]
        let transport = unsafe { collwise::transport::mpi::MpiTransport::new(private.as_raw()) };
        // so that sends are complete at once, and only when they are received
        common::schedules::run_drawn(&mut transport.unwrap(), 4, 150, [20, 5_000, 70_000]);
    }));
}

/// Everybody's `elements` values, combined, everywhere: what an allreduce is for.
fn allreduce(ranks: usize, elements: Elements) -> Specification {
    let bytes = 4 * elements.bytes;
    Specification {
        layouts: vec![Layout { input: bytes, output: bytes }; ranks],
        before: (0..ranks).map(|r| vec![Piece::input(bytes, r)]).collect(),
        after: vec![vec![Piece::output(0, bytes, Fold::of_all(ranks), 0)]; ranks],
        elements,
        synchronises: false,
    }
}

/// Recursive doubling: of two partners' values the lower one's are the left operand, if `in_order`.
fn recursive_doubling(ranks: usize, bytes: usize, in_order: bool) -> Schedule {
    Schedule::build(ranks, |me| {
        let mut p = Program::new();
        let (output, scratch) = (Span::output(0, bytes), Span::scratch(0, bytes));
        let mut last = p.copy(Span::input(0, bytes), output, &[]);
        let mut distance = 1;
        while distance < ranks {
            let partner = me ^ distance;
            let sent = p.send(partner, output, &[last]);
            let came = p.recv(partner, scratch, &[last]);
            last = if partner < me || !in_order {
                p.combine(scratch, output, &[came, sent])
            } else {
                let combined = p.combine(output, scratch, &[came, sent]);
                p.copy(scratch, output, &[combined])
            };
            distance *= 2;
        }
        p
    })
}

#[test]
fn a_reduction_is_what_it_should_be() {
    let unordered = Elements { bytes: 2, commute: true };
    let ordered = Elements { bytes: 2, commute: false };
    assert!(check(&recursive_doubling(8, 8, true), &allreduce(8, ordered)).is_ok());
    assert!(check(&recursive_doubling(8, 8, false), &allreduce(8, unordered)).is_ok());
    let say = |schedule: &Schedule, specification: &Specification| check(schedule, specification).unwrap_err().to_string();
    assert!(say(&recursive_doubling(8, 8, false), &allreduce(8, ordered)).contains(" combines ranks ["));
    // the same in real memory, with an operation that does not commute
    let inputs: Vec<Vec<u8>> = (0..8).map(|r| common::schedules::own(r, 8)).collect();
    let mut outputs = vec![vec![0; 8]; 8];
    run_with(&recursive_doubling(8, 8, true), &inputs, &mut outputs, operation(ordered)).unwrap();
    let mut folded = inputs[7].clone();
    inputs[..7].iter().rev().for_each(|left| operation(ordered)(left, &mut folded).unwrap());
    assert!(outputs.iter().all(|o| *o == folded));
}

#[test]
fn each_fault_of_copies_and_combinings_is_named() {
    let (input, output, scratch) = (|at, n| Span::input(at, n), |at, n| Span::output(at, n), |at, n| Span::scratch(at, n));
    let elements = Elements { bytes: 2, commute: true };
    let alone = |build: &dyn Fn(&mut Program) -> OpId| {
        let mut p = Program::new();
        build(&mut p);
        check(&Schedule { programs: vec![p] }, &allreduce(1, elements)).map_err(|e| e.to_string())
    };
    assert_eq!(alone(&|p| p.copy(input(0, 8), output(0, 8), &[])), Ok(()));
    let say = |build: &dyn Fn(&mut Program) -> OpId| alone(build).unwrap_err();
    assert!(say(&|p| p.copy(output(0, 8), input(0, 8), &[])).contains("writes into the input"));
    assert!(say(&|p| p.copy(output(0, 4), output(2, 4), &[])).contains("writes into what it reads"));
    assert!(say(&|p| p.copy(scratch(0, 8), output(0, 8), &[])).contains("reads byte 0 of its scratch, where nothing lies"));
    assert!(say(&|p| p.copy(input(0, 9), output(0, 9), &[])).contains("outside the 8 bytes"));
    assert!(say(&|p| p.copy(input(0, 6), output(0, 6), &[])).contains("ends without"));
    // their last byte's number has more digits than a number has
    assert!(say(&|p| p.copy(input(0, 8), output(usize::MAX - 3, 8), &[])).contains("outside the 8 bytes"));
    assert!(say(&|p| p.copy(input(0, 8), scratch(usize::MAX - 3, 8), &[])).contains("outside the"));
    let twice = |p: &mut Program| {
        p.copy(input(0, 8), output(0, 8), &[]);
        p.combine(input(0, 8), output(0, 8), &[])
    };
    assert!(say(&twice).contains("combines ranks [0] with [0]"));
    let elsewhere = |p: &mut Program| {
        p.copy(input(0, 8), output(0, 8), &[]);
        p.combine(input(2, 6), output(0, 6), &[])
    };
    assert!(say(&elsewhere).contains("combines place 2 of one value with place 0 of another"));
    let two = |n: usize| {
        let mut specification = allreduce(2, elements);
        specification.after.fill(Vec::new());
        let mut programs = vec![Program::new(), Program::new()];
        programs[0].send(1, input(0, 8), &[]);
        programs[1].copy(input(0, 8), output(0, 8), &[]);
        let came = programs[1].recv(0, scratch(0, 8), &[]);
        programs[1].combine(scratch(0, n), output(0, n), &[came]);
        check(&Schedule { programs }, &specification).map_err(|e| e.to_string())
    };
    assert_eq!(two(6), Ok(()));
    assert!(two(3).unwrap_err().contains("combines bytes 0 to 3, which are no elements of 2"));
}

/// Whoever calls a collective, or plans it, knows a rank's buffers by whether it is the root.
#[test]
fn all_ranks_but_the_root_have_buffers_alike() {
    for collective in COLLECTIVES.iter().copied() {
        for (ranks, root, bytes, in_place) in [(2, 1, 7, false), (9, 4, 100, true), (9, 4, 100, false), (16, 0, 1, true), (16, 0, 1, false)]
        {
            let root = if collective.rooted { root } else { 0 };
            let shape = Shape { in_place, ..collective.shape(ranks, root, if collective.sized() { bytes } else { 0 }) };
            let others: Vec<Layout> =
                (0..ranks).filter(|&rank| !collective.rooted || rank != root).map(|rank| (collective.layout)(&shape, rank)).collect();
            assert!(others.windows(2).all(|pair| pair[0] == pair[1]), "{} {shape:?}: {others:?}", collective.name);
        }
    }
}

/// So the ranks that send most in one receive most in the other.
#[test]
fn what_mirrors_another_algorithm_sends_its_messages_the_other_way_round() {
    let mut mirrored = 0;
    for (collective, algorithm) in COLLECTIVES.iter().copied().flat_map(|c| c.built().map(move |a| (c, a))) {
        let Some(other) = algorithm.mirrors else { continue };
        assert!(std::ptr::eq(collective.places_of(algorithm).unwrap(), other), "{} {}", collective.name, algorithm.name);
        for ranks in 1..18 {
            let messages = |algorithm: &Algorithm, back: bool| -> BTreeSet<(usize, usize)> {
                let schedule = algorithm.schedule(&Shape::new(ranks, 0, 1000), &Parameters::of(100, 0)).unwrap();
                let sends = schedule.programs.iter().enumerate().flat_map(|(me, p)| p.actions().map(move |a| (me, a)));
                sends
                    .filter_map(|(me, a)| if let Action::Send { to, .. } = a { Some(if back { (to, me) } else { (me, to) }) } else { None })
                    .collect()
            };
            assert_eq!(messages(algorithm, false), messages(other, true), "{} {} of {ranks}", collective.name, algorithm.name);
        }
        mirrored += 1;
    }
    assert!(mirrored >= 13, "{mirrored}");
}

#[test]
fn whoever_takes_which_place_everybody_gets_the_same() {
    let mut forms = 0;
    for collective in COLLECTIVES.iter().copied() {
        for ranks in 2..18 {
            // the others from the last one on, every second first
            let order = |root: usize| -> Vec<usize> {
                let all = (0..ranks).rev().step_by(2).chain((0..ranks - 1).rev().step_by(2));
                std::iter::once(root).chain(all.filter(|&rank| rank != root)).collect()
            };
            for (shape, segment) in common::shapes(collective, ranks).into_iter().filter(|(shape, _)| shape.elements.commute) {
                for algorithm in collective.built().filter(|a| collective.places_of(a).is_some() && (a.fits)(&shape)) {
                    let order = order(shape.root);
                    let parameters = Parameters::of(if algorithm.segmented { segment } else { 0 }, 0);
                    let program = |me| placed_program(collective, algorithm, me, &shape, &parameters, &order).unwrap();
                    let schedule = Schedule { programs: (0..ranks).map(program).collect() };
                    check(&schedule, &(collective.specification)(&shape))
                        .unwrap_or_else(|e| panic!("{} {} {shape:?} in the order {order:?}: {e}", collective.name, algorithm.name));
                    forms += 1;
                }
            }
        }
    }
    assert!(forms > 1000, "{forms}");
}
