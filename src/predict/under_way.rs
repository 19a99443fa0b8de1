//! Messages under way. Where ranks can be replayed one after the other all messages leave, and if more were under way than may be, it is done again, by time,
//! with as many: there seldom are, since as many may be as links want.

use super::{Run, progress};
use crate::error::Result;
use crate::schedule::{NONE, Program, Streams, WINDOW, in_flight_unsaid};
use crate::stats::ROUNDING;
use crate::topology::{Link, Rank};

/// How many messages of each stream that is sent may be under way, if there are more; else 0. Nothing if all are 0.
pub(super) fn limits(programs: &[Program], streams: &Streams) -> Vec<u32> {
    let mut limits = Vec::new();
    let mut sent: Vec<(usize, usize)> = Vec::new();
    // each stream has one message at least, and each of its ends may say something
    let least = if programs.iter().any(Program::limits_messages) { 1 } else { WINDOW };
    let most_in_one = |program: &Program| if program.len() > least { program.messages() + 1 - program.streams_sent() } else { 0 };
    for (rank, program) in programs.iter().enumerate().filter(|(_, program)| most_in_one(program) > least) {
        sent.clear();
        sent.resize(program.streams_sent(), (0, 0));
        for (stream, bytes) in program.sent() {
            let (messages, longest) = &mut sent[stream as usize];
            (*messages, *longest) = (*messages + 1, bytes.max(*longest));
        }
        for (place, (&(messages, longest), (to, said))) in (0..).zip(sent.iter().zip(program.outgoing())) {
            let stream = streams.at(rank, place);
            let theirs = programs[to].in_flight_said(streams.first[stream] as usize);
            let least = [said, theirs].into_iter().filter(|&said| said > 0).min().unwrap_or_else(|| in_flight_unsaid(longest));
            if messages > least {
                limits.resize(streams.first.len(), 0);
                limits[stream] = least as u32;
            }
        }
    }
    limits
}

impl Run<'_> {
    /// True if in what was replayed more messages of a stream were under way than that. `streams`: as they were before.
    pub(super) fn exceeds(&self, limits: &[u32], streams: &Streams) -> bool {
        // of each stream how many were sent, the receive that must have been complete before the next one, and when all before that were: a short message
        // may overtake a long one
        let mut sent: Vec<(u32, u32, f64)> = streams.first.iter().map(|&first| (0, first, 0.0)).collect();
        self.messages(streams).any(|(stream, link, op)| {
            let (count, before, all) = &mut sent[stream];
            *count += 1;
            if limits[stream] == 0 || *count <= limits[stream] {
                return false;
            }
            *all = all.max(self.done[self.places[link.to].first as usize + *before as usize]);
            *before = progress::after(&self.schedule.programs[link.to], *before);
            let overhead = self.model.cost(link, self.schedule.programs[link.from].bytes(op)).send_overhead;
            self.done[self.places[link.from].first as usize + op] - overhead < *all / ROUNDING
        })
    }

    /// True if so many segments under way, of a message whose first ones were replayed, are fewer than links want: what left last is received later than
    /// as many could be, at the pace at which they are.
    ///
    /// # Errors
    /// As [`Streams::new`].
    pub(super) fn wants_more(&self, in_flight: usize) -> Result<bool> {
        let streams = Streams::new(self.schedule)?;
        let mut next = streams.first.clone();
        let mut last: Vec<Option<(f64, f64, f64)>> = vec![None; next.len()];
        for (stream, link, op) in self.messages(&streams) {
            let (receiver, bytes) = (&self.schedule.programs[link.to], self.schedule.programs[link.from].bytes(op));
            let received = self.done[self.places[link.to].first as usize + next[stream] as usize];
            let left = self.done[self.places[link.from].first as usize + op] - self.model.cost(link, bytes).send_overhead;
            next[stream] = progress::after(receiver, next[stream]);
            // the last one may be a short one
            if next[stream] != NONE {
                let pace = last[stream].map_or(f64::INFINITY, |(_, before, _)| received - before);
                last[stream] = Some((left, received, pace));
            }
        }
        let wants = |(left, received, pace): (f64, f64, f64)| received - left > pace * in_flight as f64 * ROUNDING;
        Ok(last.into_iter().flatten().any(wants))
    }

    /// Of each message of ranks that were replayed, for themselves and maybe for others: its stream, its link and its send, sender by sender.
    fn messages<'s>(&'s self, streams: &'s Streams) -> impl Iterator<Item = (usize, Link, usize)> + 's {
        let ones = self.schedule.programs.iter().enumerate().filter(|&(rank, _)| self.places[rank].one as Rank == rank);
        ones.flat_map(move |(from, program)| {
            let message = move |op| Some((streams.at(from, program.stream(op)), Link { from, to: program.sends_to(op)? }, op));
            (0..program.len()).filter_map(message)
        })
    }
}
