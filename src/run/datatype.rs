//! Where the bytes of a buffer lie: in one piece and in the order of the datatype's type map, or scattered, to be packed.
//!
//! Ranks may describe one signature by different datatypes, so bytes travel in the order of the type map. That the bytes fill their
//! extent does not make them lie in that order: `indexed([1; 4], [3, 2, 1, 0])` does, and does not. A datatype is therefore taken apart
//! down to the predefined ones, once.

use crate::error::{Error, Result};
use crate::transport::mpi::check;
use crate::transport::native;
use mpi::ffi::{self, MPI_Aint, MPI_Datatype};
use std::os::raw::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// What matters of a datatype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of one item.
    pub size: usize,
    /// From one item's address to the next one's.
    extent: isize,
    /// Where an item's bytes begin, from its address, if they lie in one piece in the order of the type map.
    start: Option<isize>,
}

impl Layout {
    /// The layout of a datatype; kept with it, if it is a derived one.
    ///
    /// # Safety
    /// `datatype` must be valid.
    ///
    /// # Errors
    /// MPI's reason.
    pub unsafe fn of(datatype: MPI_Datatype) -> Result<Layout> {
        // SAFETY: the caller vouches for the datatype
        unsafe {
            if combiner(datatype)?.0 == combiners()?.named {
                return named(datatype);
            }
            let key = keyval()?;
            {
                let _alone = attributes();
                let (mut kept, mut found): (*mut Layout, c_int) = (std::ptr::null_mut(), 0);
                check("MPI_Type_get_attr", native::PMPI_Type_get_attr(datatype, key, (&raw mut kept).cast(), &mut found))?;
                if found != 0 {
                    return Ok(*kept);
                }
            }
            let layout = derived(datatype)?;
            let _alone = attributes();
            let kept = Box::into_raw(Box::new(layout));
            check("MPI_Type_set_attr", native::PMPI_Type_set_attr(datatype, key, kept.cast()))?;
            Ok(layout)
        }
    }

    /// Where the bytes of so many items begin, from the buffer's address, if they lie in one piece and in order.
    pub fn one_piece(&self, count: usize) -> Option<isize> {
        self.start.filter(|_| count <= 1 || self.extent == self.size as isize)
    }
}

/// Held while attributes are read or set: a second thread that sets one frees the first one's.
fn attributes() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A predefined datatype: one element, or a pair of elements, which may have a hole.
unsafe fn named(datatype: MPI_Datatype) -> Result<Layout> {
    // SAFETY: the caller's
    let (size, extent, true_lb, true_extent) = unsafe { sizes(datatype)? };
    Ok(Layout { size, extent, start: (true_extent == size as isize).then_some(true_lb) })
}

/// A derived datatype: in order if its blocks are, and lie end to end.
unsafe fn derived(datatype: MPI_Datatype) -> Result<Layout> {
    // SAFETY: the caller's
    let (size, extent, _, true_extent) = unsafe { sizes(datatype)? };
    let scattered = Layout { size, extent, start: None };
    if true_extent != size as isize {
        return Ok(scattered);
    }
    // SAFETY: the caller's
    let Some(parts) = (unsafe { Parts::of(datatype)? }) else { return Ok(scattered) };
    let start = match &parts.blocks {
        Blocks::Strided { at, count, stride, items } => {
            // SAFETY: `parts` keeps the types of its blocks
            let inner = unsafe { Layout::of(parts.types[0])? };
            let end_to_end = *count <= 1 || *stride == (items * inner.size) as isize;
            inner.one_piece(*items).filter(|_| end_to_end).map(|start| at + start)
        }
        Blocks::List(blocks) => end_to_end(blocks, &parts.types)?,
    };
    Ok(Layout { start, ..scattered })
}

/// Where the bytes of blocks begin, if they lie end to end, each in order.
fn end_to_end(blocks: &[Block], types: &[MPI_Datatype]) -> Result<Option<isize>> {
    let mut piece: Option<(isize, isize)> = None;
    for block in blocks {
        // SAFETY: the types of a datatype that was taken apart are valid
        let inner = unsafe { Layout::of(types[block.of])? };
        if block.count * inner.size == 0 {
            continue;
        }
        let Some(start) = inner.one_piece(block.count).map(|start| block.at + start) else { return Ok(None) };
        let end = start + (block.count * inner.size) as isize;
        piece = match piece {
            None => Some((start, end)),
            Some((first, last)) if last == start => Some((first, end)),
            Some(_) => return Ok(None),
        };
    }
    Ok(Some(piece.map_or(0, |(first, _)| first)))
}

/// Size, extent, true lower bound and true extent.
unsafe fn sizes(datatype: MPI_Datatype) -> Result<(usize, isize, isize, isize)> {
    let (mut size, mut lb, mut extent, mut true_lb, mut true_extent) = (0, 0, 0, 0, 0);
    // SAFETY: out-parameters of the right types
    unsafe {
        check("MPI_Type_size_x", native::PMPI_Type_size_x(datatype, &mut size))?;
        check("MPI_Type_get_extent", native::PMPI_Type_get_extent(datatype, &mut lb, &mut extent))?;
        check("MPI_Type_get_true_extent", native::PMPI_Type_get_true_extent(datatype, &mut true_lb, &mut true_extent))?;
    }
    Ok((size.max(0) as usize, bytes(extent), bytes(true_lb), bytes(true_extent)))
}

/// `MPI_Aint` is another type in some libraries.
#[allow(clippy::unnecessary_cast)]
fn bytes(address: MPI_Aint) -> isize {
    address as isize
}

/// So many items of a type, one after the other.
struct Block {
    /// The first one's place, in bytes from the address of the whole.
    at: isize,
    count: usize,
    /// Which of the types.
    of: usize,
}

/// The blocks of a derived datatype, in the order of its type map.
enum Blocks {
    /// `count` blocks of `items` items of the first type, `stride` bytes apart, the first at `at`.
    Strided { at: isize, count: usize, stride: isize, items: usize },
    /// One by one.
    List(Vec<Block>),
}

/// A derived datatype taken apart.
struct Parts {
    blocks: Blocks,
    types: Vec<MPI_Datatype>,
}

impl Parts {
    /// `None` for those that are packed as a whole: distributed arrays, and what later standards have.
    unsafe fn of(datatype: MPI_Datatype) -> Result<Option<Parts>> {
        // SAFETY: the caller's
        let (combiner, numbers, addresses, types) = unsafe { combiner(datatype)? };
        let known = combiners()?;
        if !known.all().contains(&combiner) {
            return Ok(None);
        }
        let (mut ints, mut aints) = (vec![0 as c_int; numbers], vec![0 as MPI_Aint; addresses]);
        // SAFETY: a constant of the library
        let mut handles = vec![unsafe { ffi::RSMPI_DATATYPE_NULL }; types];
        let count = |n: usize| n as c_int;
        // SAFETY: lists as long as the envelope says
        let code = unsafe {
            let (i, a, t) = (ints.as_mut_ptr(), aints.as_mut_ptr(), handles.as_mut_ptr());
            native::PMPI_Type_get_contents(datatype, count(numbers), count(addresses), count(types), i, a, t)
        };
        check("MPI_Type_get_contents", code)?;
        let mut parts = Parts { blocks: Blocks::List(Vec::new()), types: handles };
        // SAFETY: the types came with the contents
        let extent = unsafe { parts.types.first().map(|&t| sizes(t)).transpose()? }.map_or(0, |s| s.1);
        let n = |k: usize| ints.get(k).map_or(0, |&n| n.max(0) as usize);
        // a displacement in items, and one in bytes
        let items = |k: usize| ints.get(k).map_or(0, |&d| d as isize * extent);
        let address = |k: usize| aints.get(k).map_or(0, |&a| bytes(a));
        let first = n(0);
        let strided = |count, stride, items| Blocks::Strided { at: 0, count, stride, items };
        let list = |block: &dyn Fn(usize) -> Block| Blocks::List((0..first).map(block).collect());
        let one = |at, count| Block { at, count, of: 0 };
        parts.blocks = match combiner {
            c if c == known.dup || c == known.resized => strided(1, 0, 1),
            c if c == known.contiguous => strided(1, 0, first),
            c if c == known.vector => strided(first, items(2), n(1)),
            c if c == known.hvector => strided(first, address(0), n(1)),
            c if c == known.indexed => list(&|k| one(items(1 + first + k), n(1 + k))),
            c if c == known.hindexed => list(&|k| one(address(k), n(1 + k))),
            c if c == known.indexed_block => list(&|k| one(items(2 + k), n(1))),
            c if c == known.hindexed_block => list(&|k| one(address(k), n(1))),
            c if c == known.subarray => return parts.of_array(&ints, extent).map(Some),
            _ => list(&|k| Block { at: address(k), count: n(1 + k), of: k }),
        };
        Ok(Some(parts))
    }

    /// A subarray: rows of rows, the slowest dimension as blocks. `ints` are those of `MPI_Type_create_subarray`.
    fn of_array(mut self, ints: &[c_int], extent: isize) -> Result<Parts> {
        let dimensions = ints[0] as usize;
        let list = |k: usize| ints[1 + k * dimensions..1 + (k + 1) * dimensions].to_vec();
        let (mut sizes, mut parts, mut starts) = (list(0), list(1), list(2));
        if ints[1 + 3 * dimensions] == ffi::MPI_ORDER_C as c_int {
            [&mut sizes, &mut parts, &mut starts].into_iter().for_each(|l| l.reverse());
        }
        // the fastest dimension first now
        let (mut at, mut stride) = (0, extent);
        for k in 0..dimensions {
            at += starts[k] as isize * stride;
            if k + 1 == dimensions {
                self.blocks = Blocks::Strided { at, count: parts[k] as usize, stride, items: 1 };
                break;
            }
            // SAFETY: a type of this one's contents, or one that was made here and is freed with them
            let mut row = unsafe { ffi::RSMPI_DATATYPE_NULL };
            let code = unsafe { native::PMPI_Type_create_hvector(parts[k], 1, stride as MPI_Aint, self.types[0], &mut row) };
            check("MPI_Type_create_hvector", code)?;
            self.types.insert(0, row);
            stride *= sizes[k] as isize;
        }
        Ok(self)
    }

    /// Makes a datatype of some blocks, from one to another.
    fn slice(&self, from: usize, to: usize) -> Result<MPI_Datatype> {
        // SAFETY: a constant of the library; lists as long as they are said to be, types that are kept here
        unsafe {
            let mut made = ffi::RSMPI_DATATYPE_NULL;
            match &self.blocks {
                Blocks::Strided { stride, items, .. } => {
                    let (n, items) = ((to - from) as c_int, *items as c_int);
                    let code = native::PMPI_Type_create_hvector(n, items, *stride as MPI_Aint, self.types[0], &mut made);
                    check("MPI_Type_create_hvector", code)?;
                }
                Blocks::List(blocks) => {
                    let blocks = &blocks[from..to];
                    let counts: Vec<c_int> = blocks.iter().map(|b| b.count as c_int).collect();
                    let places: Vec<MPI_Aint> = blocks.iter().map(|b| (b.at - blocks[0].at) as MPI_Aint).collect();
                    let types: Vec<MPI_Datatype> = blocks.iter().map(|b| self.types[b.of]).collect();
                    let (n, c, p, t) = (blocks.len() as c_int, counts.as_ptr(), places.as_ptr(), types.as_ptr());
                    check("MPI_Type_create_struct", native::PMPI_Type_create_struct(n, c, p, t, &mut made))?;
                }
            }
            check("MPI_Type_commit", native::PMPI_Type_commit(&mut made))?;
            Ok(made)
        }
    }

    /// How many blocks there are; the place, the items and the type of one.
    fn count(&self) -> usize {
        match &self.blocks {
            Blocks::Strided { count, .. } => *count,
            Blocks::List(blocks) => blocks.len(),
        }
    }

    /// The end of the blocks from one on that can be packed at once; one block at least.
    fn fitting(&self, from: usize) -> Result<usize> {
        // SAFETY: the types of a datatype that was taken apart are valid
        let size = |of: MPI_Datatype| Ok::<_, Error>(unsafe { Layout::of(of)? }.size);
        match &self.blocks {
            Blocks::Strided { count, items, .. } => {
                let each = (items * size(self.types[0])?).max(1);
                Ok((from + (MOST_AT_ONCE / each).max(1)).min(*count))
            }
            Blocks::List(blocks) => {
                let (mut to, mut bytes) = (from, 0);
                while to < blocks.len() && (to == from || bytes <= MOST_AT_ONCE) {
                    bytes += blocks[to].count * size(self.types[blocks[to].of])?;
                    to += usize::from(to == from || bytes <= MOST_AT_ONCE);
                }
                Ok(to)
            }
        }
    }

    fn block(&self, k: usize) -> (isize, usize, MPI_Datatype) {
        match &self.blocks {
            Blocks::Strided { at, stride, items, .. } => (at + k as isize * stride, *items, self.types[0]),
            Blocks::List(blocks) => (blocks[k].at, blocks[k].count, self.types[blocks[k].of]),
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        let derived = |t: &&mut MPI_Datatype| {
            // SAFETY: the types came with the contents; those that are derived are the caller's to free
            unsafe { combiner(**t) }.ok().zip(combiners().ok()).is_some_and(|(c, known)| c.0 != known.named)
        };
        for handle in self.types.iter_mut().filter(derived) {
            // SAFETY: as above
            unsafe { native::PMPI_Type_free(handle) };
        }
    }
}

/// How a datatype was made, and how many numbers, addresses and types it was made with.
unsafe fn combiner(datatype: MPI_Datatype) -> Result<(c_int, usize, usize, usize)> {
    let (mut ints, mut addresses, mut types, mut combiner) = (0, 0, 0, 0);
    // SAFETY: out-parameters of the right types
    let code = unsafe { native::PMPI_Type_get_envelope(datatype, &mut ints, &mut addresses, &mut types, &mut combiner) };
    check("MPI_Type_get_envelope", code)?;
    Ok((combiner, ints.max(0) as usize, addresses.max(0) as usize, types.max(0) as usize))
}

/// The constants `MPI_COMBINER_...` of those ways to make a datatype that are taken apart.
#[derive(Debug, Clone, Copy)]
struct Combiners {
    named: c_int,
    dup: c_int,
    contiguous: c_int,
    vector: c_int,
    hvector: c_int,
    indexed: c_int,
    hindexed: c_int,
    indexed_block: c_int,
    hindexed_block: c_int,
    structure: c_int,
    resized: c_int,
    subarray: c_int,
}

impl Combiners {
    fn all(&self) -> [c_int; 11] {
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
fn combiners() -> Result<&'static Combiners> {
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

/// The attribute under which a derived datatype keeps its layout.
fn keyval() -> Result<c_int> {
    static KEYVAL: OnceLock<c_int> = OnceLock::new();
    if let Some(&key) = KEYVAL.get() {
        return Ok(key);
    }
    let mut key: c_int = 0;
    // SAFETY: callbacks with the signatures that MPI asks for
    check("MPI_Type_create_keyval", unsafe {
        native::PMPI_Type_create_keyval(Some(no_copy), Some(dropped), &mut key, std::ptr::null_mut())
    })?;
    Ok(*KEYVAL.get_or_init(|| key))
}

/// A duplicate is taken apart itself.
unsafe extern "C" fn no_copy(_: MPI_Datatype, _: c_int, _: *mut c_void, _: *mut c_void, _: *mut c_void, flag: *mut c_int) -> c_int {
    // SAFETY: MPI passes a valid out-parameter
    unsafe { *flag = 0 };
    ffi::MPI_SUCCESS as c_int
}

unsafe extern "C" fn dropped(_: MPI_Datatype, _: c_int, layout: *mut c_void, _: *mut c_void) -> c_int {
    // SAFETY: set in `Layout::of` from a box, and given up here for good
    drop(unsafe { Box::from_raw(layout.cast::<Layout>()) });
    ffi::MPI_SUCCESS as c_int
}

/// MPI counts what it packs in an `int`: so much at a time.
const MOST_AT_ONCE: usize = c_int::MAX as usize;

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
