//! Where the wall time of one run went: computation, MPI at work, MPI waiting for a processor (contention), and the network's delay.
//!
//! After Buckwalter (Queuing Network Models of Performance of High End Computing Systems, LLNL 2005), with two corrections. The report
//! takes MPI's active time as an input, which is its time less contention, which is an output: here `A + C(A) + S = MPI time` is solved.
//! And the network's delay S is part of the time in MPI: counted once.

use super::{Call, CallLaw, Machine, Network, Observed, Partners, Rounds, Run, Said, Service, Solution, Spread, Station, exact};
use crate::error::Result;
use serde::Serialize;

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

/// The messages of calls among ranks so placed, and the network's delays of each kind of them, as [`Seen`] has them.
pub fn traffic(calls: &[Call], machine: &Machine, placed: &[usize], observed: &Observed) -> (Traffic, Vec<(Option<String>, f64)>) {
    let (mut messages, mut bytes, mut delays) = (0.0, 0.0, Vec::<(Option<String>, f64)>::new());
    for call in calls {
        let Some(wire) = observed.wire(call, placed.len(), machine.library) else { continue };
        messages += wire.messages;
        bytes += wire.bytes;
        let kind = call.is_waited_for().then(|| call.name.clone());
        let on_network = || delay_s(&wire.rounds, machine, placed, call, observed);
        let seconds = observed.round_s(&call.name).map_or_else(on_network, |round_s| wire.rounds.messages() * round_s);
        match delays.iter_mut().find(|d| d.0 == kind) {
            Some(known) => known.1 += seconds,
            None => delays.push((kind, seconds)),
        }
    }
    let message_bytes = if messages > 0.0 { bytes / messages } else { 0.0 };
    (Traffic { messages, message_bytes, switch_s: delays.iter().fold(0.0, |all, d| all + d.1) }, delays)
}

/// Seconds of rounds of messages of a call. Messages to neighbours and to anyone go different ways.
pub fn delay_s(rounds: &Rounds, machine: &Machine, placed: &[usize], call: &Call, observed: &Observed) -> f64 {
    let members = call.part.map_or(placed.len(), |part| part.ranks);
    let strides = call.part.map_or(vec![1], |part| part.strides(placed.len()));
    let seconds = |(partners, messages, bytes): (Partners, f64, f64)| {
        let ways = observed.ways(call, partners, members);
        let one_s = |stride: &usize| machine.phases_s(placed, (members, *stride), &ways, partners == Partners::Anyone, bytes / messages);
        messages * strides.iter().map(one_s).sum::<f64>() / strides.len() as f64
    };
    rounds.each().map(seconds).sum::<f64>() + rounds.starts * machine.gap_s(placed)
}

/// Takes the bytes of calls of which a run's report does not say them to be as those of other runs, by their laws, where these tell, and else to be
/// what their time allows.
///
/// # Errors
/// The processes cannot be placed so.
pub fn size(run: &mut Run, laws: &[CallLaw], machine: &Machine, spread: Spread, observed: &Observed) -> Result<()> {
    let placed = machine.place(run.ranks, spread)?;
    for call in run.calls.iter_mut().filter(|c| c.said == Said::Time && c.count > 0.0) {
        let law = laws.iter().find(|law| (&law.name, law.nth, law.size) == (&call.name, call.nth, call.size) && law.said.is_known());
        if let Some(bytes) = law.and_then(|law| law.bytes.as_ref()).filter(|bytes| bytes.tells(run.ranks)) {
            (call.bytes, call.said) = (bytes.at(run.ranks).value, Said::Others);
            continue;
        }
        let takes = |bytes: f64| {
            let wire = observed.wire(&Call { bytes, ..call.clone() }, placed.len(), machine.library);
            wire.map_or(0.0, |w| delay_s(&w.rounds, machine, &placed, call, observed))
        };
        // no network takes less than a picosecond for a byte
        let most = call.seconds * 1e12;
        if takes(most) > call.seconds && takes(0.0) < call.seconds {
            call.bytes = reached(most, call.seconds, |bytes| Ok(takes(bytes)))?;
        } else {
            // all within nodes, or over before it begins
            (call.bytes, call.said) = (0.0, Said::Nobody);
        }
    }
    Ok(())
}

/// Where wall time goes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Components {
    /// On the network.
    pub switch_s: f64,
    /// In MPI, waiting for processes that compute longer, or are late now and then.
    pub waiting_s: f64,
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
        self.switch_s + self.waiting_s + self.contention_s + self.active_s + self.compute_s
    }
}

/// Seconds that processes wait for processors, whose messages ask for so many seconds of them while others compute or wait for the
/// network. Where there are more processes than processors, computing asks for them too: they take [`turns`].
///
/// # Errors
/// Times that are none.
pub fn contention(machine: &Machine, placed: &[usize], parts: &Components) -> Result<f64> {
    let Components { switch_s, waiting_s, active_s, compute_s, .. } = *parts;
    if machine.is_crowded(placed) {
        return turns(machine, placed, parts);
    }
    let (asked_s, think_s) = (active_s, compute_s + switch_s + waiting_s);
    if asked_s == 0.0 {
        return Ok(0.0);
    }
    if machine.cores == 1 || placed.len() <= MOST_EXACT {
        let solution = exact(&Network { think_s, stations: machine.stations(placed, asked_s) }, placed.len())?;
        return Ok(waited(&solution, asked_s, think_s));
    }
    let servers = machine.cores as f64;
    let delay_s = asked_s * (servers - 1.0) / servers;
    let as_fast = |s: Station| Station { demand_s: s.demand_s / servers, service: Service::Queue, ..s };
    let stations = machine.stations(placed, asked_s).into_iter().map(as_fast).collect();
    let solution = exact(&Network { think_s: think_s + delay_s, stations }, placed.len())?;
    Ok(waited(&solution, asked_s - delay_s, think_s))
}

/// What of a response is more than was asked for; less than a millionth of all the time is none, beside times of which reports say fewer digits.
fn waited(solution: &Solution, asked_s: f64, think_s: f64) -> f64 {
    let waited = solution.response_s - asked_s;
    if waited > 1e-6 * (solution.response_s + think_s) { waited } else { 0.0 }
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
    let solution = exact(&Network { think_s: parts.switch_s + parts.waiting_s, stations: vec![processor] }, processes)?;
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
    /// How much of the network's delays is seen in the run's time, by kind of call.
    pub seen: Vec<Seen>,
    /// Seconds of waiting that are for partners which are late now and then, and for none that computes longer in all: the same on any network.
    pub late_s: f64,
    /// Some messages would take longer on such a network than the run was in MPI for them: they overlapped, or the network is faster.
    pub switch_clamped: bool,
}

/// How much of the network's delays is seen in a run's time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seen {
    /// The collective, if it waits until it is done; none for all other calls together, whose messages are waited for elsewhere.
    pub call: Option<String>,
    /// The share, at most 1: messages that are under way at the same time take less than one after the other.
    pub share: f64,
}

/// Splits a run's wall time.
///
/// # Errors
/// The processes cannot be placed so.
pub fn split(run: &Run, machine: &Machine, spread: Spread, observed: &Observed) -> Result<Split> {
    let placed = machine.place(run.ranks, spread)?;
    let (mut traffic, delays) = traffic(&run.calls, machine, &placed, observed);
    let took_s = |call: &Option<String>| match call {
        Some(name) => run.calls.iter().filter(|c| c.name == *name).map(|c| c.seconds).sum(),
        None => run.elsewhere_s().unwrap_or(run.mpi_s),
    };
    let seen: Vec<Seen> = delays
        .iter()
        .map(|(call, delay_s)| Seen { call: call.clone(), share: if *delay_s > 0.0 { (took_s(call) / delay_s).min(1.0) } else { 1.0 } })
        .collect();
    let seen_s: f64 = delays.iter().zip(&seen).map(|(d, s)| d.1 * s.share).sum();
    let switch_clamped = seen_s < traffic.switch_s;
    traffic.switch_s = seen_s.min(run.mpi_s);
    let compute_s = (run.wall_s - run.mpi_s).max(0.0);
    let switch_s = traffic.switch_s;
    let imbalance_s = run.imbalance_s.min(run.mpi_s - switch_s);
    let is_late = observed.waits_for_partners && !machine.is_crowded(&placed);
    let beyond_s = beyond(run, machine, &placed, observed).filter(|_| is_late).map_or(0.0, |beyond| beyond.seconds);
    let late_s = beyond_s.min(run.mpi_s - switch_s - imbalance_s);
    let waiting_s = imbalance_s + late_s;
    let all = compute_s + run.mpi_s - switch_s - waiting_s;
    // contention grows with what is asked of processors
    let busy = |active_s: f64, compute_s: f64| {
        let parts = Components { switch_s, waiting_s, contention_s: 0.0, active_s, compute_s };
        Ok(active_s + compute_s + contention(machine, &placed, &parts)?)
    };
    let (active_s, compute_s) = if busy(0.0, compute_s)? <= all {
        (reached(run.mpi_s - switch_s - waiting_s, all, |active_s| busy(active_s, compute_s))?, compute_s)
    } else {
        // more processes than processors, and the time outside MPI contains waiting for the others' computing
        (0.0, reached(compute_s, all, |compute_s| busy(0.0, compute_s))?)
    };
    let components = Components { switch_s, waiting_s, contention_s: (all - active_s - compute_s).max(0.0), active_s, compute_s };
    Ok(Split { traffic, components, seen, late_s, switch_clamped })
}

/// What messages that no collective waits for take beyond the network.
pub(super) struct Beyond {
    /// Seconds that are none of processes that compute longer.
    pub seconds: f64,
    /// Seconds that processors are busy with them, as the platform says.
    pub busy_s: f64,
}

/// What such messages of a run take beyond the network; none where it sends none.
pub(super) fn beyond(run: &Run, machine: &Machine, placed: &[usize], observed: &Observed) -> Option<Beyond> {
    let calls: Vec<Call> = run.calls.iter().filter(|c| !c.is_waited_for()).cloned().collect();
    let (sent, delays) = traffic(&calls, machine, placed, observed);
    let delay_s = delays.first().map(|d| d.1).filter(|delay_s| *delay_s > 0.0)?;
    let seconds = (run.elsewhere_s()? - delay_s - run.imbalance_s).max(0.0);
    Some(Beyond { seconds, busy_s: sent.messages * machine.overhead_s(placed, sent.message_bytes) })
}
