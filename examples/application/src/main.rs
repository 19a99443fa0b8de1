//! The README's program, with the lines of Cargo.toml that an application needs.

use collwise::run::AdaptiveCollectives;

fn main() {
    collwise::transport::mpi::abort_on_panic();
    let universe = mpi::initialize().unwrap();
    let world = universe.world();
    let mut data = vec![0.0f64; 100_000];
    world.adaptive_bcast(0, &mut data[..]).unwrap(); // any root, size, communicator and datatype
}
