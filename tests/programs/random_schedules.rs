//! Schedules drawn at random on every rank of an MPI program, byte for byte: what `tests/smpi.rs` runs in a simulated MPI.
#![allow(unsafe_code)]

#[path = "../common/bytes.rs"]
mod bytes;
#[path = "../common/schedules.rs"]
mod schedules;

use bytes::byte;
use collwise::transport::mpi::{MpiTransport, abort_on_panic};
use mpi::traits::*;

fn main() {
    abort_on_panic();
    let Some(universe) = mpi::initialize() else { panic!("MPI could not be initialised") };
    let world = universe.world();
    // SAFETY: the world outlives the transport, and nobody else uses it
    let transport = unsafe { MpiTransport::new(world.as_raw()) };
    let ranks = world.size().min(6);
    if world.rank() < ranks {
        schedules::run_drawn(&mut transport.expect("wrap the world"), ranks as usize, 90, [20, 500, 3000]);
    }
    world.barrier();
    if world.rank() == 0 {
        println!("90 schedules on {ranks} ranks: every byte is right");
    }
}
