//! Messages under way where programs do not say how many may be: a replay lets all leave, and where more were under way than are then, it is done again
//! with as many. In nearly all schedules there never are, and their ranks can be replayed one after the other.

use super::Run;
use crate::error::Result;
use crate::schedule::{Streams, WINDOW, in_flight_unsaid};
use crate::topology::{Link, Rank};

/// What is said to be exceeded must be so by more than times are rounded by, which are added in another order than they were.
const ROUNDING: f64 = 1e-9;

impl Run<'_> {
    /// Of each stream that is sent how many messages of it may be under way, if nothing is said and there are more; else 0. Nothing if all are 0.
    pub(super) fn unsaid(&self) -> Vec<u32> {
        let mut in_flight = Vec::new();
        let mut streams: Vec<(usize, usize)> = Vec::new();
        for (rank, program) in self.schedule.programs.iter().enumerate().filter(|(_, program)| program.len() > WINDOW) {
            streams.clear();
            streams.resize(program.streams_sent(), (0, 0));
            for op in (0..program.len()).filter(|&op| program.sends_to(op).is_some()) {
                let (messages, longest) = &mut streams[program.stream(op) as usize];
                (*messages, *longest) = (*messages + 1, program.bytes(op).max(*longest));
            }
            for (place, (&(messages, longest), (_, said))) in (0..).zip(streams.iter().zip(program.outgoing())) {
                let most = in_flight_unsaid(longest);
                if said == 0 && messages > most {
                    in_flight.resize(self.progress.sent.first.len(), 0);
                    in_flight[self.progress.sent.at(rank, place)] = most as u32;
                }
            }
        }
        in_flight
    }

    /// True if in what was replayed more messages of a stream were under way than that.
    ///
    /// # Errors
    /// As [`Streams::new`].
    pub(super) fn exceeds(&self, in_flight: &[u32]) -> Result<bool> {
        if in_flight.is_empty() {
            return Ok(false);
        }
        let leaves_early = |(most, stream): (u32, Vec<(f64, f64)>)| {
            let mut before = stream.iter().zip(stream.iter().skip(most as usize));
            before.any(|(&(_, received), &(left, _))| left < received * (1.0 - ROUNDING))
        };
        let streams = self.left_and_received(|stream| in_flight[stream] > 0)?;
        Ok(in_flight.iter().copied().zip(streams).any(leaves_early))
    }

    /// True if so many segments under way, of a message whose first ones were replayed, are fewer than links want: what left last is received later than
    /// as many could be, at the pace at which they are.
    ///
    /// # Errors
    /// As [`Streams::new`].
    pub(super) fn wants_more(&self, in_flight: usize) -> Result<bool> {
        let wants = |stream: Vec<(f64, f64)>| match stream[..] {
            // the last one may be a short one
            [.., (_, before), (left, received), _] => received - left > (received - before) * in_flight as f64 * (1.0 + ROUNDING),
            _ => false,
        };
        Ok(self.left_and_received(|_| true)?.into_iter().any(wants))
    }

    /// Of those streams that are wanted, in the order of their senders, when each message left and was received.
    fn left_and_received(&self, wanted: impl Fn(usize) -> bool) -> Result<Vec<Vec<(f64, f64)>>> {
        let streams = Streams::new(self.schedule)?;
        let mut all = vec![Vec::new(); streams.first.len()];
        // what the sender's processor had to do for a message: of one of as many bytes on the same link before it it is known
        let mut known = (Link { from: 0, to: 0 }, 0, 0.0);
        streams.each(self.schedule, |(from, send), (to, receive)| {
            let program = &self.schedule.programs[from];
            let stream = streams.at(from, program.stream(send));
            // one of those that do alike tells of all
            if self.places[from].one as Rank != from || !wanted(stream) {
                return;
            }
            let (link, bytes) = (Link { from, to }, program.bytes(send));
            if (known.0, known.1) != (link, bytes) || from == to {
                known = (link, bytes, self.model.cost(link, bytes).send_overhead);
            }
            all[stream].push((self.done[self.places[from].first + send] - known.2, self.done[self.places[to].first + receive]));
        });
        Ok(all)
    }
}
