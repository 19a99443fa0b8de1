//! Every algorithm delivers every byte, over threads; and every schedule is valid.

mod common;

use collwise::collective::{COLLECTIVES, Parameters, Shape, bcast, collective};
use collwise::intercluster::Problem;
use collwise::model::{Values, model};
use collwise::predict::completion;
use collwise::schedule::{Action, Elements, check};
use collwise::transport::threads::{run, run_with, transports};
use collwise::transport::{Buffers, Task};
use collwise::two_level::{Coordinated, INTER_GROUP_ALGORITHMS, IntraGroup, Near, TwoLevel, through};
use proptest::prelude::*;

#[test]
fn every_algorithm_delivers_every_byte_over_threads() {
    const RANKS: usize = 33;
    std::thread::scope(|scope| {
        for mut transport in transports(RANKS) {
            scope.spawn(move || common::deliver_everything(&mut transport, RANKS, |_| true));
        }
    });
}

#[test]
fn every_algorithm_delivers_from_every_root_over_threads() {
    const RANKS: usize = 33;
    std::thread::scope(|scope| {
        for mut transport in transports(RANKS) {
            scope.spawn(move || common::deliver(&mut transport, RANKS, common::shapes_from_every_root));
        }
    });
}

#[test]
fn every_algorithm_is_what_its_collective_is_for() {
    let costs = model("hockney").unwrap().costs(&Values::of(&[("alpha_s", 1e-5), ("beta_s_per_byte", 1e-9)])).unwrap();
    std::thread::scope(|scope| {
        for collective in COLLECTIVES.iter().copied().filter(|c| common::has_input(c)) {
            let costs = &costs;
            scope.spawn(move || {
                for (ranks, (shape, segment)) in (1..=33)
                    .flat_map(|ranks| [common::shapes, common::shapes_from_every_root].map(|of| (ranks, of(collective, ranks))))
                    .flat_map(|(ranks, shapes)| shapes.into_iter().map(move |s| (ranks, s)))
                {
                    let specification = (collective.specification)(&shape);
                    for algorithm in collective.built() {
                        let schedule = algorithm.bounded_schedule(&shape, &Parameters::of(segment, ranks % 6));
                        if !(algorithm.fits)(&shape) {
                            assert!(schedule.unwrap_err().to_string().contains(algorithm.wants) && !algorithm.wants.is_empty());
                            continue;
                        }
                        let schedule = schedule.unwrap().unwrap();
                        check(&schedule, &specification)
                            .unwrap_or_else(|e| panic!("{} {} {shape:?}: {e}", collective.name, algorithm.name));
                        completion(&schedule, costs.as_ref()).unwrap();
                    }
                }
            });
        }
    });
}

proptest! {
    #![proptest_config(common::cases(200))]

    #[test]
    fn schedules_are_valid_and_send_no_byte_twice(
        ranks in 1usize..80, root in 0usize..80, bytes in 0usize..5000, segment in 0usize..700, radix in 0usize..9,
        peers in 0usize..3, in_place: bool, commute: bool,
    ) {
        let parameters = Parameters { peers, ..Parameters::of(segment, radix) };
        for collective in COLLECTIVES.iter().copied() {
            // most are tried above with all numbers of ranks that matter
            let ranks = if !common::has_input(collective) { ranks } else if collective.combines { ranks.div_ceil(3) } else { ranks.div_ceil(5) };
            let elements = if collective.combines { Elements { bytes: 1 + radix, commute } } else { Elements::default() };
            let bytes = if collective.sized() { bytes / elements.bytes * elements.bytes } else { 0 };
            let shape = Shape { elements, in_place, ..Shape::new(ranks, if collective.rooted { root % ranks } else { 0 }, bytes) };
            for a in collective.built().filter(|a| (a.fits)(&shape)) {
                let schedule = a.schedule(&shape, &parameters).unwrap();
                check(&schedule, &(collective.specification)(&shape))
                    .map_err(|e| TestCaseError::fail(format!("{} {} {shape:?}: {e}", collective.name, a.name)))?;
            }
        }
        let shape = Shape::new(ranks, root % ranks, bytes);
        for a in bcast::COLLECTIVE.built() {
            let schedule = a.schedule(&shape, &parameters).unwrap();
            for (me, program) in schedule.programs.iter().enumerate() {
                // nobody receives a byte that it has: receives of one rank do not overlap, and the root receives none
                let mut spans: Vec<(usize, usize)> = program.actions().filter_map(|action| match action {
                    Action::Recv { span, .. } if span.buffer == collwise::schedule::Buffer::Output && span.len > 0 => Some((span.offset, span.len)),
                    _ => None,
                }).collect();
                spans.sort_unstable();
                prop_assert!(spans.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0), "{} {shape:?} rank {me}: {spans:?}", a.name);
                let received: usize = spans.iter().map(|s| s.1).sum();
                prop_assert_eq!(received, if me == shape.root { 0 } else { bytes }, "{} {:?} rank {}", a.name, shape, me);
            }
        }
    }

    #[test]
    fn random_shapes_deliver_over_threads(ranks in 1usize..12, root in 0usize..12, bytes in 0usize..3000, segment in 0usize..500, peers in 0usize..3) {
        let shape = Shape::new(ranks, root % ranks, bytes);
        for a in bcast::ALGORITHMS.iter().filter(|a| a.builder.is_some()) {
            let schedule = a.schedule(&shape, &Parameters { peers, ..Parameters::of(segment, 0) }).unwrap();
            let message: Vec<u8> = (0..bytes).map(|k| common::byte(k, bytes)).collect();
            let mut buffers = vec![vec![0; bytes]; ranks];
            buffers[shape.root] = message.clone();
            run(&schedule, &mut buffers).unwrap();
            prop_assert!(buffers.iter().all(|b| *b == message), "{} {:?}", a.name, shape);
        }
    }
}

/// A two_level of groups, with hosts of several ranks in them, from a seed.
fn random_hierarchy(seed: u64, bytes: usize, segment: usize) -> TwoLevel {
    use rand::Rng;
    let mut random = collwise::stats::random(seed);
    let sizes: Vec<usize> = (0..random.random_range(1..6)).map(|_| random.random_range(1..7)).collect();
    let ranks: usize = sizes.iter().sum();
    let mut order: Vec<usize> = (0..ranks).collect();
    (1..ranks).rev().for_each(|k| order.swap(k, random.random_range(0..=k)));
    let mut rest = &order[..];
    let mut groups = Vec::new();
    for n in &sizes {
        groups.push(rest[..*n].to_vec());
        rest = &rest[*n..];
    }
    let n = groups.len();
    let mut draw = |low: f64, high: f64, count: usize| (0..count).map(|_| random.random_range(low..high)).collect::<Vec<f64>>();
    let problem = Problem {
        groups: n,
        root: 0,
        gap: draw(0.1, 0.6, n * n),
        latency: draw(0.001, 1.0, n * n),
        local: draw(0.1, 1.0, n),
        local_busy: draw(0.0, 0.1, n),
    };
    // the last is one algorithm over one group of all ranks
    let several = INTER_GROUP_ALGORITHMS.split_last().unwrap().1;
    let route = several[random.random_range(0..several.len())];
    let with_builder: Vec<_> = bcast::ALGORITHMS.iter().filter(|a| a.builder.is_some()).collect();
    let mut local = || IntraGroup {
        algorithm: with_builder[random.random_range(0..with_builder.len())],
        parameters: Parameters { in_flight: random.random_range(0..4), peers: random.random_range(0..3), ..Parameters::of(100, 0) },
    };
    let local = (0..n).map(|_| local()).collect();
    let hosts = if seed.is_multiple_of(2) {
        Vec::new()
    } else {
        sizes.iter().map(|&n| (0..n).map(|_| random.random_range(0..3)).collect()).collect()
    };
    let placed = if n == 1 { ranks } else { n };
    let mut site =
        |most: usize| Near { in_flight: random.random_range(0..4), sites: (0..placed).map(|_| random.random_range(0..most)).collect() };
    let near = if seed.is_multiple_of(3) { vec![site(4), site(2)] } else { Vec::new() };
    TwoLevel {
        bytes,
        groups,
        hosts,
        inter_group: route.inter_group(&problem),
        segment,
        in_flight: random.random_range(0..4),
        near,
        peers: random.random_range(0..3),
        intra_group: local,
    }
}

proptest! {
    #![proptest_config(common::cases(300))]

    #[test]
    fn every_route_with_every_local_broadcast_delivers(seed in 0u64..1_000_000, bytes in 0usize..3000, segment in 0usize..900) {
        let two_level = random_hierarchy(seed, bytes, segment);
        let ranks = two_level.ranks().len();
        let schedule = two_level.schedule(ranks).unwrap();
        check(&schedule, &two_level.specification(ranks)).map_err(|e| TestCaseError::fail(format!("{two_level:?}: {e}")))?;
        let message: Vec<u8> = (0..bytes).map(|k| common::byte(k, bytes)).collect();
        let mut buffers = vec![vec![0; bytes]; ranks];
        buffers[two_level.ranks()[0]] = message.clone();
        run(&schedule, &mut buffers).unwrap();
        prop_assert!(buffers.iter().all(|b| *b == message), "{:?}", two_level);
        // the replay and the simulator run the same lanes
        let costs = collwise::model::model("hockney").unwrap().costs(&collwise::model::Values::of(&[("alpha_s", 1e-5), ("beta_s_per_byte", 1e-9)])).unwrap();
        prop_assert!(collwise::predict::completion(&schedule, costs.as_ref()).is_ok());
    }
}

/// A collective through the coordinators of groups of any ranks, from a seed.
fn random_coordinated(seed: u64, segment: usize) -> Coordinated {
    use rand::Rng;
    let mut random = collwise::stats::random(seed);
    let mut one_of = |n: usize| random.random_range(0..n);
    let sizes: Vec<usize> = (0..1 + one_of(5)).map(|_| 1 + one_of(6)).collect();
    let mut order: Vec<usize> = (0..sizes.iter().sum()).collect();
    if seed.is_multiple_of(3) {
        (1..order.len()).rev().for_each(|k| order.swap(k, one_of(k + 1)));
    }
    let groups = sizes.iter().map(|&n| order.drain(..n).collect()).collect();
    let all: Vec<_> = COLLECTIVES.iter().copied().filter_map(through).collect();
    let through = all[seed as usize % all.len()];
    let between: Vec<_> = (through.between)()
        .into_iter()
        .filter(|a| (a.fits)(&through.collective.shape(sizes.len(), 0, if through.collective.sized() { 8 } else { 0 })))
        .collect();
    let inside = (through.inside)();
    let (inside, between) = (inside[one_of(inside.len())], between[one_of(between.len())]);
    let part = |algorithm, radix| IntraGroup { algorithm, parameters: Parameters::of(0, radix) };
    let segment = if through.segmented { segment } else { 0 };
    Coordinated { collective: through.collective, groups, inside: part(inside, one_of(5)), between: part(between, one_of(5)), segment }
}

proptest! {
    #![proptest_config(common::cases(400))]

    #[test]
    fn every_collective_through_coordinators_delivers(seed in 0u64..1_000_000, count in 0usize..500, segment in 0usize..900, in_place: bool) {
        let coordinated = random_coordinated(seed, segment);
        let collective = coordinated.collective;
        let elements = if collective.combines { Elements { bytes: 4, commute: true } } else { Elements::default() };
        let bytes = if collective.sized() { count * elements.bytes } else { 0 };
        let shape = Shape { elements, in_place, ..coordinated.shape(bytes) };
        let specification = (collective.specification)(&shape);
        let schedule = coordinated.schedule(&shape).unwrap();
        check(&schedule, &specification).map_err(|e| TestCaseError::fail(format!("{coordinated:?} {shape:?}: {e}")))?;
        prop_assert!(schedule.programs.iter().all(|p| (0..p.len()).all(|op| usize::from(p.lane(op)) < coordinated.lanes())));
        let (inputs, mut outputs): (Vec<_>, Vec<_>) = (0..shape.ranks).map(|me| common::filled(&specification, me, 7)).unzip();
        run_with(&schedule, &inputs, &mut outputs, common::schedules::operation(elements)).unwrap();
        for (after, output) in specification.after.iter().zip(&outputs) {
            for p in after {
                prop_assert!(output[p.at..p.at + p.len] == common::value(elements, 7, &p.of, p.from, p.len), "{coordinated:?} {shape:?}");
            }
        }
    }
}

/// Between counterparts of groups of every number of ranks, alike and unlike, in their order and dealt out.
#[test]
fn alltoalls_between_counterparts_deliver() {
    let collective = collective("alltoall").unwrap();
    let through = through(collective).unwrap();
    let part = |algorithm, radix| IntraGroup { algorithm, parameters: Parameters::of(0, radix) };
    for ranks in 1..=33 {
        for (k, groups) in [1, 2, 3, 5, ranks].into_iter().filter(|&groups| groups <= ranks).enumerate() {
            let alike: Vec<Vec<usize>> = (0..groups).map(|g| (g * ranks / groups..(g + 1) * ranks / groups).collect()).collect();
            let dealt: Vec<Vec<usize>> = (0..groups).map(|g| (g..ranks).step_by(groups).collect()).collect();
            // one rank in each but the last
            let unlike: Vec<Vec<usize>> = (0..groups).map(|g| if g + 1 < groups { vec![g] } else { (g..ranks).rev().collect() }).collect();
            for (n, groups) in [alike, dealt, unlike].into_iter().enumerate() {
                for (inside, between) in (through.inside)().into_iter().flat_map(|i| (through.between)().into_iter().map(move |b| (i, b))) {
                    let (inside, between) = (part(inside, 0), part(between, 2));
                    for (bytes, segment) in [(0, 0), (1, 0), (13, 0), (13, 5), (9, 40)] {
                        let c =
                            Coordinated { collective, groups: groups.clone(), inside: inside.clone(), between: between.clone(), segment };
                        if !c.by_counterparts() {
                            continue;
                        }
                        let shape = Shape { in_place: (k + n + bytes) % 2 == 0, ..c.shape(bytes) };
                        let (schedule, specification) = (c.schedule(&shape).unwrap(), (collective.specification)(&shape));
                        check(&schedule, &specification).unwrap_or_else(|e| panic!("{c:?} {shape:?}: {e}"));
                        // every block goes far once, in one message of each rank to each other group
                        let of = |rank: usize| c.groups.iter().position(|group| group.contains(&rank)).unwrap();
                        for (me, program) in schedule.programs.iter().enumerate() {
                            let far = |action: &Action| matches!(action, Action::Send { to, .. } if of(*to) != of(me));
                            let bytes_sent = program
                                .actions()
                                .filter(far)
                                .map(|action| if let Action::Send { span, .. } = action { span.len } else { 0 });
                            assert_eq!(bytes_sent.sum::<usize>(), (ranks - c.groups[of(me)].len()) * bytes);
                            let messages = if bytes > 0 { c.groups.len() - 1 } else { 0 };
                            assert!(segment > 0 || program.actions().filter(far).count() == messages, "{c:?}");
                        }
                        if ranks % 8 == 5 {
                            let (inputs, mut outputs): (Vec<_>, Vec<_>) =
                                (0..ranks).map(|me| common::filled(&specification, me, 7)).unzip();
                            run_with(&schedule, &inputs, &mut outputs, common::schedules::operation(shape.elements)).unwrap();
                            for (p, output) in
                                specification.after.iter().zip(&outputs).flat_map(|(after, o)| after.iter().map(move |p| (p, o)))
                            {
                                assert!(
                                    output[p.at..p.at + p.len] == common::value(shape.elements, 7, &p.of, p.from, p.len),
                                    "{c:?} {shape:?}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

/// With an operation whose results tell in which order operands were taken: the same bits on all ranks, and in the next run.
#[test]
fn all_ranks_get_the_same_bits() {
    let allreduce = collective("allreduce").unwrap();
    for (ranks, commute) in (1..=17).flat_map(|ranks| [(ranks, true), (ranks, false)]) {
        let shape = Shape { elements: Elements { bytes: 1, commute }, in_place: ranks % 2 == 0, ..Shape::new(ranks, 0, 40) };
        let combine = |left: &[u8], into: &mut [u8]| {
            let both =
                |l: u8, r: u8| if commute { l.wrapping_add(r).wrapping_mul(3) } else { l.wrapping_mul(3).wrapping_add(r.wrapping_mul(5)) };
            into.iter_mut().zip(left).for_each(|(r, l)| *r = both(*l, *r));
            Ok(())
        };
        let given: Vec<Vec<u8>> = (0..ranks).map(|rank| (0..40).map(|k| common::byte(k, rank)).collect()).collect();
        for algorithm in allreduce.built().filter(|a| (a.fits)(&shape)) {
            let schedule = algorithm.schedule(&shape, &Parameters::of(8, 3)).unwrap();
            let run = || {
                let inputs = if shape.in_place { vec![Vec::new(); ranks] } else { given.clone() };
                let mut outputs = if shape.in_place { given.clone() } else { vec![vec![0; 40]; ranks] };
                run_with(&schedule, &inputs, &mut outputs, combine).unwrap();
                outputs
            };
            let all = run();
            assert!(all.iter().all(|output| *output == all[0]), "{} {shape:?}: {all:?}", algorithm.name);
            assert_eq!(run(), all);
        }
    }
}

/// Over threads, which share a clock: the first one to leave does so when the last one has come.
#[test]
fn nobody_leaves_a_barrier_before_everybody_has_come() {
    for ranks in [2, 3, 8, 13] {
        for collective in COLLECTIVES.iter().copied().filter(|c| !c.sized()) {
            for algorithm in collective.built() {
                for late in [0, ranks / 2, ranks - 1] {
                    let shape = Shape::new(ranks, 0, 0);
                    let times: Vec<_> = std::thread::scope(|scope| {
                        let run = |mut transport: collwise::transport::threads::ThreadTransport| {
                            let me = collwise::transport::Transport::rank(&transport);
                            let program = algorithm.builder.unwrap()(me, &shape, &Parameters::default());
                            if me == late {
                                std::thread::sleep(std::time::Duration::from_millis(5));
                            }
                            let came = std::time::Instant::now();
                            let mut executor = collwise::transport::Executor::default();
                            // SAFETY: its messages are empty
                            #[allow(unsafe_code)]
                            unsafe {
                                executor.run(&mut transport, &mut Task::new(&program), Buffers::default(), 0).unwrap()
                            };
                            (came, std::time::Instant::now())
                        };
                        let all: Vec<_> = transports(ranks).into_iter().map(|t| scope.spawn(move || run(t))).collect();
                        all.into_iter().map(|t| t.join().unwrap()).collect()
                    });
                    let (last, first) = (times.iter().map(|t| t.0).max(), times.iter().map(|t| t.1).min());
                    assert!(first >= last, "{} of {ranks} ranks, {late} late", algorithm.name);
                }
            }
        }
    }
}

#[test]
fn a_failing_rank_is_named_and_nothing_hangs() {
    let mut program = collwise::schedule::Program::new();
    program.send(1, collwise::schedule::Span::output(5, 10), &[]);
    let schedule = collwise::schedule::Schedule { programs: vec![program, Default::default()] };
    let e = run(&schedule, &mut [vec![0; 8], vec![0; 8]]).unwrap_err();
    assert!(e.to_string().contains("bytes 5 to 15 lie outside its output"), "{e}");
}
