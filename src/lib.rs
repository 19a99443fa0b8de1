//! x
#[cfg(feature = "cli")]
pub mod cli;
pub mod cluster;
pub mod collective;
pub mod discover;
pub mod error;
mod event;
pub mod fit;
pub mod intercluster;
pub mod measure;
pub mod model;
pub mod plan;
pub mod platform;
pub mod policy;
pub mod predict;
pub mod regret;
#[cfg(feature = "mpi")]
pub mod run;
pub mod schedule;
pub mod score;
pub mod select;
pub mod sim;
pub mod stats;
pub mod topology;
pub mod transport;
pub mod tune;
pub mod units;
