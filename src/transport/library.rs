//! The MPI library's own collectives, on plain bytes.
#![allow(unsafe_code)] // MPI's C interface

use super::mpi::check;
use super::{Buffers, native};
use crate::collective::{COLLECTIVES, Collective, Size};
use crate::error::{Error, Result};
use crate::schedule::Elements;
use mpi::ffi::{self, MPI_Comm, MPI_Datatype, MPI_Op};
use std::mem::transmute;
use std::os::raw::{c_int, c_void};
use std::sync::OnceLock;

/// What is combined, as MPI says it.
#[derive(Clone, Copy)]
pub struct Operation {
    /// The type of one element.
    datatype: MPI_Datatype,
    /// Its bytes.
    bytes: usize,
    op: MPI_Op,
}

impl Operation {
    /// An operation on elements of so many bytes.
    pub fn new(datatype: MPI_Datatype, bytes: usize, op: MPI_Op) -> Operation {
        Operation { datatype, bytes, op }
    }

    /// What is measured: the sum of numbers, which most programs ask for, and of single bytes what differs (the vector code of Open MPI 4.1.4 adds
    /// bytes up to 255 and no further).
    pub fn measured(elements: Elements) -> Operation {
        // SAFETY: constants of the library
        unsafe {
            match elements.bytes == size_of::<f64>() {
                true => Operation::new(ffi::RSMPI_DOUBLE, elements.bytes, ffi::RSMPI_SUM),
                false => Operation::new(ffi::RSMPI_UINT8_T, 1, ffi::RSMPI_BXOR),
            }
        }
    }

    /// `into := left op into`, by the library.
    ///
    /// # Errors
    /// MPI's reason, or spans that are not of whole elements.
    pub fn combine(&self, left: &[u8], into: &mut [u8]) -> Result<()> {
        let count = self.count(into.len())?;
        // SAFETY: as many elements in both, which do not overlap
        let code = unsafe { native::PMPI_Reduce_local(left.as_ptr().cast(), into.as_mut_ptr().cast(), count, self.datatype, self.op) };
        check("MPI_Reduce_local", code)
    }

    /// What it combines; whether it commutes is not known here.
    pub fn elements(&self) -> Elements {
        Elements { bytes: self.bytes, commute: false }
    }

    /// So many bytes in elements.
    fn count(&self, bytes: usize) -> Result<c_int> {
        let wrong = || Error::invalid(format!("combine {bytes} bytes in elements of {}", self.bytes));
        if !bytes.is_multiple_of(self.bytes) {
            return Err(wrong());
        }
        c_int::try_from(bytes / self.bytes).map_err(|_| wrong())
    }
}

/// What a collective is called with.
#[derive(Clone, Copy)]
pub struct Arguments {
    /// This rank's memory; without an input, what it gives lies in the output.
    pub buffers: Buffers,
    /// Bytes of the message or of a block.
    pub bytes: usize,
    /// The root; 0 where there is none.
    pub root: usize,
    /// What is combined, if anything is.
    pub operation: Option<Operation>,
}

impl Arguments {
    /// What combines elements in a program that does this.
    ///
    /// # Errors
    /// Nothing was said, or as [`Operation::combine`].
    #[inline]
    pub fn combine(&self, left: &[u8], into: &mut [u8]) -> Result<()> {
        self.need_operation()?.combine(left, into)
    }

    /// The type of a collective's elements, the bytes of one, and what combines them: single bytes, and anything, where nothing is combined, whatever others do
    /// with the same arguments.
    ///
    /// # Errors
    /// Nothing was said of what is combined.
    pub fn items(&self, collective: &Collective) -> Result<(MPI_Datatype, usize, MPI_Op)> {
        if collective.combines {
            return self.need_operation().map(|operation| (operation.datatype, operation.bytes, operation.op));
        }
        // SAFETY: constants of the library
        Ok(unsafe { (ffi::RSMPI_UINT8_T, 1, ffi::RSMPI_SUM) })
    }

    fn need_operation(&self) -> Result<&Operation> {
        self.operation.as_ref().ok_or_else(|| Error::invalid("combine elements: no operation was given"))
    }
}

/// What a collective of MPI's is called with. What it has not, or what does not count on this rank, is ignored.
#[derive(Clone, Copy)]
pub struct Call {
    /// What this rank gives.
    pub input: *const c_void,
    /// How many items of which type that is, of each block.
    pub given: (c_int, MPI_Datatype),
    /// Where it gets something; a message of which this is all lies there.
    pub output: *mut c_void,
    /// As for what it gives.
    pub got: (c_int, MPI_Datatype),
    /// What items are combined with.
    pub op: MPI_Op,
    /// The root.
    pub root: c_int,
}

/// The library's own function of a collective, by what it takes before the communicator. All that have a root or not, combine or not, and are of a message or
/// of blocks, take the same as their like.
#[derive(Clone, Copy)]
pub enum Own {
    /// Nothing.
    Alone(Alone),
    /// The message, and the root that has it.
    Message(Message),
    /// What is given and what comes, as many items of each, and what combines them.
    Combined(Combined),
    /// The same, and the root that gets it.
    CombinedAtRoot(CombinedAtRoot),
    /// Blocks that are given, and blocks that come.
    Blocks(Blocks),
    /// The same, and the root that has, or gets, all of them.
    BlocksOfRoot(BlocksOfRoot),
}

type In = *const c_void;
type Out = *mut c_void;
/// As [`Own::Alone`].
pub type Alone = unsafe extern "C" fn(MPI_Comm) -> c_int;
/// As [`Own::Message`].
pub type Message = unsafe extern "C" fn(Out, c_int, MPI_Datatype, c_int, MPI_Comm) -> c_int;
/// As [`Own::Combined`].
pub type Combined = unsafe extern "C" fn(In, Out, c_int, MPI_Datatype, MPI_Op, MPI_Comm) -> c_int;
/// As [`Own::CombinedAtRoot`].
pub type CombinedAtRoot = unsafe extern "C" fn(In, Out, c_int, MPI_Datatype, MPI_Op, c_int, MPI_Comm) -> c_int;
/// As [`Own::Blocks`].
pub type Blocks = unsafe extern "C" fn(In, c_int, MPI_Datatype, Out, c_int, MPI_Datatype, MPI_Comm) -> c_int;
/// As [`Own::BlocksOfRoot`].
pub type BlocksOfRoot = unsafe extern "C" fn(In, c_int, MPI_Datatype, Out, c_int, MPI_Datatype, c_int, MPI_Comm) -> c_int;

impl Own {
    /// That of a collective.
    ///
    /// # Errors
    /// The library has no such function.
    pub fn of(collective: &Collective) -> Result<Own> {
        static FOUND: OnceLock<Vec<(&Collective, Own)>> = OnceLock::new();
        let found = FOUND.get_or_init(|| COLLECTIVES.iter().filter_map(|c| Some((*c, Own::find(c)?))).collect());
        let missing = || Error::invalid(format!("call {}: the MPI library has no such function", collective.function));
        found.iter().find(|(c, _)| *c == collective).map(|(_, own)| *own).ok_or_else(missing)
    }

    fn find(collective: &Collective) -> Option<Own> {
        let found = native::by_name(collective.function)?;
        // SAFETY: MPI's function of this name takes this
        Some(unsafe {
            match (collective.size, collective.combines, collective.rooted) {
                (Size::Nothing, ..) => Own::Alone(transmute::<Out, Alone>(found)),
                (_, true, false) => Own::Combined(transmute::<Out, Combined>(found)),
                (_, true, true) => Own::CombinedAtRoot(transmute::<Out, CombinedAtRoot>(found)),
                (Size::Message, false, _) => Own::Message(transmute::<Out, Message>(found)),
                (Size::Block, false, false) => Own::Blocks(transmute::<Out, Blocks>(found)),
                (Size::Block, false, true) => Own::BlocksOfRoot(transmute::<Out, BlocksOfRoot>(found)),
            }
        })
    }

    /// Where it is.
    pub fn address(self) -> usize {
        match self {
            Own::Alone(own) => own as usize,
            Own::Message(own) => own as usize,
            Own::Combined(own) => own as usize,
            Own::CombinedAtRoot(own) => own as usize,
            Own::Blocks(own) => own as usize,
            Own::BlocksOfRoot(own) => own as usize,
        }
    }

    /// Calls it.
    ///
    /// # Safety
    /// What is said must be valid for MPI's function, on a communicator whose members all do this.
    #[inline]
    pub unsafe fn call(self, c: &Call, comm: MPI_Comm) -> c_int {
        // SAFETY: the caller's
        unsafe {
            match self {
                Own::Alone(own) => own(comm),
                Own::Message(own) => own(c.output, c.got.0, c.got.1, c.root, comm),
                Own::Combined(own) => own(c.input, c.output, c.got.0, c.got.1, c.op, comm),
                // elsewhere than at the root nothing comes
                Own::CombinedAtRoot(own) => own(c.input, c.output, c.given.0, c.given.1, c.op, c.root, comm),
                Own::Blocks(own) => own(c.input, c.given.0, c.given.1, c.output, c.got.0, c.got.1, comm),
                Own::BlocksOfRoot(own) => own(c.input, c.given.0, c.given.1, c.output, c.got.0, c.got.1, c.root, comm),
            }
        }
    }
}

/// A copy of what a rank gives where that lies in its output: the library's name for "in place" is known to C alone.
///
/// # Safety
/// The output must be as long as is said.
unsafe fn given(a: &Arguments) -> Option<Vec<u8>> {
    // SAFETY: the caller's
    (a.buffers.input().is_null() && a.buffers.output_len() > 0)
        .then(|| unsafe { std::slice::from_raw_parts(a.buffers.output(), a.buffers.output_len()) }.to_vec())
}

/// A call that may be made again and again. Where items are combined in place, what is given is what lay there at first.
pub struct Ready {
    function: &'static str,
    own: Own,
    call: Call,
    comm: MPI_Comm,
    _copy: Option<Vec<u8>>,
}

impl Ready {
    /// Of the library's own function.
    ///
    /// # Safety
    /// The buffers must be as large as the collective's layout says, as long as this is used, `comm` a valid communicator whose members all do this.
    ///
    /// # Errors
    /// The library has no such function, or what is asked for is none of its calls.
    pub unsafe fn new(collective: &Collective, arguments: &Arguments, comm: MPI_Comm) -> Result<Ready> {
        let wrong = || Error::invalid(format!("call {}: an int does not count its bytes", collective.function));
        let count = if collective.combines {
            arguments.need_operation()?.count(arguments.bytes)?
        } else {
            c_int::try_from(arguments.bytes).map_err(|_| wrong())?
        };
        let (datatype, _, op) = arguments.items(collective)?;
        let items = (count, datatype);
        // SAFETY: the caller's
        let copy = if collective.combines { unsafe { given(arguments) } } else { None };
        let input = copy.as_ref().map_or(arguments.buffers.input(), |copy| copy.as_ptr()).cast();
        let output = arguments.buffers.output().cast();
        let call = Call { input, given: items, output, got: items, op, root: arguments.root as c_int };
        Ok(Ready { function: collective.function, own: Own::of(collective)?, call, comm, _copy: copy })
    }

    /// Makes it.
    ///
    /// # Errors
    /// MPI's reason.
    #[inline]
    pub fn run(&self) -> Result<()> {
        // SAFETY: who made it vouches for it
        check(self.function, unsafe { self.own.call(&self.call, self.comm) })
    }
}

/// Runs the library's own collective.
///
/// # Safety
/// As [`Ready::new`].
///
/// # Errors
/// MPI's reason.
pub unsafe fn run(collective: &Collective, arguments: &Arguments, comm: MPI_Comm) -> Result<()> {
    // SAFETY: the caller's
    unsafe { Ready::new(collective, arguments, comm)?.run() }
}
