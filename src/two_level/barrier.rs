//! The barrier through coordinators: signals come up each group's tree, coordinators signal each other, and signals go down again.

use super::coordinated::{Part, Through};
use crate::collective::{Algorithm, Shape, barrier, down};
use crate::error::Result;
use crate::schedule::{Action, OpId, Program, Span};

pub(super) static THROUGH: Through = Through {
    collective: &barrier::COLLECTIVE,
    inside: || barrier::ALGORITHMS.iter().copied().filter(|a: &&Algorithm| a.tree.is_some()).collect(),
    between: || barrier::COLLECTIVE.built().collect(),
    segmented: false,
    fits: |_, _| true,
    longest_message: |_, _| 0,
    program,
};

fn program(part: &Part) -> Result<Program> {
    let (mut program, token) = (Program::new(), Span::control(0));
    let mut received: Vec<OpId> = part.children.iter().map(|&c| program.recv(c, token, &[])).collect();
    if let Some(parent) = part.parent {
        program.send(parent, token, &received);
        received = vec![program.recv(parent, token, &[])];
    } else {
        let first = program.len();
        program.append(&part.between(&Shape::new(part.groups.len(), 0, 0))?, |g| part.groups[g][0], &received);
        let receives = (first..program.len()).filter(|&op| matches!(program.action(op), Action::Recv { .. }));
        received.extend(receives.map(|op| op as OpId));
    }
    down(&mut program, &part.children, token, &received);
    Ok(program)
}
