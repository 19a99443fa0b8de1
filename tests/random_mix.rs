//! Some seconds of what `target/release/examples/random_mix` does for as long as one wants.
#![cfg(feature = "mpi")]
#![allow(unsafe_code)] // as there

mod common;
#[path = "programs/random_mix.rs"]
mod random_mix;

use common::mpi::{is_child, must_succeed, on_ranks, three_groups};
use std::path::Path;
use std::time::Duration;

#[test]
fn random_mixes_from_several_threads_bring_every_byte_and_keep_nothing() {
    let name = "random_mixes_from_several_threads_bring_every_byte_and_keep_nothing";
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), 5);
    let environment = [("COLLWISE_POLICY", policy.as_path()), ("COLLWISE_HOSTS", &hosts), ("COLLWISE_TEST_THREADS", Path::new("1"))];
    let said = must_succeed(on_ranks(name, 5, &environment, |world| {
        let done = random_mix::mix(world, Duration::from_secs(6), 1, 2);
        println!("{done}");
    }));
    assert!(is_child() || said.contains("communicators made"), "{said}");
}
