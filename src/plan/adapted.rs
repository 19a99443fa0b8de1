//! The way across groups where it is not as it was when the policy was made: the root is in another group, or not all ranks are there. It is
//! chosen anew, by prediction.

use super::across::{Flow, TwoLevelParameters, ways_of};
use super::candidates::{Way, WayCandidates, way_name};
use super::{Location, about_whole, group_ranks, way_of};
use crate::collective::bcast;
use crate::error::Result;
use crate::policy::{CompiledPolicy, TwoLevelRow};
use crate::topology::Rank;
use crate::two_level::{INTER_GROUP_ALGORITHMS, InterGroupAlgorithm};

/// Another way must be predicted to take so much less than the one that was measured, if in smaller or larger groups.
const CLEARLY: f64 = 0.95;
/// The same where only the root is another.
pub(super) const MORE_OR_LESS: f64 = 0.98;
/// Inter-group algorithms in which many messages are between groups at once. What these share is not known: predictions miss it, which says nothing of
/// others, and they are as good as measured, or not at all.
const SHARING: [InterGroupAlgorithm; 2] = [InterGroupAlgorithm::OverAll, InterGroupAlgorithm::Relay];
/// So many rows of near sizes say what predictions miss here.
const REACH: usize = 4;
/// What was measured of an inter-group algorithm at sizes at most so many times as far says something of it here.
const NEAR: usize = 4;
/// A way that no row says must be predicted to be faster by this share and half of what predictions of its inter-group algorithm missed, or, where that was
/// not measured, what they missed of any at most.
const LEAST_UNSURE: f64 = 0.01;
/// So many ways of other rows are predicted.
const MOST_OF_ROWS: usize = 8;
/// Where predictions of what was measured missed by more, the best of many predictions is most likely one that misses, and only what rows say is believed.
const MOST_UNSURE: f64 = 0.03;
/// Ways that no row says are predicted as long as all of them together have no more ranks than this: some 0.1 s.
const MOST_RANKS: usize = 1 << 14;
/// Such ways are tried first in segments of about an eighth of the message, no shorter and no longer than these.
const SEGMENTS: (usize, usize) = (4 << 10, 64 << 10);
/// Segments below this are not tried.
const LEAST_SEGMENT: usize = 1 << 10;

/// The way that a row says, or a better one: what rows of sizes near say, any inter-group algorithm with any tree, the best of these in longer or
/// shorter segments, or each group's own row (`None`). What predictions of these missed when they were measured, they are taken to miss here too.
///
/// # Errors
/// Those of [`super::seconds`].
pub(super) fn way(policy: &CompiledPolicy, members: &[Location], root: Rank, bytes: usize, row: &TwoLevelRow) -> Result<Way> {
    let mut search = Search::new(policy, members, root, bytes, row)?;
    search.try_way(None)?;
    search.rows(row)?;
    if search.unsure <= MOST_UNSURE {
        let left = (MOST_RANKS / members.len()).saturating_sub(search.tried());
        search.others(row, left)?;
        if search.tried() * members.len() < MOST_RANKS {
            search.segments()?;
        }
    }
    Ok(search.best())
}

struct Search<'a> {
    policy: &'a CompiledPolicy,
    members: &'a [Location],
    root: Rank,
    bytes: usize,
    /// What the row says.
    own: Way,
    /// What all rows say, those of the nearest sizes first.
    near: Vec<(Way, &'a TwoLevelRow)>,
    /// By how much a way that no row says must be predicted to be faster, as a share.
    unsure: f64,
    candidates: WayCandidates<'a>,
}

impl<'a> Search<'a> {
    fn new(policy: &'a CompiledPolicy, members: &'a [Location], root: Rank, bytes: usize, row: &TwoLevelRow) -> Result<Search<'a>> {
        let mut near: Vec<(Way, &TwoLevelRow)> = Vec::new();
        for row in policy.policy.two_level(&bcast::COLLECTIVE) {
            near.push((way_of(row)?, row));
        }
        near.sort_by_key(|(_, row)| apart(row, bytes));
        let own = way_of(row)?;
        let known = policy.policy.collectives.get(&bcast::COLLECTIVE).into_iter().flat_map(|all| &all.calibration);
        let known = known.filter(|(name, _)| SHARING.iter().all(|sharing| sharing.name() != *name)).map(|(_, ratios)| ratios);
        let of_rows = near.iter().filter_map(|(_, row)| Some(row.evidence.measured_s? / row.evidence.predicted_s));
        let missed = known.map(|ratios| ratios.at(bytes)).chain(of_rows.take(REACH)).map(|ratio| (ratio - 1.0).abs());
        let unsure = missed.filter(|share| share.is_finite()).fold(0.0, f64::max);
        let candidates = WayCandidates::new(policy, members, root, bytes);
        Ok(Search { policy, members, root, bytes, own, near, unsure, candidates })
    }

    /// What the row says, with any tree, and what rows of near sizes say.
    fn rows(&mut self, row: &TwoLevelRow) -> Result<()> {
        if let Some(own) = self.own {
            self.try_way(Some(own))?;
            for way in ways_of(self.policy, self.members, own.inter_group, &[own.segment]) {
                self.try_way(Some(TwoLevelParameters { flow: Flow { in_flight: row.in_flight, ..way.flow }, ..way }))?;
            }
        }
        let most = self.tried() + MOST_OF_ROWS;
        for way in self.near.iter().filter_map(|(way, _)| *way).collect::<Vec<_>>() {
            if way.segment < self.bytes && self.tried() < most {
                self.try_way(Some(way))?;
            }
        }
        Ok(())
    }

    /// Any inter-group algorithm with any tree, in segments such as the row's, as many as may be tried.
    fn others(&mut self, row: &TwoLevelRow, most: usize) -> Result<()> {
        let about = (self.bytes / 8).next_power_of_two().clamp(SEGMENTS.0, SEGMENTS.1);
        let segment = if row.segment_bytes > 0 { row.segment_bytes } else { about };
        let segment = if segment < self.bytes { segment } else { 0 };
        let segments = [segment];
        // where all groups but one have one rank, hardly anything is shared
        let with_several = group_ranks(self.members, self.root).iter().filter(|(_, ranks)| ranks.len() > 1).count();
        let between = INTER_GROUP_ALGORITHMS.into_iter().filter(|inter_group| with_several < 2 || !SHARING.contains(inter_group));
        let all = between.flat_map(|inter_group| ways_of(self.policy, self.members, inter_group, &segments)).map(Some);
        let new: Vec<Way> = all.filter(|way| !self.candidates.contains(way)).take(most).collect();
        new.into_iter().try_for_each(|way| self.try_way(way))
    }

    /// The best in segments twice as long and half as long, as long as that makes it faster.
    fn segments(&mut self) -> Result<()> {
        while let Some(best) = self.best().filter(|way| way.segment > 0) {
            for segment in [best.segment / 2, best.segment * 2] {
                if (LEAST_SEGMENT..self.bytes).contains(&segment) {
                    self.try_way(Some(TwoLevelParameters { segment, flow: Flow::default(), ..best }))?;
                }
            }
            if self.best() == Some(best) {
                break;
            }
        }
        Ok(())
    }

    fn try_way(&mut self, way: Way) -> Result<()> {
        let factor = self.missed(way) * self.handicap(way);
        let limit = self.candidates.best().map_or(f64::INFINITY, |best| best.expected / factor);
        self.candidates.add(way, factor, limit)
    }

    /// Ways that were tried, beside each group's own.
    fn tried(&self) -> usize {
        self.candidates.count().saturating_sub(1)
    }

    fn best(&self) -> Way {
        self.candidates.best().and_then(|best| best.way)
    }

    /// What a prediction of a way is multiplied with: what it missed where the row of the way was measured, or else the fastest way of its inter-group
    /// algorithm.
    fn missed(&self, way: Way) -> f64 {
        let of_row = |row: &TwoLevelRow| {
            let ratio = row.evidence.measured_s? / row.evidence.predicted_s;
            // what was predicted too long at another size need not be here
            (ratio > 0.0 && ratio.is_finite()).then_some(if apart(row, self.bytes) > 1 { ratio.max(1.0) } else { ratio })
        };
        let rows = self.near.iter().filter(|(known, _)| *known == way);
        rows.filter_map(|(_, row)| of_row(row)).next().or(self.calibrated(way)).unwrap_or(1.0)
    }

    /// What predictions of the fastest way of an inter-group algorithm missed, if it was measured at about such sizes.
    fn calibrated(&self, way: Way) -> Option<f64> {
        let known = self.policy.policy.collectives.get(&bcast::COLLECTIVE)?.calibration.get(way_name(&way))?;
        let near = known.bytes.iter().any(|&at| at.max(self.bytes) / at.min(self.bytes).max(1) <= NEAR);
        near.then(|| known.at(self.bytes).max(1.0))
    }

    /// By how much a way must be predicted to be faster. The row's own comes first where it is not clearly beaten; predictions of whole groups, which were
    /// measured, are more sure. Of what was not measured predictions may miss as much as of what was.
    fn handicap(&self, way: Way) -> f64 {
        let in_row = |way| self.near.iter().any(|(known, _)| *known == way);
        match way {
            _ if way == self.own => {
                if about_whole(self.policy, self.members) {
                    MORE_OR_LESS
                } else {
                    CLEARLY
                }
            }
            _ if in_row(way) => 1.0,
            _ => 1.0 + LEAST_UNSURE + self.calibrated(way).map_or(self.unsure, |ratio| (ratio - 1.0) / 2.0),
        }
    }
}

/// How many times one size is as large as another: what a row was made for, and what is asked for.
fn apart(row: &TwoLevelRow, bytes: usize) -> usize {
    row.at_bytes.max(bytes) / row.at_bytes.min(bytes).max(1)
}
