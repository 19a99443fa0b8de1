//! From the profile of each process to one report, at the end of the program. Whatever fails here is said, and the program goes on.

use crate::library::{Handle, Mpi};
use crate::say;
use collwise::files::write_text;
use collwise::library::is_first_rank;
use collwise::qnm::{Profile, report};
use std::ffi::{OsString, c_int};
use std::path::PathBuf;

/// Where the report goes, as it is known when MPI starts: the program may go to another folder, and forget who spawned it.
pub struct Target {
    /// Relative names are within it.
    folder: PathBuf,
    /// The name that was asked for. It is that of the program that was launched: one that this spawns has a report of its own.
    asked: Option<OsString>,
}

impl Target {
    /// At this moment; none if there shall be no report.
    pub fn now(mpi: &Mpi) -> Option<Target> {
        let named = std::env::var_os("COLLWISE_PROFILE")?;
        let asked = (!named.is_empty() && !mpi.is_spawned()).then_some(named);
        Some(Target { folder: std::env::current_dir().unwrap_or_default(), asked })
    }
}

/// Brings all profiles to rank 0, which writes the report.
pub fn deliver(mpi: &Mpi, profile: Profile, target: &Target) {
    let comm = match mpi.private_world() {
        Ok(comm) => comm,
        Err(_) if !is_first_rank() => return,
        Err(reason) => return say(&format!("failed to make a communicator to collect the profiles: {reason}; there is no report")),
    };
    // SAFETY: MPI runs until the namesake of MPI_Finalize is called, and the communicator is this function's
    let (collected, freed) = unsafe { (collect(mpi, profile, comm), mpi.free(comm)) };
    let done = collected.and_then(|p| if p.is_empty() { Ok(()) } else { write(&p, target) });
    for reason in [done, freed.map_err(|e| format!("free the communicator of the profiles: {e}"))].into_iter().filter_map(Result::err) {
        say(&format!("failed to {reason}"));
    }
}

/// All profiles by rank, at rank 0; elsewhere none.
unsafe fn collect(mpi: &Mpi, profile: Profile, comm: Handle) -> Result<Vec<Profile>, String> {
    // SAFETY: the caller's
    unsafe {
        let (rank, size) = mpi.place(comm);
        if rank > 0 {
            return send(mpi, &profile, comm).map(|()| Vec::new()).map_err(|e| format!("send the profile of rank {rank}: {e}"));
        }
        let mut profiles = vec![Ok(profile)];
        // all of them even where one fails: they wait for it
        profiles.extend(
            (1..size as c_int).map(|from| receive(mpi, from, comm).map_err(|e| format!("receive the profile of rank {from}: {e}"))),
        );
        profiles.into_iter().collect()
    }
}

unsafe fn send(mpi: &Mpi, profile: &Profile, comm: Handle) -> Result<(), String> {
    let text = serde_json::to_vec(profile).map_err(|e| e.to_string());
    let length = text.as_ref().map_or(0, Vec::len);
    // SAFETY: the caller's
    unsafe {
        mpi.send(&length.to_le_bytes(), 0, 0, comm)?;
        mpi.send(text.as_deref().unwrap_or_default(), 0, 1, comm)?;
    }
    text.map(|_| ())
}

unsafe fn receive(mpi: &Mpi, from: c_int, comm: Handle) -> Result<Profile, String> {
    let mut length = [0; size_of::<usize>()];
    // SAFETY: the caller's
    let text = unsafe {
        mpi.receive(&mut length, from, 0, comm)?;
        let mut text = vec![0; usize::from_le_bytes(length)];
        mpi.receive(&mut text, from, 1, comm)?;
        text
    };
    serde_json::from_slice(&text).map_err(|e| e.to_string())
}

/// Writes the report: where that cannot be done by the name that was asked for, by its usual one.
fn write(profiles: &[Profile], Target { folder, asked }: &Target) -> Result<(), String> {
    let arguments: Vec<String> = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    let text = report(&arguments.join(" "), profiles).map_err(|e| e.to_string())?;
    let program = arguments.first().and_then(|a| a.rsplit('/').next()).unwrap_or("program");
    let usual = folder.join(format!("{program}.{}.{}.mpiP", profiles.len(), std::process::id()));
    let Some(asked) = asked.as_ref().map(|name| folder.join(name)) else { return write_text(&usual, &text).map_err(|e| e.to_string()) };
    let Err(reason) = write_text(&asked, &text) else { return Ok(()) };
    write_text(&usual, &text).map_err(|e| format!("{reason}, and to {e}"))?;
    Err(format!("{reason}; the report is in {}", usual.display()))
}
