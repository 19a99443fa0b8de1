//! Items copied between their places and a packed buffer.

use super::Layout;
use super::parts::Parts;
use crate::error::{Error, Result};
use crate::plan::LONGEST_MESSAGE;
use crate::transport::mpi::check;
use crate::transport::native;
use mpi::ffi::{self, MPI_Count, MPI_Datatype};
use std::os::raw::{c_int, c_void};
use std::sync::OnceLock;

/// MPI counts what it packs as it counts what it sends: so much at a time.
pub const MOST_AT_ONCE: usize = LONGEST_MESSAGE;

/// Into a packed buffer, or out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Gather the items' bytes.
    Pack,
    /// Scatter them back.
    Unpack,
}

/// Copies so many items between their places and the front of `packed`, in the order of the type map; gives the bytes copied.
///
/// # Safety
/// `data` must be valid for `count` items of `datatype`, and `packed` for their bytes.
///
/// # Errors
/// MPI's reason, or one item has more than 2 GiB, is of a kind that cannot be taken apart (a distributed array) and the library is older than MPI 4.
pub unsafe fn copy_items(
    direction: Direction,
    data: *mut u8,
    count: usize,
    datatype: MPI_Datatype,
    packed: *mut u8,
    comm: ffi::MPI_Comm,
) -> Result<usize> {
    // SAFETY: the caller's
    let layout = unsafe { Layout::of(datatype)? };
    if layout.size * count == 0 {
        return Ok(0);
    }
    let item = |k: usize| data.wrapping_offset(k as isize * layout.extent);
    if layout.size > MOST_AT_ONCE {
        // SAFETY: the caller's
        let parts = unsafe { Parts::of(datatype)? };
        let Some(parts) = parts else {
            // SAFETY: the caller's
            return unsafe { copy_whole(direction, data, count, datatype, packed, layout.size * count, comm) };
        };
        let mut done = 0;
        for k in 0..count {
            // SAFETY: one of the caller's items
            done += unsafe { copy_blocks(direction, item(k), &parts, packed.wrapping_add(done), comm)? };
        }
        return Ok(done);
    }
    let at_once = MOST_AT_ONCE / layout.size;
    for first in (0..count).step_by(at_once) {
        let items = at_once.min(count - first);
        let (size, mut at) = ((items * layout.size) as c_int, 0);
        let (out, data, items) = (packed.wrapping_add(first * layout.size).cast::<c_void>(), item(first).cast::<c_void>(), items as c_int);
        // SAFETY: the caller vouches for both buffers
        unsafe {
            match direction {
                Direction::Pack => check("MPI_Pack", native::PMPI_Pack(data, items, datatype, out, size, &mut at, comm))?,
                Direction::Unpack => check("MPI_Unpack", native::PMPI_Unpack(out, size, &mut at, data, items, datatype, comm))?,
            }
        }
    }
    Ok(count * layout.size)
}

type LargePack =
    unsafe extern "C" fn(*const c_void, MPI_Count, MPI_Datatype, *mut c_void, MPI_Count, *mut MPI_Count, ffi::MPI_Comm) -> c_int;
type LargeUnpack =
    unsafe extern "C" fn(*const c_void, MPI_Count, *mut MPI_Count, *mut c_void, MPI_Count, MPI_Datatype, ffi::MPI_Comm) -> c_int;

/// MPI 4's functions, where the library has them.
fn large() -> Option<(LargePack, LargeUnpack)> {
    static FOUND: OnceLock<Option<(LargePack, LargeUnpack)>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let (pack, unpack) = (native::newer("PMPI_Pack_c")?, native::newer("PMPI_Unpack_c")?);
        // SAFETY: the symbols, where they exist, are functions of these types
        Some(unsafe { (std::mem::transmute::<*mut c_void, LargePack>(pack), std::mem::transmute::<*mut c_void, LargeUnpack>(unpack)) })
    })
}

/// As [`copy_items`], of any size and kind, by MPI 4's functions.
unsafe fn copy_whole(
    direction: Direction,
    data: *mut u8,
    count: usize,
    datatype: MPI_Datatype,
    packed: *mut u8,
    bytes: usize,
    comm: ffi::MPI_Comm,
) -> Result<usize> {
    let Some((pack, unpack)) = large() else {
        return Err(Error::invalid(format!(
            "pack items of {bytes} bytes: they cannot be taken apart, and the MPI library has no MPI_Pack_c"
        )));
    };
    let (data, out, size, mut at) = (data.cast::<c_void>(), packed.cast::<c_void>(), bytes as MPI_Count, 0);
    // SAFETY: the caller vouches for both buffers
    unsafe {
        match direction {
            Direction::Pack => check("MPI_Pack_c", pack(data, count as MPI_Count, datatype, out, size, &mut at, comm))?,
            Direction::Unpack => check("MPI_Unpack_c", unpack(out, size, &mut at, data, count as MPI_Count, datatype, comm))?,
        }
    }
    Ok(bytes)
}

/// As [`copy_items`], for one item that was taken apart: as many blocks at a time as can be packed at once.
unsafe fn copy_blocks(direction: Direction, item: *mut u8, parts: &Parts, packed: *mut u8, comm: ffi::MPI_Comm) -> Result<usize> {
    let (mut done, mut from) = (0, 0);
    while from < parts.count() {
        let to = parts.fitting(from)?;
        let (at, items, of) = parts.block(from);
        let (place, out) = (item.wrapping_offset(at), packed.wrapping_add(done));
        // SAFETY: blocks of the caller's item; a type that is made for them is freed here
        done += unsafe {
            if to == from + 1 {
                copy_items(direction, place, items, of, out, comm)?
            } else {
                let mut some = parts.slice(from, to)?;
                let copied = copy_items(direction, place, 1, some, out, comm);
                native::PMPI_Type_free(&mut some);
                copied?
            }
        };
        from = to;
    }
    Ok(done)
}
