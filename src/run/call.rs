//! An adaptive collective, by the arguments of MPI's function.
//!
//! What is planned hangs on what all ranks have alike: the bytes of a block by its signature, the root, and where items are combined their type and the
//! operation. Where a rank's items lie does not decide: what does not lie in one piece is packed. Items that are combined lie alike everywhere. Pairs
//! of MPI's own, such as a double and an int, are combined with what lies between them; others that do not lie in one piece are left to the library.

use super::addresses::is_in_place;
use super::communicator::sizes;
use super::datatype::Direction;
use super::items::{Items, Side, got_at};
use super::known::{Asked, Known};
use super::quick::{self, Key, Message, Way, Words};
use super::refused::{as_mpi_counts, refuses};
use super::{rank, settings, under_way};
use crate::collective::{Collective, Shape, bcast};
use crate::error::{Error, Result};
use crate::schedule::{Action, Buffer, Elements, Layout, Program};
use crate::topology::Rank;
use crate::transport::Buffers;
use crate::transport::library::{self, Operation};
use crate::transport::mpi::check;
use mpi::ffi;
use std::os::raw::c_int;
use std::ptr::{null, null_mut};

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

    /// The same of what a collective of MPI's is called with, in buffers of this layout.
    ///
    /// # Errors
    /// Nothing was said of what is combined.
    pub fn of(collective: &'static Collective, comm: ffi::MPI_Comm, layout: Layout, arguments: &library::Arguments) -> Result<Call> {
        let (datatype, bytes, op) = arguments.items(collective)?;
        let items = |data: *mut u8, length: usize| Items { data, count: (length / bytes) as i64, datatype };
        let input = arguments.buffers.input().cast_mut();
        let (given, got) = (items(input, layout.input), items(arguments.buffers.output(), layout.output));
        let root = if collective.rooted { arguments.root } else { 0 };
        Ok(Call::new(collective, comm, root, (given, got), collective.combines.then_some((op, true))))
    }

    /// True where `MPI_IN_PLACE` stands for items that are none of those in whose place others may be.
    #[inline]
    pub fn is_misplaced(&self) -> bool {
        let is_one = |items: (i64, ffi::MPI_Datatype), at: *mut u8| items.0 > 0 && is_in_place(at.cast());
        is_one(self.asked.given, self.given) || is_one(self.asked.got, self.got)
    }

    #[inline]
    pub fn comm(&self) -> ffi::MPI_Comm {
        self.asked.comm
    }

    /// All of it that is the same in the next one like it.
    #[inline]
    fn key(&self) -> Key<6> {
        let Asked { collective, given, got, root, in_place, op, .. } = self.asked;
        let items = |(count, datatype): (i64, ffi::MPI_Datatype)| (count as usize, datatype.0 as usize);
        let (given, got, op) = (items(given), items(got), op.map_or(0, |op| op.0 as usize));
        Key::new(collective, Words::Ours, in_place, [given.0, given.1, got.0, got.1, root, op])
    }

    /// What the library is called with, on the caller's memory. What does not count on this rank may have any address.
    #[inline]
    fn on_its_memory(&self, own: &library::Call) -> library::Call {
        library::Call { input: self.given.cast_const().cast(), output: self.got.cast(), ..*own }
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
    /// It is a broadcast of no bytes, from a rank that there is, by arguments that MPI's function has: it is over wherever it is called. Some libraries send messages
    /// for it (MPICH 4.0) and some none (Open MPI 4.1), so that all ranks must call theirs or none: this hangs on what all of them say alike, and on nothing
    /// that one remembers.
    pub nothing: bool,
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
        let no_items = (0, side.map_or(asked.given.1, |side| side.datatype));
        let own = library::Call {
            input: null(),
            given: given.map_or(no_items, |side| side.items()),
            output: null_mut(),
            got: got.map_or(no_items, |side| side.items()),
            op: asked.operation(),
            root: as_mpi_counts(root),
        };
        let (bytes, call_own) = (side.map_or(0, |side| side.block()), library::Own::of(collective)?);
        let nothing = std::ptr::eq(collective, &bcast::COLLECTIVE) && remote.is_none() && bytes == 0;
        Ok(Prepared { me, given, got, bytes, elements, reads_output, own, call_own, refused: false, nothing })
    }

    /// Of arguments that MPI's function has not: it finds what is wrong with them, and does what the program chose for its communicator.
    #[cold]
    fn refused(asked: &Asked, me: Rank) -> Result<Prepared> {
        let Asked { given, got, root, .. } = *asked;
        let items = |(count, datatype): (i64, ffi::MPI_Datatype)| (count as c_int, datatype);
        let (given, got, op) = (items(given), items(got), asked.operation());
        let own = library::Call { input: null(), given, output: null_mut(), got, op, root: as_mpi_counts(root) };
        let call_own = library::Own::of(asked.collective)?;
        Ok(Prepared {
            me,
            given: None,
            got: None,
            bytes: 0,
            elements: None,
            reads_output: false,
            own,
            call_own,
            refused: true,
            nothing: false,
        })
    }

    /// True if something can be planned: where it has bytes that others than the library can combine.
    pub fn may_be_planned(&self) -> bool {
        self.elements.is_some() && (self.bytes > 0 || (self.given.is_none() && self.got.is_none()))
    }

    /// True if its datatypes are MPI's own, whose handles mean the same for ever.
    pub fn is_predefined(&self) -> bool {
        [self.given, self.got].into_iter().flatten().all(|side| side.layout.predefined)
    }

    /// True if what this rank gives lies where its result goes, and that was not said by `MPI_IN_PLACE`: what MPI forbids where items are combined, and libraries
    /// let some of it through, so that it may be so on one rank alone.
    #[inline]
    fn is_aliased(&self, call: &Call) -> bool {
        let same = call.given == call.got && !call.asked.in_place;
        same && call.asked.collective.combines && self.given.is_some() && self.got.is_some()
    }

    /// What it asks of so many ranks.
    pub fn shape(&self, asked: &Asked, ranks: usize) -> Shape {
        Shape { elements: self.elements.unwrap_or_default(), in_place: asked.in_place, ..Shape::new(ranks, asked.root, self.bytes) }
    }

    /// The library's own collective.
    pub fn librarys_way(&self) -> Way {
        Way::Librarys(self.call_own, self.own)
    }

    /// What a program of one message in the caller's memory does, if it is one and its times are not wanted; `called`: members by their ranks.
    pub fn message(&self, asked: &Asked, program: &Program, called: impl Fn(Rank) -> c_int) -> Option<Message> {
        if program.len() != 1 || asked.in_place || settings::trace_folder().is_some() {
            return None;
        }
        let (sends, peer, span) = match program.action(0) {
            Action::Send { to, span } => (true, to, span),
            Action::Recv { from, span } if span.buffer == Buffer::Output => (false, from, span),
            _ => return None,
        };
        let side = match span.buffer {
            Buffer::Input => self.given,
            Buffer::Output => self.got,
            Buffer::Scratch | Buffer::Control => None,
        };
        let (start, bytes) = side?.piece()?;
        let (of_input, offset, lane) = (span.buffer == Buffer::Input, start + span.offset as isize, program.lane(0).into());
        let count = c_int::try_from(span.len).ok()?;
        (span.end() <= bytes).then(|| Message { sends, of_input, offset, count, peer: called(peer), lane })
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
            let mut input = self.given.as_ref().map_or(Ok((null_mut(), 0)), |side| side.bytes(call.given, true, &mut given))?;
            if self.is_aliased(call) && given.is_empty() && input.1 > 0 {
                given.extend_from_slice(std::slice::from_raw_parts(input.0, input.1));
                input.0 = given.as_mut_ptr();
            }
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
        let mut own = call.on_its_memory(&self.own);
        if self.refused && call.asked.in_place && call.asked.collective.combines {
            // two buffers that are one are refused too, and not for what is wrong here
            own.output = got_at(null_mut(), true).cast();
        }
        // SAFETY: the caller's
        if call.asked.in_place && !self.refused { unsafe { self.out_of_place(own, call) } } else { (own, Vec::new()) }
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
#[inline(always)] // a call that is remembered compares and jumps
pub(super) unsafe fn run(call: &Call) -> Result<()> {
    let key = call.key();
    // SAFETY: the caller's; what is found is copied before MPI runs, which may call a user's reduction, and that this
    unsafe {
        match quick::find(call.comm(), &key).and_then(|quick| quick.way) {
            Some(Way::Librarys(call_own, own)) if !call.asked.in_place => {
                check(call.asked.collective.function, call_own.call(&call.on_its_memory(&own), call.comm()))
            }
            Some(Way::Message(planned, message)) => (*planned.as_ptr()).message(&message, message.base(call.given, call.got)),
            Some(Way::Nothing) => Ok(()),
            _ => look_up(call, key),
        }
    }
}

#[inline(never)]
unsafe fn look_up(call: &Call, key: Key<6>) -> Result<()> {
    // SAFETY: the caller's
    unsafe {
        let known = Known::of(&call.asked)?;
        run_known(known, call, key, |prepared| {
            let (own, _copy) = prepared.for_the_library(call);
            prepared.call_own.call(&own, call.comm())
        })
    }
}

/// The same, where the library's own function is called by `own`, with the arguments that the caller gave: also where they are none that MPI's function has.
/// By the key nothing was found that can be done at once.
///
/// # Safety
/// As [`run`], of arguments that MPI's function has.
///
/// # Errors
/// MPI's reason.
pub(super) unsafe fn look_up_or<const N: usize>(call: &Call, key: Key<N>, own: impl Fn() -> c_int) -> Result<()> {
    // SAFETY: as above
    unsafe {
        match Known::of(&call.asked) {
            Ok(known) => run_known(known, call, key, |_| own()),
            Err(Error::Invalid(_)) => {
                under_way::finish(call.comm(), None);
                check(call.asked.collective.function, own())
            }
            Err(e) => Err(e),
        }
    }
}

/// What is planned, or is the library's own, if something is to do; from the next call like it on without looking it up, where that is one call of MPI's.
unsafe fn run_known<const N: usize>(mut known: Box<Known>, call: &Call, key: Key<N>, own: impl FnOnce(&Prepared) -> c_int) -> Result<()> {
    // SAFETY: the caller's
    unsafe {
        let nothing = known.prepared().nothing && !is_in_place(call.got.cast());
        if !nothing && !run_plan(&mut known, call)? {
            under_way::finish(call.comm(), None);
            check(call.asked.collective.function, own(known.prepared()))?;
        }
        remember(known, call.comm(), &key);
    }
    Ok(())
}

/// Remembers what is known of calls with this key.
///
/// # Safety
/// As [`Known::remember`].
unsafe fn remember<const N: usize>(known: Box<Known>, comm: ffi::MPI_Comm, key: &Key<N>) {
    // SAFETY: the caller's
    unsafe {
        if let Some(way) = known.way() {
            quick::keep(comm, key, way);
        }
        known.remember();
    }
}

/// Has calls like this carried out by some steps, whatever is planned, from the next one on, until as many others were remembered that it is forgotten; false where
/// their communicator has no plans, or nothing is to do. Collective.
///
/// # Safety
/// As [`run`].
///
/// # Errors
/// MPI's reason.
#[cfg(feature = "cli")]
pub(super) unsafe fn remember_steps(call: &Call, steps: Vec<crate::collective::Step>) -> Result<bool> {
    // SAFETY: the caller's
    unsafe {
        let Some(known) = Known::by_steps(&call.asked, steps)? else { return Ok(false) };
        remember(known, call.comm(), &call.key());
    }
    Ok(true)
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
        if let Err(e) = planned.run(call.asked.collective, steps, &arguments) {
            // other messages may still be open: they go where they were told to
            std::mem::forget(copies);
            return Err(e);
        }
        copies.take_back()?;
    }
    Ok(true)
}
