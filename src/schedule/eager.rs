//! Schedules whose receives wait for nothing, as where each message has room of its own.

use super::{Action, OpId, Program, Schedule};

impl Schedule {
    /// The same messages, each taken in when it comes: receives wait for nothing but those before them in their streams, and what came after one comes
    /// after what that waited for too. MPI libraries take small messages in so, and LogGOPSim all.
    ///
    /// ```
    /// use collwise::schedule::{Program, Schedule, Span};
    /// let mut program = Program::new();
    /// let sent = program.send(1, Span::output(0, 8), &[]);
    /// let received = program.recv(1, Span::output(0, 8), &[sent]);
    /// program.send(2, Span::output(0, 8), &[received]);
    /// let eager = Schedule { programs: vec![program] }.eager();
    /// assert!(eager.programs[0].after(1).is_empty());
    /// assert_eq!(eager.programs[0].after(2), [sent, received]);
    /// ```
    pub fn eager(&self) -> Schedule {
        Schedule { programs: self.programs.iter().map(eager).collect() }
    }
}

fn eager(program: &Program) -> Program {
    let mut eager = Program::with_room(program.len());
    // what is complete when a receive would have been: it, and what it waited for
    let mut complete: Vec<Vec<OpId>> = vec![Vec::new(); program.len()];
    for (k, action) in program.actions().enumerate() {
        let receives = |op: OpId| matches!(program.action(op as usize), Action::Recv { .. });
        let mut after: Vec<OpId> = Vec::new();
        for &before in program.after(k) {
            if receives(before) { after.extend(&complete[before as usize]) } else { after.push(before) }
        }
        after.sort_unstable();
        after.dedup();
        // what another one of them comes after is complete with that
        let implied: Vec<OpId> = after.iter().flat_map(|&op| eager.after(op as usize)).copied().collect();
        after.retain(|op| !implied.contains(op));
        eager.in_lane(program.lane(k));
        eager.in_flight(program.in_flight_said(k));
        if receives(k as OpId) {
            eager.push(action, &[]);
            after.push(k as OpId);
            complete[k] = after;
        } else {
            eager.push(action, &after);
        }
    }
    eager
}

#[cfg(test)]
mod tests {
    use super::super::Span;
    use super::*;

    #[test]
    fn what_receives_waited_for_is_waited_for_after_them() {
        let place = Span::scratch(0, 8);
        let mut program = Program::new();
        program.in_flight(2);
        let first = program.recv(1, place, &[]);
        let combined = program.combine(place, Span::output(0, 8), &[first]);
        let second = program.recv(2, place, &[first, combined]);
        let third = program.recv(3, place, &[second]);
        program.in_lane(1);
        let last = program.send(1, place, &[third]);
        let eager = eager(&program);
        assert!((0..program.len()).all(|k| (eager.action(k), eager.lane(k)) == (program.action(k), program.lane(k))));
        assert!([first, second, third].iter().all(|&op| eager.after(op as usize).is_empty()));
        assert_eq!(eager.in_flight_said(third as usize), 2);
        // the first one is complete where the combining is
        assert_eq!(eager.after(last as usize), [combined, second, third]);
    }
}
