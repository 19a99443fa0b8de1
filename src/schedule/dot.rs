//! A schedule as a picture: text in the language of Graphviz.

use super::{Action, Schedule, Trace};
use crate::topology::Rank;
use crate::units;
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// Writes a schedule in Graphviz's language: a node for each rank with its label, those of a group in a box with the group's name, and an edge from each rank to each
/// that it sends to, with its bytes, bold where it goes to another group.
///
/// Edges are in the order of their first messages, by when each was sent in `traces`.
///
/// ```
/// use collwise::schedule::{Program, Schedule, Span, Trace, dot};
/// let (mut a, mut b) = (Program::new(), Program::new());
/// a.send(1, Span::output(0, 1024), &[]);
/// b.recv(0, Span::output(0, 1024), &[]);
/// let text = dot(&Schedule { programs: vec![a, b] }, &[Trace::new(1), Trace::new(1)], |rank| format!("rank {rank}"), &[]);
/// assert_eq!(text, "digraph {\n  r0 [label=\"rank 0\"];\n  r1 [label=\"rank 1\"];\n  r0 -> r1 [label=\"1KiB\"];\n}\n");
/// ```
pub fn dot(schedule: &Schedule, traces: &[Trace], label: impl Fn(Rank) -> String, groups: &[(String, Vec<Rank>)]) -> String {
    let mut text = String::from("digraph {\n");
    let mut homes = vec![None; schedule.ranks()];
    let node = |rank: Rank| format!("r{rank} [label={}];\n", quoted(&label(rank)));
    for (k, (name, ranks)) in groups.iter().enumerate() {
        let _ = writeln!(text, "  subgraph cluster_{k} {{\n    label={};", quoted(name));
        for &rank in ranks {
            homes[rank] = Some(k);
            text += &format!("    {}", node(rank));
        }
        text += "  }\n";
    }
    for rank in (0..schedule.ranks()).filter(|&rank| homes[rank].is_none()) {
        text += &format!("  {}", node(rank));
    }
    for ((from, to), Sent { bytes, messages, .. }) in edges(schedule, traces) {
        let many = if messages > 1 { format!(" in {messages}") } else { String::new() };
        let bold = if homes[from] == homes[to] { "" } else { ", style=bold" };
        let _ = writeln!(text, "  r{from} -> r{to} [label=\"{}{many}\"{bold}];", units::bytes(bytes));
    }
    text + "}\n"
}

/// What one rank sends another one.
struct Sent {
    first_s: f64,
    bytes: usize,
    messages: usize,
}

/// Who sends to whom, in the order of first messages; of those at once in the order of ranks.
fn edges(schedule: &Schedule, traces: &[Trace]) -> Vec<((Rank, Rank), Sent)> {
    let mut sent: FxHashMap<(Rank, Rank), Sent> = FxHashMap::default();
    for (from, program) in schedule.programs.iter().enumerate() {
        for (k, action) in program.actions().enumerate() {
            let Action::Send { to, span } = action else { continue };
            let edge = sent.entry((from, to)).or_insert(Sent { first_s: f64::INFINITY, bytes: 0, messages: 0 });
            edge.first_s = edge.first_s.min(traces[from].start[k]);
            edge.bytes = edge.bytes.saturating_add(span.len);
            edge.messages += 1;
        }
    }
    let mut edges: Vec<((Rank, Rank), Sent)> = sent.into_iter().collect();
    edges.sort_by(|(a, first), (b, second)| first.first_s.total_cmp(&second.first_s).then(a.cmp(b)));
    edges
}

/// A text in quotes, whatever is in it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::super::{Program, Span};
    use super::*;

    #[test]
    fn names_are_escaped_and_edges_come_by_time() {
        let mut programs = vec![Program::new(), Program::new(), Program::new()];
        for (from, to, bytes) in [(0, 2, 8), (0, 1, 0), (0, 2, 8), (1, 2, 1000)] {
            programs[from].send(to, Span::output(0, bytes), &[]);
            programs[to].recv(from, Span::output(0, bytes), &[]);
        }
        let trace = |start: &[f64]| Trace { start: start.to_vec(), end: start.to_vec() };
        let traces = [trace(&[2.0, 1.0, 3.0]), trace(&[1.0, 2.0]), trace(&[0.0; 3])];
        let groups = [("a\"b\\".to_string(), vec![0, 1]), ("c\nd".into(), vec![2])];
        let text = dot(&Schedule { programs }, &traces, |rank| format!("{rank}\nhost \"{rank}\""), &groups);
        for line in ["    label=\"a\\\"b\\\\\";", "    label=\"c\\nd\";", "    r1 [label=\"1\\nhost \\\"1\\\"\"];"] {
            assert!(text.lines().any(|l| l == line), "{line} is not in {text}");
        }
        let edges: Vec<&str> = text.lines().filter(|l| l.contains("->")).collect();
        let wanted =
            ["  r0 -> r1 [label=\"0B\"];", "  r0 -> r2 [label=\"16B in 2\", style=bold];", "  r1 -> r2 [label=\"1000B\", style=bold];"];
        assert_eq!(edges, wanted);
    }
}
