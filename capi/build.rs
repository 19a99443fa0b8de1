//! Names the shared library as it is installed: after the MPI library that it is for, so that several lie side by side.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=MPICC");
    let mpicc = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/install/mpi.c");
    let defined =
        Command::new(&mpicc).args(["-E", "-dM", header]).output().unwrap_or_else(|e| panic!("start {mpicc}: {e}; MPICC names it"));
    let mpi = if String::from_utf8_lossy(&defined.stdout).contains("OPEN_MPI") { "openmpi" } else { "mpich" };
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcollwise-{mpi}.so");
}
