//! What the network of a group loses of messages that meet others at one receiver: between which sizes, how often, and for how long.

use super::Group;
use crate::collective::{Collective, Parameters, gather};
use crate::error::Result;
use crate::fit::predict_with;
use crate::measure::{Experiment, Session};
use crate::model::{CostModel, Losses};
use crate::stats;
use crate::topology::Rank;
use std::collections::BTreeMap;

/// All send to one rank at once, messages of one size: the irregular region of TCP lies between these on the networks that are known.
const SIZES: [usize; 9] = [1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10];
/// So many send: more meet no more often.
const MOST_SENDERS: usize = 16;
/// So many messages meet another one at each size: where one of twenty is lost, nothing is lost of all of them once in 5,000 times.
const COLLISIONS: usize = 170;
/// And so many runs are made at least, since all of one run may be lost at once.
const LEAST_RUNS: usize = 8;
/// An end of the region is known to this share of it.
const CLOSE: usize = 64;
/// Of a size that lies in every irregular region that is known: where nothing of it is lost, nothing is looked for.
const FIRST: usize = 16 << 10;
/// What comes so much later was lost and sent again: TCP waits for 0.2 s at least where nobody told it otherwise, and a busy processor for less.
const LEAST_WAIT_S: f64 = 0.1;
const PURPOSE: &str = "what is lost, and of which sizes";

/// Gathers of one group that lose something.
struct Gathers<'a> {
    ranks: Vec<Rank>,
    /// What they take where nothing is lost.
    costs: &'a dyn CostModel,
    /// By size: the seconds that each run took longer than predicted.
    late: BTreeMap<usize, Vec<f64>>,
}

/// What each group loses, if one of some collectives has several send to one rank.
///
/// # Errors
/// The session's, or a model that lacks parameters.
pub fn find(session: &mut Session, groups: &[Group], collectives: &[&'static Collective]) -> Result<Vec<Option<Losses>>> {
    // what comes from a root goes along trees, and what has no bytes is not lost
    let collide = collectives.iter().any(|c| c.sized() && !c.root_begins());
    groups.iter().map(|group| if collide { of_group(session, group) } else { Ok(None) }).collect()
}

fn of_group(session: &mut Session, group: &Group) -> Result<Option<Losses>> {
    let Some(fitted) = group.policy.models.last() else { return Ok(None) };
    let costs = fitted.costs_in(group.rank_set.inside.as_ref())?;
    let ranks: Vec<Rank> = group.rank_set.ranks.iter().take(MOST_SENDERS + 1).copied().collect();
    if ranks.len() < 3 {
        return Ok(None);
    }
    let mut gathers = Gathers { ranks, costs: costs.as_ref(), late: BTreeMap::new() };
    if !gathers.run(session, &[FIRST])? || !gathers.loses(FIRST) || !gathers.run(session, &SIZES)? {
        return Ok(None);
    }
    // what is lost whatever its size is lost by something else
    let Some((mut from, mut to)) = gathers.ends().filter(|(from, to)| from.0 > 0 && to.1 < usize::MAX) else { return Ok(None) };
    while let Some(size) = between(from, from.1) {
        if !gathers.run(session, &[size])? {
            return Ok(None);
        }
        from = if gathers.loses(size) { (from.0, size) } else { (size, from.1) };
    }
    while let Some(size) = between(to, to.0) {
        if !gathers.run(session, &[size])? {
            return Ok(None);
        }
        to = if gathers.loses(size) { (size, to.1) } else { (to.0, size) };
    }
    // what lies between what is known of each end may be lost
    Ok(gathers.share().map(|(share, wait_s)| Losses { from_bytes: from.0 + 1, to_bytes: to.1 - 1, share, wait_s }))
}

/// A size between two, one of which loses: at first next to it, since libraries and systems change at powers of two. None, if they are close.
fn between((low, high): (usize, usize), loses: usize) -> Option<usize> {
    let close = (high / CLOSE).max(1);
    let beside = if loses == low { low + close } else { high - close };
    let at = if SIZES.contains(&low) && SIZES.contains(&high) { beside } else { (low + high) / 2 };
    (high - low > close).then_some(at)
}

impl Gathers<'_> {
    fn experiment(&self, bytes: usize) -> Experiment {
        let (collective, algorithm) = (&gather::COLLECTIVE, gather::FLAT.name.to_string());
        Experiment::Collective { collective, ranks: self.ranks.clone(), root: 0, bytes, algorithm, parameters: Parameters::default() }
    }

    /// How many messages of a run meet another one: all but the first.
    fn collisions(&self) -> usize {
        self.ranks.len() - 2
    }

    /// Runs gathers of these sizes; false, if a recording has none of one.
    fn run(&mut self, session: &mut Session, sizes: &[usize]) -> Result<bool> {
        let all: Vec<Experiment> = sizes.iter().map(|&bytes| self.experiment(bytes)).collect();
        if session.can_measure() {
            session.measure_so_often(PURPOSE, &all, COLLISIONS.div_ceil(self.collisions()).max(LEAST_RUNS))?;
        }
        for (&bytes, experiment) in sizes.iter().zip(&all) {
            let Some(sample) = session.samples().get(experiment) else { return Ok(false) };
            let predicted = predict_with(experiment, self.costs, &self.ranks)?;
            let late = |&time: &f64| if time > predicted + LEAST_WAIT_S { time - predicted } else { 0.0 };
            self.late.insert(bytes, sample.seconds.iter().map(late).collect());
        }
        Ok(true)
    }

    fn loses(&self, bytes: usize) -> bool {
        self.late.get(&bytes).is_some_and(|late| late.iter().any(|&late| late > 0.0))
    }

    /// The last size of which nothing is lost before the first of which something is, and this; and the same at the other end.
    fn ends(&self) -> Option<((usize, usize), (usize, usize))> {
        let lost = || self.late.keys().copied().filter(|&bytes| self.loses(bytes));
        let (first, last) = (lost().next()?, lost().next_back()?);
        let before = self.late.range(..first).next_back().map_or(0, |(&bytes, _)| bytes);
        let after = self.late.range(last + 1..).next().map_or(usize::MAX, |(&bytes, _)| bytes);
        Some(((before, first), (last, after)))
    }

    /// How many of the messages that meet another one are lost, and for how long: a run is late as its last message is.
    fn share(&self) -> Option<(f64, f64)> {
        let runs: Vec<f64> = self.late.iter().filter(|(bytes, _)| self.loses(**bytes)).flat_map(|(_, late)| late.iter().copied()).collect();
        let late: Vec<f64> = runs.iter().copied().filter(|&late| late > 0.0).collect();
        // not all runs are late, however many were
        let lost = (late.len() as f64).min(runs.len() as f64 - 0.5) / runs.len() as f64;
        Some((1.0 - (1.0 - lost).powf(1.0 / self.collisions() as f64), stats::median(&late)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_at_powers_of_two_are_found_at_once() {
        assert_eq!([between((2048, 4096), 4096), between((2048, 4096), 2048)], [Some(4032), Some(2112)]);
        assert_eq!(between((4032, 4096), 4096), None);
        assert_eq!(between((2048, 4032), 4032), Some(3040));
    }
}
