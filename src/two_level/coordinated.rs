//! A collective through coordinators: up a tree inside each group, an algorithm between the coordinators, down the tree again.

use super::{IntraGroup, Named, allreduce, barrier};
use crate::collective::{Algorithm, Collective, Node, Parameters, Shape, is_zero};
use crate::error::{Error, Result};
use crate::schedule::{Program, Schedule, Specification, pieces};
use crate::topology::{Rank, check_ranks};
use serde::{Deserialize, Serialize};

/// The most lanes that any program through coordinators has.
pub const MOST_LANES: usize = allreduce::BETWEEN as usize + allreduce::AT_ONCE * MOST_BETWEEN;
/// Of what is done between coordinators.
const MOST_BETWEEN: usize = 2;

/// How a collective goes through coordinators.
#[derive(Debug)]
pub struct Through {
    /// Which one.
    pub collective: &'static Collective,
    /// The trees that it may take inside groups.
    pub trees: fn() -> Vec<&'static Algorithm>,
    /// True if levels can overlap, segment by segment.
    pub segmented: bool,
    /// True if it can be done so, whatever ranks the groups have.
    pub fits: fn(&Shape) -> bool,
    /// What one rank does.
    pub(super) program: fn(&Part) -> Result<Program>,
}

/// Every collective that can, a line each.
static THROUGH: [&Through; 2] = [&barrier::THROUGH, &allreduce::THROUGH];

/// How a collective goes through coordinators, if it can.
pub fn through(collective: &Collective) -> Option<&'static Through> {
    THROUGH.into_iter().find(|t| t.collective == collective)
}

/// How a collective goes through coordinators.
///
/// # Errors
/// It does not.
fn through_coordinators(collective: &Collective) -> Result<&'static Through> {
    through(collective).ok_or_else(|| Error::invalid(format!("a {} does not go through coordinators", collective.name)))
}

impl Through {
    /// Finds one of its trees.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the names there are.
    pub fn tree(&self, name: &str) -> Result<&'static Algorithm> {
        let trees = (self.trees)();
        trees.iter().copied().find(|t| t.name == name).ok_or_else(|| {
            let names: Vec<_> = trees.iter().map(|t| t.name).collect();
            Error::invalid(format!("go through coordinators: \"{name}\" is no tree; there are {}", names.join(", ")))
        })
    }

    /// Finds what its coordinators may do.
    ///
    /// # Errors
    /// An algorithm that there is not, or the library's own.
    pub fn between(&self, name: &str) -> Result<&'static Algorithm> {
        let algorithm = self.collective.algorithm(name)?;
        if algorithm.is_native() {
            return Err(Error::invalid("go through coordinators: the library's own cannot be a part of a program"));
        }
        Ok(algorithm)
    }
}

/// A collective through coordinators.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "InFile")]
pub struct Coordinated {
    /// Which one.
    pub collective: &'static Collective,
    /// Ranks by group, in each group the coordinator first; where there is a root, it is the first of the first group.
    pub groups: Vec<Vec<Rank>>,
    /// The tree inside each group.
    pub inside: IntraGroup,
    /// What the coordinators do.
    pub between: IntraGroup,
    /// Bytes of the segments that pass through all levels; 0: the whole at once.
    #[serde(skip_serializing_if = "is_zero")]
    pub segment: usize,
}

/// As files have it.
#[derive(Deserialize)]
struct InFile {
    collective: &'static Collective,
    groups: Vec<Vec<Rank>>,
    inside: Named,
    between: Named,
    #[serde(default)]
    segment: usize,
}

impl TryFrom<InFile> for Coordinated {
    type Error = Error;

    fn try_from(file: InFile) -> Result<Coordinated> {
        let InFile { collective, groups, inside, between, segment } = file;
        let through = through_coordinators(collective)?;
        let (inside, between) = (inside.find(|name| through.tree(name))?, between.find(|name| through.between(name))?);
        Ok(Coordinated { collective, groups, inside, between, segment })
    }
}

/// One rank's part in a collective through coordinators.
pub(super) struct Part<'a> {
    pub shape: &'a Shape,
    pub groups: &'a [Vec<Rank>],
    /// Its group.
    pub group: usize,
    /// Its place in the tree inside, as ranks.
    pub parent: Option<Rank>,
    pub children: Vec<Rank>,
    between: &'static Algorithm,
    parameters: Parameters,
    pub segment: usize,
}

impl Part<'_> {
    /// Lanes of what coordinators do.
    pub fn lanes(&self) -> usize {
        self.between.lanes
    }

    /// What this rank, a coordinator, does between coordinators, who are known by their groups.
    pub fn between(&self, shape: &Shape) -> Result<Program> {
        let program = self.between.program(self.group, shape, &self.parameters);
        program.ok_or_else(|| Error::invalid(format!("build the program of {}: its messages are not known", self.between.name)))
    }
}

impl Coordinated {
    /// Checks one that was read, over so many ranks: everything else here trusts it.
    ///
    /// # Errors
    /// [`Error::Invalid`] with what is wrong.
    pub fn validate(&self, ranks: usize) -> Result<()> {
        let through = self.through()?;
        if self.groups.is_empty() || self.groups.iter().any(Vec::is_empty) {
            return Err(Error::invalid("a collective over groups needs groups, and each group ranks"));
        }
        if self.segment > 0 && !through.segmented {
            return Err(Error::invalid(format!("a {} does not go through coordinators in segments", self.collective.name)));
        }
        check_ranks(&self.ranks(), ranks)?;
        through.tree(self.inside.algorithm.name)?;
        through.between(self.between.algorithm.name).map(drop)
    }

    fn through(&self) -> Result<&'static Through> {
        through_coordinators(self.collective)
    }

    /// All ranks, group by group.
    pub fn ranks(&self) -> Vec<Rank> {
        self.groups.concat()
    }

    /// How many messages it sends for a size, about.
    pub fn message_count(&self, bytes: usize) -> usize {
        let once = 2 * self.ranks().len() + self.groups.len() * self.groups.len();
        once.saturating_mul(pieces(bytes, self.segment))
    }

    /// How many lanes its programs have, at most.
    pub fn lanes(&self) -> usize {
        let between = self.between.algorithm.lanes;
        if self.segment == 0 { between + allreduce::BETWEEN as usize } else { allreduce::AT_ONCE * between + allreduce::BETWEEN as usize }
    }

    /// True if it does what a shape asks for.
    pub fn fits(&self, shape: &Shape) -> bool {
        let between = Shape { ranks: self.groups.len(), ..*shape };
        self.through().is_ok_and(|t| (t.fits)(shape)) && (self.between.algorithm.fits)(&between)
    }

    /// What a rank sends and receives; nothing for a rank that is in no group.
    ///
    /// # Errors
    /// An algorithm that there is not, or that does not fit.
    pub fn program(&self, me: Rank, shape: &Shape) -> Result<Program> {
        let through = self.through()?;
        let place = self.groups.iter().enumerate().find_map(|(k, group)| Some((k, group, group.iter().position(|&r| r == me)?)));
        let (Some((group, ranks, position)), Some(tree)) = (place, self.inside.algorithm.tree) else { return Ok(Program::new()) };
        let Node { parent, children } = tree(position, ranks.len(), self.inside.parameters.radix);
        (through.program)(&Part {
            shape,
            groups: &self.groups,
            group,
            parent: parent.map(|p| ranks[p]),
            children: children.into_iter().map(|c| ranks[c]).collect(),
            between: self.between.algorithm,
            parameters: self.between.parameters,
            segment: self.segment,
        })
    }

    /// What its schedule is for, if all ranks take part.
    pub fn specification(&self, shape: &Shape) -> Specification {
        (self.collective.specification)(shape)
    }

    /// The programs of ranks 0 to `shape.ranks - 1`.
    ///
    /// # Errors
    /// As [`Coordinated::program`].
    pub fn schedule(&self, shape: &Shape) -> Result<Schedule> {
        Ok(Schedule { programs: (0..shape.ranks).map(|me| self.program(me, shape)).collect::<Result<_>>()? })
    }
}
