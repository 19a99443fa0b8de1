//! Collectives without a message over all groups: ways that are predicted to be fast are measured beside the library's own.

use super::chosen::{Verdict, choosing, confirm, verdict};
use crate::collective::{COLLECTIVES, Collective, Parameters};
use crate::error::Result;
use crate::measure::{Experiment, Session};
use crate::plan::{Location, SignalPlan, SignalWay, signal_ways};
use crate::policy::{CompiledPolicy, Evidence, Policy, TwoLevelRow};
use crate::stats;
use std::collections::BTreeMap;

/// So many of the best predicted ways are measured, and the best one of each kind (over all ranks, through coordinators) is.
const FINALISTS: usize = 6;

/// Chooses a way for each collective without a message.
///
/// # Errors
/// The session's.
pub fn choose(session: &mut Session, policy: &Policy, members: &[Location]) -> Result<BTreeMap<&'static Collective, TwoLevelRow>> {
    let compiled = CompiledPolicy::new(policy.clone())?;
    let mut rows = BTreeMap::new();
    for collective in COLLECTIVES.into_iter().filter(|c| !c.sized()) {
        let ways = finalists(signal_ways(&compiled, members, collective)?);
        let experiments: Vec<Experiment> = ways.iter().map(|w| experiment(&w.way, members.len())).collect();
        let native = experiment(&SignalWay::Flat(collective, collective.native(), Parameters::default()), members.len());
        let field = [&experiments[..], if session.has_native() { std::slice::from_ref(&native) } else { &[] }].concat();
        session.race("collectives without a message", &[field])?;
        let mut found: Vec<(&SignalPlan, &Experiment, f64)> =
            ways.iter().zip(&experiments).filter_map(|(w, e)| Some((w, e, choosing(session.samples(), e)?))).collect();
        found.sort_by(|a, b| a.2.total_cmp(&b.2));
        let Some(&(best, experiment, time)) = found.first() else { continue };
        let runner_up = found.get(1);
        confirm(session, vec![(experiment.clone(), native.clone())])?;
        let Some(Verdict { own_s, native_s, native }) = verdict(session.samples(), experiment, &native) else { continue };
        let (algorithm, parameters, inside) = match &best.way {
            SignalWay::Flat(_, algorithm, parameters) => (algorithm.name.to_string(), *parameters, None),
            SignalWay::Coordinated(c) => (c.between.algorithm.clone(), c.between.parameters, Some(c.inside.clone())),
        };
        let row = TwoLevelRow {
            inter_group: algorithm,
            radix: parameters.radix,
            intra_radix: inside.as_ref().map_or(0, |i| i.parameters.radix),
            intra_group: inside.map(|i| i.algorithm),
            evidence: Evidence {
                predicted_s: best.predicted_s,
                measured_s: Some(own_s),
                native_s,
                runner_up: runner_up.map_or("none".into(), |r| r.0.way.words()),
                margin: runner_up.map_or(0.0, |r| stats::margin(r.2, time)),
            },
            native,
            ..TwoLevelRow::default()
        };
        rows.insert(collective, row);
    }
    Ok(rows)
}

/// The best ways, the best of each kind among them.
fn finalists(ways: Vec<SignalPlan>) -> Vec<SignalPlan> {
    let is_flat = |w: &SignalPlan| matches!(w.way, SignalWay::Flat(..));
    let first = [true, false].map(|flat| ways.iter().position(|w| is_flat(w) == flat));
    let wanted = |k: usize| k < FINALISTS || first.contains(&Some(k));
    ways.into_iter().enumerate().filter(|(k, _)| wanted(*k)).map(|(_, w)| w).collect()
}

fn experiment(way: &SignalWay, ranks: usize) -> Experiment {
    match way {
        SignalWay::Flat(collective, algorithm, parameters) => Experiment::Collective {
            collective,
            ranks: (0..ranks).collect(),
            root: 0,
            bytes: 0,
            algorithm: algorithm.name.into(),
            parameters: *parameters,
        },
        SignalWay::Coordinated(coordinated) => Experiment::Coordinated { coordinated: coordinated.clone() },
    }
}
