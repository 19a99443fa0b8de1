//! How well broadcasts over all groups were predicted: each one that tuning measured, under each model, and what it would have cost to
//! trust the predictions alone.

use crate::error::Result;
use crate::measure::{Experiment, Samples};
use crate::plan::{Member, PolyModel};
use crate::policy::CompiledPolicy;
use crate::predict::completion;
use crate::stats;
use serde::Serialize;
use std::collections::BTreeMap;

/// One size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeAccuracy {
    /// Size.
    pub bytes: usize,
    /// How many ways were measured.
    pub ways: usize,
    /// Median over the ways of |predicted / measured - 1| with this model inside groups; `trusted`: the model that selection trusts.
    pub error: BTreeMap<String, f64>,
    /// How much longer the way that is predicted to be fastest takes than the fastest one, as a share.
    pub regret: f64,
}

/// The name under which the model that selection trusts is listed.
pub const TRUSTED: &str = "trusted";

/// Compares predictions with the broadcasts over all groups among some samples.
///
/// # Errors
/// An algorithm that there is not.
pub fn accuracy(policy: &CompiledPolicy, members: &[Member], samples: &Samples) -> Result<Vec<SizeAccuracy>> {
    let mut names: Vec<String> = vec![TRUSTED.into()];
    for model in policy.policy.groups.iter().flat_map(|g| &g.models) {
        if !names.contains(&model.model) {
            names.push(model.model.clone());
        }
    }
    let mut by_size: BTreeMap<usize, Vec<(f64, Vec<f64>)>> = BTreeMap::new(); // measured, predicted by model
    for sample in samples.iter() {
        let (Experiment::Hierarchical { hierarchy }, Some(measured)) = (&sample.experiment, stats::median(&sample.seconds)) else {
            continue;
        };
        let schedule = hierarchy.schedule(members.len())?;
        let predict = |name: &String| {
            let model = Some(name.as_str()).filter(|n| *n != TRUSTED);
            completion(&schedule, &PolyModel::with(policy, members, hierarchy.bytes, model))
        };
        by_size.entry(hierarchy.bytes).or_default().push((measured, names.iter().map(predict).collect::<Result<_>>()?));
    }
    let of_size = |(bytes, ways): (usize, Vec<(f64, Vec<f64>)>)| {
        let errors = |k: usize| ways.iter().map(|(measured, predicted)| (predicted[k] / measured - 1.0).abs()).collect::<Vec<_>>();
        let chosen = ways.iter().min_by(|a, b| a.1[0].total_cmp(&b.1[0])).map_or(f64::NAN, |w| w.0);
        let best = ways.iter().map(|w| w.0).fold(f64::INFINITY, f64::min);
        SizeAccuracy {
            bytes,
            ways: ways.len(),
            error: names.iter().enumerate().filter_map(|(k, n)| Some((n.clone(), stats::median(&errors(k))?))).collect(),
            regret: chosen / best - 1.0,
        }
    };
    Ok(by_size.into_iter().map(of_size).collect())
}
