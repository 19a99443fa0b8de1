//! How much is under way at once in a form, where nothing says it.

use super::farthest_first::farthest_first;
use super::{Form, PolyModel};
use crate::collective::{Shape, Size};
use crate::error::Result;
use crate::flow::{self, held_back};
use crate::model::{Among, CostModel, Pipe};
use crate::predict::{Busy, completion};
use crate::schedule::{Action, Program, Schedule};
use crate::topology::{Link, Rank};
use crate::two_level::Coordinated;
use rustc_hash::FxHashMap;

impl Form {
    /// The same with what it leaves open: how many messages are under way, and in which order a root serves ranks.
    ///
    /// # Errors
    /// The policy lacks a link, or an algorithm whose messages are not known.
    pub(super) fn with_flow(self, costs: &PolyModel, shape: &Shape) -> Result<Form> {
        match self {
            Form::Flat(collective, algorithm, parameters) if !algorithm.is_native() => {
                let order = farthest_first(algorithm, costs, shape);
                let ranks = order.clone().unwrap_or_else(|| (0..shape.ranks).collect());
                let parameters = flow::with_flow(algorithm, parameters, costs, &ranks, shape.bytes);
                Ok(match order {
                    Some(order) => Form::Placed(collective, algorithm, parameters, order),
                    None => Form::Flat(collective, algorithm, parameters),
                })
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

/// How much coordinators have under way at once: of a vector that is cut, so many segments that the busiest of them is never idle, which is the delay of an
/// exchange over the time for which it keeps a port; of blocks, so many pieces as their links want.
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

/// Seconds for which a schedule's messages keep the busiest port, on their way out or in.
fn busiest(schedule: &Schedule, costs: &dyn CostModel) -> f64 {
    let of_rank = |(me, program): (Rank, &Program)| {
        let (mut out, mut into) = (0.0, 0.0);
        for action in program.actions() {
            match action {
                Action::Send { to, span } => out += costs.cost(Link { from: me, to }, span.len).gap,
                Action::Recv { from, span } => into += costs.port_in(Link { from, to: me }, span.len),
                Action::Copy { .. } | Action::Combine { .. } | Action::Delay { .. } => {}
            }
        }
        f64::max(out, into)
    };
    schedule.programs.iter().enumerate().map(of_rank).fold(0.0, f64::max)
}

/// Seconds for which a schedule keeps the port, the processor or the link that many share which it keeps longest.
pub(super) fn busiest_of_all(schedule: &Schedule, costs: &dyn CostModel) -> f64 {
    let mut shared: FxHashMap<Pipe, f64> = FxHashMap::default();
    let mut ranks = 0.0;
    for (from, program) in schedule.programs.iter().enumerate() {
        ranks = f64::max(ranks, Busy::of(from, program, costs).least());
        for action in program.actions() {
            if let Action::Send { to, span } = action
                && let Some((pipe, busy)) = costs.pipe(Link { from, to }, span.len)
            {
                *shared.entry(pipe).or_insert(0.0) += busy;
            }
        }
    }
    shared.into_values().fold(ranks.max(busiest(schedule, costs)), f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{Parameters, collective};
    use crate::flow::tests::Lan;

    #[test]
    fn a_port_is_as_busy_with_what_comes_as_with_what_goes() {
        let busy = |of: &str, algorithm: &str| {
            let schedule = collective(of).unwrap().algorithm(algorithm).unwrap();
            busiest(&schedule.schedule(&Shape::new(5, 0, 1000), &Parameters::default()).unwrap(), &Lan)
        };
        assert_eq!((busy("bcast", "flat"), busy("reduce", "flat")), (4e-5, 4e-5));
        assert_eq!((busy("bcast", "chain"), busy("reduce", "chain")), (1e-5, 1e-5));
    }
}
