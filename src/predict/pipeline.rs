//! What a pipeline takes, by its first segments.

use super::{Run, completion_within};
use crate::error::{Error, Result};
use crate::model::{Cost, CostModel};
use crate::schedule::{Action, Program, Schedule, in_flight_unsaid};
use crate::topology::{Link, Rank};
use std::borrow::Borrow;

/// A pipeline is looked at after so many turns at least, and after twice and three times as many.
const FULL: usize = 4;
/// So many looks are taken.
const LOOKS: usize = 3;
/// Where a turn is long, after so many segments: those of a relay over tens of groups would be nearly the whole message.
const FULL_SEGMENTS: usize = 32;

/// What is left out of a pipeline must be known to this share of the whole.
const KNOWN: f64 = 0.01;

/// How what is done with a message repeats itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Repeats {
    /// Bytes of the segments that all of it goes in; 0: it goes in other pieces too.
    pub segment: usize,
    /// After so many of them.
    pub turn: usize,
    /// So many turns may be under way on each link; 0: nothing is said ([`in_flight_unsaid`]).
    pub in_flight: usize,
}

impl Repeats {
    /// The least of a message that it is predicted by: as many turns as there are looks, or all of it where it goes in no segments or in fewer.
    pub fn least_looked_at(&self, bytes: usize) -> usize {
        let turn = self.turn.saturating_mul(self.segment);
        if turn == 0 { bytes } else { bytes.min(turn.saturating_mul(LOOKS)) }
    }

    /// The parts that such a message is made of: one turn, with how often it is done, and the rest; of a message of fewer turns than two all of it.
    pub fn parts(&self, bytes: usize) -> [(usize, f64); 2] {
        let turn = self.turn.saturating_mul(self.segment);
        match bytes.checked_div(turn).filter(|&turns| turns > 1) {
            Some(turns) => [(turn, turns as f64), (bytes - turns * turn, 1.0)],
            None => [(0, 0.0), (bytes, 1.0)],
        }
    }
}

/// What a message takes in segments: once the pipeline is full, each further turn of so many segments, after which what is done with them repeats
/// itself, takes each rank as long as the one before. Where turns are seen to differ by what would be more than a hundredth of the whole, that is replayed, if
/// it is not too large to be. Before as many are under way as may be a pipeline is not full. What takes longer than `limit` takes for ever.
///
/// # Errors
/// As [`super::replay`], and those of `schedule`, which builds what is done with so many bytes in such segments.
pub fn pipelined<S: Borrow<Schedule>>(
    bytes: usize,
    repeats: Repeats,
    model: &dyn CostModel,
    limit: f64,
    schedule: impl Fn(usize) -> Result<S>,
) -> Result<f64> {
    let full = FULL.min(FULL_SEGMENTS.div_ceil(repeats.turn.max(1))).max(repeats.in_flight);
    if limit.is_finite() && busy(bytes, repeats, model, &schedule)? * (1.0 - KNOWN) > limit {
        return Ok(f64::INFINITY);
    }
    let seen = extrapolated(bytes, repeats, full, model, limit, &schedule)?;
    if let Some((seconds, _)) = seen.filter(|(seconds, unsure)| *unsure <= KNOWN * seconds) {
        return Ok(seconds);
    }
    match schedule(bytes) {
        // the best that can be known of it
        Err(too_large @ Error::TooLarge(_)) => {
            let few = Repeats { in_flight: 1, ..repeats };
            let seen = seen.map_or_else(|| extrapolated(bytes, few, 1, model, limit, &schedule), |seen| Ok(Some(seen)))?;
            seen.map(|(seconds, _)| seconds).ok_or(too_large)
        }
        whole => completion_within(whole?.borrow(), model, limit),
    }
}

/// The least that a message takes: so long all of it keeps the port, until the last send, or the processor that is busiest. Of a message of one turn, which
/// would be built whole for that, it says nothing.
fn busy<S: Borrow<Schedule>>(bytes: usize, repeats: Repeats, model: &dyn CostModel, schedule: impl Fn(usize) -> Result<S>) -> Result<f64> {
    let parts = repeats.parts(bytes);
    if parts[0].0 == 0 {
        return Ok(0.0);
    }
    let mut busy: Vec<Busy> = Vec::new();
    for (part, times) in parts.into_iter().filter(|part| part.0 > 0) {
        let part = schedule(part)?;
        let part = part.borrow();
        busy.resize(part.ranks(), Busy::default());
        part.programs.iter().enumerate().for_each(|(rank, program)| busy[rank].add(rank, program, times, model));
    }
    Ok(busy.iter().map(Busy::least).fold(0.0, f64::max))
}

/// Seconds that what a rank does keeps its port, the longest time of one send among them, and its processor.
#[derive(Clone, Copy, Default)]
pub struct Busy {
    port: f64,
    longest: f64,
    processor: f64,
}

impl Busy {
    /// Of one program.
    pub fn of(rank: Rank, program: &Program, model: &dyn CostModel) -> Busy {
        let mut busy = Busy::default();
        busy.add(rank, program, 1.0, model);
        busy
    }

    /// Adds a program, so many times.
    pub fn add(&mut self, rank: Rank, program: &Program, times: f64, model: &dyn CostModel) {
        // most messages are as the one before, one way and the other
        let mut known: [Option<(Rank, usize, Cost)>; 2] = [None; 2];
        for op in 0..program.len() {
            let Some((peer, bytes)) = program.message(op) else { continue };
            let is_sent = program.sends_to(op).is_some();
            let cost = match known[usize::from(is_sent)] {
                Some((of, size, cost)) if (of, size) == (peer, bytes) => cost,
                _ => model.cost(if is_sent { Link { from: rank, to: peer } } else { Link { from: peer, to: rank } }, bytes),
            };
            known[usize::from(is_sent)] = Some((peer, bytes, cost));
            if is_sent {
                self.port += times * cost.gap;
                self.longest = self.longest.max(cost.gap);
                self.processor += times * cost.send_overhead;
            } else {
                self.processor += times * cost.recv_overhead;
            }
        }
    }

    /// So long it takes at least: until the last send, or all that the processor does.
    pub fn least(&self) -> f64 {
        f64::max(self.port - self.longest, self.processor)
    }
}

/// What a message takes by its first three looks of so many turns, and how much that would differ if the second and the third look
/// were what all further turns are like; `None` if hardly anything would be left out.
fn extrapolated<S: Borrow<Schedule>>(
    bytes: usize,
    repeats: Repeats,
    turns: usize,
    model: &dyn CostModel,
    limit: f64,
    schedule: &impl Fn(usize) -> Result<S>,
) -> Result<Option<(f64, f64)>> {
    let turn = repeats.turn.saturating_mul(repeats.segment);
    // whole turns can be left out: what is left over is a part of one, and the last segment a short one
    let left_out = bytes.checked_div(turn).unwrap_or(0).saturating_sub(LOOKS * turns);
    if left_out <= turns {
        return Ok(None);
    }
    let first = schedule(bytes - left_out * turn)?;
    let mut run = Run::new(first.borrow(), model)?;
    // more bytes take no less
    if !run.go(limit)? || run.completion() == f64::INFINITY {
        return Ok(Some((f64::INFINITY, 0.0)));
    }
    // what is lost depends on all of it
    if run.losing.may_lose {
        return Ok(None);
    }
    // what is under way where nothing is said may be too little for the links, as is seen only once it is
    let unsaid = in_flight_unsaid(repeats.segment);
    if repeats.in_flight == 0 && bytes / repeats.segment > unsaid && turns < unsaid && run.wants_more(unsaid)? {
        return extrapolated(bytes, repeats, unsaid, model, limit, schedule);
    }
    let [few, more, most, ends] = run.received([turns * turn, 2 * turns * turn, 3 * turns * turn, bytes]);
    // each rank at its own pace: one that is slow may be the last one only after many turns
    let at_the_pace = |from: &[f64], to: &[f64]| {
        let of = |rank: usize| ends[rank] + (to[rank] - from[rank]) * left_out as f64 / turns as f64;
        (0..ends.len()).map(of).fold(run.completion(), f64::max)
    };
    let (before, all) = (at_the_pace(&few, &more), at_the_pace(&more, &most));
    Ok(Some((all, (all - before).abs())))
}

impl Run<'_> {
    /// When each rank had received so many bytes of the message, from its first: of some numbers, ascending.
    fn received<const N: usize>(&self, bytes: [usize; N]) -> [Vec<f64>; N] {
        let mut received = [const { Vec::new() }; N];
        for (program, place) in self.schedule.programs.iter().zip(&self.places) {
            let mut latest = [0.0; N];
            for (action, &done) in program.actions().zip(&self.done[place.first as usize..]) {
                if let Action::Recv { span, .. } = action
                    && let Some(look) = bytes.iter().position(|&bytes| span.end() <= bytes)
                {
                    latest[look] = f64::max(latest[look], done);
                }
            }
            // what had come before one look had so before the next
            let so_far = latest.iter().scan(0.0, |so_far, &latest| {
                *so_far = f64::max(*so_far, latest);
                Some(*so_far)
            });
            received.iter_mut().zip(so_far).for_each(|(received, latest)| received.push(latest));
        }
        received
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{WINDOW, growing_segments, segments};

    #[test]
    fn what_is_looked_at_is_in_segments_that_are_alike() {
        for in_flight in 0..=WINDOW {
            let longest = (3 * FULL.max(in_flight) + 1) * 512 - 1;
            assert!(growing_segments(longest, 512, in_flight).eq(segments(longest, 512)), "{in_flight} under way");
        }
    }
}
