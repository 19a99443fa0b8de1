//! Is a schedule right? A symbolic run: every byte carries whose it is, or which ranks' values are combined in it, and at the end each rank has
//! what the specification says.
//!
//! Refused are messages without another end, spans outside their buffers, ranks that wait for each other in a circle (also where a send is
//! complete only when its receive is posted, and with no more messages of a stream under way than may be), reading what is not there yet,
//! writing into the input, using bytes while they are written at a time that no order of the rank's own operations keeps apart, and combining
//! what does not belong together: parts of elements, different places, a rank's value twice, or, where the operation does not commute,
//! ranks that do not follow each other. A schedule that is right delivers the same bytes on every transport.

use super::specification::{Layout, Piece, Specification};
use super::symbolic::run;
use super::{Action, Buffer, CONTROL_BYTES, Lane, Matching, NONE, Program, Schedule, Span, matching};
use crate::error::{Error, Result};
use crate::topology::Rank;
use fixedbitset::FixedBitSet;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Checks a schedule against its specification.
///
/// # Errors
/// [`Error::Invalid`] that names the first fault.
pub fn check(schedule: &Schedule, specification: &Specification) -> Result<()> {
    let ranks = [specification.layouts.len(), specification.before.len(), specification.after.len()];
    if ranks != [schedule.ranks(); 3] {
        return fault(format!("it has {} ranks, its specification {ranks:?}", schedule.ranks()));
    }
    let pairs = matching(schedule)?;
    for (me, program) in schedule.programs.iter().enumerate() {
        operations(me, program, specification.layouts[me])?;
        overlaps(me, program)?;
    }
    let order = order(schedule, &pairs)?;
    if specification.synchronises {
        synchronises(schedule, &pairs, &order)?;
    }
    let memories = run(schedule, &pairs, &order, specification)?;
    for (me, (memory, wanted)) in memories.iter().zip(&specification.after).enumerate() {
        for piece in wanted.iter().filter(|piece| piece.len > 0) {
            let Piece { buffer, at, len, ref of, from } = *piece;
            let found = memory.read(Span { buffer, offset: at, len });
            if found.as_deref() != Ok(std::slice::from_ref(piece)) {
                let of: Vec<Rank> = of.ranks().collect();
                return fault(format!("rank {me} ends without bytes {from} to {} of ranks {of:?} at {at}, but with {found:?}", from + len));
            }
        }
    }
    Ok(())
}

/// Checks that a schedule comes to its end, whatever its messages hold: for experiments, which send the same bytes again and again.
///
/// # Errors
/// [`Error::Invalid`]: a message without another end, or ranks that wait for each other in a circle.
pub fn completes(schedule: &Schedule) -> Result<()> {
    order(schedule, &matching(schedule)?).map(drop)
}

pub(super) fn fault<T>(reason: String) -> Result<T> {
    Err(Error::invalid(format!("check the schedule: {reason}")))
}

/// True for what is over before anything else of its rank starts.
fn is_local(action: Action) -> bool {
    !matches!(action, Action::Send { .. } | Action::Recv { .. })
}

/// Operations come after earlier ones, nobody talks to itself, spans lie in their buffers and apart, nothing is written into the input.
fn operations(me: Rank, program: &Program, Layout { input, output }: Layout) -> Result<()> {
    for (k, action) in program.actions().enumerate() {
        if let Some(&d) = program.after(k).iter().find(|&&d| d as usize >= k) {
            return fault(format!("operation {k} of rank {me} comes after {d}, which is no earlier one"));
        }
        if let Action::Send { to: other, .. } | Action::Recv { from: other, .. } = action
            && other == me
        {
            return fault(format!("rank {me} talks to itself"));
        }
        let (reads, writes) = action.uses();
        for span in reads.into_iter().chain(writes) {
            let bytes = match span.buffer {
                Buffer::Input => input,
                Buffer::Output => output,
                Buffer::Scratch => program.scratch(),
                Buffer::Control if is_local(action) => return fault(format!("operation {k} of rank {me} uses a control message's bytes")),
                Buffer::Control if span.len > CONTROL_BYTES => {
                    return fault(format!(
                        "operation {k} of rank {me} has a control message of {} bytes, {CONTROL_BYTES} are most",
                        span.len
                    ));
                }
                Buffer::Control => continue,
            };
            if span.end() > bytes.min(isize::MAX as usize) {
                return fault(format!("operation {k} of rank {me} lies outside the {bytes} bytes"));
            }
        }
        if writes.is_some_and(|span| span.buffer == Buffer::Input) {
            return fault(format!("operation {k} of rank {me} writes into the input"));
        }
        if let (Some(reads), Some(writes)) = (reads, writes)
            && reads.overlaps(&writes)
        {
            return fault(format!("operation {k} of rank {me} writes into what it reads"));
        }
    }
    Ok(())
}

/// Nothing uses bytes while they are written, and nothing is written into bytes while they are read: of two such operations one starts
/// when the other is complete.
fn overlaps(me: Rank, program: &Program) -> Result<()> {
    let mut used: Vec<(Span, usize, bool)> = Vec::new();
    for (k, action) in program.actions().enumerate() {
        let (reads, writes) = action.uses();
        used.extend(reads.map(|span| (span, k, false)));
        used.extend(writes.map(|span| (span, k, true)));
    }
    used.retain(|(span, ..)| span.buffer != Buffer::Control && span.len > 0);
    used.sort_by_key(|&(span, k, _)| (span.buffer, span.offset, k));
    for (n, &(span, a, writes)) in used.iter().enumerate() {
        for &(_, b, also_writes) in used[n + 1..].iter().take_while(|(other, ..)| other.overlaps(&span)) {
            if (writes || also_writes) && a != b && !ordered(program, a.min(b), a.max(b)) {
                return fault(format!(
                    "operations {a} and {b} of rank {me} may use the same bytes at the same time, one of them to write them"
                ));
            }
        }
    }
    Ok(())
}

/// True if a later operation starts only when an earlier one is complete, by this rank's own rules.
fn ordered(program: &Program, earlier: usize, later: usize) -> bool {
    let mut seen = BTreeSet::from([later]);
    let mut open = vec![later];
    let before = previous(program);
    let over_when_started = is_local(program.action(earlier));
    while let Some(k) = open.pop() {
        let previous = before(k);
        if program.after(k).contains(&(earlier as u32)) || (over_when_started && previous == Some(earlier)) {
            return true;
        }
        // what must have started before k did; only what comes after `earlier` in the program can lead to it
        let started = program.after(k).iter().map(|&d| d as usize).chain(previous);
        open.extend(started.filter(|&d| d > earlier && seen.insert(d)));
    }
    false
}

/// The operation that starts before another one in its lane or stream.
fn previous(program: &Program) -> impl Fn(usize) -> Option<usize> + '_ {
    move |k| {
        let same = |d: &usize| match (program.action(*d), program.action(k)) {
            (Action::Recv { from: a, .. }, Action::Recv { from: b, .. }) => a == b,
            (Action::Recv { .. }, _) | (_, Action::Recv { .. }) => false,
            _ => true,
        };
        (0..k).rev().find(|d| program.lane(*d) == program.lane(k) && same(d))
    }
}

/// A start or an end: rank, operation, and whether it is the end.
pub(super) type Event = (Rank, usize, bool);

/// All starts and ends in an order in which they can happen.
fn order(schedule: &Schedule, pairs: &Matching) -> Result<Vec<Event>> {
    let mut graph: DiGraph<Event, ()> = DiGraph::new();
    let nodes: Vec<Vec<[NodeIndex; 2]>> = (0..schedule.ranks())
        .map(|me| (0..schedule.programs[me].len()).map(|k| [false, true].map(|end| graph.add_node((me, k, end)))).collect())
        .collect();
    let (start, end) = (|me: Rank, k: usize| nodes[me][k][0], |me: Rank, k: usize| nodes[me][k][1]);
    for (me, program) in schedule.programs.iter().enumerate() {
        // the operations of each lane, and of each stream, so far
        let mut lanes: FxHashMap<_, usize> = FxHashMap::default();
        let mut streams: FxHashMap<_, usize> = FxHashMap::default();
        let windows = program.windows();
        for (k, action) in program.actions().enumerate() {
            graph.add_edge(start(me, k), end(me, k), ());
            for &d in program.after(k) {
                graph.add_edge(end(me, d as usize), start(me, k), ());
            }
            let stream = match action {
                Action::Send { to, .. } => Some((to, program.lane(k), true)),
                Action::Recv { from, .. } => Some((from, program.lane(k), false)),
                _ => None,
            };
            if let Some(before) = stream.and_then(|s| streams.insert(s, k)) {
                graph.add_edge(start(me, before), start(me, k), ());
            }
            if let Some(before) = Some(windows[k]).filter(|&window| window != NONE) {
                graph.add_edge(end(me, before as usize), start(me, k), ());
            }
            if !matches!(action, Action::Recv { .. }) {
                if let Some(before) = lanes.insert(program.lane(k), k) {
                    let over = is_local(program.action(before));
                    graph.add_edge(if over { end(me, before) } else { start(me, before) }, start(me, k), ());
                }
                if let Some((to, op)) = pairs.partner(me, k) {
                    graph.add_edge(start(me, k), end(to, op), ());
                    // a large message leaves when its receive is posted
                    graph.add_edge(start(to, op), end(me, k), ());
                }
            }
        }
    }
    match petgraph::algo::toposort(&graph, None) {
        Ok(order) => Ok(order.into_iter().map(|n| graph[n]).collect()),
        Err(_) => fault("ranks wait for each other in a circle".into()),
    }
}

/// Everybody hears from everybody: what a rank has heard of when an operation starts is what it heard in those that the operation comes
/// after or that started before it in its lane; a message brings what its sender had heard of when it was sent.
fn synchronises(schedule: &Schedule, pairs: &Matching, order: &[Event]) -> Result<()> {
    let ranks = schedule.ranks();
    let heard_in = |me: Rank| schedule.programs[me].actions().map(|_| FixedBitSet::with_capacity(ranks)).collect::<Vec<_>>();
    // by rank and operation, at its start and at its end
    let (mut starts, mut ends): (Vec<_>, Vec<_>) = (0..ranks).map(|me| (heard_in(me), heard_in(me))).unzip();
    let mut lanes: FxHashMap<(Rank, Lane), FixedBitSet> = FxHashMap::default();
    for &(me, k, is_end) in order {
        let program = &schedule.programs[me];
        if !is_end {
            let mut heard = FixedBitSet::with_capacity(ranks);
            heard.insert(me);
            program.after(k).iter().for_each(|&d| heard.union_with(&ends[me][d as usize]));
            if !matches!(program.action(k), Action::Recv { .. }) {
                let lane = lanes.entry((me, program.lane(k))).or_insert_with(|| FixedBitSet::with_capacity(ranks));
                lane.union_with(&heard);
                heard.clone_from(lane);
            }
            starts[me][k] = heard;
        } else {
            let mut heard = starts[me][k].clone();
            if let (Action::Recv { .. }, Some((from, op))) = (program.action(k), pairs.partner(me, k)) {
                heard.union_with(&starts[from][op]);
            }
            ends[me][k] = heard;
        }
    }
    for (me, ends) in ends.iter().enumerate() {
        let mut heard = FixedBitSet::with_capacity(ranks);
        heard.insert(me);
        ends.iter().for_each(|end| heard.union_with(end));
        if let Some(other) = heard.zeroes().next() {
            return fault(format!("rank {me} may end before rank {other} has begun"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Program, Span, WINDOW};
    use super::*;

    /// Rank 0 has the bytes, both have them at the end.
    fn both(bytes: usize) -> Specification {
        let all = vec![Piece::output(0, bytes, 0, 0)];
        let layouts = vec![Layout { input: 0, output: bytes }; 2];
        Specification { layouts, before: vec![all.clone(), Vec::new()], after: vec![all.clone(), all], ..Default::default() }
    }

    fn drop_id(_: u32) {}

    fn pair(a: impl Fn(&mut Program), b: impl Fn(&mut Program)) -> Schedule {
        let (mut pa, mut pb) = (Program::new(), Program::new());
        a(&mut pa);
        b(&mut pb);
        Schedule { programs: vec![pa, pb] }
    }

    #[test]
    fn a_barrier_that_somebody_may_leave_early_is_refused() {
        let barrier = |ranks| Specification { synchronises: true, ..Specification::empty(ranks) };
        let token = Span::control(0);
        let tell = |p: &mut Program| drop_id(p.send(1, token, &[]));
        let heard = |p: &mut Program| drop_id(p.recv(0, token, &[]));
        assert!(check(&pair(tell, heard), &barrier(2)).unwrap_err().to_string().contains("rank 0 may end before rank 1 has begun"));
        // rank 1 answers whether it has heard or not: rank 0 hears that it has begun, and so does rank 1
        let both = |other: Rank| {
            move |p: &mut Program| {
                p.send(other, token, &[]);
                p.recv(other, token, &[]);
            }
        };
        assert!(check(&pair(both(1), both(0)), &barrier(2)).is_ok());
        // rank 0 passes on what it heard of rank 1, if it waits for it; rank 2 tells everybody before
        let three = |waits: bool| {
            let mut programs = vec![Program::new(), Program::new(), Program::new()];
            programs[2].send(0, token, &[]);
            programs[2].send(1, token, &[]);
            programs[1].send(0, token, &[]);
            let (one, two) = (programs[0].recv(1, token, &[]), programs[0].recv(2, token, &[]));
            let (all, some) = ([one, two], [two]);
            let after: &[u32] = if waits { &all } else { &some };
            programs[0].send(2, token, after);
            programs[0].send(1, token, after);
            programs[1].recv(2, token, &[]);
            programs[1].recv(0, token, &[]);
            programs[2].recv(0, token, &[]);
            check(&Schedule { programs }, &barrier(3))
        };
        assert!(three(true).is_ok());
        assert!(three(false).unwrap_err().to_string().contains("rank 2 may end before rank 1 has begun"));
    }

    #[test]
    fn each_fault_is_named() {
        let one = Span::output(0, 1);
        let say = |s: &Schedule, bytes: usize| check(s, &both(bytes)).unwrap_err().to_string();
        let send = |p: &mut Program| drop_id(p.send(1, one, &[]));
        let receive = |p: &mut Program| drop_id(p.recv(0, one, &[]));
        assert!(check(&pair(send, receive), &both(1)).is_ok());
        assert!(say(&pair(send, |_| ()), 1).contains("never received"));
        assert!(say(&pair(|_| (), receive), 1).contains("never sends"));
        assert!(say(&pair(send, |p| drop_id(p.recv(0, Span::output(0, 0), &[]))), 1).contains("expects 0"));
        assert!(say(&pair(|p| drop_id(p.send(2, one, &[])), |_| ()), 1).contains("rank 2"), "rank = P is outside");
        assert!(say(&pair(|p| drop_id(p.send(1, Span::output(1, 1), &[])), receive), 1).contains("outside"));
        assert!(say(&pair(send, receive), 2).contains("rank 1 ends without bytes 0 to 2 of ranks [0]"));
        assert!(say(&pair(send, |p| drop_id(p.recv(0, Span::output(1, 1), &[]))), 2).contains("ends without"), "in the wrong place");
        let back = |p: &mut Program| {
            p.send(0, one, &[]);
            p.recv(0, Span::output(1, 1), &[]);
        };
        let from_nothing = pair(
            |p| {
                p.recv(1, one, &[]);
                p.send(1, Span::output(1, 1), &[]);
            },
            back,
        );
        assert!(say(&from_nothing, 2).contains("reads byte 0 of its output, where nothing lies"));
        assert!(say(&pair(|p| drop_id(p.send(1, Span::control(1), &[])), receive), 1).contains("control"));
        let two = Span::control(2);
        assert!(say(&pair(|p| drop_id(p.send(1, two, &[])), |p| drop_id(p.recv(0, two, &[]))), 1).contains("control message of 2 bytes"));
        let whole = |p: &mut Program| drop_id(p.send(1, Span::output(0, 100), &[]));
        assert!(
            say(&pair(whole, |p| drop_id(p.recv(0, Span::control(100), &[]))), 100).contains("operation 0 of rank 1 has a control message")
        );
    }

    #[test]
    fn circles_are_found_also_of_large_messages_and_of_full_streams() {
        let one = Span::output(0, 1);
        let say = |s: &Schedule| check(s, &both(1)).unwrap_err().to_string();
        let waits = |other: Rank| {
            move |p: &mut Program| {
                let got = p.recv(other, one, &[]);
                p.send(other, one, &[got]);
            }
        };
        assert!(say(&pair(waits(1), waits(0))).contains("circle"));
        // each posts its receive when its send is complete, which a large one is when the other's receive is posted
        let after_send = |other: Rank| {
            move |p: &mut Program| {
                let sent = p.send(other, one, &[]);
                p.recv(other, Span::control(1), &[sent]);
            }
        };
        assert!(say(&pair(after_send(1), after_send(0))).contains("circle"));
        // the last of many is received first
        let many = |n: usize| {
            pair(
                move |p| (0..n).for_each(|_| drop_id(p.send(1, Span::control(1), &[]))),
                move |p| {
                    p.in_lane(0);
                    let first = p.recv(0, Span::control(1), &[]);
                    (1..n).for_each(|_| drop_id(p.recv(0, Span::control(1), &[first])));
                },
            )
        };
        assert!(check(&many(3 * WINDOW), &Specification::empty(2)).is_ok());
    }

    #[test]
    fn a_window_too_small_is_a_circle() {
        // rank 1 wants to hear from rank 2 before it receives from rank 0, whose message to rank 2 comes after two to rank 1
        let relay = |in_flight: usize| {
            let (mut a, mut b, mut c) = (Program::new(), Program::new(), Program::new());
            let one = Span::control(1);
            a.in_flight(in_flight);
            [1, 1, 2].into_iter().for_each(|to| drop_id(a.send(to, one, &[])));
            let heard = c.recv(0, one, &[]);
            c.send(1, one, &[heard]);
            let heard = b.recv(2, one, &[]);
            (0..2).for_each(|_| drop_id(b.recv(0, one, &[heard])));
            check(&Schedule { programs: vec![a, b, c] }, &Specification::empty(3))
        };
        assert!(relay(1).unwrap_err().to_string().contains("circle"));
        assert!(relay(2).is_ok());
    }

    #[test]
    fn bytes_in_use_are_left_alone() {
        let (one, two) = (Span::output(0, 1), Span::output(1, 1));
        let say = |s: &Schedule| check(s, &both(1)).err().map(|e| e.to_string());
        // rank 0 sends its byte and receives into it; rank 1 answers
        let schedule = |ordered: bool| {
            pair(
                |p| {
                    let sent = p.send(1, one, &[]);
                    if ordered {
                        p.recv(1, one, &[sent])
                    } else {
                        p.recv(1, one, &[])
                    };
                },
                |p| {
                    let got = p.recv(0, one, &[]);
                    p.send(0, one, &[got]);
                },
            )
        };
        assert_eq!(say(&schedule(true)), None);
        assert!(say(&schedule(false)).unwrap().contains("operations 0 and 1 of rank 0 may use the same bytes"));
        // an order by way of another operation counts, one of starts alone does not
        let chain = |by_dependency: bool| {
            pair(
                |p| {
                    let sent = p.send(1, one, &[]);
                    let then = if by_dependency { p.send(1, two, &[sent]) } else { p.send(1, two, &[]) };
                    p.recv(1, one, &[then]);
                },
                |p| {
                    let a = p.recv(0, one, &[]);
                    let b = p.recv(0, two, &[]);
                    p.send(0, one, &[a, b]);
                },
            )
        };
        let wide = both(2);
        assert!(check(&chain(true), &wide).is_ok());
        assert!(check(&chain(false), &wide).unwrap_err().to_string().contains("operations 0 and 2"));
        // two receives into one place
        let twice = pair(
            |p| {
                p.send(1, one, &[]);
                p.send(1, one, &[]);
            },
            |p| {
                p.recv(0, one, &[]);
                p.recv(0, one, &[]);
            },
        );
        assert!(say(&twice).unwrap().contains("operations 0 and 1 of rank 1"));
    }
}
