//! Replay of a schedule under a point-to-point model: one event-driven evaluator for all algorithms, models, rank counts and
//! mixes of links. The closed forms of the literature are tests of it.
//!
//! The machine it replays on: each rank has a processor and a port. A send takes the processor for `send_overhead` and the port
//! for `gap`, and leaves when the link is free of the sender's message before it; the message is usable at the receiver `transit` after it
//! left, and the last `recv_overhead` of that runs on the receiver's processor and waits while that is busy. Where a message waits and
//! a send may start, the processor takes turns ([`crate::schedule`]).

use crate::error::{Error, Result};
use crate::event::EventQueue;
use crate::model::{Cost, CostModel};
use crate::schedule::{Action, Cursors, Program, Schedule, Trace, matching};
use crate::topology::{Link, Rank};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

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
    Ok(replay(schedule, model)?.completion())
}

/// Events of one time: all messages of that time are there before a processor turns to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A message is there but for the receiver's overhead: receiver, its operation.
    Arrive(u32, u32),
    /// A processor turns to what may start: a message that waits for it, a send or a delay.
    Turn(u32),
}

/// One rank's state.
struct Machine<'a> {
    program: &'a Program,
    cpu_free: f64,
    port_free: f64,
    /// The sends and delays to come.
    cursors: Cursors,
    /// Completion by operation; NaN while open.
    done: Vec<f64>,
    start: Vec<f64>,
    /// Messages that came before their receive was posted.
    early: Vec<u32>,
    /// Messages that wait for the processor, first come, first served.
    waiting: VecDeque<u32>,
    /// True if what the processor did last was to take in a message: then a send goes next if both may.
    took: bool,
    /// When something may start next; one such event is enough.
    turn_at: f64,
}

impl Machine<'_> {
    /// The send or delay that may start first, and when; of those that may start by `now`, the first in the program.
    fn next(&self, now: f64) -> Option<(f64, usize)> {
        let start = |op: usize| {
            let sends = matches!(self.program.action(op), Action::Send { .. });
            Some(now.max(self.ready(op)?).max(self.cpu_free).max(if sends { self.port_free } else { 0.0 }))
        };
        let ready = self.cursors.open().filter_map(|op| Some((start(op)?, op)));
        ready.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
    }

    /// Sees to it that the processor turns to what may start first, when it may.
    fn look_ahead(&mut self, rank: u32, now: f64, queue: &mut EventQueue<Event>) {
        let send = self.next(now).map_or(f64::INFINITY, |(start, _)| start);
        let take = if self.waiting.is_empty() { f64::INFINITY } else { self.cpu_free.max(now) };
        let first = send.min(take);
        if first < self.turn_at {
            self.turn_at = first;
            queue.push(first, Event::Turn(rank));
        }
    }

    /// A message's overhead is paid, and the message usable after it.
    fn take(&mut self, rank: u32, op: u32, cost: f64, now: f64, queue: &mut EventQueue<Event>) {
        self.start[op as usize] = now;
        self.done[op as usize] = now + cost;
        if cost > 0.0 {
            self.cpu_free = now + cost;
            self.took = true;
        }
        self.retry_early(rank, now + cost, queue);
    }

    /// Something is complete at `time`: receives may be posted then for which messages came early.
    fn retry_early(&mut self, rank: u32, time: f64, queue: &mut EventQueue<Event>) {
        for op in self.early.drain(..) {
            queue.push(time, Event::Arrive(rank, op));
        }
    }

    /// When everything an operation comes after was complete, if it is.
    fn ready(&self, op: usize) -> Option<f64> {
        self.program.after(op).iter().try_fold(0.0, |latest: f64, &d| {
            let t = self.done[d as usize];
            (!t.is_nan()).then(|| latest.max(t))
        })
    }
}

/// Replays a schedule under a model.
///
/// # Errors
/// [`Error::Invalid`] if messages do not match or ranks wait for each other in a circle.
pub fn replay(schedule: &Schedule, model: &dyn CostModel) -> Result<Replay> {
    let pairs = matching(schedule)?;
    let mut queue = EventQueue::with_capacity(2 * schedule.ranks());
    let mut machines: Vec<Machine> = schedule
        .programs
        .iter()
        .map(|program| Machine {
            program,
            cpu_free: 0.0,
            port_free: 0.0,
            cursors: Cursors::new(program),
            done: vec![f64::NAN; program.len()],
            start: vec![0.0; program.len()],
            early: Vec::new(),
            waiting: VecDeque::new(),
            took: false,
            turn_at: 0.0,
        })
        .collect();
    // when the links are free on which a stream is slower than its sender's port
    let mut link_free: FxHashMap<(u32, u32), f64> = FxHashMap::default();
    // the overhead that each open receive will pay
    let mut overhead: Vec<Vec<f64>> = schedule.programs.iter().map(|p| vec![0.0; p.len()]).collect();
    for rank in 0..machines.len() {
        queue.push(0.0, Event::Turn(rank as u32));
    }
    while let Some((now, event)) = queue.pop() {
        match event {
            Event::Arrive(rank, op) => {
                let m = &mut machines[rank as usize];
                let cost = overhead[rank as usize][op as usize];
                match m.ready(op as usize) {
                    None => {
                        m.early.push(op);
                        continue;
                    }
                    Some(posted) if posted > now => {
                        queue.push(posted, event);
                        continue;
                    }
                    // it keeps nothing waiting, or there is nothing else to turn to
                    Some(_) if cost == 0.0 || (m.cpu_free <= now && m.turn_at > now) => m.take(rank, op, cost, now, &mut queue),
                    Some(_) => m.waiting.push_back(op),
                }
                m.look_ahead(rank, now, &mut queue);
            }
            Event::Turn(rank) => {
                let m = &mut machines[rank as usize];
                if m.turn_at != now {
                    continue; // an earlier one has done its work
                }
                m.turn_at = f64::INFINITY;
                let send = m.next(now).filter(|&(start, _)| start <= now);
                if m.cpu_free <= now
                    && !(m.took && send.is_some())
                    && let Some(op) = m.waiting.pop_front()
                {
                    m.take(rank, op, overhead[rank as usize][op as usize], now, &mut queue);
                } else if let Some((_, op)) = send {
                    m.start[op] = now;
                    m.took = false;
                    match m.program.action(op) {
                        Action::Send { to, span } => {
                            let cost = model.cost(Link { from: rank as Rank, to }, span.len);
                            let Cost { send_overhead, gap, link_gap, transit, recv_overhead } = cost;
                            m.cpu_free = now + send_overhead;
                            m.port_free = now + gap;
                            m.done[op] = m.cpu_free;
                            if let Some((to, their)) = pairs.partner(rank as usize, op) {
                                overhead[to][their] = recv_overhead;
                                let mut leaves = now;
                                if link_gap > gap {
                                    let free = link_free.entry((rank, to as u32)).or_insert(0.0);
                                    leaves = now.max(*free);
                                    *free = leaves + link_gap;
                                }
                                queue.push(leaves + (transit - recv_overhead).max(0.0), Event::Arrive(to as u32, their as u32));
                            }
                        }
                        Action::Delay { seconds } => {
                            m.cpu_free = now + seconds;
                            m.done[op] = m.cpu_free;
                        }
                        Action::Recv { .. } => {}
                    }
                    m.cursors.advance(m.program, op);
                    m.retry_early(rank, m.done[op], &mut queue);
                }
                m.look_ahead(rank, now, &mut queue);
            }
        }
    }
    collect(machines)
}

fn collect(machines: Vec<Machine>) -> Result<Replay> {
    if let Some(rank) = machines.iter().position(|m| m.done.iter().any(|t| t.is_nan())) {
        return Err(Error::invalid(format!("replay the schedule: rank {rank} waits for ever")));
    }
    let port_free = machines.iter().map(|m| m.port_free.max(m.cpu_free)).collect();
    Ok(Replay { port_free, traces: machines.into_iter().map(|m| Trace { start: m.start, end: m.done }).collect() })
}
