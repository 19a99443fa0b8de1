//! Replay of a schedule under a point-to-point model: one event-driven evaluator for all algorithms, models, rank counts and
//! mixes of links. The closed forms of the literature are tests of it.
//!
//! The machine it replays on: each rank has a processor and a port. A send takes the processor for `send_overhead` and the port
//! for `gap`, and leaves when the link is free of the sender's message before it; the message is usable at the receiver `transit` after it left, and the last `recv_overhead` of that runs
//! on the receiver's processor and waits while that is busy.

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

/// Events of one time: messages are taken in before new ones go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A processor may take the next message that waits for it.
    Take(u32),
    /// A message is there but for the receiver's overhead: receiver, its operation.
    Arrive(u32, u32),
    /// A rank turns to its next send or delay.
    Issue(u32),
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
    /// When this rank next turns to its sends; one such event is enough.
    issue_at: f64,
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

    /// The rank turns to its next send at `time`, unless it does so before.
    fn issue(&mut self, rank: u32, time: f64, queue: &mut EventQueue<Event>) {
        if !self.cursors.is_empty() && time < self.issue_at {
            self.issue_at = time;
            queue.push(time, Event::Issue(rank));
        }
    }

    /// A message's overhead is paid, and the message usable after it.
    fn take(&mut self, rank: u32, op: u32, cost: f64, now: f64, queue: &mut EventQueue<Event>) {
        self.start[op as usize] = now;
        self.done[op as usize] = now + cost;
        if cost > 0.0 {
            self.cpu_free = now + cost;
        }
        self.wake(rank, now + cost, queue);
    }

    /// Something is complete at `time`: the rank may turn to its next send, and messages that came early may be taken.
    fn wake(&mut self, rank: u32, time: f64, queue: &mut EventQueue<Event>) {
        self.issue(rank, time, queue);
        for op in std::mem::take(&mut self.early) {
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
            issue_at: 0.0,
        })
        .collect();
    // when the links are free on which a stream is slower than its sender's port
    let mut link_free: FxHashMap<(u32, u32), f64> = FxHashMap::default();
    // the overhead that each open receive will pay
    let mut overhead: Vec<Vec<f64>> = schedule.programs.iter().map(|p| vec![0.0; p.len()]).collect();
    for rank in 0..machines.len() {
        queue.push(0.0, Event::Issue(rank as u32));
    }
    while let Some((now, event)) = queue.pop() {
        match event {
            Event::Issue(rank) => {
                let m = &mut machines[rank as usize];
                if m.issue_at != now {
                    continue; // an earlier one has done its work
                }
                m.issue_at = f64::INFINITY;
                let Some((start, op)) = m.next(now) else { continue };
                if start > now {
                    m.issue(rank, start, &mut queue);
                    continue;
                }
                m.start[op] = now;
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
                m.wake(rank, now, &mut queue);
            }
            Event::Arrive(rank, op) => {
                let m = &mut machines[rank as usize];
                let cost = overhead[rank as usize][op as usize];
                let posted = m.ready(op as usize);
                if posted.is_none() {
                    m.early.push(op);
                } else if let Some(later) = posted.filter(|&t| t > now) {
                    queue.push(later, event);
                } else if cost > 0.0 && (m.cpu_free > now || !m.waiting.is_empty()) {
                    if m.waiting.is_empty() {
                        queue.push(m.cpu_free.max(now), Event::Take(rank));
                    }
                    m.waiting.push_back(op);
                } else {
                    m.take(rank, op, cost, now, &mut queue);
                }
            }
            Event::Take(rank) => {
                let m = &mut machines[rank as usize];
                if m.cpu_free > now {
                    queue.push(m.cpu_free, Event::Take(rank));
                } else if let Some(op) = m.waiting.pop_front() {
                    m.take(rank, op, overhead[rank as usize][op as usize], now, &mut queue);
                    if !m.waiting.is_empty() {
                        queue.push(m.cpu_free, Event::Take(rank));
                    }
                }
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
