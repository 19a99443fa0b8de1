//! Which send meets which receive.

use super::op::{Kind, Op};
use super::stream::{FEW_STREAMS, Incoming};
use super::{Action, Lane, NONE, OpId, Program, Schedule};
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
    /// How many messages they have in all.
    pub(crate) messages: usize,
}

impl Streams {
    /// Pairs the streams of a schedule.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a message has no other end, or ends that differ in length.
    pub fn new(schedule: &Schedule) -> Result<Streams> {
        let wrong = |what: String| Err(Error::invalid(format!("check the schedule: {what}")));
        let mut streams = Streams::to_many(schedule);
        let (mut sent, mut expected) = (0usize, 0usize);
        let mut next = Vec::new();
        for (me, program) in schedule.programs.iter().enumerate() {
            let body = program.body();
            streams.find_few(schedule, me);
            // the next receive of each of its streams
            next.clear();
            next.extend_from_slice(&streams.first[streams.at(me, 0)..][..body.sends.len()]);
            for op in &body.ops {
                expected += usize::from(op.kind() == Kind::Recv);
                if !op.sends() {
                    continue;
                }
                let to = program.parts.to(op.place());
                let Some(receiver) = schedule.programs.get(to) else {
                    return wrong(format!("rank {me} sends to rank {to}, there are {} ranks", schedule.ranks()));
                };
                let next = &mut next[op.place() as usize];
                if *next == NONE {
                    return wrong(format!("a message from rank {me} to rank {to} is never received"));
                }
                let (bytes, theirs) = (op.bytes(&body.words), *next as usize);
                if bytes != receiver.bytes(theirs) {
                    let expected = receiver.bytes(theirs);
                    return wrong(format!("rank {me} sends {bytes} bytes to rank {to}, which expects {expected}"));
                }
                *next = receiver.body().ops[theirs].next;
                sent += 1;
            }
        }
        if sent < expected {
            let (me, peer) = never_sent(schedule);
            return wrong(format!("rank {me} waits for a message that rank {peer} never sends"));
        }
        streams.messages = sent;
        Ok(streams)
    }

    /// Tells of each message of the schedule its two ends, as ranks and operations, sender by sender.
    pub fn each(&self, schedule: &Schedule, mut met: impl FnMut((Rank, usize), (Rank, usize))) {
        // of each stream the receive of its last message; of one that comes alone nothing is looked up
        let mut last = vec![NONE; self.first.len()];
        for (me, program) in schedule.programs.iter().enumerate() {
            let body = program.body();
            for (k, op) in body.ops.iter().enumerate().filter(|(_, op)| op.sends()) {
                let (stream, to) = (self.at(me, op.place()), program.parts.to(op.place()));
                let theirs = match last[stream] {
                    NONE => self.first[stream],
                    last => schedule.programs[to].body().ops[last as usize].next,
                };
                last[stream] = theirs;
                met((me, k), (to, theirs as usize));
            }
        }
    }

    /// Finds where those streams are received that go to ranks that receive many.
    fn to_many(schedule: &Schedule) -> Streams {
        let mut begin = Vec::with_capacity(schedule.ranks() + 1);
        begin.push(0);
        for program in &schedule.programs {
            begin.push(begin[begin.len() - 1] + program.streams_sent() as u32);
        }
        let first = vec![NONE; begin[schedule.ranks()] as usize];
        let mut streams = Streams { begin, first, messages: 0 };
        if schedule.programs.iter().any(|program| program.streams_received() >= FEW_STREAMS) {
            streams.find_many(schedule);
        }
        streams
    }

    /// Finds where those of a rank's streams are received that go to ranks that receive few.
    fn find_few(&mut self, schedule: &Schedule, me: Rank) {
        let program = &schedule.programs[me];
        let at = self.at(me, 0);
        for ((to, sent), first) in program.receivers().zip(&program.body().sends).zip(&mut self.first[at..]) {
            let Some(receiver) = schedule.programs.get(to) else { continue };
            let (theirs, from) = (&receiver.body().receives, receiver.parts.peers().1);
            let is_it = |&(&from, incoming): &(&u32, &Incoming)| from as Rank == me && incoming.stream.lane == sent.lane;
            if theirs.len() < FEW_STREAMS
                && let Some((_, met)) = from.iter().zip(theirs).find(is_it)
            {
                *first = met.first;
            }
        }
    }

    /// Finds where streams to ranks that receive many are received. Receiver by receiver: what is looked up stays near.
    fn find_many(&mut self, schedule: &Schedule) {
        let receives_many = |rank: Rank| schedule.programs.get(rank).is_some_and(|p| p.streams_received() >= FEW_STREAMS);
        // where those begin that go to each rank, among those that go to any of these
        let mut begin = vec![0u32; schedule.ranks() + 1];
        for to in schedule.programs.iter().flat_map(Program::receivers).filter(|&to| receives_many(to)) {
            begin[to + 1] += 1;
        }
        (1..begin.len()).for_each(|rank| begin[rank] += begin[rank - 1]);
        // who sends them, and where each is among those of all
        let (mut next, mut to_one) = (begin.clone(), vec![(0, 0); begin[schedule.ranks()] as usize]);
        for (me, program) in schedule.programs.iter().enumerate() {
            for (to, at) in program.receivers().zip(self.begin[me]..).filter(|&(to, _)| receives_many(to)) {
                to_one[next[to] as usize] = (me as u32, at);
                next[to] += 1;
            }
        }
        // of each rank the last stream that a receiver has from it, and of each of its streams the one before it from the same rank, in another lane
        let (mut last, mut before) = (vec![NONE; schedule.ranks()], Vec::new());
        for (to, program) in schedule.programs.iter().enumerate() {
            let sent = &to_one[begin[to] as usize..begin[to + 1] as usize];
            if sent.is_empty() {
                continue;
            }
            let (peers, receives) = (program.parts.peers().1, &program.body().receives);
            before.clear();
            before.extend(
                (0..).zip(peers).map(|(stream, &from)| last.get_mut(from as usize).map_or(NONE, |last| std::mem::replace(last, stream))),
            );
            for &(from, at) in sent {
                let lane = schedule.programs[from as usize].body().sends.as_slice()[(at - self.begin[from as usize]) as usize].lane;
                let mut stream = last[from as usize];
                while let Some(incoming) = receives.get(stream as usize) {
                    if incoming.stream.lane == lane {
                        self.first[at as usize] = incoming.first;
                        break;
                    }
                    stream = before[stream as usize];
                }
            }
            for &from in peers {
                last.get_mut(from as usize).into_iter().for_each(|last| *last = NONE);
            }
        }
    }

    /// The place of a stream that a rank sends among those of all.
    #[inline]
    pub fn at(&self, rank: Rank, stream: u32) -> usize {
        (self.begin[rank] + stream) as usize
    }
}

/// A rank that waits for more messages than are sent to it, and whose they would be.
fn never_sent(schedule: &Schedule) -> (Rank, Rank) {
    // by sender, receiver and lane how many more messages are sent than received
    let mut more: FxHashMap<(Rank, Rank, Lane), i64> = FxHashMap::default();
    for (me, program) in schedule.programs.iter().enumerate() {
        for op in 0..program.len() {
            match program.action(op) {
                Action::Send { to, .. } => *more.entry((me, to, program.lane(op))).or_default() += 1,
                Action::Recv { from, .. } => *more.entry((from, me, program.lane(op))).or_default() -= 1,
                _ => {}
            }
        }
    }
    let first = more.into_iter().filter(|&(_, more)| more < 0).map(|((from, to, _), _)| (to, from)).min();
    first.unwrap_or_default()
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
        let body = self.body();
        let place = |op: &Op| match op.kind() {
            Kind::Send => Some(op.place() as usize),
            Kind::Recv => Some(body.sends.len() + op.place() as usize),
            _ => None,
        };
        // messages by stream, each stream's from its place on
        let mut begin = vec![0; body.sends.len() + body.receives.len() + 1];
        body.ops.iter().filter_map(place).for_each(|stream| begin[stream + 1] += 1);
        (1..begin.len()).for_each(|k| begin[k] += begin[k - 1]);
        let (mut next, mut messages) = (begin.clone(), vec![NONE; begin[begin.len() - 1]]);
        let mut window = |(k, op): (usize, &Op)| {
            let Some(stream) = place(op) else { return NONE };
            let (at, in_flight) = (next[stream], self.in_flight_at(k));
            (messages[at], next[stream]) = (k as OpId, at + 1);
            if at - begin[stream] < in_flight { NONE } else { messages[at - in_flight] }
        };
        body.ops.iter().enumerate().map(&mut window).collect()
    }

    /// How many streams it sends.
    pub fn streams_sent(&self) -> usize {
        self.body().sends.len()
    }

    /// How many streams it receives.
    pub fn streams_received(&self) -> usize {
        self.body().receives.len()
    }

    /// True if it has more than one lane.
    pub fn has_several_lanes(&self) -> bool {
        self.body().lanes.len() > 1
    }

    /// True if it says of a stream how many of its messages are under way.
    pub fn limits_messages(&self) -> bool {
        let body = self.body();
        body.sends.iter().chain(body.receives.iter().map(|incoming| &incoming.stream)).any(|stream| stream.in_flight > 0)
    }

    /// True if messages come from several ranks.
    pub fn receives_from_several(&self) -> bool {
        let from = self.parts.peers().1;
        from.iter().any(|peer| *peer != from[0])
    }
}
