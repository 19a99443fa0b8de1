//! x
pub mod collective;
pub mod error;
mod event;
pub mod model;
pub mod platform;
pub mod predict;
pub mod schedule;
pub mod sim;
pub mod stats;
pub mod topology;
pub mod units;
