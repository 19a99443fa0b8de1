//! Measuring over MPI: rank 0 drives, the others serve. The driver hands out to each rank its parts in some batches, the ranks play them, the
//! times come home.
#![allow(unsafe_code)] // MPI's C interface

use super::collectives::{Timing, Together};
use super::place::{allowed_processors, same_system, system};
use super::rounds::READY;
use super::stamps::Timed;
use super::warmth::Warmth;
use super::{Experiment, Part, Probe, Runs, SAMPLE_FORMAT, Settings, hosts_said, parts};
use crate::collective::{Collective, NativeCall, Step};
use crate::error::{Error, Result};
use crate::library::Library;
use crate::schedule::{Layout, Program, Trace};
use crate::stats;
use crate::topology::Rank;
use crate::transport::clocks::Clocks;
use crate::transport::library::{self, Arguments, Operation};
use crate::transport::mpi::{MpiTransport, abort, check, gather_names, gather_texts, library_version, now};
use crate::transport::{Buffers, Control, Executor, Task, Transport, native};
use mpi::ffi;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::os::raw::c_int;

/// What the driver asks of a rank.
#[derive(serde::Serialize, serde::Deserialize)]
enum Order {
    Run { parts: Vec<Part>, runs: Wanted },
    SetUp { hosts: Vec<String> },
    Stop,
}

/// How often parts are run, and how.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
struct Wanted {
    repetitions: usize,
    /// So many calls in a row make a run of a collective.
    calls: usize,
    /// See [`Probe::as_called`].
    called: bool,
}

/// The driver's probe, on rank 0; dropped, it lets the others go.
pub struct MpiProbe {
    player: Player,
    settings: Settings,
    began: f64,
    warmth: Warmth,
    /// See [`Probe::as_called`].
    called: bool,
    /// By whom collectives were called, with the library's own among some of them or without: first calls set communicators up.
    called_by: FxHashSet<(Vec<Rank>, bool)>,
    /// It was said that clocks drift too far.
    warned: bool,
}

/// The memory of one rank: as large as any experiment so far wanted, zeros, whose sums are zeros.
#[derive(Default)]
struct Memory {
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Memory {
    fn make_room(&mut self, layout: Layout) {
        for (buffer, wanted) in [(&mut self.input, layout.input), (&mut self.output, layout.output)] {
            buffer.resize(buffer.len().max(wanted), 0);
        }
    }

    /// What an experiment's collective, or its program, is called with.
    fn arguments(&mut self, experiment: &Experiment) -> Arguments {
        let operation = experiment.combined().map(Operation::measured);
        Arguments { buffers: Buffers::of(&self.input, &mut self.output), bytes: experiment.bytes(), root: 0, operation }
    }
}

/// How a program's calls go by a policy.
#[derive(Clone, Copy)]
pub struct Runtime {
    /// Sets a communicator of these hosts up as theirs are, and says how many seconds that took; none where it was not done.
    pub set_up: fn(ffi::MPI_Comm, &[String]) -> Result<Option<f64>>,
    /// What carries a collective out by some steps.
    pub call: BySteps,
}

/// What carries a collective out by these steps, in buffers of this layout, on a communicator of ranks that were set up, as a call of a program's does; none
/// where that has no plans. Collective.
pub type BySteps = fn(ffi::MPI_Comm, &'static Collective, Vec<Step>, Layout, &Arguments) -> Result<Option<Called>>;

/// A call.
pub type Called = Box<dyn Fn() -> Result<()>>;

/// What a rank does in an experiment.
struct OwnPart {
    members: Vec<Rank>,
    /// Of this rank among the members.
    position: usize,
    program: Program,
    layout: Layout,
    /// The same for a program's call, among its ranks' positions; where that is wanted.
    steps: Vec<Step>,
}

/// What one rank needs to play its parts.
struct Player {
    runtime: Runtime,
    /// What setting a communicator up took, if that was done; none where none was.
    set_up: Option<Option<f64>>,
    transport: MpiTransport,
    executor: Executor<ffi::MPI_Request>,
    buffers: Memory,
    clocks: Clocks,
    /// Communicators of those who called collectives.
    groups: FxHashMap<Vec<Rank>, ffi::MPI_Comm>,
    /// By root and members: how long all take at least to answer the root, where collectives began together.
    answered_s: FxHashMap<(Rank, Vec<Rank>), f64>,
    /// The library lets no message leave before its receive is posted: a first run would wait for those who hear late that it begins.
    sends_wait_for_receives: bool,
}

/// Starts measuring on a communicator: rank 0 gets the probe, every other rank serves until rank 0 is done and then gets `None`.
/// Collective; `comm` must be private to this. `declared`: the user says on which hosts the ranks are. `runtime` is timed by [`Probe::set_up`],
/// and makes [calls](Probe::as_called).
///
/// # Safety
/// `comm` must be a valid intra-communicator until the probe is dropped or this returns `None`.
///
/// # Errors
/// MPI's reason, or a rank whose host has no name. An error while serving ends the job: the others could only wait for this rank.
pub unsafe fn start(comm: ffi::MPI_Comm, platform: &str, declared: bool, runtime: Runtime) -> Result<Option<MpiProbe>> {
    // SAFETY: the caller vouches for `comm`
    let transport = unsafe { MpiTransport::new(comm)? };
    let hosts = match hosts_said(gather_names(comm)?, declared) {
        Ok(hosts) => hosts,
        // all were told the same: the first says what is wrong, and nobody waits for it
        Err(e) if transport.rank() == 0 => return Err(e),
        Err(_) => return Ok(None),
    };
    // before anyone serves: all ranks take part
    let placement = gather_texts(comm, &allowed_processors())?;
    let library = library_version();
    let mut player = Player {
        runtime,
        set_up: None,
        transport,
        executor: Executor::default(),
        buffers: Memory::default(),
        clocks: Clocks::with_same_system(same_system(&gather_texts(comm, &system())?, transport.rank())),
        groups: FxHashMap::default(),
        answered_s: FxHashMap::default(),
        sends_wait_for_receives: Library::of(&library) == Library::Smpi,
    };
    if transport.rank() > 0 {
        if let Err(e) = player.serve() {
            abort(&format!("failed to {e}"));
        }
        return Ok(None);
    }
    let settings = Settings {
        format: SAMPLE_FORMAT,
        platform: platform.into(),
        hosts,
        library,
        timer: "MPI_Wtime".into(),
        date: crate::units::utc_now(),
        build: super::BUILD.into(),
        placement,
    };
    Ok(Some(MpiProbe {
        player,
        settings,
        began: now(),
        warmth: Warmth::default(),
        called: false,
        called_by: FxHashSet::default(),
        warned: false,
    }))
}

impl Probe for MpiProbe {
    fn settings(&self) -> Settings {
        self.settings.clone()
    }

    fn run(&mut self, batches: &[Vec<Experiment>], repetitions: usize) -> Result<Vec<Runs>> {
        if self.called {
            self.set_up()?;
        }
        let mut failed = Ok(());
        let warms_up = |e: &Experiment| {
            let said = self.warmth.warms_up(e);
            let first = self.called && self.called_by.insert((e.ranks(), e.is_native()));
            said.map_err(|e| failed = Err(e)).unwrap_or(true) || first
        };
        let parts = parts(batches, &self.settings.hosts, warms_up);
        failed?;
        let all = self.play(batches, parts, Wanted { repetitions, calls: 1, called: self.called })?;
        for (experiment, timed) in batches.iter().flatten().zip(&all) {
            let run = stats::median(&timed.seconds).unwrap_or(f64::INFINITY);
            self.warmth.took(experiment, run);
            if timed.is_adrift() && !std::mem::replace(&mut self.warned, true) {
                tracing::warn!(
                    "the clocks of ranks {:?} may have drifted by {:.1} us in runs of {:.1} us, more than a tenth: samples keep how far off they \
                     may be (clock_error_s)",
                    experiment.ranks(),
                    timed.drift_s * 1e6,
                    run * 1e6
                );
            }
        }
        Ok(all.into_iter().map(|timed| Runs { seconds: timed.seconds, clock_error_s: timed.error_s }).collect())
    }

    fn as_called(&mut self, called: bool) {
        self.called = called;
    }

    fn in_a_row(&mut self, batches: &[Vec<Experiment>], calls: usize) -> Result<Vec<Runs>> {
        self.set_up()?;
        // nobody is late for the first run of each
        let mut warm = FxHashSet::default();
        let parts = parts(batches, &self.settings.hosts, |e| warm.insert(e.clone()));
        let all = self.play(batches, parts, Wanted { repetitions: 1, calls, called: true })?;
        let a_call = |seconds: f64| seconds / calls as f64;
        Ok(all
            .into_iter()
            .map(|t| Runs { seconds: t.seconds.into_iter().map(a_call).collect(), clock_error_s: a_call(t.error_s) })
            .collect())
    }

    fn has_native(&self) -> bool {
        true
    }

    fn set_up(&mut self) -> Result<Option<f64>> {
        if self.player.set_up.is_none() {
            let hosts = &self.settings.hosts;
            self.player.order((1..hosts.len()).map(|r| (r, Order::SetUp { hosts: hosts.clone() })).collect())?;
            self.player.set_up(hosts)?;
        }
        Ok(self.player.set_up.flatten())
    }

    fn elapsed(&self) -> f64 {
        now() - self.began
    }
}

impl MpiProbe {
    /// Hands out its parts to each rank, and gives what came home of each experiment, in order: what so many calls in a row took, so many times.
    fn play(&mut self, batches: &[Vec<Experiment>], mut parts: BTreeMap<Rank, Vec<Part>>, runs: Wanted) -> Result<Vec<Timed>> {
        let own = parts.remove(&0).unwrap_or_default();
        self.player.order(parts.into_iter().map(|(r, parts)| (r, Order::Run { parts, runs })).collect())?;
        let clock = |e: &Experiment| e.ranks()[e.timer()];
        // each rank sends all its times at once, when it is through
        let (mut times, each) = (FxHashMap::from_iter([(0, self.player.play(own, runs)?)]), runs.repetitions + UNCERTAIN);
        let mut counts: BTreeMap<Rank, usize> = BTreeMap::new();
        batches.iter().flatten().for_each(|e| *counts.entry(clock(e)).or_default() += each);
        let wanted: Vec<(Rank, usize)> = counts.into_iter().filter(|(r, _)| *r > 0).collect();
        times.extend(wanted.iter().map(|w| w.0).zip(self.player.transport.receive_times_of_each(&wanted)?));
        let mut rest: FxHashMap<Rank, &[f64]> = times.iter().map(|(&r, t)| (r, &t[..])).collect();
        let of = |e: &Experiment| {
            let rest = rest.get_mut(&clock(e))?;
            let (own, later) = rest.split_at_checked(each)?;
            *rest = later;
            let (seconds, uncertain) = own.split_at_checked(runs.repetitions)?;
            Some(Timed { seconds: seconds.to_vec(), error_s: uncertain[0], drift_s: uncertain[1] })
        };
        let all: Option<Vec<Timed>> = batches.iter().flatten().map(of).collect();
        all.ok_or_else(|| Error::data("measure: a rank gave fewer times than it was asked for"))
    }
}

impl Drop for MpiProbe {
    fn drop(&mut self) {
        let everybody = 1..self.settings.hosts.len();
        if let Err(e) = self.player.order(everybody.map(|r| (r, Order::Stop)).collect()) {
            tracing::error!("failed to {e}");
        }
    }
}

/// From so many bytes on one rank, some are through long before the last one is, and what they go on with takes processors and links from that. Waiting for
/// each other takes two latencies, which is little beside runs so long.
const LONG: usize = 1 << 20;

/// After its times, what is told of each experiment: how far off clocks may be, and how much of that is drift.
const UNCERTAIN: usize = 2;

impl Player {
    fn serve(&mut self) -> Result<()> {
        loop {
            let text = self.transport.receive_text(0)?;
            match serde_json::from_slice(&text).map_err(|e| Error::invalid(format!("understand the driver: {e}")))? {
                Order::Stop => return Ok(()),
                Order::SetUp { hosts } => self.set_up(&hosts)?,
                Order::Run { parts, runs } => {
                    let times = self.play(parts, runs)?;
                    if !times.is_empty() {
                        self.transport.send_times(0, &times)?;
                    }
                }
            }
        }
    }

    fn set_up(&mut self, hosts: &[String]) -> Result<()> {
        self.set_up = Some((self.runtime.set_up)(self.transport.comm(), hosts)?);
        Ok(())
    }

    fn order(&mut self, orders: Vec<(Rank, Order)>) -> Result<()> {
        let text = |order: &Order| serde_json::to_vec(order).map_err(|e| Error::invalid(format!("hand out a batch: {e}")));
        let texts: Vec<(Rank, Vec<u8>)> = orders.iter().map(|(r, order)| Ok((*r, text(order)?))).collect::<Result<_>>()?;
        self.transport.send_texts(&texts)
    }

    /// Plays this rank's parts; gives the times of those where its clock counts, and after each one's how uncertain they are. Some are made ready before, so
    /// that hardly anybody is late for one, or takes processors from who still is in the one before. A run of a collective is so many calls in a row.
    fn play(&mut self, parts: Vec<Part>, wanted: Wanted) -> Result<Vec<f64>> {
        let mut times = Vec::new();
        for parts in parts.chunks(READY) {
            // what runs in turns is there several times
            let mut ready: FxHashMap<&Experiment, OwnPart> = FxHashMap::default();
            for part in parts {
                if let Part::Play { experiment, .. } = part
                    && let Entry::Vacant(place) = ready.entry(experiment)
                {
                    place.insert(self.make_ready(experiment, wanted.called)?);
                }
            }
            for part in parts {
                match part {
                    Part::Play { experiment, warm_up, follows } => {
                        let runs = (usize::from(*warm_up), wanted);
                        times.extend(self.play_one(experiment, &ready[experiment], runs, *follows)?);
                    }
                    Part::Barrier(ranks) => self.transport.barrier(ranks)?,
                }
            }
        }
        Ok(times)
    }

    /// What this rank does in an experiment, with room for it.
    fn make_ready(&mut self, experiment: &Experiment, called: bool) -> Result<OwnPart> {
        let (members, me) = (experiment.ranks(), self.transport.rank());
        let place = |rank: Rank| members.iter().position(|&member| member == rank);
        let position = place(me).unwrap_or(0);
        let (program, mut steps) = (experiment.program(position)?, Vec::new());
        if called {
            let native =
                experiment.native(me).map(|call| NativeCall { ranks: call.ranks.iter().filter_map(|&r| place(r)).collect(), ..call });
            steps.extend(std::iter::once(Step::Program(program.clone())).chain(native.map(Step::Native)));
        }
        let (program, layout) = (program.renamed(|position| members[position]), experiment.layout(position));
        self.buffers.make_room(layout);
        Ok(OwnPart { position, program, layout, members, steps })
    }

    /// Runs an experiment so many times to warm up, and then so many times that count. Whoever is late for the first is waited for there, or, between two ranks
    /// where nothing warms up, before it begins; nobody is where it `follows` another one.
    fn play_one(&mut self, experiment: &Experiment, own: &OwnPart, (warm_ups, wanted): (usize, Wanted), follows: bool) -> Result<Vec<f64>> {
        let OwnPart { members, position, program, .. } = own;
        if experiment.is_collective() {
            return self.play_collective(experiment, own, (warm_ups, wanted), follows);
        }
        if warm_ups == 0 {
            self.transport.gather_at(members[experiment.timer()], members)?;
        }
        let mut times = Vec::with_capacity(wanted.repetitions);
        let mut trace = Trace::new(program.len());
        for run in 0..warm_ups + wanted.repetitions {
            self.execute(experiment, program, Some(&mut trace))?;
            if run >= warm_ups && *position == experiment.timer() {
                times.push(experiment.span(&trace));
            }
        }
        if *position == experiment.timer() {
            // it reads one clock
            times.extend([0.0; UNCERTAIN]);
        }
        Ok(times)
    }

    /// What carries a collective out as a program's call does: the library's own, or ours by way of the runtime. None where that has no plans.
    fn call(&mut self, experiment: &Experiment, OwnPart { members, layout, steps, .. }: &OwnPart) -> Result<Option<Called>> {
        let Some(collective) = experiment.collective() else { return Ok(None) };
        let arguments = self.buffers.arguments(experiment);
        if let (Experiment::Collective { .. }, Some(call)) = (experiment, experiment.native(self.transport.rank())) {
            let (comm, arguments) = (self.group(&call.ranks)?, Arguments { root: call.root, ..arguments });
            // SAFETY: the buffers are this player's own, with room for the layout; all members take part
            let ready = unsafe { library::Ready::new(collective, &arguments, comm)? };
            return Ok(Some(Box::new(move || ready.run())));
        }
        let arguments = if collective.rooted { Arguments { root: experiment.timer(), ..arguments } } else { arguments };
        (self.runtime.call)(self.group(members)?, collective, steps.clone(), *layout, &arguments)
    }

    /// Runs a collective, and the library's own after this rank's program where that ends in it.
    fn play_collective(
        &mut self,
        experiment: &Experiment,
        own: &OwnPart,
        (warm_ups, wanted): (usize, Wanted),
        follows: bool,
    ) -> Result<Vec<f64>> {
        let OwnPart { members, program, layout, .. } = own;
        let (me, root) = (self.transport.rank(), members[experiment.timer()]);
        let call = if wanted.called { self.call(experiment, own)? } else { None };
        let native = experiment.native(me).map(|call| Ok::<_, Error>((self.group(&call.ranks)?, call))).transpose()?;
        let Player { transport, executor, buffers, clocks, answered_s, .. } = self;
        let arguments = buffers.arguments(experiment);
        let combine = |left: &[u8], into: &mut [u8]| arguments.combine(left, into);
        // as programs do, which give other data in each call: zeros again, whose sums are zeros. What came is not written to: that would be work of ranks which
        // are through, while others that they share processors with still wait for theirs
        let gives_output = layout.input == 0 && me == root;
        let renew = || {
            // SAFETY: the buffers are this player's own, and have room for the layout
            unsafe {
                arguments.buffers.input().cast_mut().write_bytes(0, layout.input);
                arguments.buffers.output().write_bytes(0, if gives_output { layout.output } else { 0 });
            }
        };
        let once = |transport: &mut MpiTransport| {
            if let Some(call) = &call {
                return (0..wanted.calls).try_for_each(|_| call());
            }
            for _ in 0..wanted.calls {
                // SAFETY: the buffers are this player's own
                unsafe { executor.run(transport, &mut Task::new(program).combining(&combine), arguments.buffers, 0)? };
                if let Some((comm, call)) = &native {
                    // SAFETY: the buffers have the experiment's layout; all members of `comm` take part in it
                    unsafe { library::run(call.collective, &Arguments { root: call.root, ..arguments }, *comm)? };
                }
            }
            Ok(())
        };
        let others = members.iter().copied().filter(|&r| r != root).collect();
        let together = experiment
            .begins_together()
            .then(|| Together { follows, answered_s: answered_s.entry((root, members.clone())).or_insert(f64::INFINITY) });
        let most = experiment.layout(experiment.timer());
        let stays = most.input.max(most.output) >= LONG;
        let first_waits = self.sends_wait_for_receives || stays && !follows;
        let others_renew = stays && (0..members.len()).any(|p| p != experiment.timer() && experiment.layout(p).input > 0);
        Timing { transport, clocks, root, others, together, first_waits, stays, others_renew }.play(
            warm_ups,
            wanted.repetitions,
            once,
            renew,
        )
    }

    fn execute(&mut self, experiment: &Experiment, program: &Program, trace: Option<&mut Trace>) -> Result<()> {
        let arguments = self.buffers.arguments(experiment);
        let combine = |left: &[u8], into: &mut [u8]| arguments.combine(left, into);
        let mut task = Task::new(program).traced(trace).combining(&combine);
        // SAFETY: the buffers are this player's own
        unsafe { self.executor.run(&mut self.transport, &mut task, arguments.buffers, 0) }
    }

    /// The communicator of some ranks, made at first use by them alone.
    fn group(&mut self, members: &[Rank]) -> Result<ffi::MPI_Comm> {
        if let Some(&comm) = self.groups.get(members) {
            return Ok(comm);
        }
        let ranks: Vec<c_int> = members.iter().map(|&r| r as c_int).collect();
        // SAFETY: out-parameters of the right types; every member makes the same call
        let comm = unsafe {
            let (mut all, mut part, mut comm) = (ffi::RSMPI_GROUP_EMPTY, ffi::RSMPI_GROUP_EMPTY, ffi::RSMPI_COMM_NULL);
            check("MPI_Comm_group", native::PMPI_Comm_group(self.transport.comm(), &mut all))?;
            check("MPI_Group_incl", native::PMPI_Group_incl(all, ranks.len() as c_int, ranks.as_ptr(), &mut part))?;
            check("MPI_Comm_create_group", native::PMPI_Comm_create_group(self.transport.comm(), part, 0, &mut comm))?;
            native::PMPI_Group_free(&mut part);
            native::PMPI_Group_free(&mut all);
            comm
        };
        self.groups.insert(members.to_vec(), comm);
        Ok(comm)
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        for comm in self.groups.values_mut() {
            // SAFETY: made in `group`, used by nobody else
            unsafe { native::PMPI_Comm_free(comm) };
        }
    }
}
