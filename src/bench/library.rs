//! The library's own algorithms, one by one: communicators on which Open MPI is told which to use.
//!
//! Its parameters are read when a communicator is made, and can be set through the tools interface (MPI_T). The interface is looked up
//! when it is needed: not every MPI has it.

use crate::collective::Collective;
use crate::error::Result;
use crate::run::duplicate;
use crate::transport::mpi::symbol;
use mpi::ffi;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// The parameter by which Open MPI is told an algorithm of a collective.
fn variable(collective: &Collective) -> CString {
    let function = collective.function.trim_start_matches("MPI_").to_lowercase();
    CString::new(format!("coll_tuned_{function}_algorithm")).unwrap_or_default()
}

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
    if let Some(algorithm) = tools.variable(&variable(collective)) {
        for &(name, value) in collective.open_mpi {
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
