//! collwise picks, for each group of alike machines on a platform, the communication model that predicts it best and the collective
//! algorithm that this model says is fastest, schedules what crosses between the groups, and runs the result from MPI code.
//!
//! ```text
//! measure ──▶ cluster ──▶ fit ──▶ score ──▶ decide ──▶ plan ──▶ run
//! Samples     groups      Fitted   Scores    Policy     Schedule  bytes moved
//!                         models
//! ```
//!
//! Each arrow is a plain value, so that any stage can start from a file and be tested alone. Samples come from MPI, from a recording,
//! or from a simulated platform; the same program text runs over all three. Here is the whole pipeline on a simulated one, without
//! MPI:
//!
//! ```
//! use collwise::collective::bcast;
//! use collwise::measure::{Session, SimulatedProbe};
//! use collwise::plan::{members, plan};
//! use collwise::platform::{Placement, Platform};
//! use collwise::policy::CompiledPolicy;
//! use collwise::tune::{TuneOptions, tune};
//!
//! let text = r#"
//! format = 1
//! name = "two-sites"
//! [hosts]
//! send_overhead_s = 5e-6
//! recv_overhead_s = 6e-6
//! gap_s = 8e-6
//! gap_s_per_byte = 8.5e-9
//! [[group]]
//! name = "north"
//! count = 4
//! latency_s = 50e-6
//! [[group]]
//! name = "south"
//! count = 3
//! latency_s = 30e-6
//! [[link]]
//! between = ["north", "south"]
//! latency_s = 5e-3
//! "#;
//! let platform = Platform::parse("two-sites.toml", text)?;
//!
//! // measure, group, fit, score, select
//! let mut probe = SimulatedProbe::new(&platform, Placement::Slot, 1)?;
//! let options = TuneOptions::default();
//! let (discovery, policy) = tune(&mut Session::new(&mut probe), options)?;
//! assert_eq!(discovery.groups.len(), 2);
//!
//! // plan a broadcast of 64 KiB from rank 0: each group has a coordinator, and every message has its sender
//! let hosts = platform.host_names();
//! let places = members(&policy, &hosts)?;
//! let shape = bcast::COLLECTIVE.shape(hosts.len(), 0, 64 << 10);
//! let plan = plan(&CompiledPolicy::new(policy)?, &places, &bcast::COLLECTIVE, &shape)?;
//! assert_eq!(plan.routed().unwrap().two_level.groups, [vec![0, 1, 2, 3], vec![4, 5, 6]]);
//!
//! // run it, here over threads
//! let mut buffers = vec![vec![0u8; 64 << 10]; hosts.len()];
//! buffers[0].fill(7);
//! collwise::transport::threads::run(&plan.form.schedule(&shape)?, &mut buffers)?;
//! assert!(buffers.iter().all(|b| b.iter().all(|&x| x == 7)));
//! # Ok::<(), collwise::error::Error>(())
//! ```
//!
//! From an MPI program, `run::AdaptiveCollectives` (feature `mpi`) gives the `mpi` crate's communicators `adaptive_bcast` and
//! others, of which some do not block. `examples/application` is such a program, with the lines of `Cargo.toml` that it needs: `collwise` by path or
//! git with `default-features = false, features = ["mpi"]`, and the version of `mpi` that collwise has, since a communicator of another version is
//! another type.
//!
//! The modules, each of which uses only those below it (`tests/layers.rs` checks it):
//!
//! ```text
//! run, bench, report, cli      adaptive collectives for MPI programs; comparing them; all of it on one page; the command line
//! tune                         the whole pipeline; beside it, how good it was:
//!     accuracy, contention, regret
//! qnm                          wall times of applications
//! export                       what other libraries can carry out of a policy
//! plan                         what one communicator does for a size
//! policy                       the file of what was decided
//! decide                       which candidates there are, and which is predicted to be the fastest
//! fit, score                   models from samples; which of them is selected
//! predict, discover            replaying schedules; finding groups
//! flow                         how many messages are under way at once
//! model                        what messages cost
//! measure                      experiments and samples
//! two_level                    collectives over groups of ranks
//! collective                   algorithms over some ranks, a folder a collective; beside them:
//!     transport, sim           schedules carried out, or simulated
//!     cluster, intercluster    grouping methods; who sends to whom between groups
//! schedule                     what each rank sends and receives, as data, and what it is checked against
//! platform                     machine rooms
//! topology                     ranks and latencies
//! error, files, names, units, stats, event, library, loaded
//! ```
//!
//! The three shapes everything hangs on:
//!
//! - a [`schedule`] is data: what each rank sends and receives, in which order; one builder per algorithm
//!   ([`collective`]) feeds execution ([`transport`]), prediction ([`predict`]) and simulation ([`sim`]) alike, and a collective's
//!   specification says what every schedule of it must bring about;
//! - a [`model`] states the costs of a message on a link ([`model::Cost`]); one event-driven replay turns these into the time of
//!   any schedule;
//! - registries, not switches: [`model::MODELS`], [`collective::COLLECTIVES`], [`cluster::METHODS`],
//!   [`intercluster::HEURISTICS`]. A new entry is one file and two lines, a new collective a folder and a line; tests and command line follow.

// tests inside share what those outside have
#[cfg(test)]
extern crate self as collwise;

#[cfg(feature = "tune")]
pub mod accuracy;
pub mod bench;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "tune")]
pub mod cluster;
pub mod collective;
#[cfg(feature = "tune")]
pub mod contention;
pub mod decide;
#[cfg(feature = "tune")]
pub mod discover;
pub mod error;
mod event;
pub mod export;
pub mod files;
#[cfg(feature = "tune")]
pub mod fit;
pub mod flow;
pub mod intercluster;
pub mod library;
#[cfg(feature = "loaded")]
pub mod loaded;
pub mod measure;
pub mod model;
pub mod names;
pub mod plan;
pub mod platform;
pub mod policy;
pub mod predict;
#[cfg(feature = "tune")]
pub mod qnm;
#[cfg(feature = "tune")]
pub mod regret;
#[cfg(feature = "cli")]
pub mod report;
#[cfg(feature = "mpi")]
pub mod run;
pub mod schedule;
pub mod score;
#[cfg(feature = "tune")]
pub mod sim;
pub mod stats;
pub mod topology;
pub mod transport;
#[cfg(feature = "tune")]
pub mod tune;
pub mod two_level;
pub mod units;
