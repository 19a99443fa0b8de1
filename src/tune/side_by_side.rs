//! Whether groups can be measured side by side.

use super::Group;
use crate::collective::{Parameters, bcast};
use crate::error::Result;
use crate::library::Library;
use crate::measure::{Experiment, Session};
use crate::stats;

/// Of so long broadcasts: what their bytes take of a processor that hosts share shows.
const BYTES: usize = 16 << 10;
/// So often, since the ones far away begin later.
const RUNS: usize = 64;
/// So many groups are looked at, at most.
const CHECKED: usize = 8;
/// Broadcasts inside groups that take so many times as long beside those of other groups as alone disturb each other. In turns all takes as many times as long
/// as there are groups, but for what is disturbed.
const DISTURBED: f64 = 1.5;

/// Where groups disturb each other, as where one machine emulates their hosts, they take turns from now on.
///
/// # Errors
/// The session's.
pub(super) fn check(session: &mut Session, groups: &[Group]) -> Result<()> {
    let long = |group: &Group| Experiment::Collective {
        collective: &bcast::COLLECTIVE,
        ranks: group.rank_set.ranks.clone(),
        root: 0,
        bytes: BYTES,
        algorithm: bcast::COLLECTIVE.fallback.name.into(),
        parameters: Parameters::default(),
    };
    let several: Vec<&Group> = groups.iter().filter(|group| group.rank_set.ranks.len() > 1).collect();
    let all: Vec<Experiment> = several.iter().copied().step_by(several.len().div_ceil(CHECKED).max(1)).map(long).collect();
    // simulated hosts have processors of their own
    let is_simulated = [Library::Simulator, Library::Smpi].contains(&Library::of(&session.settings().library));
    if all.len() < 2 || is_simulated || !session.is_side_by_side() || !session.can_measure() {
        return Ok(());
    }
    // not kept: what was disturbed tells nothing else
    let mut ratios = session.beside(&all, RUNS)?;
    for (ratio, experiment) in ratios.iter_mut().zip(&all) {
        *ratio /= session.alone(experiment)?.max(f64::MIN_POSITIVE);
    }
    let ratio = stats::median(&ratios).unwrap_or(1.0);
    tracing::debug!("long broadcasts inside groups take {ratio:.2} times as long beside those of other groups as alone");
    if ratio > DISTURBED {
        let mut group_of = vec![0; session.ranks()];
        for (k, group) in groups.iter().enumerate() {
            group.rank_set.ranks.iter().for_each(|&rank| group_of[rank] = k);
        }
        session.take_turns(group_of);
    }
    Ok(())
}
