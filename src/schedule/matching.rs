//! Which send meets which receive.

use super::op::Op;
use super::program::{FEW_STREAMS, NONE};
use super::{OpId, Program, Schedule};
use crate::error::{Error, Result};
use crate::topology::Rank;
use rustc_hash::FxHashMap;

/// The streams of messages of all ranks, numbered.
#[derive(Debug, Clone)]
pub struct Streams {
    /// Where the streams of each rank begin among those of all, each here once for each end.
    begin: Vec<u32>,
    /// The number of each at both its ends, among those that are received; [`NONE`] where nobody receives it.
    number: Vec<u32>,
}

impl Streams {
    /// Pairs the streams of a schedule.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a message has no other end, or ends that differ in length.
    pub fn new(schedule: &Schedule) -> Result<Streams> {
        Streams::meeting(schedule, |_, _| ())
    }

    /// As [`Streams::new`]; each message's two ends, as ranks and operations, are told to `met`.
    fn meeting(schedule: &Schedule, mut met: impl FnMut((Rank, usize), (Rank, usize))) -> Result<Streams> {
        let wrong = |what: String| Err(Error::invalid(format!("check the schedule: {what}")));
        let streams = Streams::paired(schedule);
        // the next receive of each stream
        let mut next: Vec<u32> = schedule.programs.iter().flat_map(Program::streams).collect();
        for (me, program) in schedule.programs.iter().enumerate() {
            for (k, op) in program.ops.iter().enumerate().filter(|(_, op)| op.sends()) {
                let to = program.streams[op.stream() as usize].peer as Rank;
                if to >= schedule.ranks() {
                    return wrong(format!("rank {me} sends to rank {to}, there are {} ranks", schedule.ranks()));
                }
                let received = streams.number(me, op.stream()).filter(|&s| next[s] != NONE);
                let Some(stream) = received else { return wrong(format!("a message from rank {me} to rank {to} is never received")) };
                let theirs = next[stream] as usize;
                let receive = &schedule.programs[to].ops[theirs];
                let (sent, expected) = (op.len, receive.len);
                if sent != expected {
                    return wrong(format!("rank {me} sends {sent} bytes to rank {to}, which expects {expected}"));
                }
                next[stream] = receive.next;
                met((me, k), (to, theirs));
            }
        }
        for (me, program) in schedule.programs.iter().enumerate() {
            let waits = |s: u32| streams.number(me, s).is_some_and(|number| next[number] != NONE);
            let waits = program.streams.iter().zip(0..).find(|&(stream, s)| stream.receives && waits(s));
            if let Some((stream, _)) = waits {
                return wrong(format!("rank {me} waits for a message that rank {} never sends", stream.peer));
            }
        }
        Ok(streams)
    }

    /// Numbers the streams, in the order of those that receive them, and finds where each is sent.
    fn paired(schedule: &Schedule) -> Streams {
        let mut begin = Vec::with_capacity(schedule.ranks() + 1);
        begin.push(0);
        for program in &schedule.programs {
            begin.push(begin[begin.len() - 1] + program.streams.len() as u32);
        }
        let mut received = 0..;
        let receives = schedule.programs.iter().flat_map(|p| &p.streams).map(|s| if s.receives { received.next() } else { None });
        let mut streams = Streams { number: receives.map(|number| number.unwrap_or(NONE)).collect(), begin };
        // receives of ranks that have many streams
        let mut many = FxHashMap::default();
        for (to, program) in schedule.programs.iter().enumerate().filter(|(_, p)| p.streams.len() >= FEW_STREAMS) {
            many.extend(program.streams.iter().zip(0u32..).filter(|(s, _)| s.receives).map(|(s, k)| ((s.peer, to as u32, s.lane), k)));
        }
        for (me, program) in schedule.programs.iter().enumerate() {
            for (k, sends) in program.streams.iter().enumerate().filter(|(_, s)| !s.receives) {
                let Some(theirs) = schedule.programs.get(sends.peer as usize).map(|p| &p.streams) else { continue };
                let found = if theirs.len() < FEW_STREAMS {
                    theirs.iter().position(|s| s.key() == (me as u32, sends.lane, true)).map(|s| s as u32)
                } else {
                    many.get(&(me as u32, sends.peer, sends.lane)).copied()
                };
                if let Some(found) = found {
                    let (mine, theirs) = (streams.at(me, k as u32), streams.at(sends.peer as Rank, found));
                    streams.number[mine] = streams.number[theirs];
                }
            }
        }
        streams
    }

    /// The place of a rank's stream among those of all.
    #[inline]
    fn at(&self, rank: Rank, stream: u32) -> usize {
        (self.begin[rank] + stream) as usize
    }

    /// The number of one of a rank's streams, the same as at its other end.
    #[inline]
    pub fn number(&self, rank: Rank, stream: u32) -> Option<usize> {
        Some(self.number[self.at(rank, stream)]).filter(|&s| s != NONE).map(|s| s as usize)
    }
}

/// For each rank and operation, the rank and operation at the other end of its message. Delays have none.
#[derive(Debug, Clone)]
pub struct Matching {
    /// Where the operations of each rank begin among those of all.
    begin: Vec<usize>,
    /// By operation of all ranks; [`NOBODY`] where it is no message.
    partner: Vec<(u32, OpId)>,
}

/// There is no other end.
const NOBODY: (u32, OpId) = (u32::MAX, NONE);

impl Matching {
    /// The other end of an operation's message.
    #[inline]
    pub fn partner(&self, rank: usize, op: usize) -> Option<(usize, usize)> {
        let (other, theirs) = self.partner[self.begin[rank] + op];
        ((other, theirs) != NOBODY).then_some((other as usize, theirs as usize))
    }
}

/// Pairs the k-th send from a to b in a lane with the k-th receive at b from a in that lane.
///
/// # Errors
/// [`Error::Invalid`] if a message has no other end, or ends that differ in length.
pub fn matching(schedule: &Schedule) -> Result<Matching> {
    let mut all = 0;
    let begin = |p: &Program| {
        all += p.len();
        all - p.len()
    };
    let begin: Vec<usize> = schedule.programs.iter().map(begin).collect();
    let mut partner = vec![NOBODY; all];
    Streams::meeting(schedule, |(me, send), (to, receive)| {
        partner[begin[me] + send] = (to as u32, receive as OpId);
        partner[begin[to] + receive] = (me as u32, send as OpId);
    })?;
    Ok(Matching { begin, partner })
}

impl Program {
    /// For each operation, the one of its stream that must be complete before it may start, since no more may be under way, or [`OpId::MAX`].
    pub fn windows(&self) -> Vec<OpId> {
        // messages by stream, each stream's from its place on
        let mut begin = vec![0; self.streams.len() + 1];
        self.ops.iter().filter(|op| op.is_message()).for_each(|op| begin[op.stream() as usize + 1] += 1);
        (1..begin.len()).for_each(|k| begin[k] += begin[k - 1]);
        let (mut next, mut messages) = (begin.clone(), vec![NONE; begin[begin.len() - 1]]);
        let mut window = |(k, op): (usize, &Op)| {
            if !op.is_message() {
                return NONE;
            }
            let (stream, in_flight) = (op.stream() as usize, self.in_flight_at(k));
            let at = next[stream];
            (messages[at], next[stream]) = (k as OpId, at + 1);
            if at - begin[stream] < in_flight { NONE } else { messages[at - in_flight] }
        };
        self.ops.iter().enumerate().map(&mut window).collect()
    }

    /// How many streams it sends.
    pub fn streams_sent(&self) -> usize {
        self.streams.iter().filter(|stream| !stream.receives).count()
    }

    /// True if messages come from several ranks.
    pub fn receives_from_several(&self) -> bool {
        let mut receives = self.streams.iter().filter(|stream| stream.receives);
        let first = receives.next();
        receives.any(|stream| first.is_some_and(|first| stream.peer != first.peer))
    }
}
