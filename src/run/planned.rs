//! A communicator with plans, and how one is run.

use super::notice::{Reason, Why, once};
use super::quick::Message;
use super::settings;
use super::team::Place;
use super::under_way::{self, Shared, UnderWay};
use super::world_rank;
use crate::collective::{Collective, NativeCall, Shape, Step};
use crate::error::{Error, Result};
use crate::library::Library;
use crate::plan;
use crate::schedule::{Elements, Program, Trace};
use crate::topology::Rank;
use crate::transport::library::{self, Arguments};
use crate::transport::mpi::{MpiTransport, check, library_version, now, processor_name};
use crate::transport::{Buffers, Executor, Tag, Task, Transport, native};
use mpi::ffi;
use std::os::raw::c_int;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

#[cfg(all(test, feature = "tune"))]
mod tests;

/// A communicator with plans.
pub(super) struct Planned {
    /// The communicator itself.
    comm: ffi::MPI_Comm,
    place: Place,
    transport: Members,
    executor: Executor<ffi::MPI_Request>,
    /// Of what does not block, and of what failed.
    shared: Arc<Shared>,
}

/// The members of a team, where their messages go through a communicator that numbers them otherwise.
#[derive(Clone)]
pub(super) struct Members {
    through: MpiTransport,
    rank: Rank,
    peers: Option<Arc<[c_int]>>,
}

impl Members {
    #[inline]
    fn peer(&self, rank: Rank) -> Rank {
        self.peers.as_ref().map_or(rank, |peers| peers[rank] as Rank)
    }
}

impl Transport for Members {
    type Request = ffi::MPI_Request;

    fn rank(&self) -> Rank {
        self.rank
    }

    fn now(&self) -> f64 {
        self.through.now()
    }

    fn delay(&mut self, seconds: f64) {
        self.through.delay(seconds);
    }

    #[inline]
    unsafe fn send(&mut self, to: Rank, tag: Tag, data: *const u8, len: usize) -> Result<ffi::MPI_Request> {
        // SAFETY: the caller's
        unsafe { self.through.send(self.peer(to), tag, data, len) }
    }

    unsafe fn send_synchronous(&mut self, to: Rank, tag: Tag, data: *const u8, len: usize) -> Result<ffi::MPI_Request> {
        // SAFETY: the caller's
        unsafe { self.through.send_synchronous(self.peer(to), tag, data, len) }
    }

    #[inline]
    unsafe fn receive(&mut self, from: Rank, tag: Tag, data: *mut u8, len: usize) -> Result<ffi::MPI_Request> {
        // SAFETY: the caller's
        unsafe { self.through.receive(self.peer(from), tag, data, len) }
    }

    #[inline]
    unsafe fn blocking_send(&mut self, to: Rank, tag: Tag, data: *const u8, len: usize) -> Result<()> {
        // SAFETY: the caller's
        unsafe { self.through.blocking_send(self.peer(to), tag, data, len) }
    }

    #[inline]
    unsafe fn blocking_receive(&mut self, from: Rank, tag: Tag, data: *mut u8, len: usize) -> Result<()> {
        // SAFETY: the caller's
        unsafe { self.through.blocking_receive(self.peer(from), tag, data, len) }
    }

    #[inline]
    fn wait(&mut self, request: ffi::MPI_Request) -> Result<()> {
        self.through.wait(request)
    }

    #[inline]
    fn test(&mut self, request: ffi::MPI_Request) -> Result<bool> {
        self.through.test(request)
    }

    #[inline]
    fn wait_any(&mut self, requests: &mut [ffi::MPI_Request]) -> Result<usize> {
        self.through.wait_any(requests)
    }
}

impl Drop for Planned {
    /// What is under way completes, as MPI has it of a communicator that is freed. Messages that are still open after an error keep their tags.
    fn drop(&mut self) {
        under_way::leave(self.comm);
        if self.shared.has_failed() {
            self.place.keep_tags();
        }
    }
}

impl Planned {
    /// Of a communicator with its place in a team, as its member `rank`.
    pub fn new(comm: ffi::MPI_Comm, place: Place, rank: Rank) -> Planned {
        let team = &place.team;
        // SAFETY: the communicator lives as long as the team
        let through = unsafe { MpiTransport::of_rank(team.comm, team.peer(rank) as Rank) };
        let transport = Members { through, rank, peers: team.peers.clone() };
        Planned { comm, place, transport, executor: Executor::default(), shared: Arc::default() }
    }

    /// What to do for a shape, which is asked for with the number of ranks.
    ///
    /// Where nothing can be planned, which all ranks find alike, the library's own is.
    pub fn planned(&self, collective: &'static Collective, shape: impl FnOnce(usize) -> Shape) -> Arc<plan::Planned> {
        let ranks = self.place.team.ranks.len();
        let planned = self.place.team.planned(collective, &shape(ranks));
        planned.unwrap_or_else(|e| {
            if self.transport.rank == 0 {
                Reason::new(Why::Plan, format!("failed to {e}")).tell_once(ranks);
            }
            Arc::new(plan::Planned::Native)
        })
    }

    /// What is done for so many bytes, in a line, and the seconds that it should take, if that is known.
    ///
    /// # Errors
    /// There is no such root, or as [`crate::plan::plan`].
    pub fn explain(&self, collective: &'static Collective, root: Rank, bytes: usize) -> Result<(String, Option<f64>)> {
        let team = &self.place.team;
        team.explain(collective, &collective.shape(team.ranks.len(), root, bytes))
    }

    /// The policy's group of each rank.
    pub fn groups(&self) -> Vec<usize> {
        self.place.team.groups()
    }

    /// Does one step after the other.
    ///
    /// # Safety
    /// The buffers must be as large as the collective's layout says.
    ///
    /// # Errors
    /// MPI's reason, after the communicator's error handler was called.
    pub unsafe fn run(&mut self, collective: &Collective, steps: &[Step], arguments: &Arguments) -> Result<()> {
        // what a step sent is received before its receiver goes on to the next: one tag does for all
        let tag = self.place.next_tag();
        under_way::finish(self.comm, Some(tag));
        self.shared.check(tag)?;
        // SAFETY: the caller vouches for the buffers
        let done = steps.iter().try_for_each(|step| match step {
            Step::Program(program) => unsafe { self.run_program((collective, program), arguments, tag).map_err(|e| handled(self.comm, e)) },
            Step::Native(call) => unsafe { self.call_native(call, arguments, tag) },
        });
        if done.is_err() {
            // messages that are still open keep the memory that they go to
            std::mem::forget(std::mem::take(&mut self.executor));
            self.shared.lose(tag);
        }
        done
    }

    /// Does what [`Planned::run`] does, where that is one message on this rank and nothing is under way.
    ///
    /// # Safety
    /// The message's bytes must be where it says, behind that address.
    ///
    /// # Errors
    /// As there.
    #[inline(always)]
    pub unsafe fn message(&mut self, message: &Message, base: *mut u8) -> Result<()> {
        let &Message { sends, offset, count, peer, lane, .. } = message;
        let data = base.wrapping_offset(offset);
        let first = self.place.next_tag();
        if self.shared.has_failed() {
            self.shared.check(first)?;
        }
        let (tag, comm) = ((first + lane) as c_int, self.transport.through.comm());
        // SAFETY: the caller's; a constant of the library
        let (function, code) = unsafe {
            let byte = ffi::RSMPI_UINT8_T;
            match sends {
                true => ("MPI_Send", native::PMPI_Send(data.cast(), count, byte, peer, tag, comm)),
                false => ("MPI_Recv", native::PMPI_Recv(data.cast(), count, byte, peer, tag, comm, ffi::RSMPI_STATUS_IGNORE)),
            }
        };
        if code == ffi::MPI_SUCCESS as c_int { Ok(()) } else { self.message_failed(first, function, code) }
    }

    #[cold]
    fn message_failed(&self, tag: Tag, function: &'static str, code: c_int) -> Result<()> {
        self.shared.lose(tag);
        check(function, code).map_err(|e| handled(self.comm, e))
    }

    /// What a member is called where messages go through.
    pub fn peer(&self, rank: Rank) -> c_int {
        self.transport.peer(rank) as c_int
    }

    /// Begins what [`Planned::run`] does, by messages alone: making a communicator for the library's own collective among some ranks would wait for them.
    ///
    /// # Safety
    /// As [`Planned::run`], until it is over.
    ///
    /// # Errors
    /// Nothing takes the place of the library's own collective in a step.
    pub unsafe fn begin(
        &mut self,
        collective: &'static Collective,
        plan: Arc<plan::Planned>,
        arguments: Arguments,
    ) -> Result<Arc<UnderWay>> {
        let tag = self.place.next_tag();
        let plan = self.by_messages(plan, &arguments)?;
        let transport = (self.transport.clone(), self.place.team.ranks.len());
        // SAFETY: the caller's; the communicator of the messages lives until all is over
        Ok(unsafe { UnderWay::begin((self.comm, tag), transport, (collective, plan), arguments, &self.shared) })
    }

    /// A plan in which programs take the place of the library's own collectives.
    fn by_messages(&self, plan: Arc<plan::Planned>, arguments: &Arguments) -> Result<Arc<plan::Planned>> {
        let plan::Planned::Run(steps) = &*plan else { return Ok(plan) };
        if steps.iter().all(|step| matches!(step, Step::Program(_))) {
            return Ok(plan);
        }
        let by_messages = |step: &Step| match step {
            Step::Program(program) => Ok(Step::Program(program.clone())),
            Step::Native(call) => Ok(Step::Program(self.instead(call, arguments)?)),
        };
        Ok(Arc::new(plan::Planned::Run(steps.iter().map(by_messages).collect::<Result<_>>()?)))
    }

    /// What takes the place of the library's own collective among some ranks.
    fn instead(&self, call: &NativeCall, arguments: &Arguments) -> Result<Program> {
        let elements = arguments.operation.map_or(Elements::default(), |operation| operation.elements());
        call.program(self.transport.rank, arguments.bytes, elements)
    }

    unsafe fn run_program(&mut self, (collective, program): (&Collective, &Program), arguments: &Arguments, tag: Tag) -> Result<()> {
        let mut trace = trace_of(program);
        // SAFETY: the caller's
        unsafe { self.execute(program, arguments, tag, trace.as_mut())? };
        keep_trace((collective, program), trace, arguments, self.place.team.ranks.len());
        Ok(())
    }

    unsafe fn execute(&mut self, program: &Program, arguments: &Arguments, tag: Tag, trace: Option<&mut Trace>) -> Result<()> {
        let combine = |left: &[u8], into: &mut [u8]| arguments.combine(left, into);
        // SAFETY: the caller's
        unsafe {
            let mut task = Task::new(program).combining(&combine).traced(trace);
            if !under_way::any() {
                return self.executor.run(&mut self.transport, &mut task, arguments.buffers, tag);
            }
            self.executor.start(&mut self.transport, &mut task, arguments.buffers, tag)?;
            // a rank may wait for what is under way before it comes here
            while under_way::any() {
                if self.executor.progress(&mut self.transport, &mut task)? {
                    return Ok(());
                }
                under_way::progress();
                std::thread::yield_now();
            }
            self.executor.finish(&mut self.transport, &mut task)
        }
    }

    /// The library's own collective among some ranks, or where these cannot have a communicator what is taken where nothing is known.
    unsafe fn call_native(&mut self, call: &NativeCall, arguments: &Arguments, tag: Tag) -> Result<()> {
        let output = Buffers::in_place(arguments.buffers.output(), arguments.buffers.output_len());
        let buffers = if call.in_place { output } else { arguments.buffers };
        let arguments = Arguments { buffers, root: call.root, ..*arguments };
        under_way::finish(self.comm, None);
        if call.ranks.iter().copied().eq(0..self.place.team.ranks.len()) {
            // the communicator's own members: it serves, and its error handler is called by the library
            // SAFETY: the caller's; no other collective is under way on it
            return unsafe { library::run(call.collective, &arguments, self.comm) };
        }
        // SAFETY: the caller's
        unsafe { self.call_among(call, &arguments, tag) }.map_err(|e| handled(self.comm, e))
    }

    unsafe fn call_among(&mut self, call: &NativeCall, arguments: &Arguments, tag: Tag) -> Result<()> {
        if let Some(comm) = self.place.among(&call.ranks)? {
            // plans keep what is sent so below what an `int` counts
            // SAFETY: the caller's
            return unsafe { library::run(call.collective, arguments, comm) };
        }
        let program = self.instead(call, arguments)?;
        // SAFETY: the caller's; the messages before are complete, those of one pair of ranks stay in order
        unsafe { self.execute(&program, arguments, tag, None) }
    }
}

/// Where the times of a program's operations go, if they are wanted.
pub(super) fn trace_of(program: &Program) -> Option<Trace> {
    settings::trace_folder().map(|_| Trace::new(program.len()))
}

/// Writes them, if they are wanted. What is communicated does not hang on what can be written.
pub(super) fn keep_trace(of: (&Collective, &Program), trace: Option<Trace>, arguments: &Arguments, ranks: usize) {
    if let (Some(folder), Some(trace)) = (settings::trace_folder(), trace)
        && let Err(e) = write_trace(folder, of, &trace, arguments, ranks)
    {
        once(Why::Trace, || format!("failed to {e}; this rank goes on without its trace"));
    }
}

/// When this process's clock began, in seconds of the system's: libraries let one begin with each process. Nothing where time is virtual, and all have one.
fn clock_began_s() -> Option<f64> {
    static BEGAN: OnceLock<Option<f64>> = OnceLock::new();
    *BEGAN.get_or_init(|| {
        let is_virtual = Library::of(&library_version()) == Library::Smpi;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).ok().filter(|_| !is_virtual)?;
        Some(since_1970.as_secs_f64() - now())
    })
}

/// This process's host.
fn host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(processor_name)
}

/// Appends what this rank did to its file in the trace folder: a JSON line for each collective, with each operation's start and
/// end on this rank's clock.
fn write_trace(
    folder: &Path,
    (collective, program): (&Collective, &Program),
    trace: &Trace,
    arguments: &Arguments,
    ranks: usize,
) -> Result<()> {
    use std::io::Write;
    let path = folder.join(format!("rank-{}.jsonl", world_rank()?));
    let actions: Vec<_> = program.actions().collect();
    let mut line = serde_json::json!({
        "collective": collective.name,
        "bytes": arguments.bytes,
        "ranks": ranks,
        "host": host(),
        "actions": actions,
        "start_s": trace.start,
        "end_s": trace.end,
    });
    if let Some(began) = clock_began_s() {
        line["clock_began_s"] = began.into();
    }
    if collective.rooted {
        line["root"] = arguments.root.into();
    }
    let written = std::fs::OpenOptions::new().create(true).append(true).open(&path).and_then(|mut file| writeln!(file, "{line}"));
    written.map_err(|reason| Error::Io { action: "write", path, reason })
}

/// Hands what failed on our private communicator, which returns errors, to the error handler of the caller's: what the program chose
/// happens, as with `MPI_Bcast`. Most programs chose nothing, and end. Where waiting has called MPI_COMM_WORLD's handler already, and the
/// caller's communicator has the same one, it is not called again.
#[cold]
pub(super) fn handled(comm: ffi::MPI_Comm, error: Error) -> Error {
    if let Error::Mpi { code, call, .. } = error {
        let waited = ["MPI_Wait", "MPI_Waitany", "MPI_Test"].contains(&call);
        // SAFETY: the caller's communicator and a constant of the library, a code that MPI returned
        unsafe {
            let called = waited && Library::of(&library_version()).waits_call_the_worlds_handler();
            if !called || handler_of(comm) != handler_of(ffi::RSMPI_COMM_WORLD) {
                native::PMPI_Comm_call_errhandler(comm, code);
            }
        }
    }
    error
}

/// A communicator's error handler, to be compared with another one's; `None` if it cannot be known.
unsafe fn handler_of(comm: ffi::MPI_Comm) -> Option<ffi::MPI_Errhandler> {
    // SAFETY: the caller vouches for the communicator; what is given is given back, and exists as long as it is the communicator's
    unsafe {
        let mut handler = ffi::RSMPI_ERRORS_RETURN;
        let asked = native::PMPI_Comm_get_errhandler(comm, &mut handler);
        let found = (asked == ffi::MPI_SUCCESS as c_int).then_some(handler)?;
        native::PMPI_Errhandler_free(&mut handler);
        Some(found)
    }
}
