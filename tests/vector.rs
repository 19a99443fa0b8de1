//! Collectives whose blocks have other sizes on each rank: what comes is what MPI says, and those whose sizes all ranks know go by plans where sizes are
//! about alike.
#![cfg(feature = "mpi")]

mod common;

use collwise::run::AdaptiveCollectives;
use common::mpi::{adaptive, adaptive_and_traced, map, map_of_all, must_succeed, on_ranks, traced, with_maps, with_two_maps};
use mpi::collective::SystemOperation;
use mpi::datatype::{Partition, PartitionMut};
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::*;

/// Where nobody wrote.
const UNTOUCHED: u32 = 0xDEAD_BEEF;

fn number(from: usize, to: usize, k: usize) -> u32 {
    (k as u32).wrapping_mul(2_654_435_761) ^ (from as u32).wrapping_mul(0x9E37_79B9) ^ ((to as u32) << 24)
}

/// Some places for blocks of these sizes: one after the other, or the other way round with gaps.
fn places(counts: &[i32], apart: bool) -> (Vec<i32>, usize) {
    let mut at = 0;
    let mut places = vec![0; counts.len()];
    let order: Vec<usize> = if apart { (0..counts.len()).rev().collect() } else { (0..counts.len()).collect() };
    for k in order {
        places[k] = at;
        at += counts[k] + if apart { 3 } else { 0 };
    }
    (places, at as usize)
}

/// What lies in blocks, and nothing between them.
fn check(got: &[u32], counts: &[i32], places: &[i32], wanted: impl Fn(usize, usize) -> u32, what: &str) {
    let mut all = vec![UNTOUCHED; got.len()];
    for (block, (&count, &at)) in counts.iter().zip(places).enumerate() {
        (0..count as usize).for_each(|k| all[at as usize + k] = wanted(block, k));
    }
    assert!(got == all, "{what} of {counts:?}");
}

fn everything<C: Communicator + AsRaw<Raw = mpi::ffi::MPI_Comm>>(comm: &C, count_of: impl Fn(usize) -> i32) {
    let (me, ranks) = (comm.rank() as usize, comm.size() as usize);
    let counts: Vec<i32> = (0..ranks).map(&count_of).collect();
    let own: Vec<u32> = (0..counts[me] as usize).map(|k| number(me, 0, k)).collect();
    for apart in [false, true] {
        let (at, len) = places(&counts, apart);
        let mut got = vec![UNTOUCHED; len];
        comm.adaptive_allgatherv(&own[..], &mut PartitionMut::new(&mut got[..], &counts[..], &at[..])).unwrap();
        check(&got, &counts, &at, |from, k| number(from, 0, k), "allgatherv");
        let own_in_its_place = || {
            let mut all = vec![UNTOUCHED; len];
            all[at[me] as usize..][..own.len()].copy_from_slice(&own);
            all
        };
        let mut got = own_in_its_place();
        comm.adaptive_allgatherv_in_place(&mut PartitionMut::new(&mut got[..], &counts[..], &at[..])).unwrap();
        check(&got, &counts, &at, |from, k| number(from, 0, k), "allgatherv in place");
        for root in [0, ranks - 1] {
            let mut got = vec![UNTOUCHED; len];
            comm.adaptive_gatherv(root, &own[..], &mut PartitionMut::new(&mut got[..], &counts[..], &at[..])).unwrap();
            if me == root {
                check(&got, &counts, &at, |from, k| number(from, 0, k), "gatherv");
                got = own_in_its_place();
                comm.adaptive_gatherv_in_place(root, &mut PartitionMut::new(&mut got[..], &counts[..], &at[..])).unwrap();
                check(&got, &counts, &at, |from, k| number(from, 0, k), "gatherv in place");
            } else {
                let mut given = own.clone();
                comm.adaptive_gatherv_in_place(root, &mut PartitionMut::new(&mut given[..], &counts[me..=me], &[0][..])).unwrap();
                assert!(given == own, "gatherv in place wrote what was given");
            }
            let mut all = vec![UNTOUCHED; len];
            for to in 0..ranks {
                (0..counts[to] as usize).for_each(|k| all[at[to] as usize + k] = number(root, to, k));
            }
            let mut got = vec![UNTOUCHED; counts[me] as usize];
            comm.adaptive_scatterv(root, &Partition::new(&all[..], &counts[..], &at[..]), &mut got[..]).unwrap();
            check(&got, &[counts[me]], &[0], |_, k| number(root, me, k), "scatterv");
            if me == root {
                let before = all.clone();
                comm.adaptive_scatterv_in_place(root, &mut PartitionMut::new(&mut all[..], &counts[..], &at[..])).unwrap();
                assert!(all == before, "scatterv in place wrote what was given");
            } else {
                got.fill(UNTOUCHED);
                comm.adaptive_scatterv_in_place(root, &mut PartitionMut::new(&mut got[..], &counts[me..=me], &[0][..])).unwrap();
                check(&got, &[counts[me]], &[0], |_, k| number(root, me, k), "scatterv in place");
            }
        }
        // each rank gives every other one as many as the sum of their numbers says
        let between: Vec<i32> = (0..ranks).map(|to| counts[(me + to) % ranks]).collect();
        let (from, len) = places(&between, apart);
        let mut all = vec![UNTOUCHED; len];
        for to in 0..ranks {
            (0..between[to] as usize).for_each(|k| all[from[to] as usize + k] = number(me, to, k));
        }
        let mut got = vec![UNTOUCHED; len];
        let given = Partition::new(&all[..], &between[..], &from[..]);
        comm.adaptive_alltoallv(&given, &mut PartitionMut::new(&mut got[..], &between[..], &from[..])).unwrap();
        check(&got, &between, &from, |from, k| number(from, me, k), "alltoallv");
        comm.adaptive_alltoallv_in_place(&mut PartitionMut::new(&mut all[..], &between[..], &from[..])).unwrap();
        check(&all, &between, &from, |from, k| number(from, me, k), "alltoallv in place");
    }
    let all: usize = counts.iter().sum::<i32>() as usize;
    let before: usize = counts[..me].iter().sum::<i32>() as usize;
    let given: Vec<u32> = (0..all).map(|k| number(me, 0, k)).collect();
    let mut got = vec![UNTOUCHED; counts[me] as usize];
    comm.adaptive_reduce_scatter(&given[..], &counts, &mut got[..], SystemOperation::sum()).unwrap();
    let sum = |k: usize| (0..ranks).fold(0u32, |sum, r| sum.wrapping_add(number(r, 0, k)));
    check(&got, &[counts[me]], &[0], |_, k| sum(before + k), "reduce_scatter");
    assert!(given.iter().enumerate().all(|(k, &x)| x == number(me, 0, k)), "what was given was written");
    let mut data = given;
    comm.adaptive_reduce_scatter_in_place(&mut data[..], &counts, SystemOperation::sum()).unwrap();
    check(&data[..counts[me] as usize], &[counts[me]], &[0], |_, k| sum(before + k), "reduce_scatter in place");
    // in the order of ranks
    let mut given: Vec<u64> = (0..all).flat_map(|k| map(me, k)).collect();
    let mut got = vec![7u64; 2 * counts[me] as usize];
    with_two_maps(&given, &mut got, |given, got, after| comm.adaptive_reduce_scatter(given, &counts, got, after)).unwrap();
    let right = |got: &[u64]| (0..counts[me] as usize).all(|k| got[2 * k..2 * k + 2] == map_of_all(ranks, before + k));
    assert!(right(&got), "maps of {counts:?}");
    with_maps(&mut given, |maps, after| comm.adaptive_reduce_scatter_in_place(maps, &counts, after)).unwrap();
    assert!(right(&given), "maps of {counts:?} in place");
}

/// Sizes that are all alike, that differ by one at most, that differ much, that are none, and that one rank alone has.
fn all_sizes<C: Communicator + AsRaw<Raw = mpi::ffi::MPI_Comm>>(comm: &C) {
    everything(comm, |_| 5);
    everything(comm, |rank| 2000 - i32::from(rank % 3 == 1));
    everything(comm, |rank| 10 * rank as i32);
    everything(comm, |_| 0);
    everything(comm, |rank| if rank == 1 { 3000 } else { 0 });
}

#[test]
fn results_are_what_mpi_says() {
    adaptive("results_are_what_mpi_says", 8, |world| {
        for _ in 0..2 {
            all_sizes(world);
        }
        all_sizes(&world.split_by_color(Color::with_value(world.rank() % 2)).unwrap());
    });
}

#[test]
fn without_a_policy_the_librarys_own_run() {
    must_succeed(on_ranks("without_a_policy_the_librarys_own_run", 3, &[], all_sizes));
}

/// What all ranks know the sizes of goes by plans, where filling up costs little.
#[test]
fn sizes_that_all_ranks_know_and_that_are_about_alike_go_by_plans() {
    adaptive_and_traced("sizes_that_all_ranks_know_and_that_are_about_alike_go_by_plans", 8, |world| {
        (0..2).for_each(|_| world.adaptive_barrier().unwrap());
        let plans = |world: &SimpleCommunicator, count_of: fn(usize) -> i32| {
            let before = traced();
            everything(world, count_of);
            traced() - before
        };
        // four of allgatherv, four of reduce_scatter
        assert_eq!([plans(world, |_| 50), plans(world, |rank| 50 - (rank as i32 % 2))], [8, 8]);
        assert_eq!([plans(world, |rank| 50 * rank as i32), plans(world, |_| 0)], [0, 0]);
    });
}

#[test]
fn what_is_not_a_block_for_each_rank_is_refused_before_anything_is_sent() {
    adaptive("what_is_not_a_block_for_each_rank_is_refused_before_anything_is_sent", 2, |world| {
        let mut got = [0u32; 8];
        let mut allgatherv = |given: &[u32], counts: &[i32]| {
            let at = vec![0; counts.len()];
            let refused = world.adaptive_allgatherv(given, &mut PartitionMut::new(&mut got[..], counts, &at[..]));
            refused.unwrap_err().to_string()
        };
        let e = allgatherv(&[1], &[1, 1, 1]);
        assert!(e.contains("MPI_Allgatherv with 3 blocks for 2 ranks"), "{e}");
        let e = allgatherv(&[1], &[2, 2]);
        assert!(e.contains("MPI_Allgatherv of 4 bytes where 8 come"), "{e}");
        let e = world.adaptive_reduce_scatter(&[1u32; 3][..], &[1, 1], &mut [0u32][..], SystemOperation::sum()).unwrap_err().to_string();
        assert!(e.contains("MPI_Reduce_scatter of 3 items of 2 that are counted, and into 1 of 1"), "{e}");
        let at_another = world.rank() as usize ^ 1;
        let mut data = PartitionMut::new(&mut got[..], &[1, 1][..], &[0, 1][..]);
        let e = world.adaptive_gatherv_in_place(at_another, &mut data).unwrap_err().to_string();
        assert!(e.contains("MPI_Gatherv with 2 blocks for 1 rank"), "{e}");
        everything(world, |_| 3);
    });
}
