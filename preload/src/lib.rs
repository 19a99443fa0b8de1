//! A library to be preloaded under MPI programs: it notes what they call and writes a report in mpiP's layout
//! when they call `MPI_Finalize`, to the file that `COLLWISE_REPORT` names or else to `PROGRAM.RANKS.PID.mpiP`.
//!
//! ```text
//! mpirun -n 8 -x LD_PRELOAD=libcollwise_profile.so ./program
//! ```
//!
//! Calls are told apart by name and size, to powers of two, instead of their places in the program. Programs in C, C++ and Rust call the
//! names `MPI_...`, and so do MPICH's Fortran interfaces; Open MPI's (`mpif.h`, `use mpi`, `use mpi_f08`) call those behind them, `PMPI_...`.
//! Both are taken over.
//! What a library between program and MPI calls by its second names is noted too.
#![allow(unsafe_code, clippy::missing_safety_doc)] // the C ABI of MPI: each function has the contract of its namesake

mod calls;
mod names;

use collwise::qnm::{Profile, report};
use mpi::ffi::{self, MPI_Comm, MPI_Datatype};
use names::define;
use std::ffi::{c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// From the end of `MPI_Init` to the begin of `MPI_Finalize`.
struct Running {
    start: f64,
    profile: Profile,
}

static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

fn running() -> MutexGuard<'static, Option<Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now() -> f64 {
    // SAFETY: called between MPI_Init and MPI_Finalize
    unsafe { ffi::PMPI_Wtime() }
}

/// Notes a call that began at a time and sent so many bytes.
fn note(call: &str, start: f64, bytes: usize) {
    let seconds = now() - start;
    if let Some(running) = running().as_mut() {
        let range = usize::BITS - bytes.leading_zeros();
        running.profile.note(call.trim_start_matches("MPI_"), SIZES[range.min(31) as usize], range, seconds, bytes);
    }
}

/// The names of ranges of sizes, by the number of their binary digits.
const SIZES: [&str; 32] = [
    "0B", "1B", "2B", "4B", "8B", "16B", "32B", "64B", "128B", "256B", "512B", "1KiB", "2KiB", "4KiB", "8KiB", "16KiB", "32KiB", "64KiB",
    "128KiB", "256KiB", "512KiB", "1MiB", "2MiB", "4MiB", "8MiB", "16MiB", "32MiB", "64MiB", "128MiB", "256MiB", "512MiB", "1GiB",
];

/// Bytes of so many elements.
unsafe fn bytes(count: c_int, datatype: MPI_Datatype) -> usize {
    let mut size: c_int = 0;
    // SAFETY: the caller's datatype is that of its call
    let code = unsafe { ffi::PMPI_Type_size(datatype, &raw mut size) };
    if code == 0 { usize::try_from(count).unwrap_or(0) * usize::try_from(size).unwrap_or(0) } else { 0 }
}

/// The caller's rank and the number of those it talks to.
unsafe fn place(comm: MPI_Comm) -> (c_int, usize) {
    let (mut rank, mut size, mut inter) = (0, 0, 0);
    // SAFETY: the communicator is that of a call that succeeded
    unsafe {
        ffi::PMPI_Comm_rank(comm, &raw mut rank);
        ffi::PMPI_Comm_test_inter(comm, &raw mut inter);
        if inter == 0 {
            ffi::PMPI_Comm_size(comm, &raw mut size)
        } else {
            ffi::PMPI_Comm_remote_size(comm, &raw mut size)
        };
    }
    (rank, usize::try_from(size).unwrap_or(0))
}

/// Bytes of blocks whose sizes a list gives: of one rank, or of all.
unsafe fn blocks(counts: *const c_int, datatype: MPI_Datatype, comm: MPI_Comm, of: Option<c_int>) -> usize {
    if counts.is_null() {
        return 0;
    }
    // SAFETY: the list has as many entries as there are ranks
    let (all, own) = unsafe { (std::slice::from_raw_parts(counts, place(comm).1), of) };
    let picked = all.iter().zip(0..).filter(|(_, rank)| own.is_none_or(|o| o == *rank));
    // SAFETY: as above
    picked.map(|(count, _)| unsafe { bytes(*count, datatype) }).sum()
}

/// From here on time counts.
fn begin(code: c_int) -> c_int {
    if code == 0 {
        let mut name = [0u8; ffi::MPI_MAX_PROCESSOR_NAME as usize + 1];
        let mut length = 0;
        // SAFETY: MPI is initialized, and the buffer is as long as names may be
        unsafe { ffi::PMPI_Get_processor_name(name.as_mut_ptr().cast(), &raw mut length) };
        let node = String::from_utf8_lossy(&name[..usize::try_from(length).unwrap_or(0)]).into_owned();
        *running() = Some(Running { start: now(), profile: Profile { node, ..Profile::default() } });
    }
    code
}

define!(MPI_Init = PMPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_char) by |call| { begin(call()) });

define!(MPI_Init_thread = PMPI_Init_thread(argc: *mut c_int, argv: *mut *mut *mut c_char, required: c_int, provided: *mut c_int) by |call| {
    begin(call())
});

// writes the report first
define!(MPI_Finalize = PMPI_Finalize() by |call| {
    let ended = running().take();
    if let Some(Running { start, mut profile }) = ended {
        profile.app_s = now() - start;
        // SAFETY: MPI runs until the namesake is called
        if let Err(reason) = unsafe { collect(profile) } {
            eprintln!("collwise: failed to {reason}");
        }
    }
    call()
});

/// Brings all profiles to rank 0, which writes the report.
unsafe fn collect(profile: Profile) -> Result<(), String> {
    // SAFETY: MPI runs until the end of this function; the communicator is duplicated, so that the program's messages are not met
    unsafe {
        let mut comm = ffi::RSMPI_COMM_WORLD;
        if ffi::PMPI_Comm_dup(ffi::RSMPI_COMM_WORLD, &raw mut comm) != 0 {
            return Err("duplicate MPI_COMM_WORLD for the report".into());
        }
        let (rank, size) = place(comm);
        let mut text = serde_json::to_vec(&profile).map_err(|e| format!("put the profile into JSON: {e}"))?;
        let mut length = text.len() as c_int;
        let byte = ffi::RSMPI_UINT8_T;
        if rank > 0 {
            ffi::PMPI_Send((&raw const length).cast(), 4, byte, 0, 0, comm);
            ffi::PMPI_Send(text.as_ptr().cast(), length, byte, 0, 1, comm);
            return Ok(());
        }
        let mut profiles = vec![profile];
        for from in 1..size as c_int {
            ffi::PMPI_Recv((&raw mut length).cast(), 4, byte, from, 0, comm, ffi::RSMPI_STATUS_IGNORE);
            text.resize(usize::try_from(length).unwrap_or(0), 0);
            ffi::PMPI_Recv(text.as_mut_ptr().cast(), length, byte, from, 1, comm, ffi::RSMPI_STATUS_IGNORE);
            profiles.push(serde_json::from_slice(&text).map_err(|e| format!("read the profile of rank {from}: {e}"))?);
        }
        write(&profiles)
    }
}

fn write(profiles: &[Profile]) -> Result<(), String> {
    let arguments: Vec<String> = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    let program = arguments.first().and_then(|a| a.rsplit('/').next()).unwrap_or("program");
    let own = format!("{program}.{}.{}.mpiP", profiles.len(), std::process::id());
    let path = std::env::var_os("COLLWISE_REPORT").unwrap_or_else(|| own.into());
    let text = report(&arguments.join(" "), profiles).map_err(|e| e.to_string())?;
    collwise::error::write_text(path.as_ref(), &text).map_err(|e| e.to_string())
}
