//! Point-to-point communication models: one model a file.

use crate::topology::Link;
/// What a message costs on a link, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// The sender's processor is busy.
    pub send_overhead: f64,
    /// The sender's port is busy, from the start of this message to the earliest start of the next.
    pub gap: f64,
    /// From the send's start until the message is usable at the receiver, both overheads included.
    pub transit: f64,
    /// The last part of `transit`, which runs on the receiver's processor.
    pub recv_overhead: f64,
}

/// Anything that can tell what a message costs.
pub trait CostModel {
    /// The cost of a message on a link.
    fn cost(&self, link: Link, bytes: usize) -> Cost;
}
