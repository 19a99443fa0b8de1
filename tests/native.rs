//! Whoever wraps MPI's functions by the names behind their names does not get hold of ours.
#![cfg(feature = "mpi")]
#![allow(unsafe_code)] // MPI's own interface, and a function of a preloaded library

mod common;

use collwise::run::AdaptiveCollectives;
use common::mpi::{check_bcast, must_succeed, on_ranks, three_groups};
use mpi::ffi;
use mpi::traits::*;
use std::os::raw::c_int;
use std::process::Command;

/// Calls that came through the preloaded library.
fn captured() -> c_int {
    // SAFETY: the preloaded library's function of this name has this type
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, c"captured".as_ptr());
        assert!(!found.is_null(), "nothing is preloaded");
        std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> c_int>(found)()
    }
}

#[test]
fn a_profilers_wrappers_do_not_capture_what_is_called_inside() {
    let name = "a_profilers_wrappers_do_not_capture_what_is_called_inside";
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), 4);
    let library = folder.path().join("capture.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(common::file("tests/programs/capture.c")).arg("-ldl");
    assert!(compiler.status().unwrap().success());
    let environment = [("COLLWISE_POLICY", policy.as_path()), ("COLLWISE_HOSTS", &hosts), ("LD_PRELOAD", &library)];
    must_succeed(on_ranks(name, 4, &environment, |world| {
        check_bcast(world, &[1, 5000, 70_000]);
        // and the library's own broadcast, by a policy that fits no host
        collwise::run::use_policy(collwise::policy::Policy::read(&common::file("policies/hcl16.toml")).unwrap());
        let other = world.duplicate();
        let before = captured();
        check_bcast(&other, &[1, 5000]);
        assert_eq!((captured(), before), (0, 0));
        // what is called as the linker bound it is captured
        let mut data = [0u8; 8];
        other.adaptive_bcast(0, &mut data[..]).unwrap();
        let code = unsafe { ffi::PMPI_Bcast(data.as_mut_ptr().cast(), 8, ffi::RSMPI_UINT8_T, 0, world.as_raw()) };
        assert_eq!((code, captured()), (0, 1));
    }));
}
