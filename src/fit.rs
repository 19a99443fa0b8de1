//! Fitting: measures what the models need and gives each one's parameters.

use crate::collective::{Algorithm, Built, Parameters, Shape};
use crate::error::{Error, Result};
use crate::measure::{Experiment, Samples, Session};
use crate::model::{Among, Compute, CostModel, Fitted, Inside, Lookup, Model, RankSet};
use crate::predict::{Repeats, completion, pipelined, replay};
use crate::stats;
use crate::topology::Rank;

/// Bootstrap resamples behind each confidence interval.
pub const REPLICATES: usize = 100;

/// Measures and fits models for several groups at once; experiments of different groups run side by side. Gives, by group, the
/// models that could be fitted (a model that needs more ranks than a group has is left out).
///
/// # Errors
/// The session's.
pub fn fit_groups(session: &mut Session, rank_sets: &[&RankSet], models: &[&'static Model]) -> Result<Vec<Vec<Fitted>>> {
    let fits = |r: &RankSet, m: &&'static Model| r.ranks.len() >= m.least_ranks;
    // those of which everything is known stay so
    let mut open = rank_sets.to_vec();
    loop {
        let lookup = Lookup::new(session.samples());
        let of = |r: &RankSet| -> Vec<Experiment> {
            let all = models.iter().filter(|m| fits(r, m)).flat_map(|m| [(m.experiments)(r, &lookup), (m.held_out)(r)].concat());
            all.filter(|e| session.samples().get(e).is_none()).collect()
        };
        let mut wanted = Vec::new();
        open.retain(|rank_set| {
            let of_set = of(rank_set);
            let is_open = !of_set.is_empty();
            wanted.extend(of_set);
            is_open
        });
        if wanted.is_empty() {
            break;
        }
        // the largest warms a connection for all others
        wanted.sort_by_key(|e| std::cmp::Reverse(e.bytes()));
        session.measure("models", &wanted)?;
    }
    let fit = |(k, rank_set): (usize, &&RankSet)| {
        let one = |m: &&'static Model| {
            let fitted = fit_one(m, rank_set, session.samples(), k as u64);
            if fitted.is_none() {
                let why = if fits(rank_set, m) { "samples give no parameters".into() } else { format!("it wants {} ranks", m.least_ranks) };
                tracing::debug!("model {} is left out for ranks {:?}: {why}", m.name, rank_set.ranks);
            }
            fitted
        };
        models.iter().filter_map(one).collect()
    };
    Ok(rank_sets.iter().enumerate().map(fit).collect())
}

/// What copying and combining takes in each group: its first rank, for all, or each one where processors differ. Of a recording that does not say it
/// nothing is known.
///
/// # Errors
/// The session's.
pub fn fit_compute(session: &mut Session, rank_sets: &[&RankSet]) -> Result<Vec<Vec<Compute>>> {
    let who = |r: &&RankSet| {
        let unlike = r.inside.as_ref().is_some_and(Inside::has_unlike_processors);
        r.ranks[..if unlike { r.ranks.len() } else { 1 }].to_vec()
    };
    let ranks: Vec<Vec<Rank>> = rank_sets.iter().map(who).collect();
    if session.can_measure() {
        let all: Vec<Experiment> = ranks.iter().flatten().flat_map(|&rank| Compute::experiments(rank)).collect();
        session.measure("copying and combining", &all)?;
    }
    let of = |ranks: &Vec<Rank>| {
        let each: Vec<Compute> = ranks.iter().map(|&rank| Compute::measured(rank, session.samples())).collect::<Option<_>>()?;
        // processors that send unlike may compute alike: one says it of all
        let alike = each.iter().all(|one| *one == each[0]);
        Some(if alike { each[..1].to_vec() } else { each })
    };
    Ok(ranks.iter().map(|ranks| of(ranks).unwrap_or_default()).collect())
}

/// Fits one model; of several estimators the one that predicts the held-out experiments best.
pub fn fit_one(model: &'static Model, rank_set: &RankSet, samples: &Samples, seed: u64) -> Option<Fitted> {
    let mut fitted = model.fit(rank_set, samples, REPLICATES, &mut stats::random(seed));
    let held_out = (model.held_out)(rank_set);
    let residual = |f: &Fitted| {
        // what cannot predict one of them is not the best
        let error = |e: &Experiment, median: f64| predict(e, f, &rank_set.ranks).map_or(f64::INFINITY, |time| (time / median - 1.0).abs());
        let errors: Vec<f64> = held_out.iter().filter_map(|e| Some(error(e, samples.median(e)?))).collect();
        stats::mean(&errors).unwrap_or(f64::INFINITY)
    };
    if fitted.len() > 1 {
        let residuals: Vec<f64> = fitted.iter().map(residual).collect();
        let best = (0..fitted.len()).min_by(|&a, &b| residuals[a].total_cmp(&residuals[b]))?;
        return Some(fitted.swap_remove(best));
    }
    fitted.pop()
}

/// What a fitted model says an experiment takes, a pipeline by its first segments; `members` are the ranks of the group in the order of its positions.
///
/// # Errors
/// A rank outside the group, or a model that lacks parameters.
pub fn predict(experiment: &Experiment, fitted: &Fitted, members: &[Rank]) -> Result<f64> {
    predict_with(experiment, fitted.costs()?.as_ref(), members)
}

/// As [`predict`], for costs at hand.
///
/// # Errors
/// A rank outside the group.
pub fn predict_with(experiment: &Experiment, costs: &dyn CostModel, members: &[Rank]) -> Result<f64> {
    Ok(predict_with_each(experiment, &[costs], members, &Built::default())?[0])
}

/// As [`predict_with`], for each of several; `built`: for predictions of other groups.
///
/// # Errors
/// As there.
pub fn predict_with_each<'a>(experiment: &Experiment, all: &[&'a dyn CostModel], members: &[Rank], built: &Built) -> Result<Vec<f64>> {
    let position = |r: &Rank| members.iter().position(|m| m == r);
    let positions: Vec<usize> = experiment
        .ranks()
        .iter()
        .map(position)
        .collect::<Option<_>>()
        .ok_or_else(|| Error::invalid("predict an experiment of ranks outside the group"))?;
    let among = |&inner: &&'a dyn CostModel| Among { inner, positions: positions.clone() };
    if let Some(pipeline) = Pipeline::of(experiment)?.filter(|_| !all.iter().any(|costs| costs.loses())) {
        return all.iter().map(|costs| pipeline.seconds(&among(costs), built)).collect();
    }
    let schedule = experiment.schedule()?;
    let seconds = |costs| {
        let costs = among(costs);
        // when each operation was over is kept only where that is asked for
        if experiment.is_collective() && !costs.loses() {
            return completion(&schedule, &costs);
        }
        let traces = replay(&schedule, &costs)?.traces;
        Ok(experiment.seconds(&traces.iter().collect::<Vec<_>>()))
    };
    all.iter().map(seconds).collect()
}

/// A collective in segments each of which goes along the same ways: it is predicted by the first of them, as where it is chosen.
struct Pipeline {
    algorithm: &'static Algorithm,
    shape: Shape,
    parameters: Parameters,
    repeats: Repeats,
}

impl Pipeline {
    /// `None` of what is none.
    fn of(experiment: &Experiment) -> Result<Option<Pipeline>> {
        let Experiment::Collective { collective, ranks, root, bytes, algorithm, parameters } = experiment else { return Ok(None) };
        let algorithm = collective.algorithm(algorithm)?;
        let repeats = Repeats { segment: collective.repeats(algorithm, parameters), turn: 1, in_flight: parameters.in_flight };
        let pipeline = Pipeline { algorithm, shape: collective.shape(ranks.len(), *root, *bytes), parameters: *parameters, repeats };
        Ok((repeats.segment > 0).then_some(pipeline))
    }

    fn seconds(&self, costs: &Among, built: &Built) -> Result<f64> {
        let schedule = |bytes| built.to_predict(self.algorithm, &Shape { bytes, ..self.shape }, &self.parameters);
        pipelined(self.shape.bytes, self.repeats, costs, f64::INFINITY, schedule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::bcast;
    use crate::model::Cost;
    use crate::topology::Link;

    struct Affine;

    impl CostModel for Affine {
        fn cost(&self, _: Link, bytes: usize) -> Cost {
            let gap = 8e-6 + 8.5e-9 * bytes as f64;
            Cost { send_overhead: 5e-6, gap, link_gap: gap, transit: 40e-6 + gap, recv_overhead: 6e-6 }
        }
    }

    #[test]
    fn pipelines_are_predicted_by_their_first_segments_and_take_what_all_of_them_do() {
        let mut pipelines = 0;
        for algorithm in bcast::ALGORITHMS.iter().filter(|a| a.segmented) {
            for (segment, in_flight) in [(1 << 10, 0), (1 << 10, 12), (12 << 10, 3)] {
                let parameters = Parameters { in_flight, ..Parameters::of(segment, 0) };
                let (ranks, collective) = ((0..9).collect::<Vec<Rank>>(), &bcast::COLLECTIVE);
                let e = Experiment::Collective { collective, ranks, root: 0, bytes: 100_000, algorithm: algorithm.name.into(), parameters };
                let members: Vec<Rank> = (0..9).collect();
                let found = predict_with(&e, &Affine, &members).unwrap();
                let whole = completion(&e.schedule().unwrap(), &Affine).unwrap();
                // where many are under way the first segments of all of it are shorter than the others, and of its first ones none is
                assert!((found / whole - 1.0).abs() < 0.03, "{} in {segment}, {in_flight} under way: {found} for {whole}", algorithm.name);
                pipelines += usize::from(Pipeline::of(&e).unwrap().is_some());
            }
        }
        assert!(pipelines > 6);
    }
}
