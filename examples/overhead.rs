//! What the adaptive broadcast costs beside the broadcast itself.
//!
//! ```text
//! COLLWISE_POLICY=policy.toml mpirun -n 8 target/release/examples/overhead
//! ```
//!
//! Prints the time of a call on a communicator of one rank, where nothing is sent (the look-up of its plan and all that is around
//! it), and the time of 8-byte broadcasts beside `MPI_Bcast`, in turns: medians over blocks of calls, with quartiles of the ratio.

use collwise::run::AdaptiveCollectives;
use collwise::stats::{median, quantile};
use mpi::traits::*;

const CALLS: usize = 1000;
const BLOCKS: usize = 101;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    collwise::transport::mpi::abort_on_panic();
    let universe = mpi::initialize().ok_or("MPI is running already")?;
    let world = universe.world();
    let alone = world.split_by_color(mpi::topology::Color::with_value(world.rank())).ok_or("no communicator of one rank")?;
    let mut data = [0u8; 8];
    // the second call sets a communicator up
    for _ in 0..2 {
        alone.adaptive_bcast(0, &mut data[..])?;
        world.adaptive_bcast(0, &mut data[..])?;
    }
    let mut look_up = Vec::new();
    for _ in 0..BLOCKS {
        let start = mpi::time();
        for _ in 0..CALLS {
            alone.adaptive_bcast(0, &mut data[..])?;
        }
        look_up.push((mpi::time() - start) / CALLS as f64);
    }
    let (mut adaptive, mut native) = (Vec::new(), Vec::new());
    for block in 0..2 * BLOCKS {
        world.barrier();
        let start = mpi::time();
        for _ in 0..CALLS {
            if block % 2 == 0 {
                world.adaptive_bcast(0, &mut data[..])?;
            } else {
                world.process_at_rank(0).broadcast_into(&mut data[..]);
            }
        }
        world.barrier();
        let each = (mpi::time() - start) / CALLS as f64;
        if block % 2 == 0 { adaptive.push(each) } else { native.push(each) }
    }
    if world.rank() == 0 {
        let ns = |t: &[f64]| median(t).map_or(f64::NAN, |t| t * 1e9);
        let ratios: Vec<f64> = adaptive.iter().zip(&native).map(|(a, n)| a / n).collect();
        let q = |q| quantile(&ratios, q).unwrap_or(f64::NAN);
        println!("call with nothing to send: {:.0} ns", ns(&look_up));
        println!("8 bytes, {} ranks: adaptive {:.0} ns, MPI_Bcast {:.0} ns", world.size(), ns(&adaptive), ns(&native));
        println!("ratio of neighbouring blocks: median {:.3}, quartiles {:.3} to {:.3}", q(0.5), q(0.25), q(0.75));
    }
    Ok(())
}
