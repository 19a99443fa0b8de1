//! `adaptive_allreduce` gives what `MPI_Allreduce` gives, in place and not, for every operation and datatype, and the same bits on all ranks.
#![cfg(feature = "mpi")]

mod common;

use collwise::policy::Policy;
use collwise::run::AdaptiveCollectives;
use common::mpi::{adaptive, map, map_of_all, must_succeed, on_ranks, three_groups, with_maps};
use mpi::collective::SystemOperation;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::*;

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
            let mut all: Vec<u64> = (0..count).flat_map(|k| map(me as usize, k)).collect();
            with_maps(&mut all, |maps, after| world.adaptive_allreduce_in_place(maps, after)).unwrap();
            assert!((0..count).all(|k| all[2 * k..2 * k + 2] == map_of_all(ranks as usize, k)), "{count} maps");
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
        assert!(e.to_string().contains("24 bytes that are given and 16 that come"), "{e}");
    });
}
