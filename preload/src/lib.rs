//! A library to be preloaded under MPI programs, which stay as they are: with `COLLWISE_POLICY` their collectives become adaptive ones, and with
//! `COLLWISE_PROFILE` it notes what they call and writes a report in mpiP's layout when they call `MPI_Finalize`, to the file of that name (an empty name
//! stands for `PROGRAM.RANKS.PID.mpiP`, which those that they spawn have, too).
//!
//! ```text
//! mpirun -n 8 -x LD_PRELOAD=libcollwise_preload.so -x COLLWISE_POLICY=policy.toml ./program
//! ```
//!
//! Calls are told apart by name and size, to powers of two, instead of their places in the program; collectives by communicator, too, with how
//! they were done and what that should take. Programs in C, C++ and Rust call the
//! names `MPI_...`, and so do MPICH's Fortran interfaces; Open MPI's (`mpif.h`, `use mpi`, `use mpi_f08`) call those behind them, `PMPI_...`.
//! Both are taken over.
//! What a library between program and MPI calls by its second names is noted too.
//!
//! One build serves Open MPI, and MPICH and the libraries with its handles (Intel MPI, MVAPICH, Cray's), for each of which the adaptive collectives are
//! a library beside it ([`engine`]). Under any other, it says so once
//! and the program runs as without it. All ranks of a job must have it preloaded, or none: they bring the profiles together, and no rank is adaptive alone. Under
//! Open MPI jobs of several programs run as without it, unless `COLLWISE_PRELOADED=1` says that all of them have it.
#![allow(unsafe_code, clippy::missing_safety_doc)] // the C ABI of MPI: each function has the contract of its namesake

mod calls;
mod clock;
mod collect;
mod engine;
mod library;
mod names;
mod persistent;
mod sizes;

use clock::SharedClock;
use collect::Target;
use collwise::collective::COLLECTIVES;
use collwise::library::{ALL_PRELOADED, is_first_rank};
use collwise::qnm::{Alike, Profile, name_of_uses};
use library::{Handle, Mpi};
use names::define;
use sizes::Sent;
use std::cell::Cell;
use std::ffi::{c_char, c_int};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// From the end of `MPI_Init` to the begin of `MPI_Finalize`.
struct Running {
    mpi: &'static Mpi,
    /// When it was noted last that time goes by; none while the program lets nothing be noted.
    since: Option<f64>,
    clock: SharedClock,
    profile: Profile,
    target: Target,
}

static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

/// True where [`RUNNING`] has something: what is not noted shall cost nothing.
static NOTING: AtomicBool = AtomicBool::new(false);

/// True where calls are noted: those of most programs are not, and go on at once.
#[inline(always)]
fn is_noting() -> bool {
    NOTING.load(Ordering::Relaxed)
}

fn running() -> MutexGuard<'static, Option<Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

std::thread_local! {
    /// True where this thread is in a call that is noted: what that calls, the library does.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// A call that is in MPI. One that is left by an exception ends there.
struct Stay {
    mpi: &'static Mpi,
    entered: f64,
}

impl Stay {
    /// None where nothing is noted.
    fn begin() -> Option<Stay> {
        if !is_noting() || engine::is_inside() || INSIDE.get() {
            return None;
        }
        let mut running = running();
        let running = running.as_mut()?;
        let mpi = running.mpi;
        INSIDE.set(true);
        Some(Stay { mpi, entered: running.clock.enter(mpi.now()) })
    }

    /// Ends: the call's share of the time in MPI, in seconds. What is asked of MPI to note the call comes after it.
    fn end(self) -> f64 {
        let share = self.leave();
        std::mem::forget(self);
        share
    }

    fn leave(&self) -> f64 {
        INSIDE.set(false);
        // the clock is read under the lock: stamps come in order
        running().as_mut().map_or(0.0, |running| running.clock.leave(self.mpi.now(), self.entered))
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Notes something, if there is a report to come.
fn note(in_profile: impl FnOnce(&mut Profile)) {
    if let Some(running) = running().as_mut() {
        in_profile(&mut running.profile);
    }
}

/// The MPI library, if there is a report to come: also while the program lets nothing be noted.
fn reported() -> Option<&'static Mpi> {
    running().as_ref().map(|running| running.mpi)
}

/// Where a collective is called.
struct Place {
    comm: Handle,
    root: c_int,
}

impl Place {
    /// Notes the call of a name without `MPI_`: how it was done, too, where it was adaptive.
    fn note(&self, mpi: &Mpi, call: &str, (digits, size): (u32, &str), seconds: f64, bytes: usize) {
        // SAFETY: the call succeeded on this communicator
        let ((_, ranks), communicator, others) = unsafe { (mpi.place(self.comm), mpi.name(self.comm), mpi.remote(self.comm)) };
        let collective = name_of_uses(call);
        // both forms of a reduce-scatter are one to the engine, which asks for the bytes of a block
        let known = COLLECTIVES.iter().map(|known| known.name).find(|name| *name == collective.trim_end_matches("_block"));
        let block = if call == "Reduce_scatter" { bytes / ranks.max(1) } else { bytes };
        // SAFETY: as above
        let stride = if others.is_some() { None } else { unsafe { mpi.stride(self.comm, ranks) } };
        // those of both groups, where it joins two
        let ranks = ranks + others.unwrap_or(0);
        let alike = Alike { collective, digits, size: size.into(), ranks, stride, communicator };
        let how = || engine::explain(known?, block, self.root, self.comm);
        note(|profile| profile.note_use(alike, seconds, bytes, how));
    }
}

/// The number of the range of a size, and its name.
fn range(bytes: usize) -> (u32, &'static str) {
    let digits = usize::BITS - bytes.leading_zeros();
    (digits, SIZES[SIZES.len().min(digits as usize + 1) - 1])
}

/// Calls MPI, and notes what succeeds: what it sent is asked for after it.
fn noted(name: &'static str, call: impl FnOnce() -> c_int, place: Option<Place>, sent: impl FnOnce(&Mpi) -> Sent) -> c_int {
    let Some(stay) = Stay::begin() else { return call() };
    let code = call();
    if code == 0 {
        let mpi = stay.mpi;
        let seconds = stay.end();
        let sent = sent(mpi);
        let (digits, size) = range(sent.bytes);
        // large counts make no other call of it
        let name = name.trim_start_matches("MPI_").trim_end_matches("_c");
        // SAFETY: the call succeeded on this communicator or window
        let partners = unsafe { sent.partners(mpi) };
        note(|profile| {
            profile.note(name, size, digits, seconds, sent.bytes);
            for (far, bytes) in partners {
                profile.note_partner(name, range(bytes).1, far, bytes);
            }
        });
        if let Some(place) = place {
            place.note(mpi, name, (digits, size), seconds, sent.bytes);
        }
    }
    code
}

/// The names of ranges of sizes, by the number of their binary digits; the last is for all above, too.
const SIZES: [&str; 42] = [
    "0B", "1B", "2B", "4B", "8B", "16B", "32B", "64B", "128B", "256B", "512B", "1KiB", "2KiB", "4KiB", "8KiB", "16KiB", "32KiB", "64KiB",
    "128KiB", "256KiB", "512KiB", "1MiB", "2MiB", "4MiB", "8MiB", "16MiB", "32MiB", "64MiB", "128MiB", "256MiB", "512MiB", "1GiB", "2GiB",
    "4GiB", "8GiB", "16GiB", "32GiB", "64GiB", "128GiB", "256GiB", "512GiB", "1TiB",
];

/// True if the job is of several programs, of which each may have its own environment: one without this library would take the message by which all agree for
/// the first of its own. Open MPI says it to each process, other libraries do not.
fn may_be_without_others() -> bool {
    let programs = std::env::var("OMPI_NUM_APP_CTX").ok().and_then(|count| count.parse::<u32>().ok());
    programs.is_some_and(|count| count > 1) && std::env::var_os(ALL_PRELOADED).is_none()
}

/// From here on collectives are adaptive and time counts, if the library is one whose handles are known.
fn begin(code: c_int) -> c_int {
    static LIBRARY: OnceLock<Result<Mpi, String>> = OnceLock::new();
    if code != 0 {
        return code;
    }
    match LIBRARY.get_or_init(Mpi::find) {
        Ok(_) if may_be_without_others() => {
            if is_first_rank() {
                say(&format!(
                    "the job is of several programs, some of which may not have this preloaded: each runs as without it, unless {ALL_PRELOADED}=1 says that all have"
                ));
            }
        }
        Ok(mpi) => {
            // all bring their profiles together, or none; and none is adaptive alone
            let (target, opened) = (Target::now(mpi), engine::open(mpi));
            let said = mpi.all_say([target.is_some(), opened.is_ok()]);
            let [all_note, all_adapt] = *said.as_ref().unwrap_or(&[false; 2]);
            if target.is_some() && !all_note {
                say("there will be no report: COLLWISE_PROFILE names none on some processes");
            }
            let target = target.filter(|_| all_note);
            let others = said.err().unwrap_or("other processes have none".into());
            let begun = opened.and_then(|library| if all_adapt { Ok(library) } else { Err(others) }).map(engine::Opened::start);
            match begun {
                Err(why) if is_first_rank() && !(target.is_some() && engine::policy().is_none()) => {
                    say(&format!("the program runs as without what is preloaded: {why}"));
                }
                _ => {}
            }
            if let Some(target) = target {
                let profile = Profile { node: mpi.node(), ..Profile::default() };
                *running() = Some(Running { mpi, since: Some(mpi.now()), clock: SharedClock::default(), profile, target });
                NOTING.store(true, Ordering::Relaxed);
            }
        }
        Err(library) if is_first_rank() => say(&format!(
            "the program runs on {library}, and what is preloaded knows Open MPI and MPICH with its kin: the program goes on as without it"
        )),
        Err(_) => {}
    }
    code
}

define!(MPI_Init = PMPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_char) by |call| { begin(call()) });

define!(MPI_Init_thread = PMPI_Init_thread(argc: *mut c_int, argv: *mut *mut *mut c_char, required: c_int, provided: *mut c_int) by |call| {
    begin(call())
});

// writes the report first
define!(MPI_Finalize = PMPI_Finalize() by |call| {
    NOTING.store(false, Ordering::Relaxed);
    let ended = running().take();
    if let Some(Running { mpi, since, mut profile, target, .. }) = ended {
        profile.app_s += since.map_or(0.0, |since| mpi.now() - since);
        collect::deliver(mpi, profile, &target);
    }
    call()
});

/// The levels of `MPI_Pcontrol` that mpiP has, too: from 0 on nothing is noted and no time counts, from 1 on (and any other level) it does, 2 forgets
/// what was noted, and 3 and 4, of which mpiP writes reports in between, do nothing. The standard lets it have more arguments, which only a profiler would know.
fn control(level: c_int) {
    let mut running = running();
    let Some(running) = running.as_mut() else { return };
    let now = running.mpi.now();
    let profile = &mut running.profile;
    match level {
        3 | 4 => {}
        2 => {
            *profile = Profile { node: std::mem::take(&mut profile.node), ..Profile::default() };
            running.since = running.since.map(|_| now);
        }
        _ => {
            profile.app_s += running.since.map_or(0.0, |since| now - since);
            running.since = (level != 0).then_some(now);
            NOTING.store(level != 0, Ordering::Relaxed);
        }
    }
}

define!(MPI_Pcontrol = PMPI_Pcontrol(level: c_int) by |call| {
    control(level);
    call()
});

/// Says something on standard error; a closed or full one is no reason to end a program (`eprintln` would).
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "collwise: {text}");
}
