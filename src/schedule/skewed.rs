//! Schedules whose ranks begin one after the other.

use super::{Action, Program, Schedule};

impl Schedule {
    /// The same, where each rank begins so many seconds after the one before it, or, where they are negative, before it: to see what hangs on who arrives
    /// when (Faraj, Patarasuk, Yuan 2008), or on which of two messages is first. Receives are posted at once.
    ///
    /// ```
    /// use collwise::schedule::{Action, Program, Schedule, Span};
    /// let mut program = Program::new();
    /// program.send(1, Span::output(0, 8), &[]);
    /// let late = Schedule { programs: vec![Program::new(), program] }.skewed(1e-6);
    /// assert_eq!(late.programs[1].action(0), Action::Delay { seconds: 1e-6 });
    /// assert_eq!(late.programs[1].after(1), [0]);
    /// ```
    pub fn skewed(&self, step_s: f64) -> Schedule {
        let last = self.ranks().saturating_sub(1);
        let begins = |rank: usize| step_s.abs() * if step_s < 0.0 { last - rank } else { rank } as f64;
        Schedule { programs: self.programs.iter().enumerate().map(|(rank, program)| late(program, begins(rank))).collect() }
    }
}

fn late(program: &Program, seconds: f64) -> Program {
    let mut late = Program::with_room(program.len() + 1);
    let begin = late.push(Action::Delay { seconds }, &[]);
    for (k, action) in program.actions().enumerate() {
        let mut after: Vec<_> = program.after(k).iter().map(|op| op + 1).collect();
        if after.is_empty() && !matches!(action, Action::Recv { .. }) {
            after.push(begin);
        }
        late.in_lane(program.lane(k));
        late.in_flight(program.in_flight_said(k));
        late.push(action, &after);
    }
    late
}
