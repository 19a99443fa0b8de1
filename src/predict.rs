//! Replay of a schedule under a point-to-point model: one event-driven evaluator for all algorithms, models, rank counts and
//! mixes of links. The closed forms of the literature are tests of it.
//!
//! The machine it replays on: each rank has a processor and a port. A send takes the processor for `send_overhead` and the port
//! for `gap`, and leaves when the link is free of the sender's message before it, and the pipe that it shares with other links of theirs;
//! the message is usable at the receiver `transit` after it left, later where the receiver's port is still busy with messages of other ranks, since
//! it takes in one after the other, and the last `recv_overhead` of that runs on the receiver's processor and waits while that is busy. Where a message
//! waits and a send may start, the processor takes turns ([`crate::schedule`]).
//!
//! Where no rank hears, also by way of others, from those that it sends to, as in a broadcast, scatter, gather or reduce, ranks are replayed one after the other:
//! when it is a rank's turn all is known that comes to it. Where few do, these are replayed by time, and all others so. Else all are replayed at once, many of them each for itself in windows of time that are as long as a
//! message takes at least; and by time what hangs on what others do at the same time: streams whose senders wait for receivers, messages that are lost or take
//! no time. Of ranks that do alike ([`schedule::alike`]), where all links are alike, one is replayed for all if there
//! are many. All five find the same.
//!
//! [`schedule::alike`]: crate::schedule::alike

mod costs;
mod event;
mod incoming;
mod left;
mod losses;
mod machine;
mod order;
mod parts;
mod pipeline;
mod progress;
mod start;
#[cfg(test)]
mod tests;
mod under_way;
mod windows;

pub use pipeline::{Busy, Repeats, pipelined};

use crate::error::{Error, Result};
use crate::event::EventQueue;
use crate::model::{Cost, CostModel, Free, Pipe};
use crate::schedule::{Action, Next, OpId, Schedule, Trace};
use crate::topology::{Link, Rank};
use costs::{Kept, Known, KnownIn};
use event::rounded;
use left::Left;
use losses::Losing;
pub use losses::may_lose;
use machine::{Backlog, Machine, Place, is_complete, known};
use order::OnTheWay;
use parts::Circle;
use progress::Progress;
use rustc_hash::FxHashMap;
use windows::{Coming, Waiting, Window};

/// What a replay finds.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// When each operation started and was complete.
    pub traces: Vec<Trace>,
    /// When each rank's port and processor were free after its last send: how long the schedule keeps it from sending more.
    pub port_free: Vec<f64>,
}

impl Replay {
    /// The time when the last operation of all was complete.
    pub fn completion(&self) -> f64 {
        self.traces.iter().map(Trace::finish).fold(0.0, f64::max)
    }
}

/// The time a schedule takes under a model.
///
/// # Errors
/// As [`replay`].
pub fn completion(schedule: &Schedule, model: &dyn CostModel) -> Result<f64> {
    completion_within(schedule, model, f64::INFINITY)
}

/// As [`completion`], if it takes no longer than `limit`; else longer than that, or for ever, since it need not be replayed to its end.
pub(crate) fn completion_within(schedule: &Schedule, model: &dyn CostModel, limit: f64) -> Result<f64> {
    let mut run = Run::new(schedule, model)?;
    run.keeps_all = false;
    if run.go(limit)? { losses::mean(&run, schedule, model, limit) } else { Ok(f64::INFINITY) }
}

/// Replays a schedule under a model.
///
/// # Errors
/// [`Error::Invalid`] if messages do not match or ranks wait for each other in a circle.
pub fn replay(schedule: &Schedule, model: &dyn CostModel) -> Result<Replay> {
    let mut run = Run::new(schedule, model)?;
    run.record = Some(Record::new(schedule));
    run.go(f64::INFINITY)?;
    let Record { start, port_free } = run.record.take().unwrap_or_default();
    let trace = |ops: std::ops::Range<usize>| Trace { start: start[ops.clone()].to_vec(), end: run.done[ops].to_vec() };
    Ok(Replay { port_free, traces: (0..schedule.ranks()).map(|rank| trace(run.ops(rank))).collect() })
}

thread_local! {
    /// How many events were replayed on this thread so far: what predictions cost, on whatever machine.
    pub(crate) static EVENTS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// How ranks are replayed.
enum Way {
    /// All at once.
    ByTime,
    /// One after the other; there are messages to ranks whose turn has not come.
    InOrder(OnTheWay),
    /// One after the other but for some, which are replayed all at once.
    InParts(Circle),
    /// All, each for itself in windows of time.
    InWindows(Window),
}

/// What is kept where more is wanted than when all is complete.
#[derive(Default)]
struct Record {
    /// When each operation of all ranks started.
    start: Vec<f64>,
    /// As [`Replay::port_free`].
    port_free: Vec<f64>,
}

impl Record {
    fn new(schedule: &Schedule) -> Record {
        Record { start: vec![0.0; schedule.ops()], port_free: vec![0.0; schedule.ranks()] }
    }
}

/// The state of all ranks.
struct Run<'a> {
    schedule: &'a Schedule,
    model: &'a dyn CostModel,
    places: Vec<Place>,
    /// What each rank is at, or, where they are replayed one after the other, the one whose turn it is.
    machines: Vec<Machine>,
    /// What of a rank's number is its place among them: all of it, or nothing.
    own: u32,
    way: Way,
    /// True if some ranks stand for others that do alike.
    stand_for_all: bool,
    /// True if ranks cannot be replayed so, but all have to be by time, as was not known before.
    by_time: bool,
    progress: Progress,
    /// How many messages of each stream that is sent may be under way ([`under_way::limits`]), where that matters.
    limits: Vec<u32>,
    /// True if it is wanted when each operation was complete, and not only when the last one was.
    keeps_all: bool,
    /// What of where a rank's operations begin is where they begin in `done`: all of it, or nothing where that is of the one rank whose turn it is.
    kept: u32,
    /// When the last operation was complete of ranks whose operations are not kept, and the first one that has operations that are not.
    latest: (f64, Option<usize>),
    /// By operation of all ranks that are replayed, or of one: when it was complete, or [`OPEN`]; of a message under way, the overhead that its receive will pay, negated, where its
    /// receiver is or was replayed.
    done: Vec<f64>,
    record: Option<Record>,
    /// What messages cost that were sent last.
    known: Kept<Known>,
    /// How long ports took that in which came last.
    known_in: Kept<KnownIn>,
    /// The time that it may take; what takes longer is not replayed to its end.
    limit: f64,
    /// True if it takes longer for sure.
    is_over: bool,
    /// What each rank still has to do, where that matters.
    left: Vec<Left>,
    losing: Losing,
    /// When the links are free on which a stream is slower than its sender's port.
    link_free: FxHashMap<(u32, u32), f64>,
    /// When what several links share is free, and the rank that went through it last.
    pipe_free: FxHashMap<Pipe, (f64, u32)>,
    queue: EventQueue,
}

impl Run<'_> {
    /// Where a rank's operation is among those of all.
    #[inline]
    fn at(&self, rank: u32, op: usize) -> usize {
        (self.places[rank as usize].first & self.kept) as usize + op
    }

    /// Where a rank's operations are among those of all.
    fn ops(&self, rank: Rank) -> std::ops::Range<usize> {
        let first = self.places[rank].first as usize;
        first..first + self.schedule.programs[rank].len()
    }

    /// True if all was replayed; false if that takes longer than `limit`.
    fn go(&mut self, limit: f64) -> Result<bool> {
        let limits = under_way::limits(&self.schedule.programs, &self.progress.sent);
        let streams = if limits.is_empty() { None } else { Some(self.progress.sent.clone()) };
        self.keeps_all |= self.record.is_some() || !limits.is_empty();
        let order = order::senders_first(self.schedule);
        let mut in_order = self.one_after_the_other(&order, limit)?;
        let is_few = self.places.len() < order::FEW;
        if in_order.is_none() && !is_few {
            // what takes too long where more is under way than may be need not where it is not
            in_order = self.part_after_part(order, if limits.is_empty() { limit } else { f64::INFINITY })?;
        }
        if in_order == Some(true) && streams.is_some_and(|streams| self.exceeds(&limits, &streams)) {
            self.anew()?;
            in_order = None;
        }
        let within = match in_order {
            Some(within) => within && (limits.is_empty() || self.completion() <= limit),
            None => {
                self.hold_back(limits);
                let mut within = if is_few { None } else { self.one_for_all(limit)? };
                if within.is_none() && !is_few {
                    within = self.in_windows(limit)?;
                }
                within.unwrap_or_else(|| self.all_at_once(limit))
            }
        };
        if !within {
            return Ok(false);
        }
        let mut waits = self.incomplete();
        // after what takes for ever nothing starts: whether it ever could is seen where nothing takes any time
        if waits.is_some() && self.completion() == f64::INFINITY {
            let mut free = Run::new(self.schedule, &Free)?;
            free.all_at_once(f64::INFINITY);
            waits = free.incomplete();
        }
        waits.map_or(Ok(true), |rank| Err(Error::invalid(format!("replay the schedule: rank {rank} waits for ever"))))
    }

    /// Keeps what is wanted of a rank that was replayed.
    fn put_down(&mut self, rank: u32) {
        if let Some(record) = &mut self.record {
            let m = &self.machines[(self.places[rank as usize].one & self.own) as usize];
            record.port_free[rank as usize] = m.port_free.max(m.cpu_free);
        }
    }

    /// A rank with an operation that is not complete.
    fn incomplete(&self) -> Option<usize> {
        if self.kept == 0 {
            return self.latest.1;
        }
        (0..self.places.len()).find(|&rank| self.done[self.ops(rank)].iter().any(|&t| !is_complete(t)))
    }

    /// When the last operation of all was complete.
    fn completion(&self) -> f64 {
        self.done.iter().copied().fold(self.latest.0, f64::max)
    }

    /// The last bytes of a message reach a port that several ranks send to: it takes in one message after the other.
    fn come_in(&mut self, rank: u32, op: u32, now: f64) {
        let port_in = self.port_in_of(rank, op as usize);
        let through = self.through(rank, now, self.overhead(rank, op), port_in);
        let there = through + self.lost(rank, op, now, through);
        if there <= now {
            return self.arrive(rank, op, now, self.overhead(rank, op));
        }
        // as events all that wait at a port would make a heap that no processor has near
        let coming_in = &mut self.machines[(rank & self.own) as usize].backlog().coming_in;
        let is_next = coming_in.back().is_none_or(|&last| last < (there, op));
        let is_first = coming_in.is_empty();
        if is_next {
            coming_in.push_back((there, op));
        }
        if is_first || !is_next {
            self.queue.push(there, event::arrive(rank, op));
        }
    }

    /// A message is there but for the receiver's overhead.
    fn arrive(&mut self, rank: u32, op: u32, now: f64, cost: f64) {
        if self.is_by_events()
            && let Some(Backlog { coming_in, .. }) = self.machines[(rank & self.own) as usize].backlog.as_deref_mut()
            && coming_in.front().is_some_and(|first| first.1 == op)
        {
            coming_in.pop_front();
            if let Some(&(there, next)) = coming_in.front() {
                self.queue.push(there, event::arrive(rank, next));
            }
        }
        let (posted, at) = (self.posted(rank, op, now), self.at(rank, op as usize));
        let m = &mut self.machines[(rank & self.own) as usize];
        // it keeps nothing waiting, or there is nothing else to turn to
        if posted.is_ok_and(|posted| posted <= now) && (cost == 0.0 || (m.cpu_free <= now && m.turn_at > now)) {
            self.take(rank, op, now, cost);
            return self.look_ahead(rank, now);
        }
        self.done[at] = -cost;
        match posted {
            Err(open) => return m.backlog().early.extend([(open, op)]),
            Ok(posted) if posted > now => return self.queue.push(posted, event::arrive(rank, op)),
            Ok(_) => {
                m.backlog().waiting.push_back(op);
                // what may start next is the same, and it turns to what waits when it is free
                if m.ahead_at >= now {
                    return self.turn_to_what_is_first(rank, now);
                }
            }
        }
        self.look_ahead(rank, now);
    }

    /// The processor does one thing that may start now.
    fn turn(&mut self, rank: u32, now: f64) {
        let m = &mut self.machines[(rank & self.own) as usize];
        if m.turn_at != now {
            return; // an earlier one has done its work
        }
        m.turn_at = f64::INFINITY;
        let (start, send) = (m.ahead_at, m.ahead);
        if m.cpu_free <= now
            && !(m.took && start <= now)
            && let Some(op) = m.next_waiting()
        {
            self.take(rank, op, now, self.overhead(rank, op));
        } else if start <= now {
            self.begin(rank, send as usize, now);
        }
        // a message that is taken in now, after some ranks' turn and before that of others, may let its sender go on
        let comes_now = |(there, event): (f64, u64)| there <= now && event & event::TURN == 0;
        self.by_time |= self.stand_for_all && self.progress.is_limited() && self.queue.peek().is_some_and(comes_now);
        self.look_ahead(rank, now);
    }

    /// Starts an operation that is no receive.
    fn begin(&mut self, rank: u32, op: usize, now: f64) {
        let (program, at) = (&self.schedule.programs[rank as usize], self.at(rank, op));
        self.machines[(rank & self.own) as usize].took = false;
        if let Some(record) = &mut self.record {
            record.start[at] = now;
        }
        match program.sends_to(op) {
            // it is not looked up where its bytes are
            Some(to) => self.leave(rank, op, to, now),
            None => match program.action(op) {
                Action::Copy { into, .. } => self.busy(rank, op, now + self.model.copy(rank as Rank, into.len)),
                Action::Combine { into, .. } => self.busy(rank, op, now + self.model.combine(rank as Rank, into.len)),
                Action::Delay { seconds } => self.busy(rank, op, now + seconds),
                Action::Send { .. } | Action::Recv { .. } => {}
            },
        }
        let m = &mut self.machines[(rank & self.own) as usize];
        let known = |op| known(program, &self.done[(self.places[rank as usize].first & self.kept) as usize..], op);
        m.pending.start(program, op, known);
        m.pending.complete(op, known);
        self.retry_early(rank, op as OpId, self.done[at]);
    }

    /// A message leaves, to a rank.
    #[inline]
    fn leave(&mut self, rank: u32, op: usize, to: Rank, now: f64) {
        let (bytes, at) = (self.schedule.programs[rank as usize].bytes(op), self.at(rank, op));
        let (Cost { send_overhead, gap, link_gap, transit, recv_overhead }, pipe) = self.cost(Link { from: rank as Rank, to }, bytes);
        let in_windows = matches!(self.way, Way::InWindows(_));
        let port_in = if in_windows && self.places[to].several { self.port_in(Link { from: rank as Rank, to }, bytes) } else { 0.0 };
        self.done_of(rank, now, gap, send_overhead);
        let m = &mut self.machines[(rank & self.own) as usize];
        (m.cpu_free, m.port_free) = (rounded(now + send_overhead), rounded(now + gap));
        self.done[at] = m.cpu_free;
        let their = self.send(rank, op, to);
        let mut leaves = now;
        if link_gap > gap && self.places[rank as usize].repeats {
            let free = self.link_free.entry((rank, to as u32)).or_insert(0.0);
            leaves = now.max(*free);
            *free = rounded(leaves + link_gap);
        }
        let on_the_way = (transit - recv_overhead).max(0.0);
        if let Some((pipe, busy)) = pipe {
            if let Way::InWindows(window) = &mut self.way {
                let message = Coming { there: 0.0, recv_overhead, port_in, to: to as u32, receive: their };
                return window.waiting.push(Waiting { sent: now, from: rank, leaves, on_the_way, pipe, busy, message });
            }
            let free = self.goes_through(pipe, rank);
            leaves = leaves.max(*free);
            *free = rounded(leaves + busy);
        }
        let there = rounded(leaves + on_the_way);
        // at one time messages come before all else and ranks have their turns in order: what comes now finds those that are replayed alone elsewhere
        match &mut self.way {
            Way::ByTime => {
                let Place { first, several, one, .. } = self.places[to];
                self.done[first as usize + their as usize] = -recv_overhead;
                self.by_time |= there <= now && self.stand_for_all;
                self.queue.push(there, if several { event::at_port } else { event::arrive }(one, their));
            }
            Way::InParts(circle) if circle.has[to] => {
                let Place { first, several, .. } = self.places[to];
                self.done[first as usize + their as usize] = -recv_overhead;
                self.queue.push(there, if several { event::at_port } else { event::arrive }(to as u32, their));
            }
            Way::InOrder(later) | Way::InParts(Circle { later, .. }) => {
                self.by_time |= there <= now;
                later.add(to, there, recv_overhead, their);
            }
            Way::InWindows(window) => {
                self.by_time |= !window.add(Coming { there, recv_overhead, port_in, to: to as u32, receive: their });
            }
        }
    }

    /// When a pipe is free that a rank goes through. If others do too, what each finds hangs on when they do.
    fn goes_through(&mut self, pipe: Pipe, rank: u32) -> &mut f64 {
        let (free, last) = self.pipe_free.entry(pipe).or_insert((0.0, rank));
        self.by_time |= match &self.way {
            Way::InOrder(_) => *last != rank,
            Way::InParts(Circle { has, .. }) => *last != rank && !(has[*last as usize] && has[rank as usize]),
            Way::ByTime | Way::InWindows(_) => false,
        };
        *last = rank;
        free
    }

    /// True if what happens next is the first of the queue's events.
    fn is_by_events(&self) -> bool {
        matches!(self.way, Way::ByTime | Way::InParts(_))
    }

    /// The processor does an operation until then.
    fn busy(&mut self, rank: u32, op: usize, until: f64) {
        let (at, until) = (self.at(rank, op), rounded(until));
        self.machines[(rank & self.own) as usize].cpu_free = until;
        self.done[at] = until;
    }

    /// The operation but receives that may start first, and when; of those that may start by `now`, the first in the program.
    fn next(&mut self, rank: u32, now: f64) -> Option<(f64, usize)> {
        let mut first: Option<(f64, usize)> = None;
        for k in 0.. {
            let m = &self.machines[(rank & self.own) as usize];
            let Some(Next { op, since, .. }) = m.pending.ready_at(k) else { break };
            let (op, mut start) = (op as usize, since.max(now).max(m.cpu_free));
            if let Some(to) = self.schedule.programs[rank as usize].sends_to(op) {
                start = start.max(m.port_free);
                let Some(window) = self.window(rank, op, to) else { continue };
                start = start.max(window);
            }
            if first.is_none_or(|first| (start, op) < first) {
                first = Some((start, op));
            }
        }
        first
    }

    /// Sees to it that the processor turns to what may start first, when it may.
    fn look_ahead(&mut self, rank: u32, now: f64) {
        let (start, op) = self.next(rank, now).unwrap_or((f64::INFINITY, 0));
        let m = &mut self.machines[(rank & self.own) as usize];
        (m.ahead_at, m.ahead) = (start, op as OpId);
        self.turn_to_what_is_first(rank, now);
    }

    /// Sees to it that the processor turns to what is known to start first, or to a message that waits.
    #[inline]
    fn turn_to_what_is_first(&mut self, rank: u32, now: f64) {
        let m = &mut self.machines[(rank & self.own) as usize];
        let take = if m.has_waiting() { m.cpu_free.max(now) } else { f64::INFINITY };
        let first = m.ahead_at.min(take);
        if first < m.turn_at {
            m.turn_at = first;
            if self.is_by_events() {
                self.queue.push(first, event::turn(rank));
            }
        }
    }

    /// A message's overhead is paid, and the message usable after it.
    fn take(&mut self, rank: u32, op: u32, now: f64, cost: f64) {
        let at = self.at(rank, op as usize);
        self.done_of(rank, now, 0.0, cost);
        let m = &mut self.machines[(rank & self.own) as usize];
        let done = rounded(now + cost);
        self.done[at] = done;
        if let Some(record) = &mut self.record {
            record.start[at] = now;
        }
        if cost > 0.0 {
            m.cpu_free = done;
            m.took = true;
        }
        let (program, first) = (&self.schedule.programs[rank as usize], (self.places[rank as usize].first & self.kept) as usize);
        m.pending.complete(op as usize, |op| known(program, &self.done[first..], op));
        self.retry_early(rank, op, done);
        if let Some(from) = self.no_longer_held(rank, op as usize) {
            self.look_ahead(from as u32, now);
        }
    }

    /// An operation is complete at `time`: receives may be posted then that waited for it, and for which messages came early.
    fn retry_early(&mut self, rank: u32, op: OpId, time: f64) {
        let Run { machines, queue, own, .. } = self;
        let Some(Backlog { early, .. }) = machines[(rank & *own) as usize].backlog.as_deref_mut() else { return };
        if early.is_empty() {
            return;
        }
        while let Some(&first) = early.range((op, 0)..=(op, OpId::MAX)).next() {
            early.remove(&first);
            queue.push(time, event::arrive(rank, first.1));
        }
    }
}
