//! What this process was told: its policy, and the host that it should take itself for.

use super::world_rank;
use crate::error::{Error, Result};
use crate::policy::{CompiledPolicy, Policy};
use crate::topology::Declared;
use crate::transport::mpi::processor_name;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The environment variable that names the policy file, or a folder of policies (`*.toml`), of which each process takes the first by name that lists its host, or
/// else by which its host may stand in.
pub const POLICY_VARIABLE: &str = "COLLWISE_POLICY";
/// The environment variable that names a host file (`HOST [GROUP]`, a line for each rank of MPI_COMM_WORLD), by which several
/// hosts are played on one.
pub const HOSTS_VARIABLE: &str = "COLLWISE_HOSTS";

/// The environment variable that names a folder for traces of what every rank did.
pub const TRACE_VARIABLE: &str = "COLLWISE_TRACE";

/// The folder for traces, if they are wanted.
pub(super) fn trace_folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(|| std::env::var_os(TRACE_VARIABLE).map(PathBuf::from)).as_deref()
}

type Shared = Mutex<Option<Result<Arc<CompiledPolicy>>>>;

fn slot() -> &'static Shared {
    static SLOT: OnceLock<Shared> = OnceLock::new();
    SLOT.get_or_init(|| Mutex::new(None))
}

/// Uses this policy from now on, for communicators that have none yet. Call it on every rank with the same policy.
pub fn use_policy(policy: Policy) {
    *slot().lock().unwrap_or_else(PoisonError::into_inner) = Some(CompiledPolicy::new(policy).map(Arc::new));
}

/// The policy in use; read from the file that the environment names if none was given.
///
/// # Errors
/// There is none, or it cannot be read.
pub(super) fn policy() -> Result<Arc<CompiledPolicy>> {
    let mut slot = slot().lock().unwrap_or_else(PoisonError::into_inner);
    let loaded = slot.get_or_insert_with(|| {
        let path = std::env::var_os(POLICY_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        let path = path.ok_or_else(|| Error::invalid(format!("find a policy: {POLICY_VARIABLE} names none")))?;
        let policy = if path.is_dir() { Policy::of_host(&path, &host(world_rank()?)?)? } else { Policy::read(&path)? };
        CompiledPolicy::new(policy).map(Arc::new)
    });
    match loaded {
        Ok(policy) => Ok(Arc::clone(policy)),
        Err(e) => Err(Error::invalid(e.to_string())),
    }
}

static HOST: OnceLock<std::result::Result<String, String>> = OnceLock::new();

/// Takes this process for one on this host, unless it was asked before.
#[cfg(feature = "cli")]
pub(super) fn use_host(name: &str) {
    HOST.get_or_init(|| Ok(name.to_string()));
}

/// The host that this process, rank `world_rank` of MPI_COMM_WORLD, takes itself for; found out once.
///
/// # Errors
/// The host file cannot be read, or has no line for this rank.
pub(super) fn host(world_rank: usize) -> Result<String> {
    HOST.get_or_init(|| find_host(world_rank).map_err(|e| e.to_string())).clone().map_err(Error::invalid)
}

fn find_host(world_rank: usize) -> Result<String> {
    let Some(path) = std::env::var_os(HOSTS_VARIABLE).map(PathBuf::from) else { return Ok(processor_name()) };
    let name = path.display().to_string();
    let declared = Declared::read(&path)?;
    let lines = declared.hosts.len();
    declared
        .hosts
        .into_iter()
        .nth(world_rank)
        .ok_or_else(|| Error::invalid(format!("find rank {world_rank} in {name}: it has {lines} lines")))
}
