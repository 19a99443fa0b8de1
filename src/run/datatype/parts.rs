//! Derived datatypes taken apart into blocks.

use super::combiner::{combiner, combiners};
use super::pack::MOST_AT_ONCE;
use super::{Layout, bytes, sizes};
use crate::error::{Error, Result};
use crate::transport::mpi::check;
use crate::transport::native;
use mpi::ffi::{self, MPI_Aint, MPI_Datatype};
use std::os::raw::c_int;

/// So many items of a type, one after the other.
pub struct Block {
    /// The first one's place, in bytes from the address of the whole.
    pub at: isize,
    /// How many.
    pub count: usize,
    /// Which of the types.
    pub of: usize,
}

/// The blocks of a derived datatype, in the order of its type map.
pub enum Blocks {
    /// `count` blocks of `items` items of the first type, `stride` bytes apart, the first at `at`.
    Strided { at: isize, count: usize, stride: isize, items: usize },
    /// One by one.
    List(Vec<Block>),
}

/// A derived datatype taken apart.
pub struct Parts {
    /// Where its items are.
    pub blocks: Blocks,
    /// Of which types; those that are derived are freed with this.
    pub types: Vec<MPI_Datatype>,
}

impl Parts {
    /// `None` for those that are packed as a whole: distributed arrays, and what later standards have.
    pub unsafe fn of(datatype: MPI_Datatype) -> Result<Option<Parts>> {
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
    pub fn slice(&self, from: usize, to: usize) -> Result<MPI_Datatype> {
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
    pub fn count(&self) -> usize {
        match &self.blocks {
            Blocks::Strided { count, .. } => *count,
            Blocks::List(blocks) => blocks.len(),
        }
    }

    /// The end of the blocks from one on that can be packed at once; one block at least.
    pub fn fitting(&self, from: usize) -> Result<usize> {
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

    pub fn block(&self, k: usize) -> (isize, usize, MPI_Datatype) {
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
