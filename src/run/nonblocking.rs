//! Adaptive collectives that do not block: begun by all ranks of a communicator in the same order, completed by each when it wants.
//!
//! They go by the plans of the blocking ones. A communicator that has none, where setting one up would wait for other ranks, and what a blocking call
//! leaves to the library, use the library's own non-blocking collectives. All ranks find that alike, since plans come with blocking calls alone.

use super::call::{Call, Copies, Prepared};
use super::communicator;
use super::planned::{Planned, handled};
use super::under_way::{self, UnderWay};
use crate::error::Result;
use crate::plan;
use crate::transport::library;
use crate::transport::mpi::check;
use crate::transport::native;
use mpi::ffi::{self, MPI_Comm, MPI_Request};
use mpi::request::{Scope, StaticScope};
use std::marker::PhantomData;
use std::os::raw::c_int;
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
    /// Our plan, with what is brought to its place at the end.
    Planned(Arc<UnderWay>, Copies),
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
            // SAFETY: the items are lent until here
            (Ok(()), Some(Work::Planned(_, copies))) => unsafe { copies.take_back() },
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

/// The library's own non-blocking collective.
pub(super) struct Immediate {
    function: &'static str,
    begin: unsafe fn(&library::Call, MPI_Comm, &mut MPI_Request) -> c_int,
}

// SAFETY of all: the caller's
pub(super) static IBCAST: Immediate = Immediate {
    function: "MPI_Ibcast",
    begin: |c, comm, request| unsafe { native::PMPI_Ibcast(c.output, c.got.0, c.got.1, c.root, comm, request) },
};
pub(super) static IALLREDUCE: Immediate = Immediate {
    function: "MPI_Iallreduce",
    begin: |c, comm, request| unsafe { native::PMPI_Iallreduce(c.input, c.output, c.got.0, c.got.1, c.op, comm, request) },
};
pub(super) static IBARRIER: Immediate =
    Immediate { function: "MPI_Ibarrier", begin: |_, comm, request| unsafe { native::PMPI_Ibarrier(comm, request) } };

impl Pending<'static> {
    /// What the library has begun by itself.
    pub(super) fn of_the_library(request: MPI_Request) -> Pending<'static> {
        Pending::new(Work::Native { request, _given: Vec::new() }, StaticScope)
    }
}

/// Begins a call: by its plan, or as the library does it.
///
/// # Safety
/// The items must be valid for MPI's function, and they and the operation be lent for the scope's lifetime.
///
/// # Errors
/// As the blocking call.
pub(super) unsafe fn begin<'a, S: Scope<'a>>(call: &Call, library: &Immediate, scope: S) -> Result<Pending<'a, S>> {
    let asked = &call.asked;
    // SAFETY: the caller's arguments; MPI has calls on a communicator begin one after the other
    let work = unsafe {
        let prepared = Prepared::new(asked)?;
        let found = if prepared.may_be_planned() { communicator::planned(asked.comm)? } else { None };
        let plan = |planned: &mut Planned| planned.planned(asked.collective, |ranks| prepared.shape(asked, ranks));
        let found = found.map(|planned| (plan(planned), planned));
        match found {
            Some((plan, planned)) if matches!(*plan, plan::Planned::Run(_)) => {
                let (arguments, copies) = prepared.lend(call)?;
                Work::Planned(planned.begin(call.asked.collective, plan, arguments)?, copies)
            }
            _ => {
                let (own, copy) = prepared.for_the_library(call);
                // SAFETY: a constant of the library
                let mut request = ffi::RSMPI_REQUEST_NULL;
                check(library.function, (library.begin)(&own, asked.comm, &mut request))?;
                Work::Native { request, _given: copy }
            }
        }
    };
    Ok(Pending::new(work, scope))
}
