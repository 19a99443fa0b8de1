//! Adaptive collectives that do not block: begun by all ranks of a communicator in the same order, completed by each when it wants.
//!
//! They go by the plans of the blocking ones. A communicator that has none, where setting one up would wait for other ranks, and what a blocking call
//! leaves to the library, use the library's own non-blocking collectives. All ranks find that alike, since plans come with blocking calls alone.

use super::allreduce;
use super::bcast;
use super::communicator;
use super::datatype::{Direction, Layout, copy_items};
use super::known::Call;
use super::planned::{Planned, handled};
use super::under_way::{self, UnderWay};
use crate::collective;
use crate::error::Result;
use crate::plan;
use crate::transport::library::Arguments;
use crate::transport::mpi::check;
use crate::transport::native;
use mpi::ffi::{self, MPI_Comm, MPI_Request};
use mpi::request::{Scope, StaticScope};
use std::marker::PhantomData;
use std::os::raw::c_int;
use std::ptr::null_mut;
use std::sync::Arc;

/// A collective that was begun, and borrows its buffers until it is over.
///
/// It gets further while this process is in [`test`](Pending::test) or [`wait`](Pending::wait) of any of them, or in a blocking adaptive call that has a plan, on
/// whatever communicator; what is the library's own begins when all that is under way on its communicator is over. In no other call of MPI it gets further: a
/// rank for which others wait must come to one of these calls before it waits for them by other means. They may be completed in any order, another one
/// on each rank, with blocking adaptive calls between them. Where the communicator is freed meanwhile, that waits for it.
///
/// Where it is dropped it is waited for. One that is not dropped (`std::mem::forget`) ends the program at the end of its scope, as requests of the `mpi`
/// crate do.
#[must_use = "it is waited for where it is dropped: keep it, and wait when the result is needed"]
pub struct Pending<'a, S: Scope<'a> = StaticScope> {
    /// Nothing, once it is over.
    work: Option<Work>,
    scope: S,
    /// The buffers; it stays in the thread that lent them.
    lent: PhantomData<*mut &'a ()>,
}

/// Who does it.
enum Work {
    /// The library. What is given may be a copy.
    Native { request: MPI_Request, _given: Vec<u8> },
    /// Our plan, with items that are brought to their places at the end.
    Planned(Arc<UnderWay>, Option<Packed>),
}

/// Items of the caller's, packed.
struct Packed {
    bytes: Vec<u8>,
    data: *mut u8,
    count: usize,
    datatype: ffi::MPI_Datatype,
}

impl<'a, S: Scope<'a>> Pending<'a, S> {
    fn new(work: Work, scope: S) -> Pending<'a, S> {
        scope.register();
        Pending { work: Some(work), scope, lent: PhantomData }
    }

    /// Gets all that is under way further; true if this one is over. Does not wait.
    ///
    /// # Errors
    /// As the blocking call, once: it is over then.
    pub fn test(&mut self) -> Result<bool> {
        let Some(work) = &mut self.work else { return Ok(true) };
        under_way::progress();
        match work.test() {
            Ok(false) => Ok(false),
            Ok(true) => self.end(Ok(())).map(|()| true),
            Err(e) => self.end(Err(e)).map(|()| true),
        }
    }

    /// Waits until it is over.
    ///
    /// # Errors
    /// As the blocking call.
    pub fn wait(mut self) -> Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> Result<()> {
        let Some(work) = &mut self.work else { return Ok(()) };
        let waited = work.wait();
        self.end(waited)
    }

    /// It is over: its buffers are the caller's again.
    fn end(&mut self, result: Result<()>) -> Result<()> {
        let work = self.work.take();
        // SAFETY: registered once, when it was begun
        unsafe { self.scope.unregister() };
        match (result, work) {
            (Ok(()), Some(Work::Planned(_, Some(packed)))) => packed.unpack(),
            (Ok(()), _) => Ok(()),
            (Err(e), work) => {
                // other messages may still be open: they go where they were told to
                std::mem::forget(work);
                Err(e)
            }
        }
    }
}

impl<'a, S: Scope<'a>> Drop for Pending<'a, S> {
    fn drop(&mut self) {
        // the communicator's error handler was called, which is all that can be done here
        drop(self.finish());
    }
}

impl Work {
    fn test(&mut self) -> Result<bool> {
        match self {
            Work::Native { request, .. } => {
                let mut complete: c_int = 0;
                // SAFETY: a request that MPI gave, or the null one that it left, which is complete
                check("MPI_Test", unsafe { native::PMPI_Test(request, &mut complete, ffi::RSMPI_STATUS_IGNORE) })?;
                Ok(complete != 0)
            }
            Work::Planned(one, _) if one.is_over() => outcome(one).map(|()| true),
            Work::Planned(..) => Ok(false),
        }
    }

    fn wait(&mut self) -> Result<()> {
        if let Work::Planned(one, _) = self {
            one.wait();
            return outcome(one);
        }
        while under_way::any() {
            if self.test()? {
                return Ok(());
            }
            under_way::progress();
            std::thread::yield_now();
        }
        let Work::Native { request, .. } = self else { return Ok(()) };
        // SAFETY: as above
        check("MPI_Wait", unsafe { native::PMPI_Wait(request, ffi::RSMPI_STATUS_IGNORE) })
    }
}

/// What became of one, after the communicator's error handler was called if that was an error.
fn outcome(one: &UnderWay) -> Result<()> {
    let (comm, over) = one.outcome();
    over.map_err(|e| if let Some(comm) = comm { handled(comm, e) } else { e })
}

impl Packed {
    /// Packs the items of a broadcast.
    unsafe fn of(layout: Layout, arguments: bcast::Arguments) -> Result<Packed> {
        let bcast::Arguments { data, count, datatype, .. } = arguments;
        let (data, count) = (data.cast::<u8>(), count as usize);
        let mut packed = Packed { bytes: vec![0u8; layout.size * count], data, count, datatype };
        // SAFETY: the caller's items
        unsafe { packed.copy(Direction::Pack)? };
        Ok(packed)
    }

    /// Brings the items to their places.
    fn unpack(mut self) -> Result<()> {
        // SAFETY: the items are lent until here
        unsafe { self.copy(Direction::Unpack) }
    }

    unsafe fn copy(&mut self, direction: Direction) -> Result<()> {
        // SAFETY: the caller's items, and as many bytes as they have; a communicator that lasts, where the caller's may be freed meanwhile
        unsafe { copy_items(direction, self.data, self.count, self.datatype, self.bytes.as_mut_ptr(), ffi::RSMPI_COMM_SELF)? };
        Ok(())
    }
}

/// The plan of a call with who runs it; nothing where the library's own is to run.
unsafe fn planned<'p>(call: Call, layout: Layout) -> Result<Option<(&'p mut Planned, Arc<plan::Planned>)>> {
    // SAFETY: the caller vouches for the communicator; MPI has calls on it begin one after the other
    let Some(planned) = (unsafe { communicator::planned(call.comm)? }) else { return Ok(None) };
    let plan = planned.planned(call.collective, |ranks| call.shape(ranks, layout));
    Ok(matches!(*plan, plan::Planned::Run(_)).then_some((planned, plan)))
}

/// The library's own.
fn begun(call: &'static str, given: Vec<u8>, begin: impl FnOnce(&mut MPI_Request) -> c_int) -> Result<Work> {
    // SAFETY: a constant of the library
    let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
    check(call, begin(&mut request))?;
    Ok(Work::Native { request, _given: given })
}

/// Begins a broadcast.
///
/// # Safety
/// The arguments must be valid for `MPI_Bcast`, and the items be lent for the scope's lifetime.
///
/// # Errors
/// There is no such root; or MPI's reason.
pub(super) unsafe fn ibcast<'a, S: Scope<'a>>(arguments: bcast::Arguments, scope: S) -> Result<Pending<'a, S>> {
    let bcast::Arguments { data, count, datatype, root, comm } = arguments;
    arguments.check_root()?;
    // SAFETY: the caller's arguments; what is packed is kept until it is over
    let work = unsafe {
        let layout = Layout::of(datatype)?;
        let items = count.max(0) as usize;
        let found = if layout.size * items == 0 {
            None
        } else {
            planned(Call::new(&collective::bcast::COLLECTIVE, comm, datatype, count, root), layout)?
        };
        match (found, layout.one_piece(items)) {
            (Some((planned, plan)), piece) => {
                let mut packed = if piece.is_none() { Some(Packed::of(layout, arguments)?) } else { None };
                let place = data.cast::<u8>().wrapping_offset(piece.unwrap_or(0));
                let place = packed.as_mut().map_or(place, |packed| packed.bytes.as_mut_ptr());
                Work::Planned(planned.begin(plan, Arguments::of_message(place, layout.size * items, root))?, packed)
            }
            (None, _) => {
                // an empty slice's address may be 1, which is MPI_IN_PLACE in some libraries
                let data = if count == 0 { null_mut() } else { data };
                begun("MPI_Ibcast", Vec::new(), |request| native::PMPI_Ibcast(data, count, datatype, root as c_int, comm, request))?
            }
        }
    };
    Ok(Pending::new(work, scope))
}

/// Begins an allreduce.
///
/// # Safety
/// The arguments must be valid for `MPI_Allreduce`, and the items and the operation be lent for the scope's lifetime.
///
/// # Errors
/// MPI's reason.
pub(super) unsafe fn iallreduce<'a, S: Scope<'a>>(arguments: allreduce::Arguments, scope: S) -> Result<Pending<'a, S>> {
    let allreduce::Arguments { output, count, datatype, op, comm, .. } = arguments;
    // SAFETY: the caller's arguments
    let work = unsafe {
        let layout = Layout::of(datatype)?;
        let items = count.max(0) as usize;
        let piece = layout.one_piece(items).filter(|_| layout.size * items > 0);
        let found = if piece.is_some() { planned(arguments.call(), layout)? } else { None };
        match (found, piece) {
            (Some((planned, plan)), Some(start)) => Work::Planned(planned.begin(plan, arguments.at(layout, start))?, None),
            _ => {
                let (copy, input) = arguments.given(layout);
                begun("MPI_Iallreduce", copy, |request| native::PMPI_Iallreduce(input, output, count, datatype, op, comm, request))?
            }
        }
    };
    Ok(Pending::new(work, scope))
}

/// Begins a barrier.
///
/// # Safety
/// `comm` must be valid.
///
/// # Errors
/// MPI's reason.
pub(super) unsafe fn ibarrier(comm: MPI_Comm) -> Result<Pending<'static>> {
    // SAFETY: a constant of the library: of no bytes any datatype does; the caller vouches for the communicator
    let work = unsafe {
        let byte = ffi::RSMPI_UINT8_T;
        match planned(Call::new(&collective::barrier::COLLECTIVE, comm, byte, 0, 0), Layout::of(byte)?)? {
            Some((planned, plan)) => Work::Planned(planned.begin(plan, Arguments::of_message(null_mut(), 0, 0))?, None),
            None => begun("MPI_Ibarrier", Vec::new(), |request| native::PMPI_Ibarrier(comm, request))?,
        }
    };
    Ok(Pending::new(work, StaticScope))
}
