//! An adaptive collective, by the arguments of MPI's function.
//!
//! What is planned hangs on what all ranks have alike: the bytes of a block by its signature, the root, and where items are combined their type and the
//! operation. Where a rank's items lie does not decide: what does not lie in one piece is packed. Items that are combined lie alike everywhere. Pairs
//! of MPI's own, such as a double and an int, are combined with what lies between them; others that do not lie in one piece are left to the library.

use super::communicator::{attached, sizes};
use super::datatype::{Direction, Layout, copy_items};
use super::known::{Asked, Known};
use super::refused::{as_mpi_counts, refuses};
use super::{rank, under_way};
use crate::collective::{Collective, Shape};
use crate::error::{Error, Result};
use crate::schedule::Elements;
use crate::topology::Rank;
use crate::transport::Buffers;
use crate::transport::library::{self, Operation};
use crate::transport::mpi::check;
use mpi::ffi;
use mpi::traits::{AsRaw, Buffer, BufferMut};
use std::os::raw::{c_int, c_void};
use std::ptr::{copy_nonoverlapping, null, null_mut};

/// Items of a caller's.
#[derive(Clone, Copy)]
pub(super) struct Items {
    pub data: *mut u8,
    pub count: c_int,
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
        let (count, datatype) = (buffer.count(), buffer.as_datatype().as_raw());
        Items { data: given_at(buffer.pointer(), count == 0), count, datatype }
    }

    /// To be read and written.
    #[inline]
    pub fn of_mut<B: BufferMut + ?Sized>(buffer: &mut B) -> Items {
        let (count, datatype) = (buffer.count(), buffer.as_datatype().as_raw());
        Items { data: got_at(buffer.pointer_mut(), count == 0), count, datatype }
    }

    /// None.
    #[inline]
    pub fn none() -> Items {
        // SAFETY: a constant of the library: of no items any datatype does
        Items { data: null_mut(), count: 0, datatype: unsafe { ffi::RSMPI_UINT8_T } }
    }
}

/// A call.
pub(super) struct Call {
    pub asked: Asked,
    /// Where what this rank gives lies; not looked at where it gives nothing, or in place.
    given: *mut u8,
    /// Where what comes goes.
    got: *mut u8,
}

impl Call {
    /// Of items that are given and others that come, which combines them with an operation, of which is said whether it commutes.
    #[inline]
    pub fn new(
        collective: &'static Collective,
        comm: ffi::MPI_Comm,
        root: Rank,
        (given, got): (Items, Items),
        operation: Option<(ffi::MPI_Op, bool)>,
    ) -> Call {
        let commutes = operation.is_none_or(|(_, commutes)| commutes);
        let items = |items: Items| (items.count, items.datatype);
        let op = operation.map(|(op, _)| op);
        let asked = Asked { collective, comm, given: items(given), got: items(got), root, in_place: false, op, commutes };
        Call { asked, given: given.data, got: got.data }
    }

    /// The same of items that are given, and replaced by those that come.
    #[inline]
    pub fn in_place(
        collective: &'static Collective,
        comm: ffi::MPI_Comm,
        root: Rank,
        items: Items,
        operation: Option<(ffi::MPI_Op, bool)>,
    ) -> Call {
        let call = Call::new(collective, comm, root, (items, items), operation);
        Call { asked: Asked { in_place: true, ..call.asked }, ..call }
    }

    #[inline]
    pub fn comm(&self) -> ffi::MPI_Comm {
        self.asked.comm
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
    count: usize,
    datatype: ffi::MPI_Datatype,
    layout: Layout,
    /// The blocks in it.
    blocks: usize,
    place: Place,
}

impl Side {
    /// Nothing where there are no blocks: it does not count on this rank.
    ///
    /// # Safety
    /// Where there are blocks, the datatype must be valid, and the count not negative.
    pub unsafe fn new((count, datatype): (c_int, ffi::MPI_Datatype), blocks: usize, combines: bool) -> Result<Option<Side>> {
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
    fn block(&self) -> usize {
        self.item() * (self.count / self.blocks)
    }

    /// Items of a block, as MPI counts them.
    fn items(&self) -> (c_int, ffi::MPI_Datatype) {
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
    unsafe fn bytes(&self, data: *mut u8, reads: bool, copy: &mut Vec<u8>) -> Result<(*mut u8, usize)> {
        if let Place::Piece(start) = self.place {
            return Ok((data.wrapping_offset(start), self.layout.size * self.count));
        }
        copy.resize(self.item() * self.count, 0);
        if reads {
            // SAFETY: the caller's items, and as many bytes as they have
            unsafe { self.copy(Direction::Pack, data, copy.as_mut_ptr())? };
        }
        Ok((copy.as_mut_ptr(), copy.len()))
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

/// What a call says of a rank's memory, whatever its addresses are.
pub(super) struct Prepared {
    me: Rank,
    given: Option<Side>,
    got: Option<Side>,
    /// Bytes of a block, as it travels.
    bytes: usize,
    /// What is combined; `None`: items that the library alone can combine.
    elements: Option<Elements>,
    /// What this rank gives may lie where its result goes.
    reads_output: bool,
    /// What the library is called with, but for addresses, and what calls it.
    own: library::Call,
    call_own: library::Own,
    /// MPI's function has no such arguments: it is called with them as they are.
    pub refused: bool,
}

impl Prepared {
    /// Looks at the arguments of a call.
    ///
    /// # Safety
    /// The communicator must be valid, and the datatypes of items that count on this rank, or null.
    ///
    /// # Errors
    /// [`Error::Invalid`] where they make no arguments of MPI's function; or MPI's reason. What MPI's function refuses is no error here: the library
    /// says it, as it does without this crate.
    pub unsafe fn new(asked: &Asked) -> Result<Prepared> {
        let Asked { collective, root, in_place, .. } = *asked;
        let (ranks, remote) = sizes(asked.comm)?;
        let me = rank(asked.comm)?;
        let peers = remote.unwrap_or(ranks);
        // SAFETY: a constant of the library
        let (at_root, nowhere) = (ffi::MPI_ROOT as usize, unsafe { ffi::RSMPI_PROC_NULL } as usize);
        let special = collective.rooted && remote.is_some() && [at_root, nowhere].contains(&root);
        if root >= peers && !special {
            return Prepared::refused(asked, me);
        }
        if in_place && remote.is_some() {
            return Err(Error::invalid(format!("{} in place between two groups of ranks", collective.function)));
        }
        let is_root = if remote.is_some() { root == at_root } else { root == me };
        // in blocks of one byte, a layout is the number of blocks
        let blocks = |root, in_place| (collective.layout)(&Shape { in_place, ..Shape::new(peers, root, 1) }, 0);
        let own = blocks(if is_root || !collective.rooted { 0 } else { 1 }, in_place);
        let absent = remote.is_some() && root == nowhere && collective.rooted;
        let (input, output) = if absent { (0, 0) } else { (own.input, own.output) };
        let count_here = [(asked.given, input), (asked.got, output)];
        // SAFETY: the caller's arguments
        if unsafe { count_here.into_iter().any(|(items, blocks)| blocks > 0 && refuses(items, asked.op)) } {
            return Prepared::refused(asked, me);
        }
        // SAFETY: as above
        let side = |(items, blocks)| unsafe { Side::new(items, blocks, collective.combines) };
        let (given, got) = (side(count_here[0])?, side(count_here[1])?);
        if let (Some(given), Some(got)) = (given, got) {
            if collective.combines && given.datatype != got.datatype {
                return Err(Error::invalid(format!("{} with items of two datatypes", collective.function)));
            }
            if given.block() != got.block() {
                let (a, b, function) = (given.block(), got.block(), collective.function);
                return Err(Error::invalid(format!("{function} with blocks of {a} bytes that are given and {b} that come")));
            }
        }
        let side = given.or(got);
        let elements = match side {
            Some(side) if collective.combines => side.elements(asked.commutes),
            _ => Some(Elements::default()),
        };
        let reads_output = in_place || blocks(0, false).input == 0;
        let nothing = (0, side.map_or(asked.given.1, |side| side.datatype));
        let own = library::Call {
            input: null(),
            given: given.map_or(nothing, |side| side.items()),
            output: null_mut(),
            got: got.map_or(nothing, |side| side.items()),
            op: asked.operation(),
            root: as_mpi_counts(root),
        };
        let (bytes, call_own) = (side.map_or(0, |side| side.block()), library::own(collective)?);
        Ok(Prepared { me, given, got, bytes, elements, reads_output, own, call_own, refused: false })
    }

    /// Of arguments that MPI's function has not: it finds what is wrong with them, and does what the program chose for its communicator.
    #[cold]
    fn refused(asked: &Asked, me: Rank) -> Result<Prepared> {
        let Asked { given, got, root, .. } = *asked;
        let own = library::Call { input: null(), given, output: null_mut(), got, op: asked.operation(), root: as_mpi_counts(root) };
        let call_own = library::own(asked.collective)?;
        Ok(Prepared { me, given: None, got: None, bytes: 0, elements: None, reads_output: false, own, call_own, refused: true })
    }

    /// True if something can be planned: where it has bytes that others than the library can combine.
    pub fn may_be_planned(&self) -> bool {
        self.elements.is_some() && (self.bytes > 0 || (self.given.is_none() && self.got.is_none()))
    }

    /// True if its datatypes are MPI's own, whose handles mean the same for ever.
    pub fn is_predefined(&self) -> bool {
        [self.given, self.got].into_iter().flatten().all(|side| side.layout.predefined)
    }

    /// What it asks of so many ranks.
    pub fn shape(&self, asked: &Asked, ranks: usize) -> Shape {
        Shape { elements: self.elements.unwrap_or_default(), in_place: asked.in_place, ..Shape::new(ranks, asked.root, self.bytes) }
    }

    /// What a plan works on: the memory of a call like it, or copies.
    ///
    /// # Safety
    /// The call's items must be valid, and stay so until they are taken back.
    ///
    /// # Errors
    /// MPI's reason.
    #[inline]
    pub unsafe fn lend(&self, call: &Call) -> Result<(library::Arguments, Copies)> {
        let (mut given, mut got) = (Vec::new(), Vec::new());
        // SAFETY: the caller's items
        let (input, output) = unsafe {
            let input = self.given.as_ref().map_or(Ok((null_mut(), 0)), |side| side.bytes(call.given, true, &mut given))?;
            let output = self.got.as_ref().map_or(Ok((null_mut(), 0)), |side| side.bytes(call.got, self.reads_output, &mut got))?;
            (input, output)
        };
        let operation = match (call.asked.op, &self.elements) {
            (Some(op), Some(elements)) => Some(Operation::new(self.own.given.1, elements.bytes, op)),
            _ => None,
        };
        let buffers = Buffers::new((input.0.cast_const(), input.1), output);
        let arguments = library::Arguments { buffers, bytes: self.bytes, root: call.asked.root, operation };
        let got = if got.is_empty() { None } else { self.got.map(|side| Box::new((got, side, call.got))) };
        Ok((arguments, Copies { _given: given, got }))
    }

    /// What the library is called with, and the memory of that if it is a copy. The library's name for "in place" is known to C alone: what is given
    /// is given from a copy, and a root that keeps its block gets it in one.
    ///
    /// # Safety
    /// The call's items must be valid.
    #[inline]
    pub unsafe fn for_the_library(&self, call: &Call) -> (library::Call, Vec<u8>) {
        let mut own = self.as_it_is(call);
        if self.refused && call.asked.in_place && call.asked.collective.combines {
            // two buffers that are one are refused too, and not for what is wrong here
            own.output = got_at(null_mut(), true).cast();
        }
        // SAFETY: the caller's
        if call.asked.in_place && !self.refused { unsafe { self.out_of_place(own, call) } } else { (own, Vec::new()) }
    }

    /// What the library is called with, on the caller's memory. What does not count on this rank may have any address.
    #[inline]
    fn as_it_is(&self, call: &Call) -> library::Call {
        let (input, output) = (call.given.cast_const().cast(), call.got.cast());
        library::Call { input, output, ..self.own }
    }

    #[cold]
    unsafe fn out_of_place(&self, mut own: library::Call, call: &Call) -> (library::Call, Vec<u8>) {
        let Asked { collective, root, .. } = call.asked;
        // both are the same address
        if self.given.is_none() {
            own.input = null();
        }
        if self.got.is_none() {
            own.output = null_mut();
        }
        let keeps = self.me == root || !collective.rooted;
        match (self.given, self.got) {
            (None, Some(got)) if keeps => {
                // its own block of all, or all of what it gives
                let gives_all = (collective.layout)(&Shape::new(got.blocks, 0, 1), 0).input == got.blocks;
                let count = got.count / if gives_all { 1 } else { got.blocks };
                // SAFETY: the caller's items
                let (copy, address) = unsafe { got.copied(call.got, if gives_all { 0 } else { self.me * count }, count) };
                (own.input, own.given) = (address.cast_const(), own.got);
                (own, copy)
            }
            (Some(given), None) if keeps => {
                // SAFETY: as above
                let (copy, address) = unsafe { given.copied(call.given, 0, given.count / given.blocks) };
                (own.output, own.got) = (address, own.given);
                (own, copy)
            }
            _ => (own, Vec::new()),
        }
    }
}

/// Copies of a caller's items while a plan works on them.
pub(super) struct Copies {
    /// Of what is given, if there is one.
    _given: Vec<u8>,
    /// Where what comes is put first, if that is not its place, and its place.
    got: Option<Box<(Vec<u8>, Side, *mut u8)>>,
}

impl Copies {
    /// Brings what came to its place.
    ///
    /// # Safety
    /// As for [`Prepared::lend`].
    ///
    /// # Errors
    /// MPI's reason.
    #[inline]
    pub unsafe fn take_back(self) -> Result<()> {
        match self.got {
            // SAFETY: the caller's items, and as many bytes as they have
            Some(mut copy) => unsafe { copy.1.copy(Direction::Unpack, copy.2, copy.0.as_mut_ptr()) },
            None => Ok(()),
        }
    }
}

/// The collective as planned, or the library's own: where there is no plan, where there are no bytes, or where items that are combined do not lie in one
/// piece.
///
/// # Safety
/// The items must be valid for MPI's function.
///
/// # Errors
/// [`Error::Invalid`] where the arguments are none of MPI's function, before anything is sent; or MPI's reason.
#[inline(always)] // a call of the library's own compares and jumps, without being put together first
pub(super) unsafe fn run(call: &Call) -> Result<()> {
    // SAFETY: the caller's; what is known is copied before the library runs, which may call a user's reduction, and that this
    unsafe {
        if let Some(found) = attached(call.comm())
            && let Some(known) = found.as_ref().known.find(&call.asked)
            && let Some(prepared) = known.librarys_own()
        {
            let (own, call_own) = (prepared.as_it_is(call), prepared.call_own);
            under_way::finish(call.comm(), None);
            return check(call.asked.collective.function, call_own(&own, call.comm()));
        }
        run_known(call)
    }
}

/// What is planned, or is to be looked up.
#[inline(never)]
unsafe fn run_known(call: &Call) -> Result<()> {
    // SAFETY: the caller's
    unsafe {
        let mut known = Known::of(&call.asked)?;
        if !run_plan(&mut known, call)? {
            under_way::finish(call.comm(), None);
            let prepared = known.prepared();
            let (own, _copy) = prepared.for_the_library(call);
            check(call.asked.collective.function, (prepared.call_own)(&own, call.comm()))?;
        }
        known.remember();
    }
    Ok(())
}

/// What is planned for a call that is known, if something is: false where the library's own is to run.
///
/// # Safety
/// As [`run`].
///
/// # Errors
/// As there.
pub(super) unsafe fn run_plan(known: &mut Known, call: &Call) -> Result<bool> {
    // SAFETY: the caller's
    unsafe {
        let (prepared, Some((planned, steps))) = known.parts() else { return Ok(false) };
        let (arguments, copies) = prepared.lend(call)?;
        if let Err(e) = planned.run(steps, &arguments) {
            // other messages may still be open: they go where they were told to
            std::mem::forget(copies);
            return Err(e);
        }
        copies.take_back()?;
    }
    Ok(true)
}
