//! What fails inside ends as the program chose for the communicator, as with `MPI_Bcast`.
#![cfg(feature = "mpi")]
#![allow(unsafe_code)] // error handlers are set through MPI's own interface

mod common;

use collwise::error::Error;
use collwise::run::AdaptiveCollectives;
use common::mpi::{CODE, ERRORS, adaptive, check_bcast, note_errors, on_ranks, return_errors, text, three_groups};
use mpi::datatype::{MutView, UserDatatype};
use mpi::ffi;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use std::os::raw::c_int;
use std::sync::atomic::Ordering;

/// A broadcast that cannot be right: rank 1 has room for half of what rank 0 sends. It fails on rank 1 only.
fn too_much_for_rank_1(comm: &SimpleCommunicator) -> Result<(), Error> {
    comm.adaptive_bcast(0, &mut vec![7u8; if comm.rank() == 1 { 50 } else { 100 }][..])
}

fn class(code: c_int) -> c_int {
    let mut class = 0;
    assert_eq!(unsafe { ffi::MPI_Error_class(code, &mut class) }, 0);
    class
}

fn check_truncated(comm: &SimpleCommunicator, result: Result<(), Error>) {
    match result {
        Ok(()) => assert_eq!(comm.rank(), 0),
        Err(Error::Mpi { rank, call, code, .. }) => {
            assert_eq!((comm.rank(), rank, class(code)), (1, 1, ffi::MPI_ERR_TRUNCATE as c_int));
            assert_eq!(call, "MPI_Recv", "a leaf of a tree has one message");
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn a_communicator_that_returns_errors_returns_mpis_code_and_the_rank() {
    adaptive("a_communicator_that_returns_errors_returns_mpis_code_and_the_rank", 2, |world| {
        return_errors(world);
        check_bcast(world, &[10]);
        check_truncated(world, too_much_for_rank_1(world));
    });
}

#[test]
fn a_handler_of_the_program_is_called_once_with_the_code() {
    adaptive("a_handler_of_the_program_is_called_once_with_the_code", 2, |world| {
        let comm = world.duplicate();
        // MPICH asks MPI_COMM_WORLD's handler about messages of any communicator
        return_errors(world);
        note_errors(&comm);
        check_bcast(&comm, &[10]);
        assert_eq!(ERRORS.load(Ordering::Relaxed), 0);
        check_truncated(&comm, too_much_for_rank_1(&comm));
        assert_eq!(ERRORS.load(Ordering::Relaxed), world.rank() as usize);
        assert!(world.rank() == 0 || class(CODE.load(Ordering::Relaxed)) == ffi::MPI_ERR_TRUNCATE as c_int);
    });
}

/// MPICH calls the world's handler itself when it waits for a message that fails, on any communicator.
#[test]
fn a_handler_of_the_world_is_called_once_where_a_communicator_has_it_too() {
    adaptive("a_handler_of_the_world_is_called_once_where_a_communicator_has_it_too", 2, |world| {
        note_errors(world);
        // a duplicate has its parent's handler
        let duplicate = world.duplicate();
        for (k, comm) in [world, &duplicate].into_iter().enumerate() {
            check_bcast(comm, &[10]);
            check_truncated(comm, too_much_for_rank_1(comm));
            assert_eq!(ERRORS.load(Ordering::Relaxed), world.rank() as usize * (k + 1));
        }
    });
}

#[test]
fn without_one_the_job_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), 2);
    let output = on_ranks("without_one_the_job_ends", 2, &[("COLLWISE_POLICY", &policy), ("COLLWISE_HOSTS", &hosts)], |world| {
        let _ = too_much_for_rank_1(world);
        world.barrier();
        println!("it went on");
    });
    if let Some(output) = output {
        let said = text(&output);
        assert!(!output.status.success() && !said.contains("it went on"), "{said}");
        assert_ne!(output.status.code(), Some(124), "it hung: {said}");
    }
}

/// Of a broadcast of scattered bytes that fails on rank 1, receives stay open: they go into memory that stays theirs, and not into what the program
/// allocates next.
#[test]
fn what_failed_writes_into_no_memory_of_the_program() {
    let name = "what_failed_writes_into_no_memory_of_the_program";
    let folder = tempfile::tempdir().unwrap();
    let (policy, _) = three_groups(folder.path(), 4);
    let hosts = folder.path().join("one-group");
    if std::env::var_os("COLLWISE_TEST_CHILD").is_none() {
        std::fs::write(&hosts, "a-1\na-2\na-3\na-4\n").unwrap();
    }
    let output = on_ranks(name, 4, &[("COLLWISE_POLICY", &policy), ("COLLWISE_HOSTS", &hosts)], |world| {
        return_errors(world);
        world.adaptive_bcast(0, &mut [1u8; 10][..]).unwrap();
        // one byte too few: Open MPI 4.1.4 writes what is sent too many behind the receive, in any program; 19,999 bytes from malloc have room for one more
        let bytes = if world.rank() == 1 { 19_999 } else { 20_000 };
        let spread = UserDatatype::vector(bytes, 1, 2, &u8::equivalent_datatype());
        let mut data = vec![0xEEu8; 2 * bytes as usize];
        if world.rank() == 3 {
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
        // SAFETY: one item, which `data` holds
        let mut view = unsafe { MutView::with_count_and_datatype(&mut data[..], 1, &spread) };
        let result = world.adaptive_bcast(0, &mut view);
        if world.rank() == 1 {
            assert!(result.is_err());
            let mine = vec![vec![0x55u8; bytes as usize]; 40];
            let until = std::time::Instant::now() + std::time::Duration::from_millis(800);
            while std::time::Instant::now() < until {
                let mut flag = 0;
                // SAFETY: out-parameters; it lets messages arrive
                unsafe { ffi::MPI_Iprobe(ffi::RSMPI_ANY_SOURCE, 99, world.as_raw(), &mut flag, ffi::RSMPI_STATUS_IGNORE) };
            }
            let overwritten = mine.iter().flatten().filter(|&&b| b != 0x55).count();
            // what is printed may be lost when the job is ended
            std::fs::write(std::env::var("COLLWISE_HOSTS").unwrap() + ".overwritten", overwritten.to_string()).unwrap();
            // the others wait for ever
            unsafe { ffi::MPI_Abort(world.as_raw(), 0) };
        }
        std::thread::sleep(std::time::Duration::from_secs(30));
    });
    if let Some(output) = output {
        let overwritten = std::fs::read_to_string(folder.path().join("one-group.overwritten"));
        let overwritten: usize = overwritten.unwrap_or_else(|e| panic!("{e}: {}", text(&output))).parse().unwrap();
        assert_eq!(overwritten, 0, "bytes were overwritten");
    }
}
