//! A collective through coordinators: up a tree inside each group, an algorithm between the coordinators, down the tree again.

use super::IntraGroup;
use crate::collective::{Algorithm, Collective, Shape};
use crate::error::{Error, Result};
use crate::schedule::{Action, OpId, Program, Schedule, Span, Specification};
use crate::topology::{Rank, check_ranks};
use serde::{Deserialize, Serialize};

/// A collective without a message, through coordinators.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Coordinated {
    /// Which one.
    pub collective: &'static Collective,
    /// Ranks by group, in each group the coordinator first.
    pub groups: Vec<Vec<Rank>>,
    /// The tree inside each group.
    pub inside: IntraGroup,
    /// What the coordinators do.
    pub between: IntraGroup,
}

impl Coordinated {
    /// Checks one that was read, over so many ranks: everything else here trusts it.
    ///
    /// # Errors
    /// [`Error::Invalid`] with what is wrong.
    pub fn validate(&self, ranks: usize) -> Result<()> {
        if self.collective.sized() {
            return Err(Error::invalid(format!(
                "a {} has a message: it does not go through coordinators in one piece",
                self.collective.name
            )));
        }
        if self.groups.is_empty() || self.groups.iter().any(Vec::is_empty) {
            return Err(Error::invalid("a collective over groups needs groups, and each group ranks"));
        }
        check_ranks(&self.ranks(), ranks)?;
        self.inside_algorithm()?;
        self.between_algorithm().map(drop)
    }

    /// All ranks, group by group.
    pub fn ranks(&self) -> Vec<Rank> {
        self.groups.concat()
    }

    /// How many messages it sends, about.
    pub fn message_count(&self) -> usize {
        2 * self.ranks().len() + self.groups.len() * self.groups.len()
    }

    fn inside_algorithm(&self) -> Result<&'static Algorithm> {
        let algorithm = self.collective.algorithm(&self.inside.algorithm)?;
        match algorithm.tree {
            Some(_) => Ok(algorithm),
            None => Err(Error::invalid(format!("go through coordinators: \"{}\" is no tree", algorithm.name))),
        }
    }

    fn between_algorithm(&self) -> Result<&'static Algorithm> {
        let algorithm = self.collective.algorithm(&self.between.algorithm)?;
        if algorithm.is_native() {
            return Err(Error::invalid("go through coordinators: the library's own cannot be a part of a program"));
        }
        Ok(algorithm)
    }

    /// What a rank sends and receives; nothing for a rank that is in no group.
    ///
    /// # Errors
    /// An algorithm that there is not, or that does not fit.
    pub fn program(&self, me: Rank) -> Result<Program> {
        let (inside, between) = (self.inside_algorithm()?, self.between_algorithm()?);
        let (mut program, token) = (Program::new(), Span::control(0));
        let place = self.groups.iter().enumerate().find_map(|(k, group)| Some((k, group, group.iter().position(|&r| r == me)?)));
        let (Some((k, group, position)), Some(tree), Some(build)) = (place, inside.tree, between.builder) else { return Ok(program) };
        let node = tree(position, group.len(), self.inside.parameters.radix);
        let mut heard: Vec<OpId> = node.children.iter().map(|&c| program.recv(group[c], token, &[])).collect();
        if let Some(parent) = node.parent {
            program.send(group[parent], token, &heard);
            heard = vec![program.recv(group[parent], token, &[])];
        } else {
            let shape = Shape::new(self.groups.len(), 0, 0);
            let first = program.len();
            program.append(&build(k, &shape, &self.between.parameters), |g| self.groups[g][0], &heard);
            let receives = (first..program.len()).filter(|&op| matches!(program.action(op), Action::Recv { .. }));
            heard.extend(receives.map(|op| op as OpId));
        }
        for &child in &node.children {
            program.send(group[child], token, &heard);
        }
        Ok(program)
    }

    /// What its schedule is for, if all ranks take part.
    pub fn specification(&self) -> Specification {
        (self.collective.specification)(&Shape::new(self.ranks().len(), 0, 0))
    }

    /// The programs of ranks 0 to `ranks - 1`.
    ///
    /// # Errors
    /// As [`Coordinated::program`].
    pub fn schedule(&self, ranks: usize) -> Result<Schedule> {
        Ok(Schedule { programs: (0..ranks).map(|me| self.program(me)).collect::<Result<_>>()? })
    }
}
