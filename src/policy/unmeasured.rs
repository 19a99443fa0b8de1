//! Groups that were measured with one rank: what several ranks there send each other nobody measured.

use super::{CompiledPolicy, Decision, LinkPolicy, NO_OTHER};
use crate::collective::{Built, Collective, Parameters};
use crate::decide::{Knowledge, Wanted, all_candidates, rank_candidates};
use crate::error::Result;

impl CompiledPolicy {
    /// The other end of a group's shortest link, and the link: what messages inside a group that was measured with one rank take is estimated by it, since
    /// no way inside a host is longer. Nothing for other groups, and for one without links, of which nothing is known.
    pub fn estimated_by(&self, group: usize) -> Option<(usize, &LinkPolicy)> {
        let g = self.policy.groups.get(group).filter(|g| g.models.is_empty())?;
        let links = self.policy.links.iter().filter(|link| link.between.contains(&g.name));
        let link = links.min_by(|a, b| a.latency_s.total_cmp(&b.latency_s))?;
        let other = link.between.iter().find(|name| **name != g.name)?;
        Some((self.policy.groups.iter().position(|g| g.name == *other)?, link))
    }

    /// What is done in such a group is left to the library's own, of which is said what the best of ours would take if messages took as long as they are
    /// estimated to; for ever where there is nothing to estimate them by.
    ///
    /// # Errors
    /// Those of predictions.
    pub(super) fn decide_unmeasured(
        &self,
        collective: &'static Collective,
        group: usize,
        positions: &[usize],
        bytes: usize,
    ) -> Result<Decision> {
        let estimated_by = self.estimated_by(group).map(|(other, _)| self.policy.groups[other].name.clone());
        Ok(Decision {
            collective,
            algorithm: collective.native(),
            parameters: Parameters::default(),
            model: "none".into(),
            predicted_s: self.estimated_seconds(collective, group, positions.len(), bytes)?,
            runner_up: NO_OTHER.into(),
            margin: 0.0,
            from_row: false,
            places: None,
            estimated_by,
        })
    }

    pub(super) fn estimated_seconds(&self, collective: &'static Collective, group: usize, ranks: usize, bytes: usize) -> Result<f64> {
        let Some((_, link)) = self.estimated_by(group) else { return Ok(f64::INFINITY) };
        let knowledge =
            Knowledge { models: std::slice::from_ref(&link.model), scores: &[], calibration: &[], inside: None, built: &Built::default() };
        // each as if it were at the link's other end
        let positions = vec![0; ranks];
        let (_, ranked) =
            rank_candidates(knowledge, collective, &positions, bytes, &all_candidates(collective, ranks, bytes), Wanted::Fastest(1))?;
        Ok(ranked.first().map_or(f64::INFINITY, |best| best.predicted))
    }
}
