//! Schedules drawn at random deliver the same bytes in the symbolic run, over threads and over MPI.

mod common;

use collwise::schedule::check;
use common::schedules::{Drawn, draw};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

fn drawn(seed: u64, ranks: usize, messages: usize, bytes: usize) -> Drawn {
    draw(&mut Xoshiro256PlusPlus::seed_from_u64(seed), ranks, messages, bytes)
}

/// A rank's buffer at the beginning.
fn own(rank: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|k| common::byte(k, rank)).collect()
}

fn expected(end: &[(usize, usize)]) -> Vec<u8> {
    end.iter().map(|&(of, from)| common::byte(from, of)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn over_threads_and_in_the_symbolic_run(seed in 0u64.., ranks in 2usize..6, messages in 0usize..200, bytes in 1usize..200) {
        let drawn = drawn(seed, ranks, messages, bytes);
        check(&drawn.schedule, &drawn.specification).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let mut buffers: Vec<Vec<u8>> = (0..ranks).map(|r| own(r, bytes)).collect();
        collwise::transport::threads::run(&drawn.schedule, &mut buffers).unwrap();
        for (buffer, end) in buffers.iter().zip(&drawn.ends) {
            prop_assert_eq!(buffer, &expected(end));
        }
    }
}

/// With messages small and large, so that sends are complete at once and only when they are received.
#[cfg(feature = "mpi")]
#[test]
fn random_schedules_over_mpi() {
    use collwise::transport::mpi::MpiTransport;
    use collwise::transport::{Executor, Transport};
    use mpi::traits::*;
    common::mpi::must_succeed(common::mpi::on_ranks("random_schedules_over_mpi", 4, &[], |world| {
        let private = world.duplicate();
        // SAFETY: `private` outlives the transport
        #[allow(unsafe_code)]
        let mut transport = unsafe { MpiTransport::new(private.as_raw()) }.unwrap();
        let mut executor = Executor::default();
        let me = transport.rank();
        for seed in 0..150 {
            let bytes = [20, 5_000, 200_000][seed as usize % 3];
            let drawn = drawn(seed, 4, 20 + seed as usize, bytes);
            let mut buffer = own(me, bytes);
            // SAFETY: the buffer is this rank's own
            #[allow(unsafe_code)]
            unsafe { executor.run(&mut transport, &drawn.schedule.programs[me], buffer.as_mut_ptr(), bytes, None) }.unwrap();
            let wrong = buffer.iter().zip(expected(&drawn.ends[me])).filter(|(a, b)| **a != *b).count();
            assert_eq!(wrong, 0, "seed {seed}: {wrong} of {bytes} bytes at rank {me}");
        }
    }));
}
