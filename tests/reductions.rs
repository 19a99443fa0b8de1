//! What is combined: pairs of a value and a place, and numbers whose sums depend on the order in which they are added.
#![cfg(feature = "mpi")]
#![allow(unsafe_code)] // MPI's own pairs, by their handles

mod common;

use collwise::run::AdaptiveCollectives;
use common::mpi::{
    adaptive, adaptive_and_traced, is_child, map, map_of_all, mpicc, must_succeed, on_ranks, three_groups, traced, with_maps,
};
use mpi::collective::{Operation, SystemOperation, UnsafeUserOperation};
use mpi::datatype::{Collection, DatatypeRef, Pointer, PointerMut};
use mpi::ffi;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::*;
use std::fmt::Debug;
use std::mem::ManuallyDrop;
use std::os::raw::{c_int, c_long, c_void};
use std::slice::{from_raw_parts, from_raw_parts_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

/// An operation by its handle.
struct ByHandle(ffi::MPI_Op);

// SAFETY: an operation of MPI's own
unsafe impl AsRaw for ByHandle {
    type Raw = ffi::MPI_Op;
    fn as_raw(&self) -> ffi::MPI_Op {
        self.0
    }
}

impl Operation for ByHandle {}

/// A pair as C has it.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
struct Pair<V, I> {
    value: V,
    place: I,
}

/// Pairs of a type of MPI's own.
struct Pairs<V, I>(Vec<Pair<V, I>>, ffi::MPI_Datatype);

// SAFETY of all: so many items of the type
unsafe impl<V, I> AsDatatype for Pairs<V, I> {
    type Out = DatatypeRef<'static>;
    fn as_datatype(&self) -> DatatypeRef<'static> {
        unsafe { DatatypeRef::from_raw(self.1) }
    }
}

unsafe impl<V, I> Collection for Pairs<V, I> {
    fn count(&self) -> c_int {
        self.0.len() as c_int
    }
}

unsafe impl<V, I> Pointer for Pairs<V, I> {
    fn pointer(&self) -> *const c_void {
        self.0.as_ptr().cast()
    }
}

unsafe impl<V, I> PointerMut for Pairs<V, I> {
    fn pointer_mut(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }
}

unsafe impl<V, I> Buffer for Pairs<V, I> {}
unsafe impl<V, I> BufferMut for Pairs<V, I> {}

/// The handles, from a library that the parent has compiled.
struct Handles(*mut c_void);

impl Handles {
    fn open() -> Handles {
        let path = std::env::var("COLLWISE_TRACE").unwrap() + "/pairs.so\0";
        // SAFETY: a name that ends with a zero
        let library = unsafe { libc::dlopen(path.as_ptr().cast(), libc::RTLD_NOW) };
        assert!(!library.is_null(), "{path}");
        Handles(library)
    }

    /// What a function of the library gives for a number.
    fn of<T>(&self, function: &std::ffi::CStr, number: c_int) -> T {
        // SAFETY: the functions take an int, and give a handle of this type
        unsafe {
            let found = libc::dlsym(self.0, function.as_ptr());
            assert!(!found.is_null());
            std::mem::transmute::<*mut c_void, extern "C" fn(c_int) -> T>(found)(number)
        }
    }
}

/// Finds places in every way; gives how many calls went by plans.
fn places<V: Copy + PartialOrd + Debug, I: Copy + PartialOrd + Debug>(
    world: &SimpleCommunicator,
    handles: &Handles,
    which: c_int,
    of: fn(usize, usize) -> Pair<V, I>,
) -> usize {
    let datatype: ffi::MPI_Datatype = handles.of(c"pair_type", which);
    // SAFETY: a constant of the library
    if datatype == unsafe { ffi::RSMPI_DATATYPE_NULL } {
        return usize::MAX;
    }
    let before = traced();
    let (me, ranks) = (world.rank() as usize, world.size() as usize);
    // many ranks have the same value
    let pair = |rank: usize, k: usize| of((k * 7 + rank * 13) % 5, rank * 100 + k % 100);
    for (greatest, count) in [(false, 1), (true, 5), (false, 3000), (true, 8191)] {
        let op = || ByHandle(handles.of(c"location", c_int::from(greatest)));
        let found = |k: usize| {
            let better = |a: &Pair<V, I>, b: &Pair<V, I>| if greatest { b.value > a.value } else { b.value < a.value };
            // ranks with the same value come in the order of places
            (1..ranks).map(|r| pair(r, k)).fold(pair(0, k), |best, next| if better(&best, &next) { next } else { best })
        };
        let pairs = |blocks: usize| Pairs((0..blocks * count).map(|k| pair(me, k)).collect(), datatype);
        let right = |got: &Pairs<V, I>, first: usize, what: &str| {
            let wrong = (0..count).find(|&k| got.0[k] != found(first + k));
            assert_eq!(wrong, None, "{what} of {count} pairs {which} at {me}: {:?}", &got.0[wrong.unwrap_or(0)]);
        };
        let (given, mut got) = (pairs(1), pairs(1));
        world.adaptive_allreduce(&given, &mut got, op()).unwrap();
        right(&got, 0, "allreduce");
        got = pairs(1);
        world.adaptive_allreduce_in_place(&mut got, op()).unwrap();
        right(&got, 0, "allreduce in place");
        got = pairs(1);
        mpi::request::scope(|scope| world.adaptive_iallreduce_in_place(scope, &mut got, op()).unwrap().wait().unwrap());
        right(&got, 0, "iallreduce in place");
        got = Pairs(if me == 3 { pairs(1).0 } else { Vec::new() }, datatype);
        world.adaptive_reduce(3, &given, &mut got, op()).unwrap();
        if me == 3 {
            right(&got, 0, "reduce");
        }
        got = pairs(1);
        world.adaptive_reduce_in_place(1, &mut got, op()).unwrap();
        if me == 1 {
            right(&got, 0, "reduce in place");
        }
        let (given, mut got) = (pairs(ranks), pairs(1));
        world.adaptive_reduce_scatter_block(&given, &mut got, op()).unwrap();
        right(&got, me * count, "reduce_scatter");
        let mut got = pairs(ranks);
        world.adaptive_reduce_scatter_block_in_place(&mut got, op()).unwrap();
        right(&got, me * count, "reduce_scatter in place");
        let (counts, mut got) = (vec![count as c_int; ranks], pairs(1));
        world.adaptive_reduce_scatter(&given, &counts, &mut got, op()).unwrap();
        right(&got, me * count, "reduce_scatter with counts");
    }
    traced() - before
}

#[test]
fn pairs_of_mpis_own_go_by_plans_in_all_reductions() {
    adaptive_and_traced("pairs_of_mpis_own_go_by_plans_in_all_reductions", 8, |world| {
        let folder = std::env::var("COLLWISE_TRACE").unwrap();
        if world.rank() == 0 {
            let mut compiler = std::process::Command::new(mpicc());
            compiler.args(["-shared", "-fPIC", "-o", &format!("{folder}/pairs.so")]).arg(common::file("tests/programs/pairs.c"));
            assert!(compiler.status().unwrap().success());
        }
        for _ in 0..2 {
            world.adaptive_barrier().unwrap();
        }
        let handles = Handles::open();
        let by_plans = [
            places(world, &handles, 0, |value, place| Pair { value: value as i32, place: place as i32 }),
            places(world, &handles, 1, |value, place| Pair { value: value as f64 / 7.0, place: place as i32 }),
            places(world, &handles, 2, |value, place| Pair { value: value as f32 / 7.0, place: place as i32 }),
            places(world, &handles, 3, |value, place| Pair { value: value as i16, place: place as i32 }),
            places(world, &handles, 4, |value, place| Pair { value: value as c_long, place: place as i32 }),
            places(world, &handles, 5, |value, place| Pair { value: value as f32 / 7.0, place: place as f32 }),
            places(world, &handles, 6, |value, place| Pair { value: value as f64 / 7.0, place: place as f64 }),
            places(world, &handles, 7, |value, place| Pair { value: value as i32, place: place as i32 }),
        ];
        // all but what tuning has found the library's own to be as fast for, of pairs with bytes between them too
        assert!(by_plans.iter().all(|&calls| calls > 16), "{by_plans:?}");
    });
}

/// Numbers of any sign, most of which cancel out.
fn number(rank: usize, k: usize) -> f64 {
    let scaled = ((k * 37 + rank * 101) % 997) as f64 / 7.0 * 10f64.powi((rank as i32 * 5 + k as i32) % 7 - 3);
    if (rank + k).is_multiple_of(2) { scaled } else { -scaled }
}

/// Sums of floating point are off by no more than any order of adding allows, which the library's own may be too.
fn sums<T: Equivalence + Copy + Into<f64> + Default>(world: &SimpleCommunicator, of: fn(f64) -> T, epsilon: f64) {
    let (me, ranks, sum) = (world.rank() as usize, world.size() as usize, SystemOperation::sum);
    for count in [1, 7, 1000, 30_001] {
        let numbers = |blocks: usize| (0..blocks * count).map(|k| of(number(me, k))).collect::<Vec<T>>();
        let right = |got: &[T], first: usize, what: &str| {
            for (k, &got) in got.iter().enumerate().take(count) {
                let all = (0..ranks).map(|r| of(number(r, first + k)).into());
                // of so few numbers twice as many digits are enough
                let (exact, size) = all.fold((0i128, 0.0), |(sum, size), x: f64| (sum + (x * 2f64.powi(60)) as i128, size + x.abs()));
                let off = (got.into() - exact as f64 / 2f64.powi(60)).abs();
                assert!(off <= ranks as f64 * epsilon * size, "{what}: number {k} of {count} is off by {off} of {size}");
            }
        };
        let (given, mut got) = (numbers(1), vec![T::default(); count]);
        world.adaptive_allreduce(&given[..], &mut got[..], sum()).unwrap();
        right(&got, 0, "allreduce");
        world.all_reduce_into(&given[..], &mut got[..], sum());
        right(&got, 0, "the library's own");
        got = given.clone();
        world.adaptive_reduce_in_place(5, &mut got[..], sum()).unwrap();
        if me == 5 {
            right(&got, 0, "reduce");
        }
        let given = numbers(ranks);
        world.adaptive_reduce_scatter_block(&given[..], &mut got[..], sum()).unwrap();
        right(&got, me * count, "reduce_scatter");
    }
}

#[test]
fn sums_are_as_exact_as_any_order_of_adding_makes_them() {
    adaptive("sums_are_as_exact_as_any_order_of_adding_makes_them", 8, |world| {
        sums::<f64>(world, |x| x, f64::EPSILON);
        sums::<f32>(world, |x| x as f32, f64::from(f32::EPSILON));
    });
}

/// Where the ranks of each group follow each other, what goes through coordinators keeps their order.
#[test]
fn operations_that_do_not_commute_go_by_plans_over_groups_in_order() {
    let name = "operations_that_do_not_commute_go_by_plans_over_groups_in_order";
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), 8);
    if !is_child() {
        let text = std::fs::read_to_string(&hosts).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        std::fs::write(&hosts, lines.join("\n") + "\n").unwrap();
    }
    let environment = [("COLLWISE_POLICY", policy.as_path()), ("COLLWISE_HOSTS", &hosts), ("COLLWISE_TRACE", folder.path())];
    must_succeed(on_ranks(name, 8, &environment, |world| {
        (0..2).for_each(|_| world.adaptive_barrier().unwrap());
        let (me, before) = (world.rank() as usize, traced());
        for count in [1, 5, 3000, 40_000] {
            let maps = |blocks: usize| (0..blocks * count).flat_map(|k| map(me, k)).collect::<Vec<u64>>();
            let right = |got: &[u64], first: usize| (0..count).all(|k| got[2 * k..2 * k + 2] == map_of_all(8, first + k));
            let mut all = maps(1);
            with_maps(&mut all, |maps, after| world.adaptive_allreduce_in_place(maps, after)).unwrap();
            assert!(right(&all, 0), "allreduce of {count}");
            for root in [0, 2, 5, 7] {
                let mut all = maps(1);
                with_maps(&mut all, |maps, after| world.adaptive_reduce_in_place(root, maps, after)).unwrap();
                assert!(me != root || right(&all, 0), "reduce of {count} to {root}");
            }
            let mut all = maps(8);
            with_maps(&mut all, |maps, after| world.adaptive_reduce_scatter_block_in_place(maps, after)).unwrap();
            assert!(right(&all, me * count), "reduce_scatter of {count} at {me}");
        }
        assert_eq!(traced() - before, 4 * 6);
    }));
}

/// Where the handle of a communicator of this rank alone is, on which reductions call collectives.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// `right := left + right`, where numbers make a detour over collectives of one rank.
unsafe extern "C" fn detour(left: *mut c_void, right: *mut c_void, count: *mut c_int, _: *mut ffi::MPI_Datatype) {
    // SAFETY: MPI passes so many numbers; the communicator lasts
    unsafe {
        let alone = ManuallyDrop::new(SimpleCommunicator::from_raw((INSIDE.load(Ordering::Relaxed) as *const ffi::MPI_Comm).read()));
        let count = *count as usize;
        let (left, right) = (from_raw_parts(left.cast::<u64>(), count), from_raw_parts_mut(right.cast::<u64>(), count));
        let mut all = vec![0; count];
        alone.adaptive_allreduce(left, &mut all[..], SystemOperation::sum()).unwrap();
        alone.adaptive_barrier().unwrap();
        right.iter_mut().zip(&all).for_each(|(r, l)| *r = r.wrapping_add(*l));
        alone.adaptive_bcast(0, right).unwrap();
    }
}

/// Blocking ones, such that are under way at the same time, and both.
#[test]
fn reductions_may_call_collectives() {
    adaptive("reductions_may_call_collectives", 8, |world| {
        let alone = world.split_by_color(Color::with_value(world.rank())).unwrap();
        let raw = alone.as_raw();
        INSIDE.store(&raw const raw as usize, Ordering::Relaxed);
        (0..2).for_each(|_| world.adaptive_barrier().unwrap());
        let other = world.duplicate();
        (0..2).for_each(|_| other.adaptive_barrier().unwrap());
        // SAFETY: it reads and writes as many numbers as MPI says
        let sum = unsafe { UnsafeUserOperation::commutative(detour) };
        for count in [1usize, 1000, 40_000] {
            for _ in 0..3 {
                let given: Vec<u64> = (0..count as u64).map(|k| k + world.rank() as u64).collect();
                let right = |got: &[u64]| got.iter().enumerate().all(|(k, &x)| x == 8 * k as u64 + 28);
                let mut got = vec![vec![0; count]; 4];
                world.adaptive_allreduce(&given[..], &mut got[0][..], &sum).unwrap();
                let [_, first, second, third] = &mut got[..] else { unreachable!() };
                mpi::request::scope(|scope| {
                    let pending = [world.adaptive_iallreduce(scope, &given[..], &mut first[..], &sum).unwrap()];
                    let others = [second, third].map(|got| other.adaptive_iallreduce(scope, &given[..], &mut got[..], &sum).unwrap());
                    pending.into_iter().chain(others).for_each(|pending| pending.wait().unwrap());
                });
                assert!(got.iter().all(|got| right(got)), "{count}");
            }
        }
    });
}
