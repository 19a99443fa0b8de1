//! Arguments that MPI's functions refuse: what is said, and to whom, is as without this crate.
#![cfg(feature = "mpi")]
#![allow(unsafe_code)] // arguments that the `mpi` crate alone cannot make

mod common;

use collwise::error::{Error, Result};
use collwise::library::Library;
use collwise::run::AdaptiveCollectives;
use common::mpi::{CODE, ERRORS, adaptive, check_bcast, note_errors, on_ranks, return_errors, text, three_groups};
use mpi::collective::SystemOperation;
use mpi::datatype::{DatatypeRef, Partition, PartitionMut};
use mpi::ffi;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use std::os::raw::{c_int, c_void};
use std::sync::atomic::Ordering;

/// Items as they are, right or wrong.
#[derive(Clone, Copy)]
struct Items {
    data: [f64; 8],
    count: c_int,
    datatype: ffi::MPI_Datatype,
}

impl Items {
    fn new(count: c_int, datatype: ffi::MPI_Datatype) -> Items {
        Items { data: [1.0; 8], count, datatype }
    }
}

// SAFETY of all: eight numbers, or what is refused before anything is read or written
unsafe impl AsDatatype for Items {
    type Out = DatatypeRef<'static>;
    fn as_datatype(&self) -> DatatypeRef<'static> {
        unsafe { DatatypeRef::from_raw(self.datatype) }
    }
}
unsafe impl Collection for Items {
    fn count(&self) -> c_int {
        self.count
    }
}
unsafe impl Pointer for Items {
    fn pointer(&self) -> *const c_void {
        self.data.as_ptr().cast()
    }
}
unsafe impl PointerMut for Items {
    fn pointer_mut(&mut self) -> *mut c_void {
        self.data.as_mut_ptr().cast()
    }
}
unsafe impl Buffer for Items {}
unsafe impl BufferMut for Items {}

/// A name and a call.
type Named = (&'static str, Box<dyn Fn(&SimpleCommunicator) -> Result<()>>);

fn named(name: &'static str, call: impl Fn(&SimpleCommunicator) -> Result<()> + 'static) -> Named {
    (name, Box::new(call))
}

/// Blocks at the same place, since none is ever written.
const AT: [c_int; 2] = [0, 0];

/// Calls with a root.
fn with_root(root: usize, items: Items) -> Vec<Named> {
    let (sum, counts) = (SystemOperation::sum, [items.count; 2]);
    vec![
        named("bcast", move |c| c.adaptive_bcast(root, &mut items.clone())),
        named("ibcast", move |c| mpi::request::scope(|s| c.adaptive_ibcast(s, root, Box::leak(Box::new(items))).and_then(|p| p.wait()))),
        named("reduce", move |c| c.adaptive_reduce(root, &items, &mut items.clone(), sum())),
        named("reduce in place", move |c| c.adaptive_reduce_in_place(root, &mut items.clone(), sum())),
        named("gather", move |c| c.adaptive_gather(root, &items, &mut items.clone())),
        named("gather in place", move |c| c.adaptive_gather_in_place(root, &mut items.clone())),
        named("scatter", move |c| c.adaptive_scatter(root, &items, &mut items.clone())),
        named("scatter in place", move |c| c.adaptive_scatter_in_place(root, &mut items.clone())),
        named("gatherv", move |c| c.adaptive_gatherv(root, &items, &mut PartitionMut::new(&mut items.clone(), counts, AT))),
        named("scatterv", move |c| c.adaptive_scatterv(root, &Partition::new(&items, counts, AT), &mut items.clone())),
    ]
}

/// Calls without one, which combine nothing.
fn of_all(items: Items) -> Vec<Named> {
    let counts = [items.count; 2];
    vec![
        named("allgather", move |c| c.adaptive_allgather(&items, &mut items.clone())),
        named("allgather in place", move |c| c.adaptive_allgather_in_place(&mut items.clone())),
        named("alltoall", move |c| c.adaptive_alltoall(&items, &mut items.clone())),
        named("alltoall in place", move |c| c.adaptive_alltoall_in_place(&mut items.clone())),
        named("allgatherv", move |c| c.adaptive_allgatherv(&items, &mut PartitionMut::new(&mut items.clone(), counts, AT))),
        named("allgatherv in place", move |c| c.adaptive_allgatherv_in_place(&mut PartitionMut::new(&mut items.clone(), counts, AT))),
        named("alltoallv", move |c| {
            c.adaptive_alltoallv(&Partition::new(&items, counts, AT), &mut PartitionMut::new(&mut items.clone(), counts, AT))
        }),
        named("alltoallv in place", move |c| c.adaptive_alltoallv_in_place(&mut PartitionMut::new(&mut items.clone(), counts, AT))),
    ]
}

/// Calls that combine.
fn combining(items: Items, op: fn() -> SystemOperation) -> Vec<Named> {
    let counts = [items.count; 2];
    let twice = Items { count: 2 * items.count, ..items };
    vec![
        named("allreduce", move |c| c.adaptive_allreduce(&items, &mut items.clone(), op())),
        named("allreduce in place", move |c| c.adaptive_allreduce_in_place(&mut items.clone(), op())),
        named("iallreduce", move |c| {
            let (given, got) = (Box::leak(Box::new(items)), Box::leak(Box::new(items)));
            mpi::request::scope(|s| c.adaptive_iallreduce(s, &*given, got, op()).and_then(|p| p.wait()))
        }),
        named("reduce", move |c| c.adaptive_reduce(0, &items, &mut items.clone(), op())),
        named("reduce_scatter_block", move |c| c.adaptive_reduce_scatter_block(&twice, &mut items.clone(), op())),
        named("reduce_scatter_block in place", move |c| c.adaptive_reduce_scatter_block_in_place(&mut twice.clone(), op())),
        named("reduce_scatter", move |c| c.adaptive_reduce_scatter(&twice, &counts, &mut items.clone(), op())),
        named("reduce_scatter in place", move |c| c.adaptive_reduce_scatter_in_place(&mut twice.clone(), &counts, op())),
    ]
}

/// Each call is refused on this rank with a code of one of these classes, which the communicator's handler is told once.
fn refused(comm: &SimpleCommunicator, wanted: &[u32], calls: Vec<Named>) {
    let otherwise: Vec<String> = calls
        .into_iter()
        .filter_map(|(name, call)| {
            let before = ERRORS.load(Ordering::Relaxed);
            let (result, mut class) = (call(comm), 0);
            let told = (ERRORS.load(Ordering::Relaxed) - before, CODE.load(Ordering::Relaxed));
            if let Err(Error::Mpi { code, .. }) = result {
                // SAFETY: a code that MPI gave
                unsafe { ffi::MPI_Error_class(code, &mut class) };
                if told == (1, code) && wanted.contains(&(class as u32)) {
                    return None;
                }
            }
            Some(format!("{name}: {result:?} of class {class}, told {told:?}"))
        })
        .collect();
    assert!(otherwise.is_empty(), "of class {wanted:?} should be: {otherwise:#?}");
}

#[test]
fn a_communicators_handler_is_told_mpis_code_of_what_mpi_refuses() {
    adaptive("a_communicators_handler_is_told_mpis_code_of_what_mpi_refuses", 2, |world| {
        // the program's choice for the world ends it
        let comm = world.duplicate();
        note_errors(&comm);
        let (doubles, none) = unsafe { (ffi::RSMPI_DOUBLE, ffi::RSMPI_DATATYPE_NULL) };
        let sum = SystemOperation::sum;
        let mpich = Library::of(&mpi::environment::library_version().unwrap()) == Library::Mpich;
        // before there are plans, and with them
        for _ in 0..2 {
            for root in [2, 99, 1 << 32, usize::MAX - 99] {
                refused(&comm, &[ffi::MPI_ERR_ROOT], with_root(root, Items::new(4, doubles)));
            }
            // Open MPI asks first whether an operation is one of no datatype
            let of_type = [ffi::MPI_ERR_TYPE, ffi::MPI_ERR_OP];
            for (classes, items) in [(&[ffi::MPI_ERR_COUNT][..], Items::new(-1, doubles)), (&of_type, Items::new(4, none))] {
                // of what is wrong at the root alone nobody else learns
                let at_the_root = |name: &str| name == "gatherv" || name == "scatterv" || name == "ibcast";
                // MPICH 4.0.2's own MPI_Reduce of a negative count overwrites the stack of whoever calls it
                let destroys = |name: &str| mpich && items.count < 0 && name.contains("reduce");
                let here = |calls: Vec<Named>| calls.into_iter().filter(|(name, _)| !destroys(name)).collect::<Vec<Named>>();
                let with_root = with_root(comm.rank() as usize, items).into_iter().filter(|(name, _)| !at_the_root(name));
                refused(&comm, classes, here(with_root.collect()));
                refused(&comm, classes, of_all(items));
                refused(&comm, classes, here(combining(items, sum)));
            }
            refused(&comm, &[ffi::MPI_ERR_OP], combining(Items::new(4, doubles), SystemOperation::bitwise_and));
            check_bcast(&comm, &[10]);
        }
    });
}

#[test]
fn by_default_a_wrong_root_ends_the_job_and_it_can_be_returned() {
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), 2);
    let environment = [("COLLWISE_POLICY", policy.as_path()), ("COLLWISE_HOSTS", &hosts)];
    let output = on_ranks("by_default_a_wrong_root_ends_the_job_and_it_can_be_returned", 2, &environment, |world| {
        let returning = world.duplicate();
        return_errors(&returning);
        check_bcast(world, &[10]);
        assert!(returning.adaptive_bcast(99, &mut [1u8; 10][..]).is_err());
        println!("it went on");
        let _ = world.adaptive_bcast(99, &mut [1u8; 10][..]);
        println!("it never stops");
    });
    if let Some(output) = output {
        let said = text(&output);
        assert!(!output.status.success() && said.contains("it went on") && !said.contains("it never stops"), "{said}");
        assert_ne!(output.status.code(), Some(124), "it hung: {said}");
    }
}
