//! What is measured of this library: what it takes until a communicator has plans, and calls that are carried out by what `tune` says.

use super::call::{self, Call};
use super::communicator::{State, duplicate, state};
use super::private::greatest;
use super::rank;
use super::settings::{use_host, use_policy};
use crate::collective::{Collective, Step};
use crate::error::Result;
use crate::measure::mpi::{Called, Runtime};
use crate::policy::{GroupPolicy, Policy};
use crate::schedule::Layout;
use crate::transport::library::Arguments;
use crate::transport::mpi::{check, now};
use crate::transport::native;
use mpi::ffi;

/// What measuring runs.
pub(crate) const RUNTIME: Runtime = Runtime { set_up: time_setup, call: by_steps };

/// Seconds until a communicator of all processes, of which this says the hosts by rank, has plans: what its first two calls take beside what they do, on the
/// slowest of them. None where it gets none. Collective, and once in a process: what it makes stays for others.
fn time_setup(comm: ffi::MPI_Comm, hosts: &[String]) -> Result<Option<f64>> {
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

/// A call that these steps carry out, whatever the policy says, on a communicator of some of those that [`time_setup`] gave plans; none where it has none.
fn by_steps(
    comm: ffi::MPI_Comm,
    collective: &'static Collective,
    steps: Vec<Step>,
    layout: Layout,
    arguments: &Arguments,
) -> Result<Option<Called>> {
    let call = Call::of(collective, comm, layout, arguments)?;
    // SAFETY: the caller's communicator and buffers, which nobody else uses
    let known = unsafe { call::remember_steps(&call, steps)? };
    // SAFETY: as above
    Ok(known.then(|| Box::new(move || unsafe { call::run(&call) }) as Called))
}
