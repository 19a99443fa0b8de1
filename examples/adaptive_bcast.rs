//! An MPI program that broadcasts adaptively, checks every byte and compares the time with `MPI_Bcast`.
//!
//! ```text
//! mpirun -n 8 collwise tune -o policy.toml
//! COLLWISE_POLICY=policy.toml mpirun -n 8 target/release/examples/adaptive_bcast [SIZES] [REPETITIONS]
//! ```
//!
//! Both take turns; times are medians. On a simulated platform the clock is the same everywhere, and a time is exact: from the
//! root's start to the last rank's end. Elsewhere it is the slowest rank's time after a barrier.

use collwise::library::Library;
use collwise::run::AdaptiveCollectives;
use collwise::units;
use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    collwise::transport::mpi::abort_on_panic();
    let universe = mpi::initialize().ok_or("MPI is running already")?;
    let world = universe.world();
    collwise::transport::mpi::check_launcher(world.size() as usize)?;
    let sizes = std::env::args().nth(1).unwrap_or_else(|| "1,1KiB,16KiB,64KiB,256KiB,1MiB,4MiB".into());
    let repetitions: usize = std::env::args().nth(2).map_or(Ok(21), |n| n.parse())?;
    if world.rank() == 0 {
        println!("{:>8} {:>12} {:>12} {:>8}", "bytes", "adaptive", "MPI_Bcast", "speed-up");
    }
    // a communicator that is used again is set up
    (0..2).try_for_each(|_| world.adaptive_barrier())?;
    for bytes in sizes.split(',').map(units::parse_bytes).collect::<collwise::error::Result<Vec<_>>>()? {
        let mut times = [Vec::new(), Vec::new()];
        // never an empty vector: its address is 1, which Open MPI takes for MPI_IN_PLACE
        let mut data = vec![0u8; bytes.max(1)];
        let data = &mut data[..bytes];
        for repetition in 0..=repetitions {
            for (which, seconds) in times.iter_mut().enumerate() {
                let mark = (2 * repetition + which) as u8;
                fill(&world, data, mark);
                let t = timed(&world, || match which {
                    0 => world.adaptive_bcast(0, data),
                    _ => {
                        world.process_at_rank(0).broadcast_into(data);
                        Ok(())
                    }
                })?;
                verify(data, mark)?;
                // the first call of a size makes its plan and connections
                if repetition > 0 {
                    seconds.push(t);
                }
            }
        }
        let [adaptive, native] = times.map(|t| collwise::stats::median(&t).unwrap_or(f64::NAN));
        if world.rank() == 0 {
            println!(
                "{:>8} {:>12} {:>12} {:>7.2}x",
                units::bytes(bytes),
                units::seconds(adaptive),
                units::seconds(native),
                native / adaptive
            );
        }
    }
    Ok(())
}

/// The byte at a place of the message.
fn byte(place: usize, mark: u8) -> u8 {
    (place.wrapping_mul(2_654_435_761) >> 7) as u8 ^ mark
}

/// The root's message; elsewhere bytes that are all wrong.
fn fill(world: &SimpleCommunicator, data: &mut [u8], mark: u8) {
    let wrong = if world.rank() == 0 { 0 } else { 0xff };
    data.iter_mut().enumerate().for_each(|(k, b)| *b = byte(k, mark) ^ wrong);
}

fn verify(data: &[u8], mark: u8) -> Result<(), String> {
    match data.iter().enumerate().find(|(k, b)| **b != byte(*k, mark)) {
        Some((k, _)) => Err(format!("byte {k} of {} is wrong", data.len())),
        None => Ok(()),
    }
}

/// Runs a collective on all ranks and gives its time.
fn timed(world: &SimpleCommunicator, collective: impl FnOnce() -> collwise::error::Result<()>) -> collwise::error::Result<f64> {
    let one_clock = Library::of(&collwise::transport::mpi::library_version()) == Library::Smpi;
    world.barrier();
    if one_clock {
        // nobody may start late: the root goes when all have said that they are there
        match world.rank() {
            0 => (1..world.size()).for_each(|r| {
                world.process_at_rank(r).receive_into(&mut 0u8);
            }),
            _ => world.process_at_rank(0).send(&0u8),
        }
    }
    let start = mpi::time();
    collective()?;
    let end = mpi::time();
    let own = if one_clock { [if world.rank() == 0 { start } else { f64::MIN }, end] } else { [0.0, end - start] };
    let mut all = [0.0; 2];
    world.all_reduce_into(&own[..], &mut all[..], SystemOperation::max());
    Ok(all[1] - all[0])
}
