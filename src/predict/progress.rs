//! How far the streams of messages are.

use crate::schedule::{NONE, OpId, Program};

/// How far a stream is at one of its ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    /// So many messages were sent, or so many receives posted.
    count: u32,
    /// The receive of the next one; [`NONE`] after the last one.
    pub next: OpId,
    /// The receive that must be complete before that, once there are as many as may be under way.
    window: OpId,
}

impl End {
    /// The next message was sent, or the next receive posted.
    pub(super) fn advance(&mut self, receiver: &Program, in_flight: usize) {
        let after = |receive: OpId| receiver.next(receive as usize).map_or(NONE, |next| next as OpId);
        self.next = after(self.next);
        self.count += 1;
        if in_flight > 0 && self.count as usize > in_flight {
            self.window = after(self.window);
        }
    }

    /// What must be complete before the next one, since as many are under way as may be.
    pub(super) fn waits_for(&self, in_flight: usize) -> Option<OpId> {
        (in_flight > 0 && self.count as usize >= in_flight).then_some(self.window)
    }
}

/// A stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    pub sent: End,
    pub posted: End,
    /// True if its sender waits until a message is received.
    pub held: bool,
}

impl Progress {
    /// Of a stream with this first receive.
    pub(super) fn new(first: OpId) -> Progress {
        let end = End { count: 0, next: first, window: first };
        Progress { sent: end, posted: end, held: false }
    }
}
