//! The engine: programs of all ranks, run in virtual time.
//!
//! A host has a processor and a port. Where a message waits for the processor and a send may start, it takes turns
//! ([`crate::schedule`]).

use super::network::{Host, Network, affine};
use super::noise::Disturbance;
use crate::error::{Error, Result};
use crate::event::EventQueue;
use crate::platform::{Placement, Platform};
use crate::schedule::{Action, NONE, Next, OpId, Pending, Program, Schedule, Streams, Trace};
use crate::topology::Rank;
use std::collections::VecDeque;

/// A platform on which schedules run in virtual time.
#[derive(Debug, Clone)]
pub struct Simulator {
    network: Network,
}

/// Events of one time are taken in this order: a processor turns to something when all of that time are there.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// The receiver's processor may take a message: receiver, its operation.
    Process(u32, u32),
    /// The last byte reaches the receiver's port.
    Arrive(u32, u32),
    /// A message may leave, its handshake done: sender, its operation.
    Inject(u32, u32),
    /// A processor turns to what may start: a message that waits for it, one that may leave, a send or a delay.
    Turn(u32),
}

impl Event {
    /// In a word: words are in the order of events.
    fn word(self) -> u64 {
        let (kind, rank, op) = match self {
            Event::Process(rank, op) => (0, rank, op),
            Event::Arrive(rank, op) => (1, rank, op),
            Event::Inject(rank, op) => (2, rank, op),
            Event::Turn(rank) => (3, rank, 0),
        };
        kind << KIND | u64::from(rank) << 32 | u64::from(op)
    }

    fn of(word: u64) -> Event {
        let (rank, op) = (((word & ((1 << KIND) - 1)) >> 32) as u32, word as u32);
        match word >> KIND {
            0 => Event::Process(rank, op),
            1 => Event::Arrive(rank, op),
            2 => Event::Inject(rank, op),
            _ => Event::Turn(rank),
        }
    }
}

/// Where the kind begins in an event's word.
const KIND: u32 = 62;

/// What is known of an operation, in one place: of thousands of ranks each is elsewhere in memory, and fetching it is what takes the time.
#[derive(Clone, Copy)]
struct Operation {
    start: f64,
    /// Not a number until it is complete.
    done: f64,
    /// The one of its stream that must be complete before, since no more may be under way, or [`NONE`].
    window: OpId,
    /// Of a send the receive at its other end.
    receive: OpId,
}

struct Machine<'a> {
    program: &'a Program,
    operations: Vec<Operation>,
    cpu_free: f64,
    out_free: f64,
    /// When the last byte of the message that left last is out: the processor may still be at it when the port takes the next one.
    out_until: f64,
    in_free: f64,
    /// Who sent what came in last.
    in_from: usize,
    /// What may start next but receives.
    pending: Pending,
    /// By stream of receives: the next one to be posted, [`NONE`] after the last one, and when the one before it was.
    posting: Vec<(OpId, f64)>,
    /// Messages, or requests to send one, that came before their receive was posted.
    early: Vec<Early>,
    /// Messages that wait for the processor, first come, first served.
    waiting: VecDeque<u32>,
    /// Messages whose handshake is done, and which wait for processor and port.
    leaving: VecDeque<u32>,
    /// True if what the processor did last was to take in a message: then a send goes next if both may.
    took: bool,
    /// When something may start next; one such event is enough.
    turn_at: f64,
}

#[derive(Clone, Copy)]
enum Early {
    Message(u32),
    /// It is there at `there`, which may lie ahead.
    Request {
        receive: u32,
        sender: u32,
        send: u32,
        there: f64,
    },
}

impl Machine<'_> {
    /// An operation was started: its lane goes on.
    fn started(&mut self, op: usize) {
        let Machine { program, operations, pending, .. } = self;
        pending.start(program, op, |op| known(program, operations, op));
    }

    /// An operation is complete at a time.
    fn complete(&mut self, op: usize, time: f64) {
        let Machine { program, operations, pending, .. } = self;
        operations[op].done = time;
        pending.complete(op, |op| known(program, operations, op));
    }

    /// When a receive is posted, if that is known. Those of a stream are posted in order.
    #[inline]
    fn posted(&mut self, receive: u32) -> Option<f64> {
        let stream = self.program.stream(receive as usize) as usize;
        loop {
            let (next, before) = self.posting[stream];
            if next > receive {
                return Some(self.operations[receive as usize].start);
            }
            let posted = known(self.program, &self.operations, next).ok()?.max(before);
            self.operations[next as usize].start = posted;
            self.posting[stream] = (self.program.next(next as usize).map_or(NONE, |next| next as OpId), posted);
        }
    }

    /// The send or delay that may start first, and when; of those that may start by `now`, the first in the program.
    fn next(&self, now: f64, eager_limit: usize) -> Option<(f64, usize)> {
        let start = |&Next { op, since, .. }: &Next| {
            let eager = self.program.sends(op as usize) && self.program.bytes(op as usize) <= eager_limit;
            (now.max(since).max(self.cpu_free).max(if eager { self.out_free } else { 0.0 }), op as usize)
        };
        self.pending.ready().iter().map(start).min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
    }

    /// Who a message goes to, and which receive takes it.
    fn receiver(&self, op: u32) -> Option<(Rank, OpId)> {
        self.program.sends_to(op as usize).map(|to| (to, self.operations[op as usize].receive))
    }

    /// When the first of the messages whose handshake is done may leave; never if there is none.
    fn may_leave(&self) -> f64 {
        if self.leaving.is_empty() { f64::INFINITY } else { self.cpu_free.max(self.out_free) }
    }

    /// When the first of the messages that wait may be taken in; never if there is none.
    fn may_take(&self) -> f64 {
        if self.waiting.is_empty() { f64::INFINITY } else { self.cpu_free }
    }
}

/// When all was complete that an operation comes after, or one that is not.
#[inline]
fn known(program: &Program, operations: &[Operation], op: OpId) -> std::result::Result<f64, OpId> {
    let later = |latest: f64, &d: &OpId| {
        let t = operations[d as usize].done;
        if t.is_nan() { Err(d) } else { Ok(latest.max(t)) }
    };
    let latest = program.after(op as usize).iter().try_fold(0.0, later)?;
    let window = &operations[op as usize].window;
    if *window == NONE { Ok(latest) } else { later(latest, window) }
}

struct Run<'a> {
    network: &'a Network,
    /// By rank of the schedule.
    hosts: Vec<Host>,
    machines: Vec<Machine<'a>>,
    pipe_free: Vec<f64>,
    queue: EventQueue,
    noise: &'a mut Disturbance,
}

impl Simulator {
    /// A simulator of a platform with one rank on each host.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the platform lacks parameters that a simulation needs, or states a latency below its hosts'
    /// overheads.
    pub fn new(platform: &Platform, placement: Placement) -> Result<Simulator> {
        Ok(Simulator { network: Network::new(platform, &platform.place(placement))? })
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.network.hosts.len()
    }

    /// True if runs differ by chance, since TCP loses messages.
    fn is_random(&self) -> bool {
        self.network.tcp.gather_escalation_share > 0.0
    }

    /// True if what runs among these ranks always takes as long, whatever runs among others: they share a link with none, and nothing happens by chance.
    pub fn is_apart(&self, ranks: &[Rank]) -> bool {
        let mut groups = ranks.iter().map(|&rank| self.network.hosts[rank].group);
        let first = groups.next();
        !self.is_random() && groups.all(|group| Some(group) == first)
    }

    /// Runs a schedule on an idle platform; all ranks start at time 0. `noise` decides which messages TCP loses; its factor is
    /// not used here.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the schedule has more ranks than the platform, if messages do not match or ranks wait in a circle.
    pub fn run(&self, schedule: &Schedule, noise: &mut Disturbance) -> Result<Vec<Trace>> {
        let ranks: Vec<Rank> = (0..schedule.ranks()).collect();
        self.run_among(&ranks, schedule, noise)
    }

    /// As [`Simulator::run`], where the schedule's ranks are some of the platform's: what the others would cost is saved.
    ///
    /// # Errors
    /// As there, or a rank that the platform does not have.
    pub fn run_among(&self, ranks: &[Rank], schedule: &Schedule, noise: &mut Disturbance) -> Result<Vec<Trace>> {
        let mut run = self.start(ranks, schedule, noise)?;
        run.go(f64::INFINITY);
        run.traces()
    }

    /// When the last rank is done, as in [`Simulator::run_among`]; `None` if that is later than `limit_s`: what comes after is not simulated.
    ///
    /// # Errors
    /// As there.
    pub fn finish_among(&self, ranks: &[Rank], schedule: &Schedule, noise: &mut Disturbance, limit_s: f64) -> Result<Option<f64>> {
        let mut run = self.start(ranks, schedule, noise)?;
        if !run.go(limit_s) {
            return Ok(None);
        }
        let finish = run.traces()?.iter().map(Trace::finish).fold(0.0, f64::max);
        Ok(Some(finish).filter(|&finish| finish <= limit_s))
    }

    fn start<'a>(&'a self, ranks: &[Rank], schedule: &'a Schedule, noise: &'a mut Disturbance) -> Result<Run<'a>> {
        if schedule.ranks() > ranks.len() || ranks.iter().any(|&r| r >= self.ranks()) {
            return Err(Error::invalid(format!("simulate {} ranks on {} hosts", schedule.ranks(), self.ranks())));
        }
        let machine = |program: &'a Program| {
            let operation = |window| Operation { start: 0.0, done: f64::NAN, window, receive: NONE };
            let operations: Vec<Operation> = program.windows().into_iter().map(operation).collect();
            Machine {
                program,
                pending: Pending::new(program, |op| known(program, &operations, op)),
                operations,
                cpu_free: 0.0,
                out_free: 0.0,
                out_until: 0.0,
                in_free: 0.0,
                in_from: usize::MAX,
                posting: program.streams().map(|first| (first, 0.0)).collect(),
                early: Vec::new(),
                waiting: VecDeque::new(),
                leaving: VecDeque::new(),
                took: false,
                turn_at: f64::INFINITY,
            }
        };
        let mut machines: Vec<Machine> = schedule.programs.iter().map(machine).collect();
        Streams::new(schedule)?.each(schedule, |(me, send), (_, receive)| machines[me].operations[send].receive = receive as OpId);
        Ok(Run {
            network: &self.network,
            hosts: ranks.iter().map(|&r| self.network.hosts[r]).collect(),
            machines,
            pipe_free: vec![0.0; self.network.pipes],
            queue: EventQueue::with_capacity(4 * schedule.ranks()),
            noise,
        })
    }
}

impl Run<'_> {
    /// False if something comes later than `limit_s`: each event is of an operation that ends then or later.
    fn go(&mut self, limit_s: f64) -> bool {
        for (rank, m) in self.machines.iter_mut().enumerate().filter(|(_, m)| !m.program.is_empty()) {
            m.turn_at = 0.0;
            self.queue.push(0.0, Event::Turn(rank as u32).word());
        }
        while let Some((now, event)) = self.queue.pop() {
            if now > limit_s {
                return false;
            }
            match Event::of(event) {
                Event::Process(rank, op) => self.process(now, rank, op),
                Event::Arrive(rank, op) => self.arrive(now, rank, op),
                Event::Inject(rank, op) => self.inject(now, rank, op),
                Event::Turn(rank) => self.turn(now, rank),
            }
        }
        true
    }

    /// The processor does one thing that may start now.
    fn turn(&mut self, now: f64, rank: u32) {
        let eager_limit = self.hosts[rank as usize].eager_limit;
        let m = &mut self.machines[rank as usize];
        if m.turn_at != now {
            return; // an earlier one has done its work
        }
        m.turn_at = f64::INFINITY;
        let leaves = m.may_leave() <= now;
        let send = if leaves { None } else { m.next(now, eager_limit).filter(|&(start, _)| start <= now) };
        let sends = leaves || send.is_some();
        if m.may_take() <= now
            && !(m.took && sends)
            && let Some(op) = m.waiting.pop_front()
        {
            self.take(now, rank, op);
        } else if leaves && let Some(op) = m.leaving.pop_front() {
            self.leave(now, rank, op);
        } else if let Some((_, op)) = send {
            self.issue(now, rank, op);
        }
        self.look_ahead(now, rank);
    }

    /// Sees to it that the processor turns to what may start first, when it may.
    fn look_ahead(&mut self, now: f64, rank: u32) {
        let eager_limit = self.hosts[rank as usize].eager_limit;
        let m = &mut self.machines[rank as usize];
        let send = m.next(now, eager_limit).map_or(f64::INFINITY, |(start, _)| start);
        let first = send.min(m.may_leave()).min(m.may_take()).max(now);
        if first < m.turn_at {
            m.turn_at = first;
            self.queue.push(first, Event::Turn(rank).word());
        }
    }

    fn issue(&mut self, now: f64, rank: u32, op: usize) {
        let m = &mut self.machines[rank as usize];
        m.operations[op].start = now;
        match m.program.action(op) {
            Action::Send { span, .. } if span.len <= self.hosts[rank as usize].eager_limit => self.leave(now, rank, op as u32),
            Action::Send { .. } => self.request(now, rank, op as u32),
            Action::Copy { into, .. } => self.busy(rank, op, now + into.len as f64 * self.hosts[rank as usize].copy),
            Action::Combine { into, .. } => self.busy(rank, op, now + into.len as f64 * self.hosts[rank as usize].combine),
            Action::Delay { seconds } => self.busy(rank, op, now + seconds),
            Action::Recv { .. } => {}
        }
        self.machines[rank as usize].started(op);
    }

    /// The processor does an operation until then.
    fn busy(&mut self, rank: u32, op: usize, until: f64) {
        let m = &mut self.machines[rank as usize];
        (m.cpu_free, m.took) = (until, false);
        m.complete(op, until);
        self.retry_early(rank, until);
    }

    /// The first half of a handshake: an empty message asks for leave to send.
    fn request(&mut self, now: f64, rank: u32, op: u32) {
        let me = rank as usize;
        let Some((to, receive)) = self.machines[me].receiver(op) else { return };
        let host = &self.hosts[me];
        (self.machines[me].cpu_free, self.machines[me].took) = (now + host.send.0, false);
        let there = now + host.send.0 + self.network.wire(&self.hosts[me], &self.hosts[to]).latency + self.hosts[to].recv.0;
        match self.machines[to].posted(receive) {
            Some(posted) => self.grant(there.max(posted), rank, op),
            None => self.machines[to].early.push(Early::Request { receive, sender: rank, send: op, there }),
        }
    }

    /// The second half: an empty message grants it.
    fn grant(&mut self, now: f64, sender: u32, op: u32) {
        let me = sender as usize;
        let Some((to, _)) = self.machines[me].receiver(op) else { return };
        let back = self.hosts[to].send.0 + self.network.wire(&self.hosts[to], &self.hosts[me]).latency + self.hosts[me].recv.0;
        self.queue.push(now + back, Event::Inject(sender, op).word());
    }

    /// A message whose handshake is done leaves when it is its turn.
    fn inject(&mut self, now: f64, rank: u32, op: u32) {
        self.machines[rank as usize].leaving.push_back(op);
        self.look_ahead(now, rank);
    }

    fn leave(&mut self, now: f64, rank: u32, op: u32) {
        let me = rank as usize;
        let (host, tcp) = (self.hosts[me], &self.network.tcp);
        let m = &mut self.machines[me];
        let Some((to, bytes)) = m.program.message(op as usize) else { return };
        let ready = now + affine(host.send, bytes);
        m.cpu_free = ready;
        m.took = false;
        m.out_free = now + affine(host.gap, bytes);
        m.complete(op as usize, ready);
        let wire = self.network.wire(&self.hosts[me], &self.hosts[to]);
        // bytes leave in the order of messages: a short one does not overtake a long one
        let mut out = ready.max(m.out_until) + host.gap.1 * bytes as f64;
        m.out_until = out;
        if let Some((pipe, per_byte)) = wire.pipe {
            let free = &mut self.pipe_free[pipe];
            *free = free.max(ready) + per_byte * bytes as f64;
            out = out.max(*free);
        }
        let there = out + wire.latency;
        if tcp.scatter_leap_bytes.is_some_and(|s| bytes > s) {
            m.out_free = m.out_free.max(there + tcp.scatter_leap_s);
        }
        self.queue.push(there, Event::Arrive(to as u32, m.operations[op as usize].receive).word());
        self.retry_early(rank, ready);
    }

    fn arrive(&mut self, now: f64, rank: u32, op: u32) {
        let tcp = &self.network.tcp;
        let m = &mut self.machines[rank as usize];
        let Some((from, bytes)) = m.program.message(op as usize) else { return };
        let drain = self.hosts[rank as usize].gap.1 * bytes as f64;
        // one sender's own stream does not overrun the switch
        let meets_another = m.in_free > now - drain && m.in_from != from;
        m.in_from = from;
        let in_range = tcp.gather_low_bytes.is_some_and(|low| bytes >= low) && tcp.gather_high_bytes.is_some_and(|high| bytes <= high);
        let there = now.max(m.in_free + drain);
        m.in_free = there;
        let lost = meets_another && in_range && self.noise.happens(tcp.gather_escalation_share);
        self.queue.push(there + if lost { tcp.gather_escalation_s } else { 0.0 }, Event::Process(rank, op).word());
    }

    fn process(&mut self, now: f64, rank: u32, op: u32) {
        let m = &mut self.machines[rank as usize];
        match m.posted(op) {
            None => return m.early.push(Early::Message(op)),
            Some(posted) if posted > now => return self.queue.push(posted, Event::Process(rank, op).word()),
            Some(_) => {}
        }
        if m.cpu_free <= now && m.turn_at > now {
            self.take(now, rank, op); // there is nothing else to turn to
        } else {
            m.waiting.push_back(op);
        }
        self.look_ahead(now, rank);
    }

    fn take(&mut self, now: f64, rank: u32, op: u32) {
        let m = &mut self.machines[rank as usize];
        let Some((_, bytes)) = m.program.message(op as usize) else { return };
        let end = now + affine(self.hosts[rank as usize].recv, bytes);
        m.cpu_free = end;
        m.took = true;
        m.complete(op as usize, end);
        self.retry_early(rank, end);
    }

    /// Something of a rank is complete at `time`: receives may be posted then for which messages, or requests to send one, came early.
    fn retry_early(&mut self, rank: u32, time: f64) {
        for early in std::mem::take(&mut self.machines[rank as usize].early) {
            match early {
                Early::Message(op) => self.queue.push(time, Event::Process(rank, op).word()),
                Early::Request { receive, sender, send, there } => match self.machines[rank as usize].posted(receive) {
                    Some(posted) => self.grant(there.max(posted), sender, send),
                    None => self.machines[rank as usize].early.push(early),
                },
            }
        }
    }

    fn traces(self) -> Result<Vec<Trace>> {
        if let Some(rank) = self.machines.iter().position(|m| m.operations.iter().any(|operation| operation.done.is_nan())) {
            return Err(Error::invalid(format!("simulate the schedule: rank {rank} waits for ever")));
        }
        let times = |m: Machine| m.operations.iter().map(|operation| (operation.start, operation.done)).unzip();
        Ok(self.machines.into_iter().map(times).map(|(start, end)| Trace { start, end }).collect())
    }
}
