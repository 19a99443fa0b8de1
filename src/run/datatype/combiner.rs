//! How datatypes were made.

use crate::error::Result;
use crate::transport::mpi::check;
use crate::transport::native;
use mpi::ffi::{self, MPI_Aint, MPI_Count, MPI_Datatype};
use std::os::raw::{c_int, c_void};
use std::sync::OnceLock;

type LargeEnvelope =
    unsafe extern "C" fn(MPI_Datatype, *mut MPI_Count, *mut MPI_Count, *mut MPI_Count, *mut MPI_Count, *mut c_int) -> c_int;

/// What no library has for a combiner: of a datatype that a call with large counts made, which older calls refuse to describe.
const LARGE: c_int = c_int::MIN;

/// MPI 4's function, where the library has it: the only one that describes what calls with large counts made (`MPI_Type_contiguous_c`).
fn large_envelope() -> Option<LargeEnvelope> {
    static FOUND: OnceLock<Option<LargeEnvelope>> = OnceLock::new();
    // SAFETY: the symbol, where it exists, is a function of this type
    *FOUND.get_or_init(|| {
        native::newer("PMPI_Type_get_envelope_c").map(|found| unsafe { std::mem::transmute::<*mut c_void, LargeEnvelope>(found) })
    })
}

/// How a datatype was made, and how many numbers, addresses and types it was made with.
pub unsafe fn combiner(datatype: MPI_Datatype) -> Result<(c_int, usize, usize, usize)> {
    if let Some(envelope) = large_envelope() {
        let (mut ints, mut addresses, mut large, mut types, mut combiner) = (0, 0, 0, 0, 0);
        // SAFETY: out-parameters of the right types
        let code = unsafe { envelope(datatype, &mut ints, &mut addresses, &mut large, &mut types, &mut combiner) };
        check("MPI_Type_get_envelope_c", code)?;
        let made = (combiner, ints.max(0) as usize, addresses.max(0) as usize, types.max(0) as usize);
        return Ok(if large > 0 { (LARGE, 0, 0, 0) } else { made });
    }
    let (mut ints, mut addresses, mut types, mut combiner) = (0, 0, 0, 0);
    // SAFETY: out-parameters of the right types
    let code = unsafe { native::PMPI_Type_get_envelope(datatype, &mut ints, &mut addresses, &mut types, &mut combiner) };
    check("MPI_Type_get_envelope", code)?;
    Ok((combiner, ints.max(0) as usize, addresses.max(0) as usize, types.max(0) as usize))
}

/// The constants `MPI_COMBINER_...` of those ways to make a datatype that are taken apart.
#[derive(Debug, Clone, Copy)]
pub struct Combiners {
    pub named: c_int,
    pub dup: c_int,
    pub contiguous: c_int,
    pub vector: c_int,
    pub hvector: c_int,
    pub indexed: c_int,
    pub hindexed: c_int,
    pub indexed_block: c_int,
    pub hindexed_block: c_int,
    pub structure: c_int,
    pub resized: c_int,
    pub subarray: c_int,
}

impl Combiners {
    /// All but the predefined ones.
    pub fn all(&self) -> [c_int; 11] {
        [
            self.dup,
            self.contiguous,
            self.vector,
            self.hvector,
            self.indexed,
            self.hindexed,
            self.indexed_block,
            self.hindexed_block,
            self.structure,
            self.resized,
            self.subarray,
        ]
    }
}

/// Their values, which differ between libraries, as do the names that bindings give them: found by making a datatype of each.
pub fn combiners() -> Result<&'static Combiners> {
    static FOUND: OnceLock<Combiners> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found);
    }
    /// How the datatype is made that the call writes.
    fn of(call: &'static str, make: impl FnOnce(*mut MPI_Datatype) -> c_int) -> Result<c_int> {
        // SAFETY: a constant of the library; a datatype that was made is valid
        unsafe {
            let mut made = ffi::RSMPI_DATATYPE_NULL;
            check(call, make(&mut made))?;
            let found = combiner(made)?.0;
            check("MPI_Type_free", native::PMPI_Type_free(&mut made))?;
            Ok(found)
        }
    }
    // SAFETY: lists of one entry, and a predefined type
    let found = unsafe {
        let byte = ffi::RSMPI_UINT8_T;
        let (one, at) = ([1 as c_int], [0 as MPI_Aint]);
        let (n, d, a) = (one.as_ptr(), one.as_ptr(), at.as_ptr());
        Combiners {
            named: combiner(byte)?.0,
            dup: of("MPI_Type_dup", |t| native::PMPI_Type_dup(byte, t))?,
            contiguous: of("MPI_Type_contiguous", |t| native::PMPI_Type_contiguous(2, byte, t))?,
            vector: of("MPI_Type_vector", |t| native::PMPI_Type_vector(2, 1, 2, byte, t))?,
            hvector: of("MPI_Type_create_hvector", |t| native::PMPI_Type_create_hvector(2, 1, 2, byte, t))?,
            indexed: of("MPI_Type_indexed", |t| native::PMPI_Type_indexed(1, n, d, byte, t))?,
            hindexed: of("MPI_Type_create_hindexed", |t| native::PMPI_Type_create_hindexed(1, n, a, byte, t))?,
            indexed_block: of("MPI_Type_create_indexed_block", |t| native::PMPI_Type_create_indexed_block(1, 1, d, byte, t))?,
            hindexed_block: of("MPI_Type_create_hindexed_block", |t| native::PMPI_Type_create_hindexed_block(1, 1, a, byte, t))?,
            structure: of("MPI_Type_create_struct", |t| native::PMPI_Type_create_struct(1, n, a, &byte, t))?,
            resized: of("MPI_Type_create_resized", |t| native::PMPI_Type_create_resized(byte, 0, 2, t))?,
            subarray: of("MPI_Type_create_subarray", |t| {
                native::PMPI_Type_create_subarray(1, &2, n, n, ffi::MPI_ORDER_C as c_int, byte, t)
            })?,
        }
    };
    Ok(FOUND.get_or_init(|| found))
}
