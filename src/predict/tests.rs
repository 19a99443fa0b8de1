//! What no schedule of the collectives does.

use super::*;
use crate::schedule::Span;

/// Rank 0's messages take for ever.
struct Lost;

impl CostModel for Lost {
    fn cost(&self, link: Link, _: usize) -> Cost {
        if link.from == 0 { Cost::NEVER } else { Cost::default() }
    }
}

/// Rank 0 sends to rank 1, which sends it on to rank 2; then ranks 2 and 3 exchange messages, in the order that is given.
fn schedule(receives_first: [bool; 2]) -> Schedule {
    let message = Span::output(0, 8);
    let mut programs = vec![Program::new(); 4];
    programs[0].send(1, message, &[]);
    let got = programs[1].recv(0, message, &[]);
    programs[1].send(2, message, &[got]);
    programs[2].recv(1, message, &[]);
    for (me, receives_first) in [2, 3].into_iter().zip(receives_first) {
        let (program, other) = (&mut programs[me], 5 - me);
        if receives_first {
            let got = program.recv(other, message, &[]);
            program.send(other, message, &[got]);
        } else {
            program.send(other, message, &[]);
            program.recv(other, message, &[]);
        }
    }
    Schedule { programs }
}

#[test]
fn who_waits_in_a_circle_waits_for_ever_also_where_a_message_takes_for_ever() {
    assert_eq!(completion(&schedule([false, true]), &Lost).unwrap(), f64::INFINITY);
    for model in [&Lost as &dyn CostModel, &Free] {
        let said = completion(&schedule([true, true]), model).unwrap_err().to_string();
        assert!(said.contains("rank 2 waits for ever"), "{said}");
    }
}
