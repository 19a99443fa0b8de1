//! Where the wall time of one run went: computation, MPI at work, MPI waiting for a processor (contention), and the network's delay.
//!
//! After Buckwalter (Queuing Network Models of Performance of High End Computing Systems, LLNL 2005), with two corrections. The report
//! takes MPI's active time as an input, which is its time less contention, which is an output: here `A + C(A) + S = MPI time` is solved.
//! And the network's delay S is part of the time in MPI: counted once.

use super::{Library, Machine, Network, Report, Service, Spread, Station, Wire, exact, partners, wire};
use crate::error::{Error, Result};
use serde::Serialize;

/// What a run tells; seconds and numbers are means over its processes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// The report's file.
    pub file: String,
    /// What was run.
    pub command: String,
    /// Processes.
    pub ranks: usize,
    /// Seconds between the end of `MPI_Init` and the begin of `MPI_Finalize`.
    pub wall_s: f64,
    /// Seconds in MPI.
    pub mpi_s: f64,
    /// By name of the call, those that send.
    pub calls: Vec<Call>,
}

/// Calls of one name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Call {
    /// Without `MPI_`.
    pub name: String,
    /// Calls of a process.
    pub count: f64,
    /// Bytes of one call, as mpiP says them.
    pub bytes: f64,
    /// Seconds of a process in all of them.
    pub seconds: f64,
}

impl Call {
    /// What it sends among so many processes, in all of its calls.
    pub fn wire(&self, ranks: usize, library: Library) -> Option<Wire> {
        let one = wire(&self.name, ranks, self.bytes, library)?;
        let all = |of_one: f64| of_one * self.count;
        Some(Wire {
            messages: all(one.messages),
            bytes: all(one.bytes),
            delays: all(one.delays),
            path_bytes: all(one.path_bytes),
            partners: one.partners,
        })
    }
}

impl Run {
    /// A run from its report.
    ///
    /// # Errors
    /// The report says nowhere how often its sites were called.
    pub fn of(report: &Report) -> Result<Run> {
        let ranks = report.ranks();
        let mut calls: Vec<Call> = Vec::new();
        for site in report.sites.iter().filter(|s| partners(&s.call).is_some()) {
            let Some(count) = site.count.filter(|c| *c > 0.0) else { continue };
            let each = 1.0 / ranks as f64;
            let own = Call { name: site.call.clone(), count: count * each, bytes: site.bytes / count, seconds: site.seconds * each };
            match calls.iter_mut().find(|c| c.name == own.name) {
                None => calls.push(own),
                Some(c) => {
                    let all = c.count + own.count;
                    c.bytes = (c.bytes * c.count + own.bytes * own.count) / all;
                    (c.count, c.seconds) = (all, c.seconds + own.seconds);
                }
            }
        }
        // a program may send nothing
        let sends = |site: &super::Site| partners(&site.call).is_some() && site.count.is_none();
        if calls.is_empty() && report.sites.iter().any(sends) {
            return Err(Error::data(format!(
                "read {}: it says of no call site that sends how often it was called and what it sent; ask mpiP for its full report (without -c)",
                report.file
            )));
        }
        calls.sort_by(|a, b| a.name.cmp(&b.name));
        let (file, command) = (report.file.clone(), report.command.clone());
        Ok(Run { file, command, ranks, wall_s: report.mean.app_s, mpi_s: report.mean.mpi_s, calls })
    }
}

/// What all calls send together, of a process.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Traffic {
    /// Messages of a process.
    pub messages: f64,
    /// Mean size.
    pub message_bytes: f64,
    /// Seconds of the network's delays until all are there.
    pub switch_s: f64,
}

/// The messages of calls among ranks so placed. Messages to neighbours and to anyone go different ways.
pub fn traffic(calls: &[Call], machine: &Machine, placed: &[usize]) -> Traffic {
    let sent: Vec<Wire> = calls.iter().filter_map(|c| c.wire(placed.len(), machine.library)).collect();
    let messages: f64 = sent.iter().map(|w| w.messages).sum();
    let bytes: f64 = sent.iter().map(|w| w.bytes).sum();
    let seconds = |w: &Wire| if w.delays > 0.0 { w.delays * machine.message_s(placed, w.partners, w.path_bytes / w.delays) } else { 0.0 };
    Traffic { messages, message_bytes: if messages > 0.0 { bytes / messages } else { 0.0 }, switch_s: sent.iter().map(seconds).sum() }
}

/// Where wall time goes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Components {
    /// On the network.
    pub switch_s: f64,
    /// In MPI, waiting for a processor.
    pub contention_s: f64,
    /// In MPI, at work.
    pub active_s: f64,
    /// Outside MPI.
    pub compute_s: f64,
}

impl Components {
    /// All of them.
    pub fn wall_s(&self) -> f64 {
        self.switch_s + self.contention_s + self.active_s + self.compute_s
    }
}

/// Seconds that processes wait for processors, whose messages ask for so many seconds of them while others compute or wait for the
/// network. Where there are more processes than processors, computing asks for them too: they take [`turns`].
///
/// # Errors
/// Times that are none.
pub fn contention(machine: &Machine, placed: &[usize], parts: &Components) -> Result<f64> {
    let Components { switch_s, active_s, compute_s, .. } = *parts;
    if machine.is_crowded(placed) {
        return turns(machine, placed, parts);
    }
    let (asked_s, think_s) = (active_s, compute_s + switch_s);
    if asked_s == 0.0 {
        return Ok(0.0);
    }
    if machine.cores == 1 || placed.len() <= MOST_EXACT {
        let solution = exact(&Network { think_s, stations: machine.stations(placed, asked_s) }, placed.len())?;
        return Ok((solution.response_s - asked_s).max(0.0));
    }
    let servers = machine.cores as f64;
    let delay_s = asked_s * (servers - 1.0) / servers;
    let as_fast = |s: Station| Station { demand_s: s.demand_s / servers, service: Service::Queue, ..s };
    let stations = machine.stations(placed, asked_s).into_iter().map(as_fast).collect();
    let solution = exact(&Network { think_s: think_s + delay_s, stations }, placed.len())?;
    Ok((solution.response_s + delay_s - asked_s).max(0.0))
}

/// Seconds that processes wait which stay on their processor and take turns there in all that they do: on the one that has most of them,
/// which is the last.
///
/// # Errors
/// As [`contention`].
pub fn turns(machine: &Machine, placed: &[usize], parts: &Components) -> Result<f64> {
    let asked_s = parts.active_s + parts.compute_s;
    let processes = machine.loads(placed).into_values().map(|n| n.div_ceil(machine.cores)).max().unwrap_or(0);
    let processor = Station { demand_s: asked_s, count: 1, service: Service::Queue };
    let solution = exact(&Network { think_s: parts.switch_s, stations: vec![processor] }, processes)?;
    Ok((solution.response_s - asked_s).max(0.0))
}

/// More processes on nodes of several processors are solved approximately: such a node is a processor as fast as all of them together, and
/// a delay (Seidmann, Schweitzer, Shalev-Oren, Large Scale Systems 12, 1987). Convolution takes the square of their number.
const MOST_EXACT: usize = 2048;

/// Halvings of an interval: as many as doubles have digits.
const HALVINGS: usize = 53;

/// Where a growing function reaches a value, between 0 and `most`.
fn reached(most: f64, value: f64, grows: impl Fn(f64) -> Result<f64>) -> Result<f64> {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if high - low <= 1e-12 * most {
            break;
        }
        *(if grows(middle)? > value { &mut high } else { &mut low }) = middle;
    }
    Ok((low + high) / 2.0)
}

/// The components of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Split {
    /// Messages.
    pub traffic: Traffic,
    /// Where its time went.
    pub components: Components,
    /// The messages would take longer on such a network than the run was in MPI at all: they overlapped, or the network is faster.
    pub switch_clamped: bool,
}

/// Splits a run's wall time.
///
/// # Errors
/// The processes cannot be placed so.
pub fn split(run: &Run, machine: &Machine, spread: Spread) -> Result<Split> {
    let placed = machine.place(run.ranks, spread)?;
    let mut traffic = traffic(&run.calls, machine, &placed);
    let switch_clamped = traffic.switch_s > run.mpi_s;
    traffic.switch_s = traffic.switch_s.min(run.mpi_s);
    let compute_s = (run.wall_s - run.mpi_s).max(0.0);
    let switch_s = traffic.switch_s;
    let all = compute_s + run.mpi_s - switch_s;
    // contention grows with what is asked of processors
    let busy = |active_s: f64, compute_s: f64| {
        let parts = Components { switch_s, contention_s: 0.0, active_s, compute_s };
        Ok(active_s + compute_s + contention(machine, &placed, &parts)?)
    };
    let (active_s, compute_s) = if busy(0.0, compute_s)? <= all {
        (reached(run.mpi_s - switch_s, all, |active_s| busy(active_s, compute_s))?, compute_s)
    } else {
        // more processes than processors, and the time outside MPI contains waiting for the others' computing
        (0.0, reached(compute_s, all, |compute_s| busy(0.0, compute_s))?)
    };
    let components = Components { switch_s, contention_s: (all - active_s - compute_s).max(0.0), active_s, compute_s };
    Ok(Split { traffic, components, switch_clamped })
}
