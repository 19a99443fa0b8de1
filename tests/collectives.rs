//! Each adaptive collective gives what the library's own gives, byte for byte: from several roots, for several sizes, in place and not.
#![cfg(feature = "mpi")]
#![allow(unsafe_code)] // views of scattered items

mod common;

use collwise::bench::{Settings, compare};
use collwise::collective::COLLECTIVES;
use collwise::policy::Policy;
use collwise::run::AdaptiveCollectives;
use collwise::two_level::{has_routes, through};
use common::mpi::{adaptive, adaptive_and_traced, map, map_of_all, must_succeed, on_ranks, three_groups, traced, with_maps};
use mpi::collective::SystemOperation;
use mpi::datatype::{MutView, UserDatatype, View};
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::*;

/// Where nobody wrote.
const UNTOUCHED: u32 = 0xDEAD_BEEF;

fn number(rank: usize, k: usize) -> u32 {
    (k as u32).wrapping_mul(2_654_435_761) ^ (rank as u32).wrapping_mul(0x9E37_79B9)
}

fn given(rank: usize, count: usize) -> Vec<u32> {
    (0..count).map(|k| number(rank, k)).collect()
}

trait Comm: Communicator + AsRaw<Raw = mpi::ffi::MPI_Comm> {}

impl<C: Communicator + AsRaw<Raw = mpi::ffi::MPI_Comm>> Comm for C {}

/// The collectives with a root, of blocks of so many items.
fn from_a_root<C: Comm>(comm: &C, root: usize, count: usize) {
    let (me, ranks) = (comm.rank() as usize, comm.size() as usize);
    let (process, at_root) = (comm.process_at_rank(root as i32), me == root);
    let all = if at_root { ranks * count } else { 0 };
    let (own, many) = (given(me, count), given(root, ranks * count));

    let (mut got, mut wanted) = (vec![UNTOUCHED; if at_root { count } else { 0 }], vec![0; count]);
    comm.adaptive_reduce(root, &own[..], &mut got[..], SystemOperation::sum()).unwrap();
    let mut in_place = own.clone();
    comm.adaptive_reduce_in_place(root, &mut in_place[..], SystemOperation::sum()).unwrap();
    if at_root {
        process.reduce_into_root(&own[..], &mut wanted[..], SystemOperation::sum());
        assert!(got == wanted && in_place == wanted, "reduce of {count} to {root}");
    } else {
        process.reduce_into(&own[..], SystemOperation::sum());
        assert!(in_place == own, "reduce of {count} to {root} wrote what was given at {me}");
    }

    let (mut got, mut wanted) = (vec![UNTOUCHED; all], vec![0; all]);
    comm.adaptive_gather(root, &own[..], &mut got[..]).unwrap();
    let mut in_place = if at_root { vec![UNTOUCHED; all] } else { own.clone() };
    if at_root {
        in_place[me * count..][..count].copy_from_slice(&own);
    }
    comm.adaptive_gather_in_place(root, &mut in_place[..]).unwrap();
    if at_root {
        process.gather_into_root(&own[..], &mut wanted[..]);
        assert!(got == wanted && in_place == wanted, "gather of {count} at {root}");
    } else {
        process.gather_into(&own[..]);
    }

    let (mut got, mut wanted) = (vec![UNTOUCHED; count], vec![0; count]);
    comm.adaptive_scatter(root, &many[..all], &mut got[..]).unwrap();
    let mut in_place = if at_root { many.clone() } else { vec![UNTOUCHED; count] };
    comm.adaptive_scatter_in_place(root, &mut in_place[..]).unwrap();
    if at_root {
        process.scatter_into_root(&many[..], &mut wanted[..]);
        assert!(in_place == many, "scatter of {count} from {root} in place");
    } else {
        process.scatter_into(&mut wanted[..]);
        assert!(in_place == wanted, "scatter of {count} from {root} in place at {me}");
    }
    assert!(got == wanted, "scatter of {count} from {root} at {me}");
}

/// The collectives without a root, of blocks of so many items.
fn among_all<C: Comm>(comm: &C, count: usize) {
    let (me, ranks) = (comm.rank() as usize, comm.size() as usize);
    let (own, many) = (given(me, count), given(me, ranks * count));

    let (mut got, mut wanted) = (vec![UNTOUCHED; ranks * count], vec![0; ranks * count]);
    comm.adaptive_allgather(&own[..], &mut got[..]).unwrap();
    comm.all_gather_into(&own[..], &mut wanted[..]);
    let mut in_place = vec![UNTOUCHED; ranks * count];
    in_place[me * count..][..count].copy_from_slice(&own);
    comm.adaptive_allgather_in_place(&mut in_place[..]).unwrap();
    assert!(got == wanted && in_place == wanted, "allgather of {count} at {me} of {ranks}");

    got.fill(UNTOUCHED);
    comm.adaptive_alltoall(&many[..], &mut got[..]).unwrap();
    comm.all_to_all_into(&many[..], &mut wanted[..]);
    let mut in_place = many.clone();
    comm.adaptive_alltoall_in_place(&mut in_place[..]).unwrap();
    assert!(got == wanted && in_place == wanted, "alltoall of {count} at {me} of {ranks}");

    let (mut got, mut wanted) = (vec![UNTOUCHED; count], vec![0; count]);
    comm.adaptive_reduce_scatter_block(&many[..], &mut got[..], SystemOperation::sum()).unwrap();
    comm.reduce_scatter_block_into(&many[..], &mut wanted[..], SystemOperation::sum());
    let mut in_place = many.clone();
    comm.adaptive_reduce_scatter_block_in_place(&mut in_place[..], SystemOperation::sum()).unwrap();
    assert!(got == wanted && in_place[..count] == wanted, "reduce_scatter of {count} at {me} of {ranks}");
    assert!(many == given(me, ranks * count), "what was given was written");
}

fn everything<C: Comm>(comm: &C, counts: &[usize]) {
    for &count in counts {
        let last = comm.size() as usize - 1;
        for root in std::collections::BTreeSet::from([0, last / 2, last]) {
            from_a_root(comm, root, count);
        }
        among_all(comm, count);
    }
}

#[test]
fn results_are_the_librarys() {
    adaptive("results_are_the_librarys", 8, |world| {
        everything(world, &[0, 1, 7, 250, 4099, 20_001]);
        let odd = world.split_by_color(Color::with_value(world.rank() % 2)).unwrap();
        let alone = world.split_by_color(Color::with_value(world.rank())).unwrap();
        for _ in 0..2 {
            everything(&odd, &[1, 300, 5000]);
            everything(&alone, &[0, 3]);
        }
    });
}

/// Sums of what all ranks give, or the blocks of all.
fn reduce_here<C: Comm>(comm: &C, root: usize, count: usize, in_place: bool) {
    let (me, ranks) = (comm.rank() as usize, comm.size() as usize);
    let (own, mut got) = (given(me, count), vec![UNTOUCHED; if me == root { count } else { 0 }]);
    if in_place {
        got.clone_from(&own);
        comm.adaptive_reduce_in_place(root, &mut got[..], SystemOperation::sum()).unwrap();
    } else {
        comm.adaptive_reduce(root, &own[..], &mut got[..], SystemOperation::sum()).unwrap();
    }
    let sum = |k: usize| (0..ranks).fold(0u32, |sum, r| sum.wrapping_add(number(r, k)));
    assert!(me != root || got.iter().enumerate().all(|(k, &x)| x == sum(k)), "reduce of {count} to {root}, in place there: {in_place}");
}

fn gather_here<C: Comm>(comm: &C, root: usize, count: usize, in_place: bool) {
    let (me, ranks) = (comm.rank() as usize, comm.size() as usize);
    let (mut own, mut got) = (given(me, count), vec![UNTOUCHED; if me == root { ranks * count } else { 0 }]);
    if !in_place {
        comm.adaptive_gather(root, &own[..], &mut got[..]).unwrap();
    } else if me == root {
        got[me * count..][..count].copy_from_slice(&own);
        comm.adaptive_gather_in_place(root, &mut got[..]).unwrap();
    } else {
        comm.adaptive_gather_in_place(root, &mut own[..]).unwrap();
    }
    let all: Vec<u32> = (0..ranks).flat_map(|r| given(r, count)).collect();
    assert!(me != root || got == all, "gather of {count} at {root}, in place there: {in_place}");
}

fn scatter_here<C: Comm>(comm: &C, root: usize, count: usize, in_place: bool) {
    let (me, ranks) = (comm.rank() as usize, comm.size() as usize);
    let (mut all, mut got) = (given(root, ranks * count), vec![UNTOUCHED; count]);
    if !in_place {
        comm.adaptive_scatter(root, &all[..if me == root { ranks * count } else { 0 }], &mut got[..]).unwrap();
    } else if me == root {
        comm.adaptive_scatter_in_place(root, &mut all[..]).unwrap();
        got.copy_from_slice(&all[me * count..][..count]);
    } else {
        comm.adaptive_scatter_in_place(root, &mut got[..]).unwrap();
    }
    assert!(got == given(root, ranks * count)[me * count..][..count], "scatter of {count} from {root} at {me}, in place there: {in_place}");
}

/// MPI knows "in place" at the root alone: the root alone says it, or the others alone by their own forms. All decide alike.
#[test]
fn the_root_alone_may_be_in_place_or_all_others() {
    adaptive_and_traced("the_root_alone_may_be_in_place_or_all_others", 8, |world| {
        let odd = world.split_by_color(Color::with_value(world.rank() % 2)).unwrap();
        for comm in [world, &odd, world] {
            (0..2).for_each(|_| comm.adaptive_barrier().unwrap());
            let (me, last) = (comm.rank() as usize, comm.size() as usize - 1);
            for ((root, count), at_root) in [0, last / 2, last]
                .into_iter()
                .flat_map(|root| [1, 250, 4099, 20_001].map(|count| (root, count)))
                .flat_map(|r| [(r, true), (r, false)])
            {
                let (before, in_place) = (traced(), (me == root) == at_root);
                reduce_here(comm, root, count, in_place);
                gather_here(comm, root, count, in_place);
                scatter_here(comm, root, count, in_place);
                // as many of them by plans on all ranks
                let (own, mut all) = ((traced() - before) as u64, [0, 0]);
                comm.all_reduce_into(&[own, !own][..], &mut all[..], SystemOperation::max());
                assert_eq!(all, [own, !own], "{count} from {root}");
            }
        }
    });
}

/// Every contestant of every collective, and each of the library's algorithms, brings every byte.
#[test]
fn bench_compares_them_all_and_finds_every_byte_right() {
    adaptive("bench_compares_them_all_and_finds_every_byte_right", 8, |world| {
        for collective in COLLECTIVES.iter().copied() {
            let settings = Settings {
                collective,
                sizes: collective.sizes(&[1, 64, 5000]),
                roots: if collective.rooted { vec![0, 5] } else { vec![0] },
                repetitions: 1,
                warm_ups: 0,
                in_a_row: 2,
                forced: true,
                platform: None,
            };
            let Some(report) = compare(world, &settings, || ()).unwrap() else { continue };
            assert_eq!(report.cases().len(), settings.sizes.len() * settings.roots.len());
            for row in &report.rows {
                assert!(row.wrong == 0, "{}: {} of {} bytes from {}", collective.name, row.contestant, row.bytes, row.root);
            }
            let has = |name: &str| report.contestants().iter().any(|c| c == name);
            assert!(has("adaptive") && has("native"));
            assert_eq!(has("two-level"), has_routes(collective) || through(collective).is_some(), "{}", collective.name);
        }
    });
}

#[test]
fn without_a_policy_for_them_the_librarys_own_run() {
    let name = "without_a_policy_for_them_the_librarys_own_run";
    let folder = tempfile::tempdir().unwrap();
    let (file, hosts) = three_groups(folder.path(), 4);
    if std::env::var_os("COLLWISE_TEST_CHILD").is_none() {
        let mut policy = Policy::read(&file).unwrap();
        policy.collectives.retain(|c, _| c.name == "bcast");
        policy.groups.iter_mut().for_each(|g| g.choices.retain(|c, _| c.name == "bcast"));
        std::fs::write(&file, policy.to_toml().unwrap()).unwrap();
    }
    let part = |world: &SimpleCommunicator| everything(world, &[0, 3, 5000]);
    must_succeed(on_ranks(name, 4, &[("COLLWISE_POLICY", &file), ("COLLWISE_HOSTS", &hosts)], part));
}

#[test]
fn without_a_policy_the_librarys_own_run() {
    must_succeed(on_ranks("without_a_policy_the_librarys_own_run", 3, &[], |world| everything(world, &[0, 3, 5000])));
}

/// Ranks describe blocks by other datatypes of the same signature, in one piece here and scattered there: they must decide alike.
#[test]
fn ranks_may_describe_blocks_by_different_datatypes() {
    adaptive("ranks_may_describe_blocks_by_different_datatypes", 8, |world| {
        let (me, ranks) = (world.rank() as usize, world.size() as usize);
        for (root, count) in [(0, 2), (3, 100), (7, 9000)] {
            // every other number of twice as many
            let spread = |values: &[u32]| values.iter().flat_map(|&x| [x, UNTOUCHED]).collect::<Vec<u32>>();
            let (own, many) = (given(me, count), given(me, ranks * count));
            let apart = UserDatatype::vector(count as i32, 1, 2, &u32::equivalent_datatype());
            // two numbers, the second one first
            let swapped = UserDatatype::indexed(&[1, 1], &[1, 0], &u32::equivalent_datatype());
            let swap = |values: &[u32]| values.chunks_exact(2).flat_map(|pair| [pair[1], pair[0]]).collect::<Vec<u32>>();
            let spread_own = spread(&own);
            // SAFETY: as many numbers as the type reaches
            let one = unsafe { View::with_count_and_datatype(&spread_own[..], 1, &apart) };
            let scattered = me % 3 == 1;
            let mut got = vec![0; ranks * count];
            let wanted: Vec<u32> = (0..ranks).flat_map(|r| given(r, count)).collect();
            if scattered { world.adaptive_allgather(&one, &mut got[..]) } else { world.adaptive_allgather(&own[..], &mut got[..]) }
                .unwrap();
            assert!(got == wanted, "allgather of {count} at {me}");
            got.fill(0);
            if scattered { world.adaptive_gather(root, &one, &mut got[..]) } else { world.adaptive_gather(root, &own[..], &mut got[..]) }
                .unwrap();
            assert!(me != root || got == wanted, "gather of {count} at {root}");
            // the receiver scatters too, and writes nothing between
            let mut place = vec![UNTOUCHED; 2 * count];
            let from = (root + 1) % ranks;
            if scattered {
                // SAFETY: as above
                let mut view = unsafe { MutView::with_count_and_datatype(&mut place[..], 1, &apart) };
                world.adaptive_scatter(from, &many[..], &mut view).unwrap();
                assert!(place == spread(&given(from, ranks * count)[me * count..][..count]), "scatter of {count} at {me}");
            } else {
                world.adaptive_scatter(from, &many[..], &mut place[..count]).unwrap();
                assert!(place[..count] == given(from, ranks * count)[me * count..][..count], "scatter of {count} at {me}");
            }
            // and what comes takes the place of what was given
            let wanted: Vec<u32> = (0..ranks).flat_map(|r| given(r, ranks * count)[me * count..][..count].to_vec()).collect();
            if scattered {
                let mut place = swap(&many);
                // SAFETY: as above
                let mut view = unsafe { MutView::with_count_and_datatype(&mut place[..], (ranks * count / 2) as i32, &swapped) };
                world.adaptive_alltoall_in_place(&mut view).unwrap();
                assert!(place == swap(&wanted), "alltoall of {count} at {me}");
            } else {
                got.copy_from_slice(&many);
                world.adaptive_alltoall_in_place(&mut got[..]).unwrap();
                assert!(got == wanted, "alltoall of {count} at {me}");
            }
        }
    });
}

#[test]
fn operations_that_do_not_commute_keep_the_order_of_ranks() {
    adaptive("operations_that_do_not_commute_keep_the_order_of_ranks", 8, |world| {
        let (me, ranks) = (world.rank() as usize, world.size() as usize);
        for (root, count) in [(0, 1), (3, 5), (7, 3000)] {
            let mut data: Vec<u64> = (0..count).flat_map(|k| map(me, k)).collect();
            with_maps(&mut data, |maps, after| world.adaptive_reduce_in_place(root, maps, after)).unwrap();
            assert!(me != root || (0..count).all(|k| data[2 * k..2 * k + 2] == map_of_all(ranks, k)), "reduce of {count} to {root}");
            let mut data: Vec<u64> = (0..ranks * count).flat_map(|k| map(me, k)).collect();
            with_maps(&mut data, |maps, after| world.adaptive_reduce_scatter_block_in_place(maps, after)).unwrap();
            let right = |k: usize| data[2 * k..2 * k + 2] == map_of_all(ranks, me * count + k);
            assert!((0..count).all(right), "reduce_scatter of {count} at {me}");
        }
    });
}

#[test]
fn what_makes_no_blocks_is_refused_before_anything_is_sent() {
    adaptive("what_makes_no_blocks_is_refused_before_anything_is_sent", 2, |world| {
        let mut three = [0u32; 3];
        let e = world.adaptive_alltoall_in_place(&mut three[..]).unwrap_err().to_string();
        assert!(e.contains("take 3 items for 2 blocks"), "{e}");
        let e = world.adaptive_allgather(&[1u32][..], &mut [0u32; 4][..]).unwrap_err().to_string();
        assert!(e.contains("blocks of 4 bytes that are given and 8 that come"), "{e}");
        let e = world.adaptive_reduce_scatter_block(&[1u32; 2][..], &mut [0f32; 1][..], SystemOperation::sum()).unwrap_err().to_string();
        assert!(e.contains("items of two datatypes"), "{e}");
        everything(world, &[2]);
    });
}
