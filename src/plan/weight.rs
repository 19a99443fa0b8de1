//! What it takes to predict a form, known before it is.

use super::Form;
use crate::collective::{Collective, Shape, Size};
use crate::error::Result;
use crate::model::CostModel;
use crate::policy::bounded;
use crate::predict::Busy;
use crate::schedule::Program;
use crate::topology::Rank;
use crate::two_level::IntraGroup;
use rustc_hash::FxHashMap;

/// The operations of so many ranks beside coordinators are counted, this many apart, so that no tree has all of them at one level.
const SAMPLED: usize = 8;
const STRIDE: usize = 7919;

/// A message in segments is looked at for so many of them, and for half as many: the difference is what it takes for each segment more.
const LOOK: usize = 4;

/// What it takes to predict a form.
pub(super) struct Weight {
    /// How many operations all ranks have together, about, and one more for each rank.
    pub operations: usize,
    /// How many were built to find that out.
    pub built: usize,
    /// So long the form takes at least, as far as that was seen.
    pub least_s: f64,
    /// Bytes of the first segments, if it is looked at for these only.
    pub look: Option<usize>,
}

/// What ranks beside coordinators do, found once for a shape: how many operations, and how long they take at least. It hangs on what is done inside groups and in
/// which segments, and not on what coordinators do.
pub(super) type Beside = FxHashMap<(IntraGroup, usize, Rank), (usize, f64)>;

impl Form {
    /// What it takes to predict it, by its first segments (`looks`) where it has many. Where it has more than `most` operations no more are built than
    /// tell so.
    ///
    /// It has, about, as many for each rank beside the coordinators, or the root, as some of them have in the mean, as many for each other coordinator as
    /// that of the largest group, and those of the root.
    ///
    /// # Errors
    /// As [`Form::program`].
    pub(super) fn weight(&self, costs: &dyn CostModel, whole: &Shape, most: usize, looks: bool, beside: &mut Beside) -> Result<Weight> {
        // the others are as the first ones
        let begun = self.begun(whole, LOOK).filter(|(_, first)| 2 * first.bytes < whole.bytes);
        let (form, shape) = begun.as_ref().map_or((self, whole), |(form, shape)| (form, shape));
        let look = Some(shape.bytes).filter(|_| looks && begun.is_some());
        let times = whole.bytes.max(1) as f64 / shape.bytes.max(1) as f64;
        let (leading, others): (Vec<(Rank, usize)>, Vec<Rank>) = match self {
            Form::Coordinated(c) if !c.by_counterparts() => {
                let largest = c.groups.iter().skip(1).max_by_key(|ranks| ranks.len());
                let each = largest.map(|ranks| (ranks[0], c.groups.len() - 1));
                let others = c.groups.iter().flat_map(|ranks| &ranks[1..]).copied().collect();
                (each.into_iter().chain([(c.groups[0][0], 1)]).collect(), others)
            }
            _ => (vec![(shape.root, 1)], (1..shape.ranks).map(|v| shape.absolute(v)).collect()),
        };
        // those that are sampled stand for a share of the others each; they have the fewest operations, and come first
        let samples = others.len().min(SAMPLED);
        let sampled = (0..samples).map(|k| (others[k * STRIDE % others.len()], others.len()));
        let leading = leading.into_iter().map(|(rank, alike)| (rank, alike * samples.max(1)));
        let mut weight = Weight { operations: blocks_one_by_one(self.collective(), shape), built: 0, least_s: 0.0, look };
        let (mut shares, program) = (0usize, form.programs(shape));
        for (rank, share) in sampled.chain(leading) {
            if weight.operations > most {
                break;
            }
            let (own, least_s) = self.of_rank(rank, &program, costs, beside)?;
            shares = shares.saturating_add(own.saturating_mul(share));
            let of_all = shares.div_ceil(samples.max(1));
            weight.operations = match look {
                // half of the segments are replayed once more
                Some(_) => (shape.ranks + of_all) * 3 / 2,
                None => shape.ranks + (of_all as f64 * times).ceil() as usize,
            };
            // whether it was known or not: what is compared must not hang on what came before
            weight.built += own;
            weight.least_s = weight.least_s.max(least_s * times);
        }
        Ok(weight)
    }

    /// How many operations a rank has, and how long they take it at least.
    fn of_rank(
        &self,
        rank: Rank,
        program: impl Fn(Rank) -> Result<Program>,
        costs: &dyn CostModel,
        beside: &mut Beside,
    ) -> Result<(usize, f64)> {
        let key = match self {
            Form::Coordinated(c) if !c.by_counterparts() && c.groups.iter().all(|ranks| ranks[0] != rank) => {
                Some((c.inside.clone(), c.segment, rank))
            }
            _ => None,
        };
        if let Some(known) = key.as_ref().and_then(|key| beside.get(key)) {
            return Ok(*known);
        }
        let program = program(rank)?;
        let found = (program.len(), Busy::of(rank, &program, costs).least());
        beside.extend(key.map(|key| (key, found)));
        Ok(found)
    }

    /// The same of so many first segments, where all of the message goes in more of them, one like the other; with what is asked for then.
    pub fn begun(&self, shape: &Shape, segments: usize) -> Option<(Form, Shape)> {
        let bytes = self.segment_of_all(shape).saturating_mul(segments);
        if bytes == 0 || bytes >= shape.bytes {
            return None;
        }
        let (whole, mut form, shape) = (shape.bytes, self.clone(), Shape { bytes, ..*shape });
        match &mut form {
            Form::Routed(routed) => (routed.two_level.bytes, routed.shape) = (bytes, shape),
            // segments are as long as those of the whole
            Form::Flat(_, _, parameters) | Form::Placed(_, _, parameters, _) => *parameters = bounded(*parameters, whole),
            Form::Coordinated(_) => {}
        }
        Some((form, shape))
    }

    /// Bytes of the segments that all of its message goes in, one after the other by the same ways; 0: it goes in other pieces too.
    fn segment_of_all(&self, shape: &Shape) -> usize {
        match self {
            Form::Coordinated(_) | Form::Routed(_) if self.collective().size == Size::Message => self.segment(),
            Form::Coordinated(_) | Form::Routed(_) => 0,
            Form::Flat(collective, algorithm, parameters) | Form::Placed(collective, algorithm, parameters, _) => {
                collective.repeats(algorithm, &bounded(*parameters, shape.bytes))
            }
        }
    }
}

/// So many operations any form has where each rank gives each other one a block of its own, which is sent or copied by itself.
fn blocks_one_by_one(collective: &Collective, shape: &Shape) -> usize {
    let given = (collective.layout)(&Shape { in_place: false, ..*shape }, shape.root).input;
    let own = collective.size == Size::Block && !collective.rooted && !collective.combines;
    if own && shape.bytes > 0 && given == shape.ranks * shape.bytes { shape.ranks * shape.ranks } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{Parameters, collective};
    use crate::plan::{PolyModel, everybody};
    use crate::policy::{CompiledPolicy, Policy};
    use std::path::Path;

    /// The first segments tell how many operations all have, whether segments are as long as somebody said or longer, since there would be too many.
    #[test]
    fn operations_are_counted_by_the_first_segments() {
        let policy = CompiledPolicy::new(Policy::read(Path::new("policies/hcl16.toml")).unwrap()).unwrap();
        let members = everybody(&policy.policy);
        for (name, algorithm, segment) in
            [("reduce", "segmented_chain", 1 << 10), ("reduce", "segmented_chain", 32 << 10), ("bcast", "segmented_binary", 512)]
        {
            let collective = collective(name).unwrap();
            let form = Form::Flat(collective, collective.algorithm(algorithm).unwrap(), Parameters::of(segment, 0));
            let shape = collective.shape(members.len(), 0, 4 << 20);
            let costs = PolyModel::new(&policy, &members, collective, shape.bytes).unwrap();
            let weight = form.weight(&costs, &shape, usize::MAX, false, &mut Beside::default()).unwrap();
            let all: usize = (0..shape.ranks).map(|rank| form.program(rank, &shape).unwrap().len()).sum();
            let ratio = weight.operations as f64 / (shape.ranks + all) as f64;
            // some ranks of a tree stand for all
            assert!((0.6..=1.6).contains(&ratio), "{name}, {segment} B: {} operations for {all}", weight.operations);
            assert!(weight.built < all / 20, "{name}: {} built for {all}", weight.built);
        }
    }
}
