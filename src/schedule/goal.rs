//! A schedule as GOAL text (Hoefler, Siebert, Lumsdaine: "Group Operation Assembly Language", ICPP 2009), the input of
//! LogGOPSim, so that another tool can replay the same programs.

use super::{Action, Lane, OpId, Schedule, in_flight_unsaid};
use crate::topology::Rank;
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// Writes a schedule as GOAL text. Sends and delays of a lane start in order: each requires that the one before it was started.
/// Delays are `calc` in nanoseconds.
///
/// `local_s` is what a copy or a combining of so many bytes takes on a rank, in seconds: `calc` too.
///
/// Where a program says how many messages of a stream are under way, a send or receive requires the one so many places before it. LogGOPSim takes a
/// send for done when its message was received if the message is larger than its option `-S`, else when it has started: it holds back larger
/// ones only.
///
/// Messages have tags by which both ends find each other whatever else is under way between them: the k-th from a to b in a lane has the
/// same tag at both, and no other message from a to b has it.
///
/// ```
/// use collwise::schedule::{Program, Schedule, Span, goal};
/// let (mut a, mut b) = (Program::new(), Program::new());
/// a.send(1, Span::output(0, 8), &[]);
/// a.send(1, Span::output(8, 4), &[]);
/// b.recv(0, Span::output(0, 8), &[]);
/// b.recv(0, Span::output(8, 4), &[]);
/// let text = goal(&Schedule { programs: vec![a, b] }, |_, _| 0.0);
/// let sender = "rank 0 {\nl0: send 8b to 1 tag 0\nl1: send 4b to 1 tag 1\nl1 irequires l0\n}\n";
/// let receiver = "rank 1 {\nl0: recv 8b from 0 tag 0\nl1: recv 4b from 0 tag 1\n}\n";
/// assert_eq!(text, format!("num_ranks 2\n\n{sender}\n{receiver}"));
/// ```
pub fn goal(schedule: &Schedule, local_s: impl Fn(Rank, Action) -> f64) -> String {
    let lanes = schedule.programs.iter().flat_map(|p| (0..p.len()).map(|k| p.lane(k))).max().map_or(1, |last| u64::from(last) + 1);
    let mut text = format!("num_ranks {}\n", schedule.ranks());
    for (rank, program) in schedule.programs.iter().enumerate() {
        let _ = writeln!(text, "\nrank {rank} {{");
        // messages so far to and from each peer in each lane
        let (mut sent, mut received) = (FxHashMap::default(), FxHashMap::default());
        // a message's tag, and the one that must be complete before it
        let next = |streams: &mut FxHashMap<(Rank, Lane), Vec<usize>>, peer, k: usize| {
            let lane = program.lane(k);
            let stream = streams.entry((peer, lane)).or_default();
            let said = program.in_flight_said(k);
            let in_flight = if said > 0 { said } else { in_flight_unsaid(program.bytes(k)) };
            let place = stream.len();
            stream.push(k);
            let before = place.checked_sub(in_flight).map(|before| stream[before]);
            (place as u64 * lanes + u64::from(lane), before)
        };
        let mut last_issued = FxHashMap::default();
        for (k, action) in program.actions().enumerate() {
            let mut window = None;
            let _ = match action {
                Action::Send { to: peer, span } => {
                    let (tag, before) = next(&mut sent, peer, k);
                    window = before;
                    writeln!(text, "l{k}: send {}b to {peer} tag {tag}", span.len)
                }
                Action::Recv { from: peer, span } => {
                    let (tag, before) = next(&mut received, peer, k);
                    window = before;
                    writeln!(text, "l{k}: recv {}b from {peer} tag {tag}", span.len)
                }
                Action::Delay { seconds } => writeln!(text, "l{k}: calc {:.0}", seconds * 1e9),
                Action::Copy { .. } | Action::Combine { .. } => writeln!(text, "l{k}: calc {:.0}", local_s(rank, action) * 1e9),
            };
            let after = program.after(k);
            let window = window.map(|before| before as OpId).filter(|before| !after.contains(before));
            for d in after.iter().chain(&window) {
                let _ = writeln!(text, "l{k} requires l{d}");
            }
            if !matches!(action, Action::Recv { .. })
                && let Some(previous) = last_issued.insert(program.lane(k), k)
            {
                let _ = writeln!(text, "l{k} irequires l{previous}");
            }
        }
        text.push_str("}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::{Program, Span};
    use super::*;

    #[test]
    fn windows_are_dependencies_at_both_ends_and_copies_take_their_time() {
        let (mut a, mut b) = (Program::new(), Program::new());
        for k in 0..4 {
            a.send(1, Span::output(8 * k, 8), &[]);
            b.recv(0, Span::output(8 * k, 8), &[]);
        }
        let copied = b.copy(Span::output(0, 32), Span::scratch(0, 32), &[3]);
        let programs = vec![a.with_in_flight(2), b.with_in_flight(2)];
        let text = goal(&Schedule { programs }, |rank, action| match action {
            Action::Copy { into, .. } => (rank * into.len) as f64 * 1e-9,
            _ => unreachable!(),
        });
        for end in text.split("rank ").skip(2) {
            let windows: Vec<&str> = end.lines().filter(|l| l.contains(" requires ") && !l.starts_with("l4")).collect();
            assert_eq!(windows, ["l2 requires l0", "l3 requires l1"], "{text}");
        }
        assert!(text.contains(&format!("l{copied}: calc 32\n")), "{text}");
    }

    #[test]
    fn tags_of_a_pair_are_alike_at_both_ends_and_differ_in_each_direction() {
        // two lanes, which the receiver has in another order
        let bytes = [[10, 11], [20, 21]];
        let (mut a, mut b) = (Program::new(), Program::new());
        for (lane, k) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            a.in_lane(lane);
            a.send(1, Span::output(0, bytes[usize::from(lane)][k]), &[]);
        }
        for (lane, k) in [(1, 0), (1, 1), (0, 0), (0, 1)] {
            b.in_lane(lane);
            b.recv(0, Span::output(0, bytes[usize::from(lane)][k]), &[]);
        }
        b.send(0, Span::output(0, 30), &[]);
        a.in_lane(0);
        a.recv(1, Span::output(0, 30), &[]);
        let text = goal(&Schedule { programs: vec![a, b] }, |_, _| 0.0);
        let tags = |word: &str| {
            let mut found: Vec<(String, String)> = text
                .lines()
                .filter(|l| l.contains(word))
                .map(|l| l.split(' ').collect::<Vec<_>>())
                .map(|l| (l[2].to_string(), l[6].to_string()))
                .collect();
            found.sort();
            found
        };
        let (sent, received) = (tags(": send"), tags(": recv"));
        assert_eq!(sent, received, "{text}");
        let mut distinct: Vec<&String> = sent.iter().filter(|m| m.0 != "30b").map(|m| &m.1).collect();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 4, "{text}");
    }
}
