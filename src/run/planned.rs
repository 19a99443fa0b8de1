//! A communicator with plans, and how one is run.

use super::notice::{Why, once};
use super::settings;
use super::team::Place;
use super::world_rank;
use crate::collective::Collective;
use crate::collective::{Parameters, Shape, bcast};
use crate::error::{Error, Result};
use crate::plan;
use crate::schedule::{Program, Trace};
use crate::topology::Rank;
use crate::transport::mpi::{MpiTransport, check};
use crate::transport::native;
use crate::transport::{Executor, Tag, Transport};
use mpi::ffi;
use std::os::raw::{c_int, c_void};
use std::path::Path;
use std::sync::Arc;

/// A communicator with plans.
pub(super) struct Planned {
    place: Place,
    transport: Members,
    executor: Executor<ffi::MPI_Request>,
}

/// The members of a team, where their messages go through a communicator that numbers them otherwise.
struct Members {
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

    #[inline]
    unsafe fn receive(&mut self, from: Rank, tag: Tag, data: *mut u8, len: usize) -> Result<ffi::MPI_Request> {
        // SAFETY: the caller's
        unsafe { self.through.receive(self.peer(from), tag, data, len) }
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

impl Planned {
    /// With its place in a team, as its member `rank`.
    pub fn new(place: Place, rank: Rank) -> Planned {
        let team = &place.team;
        // SAFETY: the communicator lives as long as the team
        let through = unsafe { MpiTransport::of_rank(team.comm, team.peer(rank) as Rank) };
        let transport = Members { through, rank, peers: team.peers.clone() };
        Planned { place, transport, executor: Executor::default() }
    }

    /// What to do for a size and root.
    ///
    /// # Errors
    /// The policy lacks what the plan needs.
    pub fn planned(&self, collective: &'static Collective, bytes: usize, root: Rank) -> Result<Arc<plan::Planned>> {
        self.place.team.planned(collective, bytes, root)
    }

    /// The policy's group of each rank.
    pub fn groups(&self) -> Vec<usize> {
        self.place.team.groups()
    }

    /// Runs a program, and the library's own broadcast inside this rank's group after it, from the rank `then_from`.
    ///
    /// # Safety
    /// `data` must be valid for reads and writes of `len` bytes.
    ///
    /// # Errors
    /// MPI's reason.
    pub unsafe fn run(&mut self, program: &Program, then_from: Option<Rank>, data: *mut u8, len: usize) -> Result<()> {
        let mut trace = settings::trace_folder().map(|_| Trace::new(program.len()));
        let tag = self.place.next_tag();
        // SAFETY: the caller vouches for `data`
        unsafe {
            self.execute(program, data, len, tag, trace.as_mut())?;
            if let Some(root) = then_from {
                self.broadcast_inside(root, data, len, tag)?;
            }
        }
        // what is communicated does not hang on what can be written
        if let (Some(folder), Some(trace)) = (settings::trace_folder(), trace)
            && let Err(e) = self.write_trace(folder, program, &trace, len)
        {
            once(Why::Trace, || format!("failed to {e}; this rank goes on without its trace"));
        }
        Ok(())
    }

    unsafe fn execute(&mut self, program: &Program, data: *mut u8, len: usize, tag: Tag, mut trace: Option<&mut Trace>) -> Result<()> {
        // SAFETY: the caller's
        unsafe {
            self.executor.start(&mut self.transport, program, data, len, tag, trace.as_deref_mut())?;
            self.executor.finish(&mut self.transport, program, trace)
        }
    }

    /// The library's own broadcast inside this rank's group, or where it cannot have a communicator one by a tree.
    unsafe fn broadcast_inside(&mut self, root: Rank, data: *mut u8, len: usize, tag: Tag) -> Result<()> {
        let members = &self.place.team.group;
        let position = |rank: Rank| members.iter().position(|&r| r == rank).ok_or_else(|| Error::invalid("find a rank in its own group"));
        let (root, me) = (position(root)?, position(self.transport.rank)?);
        if let Some(comm) = self.place.inside()? {
            // plans keep what is broadcast so below what an `int` counts
            // SAFETY: the caller's
            let code = unsafe { native::PMPI_Bcast(data.cast::<c_void>(), len as c_int, ffi::RSMPI_UINT8_T, root as c_int, comm) };
            return check("MPI_Bcast", code);
        }
        let build = bcast::algorithm("binomial")?.builder.ok_or_else(|| Error::invalid("build a tree"))?;
        let shape = Shape { ranks: members.len(), root, bytes: len };
        let program = build(me, &shape, &Parameters::default()).renamed(|r| members[r]);
        // SAFETY: the caller's; the messages before are complete, those of one pair of ranks stay in order
        unsafe { self.execute(&program, data, len, tag, None) }
    }

    /// Appends what this rank did to its file in the trace folder: a JSON line for each broadcast, with each operation's start and
    /// end on this rank's clock.
    fn write_trace(&self, folder: &Path, program: &Program, trace: &Trace, bytes: usize) -> Result<()> {
        use std::io::Write;
        let path = folder.join(format!("rank-{}.jsonl", world_rank()?));
        let actions: Vec<_> = program.actions().collect();
        let ranks = self.place.team.ranks.len();
        let line = serde_json::json!({ "bytes": bytes, "ranks": ranks, "actions": actions, "start_s": trace.start, "end_s": trace.end });
        let written = std::fs::OpenOptions::new().create(true).append(true).open(&path).and_then(|mut file| writeln!(file, "{line}"));
        written.map_err(|reason| Error::Io { action: "write", path, reason })
    }
}
