//! Poly-adapt-1: how well each model explains each group and algorithm, on collectives whose sizes and rank counts were not in the
//! fit, with what it cost to measure each model.

use super::{Calibration, ModelScore, is_missed};
use crate::collective::{Algorithm, Built, Collective, Parameters};
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
/// Messages so long are costly: they are sent over the whole group only.
const LONG_BYTES: usize = 1_000_000;
/// The segments that segmented algorithms are scored with: short, middling and long ones are chosen, and no model is as good with all of them.
const SEGMENTS: [usize; 3] = [1 << 10, 12 << 10, 96 << 10];
/// What no root begins is timed from a start that all ranks agree upon, which takes longer than what is timed: it is scored with these alone, over whole
/// groups.
const MIDDLING: [usize; 1] = [12 << 10];

/// The scores of one group.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scores {
    /// By collective and model, in the order of the registry.
    pub models: Vec<ModelScore>,
    /// By algorithm and model, at the sizes that were measured over a part of the group too.
    pub calibration: Vec<Calibration>,
    /// The same over the whole group only, which has ways of its own: a host that is farther away, say.
    pub of_all: Vec<Calibration>,
}

/// The rank counts that a group of n is scored at: all, and about half, which no experiment of a model uses.
pub(crate) fn rank_counts(n: usize) -> Vec<usize> {
    let mut counts = vec![n, n / 2 + 1];
    counts.retain(|&p| p >= 2 && p <= n);
    counts.dedup();
    counts
}

/// What a group is scored on, of a collective, with as many messages under way as its links want by the last of its models, which is the
/// closest to what was measured.
pub fn experiments(rank_set: &RankSet, fitted: &[Fitted], collective: &'static Collective) -> Result<Vec<Experiment>> {
    let mut all = Vec::new();
    let n = rank_set.ranks.len();
    let costs = fitted.last().map(|f| f.costs_in(rank_set.inside.as_ref())).transpose()?;
    let (counts, cut) = if collective.root_begins() { (rank_counts(n), &SEGMENTS[..]) } else { (vec![n], &MIDDLING[..]) };
    for p in counts {
        for bytes in collective.tuned_sizes(&HELD_OUT_BYTES, n).into_iter().filter(|&bytes| p == n || bytes < LONG_BYTES) {
            for algorithm in collective.built().filter(|a| (a.fits)(&collective.shape(p, 0, bytes))) {
                for segment in segments(algorithm, cut, bytes) {
                    let parameters = Parameters::of(segment, 0);
                    let parameters = match &costs {
                        Some(costs) => with_flow(algorithm, parameters, costs.as_ref(), &(0..n).collect::<Vec<_>>(), bytes),
                        None => parameters,
                    };
                    let (ranks, algorithm) = (rank_set.ranks[..p].to_vec(), algorithm.name.to_string());
                    all.push(Experiment::Collective { collective, ranks, root: 0, bytes, algorithm, parameters });
                }
            }
        }
    }
    Ok(all)
}

/// The segments of these that an algorithm is scored with; 0: the whole message.
fn segments(algorithm: &Algorithm, cut: &[usize], bytes: usize) -> Vec<usize> {
    if !algorithm.segmented {
        return vec![0];
    }
    cut.iter().copied().filter(|&s| s < bytes && bytes.div_ceil(s) <= MOST_SEGMENTS).collect()
}

/// Measures the held-out collectives of all groups, side by side, and scores their models.
///
/// # Errors
/// The session's.
pub fn score_groups(
    session: &mut Session,
    rank_sets: &[&RankSet],
    fitted: &[&[Fitted]],
    collectives: &[&'static Collective],
) -> Result<Vec<Scores>> {
    // one after the other: side by side, groups should do what takes about as long
    for collective in collectives {
        let several = rank_sets.iter().zip(fitted).filter(|(rank_set, _)| rank_set.ranks.len() > 1);
        let wanted = several.map(|(r, f)| experiments(r, f, collective)).collect::<Result<Vec<_>>>()?;
        session.measure_roughly("collectives to score models by", &wanted.concat())?;
    }
    let built = Built::default();
    rank_sets.iter().zip(fitted).map(|(r, f)| score(r, f, collectives, session.samples(), &built)).collect()
}

/// One held-out collective under one model.
struct Case {
    algorithm: &'static str,
    ranks: usize,
    bytes: usize,
    /// Measured over predicted.
    ratio: f64,
    error: f64,
}

/// Scores a group's models by samples that are there already; `built`: for other groups too.
///
/// # Errors
/// A model that lacks parameters.
pub fn score(
    rank_set: &RankSet,
    fitted: &[Fitted],
    collectives: &[&'static Collective],
    samples: &Samples,
    built: &Built,
) -> Result<Scores> {
    let mut scores = Scores::default();
    if rank_set.ranks.len() < 2 {
        return Ok(scores);
    }
    let costs = fitted.iter().map(|f| f.costs_in(rank_set.inside.as_ref())).collect::<Result<Vec<_>>>()?;
    let costs: Vec<&dyn CostModel> = costs.iter().map(AsRef::as_ref).collect();
    for &collective in collectives {
        let mut by_model: Vec<Vec<Case>> = fitted.iter().map(|_| Vec::new()).collect();
        for e in &experiments(rank_set, fitted, collective)? {
            let (Experiment::Collective { algorithm, ranks, bytes, .. }, Some(measured)) = (e, samples.median(e)) else { continue };
            let algorithm = collective.algorithm(algorithm)?.name;
            let predictions = predict_with_each(e, &costs, &rank_set.ranks, built)?;
            for (cases, predicted) in by_model.iter_mut().zip(predictions) {
                let (ratio, error) = (measured / predicted, (predicted / measured - 1.0).abs());
                let told = predicted > 0.0 && measured > 0.0 && ratio.is_finite() && error.is_finite();
                // what is lost and sent again tells nothing of a model
                if told && !is_missed(predicted, measured) {
                    cases.push(Case { algorithm, ranks: ranks.len(), bytes: *bytes, ratio, error });
                }
            }
        }
        for (f, cases) in fitted.iter().zip(by_model) {
            scores.models.push(summary(f, collective, rank_set, samples, &cases)?);
            let of_all = |c: &Case| c.ranks == rank_set.ranks.len();
            scores.of_all.extend(calibration(&f.model, collective, cases.iter().filter(|c| of_all(c))));
            // what was measured over the whole group only says little of its parts: a chain is as slow as its slowest host
            let of_part: BTreeSet<usize> = cases.iter().filter(|c| !of_all(c)).map(|c| c.bytes).collect();
            let known = cases.iter().filter(|c| of_part.is_empty() || of_part.contains(&c.bytes));
            scores.calibration.extend(calibration(&f.model, collective, known));
        }
    }
    Ok(scores)
}

fn summary(fitted: &Fitted, collective: &'static Collective, rank_set: &RankSet, samples: &Samples, cases: &[Case]) -> Result<ModelScore> {
    let mean_where = |keep: &dyn Fn(&Case) -> bool| stats::mean(&cases.iter().filter(|c| keep(c)).map(|c| c.error).collect::<Vec<_>>());
    let errors: Vec<f64> = cases.iter().map(|c| c.error).collect();
    let error = stats::mean(&errors);
    let variance = error.and_then(|error| stats::mean(&errors.iter().map(|e| (e - error).powi(2)).collect::<Vec<_>>())).unwrap_or(0.0);
    let bytes: Vec<usize> = sizes(cases.iter());
    let names = collective.built().map(|a| a.name);
    let by_algorithm = names.filter_map(|n| Some((n.to_string(), mean_where(&|c| c.algorithm == n)?))).collect();
    Ok(ModelScore {
        collective,
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

fn calibration<'a>(model: &str, collective: &'static Collective, cases: impl Iterator<Item = &'a Case>) -> Vec<Calibration> {
    let cases: Vec<&Case> = cases.collect();
    let of = |algorithm: &'static str| {
        let bytes = sizes(cases.iter().copied().filter(|c| c.algorithm == algorithm));
        let of_size = |b: usize| cases.iter().filter(|c| c.algorithm == algorithm && c.bytes == b).map(|c| c.ratio).collect::<Vec<_>>();
        let ratio: Vec<f64> = bytes.iter().filter_map(|&b| stats::median(&of_size(b))).collect();
        (!bytes.is_empty()).then(|| Calibration { collective, algorithm: algorithm.into(), model: model.into(), bytes, ratio })
    };
    collective.built().filter_map(|a| of(a.name)).collect()
}

/// The sizes of cases, ascending.
fn sizes<'a>(cases: impl Iterator<Item = &'a Case>) -> Vec<usize> {
    cases.map(|c| c.bytes).collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::bcast;

    #[test]
    fn segmented_algorithms_are_scored_with_short_middling_and_long_segments() {
        let all = experiments(&RankSet::new((0..9).collect()), &[], &bcast::COLLECTIVE).unwrap();
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
