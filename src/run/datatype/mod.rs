//! Where the bytes of a buffer lie: in one piece and in the order of the datatype's type map, or scattered, to be packed.
//!
//! Ranks may describe one signature by different datatypes, so bytes travel in the order of the type map. That the bytes fill their
//! extent does not make them lie in that order: `indexed([1; 4], [3, 2, 1, 0])` does, and does not. A datatype is therefore taken apart
//! down to the predefined ones, once.

mod combiner;
mod pack;
mod parts;

pub use pack::{Direction, copy_items};

use super::quietly;
use super::team::{free_at_the_end, has_ended};
use crate::error::Result;
use crate::transport::mpi::check;
use crate::transport::native;
use combiner::{combiner, combiners};
use mpi::ffi::{self, MPI_Aint, MPI_Datatype};
use parts::{Block, Blocks, Parts};
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
    /// From where on, and over how many bytes, one item reaches, with its holes.
    reach: (isize, usize),
    /// True of MPI's own datatypes, whose handles mean the same for ever.
    pub predefined: bool,
    /// True where it is known that it is committed; those that others are made of need not be.
    committed: bool,
}

impl Layout {
    /// The layout of a datatype; kept with it, if it is a derived one, until MPI is about to end.
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
            let Some(key) = keyval()? else { return derived(datatype) };
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

    /// True if items of a datatype may be sent: of one that is not committed the library refuses to send none to nobody.
    ///
    /// # Safety
    /// As [`Layout::of`].
    ///
    /// # Errors
    /// As [`Layout::of`].
    pub unsafe fn is_committed(datatype: MPI_Datatype) -> Result<bool> {
        // SAFETY: the caller vouches for the datatype
        unsafe {
            if Layout::of(datatype)?.committed {
                return Ok(true);
            }
            let alone = ffi::RSMPI_COMM_SELF;
            // to nobody, so that it is not read; MPICH looks at the datatype of one item alone
            let item = std::ptr::NonNull::<u8>::dangling().as_ptr().cast();
            let code = quietly(alone, || native::PMPI_Send(item, 1, datatype, ffi::RSMPI_PROC_NULL, 0, alone));
            let committed = code == ffi::MPI_SUCCESS as c_int;
            if let (true, Some(key)) = (committed, keyval()?) {
                let _alone = attributes();
                let (mut kept, mut found): (*mut Layout, c_int) = (std::ptr::null_mut(), 0);
                check("MPI_Type_get_attr", native::PMPI_Type_get_attr(datatype, key, (&raw mut kept).cast(), &mut found))?;
                if found != 0 {
                    (*kept).committed = true;
                }
            }
            Ok(committed)
        }
    }

    /// Where so many items end and the next one has its address, from the first one's.
    pub fn after(&self, count: usize) -> isize {
        self.extent * count as isize
    }

    /// From where on so many items reach, from the buffer's address, and over how many bytes.
    pub fn reach(&self, count: usize) -> (isize, usize) {
        let (begin, bytes) = self.reach;
        let steps = self.extent * (count.max(1) - 1) as isize;
        if count == 0 { (0, 0) } else { (begin + steps.min(0), bytes + steps.unsigned_abs()) }
    }

    /// True of MPI's own pairs with bytes between them, or behind, that are none of theirs, and that programs cannot use for anything else.
    pub fn is_padded(&self) -> bool {
        let (begin, bytes) = self.reach;
        self.predefined && begin == 0 && self.extent > self.size as isize && bytes as isize <= self.extent
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
    let reach = (true_lb, true_extent.max(0) as usize);
    Ok(Layout { size, extent, start: (true_extent == size as isize).then_some(true_lb), reach, predefined: true, committed: true })
}

/// A derived datatype: in order if its blocks are, and lie end to end.
unsafe fn derived(datatype: MPI_Datatype) -> Result<Layout> {
    // SAFETY: the caller's
    let (size, extent, true_lb, true_extent) = unsafe { sizes(datatype)? };
    let reach = (true_lb, true_extent.max(0) as usize);
    let scattered = Layout { size, extent, start: None, reach, predefined: false, committed: false };
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

/// The attribute under which a derived datatype keeps its layout.
pub static KEYVAL: OnceLock<c_int> = OnceLock::new();

/// The same, once there is one; nothing once MPI has said that it is about to end.
fn keyval() -> Result<Option<c_int>> {
    if has_ended() {
        return Ok(None);
    }
    if let Some(&key) = KEYVAL.get() {
        return Ok(Some(key));
    }
    free_at_the_end()?;
    let mut key: c_int = 0;
    // SAFETY: callbacks with the signatures that MPI asks for
    check("MPI_Type_create_keyval", unsafe {
        native::PMPI_Type_create_keyval(Some(no_copy), Some(dropped), &mut key, std::ptr::null_mut())
    })?;
    let taken = *KEYVAL.get_or_init(|| key);
    if taken != key {
        // SAFETY: another thread's came first, and nobody knows this one
        unsafe { native::PMPI_Type_free_keyval(&mut key) };
    }
    Ok(Some(taken))
}

/// MPI has said that it is about to end: the attribute goes with the last datatype that has it.
pub fn give_up_all() {
    if let Some(&key) = KEYVAL.get() {
        // SAFETY: made by this module
        unsafe { native::PMPI_Type_free_keyval(&mut { key }) };
    }
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
