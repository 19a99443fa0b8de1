//! A schedule as text: the tree, and a Gantt chart.

use super::{Problem, Timeline};
use crate::units;
use std::fmt::Write;

/// Columns of the chart.
const WIDTH: usize = 64;

/// The tree with its times, and a chart: `s` the port sends, `.` the message is under way, `L` the local broadcast.
pub fn gantt(problem: &Problem, timeline: &Timeline, names: &[String]) -> String {
    let mut text = String::new();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let _ = writeln!(text, "{}", names[problem.root]);
    branch(&mut text, timeline, names, problem.root, "");
    let scale = WIDTH as f64 / timeline.completion.max(f64::MIN_POSITIVE);
    let column = |t: f64| ((t * scale) as usize).min(WIDTH - 1);
    let _ = writeln!(text, "\n{:width$}  0{:>w$}", "", units::seconds(timeline.completion), w = WIDTH - 1);
    for (i, name) in names.iter().enumerate() {
        let mut row = vec![b' '; WIDTH];
        let mut paint = |from: f64, to: f64, mark: u8| row[column(from)..=column(to)].fill(mark);
        if let Some(s) = timeline.sends.iter().find(|s| s.to == i) {
            paint(s.start_s + problem.gap(s.from, s.to), s.arrive_s, b'.');
        }
        paint(timeline.local_start[i], timeline.local_start[i] + problem.local[i], b'L');
        for s in timeline.sends.iter().filter(|s| s.from == i) {
            paint(s.start_s, s.start_s + problem.gap(s.from, s.to), b's');
        }
        let _ = writeln!(text, "{name:width$} |{}|", String::from_utf8_lossy(&row));
    }
    let _ = writeln!(text, "{:width$}  s: port sends   .: under way   L: local broadcast", "");
    text
}

fn branch(text: &mut String, timeline: &Timeline, names: &[String], node: usize, indent: &str) {
    let children: Vec<_> = timeline.sends.iter().filter(|s| s.from == node).collect();
    for (k, s) in children.iter().enumerate() {
        let (mark, below) = if k + 1 == children.len() { ("`-- ", "    ") } else { ("|-- ", "|   ") };
        let _ = writeln!(text, "{indent}{mark}{}  {} -> {}", names[s.to], units::seconds(s.start_s), units::seconds(s.arrive_s));
        branch(text, timeline, names, s.to, &format!("{indent}{below}"));
    }
}
