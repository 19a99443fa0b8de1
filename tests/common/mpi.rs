//! Tests over MPI start themselves again under `mpirun --oversubscribe`: as a child each runs its part on every rank.

use super::byte;

pub use super::launch::{ONE_AT_A_TIME, is_child, mpicc, mpirun, text};
pub use super::three_groups::three_groups;
use collwise::collective::bcast;
use collwise::policy::Policy;
use collwise::run::AdaptiveCollectives;
use collwise::transport::mpi::abort_on_panic;
use mpi::collective::UnsafeUserOperation;
use mpi::datatype::{MutView, UserDatatype, View};
use mpi::ffi;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use std::os::raw::{c_int, c_void};
use std::path::Path;
use std::process::Output;
use std::slice::{from_raw_parts, from_raw_parts_mut};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// In the parent: runs the test of this name on so many ranks, and gives the output. In a child: runs `part`.
pub fn on_ranks(name: &str, ranks: usize, environment: &[(&str, &Path)], part: impl FnOnce(&SimpleCommunicator)) -> Option<Output> {
    if is_child() {
        abort_on_panic();
        let threads = std::env::var_os("COLLWISE_TEST_THREADS").map_or(mpi::Threading::Single, |_| mpi::Threading::Multiple);
        let (universe, _) = mpi::initialize_with_threading(threads).unwrap();
        part(&universe.world());
        return None;
    }
    let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut command = mpirun(ranks);
    command.arg(std::env::current_exe().unwrap()).args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command.env("COLLWISE_TEST_CHILD", "1").envs(environment.iter().copied());
    Some(command.output().expect("start mpirun: scripts/setup.sh installs it"))
}

pub fn must_succeed(output: Option<Output>) -> String {
    let Some(output) = output else { return String::new() };
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("1 passed"), "the children ran nothing: {}", text(&output));
    text(&output)
}

/// The policy with the library's own broadcast inside all groups, after whole messages between them.
pub fn own_inside(policy: &Path) {
    if is_child() {
        return;
    }
    let mut edited = Policy::read(policy).unwrap();
    edited.collectives.get_mut(&bcast::COLLECTIVE).unwrap().two_level.clear();
    for row in edited.groups.iter_mut().flat_map(|g| g.choices.values_mut().flatten()) {
        (row.algorithm, row.segment_bytes, row.radix) = ("native".into(), 0, 0);
    }
    std::fs::write(policy, edited.to_toml().unwrap()).unwrap();
}

/// Broadcasts from every root and checks every byte.
pub fn check_bcast<C: Communicator + AsRaw<Raw = mpi::ffi::MPI_Comm>>(comm: &C, sizes: &[usize]) {
    for &bytes in sizes {
        for root in 0..comm.size() as usize {
            let mut data: Vec<u8> =
                if comm.rank() as usize == root { (0..bytes).map(|k| byte(k, root)).collect() } else { vec![0xAA; bytes] };
            comm.adaptive_bcast(root, &mut data[..]).unwrap();
            let wrong = (0..bytes).find(|&k| data[k] != byte(k, root));
            assert_eq!(wrong, None, "{bytes} bytes from {root} at {}", comm.rank());
        }
    }
}

pub fn adaptive(name: &str, ranks: usize, part: impl Fn(&SimpleCommunicator)) {
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), ranks);
    let said = must_succeed(on_ranks(name, ranks, &[("COLLWISE_POLICY", &policy), ("COLLWISE_HOSTS", &hosts)], part));
    assert!(!said.contains("library's own collectives"), "it fell back: {said}");
}

/// An affine map: `x -> a x + b`.
pub type Map = [u64; 2];

/// What a rank gives as its k-th map.
pub fn map(rank: usize, k: usize) -> Map {
    [2 * (k as u64 + rank as u64) + 1, k as u64 ^ (rank as u64) << 7]
}

/// The k-th maps of so many ranks, one after the other.
pub fn map_of_all(ranks: usize, k: usize) -> Map {
    (1..ranks).fold(map(0, k), |x, rank| after(x, map(rank, k)))
}

fn after(left: Map, right: Map) -> Map {
    [left[0].wrapping_mul(right[0]), left[0].wrapping_mul(right[1]).wrapping_add(left[1])]
}

/// `right := left after right`.
unsafe extern "C" fn all_after(left: *mut c_void, right: *mut c_void, count: *mut c_int, _: *mut ffi::MPI_Datatype) {
    // SAFETY: MPI passes so many maps
    unsafe {
        let count = *count as usize;
        let (left, right) = (from_raw_parts(left.cast::<Map>(), count), from_raw_parts_mut(right.cast::<Map>(), count));
        left.iter().zip(right).for_each(|(left, right)| *right = after(*left, *right));
    }
}

/// Calls something with maps, two numbers each, and the operation that has one come after the other, which does not commute.
pub fn with_maps<R>(maps: &mut [u64], call: impl FnOnce(&mut MutView<UserDatatype, [u64]>, &UnsafeUserOperation) -> R) -> R {
    let pair = UserDatatype::contiguous(2, &u64::equivalent_datatype());
    let count = (maps.len() / 2) as c_int;
    // SAFETY: it reads and writes as many maps as MPI says; as many pairs as there are
    unsafe { call(&mut MutView::with_count_and_datatype(maps, count, &pair), &UnsafeUserOperation::associative(all_after)) }
}

/// As [`with_maps`], with maps that are given and others that come.
pub fn with_two_maps<R>(
    given: &[u64],
    got: &mut [u64],
    call: impl FnOnce(&View<UserDatatype, [u64]>, &mut MutView<UserDatatype, [u64]>, &UnsafeUserOperation) -> R,
) -> R {
    let pair = UserDatatype::contiguous(2, &u64::equivalent_datatype());
    let (given_count, got_count) = ((given.len() / 2) as c_int, (got.len() / 2) as c_int);
    // SAFETY: as above
    unsafe {
        let given = View::with_count_and_datatype(given, given_count, &pair);
        call(&given, &mut MutView::with_count_and_datatype(got, got_count, &pair), &UnsafeUserOperation::associative(all_after))
    }
}

/// Errors that were told to the handler of [`note_errors`], and the last one's code.
pub static ERRORS: AtomicUsize = AtomicUsize::new(0);
pub static CODE: AtomicI32 = AtomicI32::new(0);

// handlers take any number of arguments, which Rust's functions cannot; the two that are always there are read
type Note = unsafe extern "C" fn(*mut ffi::MPI_Comm, *mut c_int);
type Any = unsafe extern "C" fn(*mut ffi::MPI_Comm, *mut c_int, ...);

unsafe extern "C" fn note(_: *mut ffi::MPI_Comm, code: *mut c_int) {
    ERRORS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: MPI passes a code
    CODE.store(unsafe { *code }, Ordering::Relaxed);
}

/// Has errors of a communicator counted.
pub fn note_errors(comm: &SimpleCommunicator) {
    // SAFETY: a valid communicator, a handler with MPI's signature
    unsafe {
        let mut handler = ffi::RSMPI_ERRORS_RETURN;
        assert_eq!(ffi::MPI_Comm_create_errhandler(Some(std::mem::transmute::<Note, Any>(note)), &mut handler), 0);
        assert_eq!(ffi::MPI_Comm_set_errhandler(comm.as_raw(), handler), 0);
    }
}

/// Has errors of a communicator returned, and nothing called.
pub fn return_errors(comm: &SimpleCommunicator) {
    // SAFETY: a valid communicator
    unsafe { ffi::MPI_Comm_set_errhandler(comm.as_raw(), ffi::RSMPI_ERRORS_RETURN) };
}

/// Plans that this rank has carried out, where COLLWISE_TRACE names a folder: lines of its trace there.
pub fn traced() -> usize {
    let folder = std::env::var_os("COLLWISE_TRACE").unwrap();
    let rank = SimpleCommunicator::world().rank();
    std::fs::read_to_string(Path::new(&folder).join(format!("rank-{rank}.jsonl"))).map_or(0, |text| text.lines().count())
}

/// As [`adaptive`], with [`traced`].
pub fn adaptive_and_traced(name: &str, ranks: usize, part: impl Fn(&SimpleCommunicator)) {
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), ranks);
    let environment = [("COLLWISE_POLICY", policy.as_path()), ("COLLWISE_HOSTS", &hosts), ("COLLWISE_TRACE", folder.path())];
    let said = must_succeed(on_ranks(name, ranks, &environment, part));
    assert!(!said.contains("library's own collectives"), "it fell back: {said}");
}
