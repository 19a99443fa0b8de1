//! How well collectives were predicted: each one that tuning measured, those of one that go over all groups under each model, and what it would have cost to
//! trust the predictions alone.

use crate::collective::{Collective, Parameters};
use crate::decide::placed;
use crate::error::Result;
use crate::measure::{Experiment, Samples};
use crate::plan::{Location, PolyModel, plan};
use crate::policy::CompiledPolicy;
use crate::predict::completion;
use crate::stats::{self, excess};
use crate::topology::Rank;
use crate::two_level::has_routes;
use serde::Serialize;
use std::collections::BTreeMap;

/// One size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeAccuracy {
    /// Size.
    pub bytes: usize,
    /// How many schedules were measured.
    pub schedules: usize,
    /// Median over the schedules of |predicted / measured - 1| with this model inside groups; `selected`: the selected model. A model
    /// of which it is not known, because all were measured to take no time, is not there.
    pub error: BTreeMap<String, f64>,
    /// How much longer the schedule that is predicted to be fastest, of those that a policy can say, takes than the fastest one, as a share; found and timed as in
    /// [`regrets`]. `None` where that one was measured to take no time, or a policy can say none.
    pub regret: Option<f64>,
}

/// The name under which the selected model is listed.
pub const SELECTED: &str = "selected";

/// Compares predictions with what was measured of a collective over all of several groups.
///
/// # Errors
/// An algorithm that there is not.
pub fn accuracy(
    policy: &CompiledPolicy,
    members: &[Location],
    samples: &Samples,
    collective: &'static Collective,
) -> Result<Vec<SizeAccuracy>> {
    let mut names: Vec<String> = vec![SELECTED.into()];
    for model in policy.policy.groups.iter().flat_map(|g| &g.models) {
        if !names.contains(&model.model) {
            names.push(model.model.clone());
        }
    }
    let mut by_size: BTreeMap<usize, Vec<Predicted>> = BTreeMap::new();
    for sample in samples.iter() {
        let experiment = &sample.experiment;
        let among: Vec<Location> = experiment.ranks().into_iter().map(|rank| members[rank]).collect();
        let over_all = among.len() == members.len() && among.iter().any(|m| m.group != among[0].group);
        let (Some(measured), Some(halves)) = (stats::median(&sample.all()), halves(&sample.all())) else { continue };
        // no model knows the library's own
        if experiment.collective() != Some(collective) || !over_all || experiment.is_native() || !is_from_first(experiment) {
            continue;
        }
        let (schedule, bytes) = (experiment.schedule()?, experiment.bytes());
        let predict = |name: &String| {
            let model = Some(name.as_str()).filter(|n| *n != SELECTED);
            completion(&schedule, &PolyModel::with(policy, &among, collective, bytes, model)?)
        };
        let predicted = names.iter().map(predict).collect::<Result<_>>()?;
        by_size.entry(bytes).or_default().push(Predicted {
            measured,
            halves,
            predicted,
            is_choice: is_choice(experiment, collective, true),
        });
    }
    let of_size = |(bytes, schedules): (usize, Vec<Predicted>)| {
        let errors = |k: usize| schedules.iter().filter_map(|w| Some(excess(w.predicted[k], w.measured)?.abs())).collect::<Vec<_>>();
        let error = |k: usize| stats::median(&errors(k)).filter(|e| e.is_finite());
        SizeAccuracy {
            bytes,
            schedules: schedules.len(),
            error: names.iter().enumerate().filter_map(|(k, n)| Some((n.clone(), error(k)?))).collect(),
            regret: regret_of_predictions(&schedules),
        }
    };
    Ok(by_size.into_iter().map(of_size).collect())
}

/// True of a collective over all groups that is from the first rank, as choices are made: some are looked at from another root too, and what that takes is no rival's.
fn is_from_first(experiment: &Experiment) -> bool {
    experiment.ranks().get(experiment.timer()) == Some(&0)
}

/// How well a collective was predicted in one place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlaceAccuracy {
    /// The collective's name.
    pub collective: &'static str,
    /// The group inside which it was measured; `None`: over several groups.
    pub group: Option<String>,
    /// How many schedules of all sizes were measured.
    pub measured: usize,
    /// Median of |predicted / measured - 1|, by the selected models. `None` where all were measured to take no time.
    pub error: Option<f64>,
    /// Median of predicted / measured - 1: below 0 where predictions are too fast.
    pub bias: Option<f64>,
    /// Mean, over sizes and numbers of ranks, of [`SizeAccuracy::regret`].
    pub regret: Option<f64>,
}

/// Compares predictions with all collectives among some samples but the library's own, by collective, over several groups and inside each.
///
/// # Errors
/// An algorithm that there is not.
pub fn by_place(policy: &CompiledPolicy, members: &[Location], samples: &Samples) -> Result<Vec<PlaceAccuracy>> {
    let mut places: BTreeMap<(&'static Collective, Option<usize>), Fields> = BTreeMap::new();
    for sample in samples.iter() {
        let experiment = &sample.experiment;
        let Some(collective) = experiment.collective().filter(|_| !experiment.is_native()) else { continue };
        let (Some(measured), Some(halves)) = (stats::median(&sample.all()), halves(&sample.all())) else { continue };
        let among: Vec<Location> = experiment.ranks().into_iter().map(|rank| members[rank]).collect();
        let group = Some(among[0].group).filter(|&group| among.iter().all(|m| m.group == group));
        if group.is_none() && among.len() == members.len() && !is_from_first(experiment) {
            continue;
        }
        let (schedule, costs) = (experiment.schedule()?, PolyModel::new(policy, &among, collective, experiment.bytes())?);
        // where a policy does not say what combining takes, nobody can tell
        let predicted = completion(&schedule, &costs)?;
        if !predicted.is_finite() {
            continue;
        }
        let rivals = places.entry((collective, group)).or_default().entry((experiment.bytes(), among.len())).or_default();
        rivals.push(Predicted {
            measured,
            halves,
            predicted: vec![predicted],
            is_choice: is_choice(experiment, collective, group.is_none()),
        });
    }
    let of_place = |((collective, group), fields): ((&'static Collective, Option<usize>), Fields)| {
        let excesses: Vec<f64> = fields.values().flatten().filter_map(|w| excess(w.predicted[0], w.measured)).collect();
        PlaceAccuracy {
            collective: collective.name,
            group: group.map(|g| policy.policy.groups[g].name.clone()),
            measured: fields.values().map(Vec::len).sum(),
            error: stats::median(&excesses.iter().map(|e| e.abs()).collect::<Vec<_>>()),
            bias: stats::median(&excesses),
            regret: stats::mean(&fields.values().filter_map(|schedules| regret_of_predictions(schedules)).collect::<Vec<_>>()),
        }
    };
    Ok(places.into_iter().map(of_place).collect())
}

/// Those of one size among as many ranks are rivals.
type Fields = BTreeMap<(usize, usize), Vec<Predicted>>;

/// How much longer the choice that is predicted to be fastest takes than the fastest schedule, as a share, by the second half of their runs.
fn regret_of_predictions(schedules: &[Predicted]) -> Option<f64> {
    let predicted = schedules.iter().filter(|w| w.is_choice).min_by(|a, b| a.predicted[0].total_cmp(&b.predicted[0]))?;
    let fastest = schedules.iter().min_by(|a, b| a.halves[0].total_cmp(&b.halves[0]))?;
    excess(predicted.halves[1], fastest.halves[1])
}

/// True for what a policy can say: among several groups, a collective that has routes goes along one of them, and nobody chooses the plain algorithms that
/// `tune --exhaustive` measures beside them.
fn is_choice(experiment: &Experiment, collective: &Collective, over_groups: bool) -> bool {
    !(over_groups && has_routes(collective) && matches!(experiment, Experiment::Collective { .. }))
}

/// A schedule, measured and predicted by each model.
struct Predicted {
    measured: f64,
    /// See [`halves`].
    halves: [f64; 2],
    predicted: Vec<f64>,
    is_choice: bool,
}

/// What a choice of the policy costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChoiceRegret {
    /// The group inside which it was made; `None`: over all groups.
    pub group: Option<String>,
    /// The size that it was made at.
    pub bytes: usize,
    /// How many schedules for this size were measured there.
    pub measured: usize,
    /// How much longer it took than the fastest of them, as a share; below 0 where noise makes it so. `None` where that one was measured to
    /// take no time.
    pub regret: Option<f64>,
}

/// Compares the policy's choices with everything that was measured over the same ranks: after `tune --exhaustive` on the same samples, what
/// it cost to measure only what was predicted to be fast. The fastest of many noisy medians was a lucky one (the winner's curse), so the
/// fastest is found by the first half of each one's runs, and timed by the second.
///
/// # Errors
/// The policy lacks a link.
pub fn regrets(
    compiled: &CompiledPolicy,
    members: &[Location],
    samples: &Samples,
    collective: &'static Collective,
) -> Result<Vec<ChoiceRegret>> {
    let policy = &compiled.policy;
    // (group, size) -> how many; of the fastest, the first half and the second
    let mut measured: BTreeMap<(Option<usize>, usize), (usize, [f64; 2])> = BTreeMap::new();
    for sample in samples.iter().filter(|s| s.experiment.collective() == Some(collective)) {
        let (ranks, Some(times)) = (sample.experiment.ranks(), halves(&sample.all())) else { continue };
        let group = members[ranks[0]].group;
        let place = if ranks.len() == members.len() && policy.groups.len() > 1 {
            if !is_from_first(&sample.experiment) {
                continue;
            }
            None
        } else if ranks.len() == policy.groups[group].hosts.len() && ranks.iter().all(|&r| members[r].group == group) {
            Some(group)
        } else {
            continue;
        };
        let (count, best) = measured.entry((place, sample.experiment.bytes())).or_insert((0, [f64::INFINITY; 2]));
        *count += 1;
        if times[0] < best[0] {
            *best = times;
        }
    }
    let second = |e: &Experiment| samples.get(e).and_then(|s| halves(&s.all())).map(|times| times[1]);
    let regret = |group: Option<usize>, bytes: usize, time: Option<f64>| {
        let (measured, [_, best]) = *measured.get(&(group, bytes))?;
        let regret = excess(time?, best);
        Some(ChoiceRegret { group: group.map(|g| policy.groups[g].name.clone()), bytes, measured, regret })
    };
    let mut choices = Vec::new();
    for row in policy.two_level(collective) {
        let shape = collective.shape(members.len(), 0, row.at_bytes);
        let now = if row.native { None } else { second(&plan(compiled, members, collective, &shape)?.form.experiment(&shape)) };
        choices.extend(regret(None, row.at_bytes, now.or(if row.native { row.evidence.native_s } else { row.evidence.measured_s })));
    }
    for (k, group) in policy.groups.iter().enumerate() {
        let mut ranks: Vec<Rank> = (0..members.len()).filter(|&r| members[r].group == k).collect();
        ranks.sort_by_key(|&r| members[r].position);
        for row in group.rows(collective) {
            let (bytes, algorithm) = (row.at_bytes, row.algorithm.clone());
            // whoever measured it had the ranks in their places
            let positions: Vec<usize> = (0..ranks.len()).collect();
            let ranks = placed(&ranks, &compiled.decide(collective, k, &positions, bytes)?.places);
            let parameters = Parameters { by_speed: false, ..row.parameters() };
            let chosen = Experiment::Collective { collective, ranks, root: 0, bytes, algorithm, parameters };
            choices.extend(regret(Some(k), bytes, second(&chosen).or(row.evidence.measured_s)));
        }
    }
    Ok(choices)
}

/// The medians of the first half of some runs and of the second; of a single run, that one.
fn halves(seconds: &[f64]) -> Option<[f64; 2]> {
    let middle = seconds.len().div_ceil(2);
    Some([stats::median(&seconds[..middle])?, stats::median(&seconds[middle.min(seconds.len().saturating_sub(1))..])?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{bcast, reduce};

    #[test]
    fn predictions_are_trusted_of_what_a_policy_can_say() {
        let of = |predicted: f64, seconds: f64, is_choice: bool| Predicted {
            measured: seconds,
            halves: [seconds; 2],
            predicted: vec![predicted],
            is_choice,
        };
        let plain = of(1.0, 9.0, false);
        assert_eq!(regret_of_predictions(&[of(2.0, 3.0, true), plain, of(3.0, 2.0, true)]), Some(0.5));
        assert_eq!(regret_of_predictions(&[of(2.0, 3.0, true), of(4.0, 2.0, false)]), Some(0.5), "it is compared with all");
        assert_eq!(regret_of_predictions(&[of(2.0, 3.0, false)]), None);
        let plain = |collective: &'static Collective| Experiment::Collective {
            collective,
            ranks: vec![0, 1],
            root: 0,
            bytes: 8,
            algorithm: "binomial".into(),
            parameters: Parameters::default(),
        };
        for (collective, over_groups, said) in
            [(&bcast::COLLECTIVE, true, false), (&bcast::COLLECTIVE, false, true), (&reduce::COLLECTIVE, true, true)]
        {
            assert_eq!(is_choice(&plain(collective), collective, over_groups), said, "{}", collective.name);
        }
    }
}
