//! Items of a caller's, and how they lie in its memory.

use super::datatype::{Direction, Layout, copy_items};
use crate::error::{Error, Result};
use crate::schedule::Elements;
use mpi::ffi;
use mpi::traits::{AsRaw, Buffer, BufferMut};
use std::os::raw::{c_int, c_void};
use std::ptr::{copy_nonoverlapping, null_mut};

/// Items of a caller's.
#[derive(Clone, Copy)]
pub(super) struct Items {
    pub data: *mut u8,
    /// In all blocks, whose sum an `int` may not hold.
    pub count: i64,
    pub datatype: ffi::MPI_Datatype,
}

/// Where nothing is given, and where nothing comes: an empty slice's address may be 1, which is MPI_IN_PLACE in some libraries, and others want two that
/// differ.
static NOTHING: [u8; 2] = [0; 2];

/// The address of items that are given.
#[inline]
pub(super) fn given_at(data: *const c_void, nothing: bool) -> *mut u8 {
    if nothing { (&raw const NOTHING[0]).cast_mut() } else { data.cast_mut().cast() }
}

/// The address of items that come.
#[inline]
pub(super) fn got_at(data: *mut c_void, nothing: bool) -> *mut u8 {
    if nothing { (&raw const NOTHING[1]).cast_mut() } else { data.cast() }
}

impl Items {
    /// To be read.
    #[inline]
    pub fn of<B: Buffer + ?Sized>(buffer: &B) -> Items {
        let (count, datatype) = (i64::from(buffer.count()), buffer.as_datatype().as_raw());
        Items { data: given_at(buffer.pointer(), count == 0), count, datatype }
    }

    /// To be read and written.
    #[inline]
    pub fn of_mut<B: BufferMut + ?Sized>(buffer: &mut B) -> Items {
        let (count, datatype) = (i64::from(buffer.count()), buffer.as_datatype().as_raw());
        Items { data: got_at(buffer.pointer_mut(), count == 0), count, datatype }
    }

    /// None.
    #[inline]
    pub fn none() -> Items {
        // SAFETY: a constant of the library: of no items any datatype does
        Items { data: null_mut(), count: 0, datatype: unsafe { ffi::RSMPI_UINT8_T } }
    }
}

/// How items lie.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// In one piece and in order, from so far behind their address on.
    Piece(isize),
    /// With bytes between them that nobody looks at, which travel too.
    Padded,
    /// They are packed.
    Scattered,
}

/// What a rank gives or gets.
#[derive(Clone, Copy)]
pub(super) struct Side {
    pub count: usize,
    pub datatype: ffi::MPI_Datatype,
    pub layout: Layout,
    /// The blocks in it.
    pub blocks: usize,
    place: Place,
}

impl Side {
    /// Nothing where there are no blocks: it does not count on this rank.
    ///
    /// # Safety
    /// Where there are blocks, the datatype must be valid, and the count not negative.
    pub unsafe fn new((count, datatype): (i64, ffi::MPI_Datatype), blocks: usize, combines: bool) -> Result<Option<Side>> {
        if blocks == 0 {
            return Ok(None);
        }
        let count = count as usize;
        if !count.is_multiple_of(blocks) {
            return Err(Error::invalid(format!("take {count} items for {blocks} blocks: each block must have as many")));
        }
        // SAFETY: the caller's
        let layout = unsafe { Layout::of(datatype)? };
        let place = match layout.one_piece(count) {
            _ if combines && layout.is_padded() => Place::Padded,
            // an operation is told the items' address, and not where their bytes begin
            Some(start) if start == 0 || !combines => Place::Piece(start),
            _ => Place::Scattered,
        };
        Ok(Some(Side { count, datatype, layout, blocks, place }))
    }

    /// Bytes of an item, as it travels.
    fn item(&self) -> usize {
        if self.place == Place::Padded { self.layout.after(1) as usize } else { self.layout.size }
    }

    /// What is combined; `None`: items that the library alone can combine.
    pub fn elements(&self, commute: bool) -> Option<Elements> {
        (self.place != Place::Scattered).then(|| Elements { bytes: self.item(), commute })
    }

    /// Bytes of a block, as it travels.
    pub fn block(&self) -> usize {
        self.item() * (self.count / self.blocks)
    }

    /// Items of a block, as MPI counts them.
    pub fn items(&self) -> (c_int, ffi::MPI_Datatype) {
        ((self.count / self.blocks) as c_int, self.datatype)
    }

    /// Copies all items between their places and where they travel.
    ///
    /// # Safety
    /// `data` must be the caller's items, and `bytes` as long as they are.
    pub unsafe fn copy(&self, direction: Direction, data: *mut u8, bytes: *mut u8) -> Result<()> {
        // SAFETY: the caller's; a communicator that lasts, where the caller's may be freed meanwhile
        unsafe {
            match (self.place, direction) {
                (Place::Padded, Direction::Pack) => copy_nonoverlapping(data, bytes, self.layout.reach(self.count).1),
                (Place::Padded, Direction::Unpack) => copy_nonoverlapping(bytes, data, self.layout.reach(self.count).1),
                _ => drop(copy_items(direction, data, self.count, self.datatype, bytes, ffi::RSMPI_COMM_SELF)?),
            }
        }
        Ok(())
    }

    /// The bytes of items from an address on, as they travel, and their number: where they lie, or else in a copy, of what the plan `reads`.
    #[inline]
    pub unsafe fn bytes(&self, data: *mut u8, reads: bool, copy: &mut Vec<u8>) -> Result<(*mut u8, usize)> {
        if let Some((start, bytes)) = self.piece() {
            return Ok((data.wrapping_offset(start), bytes));
        }
        copy.resize(self.item() * self.count, 0);
        if reads {
            // SAFETY: the caller's items, and as many bytes as they have
            unsafe { self.copy(Direction::Pack, data, copy.as_mut_ptr())? };
        }
        Ok((copy.as_mut_ptr(), copy.len()))
    }

    /// Where the bytes lie from the items' address on, and their number, if that is one piece and in order.
    pub fn piece(&self) -> Option<(isize, usize)> {
        if let Place::Piece(start) = self.place { Some((start, self.layout.size * self.count)) } else { None }
    }

    /// A copy of all that some of its items reach, holes too, and the address in it that the first one has.
    pub unsafe fn copied(&self, data: *mut u8, first: usize, count: usize) -> (Vec<u8>, *mut c_void) {
        let (begin, bytes) = self.layout.reach(count);
        // an address of its own, also of nothing
        let mut copy = vec![0u8; bytes.max(1)];
        let from = data.wrapping_offset(self.layout.after(first) + begin);
        // SAFETY: all that the items reach is the caller's, and fits into the copy
        unsafe { copy_nonoverlapping(from, copy.as_mut_ptr(), bytes) };
        let address = copy.as_mut_ptr().wrapping_offset(-begin).cast();
        (copy, address)
    }
}
