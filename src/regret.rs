//! Regret: how much longer the chosen algorithm takes than the best that could be run, on a simulated platform where everything
//! can be run.

use crate::collective::{Shape, bcast};
use crate::decide::all_candidates;
use crate::error::{Error, Result};
use crate::measure::SimulatedProbe;
use crate::policy::CompiledPolicy;
use crate::schedule::{Program, Schedule};
use crate::sim::{Disturbance, Simulator};
use crate::topology::Rank;
use serde::Serialize;

/// One held-out broadcast.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Case {
    /// The group.
    pub group: String,
    /// How many of its ranks.
    pub ranks: usize,
    /// Size.
    pub bytes: usize,
    /// What was chosen.
    pub chosen: String,
    /// Its true time.
    pub chosen_s: f64,
    /// What would have been best.
    pub best: String,
    /// Its true time.
    pub best_s: f64,
    /// `chosen_s / best_s - 1`; `None` where that is no number: the best took no time at all.
    pub regret: Option<f64>,
}

/// Sizes that no choice is made at.
pub const BYTES: [usize; 8] = [20, 300, 1500, 6000, 40_000, 200_000, 700_000, 2_500_000];

/// The regret of a policy in every group of a simulated platform, at held-out sizes and rank counts.
///
/// # Errors
/// A simulation that fails, which valid schedules do not.
pub fn regret(policy: &CompiledPolicy, probe: &SimulatedProbe, group_ranks: &[Vec<Rank>]) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (g, ranks) in group_ranks.iter().enumerate().filter(|(_, r)| r.len() > 1) {
        for p in held_out_counts(ranks.len()) {
            for bytes in BYTES {
                cases.push(case(policy, probe.simulator(), g, &ranks[..p], bytes)?);
            }
        }
    }
    Ok(cases)
}

/// All ranks of a group (where only the sizes are held out), and counts that no broadcast was measured at.
fn held_out_counts(n: usize) -> Vec<usize> {
    let mut counts = vec![n, n - 1, 3 * n / 4, n / 3];
    counts.retain(|&p| p >= 2 && (p == n || !crate::score::rank_counts(n).contains(&p)));
    counts.dedup();
    counts
}

fn case(policy: &CompiledPolicy, simulator: &Simulator, group: usize, ranks: &[Rank], bytes: usize) -> Result<Case> {
    let shape = Shape::new(ranks.len(), 0, bytes);
    let run = |schedule: &Schedule| -> Result<f64> {
        let mut all = Schedule { programs: vec![Program::new(); simulator.ranks()] };
        for (me, program) in schedule.programs.iter().enumerate() {
            all.programs[ranks[me]] = program.clone().renamed(|r| ranks[r]);
        }
        // where TCP loses messages by chance, the median of some runs is the truth
        let seeds = if simulator.is_random() { 0..9 } else { 0..1 };
        let once = |seed| -> Result<f64> {
            let traces = simulator.run(&all, &mut Disturbance::new(Default::default(), seed))?;
            Ok(traces.iter().map(crate::schedule::Trace::finish).fold(0.0, f64::max))
        };
        let times = seeds.map(once).collect::<Result<Vec<f64>>>()?;
        crate::stats::median(&times).ok_or_else(|| Error::data("simulate a broadcast: it was not run"))
    };
    let name = |a: &str, segment: usize| if segment > 0 { format!("{a} {segment}") } else { a.to_string() };
    let positions: Vec<usize> = (0..ranks.len()).collect();
    let decision = policy.decide(&bcast::COLLECTIVE, group, &positions, bytes)?;
    let chosen = decision.algorithm.schedule(&shape, &decision.parameters);
    let native = || Error::data(format!("simulate {}: the simulator has no library with a broadcast of its own", decision.algorithm.name));
    let chosen_s = run(&chosen.ok_or_else(native)?)?;
    let (mut best, mut best_s) = (name(decision.algorithm.name, decision.parameters.segment), chosen_s);
    for (algorithm, parameters) in all_candidates(&bcast::COLLECTIVE, bytes) {
        if let Some(schedule) = algorithm.schedule(&shape, &parameters) {
            let t = run(&schedule)?;
            if t < best_s {
                (best, best_s) = (name(algorithm.name, parameters.segment), t);
            }
        }
    }
    Ok(Case {
        group: policy.policy.groups[group].name.clone(),
        ranks: ranks.len(),
        bytes,
        chosen: name(decision.algorithm.name, decision.parameters.segment),
        chosen_s,
        best,
        best_s,
        regret: crate::stats::excess(chosen_s, best_s),
    })
}
