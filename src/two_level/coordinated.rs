//! A collective through coordinators: up a tree inside each group, an algorithm between the coordinators, down the tree again.

use super::blocks::{BETWEEN, trees};
use super::same::Same;
use super::{IntraGroup, Named, allgather, allreduce, alltoall, barrier, gather, reduce, reduce_scatter, scatter};
use crate::collective::{Algorithm, Collective, Node, Parameters, Shape, Size, is_zero};
use crate::error::{Error, Result};
use crate::schedule::{Program, Schedule, Specification, WINDOW, pieces};
use crate::topology::{Rank, check_ranks};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The most lanes that any program through coordinators has.
pub const MOST_LANES: usize = BETWEEN as usize + MOST_AT_ONCE * MOST_BETWEEN;
/// Of what is done between coordinators.
const MOST_BETWEEN: usize = 2;
/// Segments that coordinators work on at the same time, at most, each with lanes and memory of its own: links that could have more under way are kept
/// busy by longer ones.
pub(super) const MOST_AT_ONCE: usize = 16;

/// How a collective goes through coordinators.
#[derive(Debug)]
pub struct Through {
    /// Which one.
    pub collective: &'static Collective,
    /// What it may take inside groups: trees to and from coordinators, and what is no tree where each rank exchanges with its counterparts in other groups
    /// instead ([`Coordinated::by_counterparts`]).
    pub inside: fn() -> Vec<&'static Algorithm>,
    /// What coordinators, or counterparts, may do, the textbook's first.
    pub between: fn() -> Vec<&'static Algorithm>,
    /// True if levels can overlap, segment by segment.
    pub segmented: bool,
    /// True if it can be done so, by whatever algorithms.
    pub fits: fn(&Coordinated, &Shape) -> bool,
    /// Bytes of the longest message that is cut into segments, by the groups.
    pub longest_message: fn(&[Vec<Rank>], &Shape) -> usize,
    /// What one rank does.
    pub(super) program: fn(&Part) -> Result<Program>,
}

/// Every collective that can, a line each.
static THROUGH: &[&Through] = &[
    &barrier::THROUGH,
    &allreduce::THROUGH,
    &reduce::THROUGH,
    &reduce_scatter::THROUGH,
    &allgather::THROUGH,
    &gather::THROUGH,
    &scatter::THROUGH,
    &alltoall::THROUGH,
];

/// How a collective goes through coordinators, if it can.
pub fn through(collective: &Collective) -> Option<&'static Through> {
    THROUGH.iter().copied().find(|t| t.collective == collective)
}

/// How a collective goes through coordinators.
///
/// # Errors
/// It does not.
pub fn through_coordinators(collective: &Collective) -> Result<&'static Through> {
    through(collective).ok_or_else(|| Error::invalid(format!("take {} through coordinators: it has no such form", collective.one())))
}

impl Through {
    /// Finds what it may take inside groups.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the names there are.
    pub fn inside(&self, name: &str) -> Result<&'static Algorithm> {
        find((self.inside)(), name, "is nothing that is done inside groups")
    }

    /// Finds what its coordinators may do.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the names there are.
    pub fn between(&self, name: &str) -> Result<&'static Algorithm> {
        find((self.between)(), name, "is nothing that coordinators do")
    }
}

fn find(all: Vec<&'static Algorithm>, name: &str, not: &str) -> Result<&'static Algorithm> {
    all.iter().copied().find(|a| a.name == name).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|a| a.name).collect();
        Error::invalid(format!("go through coordinators: \"{name}\" {not}; there are {}", names.join(", ")))
    })
}

/// The rank that comes first in the groups of a shape: the root, but where ranks must be combined in their order.
pub fn first_rank(shape: &Shape) -> Rank {
    if shape.elements.commute { shape.root } else { 0 }
}

/// A collective through coordinators.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "InFile")]
pub struct Coordinated {
    /// Which one.
    pub collective: &'static Collective,
    /// Ranks by group, in each group the coordinator first; where there is a root, it is the first of the first group, or, where an operation does not
    /// commute, the first rank is ([`first_rank`]).
    pub groups: Vec<Vec<Rank>>,
    /// The tree inside each group, or what is done there instead.
    pub inside: IntraGroup,
    /// What the coordinators do, on as many segments at once as its messages `in_flight`; 0: nothing is said.
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
        let (inside, between) = (inside.find(|name| through.inside(name))?, between.find(|name| through.between(name))?);
        Ok(Coordinated { collective, groups, inside, between, segment })
    }
}

/// One rank's part in a collective through coordinators.
pub(super) struct Part<'a> {
    pub shape: &'a Shape,
    pub groups: &'a [Vec<Rank>],
    /// Its group.
    pub group: usize,
    /// Its position there; the coordinator has the first.
    pub position: usize,
    /// Its place in the tree inside, as ranks.
    pub parent: Option<Rank>,
    pub children: Vec<Rank>,
    tree: fn(usize, usize, usize) -> Node,
    /// Of what is done inside.
    inside: Parameters,
    between: &'a IntraGroup,
    pub segment: usize,
    pub by_counterparts: bool,
}

impl Part<'_> {
    /// The ranks of its group.
    pub fn ranks(&self) -> &[Rank] {
        &self.groups[self.group]
    }

    /// The place of a position in the tree inside.
    pub fn node(&self, position: usize) -> Node {
        (self.tree)(position, self.ranks().len(), self.inside.radix)
    }

    /// A position and those below it in the tree inside, where they follow each other.
    pub fn below(&self, position: usize) -> Range<usize> {
        let mut last = position;
        while let Some(&child) = self.node(last).children.iter().max() {
            last = child;
        }
        position..last + 1
    }

    /// Lanes of what coordinators do.
    pub fn lanes(&self) -> usize {
        self.between.algorithm.lanes
    }

    /// Segments that coordinators work on at once.
    pub fn at_once(&self) -> usize {
        at_once(self.between)
    }

    /// Segments under way from one coordinator to another at once, at most.
    pub fn under_way(&self) -> usize {
        if self.between.parameters.in_flight == 0 { WINDOW } else { self.between.parameters.in_flight }
    }

    /// What this rank, a coordinator or a counterpart, does between groups: those that it exchanges with are known by these.
    pub fn between(&self, shape: &Shape) -> Result<Program> {
        between(self.between, self.group, shape)
    }
}

/// What one coordinator does between coordinators.
///
/// # Errors
/// The library's own, whose messages are not known.
fn between(between: &IntraGroup, me: usize, shape: &Shape) -> Result<Program> {
    let program = between.algorithm.program(me, shape, &between.parameters);
    program.ok_or_else(|| Error::invalid(format!("build the program of {}: its messages are not known", between.algorithm.name)))
}

/// Segments that coordinators work on at once.
fn at_once(between: &IntraGroup) -> usize {
    if between.parameters.in_flight == 0 { MOST_AT_ONCE } else { between.parameters.in_flight.min(MOST_AT_ONCE) }
}

fn in_no_group(me: Rank) -> Error {
    Error::invalid(format!("build the program of rank {me}: it is in no group"))
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
            return Err(Error::invalid(format!("{} does not go through coordinators in segments", self.collective.one())));
        }
        let own = self.ranks();
        // blocks and roots are those of ranks: all of those below some number take part
        check_ranks(&own, own.len().min(ranks))?;
        through.inside(self.inside.algorithm.name)?;
        through.between(self.between.algorithm.name).map(drop)
    }

    fn through(&self) -> Result<&'static Through> {
        through_coordinators(self.collective)
    }

    /// True if no coordinator stands between: each rank exchanges with its counterpart in each other group what it has for all ranks there, and the ranks of a
    /// group exchange inside what came.
    pub fn by_counterparts(&self) -> bool {
        self.inside.algorithm.tree.is_none()
    }

    /// Bytes of the longest message that its segments cut.
    ///
    /// # Errors
    /// The collective does not go through coordinators.
    pub fn longest_message(&self, shape: &Shape) -> Result<usize> {
        Ok((self.through()?.longest_message)(&self.groups, shape))
    }

    /// All ranks, group by group.
    pub fn ranks(&self) -> Vec<Rank> {
        self.groups.concat()
    }

    /// What it is asked to do for a size.
    pub fn shape(&self, bytes: usize) -> Shape {
        let root = if self.collective.rooted { self.groups[0][0] } else { 0 };
        self.collective.shape(self.groups.iter().map(Vec::len).sum(), root, bytes)
    }

    /// How many operations it takes for a size, about.
    pub fn message_count(&self, bytes: usize) -> Result<usize> {
        let ranks = self.groups.iter().map(Vec::len).sum::<usize>();
        let once = 2 * ranks + self.groups.len() * self.groups.len();
        let copies = match self.collective.size {
            // each rank may get, and each coordinator take apart, as many blocks as there are ranks, or the root alone does
            Size::Block if !self.collective.rooted => ranks * ranks,
            Size::Block => ranks,
            Size::Message | Size::Nothing => 0,
        };
        if self.by_counterparts() {
            return Ok(copies.saturating_mul(pieces(bytes, self.segment)));
        }
        let pieces = pieces(self.longest_message(&self.shape(bytes))?, self.segment);
        Ok(once.saturating_mul(pieces).saturating_add(copies))
    }

    /// How many lanes its programs have, at most.
    pub fn lanes(&self) -> usize {
        let between = self.between.algorithm.lanes;
        if self.by_counterparts() {
            return BETWEEN as usize + between + self.groups.len().min(MOST_AT_ONCE);
        }
        let at_once = if self.segment == 0 { 1 } else { at_once(&self.between) };
        at_once * between + BETWEEN as usize
    }

    /// What the coordinators do for one segment.
    ///
    /// # Errors
    /// The library's own, whose messages are not known.
    pub fn exchange(&self, shape: &Shape) -> Result<Schedule> {
        let among = Shape { ranks: self.groups.len(), root: 0, bytes: self.segment, in_place: true, ..*shape };
        Ok(Schedule { programs: (0..among.ranks).map(|me| between(&self.between, me, &among)).collect::<Result<_>>()? })
    }

    /// True if it does what a shape asks for.
    pub fn fits(&self, shape: &Shape) -> bool {
        let between = Shape { ranks: self.groups.len(), root: 0, ..*shape };
        let rooted = !self.collective.rooted || self.groups[0][0] == first_rank(shape);
        self.through().is_ok_and(|t| rooted && (t.fits)(self, shape) && (self.between.algorithm.fits)(&between))
    }

    /// True if what is combined keeps the order of ranks, where the operation wants it: ranks of a group follow each other, and so do the groups, and those
    /// below each rank of a tree.
    pub(super) fn keeps_order(&self, shape: &Shape) -> bool {
        shape.elements.commute || (self.ranks().into_iter().eq(0..shape.ranks) && trees().contains(&self.inside.algorithm))
    }

    /// What a rank sends and receives.
    ///
    /// # Errors
    /// A rank that is in no group, an algorithm that there is not, or that does not fit.
    pub fn program(&self, me: Rank, shape: &Shape) -> Result<Program> {
        let place = self.groups.iter().enumerate().find_map(|(k, group)| Some((k, group.iter().position(|&r| r == me)?)));
        self.program_at(place.ok_or_else(|| in_no_group(me))?, shape)
    }

    /// The programs of so many ranks, which are in its groups, as [`Coordinated::program`] builds each; a rank's place is not looked for in all groups, and what several
    /// ranks beside coordinators do alike is built once.
    ///
    /// # Errors
    /// As there.
    pub fn programs(&self, ranks: usize, shape: &Shape) -> impl Fn(Rank) -> Result<Program> {
        let (places, same) = (self.places(ranks), Same::new());
        // each rank has blocks of its own elsewhere, and operations that do not commute are in the order of ranks
        let same_at_places = !self.by_counterparts() && self.collective.size != Size::Block && shape.elements.commute;
        move |me| {
            let place = places[me].ok_or_else(|| in_no_group(me))?;
            let build = || self.program_at(place, shape);
            let (group, position) = place;
            if position == 0 || !same_at_places {
                return build();
            }
            let node = self.node(group, position);
            same.program(node.degree(), node.peers(&self.groups[group]), build)
        }
    }

    /// The tree inside groups; without one each rank stands for itself.
    fn tree(&self) -> fn(usize, usize, usize) -> Node {
        self.inside.algorithm.tree.unwrap_or(|_, _, _| Node { parent: None, children: Vec::new() })
    }

    /// A place in the tree inside a group.
    fn node(&self, group: usize, position: usize) -> Node {
        (self.tree())(position, self.groups[group].len(), self.inside.parameters.radix)
    }

    /// The group and the position there of each of so many ranks, of those that are in a group.
    fn places(&self, ranks: usize) -> Vec<Option<(usize, usize)>> {
        let mut places = vec![None; ranks];
        for (group, position) in self.groups.iter().enumerate().flat_map(|(k, group)| (0..group.len()).map(move |p| (k, p))) {
            if let Some(place) = places.get_mut(self.groups[group][position]) {
                *place = Some((group, position));
            }
        }
        places
    }

    /// What the rank at a position in a group sends and receives.
    ///
    /// # Errors
    /// As [`Coordinated::program`].
    pub fn program_at(&self, (group, position): (usize, usize), shape: &Shape) -> Result<Program> {
        let (through, ranks) = (self.through()?, &self.groups[group]);
        let Node { parent, children } = self.node(group, position);
        let program = (through.program)(&Part {
            shape,
            groups: &self.groups,
            group,
            position,
            tree: self.tree(),
            inside: self.inside.parameters,
            parent: parent.map(|p| ranks[p]),
            children: children.into_iter().map(|c| ranks[c]).collect(),
            between: &self.between,
            segment: self.segment,
            by_counterparts: self.by_counterparts(),
        })?;
        Ok(program.with_in_flight_to(|rank| ranks.contains(&rank), self.inside.parameters.in_flight))
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
