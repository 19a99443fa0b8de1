//! An event in a word. Those of one time come in the order of the words: all messages of that time are there before a processor turns to one.

use crate::event::Event;

/// A message is there but for the receiver's overhead.
pub fn arrive(rank: u32, op: u32) -> u64 {
    u64::from(rank) << 32 | u64::from(op)
}

/// A processor turns to what may start: a message that waits for it, a send or a delay.
pub fn turn(rank: u32) -> u64 {
    TURN | arrive(rank, 0)
}

/// A message's last bytes are at a port that messages of others come in by too.
pub fn at_port(rank: u32, op: u32) -> u64 {
    PORT | arrive(rank, op)
}

/// A number in the order of events: times are zero or more, and the bits of such are in the order of their values.
#[inline]
pub fn word((time, event): Event) -> u128 {
    u128::from(time.to_bits()) << 64 | u128::from(event)
}

pub const TURN: u64 = 1 << 63;
pub const PORT: u64 = 1 << 62;

/// A time without its last bits, which hang on the order in which its parts were added: what is to happen at once happens at once, and comes in the order of
/// the events.
#[inline]
pub fn rounded(time: f64) -> f64 {
    // the upper 42 bits of 53, by Veltkamp's splitting; what takes for ever has none
    let scaled = time * 2049.0;
    if scaled.is_finite() { scaled - (scaled - time) } else { time }
}
