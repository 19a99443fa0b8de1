//! Rows across groups for all sizes, from the schedules that were measured at some.

use super::across::{BCAST_SIZES, Candidate};
use crate::decide::{CLOSE, Made, is_native_between, nearest, rows};
use crate::error::Result;
use crate::plan::{Flow, Predictions, TwoLevelChoice, TwoLevelParameters, choice_name, protocol_changes_of};
use crate::policy::{Evidence, NO_OTHER, PER_GROUP, TwoLevelRow};
use crate::stats;
use crate::topology::Rank;
use crate::two_level::InterGroupAlgorithm;

/// The schedules that were measured at one size, and the row that was made of the best.
pub(super) struct OfSize<'a> {
    /// All of them, each with its time; the first is taken.
    pub measured: Vec<(&'a Candidate, f64)>,
    pub row: TwoLevelRow,
    /// Ours is taken for what the library's own takes from another root.
    pub elsewhere: bool,
}

/// The rows of the first rank as the root: those that were made, and others between them where another way is predicted to be the best.
pub(super) fn between_sizes(predictions: &Predictions, root: Rank, of_sizes: &[OfSize]) -> Result<Vec<TwoLevelRow>> {
    let made: Vec<Made<TwoLevelChoice>> = of_sizes
        .iter()
        .filter_map(|of_size| {
            let bytes = of_size.row.at_bytes;
            let best = of_size.measured.first()?;
            Some(Made {
                bytes,
                taken: Some(choice_at(best.0, bytes)),
                measured: of_size.measured.iter().map(|(c, time)| (choice_at(c, bytes), c.predicted, *time)).collect(),
                native_s: None,
            })
        })
        .collect();
    let predict = |choice: &TwoLevelChoice, bytes: usize, limit_s: f64| predictions.of_choice(root, choice, bytes, limit_s);
    let (sizes, native): (Vec<usize>, Vec<f64>) = of_sizes.iter().filter_map(|s| Some((s.row.at_bytes, s.row.evidence.native_s?))).unzip();
    // the library's own that was taken though a call of it takes longer alone is preferred as far as a row holds
    let is_preferred = |s: &OfSize| s.row.native && s.row.evidence.native_s.is_some_and(|native| s.measured[0].1 < native);
    let mut found = Vec::new();
    let alike = |a: &TwoLevelChoice, b: &TwoLevelChoice| choice_name(a) == choice_name(b);
    let changes = protocol_changes_of(predictions.policy(), BCAST_SIZES[BCAST_SIZES.len() - 1]);
    for row in rows(&made, &changes, CLOSE, predict, alike)? {
        found.push(match of_sizes.iter().find(|s| s.row.at_bytes == row.at) {
            Some(made) => TwoLevelRow { from_bytes: row.from, ..made.row.clone() },
            None => {
                let native_s = (!sizes.is_empty()).then(|| stats::interpolate(&sizes, &native, row.at));
                let nearest = nearest(of_sizes, |s| s.row.at_bytes, row.at, &changes);
                let below = of_sizes.iter().rev().find(|s| s.row.at_bytes < row.at);
                let beside: Vec<&OfSize> = below.into_iter().chain(of_sizes.iter().find(|s| s.row.at_bytes > row.at)).collect();
                let elsewhere = beside.iter().any(|s| s.elsewhere) && beside.iter().all(|s| !s.row.native);
                let (preferred, taken) = (nearest.is_some_and(is_preferred), nearest.is_some_and(|s| s.row.native));
                let native = native_s.filter(|_| !elsewhere);
                let native = native.is_some_and(|native| is_native_between(row.seconds, native, taken, preferred));
                let evidence = Evidence { predicted_s: row.seconds, native_s, runner_up: NO_OTHER.into(), ..Evidence::default() };
                row_of_routes(&row.taken.flatten(), row.from, row.at, evidence, native)
            }
        });
    }
    Ok(found)
}

/// A candidate's schedule, in one piece where the message is no longer than a segment.
pub(super) fn choice_at(candidate: &Candidate, bytes: usize) -> TwoLevelChoice {
    candidate.choice.map(|choice| {
        if choice.segment < bytes {
            choice
        } else {
            TwoLevelParameters { segment: 0, flow: Flow { in_flight: 0, intra_in_flight: 0, ..choice.flow }, ..choice }
        }
    })
}

/// The row of a broadcast's schedule.
pub(super) fn row_of_routes(choice: &TwoLevelChoice, from_bytes: usize, at_bytes: usize, evidence: Evidence, native: bool) -> TwoLevelRow {
    let flow = choice.map_or(Flow::default(), |w| w.flow);
    TwoLevelRow {
        from_bytes,
        at_bytes,
        inter_group: choice.map_or(InterGroupAlgorithm::Tree, |w| w.inter_group).name().into(),
        segment_bytes: choice.map_or(0, |w| w.segment),
        in_flight: flow.in_flight,
        peers: flow.peers,
        intra_in_flight: flow.intra_in_flight,
        intra_peers: flow.intra_peers,
        by_speed: choice.is_some_and(|w| w.by_speed),
        intra_group: Some(choice.map_or(PER_GROUP, |w| w.intra_group.name).into()),
        evidence,
        native,
        ..TwoLevelRow::default()
    }
}
