//! The forms of collectives: one algorithm over all ranks, through the coordinators of groups, or along routes between them.

use super::farthest_first::serves_each;
use super::forms::{groups_of, in_bounded_segments};
use super::routed::Routed;
use super::{Location, PolyModel};
use crate::collective::{Algorithm, Collective, Parameters, Shape, Size, Step, placed_program};
use crate::error::{Error, Result};
use crate::measure::Experiment;
use crate::policy::{CompiledPolicy, bounded};
use crate::predict::completion;
use crate::schedule::{MOST_MESSAGES, Program, Schedule};
use crate::topology::Rank;
use crate::two_level::{Coordinated, ROUTED};

/// A form of a collective.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// One algorithm over all ranks; or the library's own.
    Flat(&'static Collective, &'static Algorithm, Parameters),
    /// The same where ranks take their places by the speed of their processors, or by how far they are: the rank of each, the root's first.
    Placed(&'static Collective, &'static Algorithm, Parameters, Vec<Rank>),
    /// Through coordinators.
    Coordinated(Coordinated),
    /// Along routes between groups.
    Routed(Box<Routed>),
}

/// What a form is, as far as models may favour the wrong one: what many small messages take of a busy processor they do not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// One algorithm over all ranks.
    Flat,
    /// Through coordinators, each rank of a group with its share.
    ByCounterparts,
    /// Through coordinators or along routes, in segments.
    InSegments,
    /// The same in one piece.
    InOnePiece,
}

/// True of ranks that follow each other.
fn in_turn(order: &[Rank]) -> bool {
    order.iter().enumerate().all(|(k, &rank)| rank == (order[0] + k) % order.len())
}

impl Form {
    /// The collective that it is of.
    pub fn collective(&self) -> &'static Collective {
        match self {
            Form::Flat(collective, ..) | Form::Placed(collective, ..) => collective,
            Form::Coordinated(c) => c.collective,
            Form::Routed(_) => ROUTED,
        }
    }

    /// The library's own.
    pub(super) fn native(collective: &'static Collective) -> Form {
        Form::Flat(collective, collective.native(), Parameters::default())
    }

    /// What it is, as far as models may favour the wrong one.
    pub fn kind(&self) -> Kind {
        match self {
            Form::Flat(..) | Form::Placed(..) => Kind::Flat,
            Form::Coordinated(c) if c.by_counterparts() => Kind::ByCounterparts,
            Form::Coordinated(_) | Form::Routed(_) if self.segment() > 0 => Kind::InSegments,
            Form::Coordinated(_) | Form::Routed(_) => Kind::InOnePiece,
        }
    }

    /// True if what predictions of one miss tells of the other: the same algorithms, whatever their parameters.
    pub fn is_like(&self, other: &Form) -> bool {
        match (self, other) {
            (Form::Flat(_, a, _), Form::Flat(_, b, _)) | (Form::Placed(_, a, ..), Form::Placed(_, b, ..)) => a == b,
            (Form::Coordinated(a), Form::Coordinated(b)) => {
                a.between.algorithm == b.between.algorithm && a.by_counterparts() == b.by_counterparts()
            }
            (Form::Routed(a), Form::Routed(b)) => a.decided.map(|of| of.inter_group) == b.decided.map(|of| of.inter_group),
            _ => false,
        }
    }

    /// True if two go through coordinators, and differ by what these do at most.
    pub(super) fn is_alike_inside(&self, other: &Form) -> bool {
        let (Form::Coordinated(a), Form::Coordinated(b)) = (self, other) else { return false };
        a.inside == b.inside && a.segment == b.segment
    }

    /// How it goes through coordinators, if it does.
    pub fn coordinated(&self) -> Option<&Coordinated> {
        if let Form::Coordinated(c) = self { Some(c) } else { None }
    }

    /// True if everybody calls the library's own.
    pub fn is_native(&self) -> bool {
        match self {
            Form::Flat(_, algorithm, _) => algorithm.is_native(),
            Form::Routed(routed) => routed.is_native(),
            Form::Placed(..) | Form::Coordinated(_) => false,
        }
    }

    /// True if the library's own is done over all ranks, or inside a group: nobody knows its messages.
    pub fn has_native(&self) -> bool {
        let inside = |routed: &Routed| (0..routed.groups.len()).any(|k| routed.two_level.local_native(k));
        self.is_native() || matches!(self, Form::Routed(routed) if inside(routed))
    }

    /// The same where a shape of another size or root is asked for.
    ///
    /// # Errors
    /// A collective that does not go through coordinators, or the policy lacks a link.
    pub(super) fn for_shape(&self, policy: &CompiledPolicy, members: &[Location], shape: &Shape) -> Result<Form> {
        match self {
            // what is lost hangs on who sends when: ranks do in turn from this root on what they were to do from the one that stands for its class
            Form::Placed(collective, algorithm, p, order)
                if in_turn(order) && policy.loses(members[0].group) && members.iter().all(|m| m.group == members[0].group) =>
            {
                let order = (0..shape.ranks).map(|place| shape.absolute(place)).collect();
                Ok(Form::Placed(collective, algorithm, policy.even(members[0].group, *p, shape.bytes), order))
            }
            // it was decided for another root of the same group
            Form::Placed(collective, algorithm, parameters, order) if serves_each(algorithm) && order.first() != Some(&shape.root) => {
                let costs = PolyModel::new(policy, members, collective, shape.bytes)?;
                Form::Flat(collective, algorithm, *parameters).with_flow(&costs, shape)
            }
            Form::Flat(collective, algorithm, p) => Ok(Form::Flat(collective, algorithm, policy.even(members[0].group, *p, shape.bytes))),
            Form::Placed(collective, algorithm, p, order) => {
                Ok(Form::Placed(collective, algorithm, policy.even(members[0].group, *p, shape.bytes), order.clone()))
            }
            Form::Coordinated(c) => {
                let c = Coordinated { groups: groups_of(policy, members, shape), ..c.clone() };
                Ok(Form::Coordinated(in_bounded_segments(c, shape)?))
            }
            Form::Routed(routed) => Ok(Form::Routed(Box::new(routed.for_bytes(shape.bytes)))),
        }
    }

    /// True if it does what a shape asks for.
    pub fn fits(&self, shape: &Shape) -> bool {
        match self {
            Form::Flat(_, algorithm, _) => (algorithm.fits)(shape),
            // places are in another order than ranks
            Form::Placed(collective, algorithm, _, order) => {
                (algorithm.fits)(shape) && order.first() == Some(&shape.root) && (shape.elements.commute || !collective.combines)
            }
            Form::Coordinated(coordinated) => coordinated.fits(shape),
            Form::Routed(routed) => (routed.shape.ranks, routed.shape.root) == (shape.ranks, shape.root),
        }
    }

    /// Bytes of a message, at most: what a rank gives or gets, or, through coordinators, what all of a group do.
    pub fn largest_message(&self, shape: &Shape) -> usize {
        let (collective, ranks) = match self {
            Form::Flat(collective, ..) | Form::Placed(collective, ..) => (collective, 1),
            Form::Coordinated(c) if c.collective.size == Size::Block && !c.by_counterparts() => {
                (&c.collective, c.groups.iter().map(Vec::len).max().unwrap_or(1))
            }
            Form::Coordinated(c) => (&c.collective, 1),
            Form::Routed(routed) => return routed.largest_message(),
        };
        let layout = (collective.layout)(shape, shape.root);
        layout.input.max(layout.output).saturating_mul(ranks)
    }

    /// Bytes of its segments; 0: whole messages.
    pub fn segment(&self) -> usize {
        match self {
            Form::Flat(_, _, parameters) | Form::Placed(_, _, parameters, _) => parameters.segment,
            Form::Coordinated(coordinated) => coordinated.segment,
            Form::Routed(routed) => routed.two_level.segment,
        }
    }

    /// How many lanes its programs have, at most.
    pub fn lanes(&self) -> usize {
        match self {
            Form::Flat(_, algorithm, _) | Form::Placed(_, algorithm, ..) => algorithm.lanes,
            Form::Coordinated(coordinated) => coordinated.lanes(),
            Form::Routed(routed) => routed.two_level.lanes(),
        }
    }

    /// What a rank does, step by step.
    ///
    /// # Errors
    /// As [`Form::program`].
    pub fn steps(&self, me: Rank, shape: &Shape) -> Result<Vec<Step>> {
        match self {
            Form::Routed(routed) => routed.two_level.steps(me),
            _ => Ok(vec![Step::Program(self.program(me, shape)?)]),
        }
    }

    /// What a rank sends and receives; what the library does inside groups comes after it.
    ///
    /// # Errors
    /// An algorithm that there is not, or the library's own, whose messages are not known.
    pub fn program(&self, me: Rank, shape: &Shape) -> Result<Program> {
        match self {
            Form::Flat(_, algorithm, parameters) => {
                let program = algorithm.program(me, shape, &bounded(*parameters, shape.bytes));
                program.ok_or_else(|| Error::invalid(format!("build the program of {}: its messages are not known", algorithm.name)))
            }
            Form::Placed(collective, algorithm, parameters, order) => {
                let program = placed_program(collective, algorithm, me, shape, &bounded(*parameters, shape.bytes), order);
                program.ok_or_else(|| Error::invalid(format!("build the program of {}: rank {me} has no place in it", algorithm.name)))
            }
            Form::Coordinated(coordinated) => coordinated.program(me, shape),
            Form::Routed(routed) => routed.two_level.program(me),
        }
    }

    /// The programs of ranks as [`Form::program`] builds each, but what several do alike once.
    ///
    /// # Errors
    /// As there.
    pub fn programs<'a>(&'a self, shape: &'a Shape) -> Box<dyn Fn(Rank) -> Result<Program> + 'a> {
        match self {
            Form::Coordinated(coordinated) => Box::new(coordinated.programs(shape.ranks, shape)),
            _ => Box::new(|me| self.program(me, shape)),
        }
    }

    /// The programs of all ranks.
    ///
    /// # Errors
    /// As [`Form::program`].
    pub fn schedule(&self, shape: &Shape) -> Result<Schedule> {
        Ok(Schedule { programs: (0..shape.ranks).map(|me| self.program(me, shape)).collect::<Result<_>>()? })
    }

    /// As [`Form::schedule`], counted while it is built.
    ///
    /// # Errors
    /// [`Error::TooLarge`], or as [`Form::program`].
    pub fn bounded_schedule(&self, shape: &Shape) -> Result<Schedule> {
        match self {
            Form::Flat(_, algorithm, parameters) | Form::Placed(_, algorithm, parameters, _) => {
                let segment = if algorithm.segmented { parameters.segment } else { 0 };
                Schedule::bounded(shape.ranks, (shape.bytes, segment), (0, MOST_MESSAGES), self.programs(shape))
            }
            Form::Coordinated(c) => {
                let messages = (c.message_count(shape.bytes)?, MOST_MESSAGES);
                Schedule::bounded(shape.ranks, (shape.bytes, c.segment), messages, self.programs(shape))
            }
            Form::Routed(routed) => routed.two_level.schedule(shape.ranks),
        }
    }

    /// It, as it is measured.
    pub fn experiment(&self, shape: &Shape) -> Experiment {
        let one = |collective, algorithm: &Algorithm, parameters: &Parameters, ranks: Vec<Rank>, root| Experiment::Collective {
            collective,
            ranks,
            root,
            bytes: shape.bytes,
            algorithm: algorithm.name.into(),
            parameters: *parameters,
        };
        match self {
            Form::Flat(collective, algorithm, parameters) => one(collective, algorithm, parameters, (0..shape.ranks).collect(), shape.root),
            Form::Placed(collective, algorithm, parameters, order) => one(collective, algorithm, parameters, order.clone(), 0),
            Form::Coordinated(coordinated) => Experiment::Coordinated { coordinated: coordinated.clone(), bytes: shape.bytes },
            Form::Routed(routed) => Experiment::TwoLevel { two_level: routed.two_level.clone() },
        }
    }

    /// What it should take.
    ///
    /// # Errors
    /// The policy lacks a link, or as [`Form::bounded_schedule`].
    pub fn seconds(&self, policy: &CompiledPolicy, members: &[Location], shape: &Shape) -> Result<f64> {
        completion(&self.bounded_schedule(shape)?, &PolyModel::new(policy, members, self.collective(), shape.bytes)?)
    }

    /// Seconds from one to the next where many follow each other and ranks that have done their part go on: less than one takes alone, where some are done
    /// before others. None where the library's own is a part of it, of whose messages nothing is known.
    ///
    /// # Errors
    /// As [`Form::seconds`]; [`Error::TooLarge`].
    pub fn seconds_apart(&self, policy: &CompiledPolicy, members: &[Location], shape: &Shape) -> Result<Option<f64>> {
        /// How many there are until they go on at one pace, and as many again.
        const TIMES: usize = 4;
        /// So many messages are replayed in less than a second.
        const MOST: usize = 1 << 18;
        if self.has_native() {
            return Ok(None);
        }
        let once = self.bounded_schedule(shape)?;
        if once.messages() > MOST / (2 * TIMES) {
            return Err(Error::TooLarge(format!("predict {} times {} messages", 2 * TIMES, once.messages())));
        }
        let costs = PolyModel::new(policy, members, self.collective(), shape.bytes)?;
        let [some, all] = [TIMES, 2 * TIMES].map(|times| completion(&once.repeated(times), &costs));
        Ok(Some((all? - some?) / TIMES as f64))
    }
}
