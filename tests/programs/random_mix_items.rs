//! Items of several datatypes, what combines them, and where they lie.

use mpi::collective::{Operation, SystemOperation};
use mpi::datatype::{Collection, DatatypeRef, Pointer, PointerMut, UserDatatype};
use mpi::ffi::{MPI_Datatype, MPI_Op};
use mpi::traits::*;
use std::os::raw::{c_int, c_void};

/// An item that is sent, or combined.
pub trait Item: Copy + PartialEq + std::fmt::Debug + 'static {
    /// Where nobody wrote.
    const UNTOUCHED: Self;
    fn of(number: u64) -> Self;
    fn datatype(handles: &Handles) -> MPI_Datatype;
    fn combined(self, right: Self, by: By) -> Self;
}

/// How items are combined.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum By {
    Sum,
    Max,
    Xor,
    /// Affine maps, one after the other.
    Maps,
}

macro_rules! numbers {
    ($($type:ty: $of:expr;)*) => {
        $(
            impl Item for $type {
                const UNTOUCHED: $type = 77 as $type;
                fn of(number: u64) -> $type {
                    $of(number)
                }
                fn datatype(_: &Handles) -> MPI_Datatype {
                    <$type>::equivalent_datatype().as_raw()
                }
                fn combined(self, right: $type, by: By) -> $type {
                    match by {
                        By::Max if self > right => self,
                        By::Max => right,
                        By::Xor => self ^ right,
                        _ => (std::num::Wrapping(self) + std::num::Wrapping(right)).0,
                    }
                }
            }
        )*
    };
}

// whole numbers of double precision, which are added without error
numbers! {
    u8: |number| number as u8;
    i32: |number| (number % 1_000_003) as i32;
    u64: |number| number;
}

impl Item for f64 {
    const UNTOUCHED: f64 = 77.5;
    fn of(number: u64) -> f64 {
        (number % 1_000_003) as f64
    }
    fn datatype(_: &Handles) -> MPI_Datatype {
        f64::equivalent_datatype().as_raw()
    }
    fn combined(self, right: f64, by: By) -> f64 {
        if by == By::Max { self.max(right) } else { self + right }
    }
}

/// An affine map.
pub type Map = [u64; 2];

impl Item for Map {
    const UNTOUCHED: Map = [77, 77];
    fn of(number: u64) -> Map {
        [number << 1 | 1, number ^ 0xABCD]
    }
    fn datatype(handles: &Handles) -> MPI_Datatype {
        handles.pair
    }
    fn combined(self, right: Map, _: By) -> Map {
        [self[0].wrapping_mul(right[0]), self[0].wrapping_mul(right[1]).wrapping_add(self[1])]
    }
}

/// `right := left after right`.
pub unsafe extern "C" fn after(left: *mut c_void, right: *mut c_void, count: *mut c_int, _: *mut MPI_Datatype) {
    // SAFETY: MPI passes so many maps
    unsafe {
        let (left, right) = (left.cast::<Map>(), right.cast::<Map>());
        (0..*count as usize).for_each(|k| *right.add(k) = left.add(k).read().combined(right.add(k).read(), By::Maps));
    }
}

/// Handles that all threads use.
#[derive(Clone, Copy)]
pub struct Handles {
    pub pair: MPI_Datatype,
    pub maps: MPI_Op,
}

// SAFETY: MPI's handles may be used by any thread that may call MPI
unsafe impl Send for Handles {}
// SAFETY: as above
unsafe impl Sync for Handles {}

/// An operation by its handle.
pub struct ByHandle(MPI_Op);

// SAFETY: the handle of an operation that lasts
unsafe impl AsRaw for ByHandle {
    type Raw = MPI_Op;
    fn as_raw(&self) -> MPI_Op {
        self.0
    }
}

impl Operation for ByHandle {}

impl By {
    pub fn operation(self, handles: &Handles) -> ByHandle {
        ByHandle(match self {
            By::Sum => SystemOperation::sum().as_raw(),
            By::Max => SystemOperation::max().as_raw(),
            By::Xor => SystemOperation::bitwise_xor().as_raw(),
            By::Maps => handles.maps,
        })
    }
}

/// Items of one rank, in blocks, one after the other, or every other one of its place.
pub struct Items<T> {
    all: Vec<T>,
    count: usize,
    /// The type of a block whose items are apart.
    apart: Option<UserDatatype>,
    items: c_int,
    datatype: MPI_Datatype,
}

impl<T: Item> Items<T> {
    pub fn new(blocks: usize, count: usize, apart: bool, handles: &Handles) -> Items<T> {
        let datatype = T::datatype(handles);
        if !apart || count == 0 || blocks == 0 {
            return Items { all: vec![T::UNTOUCHED; blocks * count], count, apart: None, items: (blocks * count) as c_int, datatype };
        }
        // SAFETY: a type that lasts
        let inner = unsafe { DatatypeRef::from_raw(datatype) };
        let block = UserDatatype::vector(count as c_int, 1, 2, &inner);
        let datatype = block.as_raw();
        Items { all: vec![T::UNTOUCHED; blocks * (2 * count - 1)], count, apart: Some(block), items: blocks as c_int, datatype }
    }

    fn blocks(&self) -> usize {
        if self.apart.is_some() { self.items as usize } else { self.items as usize / self.count.max(1) }
    }

    fn at(&self, block: usize, k: usize) -> usize {
        if self.apart.is_some() { block * (2 * self.count - 1) + 2 * k } else { block * self.count + k }
    }

    pub fn fill(&mut self, block: usize, item: impl Fn(usize) -> T) {
        for k in 0..self.count {
            let at = self.at(block, k);
            self.all[at] = item(k);
        }
    }

    /// The first place that has not what it shall, of blocks of which something is known; nothing is written between.
    pub fn wrong(&self, item: impl Fn(usize, usize) -> Option<T>) -> Option<(usize, usize, T)> {
        let mut known = vec![false; self.all.len()];
        for (block, k) in (0..self.blocks()).flat_map(|block| (0..self.count).map(move |k| (block, k))) {
            let (at, wanted) = (self.at(block, k), item(block, k));
            known[at] = true;
            if wanted.is_some_and(|wanted| wanted != self.all[at]) {
                return Some((block, k, self.all[at]));
            }
        }
        let between = (0..self.all.len()).find(|&at| !known[at] && self.all[at] != T::UNTOUCHED);
        between.map(|at| (usize::MAX, at, self.all[at]))
    }
}

// SAFETY of all: as many items of the type as there are
unsafe impl<T> AsDatatype for Items<T> {
    type Out = DatatypeRef<'static>;
    fn as_datatype(&self) -> DatatypeRef<'static> {
        unsafe { DatatypeRef::from_raw(self.datatype) }
    }
}

unsafe impl<T> Collection for Items<T> {
    fn count(&self) -> mpi::Count {
        self.items
    }
}

unsafe impl<T> Pointer for Items<T> {
    fn pointer(&self) -> *const c_void {
        self.all.as_ptr().cast()
    }
}

unsafe impl<T> PointerMut for Items<T> {
    fn pointer_mut(&mut self) -> *mut c_void {
        self.all.as_mut_ptr().cast()
    }
}

unsafe impl<T> Buffer for Items<T> {}
unsafe impl<T> BufferMut for Items<T> {}
