//! x
pub mod cluster;
pub mod collective;
pub mod discover;
pub mod error;
mod event;
pub mod fit;
pub mod intercluster;
pub mod measure;
pub mod model;
pub mod platform;
pub mod predict;
pub mod schedule;
pub mod sim;
pub mod stats;
pub mod topology;
pub mod transport;
pub mod units;
