//! The rules of execution that `collwise::schedule` states, held against traces.

use collwise::schedule::{Action, Schedule, Trace, matching};
use std::collections::HashMap;

/// Who carried a schedule out, as far as the rules differ.
pub struct Carried<'a> {
    /// When each operation started and was complete. A receive starts when it is posted, or later where `posts` is not set.
    pub traces: &'a [Trace],
    /// True if receives start when they are posted, at once.
    pub posts: bool,
    /// Messages of a stream under way where a program says nothing.
    pub unsaid: usize,
    /// Messages of more bytes are sent with a handshake.
    pub eager: usize,
}

/// The first rule that was broken.
pub fn broken(schedule: &Schedule, carried: &Carried) -> Option<String> {
    (0..schedule.ranks())
        .find_map(|me| starts(schedule, me, carried).or_else(|| over_when_started(schedule, me, carried)))
        .or_else(|| messages(schedule, carried))
}

/// Nothing starts before what it comes after is complete, out of its turn, or while as many of its stream are under way as may be.
fn starts(schedule: &Schedule, me: usize, carried: &Carried) -> Option<String> {
    let (program, Trace { start, end }) = (&schedule.programs[me], &carried.traces[me]);
    let (mut streams, mut lanes) = (HashMap::<_, Vec<usize>>::new(), HashMap::new());
    // the earliest time that the rules allow
    let mut may = vec![0.0; program.len()];
    for (k, action) in program.actions().enumerate() {
        let complete = program.after(k).iter().map(|&d| end[d as usize]);
        may[k] = complete.fold(0.0, f64::max);
        let (peer, receives) = match action {
            Action::Send { to, .. } => (Some(to), false),
            Action::Recv { from, .. } => (Some(from), true),
            _ => (None, false),
        };
        if let Some(peer) = peer {
            let stream = streams.entry((peer, program.lane(k), receives)).or_default();
            let said = program.in_flight_at(k);
            if let Some(full) = stream.len().checked_sub(if said == 0 { carried.unsaid } else { said }) {
                may[k] = may[k].max(end[stream[full]]);
            }
            // receives are posted in order
            if let Some(&before) = stream.last().filter(|_| receives) {
                may[k] = may[k].max(may[before]);
            }
            stream.push(k);
        }
        if !receives && let Some(before) = lanes.insert(program.lane(k), k) {
            may[k] = may[k].max(start[before]);
        }
        let at_once = receives && carried.posts && start[k] != may[k];
        if start[k] < may[k] || at_once || end[k] < start[k] {
            return Some(format!("rank {me}: operation {k} is from {} to {}, and may start at {}", start[k], end[k], may[k]));
        }
    }
    None
}

/// A copy, a combining or a delay is over before anything else of its rank starts, but receives.
fn over_when_started(schedule: &Schedule, me: usize, carried: &Carried) -> Option<String> {
    let (program, Trace { start, end }) = (&schedule.programs[me], &carried.traces[me]);
    let sends = |k: &usize| matches!(program.action(*k), Action::Send { .. });
    let mut own: Vec<usize> = (0..program.len()).filter(|&k| !matches!(program.action(k), Action::Recv { .. })).collect();
    own.sort_by(|&a, &b| (start[a], end[a]).partial_cmp(&(start[b], end[b])).unwrap());
    let early = own.windows(2).find(|two| !sends(&two[0]) && start[two[1]] < end[two[0]])?;
    Some(format!("rank {me}: operation {} starts during {}", early[1], early[0]))
}

/// A message is received after it was sent; one with a handshake is sent when its receive was posted.
fn messages(schedule: &Schedule, carried: &Carried) -> Option<String> {
    let pairs = matching(schedule).unwrap();
    for (me, program) in schedule.programs.iter().enumerate() {
        for (k, action) in program.actions().enumerate() {
            let (Action::Send { span, .. }, Some((to, receive))) = (action, pairs.partner(me, k)) else { continue };
            let (mine, theirs) = (&carried.traces[me], &carried.traces[to]);
            if theirs.end[receive] < mine.start[k] || (span.len > carried.eager && mine.end[k] < theirs.start[receive]) {
                return Some(format!("operation {k} of rank {me} and {receive} of rank {to}, which are a message, do not meet"));
            }
        }
    }
    None
}
