//! Every algorithm of every collective on every rank of an MPI program, byte for byte against its specification: what `tests/smpi.rs` runs in a simulated MPI
//! up to 17 ranks.
//!
//! ```text
//! smpi/smpirun.sh platforms/ccgrid2007.toml slot target/smpi/release/examples/every_algorithm [MOST]
//! mpirun -n 33 --oversubscribe target/release/examples/every_algorithm [MOST]
//! ```
//!
//! With rank counts from 1 to MOST (33 unless told), each with a size of 0, of one element, an odd and a large one, in place and not, with an operation
//! that commutes and one that does not, the broadcast from every root.
#![allow(unsafe_code)]

#[path = "../common/mod.rs"]
mod common;

use collwise::transport::mpi::{MpiTransport, abort_on_panic};
use mpi::traits::*;

fn main() {
    abort_on_panic();
    let Some(universe) = mpi::initialize() else { panic!("MPI could not be initialised") };
    let world = universe.world();
    let most = std::env::args().nth(1).map_or(33, |text| text.parse().expect("a number of ranks")).min(world.size() as usize);
    // SAFETY: the world outlives the transport, and nobody else uses it
    let transport = unsafe { MpiTransport::new(world.as_raw()) };
    if (world.rank() as usize) < most {
        common::deliver_everything(&mut transport.expect("wrap the world"), most, |_| true);
    }
    world.barrier();
    if world.rank() == 0 {
        println!("every algorithm on 1 to {most} ranks: every byte is right");
    }
}
