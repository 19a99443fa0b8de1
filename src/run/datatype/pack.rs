//! Items copied between their places and a packed buffer.

use super::Layout;
use super::parts::Parts;
use crate::error::{Error, Result};
use crate::plan::LONGEST_MESSAGE;
use crate::transport::mpi::check;
use crate::transport::native;
use mpi::ffi::{self, MPI_Datatype};
use std::os::raw::{c_int, c_void};

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
/// MPI's reason, or one item has more than 2 GiB and is of a kind that cannot be taken apart (a distributed array).
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
        let parts = parts.ok_or_else(|| Error::invalid(format!("pack an item of {} bytes: it is a part of an array", layout.size)))?;
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
