//! What it takes until a communicator has plans, measured.

use super::communicator::{State, duplicate, state};
use super::private::greatest;
use super::rank;
use super::settings::{use_host, use_policy};
use crate::error::Result;
use crate::policy::{GroupPolicy, Policy};
use crate::transport::mpi::{check, now};
use crate::transport::native;
use mpi::ffi;

/// Seconds until a communicator of all processes, of which this says the hosts by rank, has plans: what its first two calls take beside what they do, on the
/// slowest of them. None where it gets none. Collective, and once in a process: what it makes stays for others.
pub(crate) fn time_setup(comm: ffi::MPI_Comm, hosts: &[String]) -> Result<Option<f64>> {
    use_host(&hosts[rank(comm)?]);
    use_policy(of_hosts(hosts));
    let mut fresh = duplicate(comm)?;
    // all begin together
    greatest([0], comm)?;
    let began = now();
    // SAFETY: made just now, and used by nobody else
    let planned = unsafe {
        state(fresh)?;
        matches!(state(fresh)?, Some(State::Planned(_)))
    };
    let took = greatest([((now() - began) * 1e9) as i64], comm)?[0];
    // SAFETY: as above
    check("MPI_Comm_free", unsafe { native::PMPI_Comm_free(&mut fresh) })?;
    Ok(planned.then_some(took as f64 / 1e9))
}

/// A policy that knows these hosts, and nothing of them.
fn of_hosts(hosts: &[String]) -> Policy {
    Policy { groups: vec![GroupPolicy::new("all", None, hosts.to_vec())], ..Policy::default() }
}
