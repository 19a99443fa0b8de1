//! Contention of an alltoall whose blocks are all sent at once, after Barchet-Estefanel and Mounie 2004: the ratio gamma says where between a lower bound
//! and an upper one it lies, `T = L + gamma (max(U, L) - L)`. It is fitted at one number of ranks, and validated at the others that were measured.

use crate::collective::{Parameters, alltoall};
use crate::error::Result;
use crate::measure::{Experiment, Samples};
use crate::model::{CostModel, PLOGP, RankSet};
use crate::plan::{Location, PolyModel};
use crate::policy::CompiledPolicy;
use crate::score::rank_counts;
use crate::stats::{self, excess};
use crate::topology::{Link, Rank};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The contention of one group, or of all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contention {
    /// The group; `None`: over several groups.
    pub group: Option<String>,
    /// 0: as if nobody shared anything; 1: as if nothing went on while a port is busy; above, where links or switches are shared.
    pub gamma: f64,
    /// The number of ranks that it was fitted at.
    pub fitted_ranks: usize,
    /// How well it predicts, at that number of ranks and at all others that were measured.
    pub errors: Vec<CountError>,
}

/// How well gamma predicts alltoalls of one number of ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CountError {
    /// The number of ranks.
    pub ranks: usize,
    /// The sizes of blocks that were measured.
    pub bytes: Vec<usize>,
    /// Predicted / measured - 1 at each.
    pub errors: Vec<f64>,
    /// Median of their absolute values.
    pub error: Option<f64>,
}

/// Blocks that alltoalls are measured with at both numbers of ranks, as far as a group has room for them: no choice is made at these sizes, since what is
/// measured again after a choice would change it.
const BETWEEN_SIZES: [usize; 4] = [600, 9 << 10, 72 << 10, 4 << 20];

/// What [`contention`] wants to know: an alltoall of all ranks of each group, and of about half of them.
pub fn experiments(rank_sets: &[RankSet]) -> Vec<Experiment> {
    let (collective, algorithm) = (&alltoall::COLLECTIVE, alltoall::DIRECT.name);
    let of = |ranks: &[Rank], bytes| Experiment::Collective {
        collective,
        ranks: ranks.to_vec(),
        root: 0,
        bytes,
        algorithm: algorithm.into(),
        parameters: Parameters::default(),
    };
    let of_group = |r: &RankSet| {
        let counts = rank_counts(r.ranks.len());
        let with = |count: usize| {
            collective
                .tuned_sizes(&BETWEEN_SIZES, r.ranks.len())
                .into_iter()
                .map(move |bytes| of(&r.ranks[..count], bytes))
                .collect::<Vec<_>>()
        };
        counts.into_iter().flat_map(with).collect::<Vec<_>>()
    };
    rank_sets.iter().flat_map(of_group).collect()
}

/// A measured alltoall with its bounds.
struct Case {
    ranks: usize,
    bytes: usize,
    measured: f64,
    lower: f64,
    /// From the lower bound to the upper one.
    width: f64,
}

/// Fits gamma in each group, and over all of them, by the alltoalls that were measured there with all blocks sent at once. A place whose bounds
/// are one, since its model has no overheads of its own, has none.
///
/// # Errors
/// A policy that lacks a link.
pub fn contention(policy: &CompiledPolicy, members: &[Location], samples: &Samples) -> Result<Vec<Contention>> {
    let mut places: BTreeMap<Option<usize>, Vec<Case>> = BTreeMap::new();
    for sample in samples.iter() {
        let Experiment::Collective { collective, ranks, bytes, algorithm, .. } = &sample.experiment else { continue };
        if *collective != &alltoall::COLLECTIVE || collective.algorithm(algorithm)? != alltoall::DIRECT {
            continue;
        }
        let Some(measured) = stats::median(&sample.all()).filter(|&time| time > 0.0) else { continue };
        let among: Vec<Location> = ranks.iter().map(|&rank| members[rank]).collect();
        let group = Some(among[0].group).filter(|&group| among.iter().all(|m| m.group == group));
        // in a group without that model, by the selected one
        let (lower, upper) =
            bounds(&PolyModel::with(policy, &among, &alltoall::COLLECTIVE, *bytes, Some(PLOGP.name))?, among.len(), *bytes);
        let width = upper.max(lower) - lower;
        places.entry(group).or_default().push(Case { ranks: among.len(), bytes: *bytes, measured, lower, width });
    }
    let of_place = |(group, cases): (Option<usize>, Vec<Case>)| {
        let counts: BTreeSet<usize> = cases.iter().map(|c| c.ranks).collect();
        let of = |ranks: usize| cases.iter().filter(move |c| c.ranks == ranks);
        // most is known of all ranks, where ways are chosen
        let fitted_ranks = counts.last().copied()?;
        let gamma = fit(of(fitted_ranks))?;
        let name = group.map(|g| policy.policy.groups[g].name.clone());
        let errors = counts.iter().rev().map(|&ranks| error(ranks, gamma, of(ranks))).collect();
        Some(Contention { group: name, gamma, fitted_ranks, errors })
    };
    Ok(places.into_iter().filter_map(of_place).collect())
}

/// The least squares of what is missed, as shares of what was measured: else the largest blocks alone would decide.
fn fit<'a>(cases: impl Iterator<Item = &'a Case>) -> Option<f64> {
    let (mut over, mut under) = (0.0, 0.0);
    for c in cases {
        let (width, above) = (c.width / c.measured, (c.measured - c.lower) / c.measured);
        over += width * above;
        under += width * width;
    }
    Some(over / under).filter(|gamma| gamma.is_finite())
}

fn error<'a>(ranks: usize, gamma: f64, cases: impl Iterator<Item = &'a Case>) -> CountError {
    let missed: Vec<(usize, f64)> = cases.filter_map(|c| Some((c.bytes, excess(c.lower + gamma * c.width, c.measured)?))).collect();
    let (bytes, errors): (Vec<usize>, Vec<f64>) = missed.into_iter().unzip();
    let error = stats::median(&errors.iter().map(|e| e.abs()).collect::<Vec<_>>());
    CountError { ranks, bytes, errors, error }
}

/// The bounds of an alltoall of blocks of m bytes, all sent at once: `(P-1) (os(m) + or(m)) + L` where ports never wait, `(P-1) (g(m) + or(m)) + L` where
/// nothing is received while one sends; of the rank for which they are the highest.
fn bounds(costs: &dyn CostModel, ranks: usize, bytes: usize) -> (f64, f64) {
    let of_rank = |me: usize| {
        let (mut lower, mut upper, mut latency) = (0.0, 0.0, 0.0f64);
        for peer in (0..ranks).filter(|&peer| peer != me) {
            let out = costs.cost(Link { from: me, to: peer }, bytes);
            let into = costs.cost(Link { from: peer, to: me }, bytes);
            lower += out.send_overhead + into.recv_overhead;
            upper += out.gap + into.recv_overhead;
            latency = latency.max(into.transit - into.gap);
        }
        (lower + latency, upper + latency)
    };
    (0..ranks).map(of_rank).fold((0.0, 0.0), |(lower, upper), of| (f64::max(lower, of.0), f64::max(upper, of.1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Session, SimulatedProbe};
    use crate::plan::members;
    use crate::platform::{Placement, Platform};
    use crate::tune::{TuneOptions, tune};

    /// What is found among 21 hosts whose processors take this share of the time that their ports take, which is `fixed` seconds and 10 ns a byte.
    fn found(share: f64, fixed: f64) -> Contention {
        let processor = |end: &str| format!("{end}_overhead_s = {}\n{end}_overhead_s_per_byte = {}\n", fixed * share, 1e-8 * share);
        let hosts = format!("[hosts]\n{}{}gap_s = {fixed}\ngap_s_per_byte = 1e-8\n", processor("send"), processor("recv"));
        let group = "[noise]\nsigma = 0.02\n[[group]]\nname = \"g\"\ncount = 21\nlatency_s = 4e-5\n";
        let platform = Platform::parse("t", &format!("format = 1\nname = \"t\"\n{hosts}{group}")).unwrap();
        let mut probe = SimulatedProbe::new(&platform, Placement::Slot, 1).unwrap();
        let mut session = Session::new(&mut probe);
        let (_, policy) = tune(&mut session, TuneOptions { collectives: &[&alltoall::COLLECTIVE], ..TuneOptions::default() }).unwrap();
        let (members, policy) = (members(&policy, &session.settings().hosts).unwrap(), CompiledPolicy::new(policy).unwrap());
        contention(&policy, &members, session.samples()).unwrap().swap_remove(0)
    }

    /// All send to the same rank, then to the next, and a port takes as long in as out: the last rank hears the first of the others when these have sent to
    /// all before it, and then as long again. That is `(2 P - 3) g`, where the bounds are `2 (P-1) os` and `(P-1) (g + os)`.
    #[test]
    fn gamma_is_that_of_the_platform_at_other_numbers_of_ranks_too() {
        for share in [0.1, 0.3] {
            let found = found(share, 1e-7);
            let gamma = (2.0 - 1.0 / 20.0 - 2.0 * share) / (1.0 - share);
            assert!((found.gamma / gamma - 1.0).abs() < 0.1, "{gamma}: {found:?}");
            let counts: Vec<usize> = found.errors.iter().map(|e| e.ranks).collect();
            assert_eq!((found.fitted_ranks, counts), (21, vec![21, 11]));
            assert!(found.errors.iter().all(|e| e.bytes.len() >= 3 && e.error.unwrap() < 0.1), "{found:?}");
        }
    }

    /// Short messages are held back by what each of them takes to send, of which ports take nothing in: one gamma for all sizes is a mean.
    #[test]
    fn one_gamma_for_short_and_long_blocks_predicts_within_a_fifth() {
        let found = found(0.1, 1e-5);
        assert!(found.errors.iter().all(|e| e.error.unwrap() < 0.2), "{found:?}");
    }

    #[test]
    fn gamma_is_what_was_put_in() {
        let case = |ranks: usize, bytes: usize| {
            let (lower, width) = ((ranks - 1) as f64 * 1e-9 * bytes as f64 + 5e-5, (ranks - 1) as f64 * 7e-9 * bytes as f64);
            Case { ranks, bytes, measured: lower + 0.4 * width, lower, width }
        };
        let cases: Vec<Case> = [100, 10_000, 1_000_000].map(|bytes| case(20, bytes)).into();
        let gamma = fit(cases.iter()).unwrap();
        assert!((gamma - 0.4).abs() < 1e-12, "{gamma}");
        let other = error(11, gamma, [case(11, 5000)].iter());
        assert!(other.error.unwrap() < 1e-12, "{other:?}");
        assert_eq!(fit([Case { width: 0.0, ..case(9, 10) }].iter()), None, "bounds that are one say nothing");
    }
}
