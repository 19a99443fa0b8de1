//! Which send meets which receive.

use super::op::{Kind, Op};
use super::stream::{FEW_STREAMS, Key};
use super::{NONE, OpId, Program, Schedule};
use crate::error::{Error, Result};
use crate::topology::Rank;
use rustc_hash::FxHashMap;

/// Where the streams of messages of all ranks meet.
#[derive(Debug, Clone)]
pub struct Streams {
    /// Where the streams that each rank sends begin among those of all.
    begin: Vec<u32>,
    /// Of each stream the first receive at its other end; [`NONE`] where nobody receives it.
    pub(crate) first: Vec<OpId>,
}

impl Streams {
    /// Pairs the streams of a schedule.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a message has no other end, or ends that differ in length.
    pub fn new(schedule: &Schedule) -> Result<Streams> {
        let wrong = |what: String| Err(Error::invalid(format!("check the schedule: {what}")));
        let streams = Streams::paired(schedule);
        // the next receive of each stream
        let (mut next, mut messages) = (streams.first.clone(), 0usize);
        for (me, program) in schedule.programs.iter().enumerate() {
            for (k, op) in program.ops.iter().enumerate().filter(|(_, op)| op.sends()) {
                let to = program.sends[op.place() as usize].peer as Rank;
                if to >= schedule.ranks() {
                    return wrong(format!("rank {me} sends to rank {to}, there are {} ranks", schedule.ranks()));
                }
                let next = &mut next[streams.at(me, op.place())];
                if *next == NONE {
                    return wrong(format!("a message from rank {me} to rank {to} is never received"));
                }
                let (theirs, receiver) = (*next as usize, &schedule.programs[to]);
                let (sent, expected) = (program.bytes(k), receiver.bytes(theirs));
                if sent != expected {
                    return wrong(format!("rank {me} sends {sent} bytes to rank {to}, which expects {expected}"));
                }
                *next = receiver.ops[theirs].next;
                messages += 1;
            }
        }
        if messages < schedule.programs.iter().map(Program::receives).sum::<usize>() {
            let (me, peer) = streams.never_sent(schedule, &next);
            return wrong(format!("rank {me} waits for a message that rank {peer} never sends"));
        }
        Ok(streams)
    }

    /// Tells of each message of the schedule its two ends, as ranks and operations, sender by sender.
    pub fn each(&self, schedule: &Schedule, mut met: impl FnMut((Rank, usize), (Rank, usize))) {
        // of each stream the receive of its last message; of one that comes alone nothing is looked up
        let mut last = vec![NONE; self.first.len()];
        for (me, program) in schedule.programs.iter().enumerate() {
            for (k, op) in program.ops.iter().enumerate().filter(|(_, op)| op.sends()) {
                let (stream, to) = (self.at(me, op.place()), program.sends[op.place() as usize].peer as Rank);
                let theirs = match last[stream] {
                    NONE => self.first[stream],
                    last => schedule.programs[to].ops[last as usize].next,
                };
                last[stream] = theirs;
                met((me, k), (to, theirs as usize));
            }
        }
    }

    /// A rank that waits for more messages than are sent to it, and whose they would be. `next`: the next receive of each stream when all were sent.
    fn never_sent(&self, schedule: &Schedule, next: &[OpId]) -> (Rank, u32) {
        let mut streams =
            schedule.programs.iter().enumerate().flat_map(|(me, p)| p.receives.iter().map(move |incoming| (me, incoming.stream)));
        let waits = |(me, stream): &(Rank, super::stream::Stream)| {
            let theirs = schedule.programs.get(stream.peer as Rank).map_or(&[][..], |p| &p.sends[..]);
            let place = theirs.iter().position(|sent| sent.key() == (*me as u32, stream.lane));
            place.is_none_or(|place| next[self.at(stream.peer as Rank, place as u32)] != NONE)
        };
        streams.find(waits).map_or((0, 0), |(me, stream)| (me, stream.peer))
    }

    /// Finds where each stream is received.
    fn paired(schedule: &Schedule) -> Streams {
        let mut begin = Vec::with_capacity(schedule.ranks() + 1);
        begin.push(0);
        for program in &schedule.programs {
            begin.push(begin[begin.len() - 1] + program.sends.len() as u32);
        }
        let first = vec![NONE; begin[schedule.ranks()] as usize];
        let mut streams = Streams { begin, first };
        // how many streams go to each rank that receives many
        let mut many: Vec<u32> = Vec::new();
        for (me, program) in schedule.programs.iter().enumerate() {
            for (sent, at) in program.sends.iter().zip(streams.begin[me]..) {
                let Some(theirs) = schedule.programs.get(sent.peer as usize).map(|p| &p.receives) else { continue };
                if theirs.len() >= FEW_STREAMS {
                    many.resize(schedule.ranks(), 0);
                    many[sent.peer as usize] += 1;
                } else if let Some(met) = theirs.iter().find(|incoming| incoming.stream.key() == (me as u32, sent.lane)) {
                    streams.first[at as usize] = met.first;
                }
            }
        }
        if !many.is_empty() {
            streams.pair_many(schedule, many);
        }
        streams
    }

    /// Finds where streams to ranks that receive many are received, of which there are so many. Receiver by receiver: what is looked up stays near.
    fn pair_many(&mut self, schedule: &Schedule, mut many: Vec<u32>) {
        let end = many.iter_mut().fold(0, |sum, n| {
            *n += sum;
            *n
        });
        // who sends them, and where each is among those of all
        let mut to_one = vec![(0, 0); end as usize];
        for (me, program) in schedule.programs.iter().enumerate().rev() {
            for (sent, at) in program.sends.iter().zip(self.begin[me]..) {
                let to = sent.peer as usize;
                if schedule.programs.get(to).is_some_and(|p| p.receives.len() >= FEW_STREAMS) {
                    many[to] -= 1;
                    to_one[many[to] as usize] = (me as u32, at);
                }
            }
        }
        let mut receives: FxHashMap<Key, OpId> = FxHashMap::default();
        for (to, program) in schedule.programs.iter().enumerate() {
            let end = many.get(to + 1).copied().unwrap_or(end);
            let sent = &to_one[many[to] as usize..end as usize];
            if sent.is_empty() {
                continue;
            }
            receives.clear();
            receives.extend(program.receives.iter().map(|incoming| (incoming.stream.key(), incoming.first)));
            for &(from, at) in sent {
                let lane = schedule.programs[from as usize].sends[(at - self.begin[from as usize]) as usize].lane;
                if let Some(&first) = receives.get(&(from, lane)) {
                    self.first[at as usize] = first;
                }
            }
        }
    }

    /// The place of a stream that a rank sends among those of all.
    #[inline]
    pub fn at(&self, rank: Rank, stream: u32) -> usize {
        (self.begin[rank] + stream) as usize
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
    Streams::new(schedule)?.each(schedule, |(me, send), (to, receive)| {
        partner[begin[me] + send] = (to as u32, receive as OpId);
        partner[begin[to] + receive] = (me as u32, send as OpId);
    });
    Ok(Matching { begin, partner })
}

impl Program {
    /// For each operation, the one of its stream that must be complete before it may start, since no more may be under way, or [`OpId::MAX`].
    pub fn windows(&self) -> Vec<OpId> {
        let place = |op: &Op| match op.kind() {
            Kind::Send => Some(op.place() as usize),
            Kind::Recv => Some(self.sends.len() + op.place() as usize),
            _ => None,
        };
        // messages by stream, each stream's from its place on
        let mut begin = vec![0; self.sends.len() + self.receives.len() + 1];
        self.ops.iter().filter_map(place).for_each(|stream| begin[stream + 1] += 1);
        (1..begin.len()).for_each(|k| begin[k] += begin[k - 1]);
        let (mut next, mut messages) = (begin.clone(), vec![NONE; begin[begin.len() - 1]]);
        let mut window = |(k, op): (usize, &Op)| {
            let Some(stream) = place(op) else { return NONE };
            let (at, in_flight) = (next[stream], self.in_flight_at(k));
            (messages[at], next[stream]) = (k as OpId, at + 1);
            if at - begin[stream] < in_flight { NONE } else { messages[at - in_flight] }
        };
        self.ops.iter().enumerate().map(&mut window).collect()
    }

    /// How many streams it sends.
    pub fn streams_sent(&self) -> usize {
        self.sends.len()
    }

    /// How many streams it receives.
    pub fn streams_received(&self) -> usize {
        self.receives.len()
    }

    /// True if it says of a stream how many of its messages are under way.
    pub fn limits_messages(&self) -> bool {
        self.sends.iter().chain(self.receives.iter().map(|incoming| &incoming.stream)).any(|stream| stream.in_flight > 0)
    }

    /// True if messages come from several ranks.
    pub fn receives_from_several(&self) -> bool {
        self.receives.iter().any(|incoming| incoming.stream.peer != self.receives[0].stream.peer)
    }

    /// The number of messages that it receives.
    fn receives(&self) -> usize {
        self.ops.iter().filter(|op| op.kind() == Kind::Recv).count()
    }
}
