//! Schedules that are done several times, one after the other.

use super::{Action, OpId, Program, Schedule};

impl Schedule {
    /// The same so many times: a rank begins anew when all that it does is complete, whatever others still do.
    ///
    /// ```
    /// use collwise::schedule::{Program, Schedule, Span};
    /// let mut sender = Program::new();
    /// sender.send(1, Span::output(0, 8), &[]);
    /// let mut receiver = Program::new();
    /// receiver.recv(0, Span::output(0, 8), &[]);
    /// assert_eq!(Schedule { programs: vec![sender, receiver] }.repeated(3).messages(), 3);
    /// ```
    pub fn repeated(&self, times: usize) -> Schedule {
        Schedule { programs: self.programs.iter().map(|program| repeated(program, times)).collect() }
    }
}

fn repeated(program: &Program, times: usize) -> Program {
    let mut is_last = vec![true; program.len()];
    (0..program.len()).flat_map(|op| program.after(op)).for_each(|before| is_last[*before as usize] = false);
    let last: Vec<OpId> = (0..program.len() as OpId).filter(|op| is_last[*op as usize]).collect();
    let (mut all, mut after) = (Program::with_room(times * (program.len() + 1)), Vec::new());
    for _ in 0..times {
        let begin = all.len() as OpId;
        all.append(program, |rank| rank, &after);
        all.in_lane(0);
        let done: Vec<OpId> = last.iter().map(|op| begin + op).collect();
        after = vec![all.push(Action::Delay { seconds: 0.0 }, &done)];
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::{Span, completes};
    use super::*;

    #[test]
    fn each_time_waits_for_all_of_the_one_before() {
        let place = Span::output(0, 8);
        let mut program = Program::new();
        let sent = program.send(1, place, &[]);
        program.recv(1, place, &[sent]);
        program.send(2, place, &[]);
        let twice = repeated(&program, 2);
        assert_eq!(twice.after(3), [1, 2]);
        assert_eq!((twice.after(4), twice.after(5), twice.after(6)), (&[3][..], &[4, 3][..], &[][..]));
        let ring = Schedule::build(3, |rank| {
            let mut program = Program::new();
            program.send((rank + 1) % 3, Span::input(0, 8), &[]);
            program.recv((rank + 2) % 3, place, &[]);
            program
        });
        completes(&ring.repeated(4)).unwrap();
    }
}
