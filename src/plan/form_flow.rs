//! How much is under way at once in a form, where nothing says it.

use super::{Form, PolyModel};
use crate::collective::{Shape, Size};
use crate::error::Result;
use crate::flow::{self, held_back};
use crate::model::{Among, CostModel};
use crate::predict::completion;
use crate::schedule::{Action, Program, Schedule};
use crate::topology::{Link, Rank};
use crate::two_level::Coordinated;

impl Form {
    /// The same with what it leaves open of the messages under way.
    ///
    /// # Errors
    /// The policy lacks a link, or an algorithm whose messages are not known.
    pub(super) fn with_flow(self, costs: &PolyModel, shape: &Shape) -> Result<Form> {
        match self {
            Form::Flat(collective, algorithm, parameters) if !algorithm.is_native() => {
                let ranks: Vec<Rank> = (0..shape.ranks).collect();
                Ok(Form::Flat(collective, algorithm, flow::with_flow(algorithm, parameters, costs, &ranks, shape.bytes)))
            }
            Form::Coordinated(mut c) if c.segment > 0 => {
                if c.between.parameters.in_flight == 0 {
                    c.between.parameters.in_flight = between(&c, costs, shape)?;
                }
                if c.inside.parameters.in_flight == 0 {
                    let wanted = c.groups.iter().map(|ranks| flow::in_flight(costs, ranks, c.segment));
                    c.inside.parameters.in_flight = wanted.max().unwrap_or(0);
                }
                Ok(Form::Coordinated(c))
            }
            other => Ok(other),
        }
    }
}

/// How much coordinators have under way at once: of a vector that is cut, so many segments that the busiest of them is never idle, as the delay of an exchange over
/// the time for which it keeps a port; of blocks, so many
/// pieces as their links want.
fn between(c: &Coordinated, costs: &PolyModel, shape: &Shape) -> Result<usize> {
    let coordinators: Vec<Rank> = c.groups.iter().map(|ranks| ranks[0]).collect();
    if c.collective.size == Size::Block {
        return Ok(flow::in_flight(costs, &coordinators, c.segment));
    }
    let among = Among { inner: costs, positions: coordinators };
    let exchange = c.exchange(shape)?;
    let busy = busiest(&exchange, &among);
    if busy == 0.0 {
        return Ok(0);
    }
    Ok(held_back(Some((completion(&exchange, &among)? / busy).ceil().max(2.0) as usize)))
}

/// Seconds for which a schedule's messages keep the busiest port.
fn busiest(schedule: &Schedule, costs: &dyn CostModel) -> f64 {
    let of_rank = |(from, program): (Rank, &Program)| {
        let gaps = program.actions().map(|action| match action {
            Action::Send { to, span } => costs.cost(Link { from, to }, span.len).gap,
            _ => 0.0,
        });
        gaps.sum()
    };
    schedule.programs.iter().enumerate().map(of_rank).fold(0.0, f64::max)
}
