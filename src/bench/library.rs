//! The library's own algorithms, one by one: communicators on which Open MPI is told which to use.
//!
//! Its parameters are read when a communicator is made, and can be set through the tools interface (MPI_T). The interface is looked up
//! when it is needed: not every MPI has it.

use crate::collective::{Collective, allgather, allreduce, alltoall, barrier, bcast, gather, reduce, reduce_scatter, scatter};
use crate::error::Result;
use crate::run::duplicate;
use crate::transport::mpi::symbol;
use mpi::ffi;
use std::ffi::{CStr, c_char, c_int, c_void};

/// What Open MPI has for a collective (`ompi_info --param coll tuned --level 9`).
struct Known {
    collective: &'static Collective,
    /// The parameter that takes one of the values.
    variable: &'static CStr,
    values: &'static [(&'static str, c_int)],
}

const KNOWN: &[Known] = &[
    Known {
        collective: &bcast::COLLECTIVE,
        variable: c"coll_tuned_bcast_algorithm",
        values: &[
            ("linear", 1),
            ("chain", 2),
            ("pipeline", 3),
            ("split_binary", 4),
            ("binary", 5),
            ("binomial", 6),
            ("knomial", 7),
            ("scatter_allgather", 8),
            ("scatter_allgather_ring", 9),
        ],
    },
    Known {
        collective: &barrier::COLLECTIVE,
        variable: c"coll_tuned_barrier_algorithm",
        values: &[("linear", 1), ("double_ring", 2), ("recursive_doubling", 3), ("bruck", 4), ("tree", 6)],
    },
    Known {
        collective: &allreduce::COLLECTIVE,
        variable: c"coll_tuned_allreduce_algorithm",
        values: &[("linear", 1), ("nonoverlapping", 2), ("recursive_doubling", 3), ("ring", 4), ("segmented_ring", 5), ("rabenseifner", 6)],
    },
    Known {
        collective: &reduce::COLLECTIVE,
        variable: c"coll_tuned_reduce_algorithm",
        values: &[
            ("linear", 1),
            ("chain", 2),
            ("pipeline", 3),
            ("binary", 4),
            ("binomial", 5),
            ("in-order_binary", 6),
            ("rabenseifner", 7),
        ],
    },
    Known {
        collective: &reduce_scatter::COLLECTIVE,
        variable: c"coll_tuned_reduce_scatter_block_algorithm",
        values: &[("basic_linear", 1), ("recursive_doubling", 2), ("recursive_halving", 3), ("butterfly", 4)],
    },
    Known {
        collective: &allgather::COLLECTIVE,
        variable: c"coll_tuned_allgather_algorithm",
        // that of two ranks alone is left out
        values: &[("linear", 1), ("bruck", 2), ("recursive_doubling", 3), ("ring", 4), ("neighbor", 5)],
    },
    Known {
        collective: &gather::COLLECTIVE,
        variable: c"coll_tuned_gather_algorithm",
        values: &[("basic_linear", 1), ("binomial", 2), ("linear_sync", 3)],
    },
    Known {
        collective: &scatter::COLLECTIVE,
        variable: c"coll_tuned_scatter_algorithm",
        values: &[("basic_linear", 1), ("binomial", 2), ("linear_nb", 3)],
    },
    Known {
        collective: &alltoall::COLLECTIVE,
        variable: c"coll_tuned_alltoall_algorithm",
        values: &[("linear", 1), ("pairwise", 2), ("modified_bruck", 3), ("linear_sync", 4)],
    },
];

/// Parameters that must stand before MPI starts for those above to be heard. They do not change what is chosen where none is set.
pub const ENVIRONMENT: [(&str, &str); 1] = [("OMPI_MCA_coll_tuned_use_dynamic_rules", "1")];

/// A communicator on which the library uses one algorithm.
pub struct Forced {
    /// What it is.
    pub name: String,
    /// The communicator.
    pub comm: ffi::MPI_Comm,
}

/// A communicator for each algorithm of a collective that the library can be told to use; none if it cannot be told. Collective.
///
/// # Errors
/// MPI's reason.
pub fn forced(world: ffi::MPI_Comm, collective: &Collective) -> Result<Vec<Forced>> {
    let mut all = Vec::new();
    let Some(tools) = Tools::open() else { return Ok(all) };
    let known = KNOWN.iter().find(|k| k.collective == collective);
    if let Some((known, algorithm)) = known.and_then(|k| Some((k, tools.variable(k.variable)?))) {
        for &(name, value) in known.values {
            if tools.write(algorithm, value) {
                all.push(Forced { name: format!("ompi {name}"), comm: duplicate(world)? });
            }
        }
        tools.write(algorithm, 0);
    }
    if let Some(priority) = tools.variable(c"coll_han_priority")
        && tools.write(priority, 100)
    {
        all.push(Forced { name: "ompi han".into(), comm: duplicate(world)? });
        tools.write(priority, 0);
    }
    Ok(all)
}

type InitThread = unsafe extern "C" fn(c_int, *mut c_int) -> c_int;
type GetIndex = unsafe extern "C" fn(*const c_char, *mut c_int) -> c_int;
type HandleAlloc = unsafe extern "C" fn(c_int, *mut c_void, *mut *mut c_void, *mut c_int) -> c_int;
type Write = unsafe extern "C" fn(*mut c_void, *const c_void) -> c_int;

/// The part of the tools interface that is used here. Handles are pointers in Open MPI and in MPICH.
struct Tools {
    get_index: GetIndex,
    handle_alloc: HandleAlloc,
    write: Write,
}

impl Tools {
    fn open() -> Option<Tools> {
        // SAFETY: where these symbols exist they are functions of these types (MPI 3.1, chapter 14)
        unsafe {
            let init: InitThread = std::mem::transmute(symbol(c"MPI_T_init_thread")?);
            let tools = Tools {
                get_index: std::mem::transmute::<*mut c_void, GetIndex>(symbol(c"MPI_T_cvar_get_index")?),
                handle_alloc: std::mem::transmute::<*mut c_void, HandleAlloc>(symbol(c"MPI_T_cvar_handle_alloc")?),
                write: std::mem::transmute::<*mut c_void, Write>(symbol(c"MPI_T_cvar_write")?),
            };
            let mut provided: c_int = 0;
            (init(0, &mut provided) == 0).then_some(tools)
        }
    }

    fn variable(&self, name: &CStr) -> Option<*mut c_void> {
        let (mut index, mut count, mut handle) = (0, 0, std::ptr::null_mut());
        // SAFETY: out-parameters of the right types; these variables belong to no object
        unsafe {
            let found = (self.get_index)(name.as_ptr(), &mut index) == 0;
            (found && (self.handle_alloc)(index, std::ptr::null_mut(), &mut handle, &mut count) == 0 && count == 1).then_some(handle)
        }
    }

    fn write(&self, variable: *mut c_void, value: c_int) -> bool {
        // SAFETY: a handle of a variable of one int
        unsafe { (self.write)(variable, (&raw const value).cast()) == 0 }
    }
}
