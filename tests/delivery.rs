//! Every algorithm delivers every byte, over threads; and every schedule is valid.

mod common;

use collwise::collective::{Parameters, Shape, bcast};
use collwise::schedule::{Action, check};
use collwise::transport::threads::{run, transports};
use proptest::prelude::*;

#[test]
fn every_algorithm_delivers_every_byte_over_threads() {
    const RANKS: usize = 33;
    std::thread::scope(|scope| {
        for mut transport in transports(RANKS) {
            scope.spawn(move || common::deliver_everything(&mut transport, RANKS));
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn schedules_are_valid_and_send_no_byte_twice(
        ranks in 1usize..80, root in 0usize..80, bytes in 0usize..5000, segment in 0usize..700, radix in 0usize..9,
    ) {
        let shape = Shape { ranks, root: root % ranks, bytes };
        for a in bcast::ALGORITHMS.iter().filter(|a| a.builder.is_some()) {
            let schedule = a.schedule(&shape, &Parameters { segment, radix }).unwrap();
            check(&schedule, bytes).map_err(|e| TestCaseError::fail(format!("{} {shape:?}: {e}", a.name)))?;
            for (me, program) in schedule.programs.iter().enumerate() {
                // nobody receives a byte that it has: receives of one rank do not overlap, and the root receives none
                let mut spans: Vec<(usize, usize)> = program.actions().filter_map(|action| match action {
                    Action::Recv { span, .. } if span.buffer == collwise::schedule::Buffer::Data && span.len > 0 => Some((span.offset, span.len)),
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
    fn random_shapes_deliver_over_threads(ranks in 1usize..12, root in 0usize..12, bytes in 0usize..3000, segment in 0usize..500) {
        let shape = Shape { ranks, root: root % ranks, bytes };
        for a in bcast::ALGORITHMS.iter().filter(|a| a.builder.is_some()) {
            let schedule = a.schedule(&shape, &Parameters { segment, radix: 0 }).unwrap();
            let message: Vec<u8> = (0..bytes).map(|k| common::byte(k, bytes)).collect();
            let mut buffers = vec![vec![0; bytes]; ranks];
            buffers[shape.root] = message.clone();
            run(&schedule, &mut buffers).unwrap();
            prop_assert!(buffers.iter().all(|b| *b == message), "{} {:?}", a.name, shape);
        }
    }
}

#[test]
fn a_failing_rank_is_named_and_nothing_hangs() {
    let mut program = collwise::schedule::Program::new();
    program.send(1, collwise::schedule::Span::data(5, 10), &[]);
    let schedule = collwise::schedule::Schedule { programs: vec![program, Default::default()] };
    let e = run(&schedule, &mut [vec![0; 8], vec![0; 8]]).unwrap_err();
    assert!(e.to_string().contains("outside the 8 bytes"), "{e}");
}
