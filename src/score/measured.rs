//! Poly-adapt-1: how well each model explains each group and algorithm, on broadcasts whose sizes and rank counts were not in the
//! fit, with what it cost to measure each model.

use super::{Calibration, ModelScore};
use crate::collective::{Algorithm, Parameters, bcast};
use crate::error::Result;
use crate::fit::predict_with_each;
use crate::flow::with_flow;
use crate::measure::{Experiment, Samples, Session};
use crate::model::{CostModel, Fitted, Lookup, RankSet, model};
use crate::schedule::MOST_SEGMENTS;
use crate::stats;
use std::collections::BTreeSet;

/// Message sizes that no model is fitted at.
pub const HELD_OUT_BYTES: [usize; 6] = [96, 3 << 10, 24 << 10, 100_000, 400_000, 1_500_000];
/// Messages so long are costly: they are broadcast over the whole group only.
const LONG_BYTES: usize = 1_000_000;
/// The segments that segmented algorithms are scored with: short, middling and long ones are chosen, and no model is as good with all of them.
const SEGMENTS: [usize; 3] = [1 << 10, 12 << 10, 96 << 10];

/// The scores of one group.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scores {
    /// By model, in the order of the registry.
    pub models: Vec<ModelScore>,
    /// By algorithm and model, at the sizes that were broadcast over a part of the group too.
    pub calibration: Vec<Calibration>,
    /// The same of broadcasts over the whole group only, which has ways of its own: a host that is farther away, say.
    pub of_all: Vec<Calibration>,
}

/// The rank counts that a group of n is scored at: all, and about half, which no experiment of a model uses.
pub(crate) fn rank_counts(n: usize) -> Vec<usize> {
    let mut counts = vec![n, n / 2 + 1];
    counts.retain(|&p| p >= 2 && p <= n);
    counts.dedup();
    counts
}

/// The broadcasts that a group is scored on, with as many messages under way as its links want by the last of its models, which is the
/// closest to what was measured.
pub fn experiments(rank_set: &RankSet, fitted: &[Fitted]) -> Result<Vec<Experiment>> {
    let mut all = Vec::new();
    let n = rank_set.ranks.len();
    let costs = fitted.last().map(|f| f.costs_in(rank_set.inside.as_ref())).transpose()?;
    for p in rank_counts(n) {
        for bytes in HELD_OUT_BYTES.into_iter().filter(|&bytes| p == n || bytes < LONG_BYTES) {
            for algorithm in bcast::ALGORITHMS.iter().filter(|a| a.builder.is_some()) {
                for segment in segments(algorithm, bytes) {
                    let parameters = Parameters::of(segment, 0);
                    let parameters = match &costs {
                        Some(costs) => with_flow(algorithm, parameters, costs.as_ref(), &(0..n).collect::<Vec<_>>(), bytes),
                        None => parameters,
                    };
                    let (ranks, algorithm) = (rank_set.ranks[..p].to_vec(), algorithm.name.to_string());
                    all.push(Experiment::Collective { collective: &bcast::COLLECTIVE, ranks, root: 0, bytes, algorithm, parameters });
                }
            }
        }
    }
    Ok(all)
}

/// The segments that an algorithm is scored with; 0: the whole message.
fn segments(algorithm: &Algorithm, bytes: usize) -> Vec<usize> {
    if !algorithm.segmented {
        return vec![0];
    }
    SEGMENTS.into_iter().filter(|&s| s < bytes && bytes.div_ceil(s) <= MOST_SEGMENTS).collect()
}

/// Measures the held-out broadcasts of all groups, side by side, and scores their models.
///
/// # Errors
/// The session's.
pub fn score_groups(session: &mut Session, rank_sets: &[RankSet], fitted: &[Vec<Fitted>]) -> Result<Vec<Scores>> {
    let wanted =
        rank_sets.iter().zip(fitted).filter(|(r, _)| r.ranks.len() > 1).map(|(r, f)| experiments(r, f)).collect::<Result<Vec<_>>>()?;
    session.measure_roughly("broadcasts to score models by", &wanted.concat())?;
    rank_sets.iter().zip(fitted).map(|(r, f)| score(r, f, session.samples())).collect()
}

/// One held-out broadcast under one model.
struct Case<'a> {
    algorithm: &'a str,
    ranks: usize,
    bytes: usize,
    /// Measured over predicted.
    ratio: f64,
    error: f64,
}

/// Scores a group's models by samples that are there already.
///
/// # Errors
/// A model that lacks parameters.
pub fn score(rank_set: &RankSet, fitted: &[Fitted], samples: &Samples) -> Result<Scores> {
    if rank_set.ranks.len() < 2 {
        return Ok(Scores::default());
    }
    let all = experiments(rank_set, fitted)?;
    let mut scores = Scores::default();
    let costs = fitted.iter().map(|f| f.costs_in(rank_set.inside.as_ref())).collect::<Result<Vec<_>>>()?;
    let costs: Vec<&dyn CostModel> = costs.iter().map(AsRef::as_ref).collect();
    let mut by_model: Vec<Vec<Case>> = fitted.iter().map(|_| Vec::new()).collect();
    for e in &all {
        let (Experiment::Collective { algorithm, ranks, bytes, .. }, Some(measured)) = (e, samples.median(e)) else { continue };
        for (cases, predicted) in by_model.iter_mut().zip(predict_with_each(e, &costs, &rank_set.ranks)?) {
            let (ratio, error) = (measured / predicted, (predicted / measured - 1.0).abs());
            if predicted > 0.0 && measured > 0.0 && ratio.is_finite() && error.is_finite() {
                cases.push(Case { algorithm, ranks: ranks.len(), bytes: *bytes, ratio, error });
            }
        }
    }
    for (f, cases) in fitted.iter().zip(by_model) {
        scores.models.push(summary(f, rank_set, samples, &cases)?);
        let of_all = |c: &Case| c.ranks == rank_set.ranks.len();
        scores.of_all.extend(calibration(&f.model, cases.iter().filter(|c| of_all(c))));
        // what was broadcast over the whole group only says little of its parts: a chain is as slow as its slowest host
        let of_part: BTreeSet<usize> = cases.iter().filter(|c| !of_all(c)).map(|c| c.bytes).collect();
        scores.calibration.extend(calibration(&f.model, cases.iter().filter(|c| of_part.is_empty() || of_part.contains(&c.bytes))));
    }
    Ok(scores)
}

fn summary(fitted: &Fitted, rank_set: &RankSet, samples: &Samples, cases: &[Case]) -> Result<ModelScore> {
    let mean_where = |keep: &dyn Fn(&Case) -> bool| stats::mean(&cases.iter().filter(|c| keep(c)).map(|c| c.error).collect::<Vec<_>>());
    let errors: Vec<f64> = cases.iter().map(|c| c.error).collect();
    let error = stats::mean(&errors);
    let variance = error.and_then(|error| stats::mean(&errors.iter().map(|e| (e - error).powi(2)).collect::<Vec<_>>())).unwrap_or(0.0);
    let bytes: Vec<usize> = HELD_OUT_BYTES.into_iter().filter(|b| cases.iter().any(|c| c.bytes == *b)).collect();
    let names = bcast::ALGORITHMS.iter().map(|a| a.name);
    let by_algorithm = names.filter_map(|n| Some((n.to_string(), mean_where(&|c| c.algorithm == n)?))).collect();
    Ok(ModelScore {
        model: fitted.model.clone(),
        error,
        error_se: (variance / cases.len().max(1) as f64).sqrt(),
        measuring_s: measuring_cost(&fitted.model, rank_set, samples)?,
        error_by_bytes: bytes.iter().filter_map(|b| mean_where(&|c| c.bytes == *b)).collect(),
        bytes,
        error_by_algorithm: by_algorithm,
    })
}

/// Seconds that a model's experiments took.
fn measuring_cost(name: &str, rank_set: &RankSet, samples: &Samples) -> Result<f64> {
    let model = model(name)?;
    let experiments = (model.experiments)(rank_set, &Lookup::new(samples));
    Ok(experiments.iter().chain(&(model.held_out)(rank_set)).filter_map(|e| samples.get(e)).map(|s| s.seconds.iter().sum::<f64>()).sum())
}

fn calibration<'a>(model: &str, cases: impl Iterator<Item = &'a Case<'a>>) -> Vec<Calibration> {
    let cases: Vec<&Case> = cases.collect();
    let of = |algorithm: &'static str| {
        let of_size =
            |b: usize| cases.iter().filter(move |c| c.algorithm == algorithm && c.bytes == b).map(|c| c.ratio).collect::<Vec<_>>();
        let points: Vec<(usize, f64)> = HELD_OUT_BYTES.into_iter().filter_map(|b| Some((b, stats::median(&of_size(b))?))).collect();
        let (bytes, ratio): (Vec<usize>, Vec<f64>) = points.into_iter().unzip();
        (!bytes.is_empty()).then(|| Calibration {
            collective: &bcast::COLLECTIVE,
            algorithm: algorithm.into(),
            model: model.into(),
            bytes,
            ratio,
        })
    };
    bcast::ALGORITHMS.iter().filter_map(|a| of(a.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segmented_algorithms_are_scored_with_short_middling_and_long_segments() {
        let all = experiments(&RankSet::new((0..9).collect()), &[]).unwrap();
        let segments = |name: &str, size: usize| -> Vec<usize> {
            let of = |e: &Experiment| match e {
                Experiment::Collective { algorithm, bytes, ranks, parameters, .. }
                    if algorithm == name && *bytes == size && ranks.len() == 9 =>
                {
                    Some(parameters.segment)
                }
                _ => None,
            };
            all.iter().filter_map(of).collect()
        };
        assert_eq!(segments("segmented_chain", 100_000), [1 << 10, 12 << 10, 96 << 10]);
        assert_eq!(segments("segmented_chain", 3 << 10), [1 << 10]);
        // more than 256 segments are left out
        assert_eq!(segments("segmented_chain", 400_000), [12 << 10, 96 << 10]);
        assert_eq!(segments("chain", 100_000), [0]);
    }
}
