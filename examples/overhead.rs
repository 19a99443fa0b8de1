//! What adaptive collectives cost beside what they do.
//!
//! ```text
//! COLLWISE_POLICY=policy.toml mpirun -n 8 target/release/examples/overhead [COLLECTIVE [CALLS]]
//! ```
//!
//! Prints, for each collective or for one, with a number of 8 bytes for each rank: the time of a call on a communicator of one rank, where nothing is sent
//! (the look-up and all that is around it), and on all ranks beside the library's own, in turns: medians over blocks of calls, with quartiles of the
//! ratio. Instructions are counted with two numbers of calls under `valgrind --tool=callgrind`: what is more is that of the calls.

use collwise::error::Result;
use collwise::run::AdaptiveCollectives;
use collwise::stats::{median, quantile};
use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

const BLOCKS: usize = 101;

/// A number for each rank, given and got.
struct Memory {
    given: Vec<f64>,
    got: Vec<f64>,
}

type Adaptive = fn(&SimpleCommunicator, &mut Memory) -> Result<()>;
type Native = fn(&SimpleCommunicator, &mut Memory);

const ALL: [(&str, Adaptive, Native); 9] = [
    ("bcast", |c, m| c.adaptive_bcast(0, &mut m.got[..1]), |c, m| c.process_at_rank(0).broadcast_into(&mut m.got[..1])),
    ("barrier", |c, _| c.adaptive_barrier(), |c, _| c.barrier()),
    (
        "allreduce",
        |c, m| c.adaptive_allreduce(&m.given[..1], &mut m.got[..1], SystemOperation::sum()),
        |c, m| c.all_reduce_into(&m.given[..1], &mut m.got[..1], SystemOperation::sum()),
    ),
    (
        "reduce",
        |c, m| c.adaptive_reduce(0, &m.given[..1], &mut m.got[..1], SystemOperation::sum()),
        |c, m| match c.rank() {
            0 => c.process_at_rank(0).reduce_into_root(&m.given[..1], &mut m.got[..1], SystemOperation::sum()),
            _ => c.process_at_rank(0).reduce_into(&m.given[..1], SystemOperation::sum()),
        },
    ),
    (
        "reduce_scatter",
        |c, m| c.adaptive_reduce_scatter_block(&m.given[..], &mut m.got[..1], SystemOperation::sum()),
        |c, m| c.reduce_scatter_block_into(&m.given[..], &mut m.got[..1], SystemOperation::sum()),
    ),
    ("allgather", |c, m| c.adaptive_allgather(&m.given[..1], &mut m.got[..]), |c, m| c.all_gather_into(&m.given[..1], &mut m.got[..])),
    (
        "gather",
        |c, m| c.adaptive_gather(0, &m.given[..1], &mut m.got[..]),
        |c, m| match c.rank() {
            0 => c.process_at_rank(0).gather_into_root(&m.given[..1], &mut m.got[..]),
            _ => c.process_at_rank(0).gather_into(&m.given[..1]),
        },
    ),
    (
        "scatter",
        |c, m| c.adaptive_scatter(0, &m.given[..], &mut m.got[..1]),
        |c, m| match c.rank() {
            0 => c.process_at_rank(0).scatter_into_root(&m.given[..], &mut m.got[..1]),
            _ => c.process_at_rank(0).scatter_into(&mut m.got[..1]),
        },
    ),
    ("alltoall", |c, m| c.adaptive_alltoall(&m.given[..], &mut m.got[..]), |c, m| c.all_to_all_into(&m.given[..], &mut m.got[..])),
];

/// The time of a call, of so many.
fn each(calls: usize, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let start = mpi::time();
    for _ in 0..calls {
        call()?;
    }
    Ok((mpi::time() - start) / calls as f64)
}

/// Seconds by block of calls: of adaptive ones on one rank, and on all of adaptive ones and of the library's.
fn measure(world: &SimpleCommunicator, adaptive: Adaptive, native: Native, calls: usize) -> Result<[Vec<f64>; 3]> {
    let alone = world.split_by_color(mpi::topology::Color::with_value(world.rank())).ok_or_else(none)?;
    let memory = |comm: &SimpleCommunicator| Memory { given: vec![1.0; comm.size() as usize], got: vec![0.0; comm.size() as usize] };
    let (mut own, mut all) = (memory(&alone), memory(world));
    // the second call sets a communicator up
    for _ in 0..2 {
        adaptive(&alone, &mut own)?;
        adaptive(world, &mut all)?;
    }
    let mut seconds = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..BLOCKS {
        seconds[0].push(each(calls, || adaptive(&alone, &mut own))?);
    }
    for block in 0..2 * BLOCKS {
        world.barrier();
        let ours = block % 2 == 0;
        let own = each(calls, || {
            if ours {
                return adaptive(world, &mut all);
            }
            native(world, &mut all);
            Ok(())
        })?;
        let mut last = 0.0;
        world.all_reduce_into(&own, &mut last, SystemOperation::max());
        seconds[1 + block % 2].push(last);
    }
    Ok(seconds)
}

fn none() -> collwise::error::Error {
    collwise::error::Error::invalid("make a communicator of one rank")
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    collwise::transport::mpi::abort_on_panic();
    let universe = mpi::initialize().ok_or("MPI is running already")?;
    let world = universe.world();
    let only = std::env::args().nth(1);
    let calls = std::env::args().nth(2).map_or(Ok(1000), |text| text.parse())?;
    for (name, adaptive, native) in ALL.into_iter().filter(|(name, ..)| only.as_ref().is_none_or(|only| only == name)) {
        let [alone, adaptive, native] = measure(&world, adaptive, native, calls)?;
        let ns = |t: &[f64]| median(t).map_or(f64::NAN, |t| t * 1e9);
        let ratios: Vec<f64> = adaptive.iter().zip(&native).map(|(a, n)| a / n).collect();
        let q = |q| quantile(&ratios, q).unwrap_or(f64::NAN);
        if world.rank() == 0 {
            println!("{name}: one rank alone {:.0} ns", ns(&alone));
            println!(
                "  {} ranks: adaptive {:.0} ns, the library's own {:.0} ns; neighbouring blocks' ratio: median {:.3}, quartiles {:.3} to {:.3}",
                world.size(),
                ns(&adaptive),
                ns(&native),
                q(0.5),
                q(0.25),
                q(0.75)
            );
        }
    }
    Ok(())
}
