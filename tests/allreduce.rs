//! `adaptive_allreduce` gives what `MPI_Allreduce` gives, in place and not, for every operation and datatype, and the same bits on all ranks.
#![cfg(feature = "mpi")]
#![allow(unsafe_code)] // user operations, and datatypes of MPI's own

mod common;

use collwise::policy::Policy;
use collwise::run::AdaptiveCollectives;
use common::mpi::{adaptive, must_succeed, on_ranks, three_groups};
use mpi::collective::{SystemOperation, UnsafeUserOperation};
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::*;
use std::os::raw::{c_int, c_void};
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// A number that differs from rank to rank, and is no whole one.
fn number(rank: i32, k: usize) -> f64 {
    ((k * 37 + rank as usize * 101) % 997) as f64 / 7.0 + 1.0
}

fn sums<C: Communicator + AsRaw<Raw = mpi::ffi::MPI_Comm>>(comm: &C, counts: &[usize]) {
    for &count in counts {
        let given: Vec<f64> = (0..count).map(|k| number(comm.rank(), k)).collect();
        let (mut own, mut native) = (vec![f64::NAN; count], vec![0.0; count]);
        comm.adaptive_allreduce(&given[..], &mut own[..], SystemOperation::sum()).unwrap();
        comm.all_reduce_into(&given[..], &mut native[..], SystemOperation::sum());
        let off = own.iter().zip(&native).map(|(a, b)| ((a - b) / b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-14 * f64::from(comm.size()), "{count} numbers over {} ranks are off by {off}", comm.size());
        // all ranks have the same bits, and so has the next call, in place
        let mut first: Vec<u64> = own.iter().map(|x| x.to_bits()).collect();
        comm.process_at_rank(0).broadcast_into(&mut first[..]);
        let mut in_place = given.clone();
        comm.adaptive_allreduce_in_place(&mut in_place[..], SystemOperation::sum()).unwrap();
        for of in [&own, &in_place] {
            assert!(of.iter().zip(&first).all(|(x, bits)| x.to_bits() == *bits), "{count} numbers over {} ranks", comm.size());
        }
        assert!(given.iter().enumerate().all(|(k, x)| *x == number(comm.rank(), k)), "what was given was written");
    }
}

#[test]
fn sums_are_the_librarys_and_the_same_on_all_ranks() {
    adaptive("sums_are_the_librarys_and_the_same_on_all_ranks", 8, |world| {
        sums(world, &[0, 1, 2, 7, 100, 1000, 8191, 8192, 30_001, 200_000]);
        let odd = world.split_by_color(Color::with_value(world.rank() % 2)).unwrap();
        let alone = world.split_by_color(Color::with_value(world.rank())).unwrap();
        for _ in 0..2 {
            sums(&odd, &[1, 1000, 50_000]);
            sums(&alone, &[1, 1000]);
        }
    });
}

/// `right := left after right`, of affine maps.
unsafe extern "C" fn after(left: *mut c_void, right: *mut c_void, count: *mut c_int, _: *mut mpi::ffi::MPI_Datatype) {
    // SAFETY: MPI passes so many pairs
    unsafe {
        let pairs = *count as usize;
        let (left, right) = (from_raw_parts(left.cast::<[u64; 2]>(), pairs), from_raw_parts_mut(right.cast::<[u64; 2]>(), pairs));
        for (x, y) in left.iter().zip(right) {
            *y = [x[0].wrapping_mul(y[0]), x[0].wrapping_mul(y[1]).wrapping_add(x[1])];
        }
    }
}

#[test]
fn other_types_and_operations_are_combined_too() {
    adaptive("other_types_and_operations_are_combined_too", 8, |world| {
        let (me, ranks) = (world.rank(), world.size());
        for count in [1usize, 5, 3000, 40_000] {
            let mut most = vec![0i32; count];
            let given: Vec<i32> = (0..count).map(|k| (k as i32 * 7 + me * 13) % 101).collect();
            world.adaptive_allreduce(&given[..], &mut most[..], SystemOperation::max()).unwrap();
            let want = |k: usize| (0..ranks).map(|r| (k as i32 * 7 + r * 13) % 101).max().unwrap();
            assert!(most.iter().enumerate().all(|(k, &x)| x == want(k)));
            let mut bits: Vec<u8> = (0..count).map(|k| ((k as i32 ^ (me << 3)) & 0xFF) as u8).collect();
            world.adaptive_allreduce_in_place(&mut bits[..], SystemOperation::bitwise_xor()).unwrap();
            let want = |k: usize| (0..ranks).fold(0, |x, r| x ^ ((k as i32 ^ (r << 3)) & 0xFF) as u8);
            assert!(bits.iter().enumerate().all(|(k, &x)| x == want(k)));
            // an operation that does not commute: f after g of affine maps, whose order is that of ranks
            // SAFETY: it reads and writes as many pairs as MPI says
            let maps = unsafe { UnsafeUserOperation::associative(after) };
            let map = |r: i32, k: usize| [2 * (k as u64 + r as u64) + 1, k as u64 ^ (r as u64) << 7];
            let mut all: Vec<u64> = (0..count).flat_map(|k| map(me, k)).collect();
            let pairs = mpi::datatype::UserDatatype::contiguous(2, &u64::equivalent_datatype());
            // SAFETY: as many pairs as `all` has
            let mut view = unsafe { mpi::datatype::MutView::with_count_and_datatype(&mut all[..], count as i32, &pairs) };
            world.adaptive_allreduce_in_place(&mut view, &maps).unwrap();
            for k in 0..count {
                let want = (1..ranks).fold(map(0, k), |x, r| {
                    let y = map(r, k);
                    [x[0].wrapping_mul(y[0]), x[0].wrapping_mul(y[1]).wrapping_add(x[1])]
                });
                assert_eq!(all[2 * k..2 * k + 2], want, "{k} of {count}");
            }
        }
    });
}

#[test]
fn without_a_policy_and_without_rows_the_librarys_own_runs() {
    let name = "without_a_policy_and_without_rows_the_librarys_own_runs";
    let folder = tempfile::tempdir().unwrap();
    let (file, hosts) = three_groups(folder.path(), 4);
    if std::env::var_os("COLLWISE_TEST_CHILD").is_none() {
        // a policy that says nothing of it
        let mut policy = Policy::read(&file).unwrap();
        policy.collectives.retain(|c, _| c.name != "allreduce");
        policy.groups.iter_mut().for_each(|g| g.choices.retain(|c, _| c.name != "allreduce"));
        std::fs::write(&file, policy.to_toml().unwrap()).unwrap();
    }
    let part = |world: &SimpleCommunicator| sums(world, &[0, 3, 10_000]);
    let said = must_succeed(on_ranks(name, 4, &[("COLLWISE_POLICY", &file), ("COLLWISE_HOSTS", &hosts)], part));
    assert!(!said.contains("library's own collectives"), "{said}");
}

#[test]
fn buffers_that_are_not_alike_are_refused() {
    adaptive("buffers_that_are_not_alike_are_refused", 2, |world| {
        let e = world.adaptive_allreduce(&[1.0; 3][..], &mut [0.0; 2][..], SystemOperation::sum()).unwrap_err();
        assert!(e.to_string().contains("3 items into 2"), "{e}");
    });
}
