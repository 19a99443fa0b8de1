//! A schedule as GOAL text (Hoefler, Siebert, Lumsdaine: "Group Operation Assembly Language", ICPP 2009), the input of
//! LogGOPSim, so that another tool can replay the same programs.

use super::{Action, Schedule};
use std::fmt::Write;

/// Writes a schedule as GOAL text. Sends and delays of a lane are chained, since they start in order; the
/// lane is the tag. Delays are `calc`
/// in nanoseconds.
///
/// ```
/// use collwise::schedule::{Program, Schedule, Span, goal};
/// let (mut a, mut b) = (Program::new(), Program::new());
/// a.send(1, Span::data(0, 8), &[]);
/// b.recv(0, Span::data(0, 8), &[]);
/// let text = goal(&Schedule { programs: vec![a, b] });
/// assert_eq!(text, "num_ranks 2\n\nrank 0 {\nl0: send 8b to 1 tag 0\n}\n\nrank 1 {\nl0: recv 8b from 0 tag 0\n}\n");
/// ```
pub fn goal(schedule: &Schedule) -> String {
    let mut text = format!("num_ranks {}\n", schedule.ranks());
    for (rank, program) in schedule.programs.iter().enumerate() {
        let _ = writeln!(text, "\nrank {rank} {{");
        let mut last_issued = std::collections::BTreeMap::new();
        for (k, action) in program.actions().enumerate() {
            let lane = program.lane(k);
            let _ = match action {
                Action::Send { to, span } => writeln!(text, "l{k}: send {}b to {to} tag {lane}", span.len),
                Action::Recv { from, span } => writeln!(text, "l{k}: recv {}b from {from} tag {lane}", span.len),
                Action::Delay { seconds } => writeln!(text, "l{k}: calc {:.0}", seconds * 1e9),
            };
            for d in program.after(k) {
                let _ = writeln!(text, "l{k} requires l{d}");
            }
            if !matches!(action, Action::Recv { .. })
                && let Some(previous) = last_issued.insert(lane, k)
            {
                let _ = writeln!(text, "l{k} requires l{previous}");
            }
        }
        text.push_str("}\n");
    }
    text
}
