//! The simulated platform: an event-driven engine of its own, with processors, ports, shared links and the irregularities of TCP.
//! It shares no cost formula with `model`, so that models can be scored against it.
//!
//! The way of one message of m bytes from host i to host j:
//!
//! 1. i's processor is busy for `send_overhead(m)`, i's port for `gap(m)`, counted from the same start. Above the eager limit a
//!    handshake comes first: one empty message there and, once the receive is posted, one back.
//! 2. The bytes leave the port at `gap_s_per_byte`; between groups they pass the pipe that the two groups share, first come,
//!    first served.
//! 3. The wire's latency.
//! 4. j's port takes bytes in at its own `gap_s_per_byte`: messages that arrive together queue.
//! 5. j's processor is busy for `recv_overhead(m)`; then the message is usable.

mod engine;
mod network;
mod noise;

pub use engine::Simulator;
pub use noise::Disturbance;
