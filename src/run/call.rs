//! An adaptive collective in which ranks give something and get something, by the arguments of MPI's function.
//!
//! What is planned hangs on what all ranks have alike: the bytes of a block by its signature, the root, and where items are combined their type and the
//! operation. Where a rank's items lie does not decide: what does not lie in one piece is packed. Items that are combined lie alike everywhere, and
//! are left to the library where they do not lie in one piece.

use super::communicator::{State, sizes, state};
use super::datatype::{Direction, Layout, copy_items};
use super::{rank, under_way};
use crate::collective::{Collective, Shape};
use crate::error::{Error, Result};
use crate::plan;
use crate::schedule::Elements;
use crate::topology::Rank;
use crate::transport::Buffers;
use crate::transport::library::{self, Operation};
use mpi::ffi;
use mpi::traits::{AsRaw, Buffer, BufferMut};
use std::os::raw::{c_int, c_void};
use std::ptr::{null, null_mut};

/// Items of a caller's.
#[derive(Clone, Copy)]
pub(super) struct Items {
    data: *mut u8,
    count: usize,
    datatype: ffi::MPI_Datatype,
}

impl Items {
    /// To be read.
    pub fn of<B: Buffer + ?Sized>(buffer: &B) -> Items {
        Items { data: buffer.pointer().cast_mut().cast(), count: buffer.count().max(0) as usize, datatype: buffer.as_datatype().as_raw() }
    }

    /// To be read and written.
    pub fn of_mut<B: BufferMut + ?Sized>(buffer: &mut B) -> Items {
        Items { data: buffer.pointer_mut().cast(), count: buffer.count().max(0) as usize, datatype: buffer.as_datatype().as_raw() }
    }
}

/// A call. What a rank does not give, or does not get, is not looked at; in place, both are the same items.
pub(super) struct Call {
    pub collective: &'static Collective,
    pub given: Items,
    pub got: Items,
    pub in_place: bool,
    /// The root; 0 where there is none.
    pub root: Rank,
    /// What items are combined with, and whether it commutes.
    pub operation: Option<(ffi::MPI_Op, bool)>,
    pub comm: ffi::MPI_Comm,
}

/// What a rank gives or gets.
#[derive(Clone, Copy)]
struct Side {
    items: Items,
    layout: Layout,
    /// The blocks in it; 0: it does not count on this rank.
    blocks: usize,
}

impl Side {
    /// # Safety
    /// Where there are blocks, the datatype must be valid.
    unsafe fn new(items: Items, blocks: usize) -> Result<Option<Side>> {
        if blocks == 0 {
            return Ok(None);
        }
        if !items.count.is_multiple_of(blocks) {
            return Err(Error::invalid(format!("take {} items for {blocks} blocks: each block must have as many", items.count)));
        }
        // SAFETY: the caller's
        Ok(Some(Side { items, layout: unsafe { Layout::of(items.datatype)? }, blocks }))
    }

    /// Bytes of a block.
    fn block(&self) -> usize {
        self.layout.size * (self.items.count / self.blocks)
    }

    /// Items of a block, as MPI counts them.
    fn items(&self) -> (c_int, ffi::MPI_Datatype) {
        ((self.items.count / self.blocks) as c_int, self.items.datatype)
    }

    /// Where its bytes are, if they lie in one piece; else a copy of them, packed, of what the program `reads`.
    unsafe fn bytes(&self, reads: bool, comm: ffi::MPI_Comm) -> Result<(*mut u8, Option<Vec<u8>>)> {
        let Items { data, count, datatype } = self.items;
        if let Some(start) = self.layout.one_piece(count) {
            return Ok((data.wrapping_offset(start), None));
        }
        let mut packed = vec![0u8; self.layout.size * count];
        if reads {
            // SAFETY: the caller's items, and as many bytes as they have
            unsafe { copy_items(Direction::Pack, data, count, datatype, packed.as_mut_ptr(), comm)? };
        }
        Ok((packed.as_mut_ptr(), Some(packed)))
    }

    /// A copy of all that some of its items reach, holes too, and the address in it that the first one has.
    unsafe fn copied(&self, first: usize, count: usize) -> (Vec<u8>, *mut c_void) {
        let (begin, bytes) = self.layout.reach(count);
        let mut copy = vec![0u8; bytes];
        let from = self.items.data.wrapping_offset(self.layout.after(first) + begin);
        // SAFETY: all that the items reach is the caller's, and fits into the copy
        unsafe { std::ptr::copy_nonoverlapping(from, copy.as_mut_ptr(), bytes) };
        let address = copy.as_mut_ptr().wrapping_offset(-begin).cast();
        (copy, address)
    }
}

/// A call on this rank.
struct Here {
    call: Call,
    me: Rank,
    given: Option<Side>,
    got: Option<Side>,
    /// Bytes of a block.
    bytes: usize,
}

impl Here {
    unsafe fn new(call: Call) -> Result<Here> {
        let (ranks, remote) = sizes(call.comm)?;
        let me = rank(call.comm)?;
        let peers = remote.unwrap_or(ranks);
        // SAFETY: a constant of the library
        let (at_root, nowhere) = (ffi::MPI_ROOT as usize, unsafe { ffi::RSMPI_PROC_NULL } as usize);
        let special = call.collective.rooted && remote.is_some() && [at_root, nowhere].contains(&call.root);
        if call.root >= peers && !special {
            return Err(Error::invalid(format!("{} with root {} of {peers} ranks", call.collective.function, call.root)));
        }
        if call.in_place && remote.is_some() {
            return Err(Error::invalid(format!("{} in place between two groups of ranks", call.collective.function)));
        }
        let is_root = if remote.is_some() { call.root == at_root } else { call.root == me };
        // in blocks of one byte, a layout is the number of blocks
        let root = if is_root || !call.collective.rooted { 0 } else { 1 };
        let blocks = (call.collective.layout)(&Shape { in_place: call.in_place, ..Shape::new(peers, root, 1) }, 0);
        let (blocks, absent) = ((blocks.input, blocks.output), remote.is_some() && call.root == nowhere && call.collective.rooted);
        // SAFETY: the caller's arguments
        let [given, got] =
            unsafe { [Side::new(call.given, if absent { 0 } else { blocks.0 })?, Side::new(call.got, if absent { 0 } else { blocks.1 })?] };
        if let (Some(given), Some(got)) = (given, got) {
            if given.block() != got.block() {
                let (a, b) = (given.block(), got.block());
                return Err(Error::invalid(format!(
                    "{} with blocks of {a} bytes that are given and {b} that come",
                    call.collective.function
                )));
            }
            if call.operation.is_some() && given.items.datatype != got.items.datatype {
                return Err(Error::invalid(format!("{} with items of two datatypes", call.collective.function)));
            }
        }
        let bytes = given.or(got).map_or(0, |side| side.block());
        Ok(Here { call, me, given, got, bytes })
    }

    /// What is combined; `None`: items that the library alone can combine.
    fn elements(&self) -> Option<Elements> {
        let Some((_, commute)) = self.call.operation else { return Some(Elements::default()) };
        let side = self.given.or(self.got)?;
        side.layout.one_piece(side.items.count)?;
        Some(Elements { bytes: side.layout.size, commute })
    }

    /// Does it by a plan.
    unsafe fn planned(&self, elements: Elements) -> Result<Option<()>> {
        let Call { collective, in_place, root, operation, comm, .. } = self.call;
        // SAFETY: the caller vouches for the communicator; MPI allows one collective on it at a time
        let State::Planned(planned) = (unsafe { state(comm)? }) else { return Ok(None) };
        let shape = |ranks| Shape { elements, in_place, ..Shape::new(ranks, root, self.bytes) };
        let plan = planned.planned(collective, shape);
        let plan::Planned::Run(steps) = &*plan else { return Ok(None) };
        let bytes = |side: Option<Side>, reads: bool| match side {
            // SAFETY: the caller's items
            Some(side) => Ok::<_, Error>((unsafe { side.bytes(reads, comm)? }, side.block() * side.blocks)),
            None => Ok(((null_mut(), None), 0)),
        };
        let ((input, packed_input), input_len) = bytes(self.given, true)?;
        let ((output, packed_output), output_len) = bytes(self.got, in_place)?;
        let operation = operation.and_then(|(op, _)| Some(Operation::new(self.given.or(self.got)?.items.datatype, elements.bytes, op)));
        let buffers = Buffers::new((input, input_len), (output, output_len));
        // SAFETY: the buffers hold what the collective's layout says
        if let Err(e) = unsafe { planned.run(steps, &library::Arguments { buffers, bytes: self.bytes, root, operation }) } {
            // other messages may still be open: they go where they were told to
            std::mem::forget((packed_input, packed_output));
            return Err(e);
        }
        if let (Some(mut packed), Some(Side { items, .. })) = (packed_output, self.got) {
            // SAFETY: the caller's items, and as many bytes as they have
            unsafe { copy_items(Direction::Unpack, items.data, items.count, items.datatype, packed.as_mut_ptr(), comm)? };
        }
        Ok(Some(()))
    }

    /// Calls the library. Its name for "in place" is known to C alone: what is given is given from a copy, and a root that keeps its block gets it in one.
    unsafe fn native(&self) -> Result<()> {
        let Call { collective, in_place, root, operation, comm, .. } = self.call;
        let nothing = (0, self.call.given.datatype);
        let mut call = library::Call {
            input: self.given.map_or(null(), |side| side.items.data.cast_const().cast()),
            given: self.given.map_or(nothing, |side| side.items()),
            output: self.got.map_or(null_mut(), |side| side.items.data.cast()),
            got: self.got.map_or(nothing, |side| side.items()),
            // SAFETY: a constant of the library
            op: operation.map_or(unsafe { ffi::RSMPI_SUM }, |(op, _)| op),
            root: root as c_int,
        };
        let mut copy = (Vec::new(), null_mut());
        let keeps = in_place && (self.me == root || !collective.rooted);
        match (self.given, self.got) {
            (None, Some(got)) if keeps => {
                // its own block of all, or all of what it gives
                let gives_all = (collective.layout)(&Shape::new(got.blocks, 0, 1), 0).input == got.blocks;
                let count = got.items.count / if gives_all { 1 } else { got.blocks };
                // SAFETY: the caller's items
                copy = unsafe { got.copied(if gives_all { 0 } else { self.me * count }, count) };
                (call.input, call.given) = (copy.1.cast_const(), call.got);
            }
            (Some(given), None) if keeps => {
                // SAFETY: as above
                copy = unsafe { given.copied(0, given.items.count / given.blocks) };
                (call.output, call.got) = (copy.1, call.given);
            }
            _ => {}
        }
        // SAFETY: the caller's arguments
        let done = unsafe { library::call(collective, &call, comm) };
        drop(copy);
        done
    }
}

/// The collective as planned, or the library's own: where there is no plan, where there are no bytes, or where items that are combined do not lie in one
/// piece.
///
/// # Safety
/// The items must be valid for MPI's function.
///
/// # Errors
/// [`Error::Invalid`] with what is wrong with the arguments, before anything is sent; or MPI's reason.
pub(super) unsafe fn run(call: Call) -> Result<()> {
    // SAFETY: the caller's
    unsafe {
        let here = Here::new(call)?;
        if here.bytes > 0
            && let Some(elements) = here.elements()
            && here.planned(elements)?.is_some()
        {
            return Ok(());
        }
        under_way::finish(here.call.comm, None);
        here.native()
    }
}
