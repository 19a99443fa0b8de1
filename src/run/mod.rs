//! Running a policy: collectives for the `mpi` crate's communicators.
//!
//! ```no_run
//! use collwise::run::AdaptiveCollectives;
//! use mpi::traits::*;
//!
//! collwise::transport::mpi::abort_on_panic();
//! let universe = mpi::initialize().unwrap();
//! let world = universe.world();
//! // the policy is read from the file that COLLWISE_POLICY names, or given:
//! collwise::run::use_policy(collwise::policy::Policy::read("policy.toml".as_ref()).unwrap());
//! let mut data = vec![world.rank() as f64; 1024];
//! world.adaptive_bcast(0, &mut data[..]).unwrap();
//! ```
//!
//! A communicator gets its plan at first use, which is collective: agreement of all members on the policy, their hosts matched to its
//! groups, a private communicator, which all communicators of the same processes share. Where that fails, every member uses the
//! library's own collective and the first one says why, once for each reason. Plans are kept by size and root.
#![allow(unsafe_code)] // MPI's C interface

mod barrier;
mod bcast;
mod communicator;
mod datatype;
mod notice;
mod settings;
mod team;

pub use bcast::AdaptiveCollectives;
pub(crate) use communicator::{duplicate, groups_in_use};
pub use settings::use_policy;
