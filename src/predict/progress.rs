//! How far the streams of messages are.

use super::Run;
use super::machine::Place;
use crate::schedule::{NONE, OpId, Program, Schedule, Streams};
use crate::topology::Rank;

/// Set on the receive of a message that was sent: the next one goes to the receive after it. Programs have fewer operations.
const SENT: OpId = 1 << 31;

/// How far all streams are.
pub(super) struct Progress {
    /// Of each stream that is sent the receive of its first message, then that of the last one that was sent, marked as [`SENT`].
    pub(super) sent: Streams,
    /// Of each stream that is received the next receive to be posted; [`NONE`] after the last one. Empty where each stream has one message, and nothing limits
    /// what is under way.
    posted: Vec<OpId>,
    /// Of each stream that is received what is under way; empty where nothing limits that.
    windows: Vec<Window>,
}

/// One of the ends of a stream.
#[derive(Debug, Clone, Copy)]
struct End {
    /// So many messages were sent, or so many receives posted.
    count: u32,
    /// The receive that must be complete before the next one, once there are as many as may be under way.
    window: OpId,
}

/// What of a stream is under way.
#[derive(Debug, Clone, Copy)]
struct Window {
    /// So many messages may be; 0: any number.
    in_flight: u32,
    sent: End,
    posted: End,
    /// True if its sender waits until a message is received.
    held: bool,
}

impl End {
    /// The next message was sent, or the next receive posted.
    fn advance(&mut self, in_flight: u32, receiver: &Program) {
        self.count += 1;
        if in_flight > 0 && self.count > in_flight {
            self.window = after(receiver, self.window);
        }
    }

    /// What must be complete before the next one, since as many are under way as may be.
    fn waits_for(&self, in_flight: u32) -> Option<OpId> {
        (in_flight > 0 && self.count >= in_flight).then_some(self.window)
    }
}

/// The next receive of the same stream.
#[inline]
pub(super) fn after(receiver: &Program, receive: OpId) -> OpId {
    receiver.next(receive as usize).map_or(NONE, |next| next as OpId)
}

/// Of each stream that is received the first receive.
fn first_receives(schedule: &Schedule) -> Vec<OpId> {
    schedule.programs.iter().flat_map(Program::streams).collect()
}

impl Progress {
    /// Nothing was sent, and any number of messages may be under way.
    pub(super) fn new(schedule: &Schedule, streams: Streams) -> Progress {
        let posted = if streams.messages == streams.first.len() { Vec::new() } else { first_receives(schedule) };
        Progress { sent: streams, posted, windows: Vec::new() }
    }

    /// Lets so many messages of each stream be under way, of which nothing was sent yet. The streams are numbered as in `sent`.
    pub(super) fn limit(&mut self, schedule: &Schedule, places: &[Place], limits: &[u32]) {
        let end = |first: OpId| End { count: 0, window: first };
        let window = |&first| Window { in_flight: 0, sent: end(first), posted: end(first), held: false };
        self.posted = first_receives(schedule);
        self.windows = self.posted.iter().map(window).collect();
        for (rank, program) in schedule.programs.iter().enumerate() {
            for (stream, to) in (self.sent.at(rank, 0)..).zip(program.receivers()) {
                let receive = self.sent.first[stream] as usize;
                self.windows[(places[to].receives + schedule.programs[to].stream(receive)) as usize].in_flight = limits[stream];
            }
        }
    }

    /// True if senders wait for receivers.
    pub(super) fn is_limited(&self) -> bool {
        !self.windows.is_empty()
    }
}

impl Run<'_> {
    /// The receive of the next message of a stream that a rank sends.
    #[inline]
    fn receive(&self, stream: usize, to: Rank) -> OpId {
        let known = self.progress.sent.first[stream];
        if known & SENT == 0 { known } else { after(&self.schedule.programs[to], known & !SENT) }
    }

    /// The receive of a message that leaves.
    #[inline]
    pub(super) fn send(&mut self, rank: u32, op: usize, to: Rank) -> OpId {
        let stream = self.progress.sent.at(rank as Rank, self.schedule.programs[rank as usize].stream(op));
        let receive = self.receive(stream, to);
        self.progress.sent.first[stream] = receive | SENT;
        if self.progress.is_limited() {
            let theirs = &self.schedule.programs[to];
            let window = &mut self.progress.windows[(self.places[to].receives + theirs.stream(receive as usize)) as usize];
            window.sent.advance(window.in_flight, theirs);
        }
        receive
    }

    /// When a receive was posted, if it is by now, or else when that is to be looked at again; or what it waits for, which is not complete.
    /// Receives of a stream are posted in order.
    #[inline]
    pub(super) fn posted(&mut self, rank: u32, op: OpId, now: f64) -> std::result::Result<f64, OpId> {
        let (program, place) = (&self.schedule.programs[rank as usize], self.places[rank as usize]);
        let (first, stream) = (self.at(rank, 0), (place.receives + program.stream(op as usize)) as usize);
        // where there is no other one in its stream nothing tells how far that is
        if self.progress.windows.is_empty() && program.is_alone(op as usize) {
            return super::known(program, &self.done[first..], op).map(|ready| ready.max(now));
        }
        loop {
            let next = self.progress.posted[stream];
            if next > op {
                return Ok(now);
            }
            let mut ready = super::known(program, &self.done[first..], next)?;
            if let Some(window) = self.progress.windows.get(stream).and_then(|window| window.posted.waits_for(window.in_flight)) {
                let received = self.done[first + window as usize];
                ready = if super::is_complete(received) { ready.max(received) } else { return Err(window) };
            }
            if ready > now {
                return Ok(ready);
            }
            self.progress.posted[stream] = after(program, next);
            if let Some(window) = self.progress.windows.get_mut(stream) {
                window.posted.advance(window.in_flight, program);
            }
        }
    }

    /// When fewer messages of a send's stream are under way than may be, if that is known.
    #[inline]
    pub(super) fn window(&mut self, rank: u32, op: usize, to: Rank) -> Option<f64> {
        if !self.progress.is_limited() {
            return Some(0.0);
        }
        let theirs = self.places[to];
        let receive = self.receive(self.progress.sent.at(rank as Rank, self.schedule.programs[rank as usize].stream(op)), to);
        let stream = &mut self.progress.windows[(theirs.receives + self.schedule.programs[to].stream(receive as usize)) as usize];
        let Some(window) = stream.sent.waits_for(stream.in_flight) else { return Some(0.0) };
        let received = self.done[theirs.first as usize + window as usize];
        stream.held = !super::is_complete(received);
        (!stream.held).then_some(received)
    }

    /// A message of a stream was received: gives the rank that waits for that before it sends more, if it does.
    #[inline]
    pub(super) fn no_longer_held(&mut self, rank: u32, op: usize) -> Option<Rank> {
        if !self.progress.is_limited() {
            return None;
        }
        let program = &self.schedule.programs[rank as usize];
        let stream = &mut self.progress.windows[(self.places[rank as usize].receives + program.stream(op)) as usize];
        if std::mem::take(&mut stream.held) { program.message(op).map(|(from, _)| self.places[from].one as Rank) } else { None }
    }
}
