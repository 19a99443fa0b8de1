//! Is a schedule valid? Every message is sent and received alike, spans lie in their buffers, and nothing waits for itself.

use super::{Action, Buffer, Lane, Schedule};
use crate::error::{Error, Result};
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::FxHashMap;

/// For each rank and operation, the rank and operation at the other end of its message. Delays have none.
#[derive(Debug, Clone)]
pub struct Matching {
    partner: Vec<Vec<Option<(u32, u32)>>>,
}

impl Matching {
    /// The other end of an operation's message.
    pub fn partner(&self, rank: usize, op: usize) -> Option<(usize, usize)> {
        self.partner[rank][op].map(|(r, o)| (r as usize, o as usize))
    }
}

/// The receives of one pair and lane (operation, bytes), and how many sends were met.
type Stream = (Vec<(u32, usize)>, usize);

/// Pairs the k-th send from a to b in a lane with the k-th receive at b from a in that lane.
///
/// # Errors
/// [`Error::Invalid`] if a message has no other end, or ends that differ in length.
pub fn matching(schedule: &Schedule) -> Result<Matching> {
    let ranks = schedule.ranks();
    let mut partner: Vec<Vec<Option<(u32, u32)>>> = schedule.programs.iter().map(|p| vec![None; p.len()]).collect();
    // receives of each (from, to, lane) in order; the cursor counts the sends met
    let mut receives: FxHashMap<(u32, u32, Lane), Stream> = FxHashMap::default();
    for (me, program) in schedule.programs.iter().enumerate() {
        for (k, action) in program.actions().enumerate() {
            if let Action::Recv { from, span } = action {
                receives.entry((from as u32, me as u32, program.lane(k))).or_default().0.push((k as u32, span.len));
            }
        }
    }
    for (me, program) in schedule.programs.iter().enumerate() {
        for (k, action) in program.actions().enumerate() {
            let Action::Send { to, span } = action else { continue };
            if to >= ranks {
                return Err(Error::invalid(format!("check the schedule: rank {me} sends to rank {to}, there are {ranks} ranks")));
            }
            let slot = receives.get_mut(&(me as u32, to as u32, program.lane(k)));
            let found = slot.and_then(|(list, next)| {
                *next += 1;
                list.get(*next - 1).copied()
            });
            match found {
                Some((op, len)) if len == span.len => {
                    partner[me][k] = Some((to as u32, op));
                    partner[to][op as usize] = Some((me as u32, k as u32));
                }
                Some((_, len)) => {
                    let sent = span.len;
                    return Err(Error::invalid(format!(
                        "check the schedule: rank {me} sends {sent} bytes to rank {to}, which expects {len}"
                    )));
                }
                None => return Err(Error::invalid(format!("check the schedule: a message from rank {me} to rank {to} is never received"))),
            }
        }
    }
    for ((from, to, _), (list, met)) in &receives {
        if *met < list.len() {
            return Err(Error::invalid(format!("check the schedule: rank {to} waits for a message that rank {from} never sends")));
        }
    }
    Ok(Matching { partner })
}

/// Checks a schedule for a message of `bytes` bytes: messages match ([`matching`]), spans of the message lie inside it, no rank
/// sends to itself, operations come after earlier ones, and no cycle of waiting exists.
///
/// # Errors
/// [`Error::Invalid`] that names the first fault.
pub fn check(schedule: &Schedule, bytes: usize) -> Result<()> {
    let pairs = matching(schedule)?;
    let mut graph: DiGraph<(), ()> = DiGraph::new();
    let nodes: Vec<Vec<NodeIndex>> = schedule.programs.iter().map(|p| (0..p.len()).map(|_| graph.add_node(())).collect()).collect();
    for (me, program) in schedule.programs.iter().enumerate() {
        let mut last_issued = FxHashMap::default();
        for (k, action) in program.actions().enumerate() {
            for &d in program.after(k) {
                if d as usize >= k {
                    return Err(Error::invalid(format!(
                        "check the schedule: operation {k} of rank {me} comes after {d}, which is no earlier one"
                    )));
                }
                graph.add_edge(nodes[me][d as usize], nodes[me][k], ());
            }
            match action {
                Action::Send { to, span } | Action::Recv { from: to, span } => {
                    if to == me {
                        return Err(Error::invalid(format!("check the schedule: rank {me} talks to itself")));
                    }
                    if span.buffer == Buffer::Data && span.offset + span.len > bytes {
                        return Err(Error::invalid(format!(
                            "check the schedule: operation {k} of rank {me} lies outside the {bytes} bytes"
                        )));
                    }
                }
                Action::Delay { .. } => {}
            }
            if !matches!(action, Action::Recv { .. }) {
                if let Some(previous) = last_issued.insert(program.lane(k), nodes[me][k]) {
                    graph.add_edge(previous, nodes[me][k], ());
                }
                if let Some((to, op)) = pairs.partner(me, k) {
                    graph.add_edge(nodes[me][k], nodes[to][op], ());
                }
            }
        }
    }
    petgraph::algo::toposort(&graph, None)
        .map(drop)
        .map_err(|_| Error::invalid("check the schedule: ranks wait for each other in a circle"))
}

#[cfg(test)]
mod tests {
    use super::super::{Program, Span};
    use super::*;

    fn pair(a: impl Fn(&mut Program), b: impl Fn(&mut Program)) -> Schedule {
        let (mut pa, mut pb) = (Program::new(), Program::new());
        a(&mut pa);
        b(&mut pb);
        Schedule { programs: vec![pa, pb] }
    }

    #[test]
    fn each_fault_is_named() {
        let one = Span::data(0, 1);
        let say = |s: &Schedule| check(s, 1).unwrap_err().to_string();
        let once = |_: u32| ();
        let send = |p: &mut Program| once(p.send(1, one, &[]));
        assert!(say(&pair(send, |_| ())).contains("never received"));
        assert!(say(&pair(|_| (), |p| once(p.recv(0, one, &[])))).contains("never sends"));
        assert!(say(&pair(send, |p| once(p.recv(0, Span::data(0, 0), &[])))).contains("expects 0"));
        assert!(say(&pair(|p| once(p.send(2, one, &[])), |_| ())).contains("rank 2"), "rank = P is outside");
        assert!(say(&pair(|p| once(p.send(1, Span::data(1, 1), &[])), |p| once(p.recv(0, one, &[])))).contains("outside"));
        let circle = pair(
            |p| {
                let got = p.recv(1, one, &[]);
                p.send(1, one, &[got]);
            },
            |p| {
                let got = p.recv(0, one, &[]);
                p.send(0, one, &[got]);
            },
        );
        assert!(say(&circle).contains("circle"));
        assert!(check(&pair(send, |p| once(p.recv(0, one, &[]))), 1).is_ok());
    }
}
