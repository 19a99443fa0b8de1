//! Broadcasts of datatypes drawn at random, another one on each rank with one signature, beside `MPI_Bcast`.
#![cfg(feature = "mpi")]
#![allow(unsafe_code)] // datatypes of every kind are made through MPI's own interface

mod common;

use collwise::run::AdaptiveCollectives;
use common::mpi::adaptive;
use mpi::datatype::{DatatypeRef, MutView};
use mpi::ffi::{self, MPI_Aint, MPI_Datatype};
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::os::raw::{c_int, c_void};

const ITEM: MPI_Aint = 4;

/// A datatype of some `i32`, which lie in bytes `low` to `high` from the buffer's address.
struct Made {
    handle: MPI_Datatype,
    items: usize,
    low: MPI_Aint,
    high: MPI_Aint,
}

impl Made {
    fn base() -> Made {
        Made { handle: i32::equivalent_datatype().as_raw(), items: 1, low: 0, high: ITEM }
    }

    fn of(items: usize, make: impl FnOnce(*mut MPI_Datatype) -> c_int) -> Made {
        let (mut handle, mut low, mut extent) = (unsafe { ffi::RSMPI_DATATYPE_NULL }, 0, 0);
        assert_eq!(make(&mut handle), 0);
        unsafe { ffi::MPI_Type_get_true_extent(handle, &mut low, &mut extent) };
        Made { handle, items, low, high: low + extent }
    }

    /// The same with another distance from item to item.
    fn spaced(&self, extent: MPI_Aint) -> Made {
        Made::of(self.items, |t| unsafe { ffi::MPI_Type_create_resized(self.handle, 0, extent, t) })
    }
}

/// A datatype of so many items, no two of which lie in one place.
fn draw(random: &mut impl Rng, items: usize, depth: usize) -> Made {
    if items == 1 && (depth == 0 || random.random_bool(0.5)) {
        return Made::base();
    }
    let divisors: Vec<usize> = (1..=items).filter(|d| items.is_multiple_of(*d)).collect();
    let times = divisors[random.random_range(0..divisors.len())];
    let n = times as c_int;
    match if depth == 0 { 9 } else { random.random_range(0..8) } {
        // copies of one, forwards or backwards, close or apart
        0 | 1 => {
            let inner = draw(random, items / times, depth - 1);
            let room = inner.high - inner.low + ITEM * random.random_range(0..3i32) as MPI_Aint;
            let inner = inner.spaced(if random.random_bool(0.3) { -room } else { room });
            Made::of(items, |t| unsafe { ffi::MPI_Type_contiguous(n, inner.handle, t) })
        }
        2 => {
            let inner = draw(random, items / times, depth - 1);
            let stride =
                (inner.high - inner.low + ITEM * random.random_range(0..2i32) as MPI_Aint) * if random.random_bool(0.4) { -1 } else { 1 };
            Made::of(items, |t| unsafe { ffi::MPI_Type_create_hvector(n, 1, stride, inner.handle, t) })
        }
        // a matrix, transposed: its columns overlap
        3 => {
            let rows = (items / times) as c_int;
            let column = Made::of(rows as usize, |t| unsafe { ffi::MPI_Type_vector(rows, 1, n, Made::base().handle, t) }).spaced(ITEM);
            Made::of(items, |t| unsafe { ffi::MPI_Type_contiguous(n, column.handle, t) })
        }
        // two parts one after the other, in either order
        4 if items > 1 => {
            let first = random.random_range(1..items);
            let (a, b) = (draw(random, first, depth - 1), draw(random, items - first, depth - 1));
            let gap = ITEM * random.random_range(0..2i32) as MPI_Aint;
            let (at_a, at_b) =
                if random.random_bool(0.5) { (-a.low, a.high - a.low + gap - b.low) } else { (b.high - b.low + gap - a.low, -b.low) };
            let (lengths, places, types) = ([1, 1], [at_a, at_b], [a.handle, b.handle]);
            Made::of(items, |t| unsafe { ffi::MPI_Type_create_struct(2, lengths.as_ptr(), places.as_ptr(), types.as_ptr(), t) })
        }
        5 => {
            let inner = draw(random, items, depth - 1);
            let moved = ITEM * random.random_range(-3..4i32) as MPI_Aint;
            Made::of(items, |t| unsafe { ffi::MPI_Type_create_hindexed_block(1, 1, &moved, inner.handle, t) })
        }
        6 => {
            let inner = draw(random, items, depth - 1);
            Made::of(items, |t| unsafe { ffi::MPI_Type_dup(inner.handle, t) })
        }
        // a part of an array
        7 => {
            let (sizes, parts, starts) = ([items as c_int / n + 1, n], [items as c_int / n, n], [random.random_range(0..2), 0]);
            let order = ffi::MPI_ORDER_C as c_int;
            let (base, s) = (Made::base().handle, starts.as_ptr());
            Made::of(items, |t| unsafe { ffi::MPI_Type_create_subarray(2, sizes.as_ptr(), parts.as_ptr(), s, order, base, t) })
        }
        // single items in a drawn order, with a place left out now and then
        _ => {
            let mut places: Vec<c_int> = (0..(items + items / 4) as c_int).collect();
            (0..places.len()).for_each(|k| places.swap(k, random.random_range(0..=k)));
            if random.random_bool(0.3) {
                places.sort_unstable();
            }
            let ones = vec![1; items];
            let (base, p) = (Made::base().handle, places.as_ptr());
            match random.random_range(0..2) {
                0 => Made::of(items, |t| unsafe { ffi::MPI_Type_indexed(items as c_int, ones.as_ptr(), p, base, t) }),
                _ => Made::of(items, |t| unsafe { ffi::MPI_Type_create_indexed_block(items as c_int, 1, p, base, t) }),
            }
        }
    }
}

/// Broadcasts as `count` items of a datatype from this rank's side, by the library's own and by ours: both leave the same buffers.
fn compare(world: &SimpleCommunicator, made: &Made, count: usize, root: usize, what: &str) {
    let (mut handle, mut lb, mut extent) = (made.handle, 0, 0);
    unsafe {
        assert_eq!(ffi::MPI_Type_commit(&mut handle), 0);
        ffi::MPI_Type_get_extent(handle, &mut lb, &mut extent);
    }
    // where the items lie, at either end
    let last = (count as MPI_Aint - 1) * extent;
    let (low, high) = (made.low.min(made.low + last), made.high.max(made.high + last));
    let fresh = |mark: usize| -> Vec<u8> { (0..(high - low) as usize).map(|k| common::byte(k, mark)).collect() };
    let (mut theirs, mut ours) = (fresh(world.rank() as usize), fresh(world.rank() as usize));
    let datatype = unsafe { DatatypeRef::from_raw(handle) };
    let start = theirs.as_mut_ptr().wrapping_add(-low as usize).cast::<c_void>();
    assert_eq!(unsafe { ffi::PMPI_Bcast(start, count as c_int, handle, root as c_int, world.as_raw()) }, 0);
    let from = -low as usize;
    // a view begins at the buffer's address, which may lie before or behind the bytes
    let all = unsafe { std::slice::from_raw_parts_mut(ours.as_mut_ptr().wrapping_add(from), 0) };
    let mut view = unsafe { MutView::with_count_and_datatype(all, count as c_int, &datatype) };
    world.adaptive_bcast(root, &mut view).unwrap();
    let wrong = theirs.iter().zip(&ours).filter(|(a, b)| a != b).count();
    assert_eq!(wrong, 0, "{what}: {wrong} of {} bytes differ at rank {}", ours.len(), world.rank());
}

#[test]
fn datatypes_drawn_at_random_arrive_as_with_the_library() {
    adaptive("datatypes_drawn_at_random_arrive_as_with_the_library", 5, |world| {
        let me = world.rank() as u64;
        for case in 0..400u64 {
            // the same on all ranks, and what is this rank's own
            let mut shared = Xoshiro256PlusPlus::seed_from_u64(case);
            let mut own = Xoshiro256PlusPlus::seed_from_u64(case * 1000 + me);
            let items: usize = [1, 2, 12, 60, 840, 5040][shared.random_range(0..6)];
            let root = shared.random_range(0..world.size() as usize);
            let divisors: Vec<usize> = (1..=items.min(12)).filter(|d| items.is_multiple_of(*d)).collect();
            let count = divisors[own.random_range(0..divisors.len())];
            let made = draw(&mut own, items / count, 3);
            let made = made.spaced((made.high - made.low) * if own.random_bool(0.2) { -1 } else { 1 });
            compare(world, &made, count, root, &format!("case {case}"));
        }
    });
}

#[test]
fn bytes_that_fill_a_piece_in_another_order_are_packed() {
    adaptive("bytes_that_fill_a_piece_in_another_order_are_packed", 3, |world| {
        let base = Made::base().handle;
        let (n, ones) = (1000, [1; 1000]);
        let backwards: Vec<c_int> = (0..n).rev().collect();
        let indexed = Made::of(1000, |t| unsafe { ffi::MPI_Type_indexed(n, ones.as_ptr(), backwards.as_ptr(), base, t) });
        let vector = Made::of(1000, |t| unsafe { ffi::MPI_Type_vector(n, 1, -1, base, t) });
        let column = Made::of(40, |t| unsafe { ffi::MPI_Type_vector(40, 1, 25, base, t) }).spaced(ITEM);
        let transposed = Made::of(1000, |t| unsafe { ffi::MPI_Type_contiguous(25, column.handle, t) });
        for (made, name) in [(indexed, "indexed"), (vector, "vector"), (transposed, "transposed")] {
            for root in 0..3 {
                if world.rank() == root {
                    compare(world, &made, 1, root as usize, name);
                } else {
                    compare(world, &Made::base(), 1000, root as usize, name);
                }
            }
        }
    });
}

/// `MPI_Type_size` counts in an `int`, which such an item overflows.
#[test]
fn an_item_of_3_gib_is_as_large_as_all_its_parts() {
    adaptive("an_item_of_3_gib_is_as_large_as_all_its_parts", 2, |world| {
        const PART: usize = 1 << 20;
        const PARTS: usize = 3 << 10;
        let part = Made::of(PART, |t| unsafe { ffi::MPI_Type_contiguous(PART as c_int, u8::equivalent_datatype().as_raw(), t) });
        let whole = Made::of(PARTS, |t| unsafe { ffi::MPI_Type_contiguous(PARTS as c_int, part.handle, t) });
        // one rank has it as one item, the other one as many: they must take the same way. Pages of zeros that nobody writes take no memory
        let mut data = vec![0u8; PART * PARTS];
        let marks = (0..PARTS * PART).step_by(97 * PART + 13);
        let (mut handle, count) = if world.rank() == 0 { (whole.handle, 1) } else { (part.handle, PARTS) };
        if world.rank() == 0 {
            marks.clone().for_each(|at| data[at] = common::byte(at, 3));
        }
        assert_eq!(unsafe { ffi::MPI_Type_commit(&mut handle) }, 0);
        let datatype = unsafe { DatatypeRef::from_raw(handle) };
        let mut view = unsafe { MutView::with_count_and_datatype(&mut data[..], count as c_int, &datatype) };
        world.adaptive_bcast(0, &mut view).unwrap();
        assert!(marks.clone().all(|at| data[at] == common::byte(at, 3)));
        assert!(marks.skip(1).all(|at| data[at - 1] == 0));
    });
}
