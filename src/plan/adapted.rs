//! The schedule across groups where it is not as it was when the policy was made: the root is in another group, or not all ranks are there. It is
//! chosen anew, by prediction.

use super::across::{Flow, TwoLevelParameters, two_level_parameters};
use super::candidates::{TwoLevelCandidates, TwoLevelChoice, choice_name};
use super::routed::choice_of;
use super::{Location, MANY_RANKS, NextBest, Predictions, about_whole};
use crate::decide::{AS_GOOD, LEAST_ACROSS};
use crate::error::Result;
use crate::policy::{CompiledPolicy, TwoLevelRow};
use crate::topology::Rank;
use crate::two_level::{INTER_GROUP_ALGORITHMS, InterGroupAlgorithm, ROUTED, inter_group_algorithm};
use std::rc::Rc;

/// Another schedule must be predicted to take so much less than the one that was measured, from another root or among other ranks.
pub(super) const MORE_OR_LESS: f64 = 0.98;
/// Inter-group algorithms in which many messages are between groups at once: what predictions of them miss says nothing of others.
const SHARING: [InterGroupAlgorithm; 2] = [InterGroupAlgorithm::OverAll, InterGroupAlgorithm::Relay];
/// Inter-group algorithms in which a whole message goes from coordinator to coordinator: of such trees the best is taken where each group does what is best
/// for it.
const ALONG_TREES: [InterGroupAlgorithm; 3] = [InterGroupAlgorithm::Star, InterGroupAlgorithm::Tree, InterGroupAlgorithm::Path];
/// So many rows of near sizes say what predictions miss here.
const REACH: usize = 4;
/// What was measured of an inter-group algorithm at sizes at most so many times as far says something of it here.
const NEAR: usize = 4;
/// A schedule that no row says must be predicted to be faster by this share and half of what predictions of its inter-group algorithm missed, or, where that was
/// not measured, what they missed of any at most.
const LEAST_UNSURE: f64 = 0.01;
/// So many schedules of other rows are predicted.
const MOST_OF_ROWS: usize = 8;
/// Schedules that no row says are predicted as long as all of them together have no more ranks than this.
const MOST_RANKS: usize = 1 << 14;
/// And as long as predictions have replayed no more events than this: some 20 ms.
const MOST_EVENTS: u64 = 1 << 18;
/// Among many ranks fewer, of which each takes longer: more is built for it, and what is built is larger than caches are.
const MOST_EVENTS_AMONG_MANY: u64 = 3 << 15;
/// Where the row says no segment such schedules are tried first in segments of about an eighth of the message, no longer than this.
const LONGEST_FIRST: usize = 64 << 10;

/// The schedule that a row says, or a better one: what rows of sizes near say, any inter-group algorithm with any tree, the best of these in longer or
/// shorter segments, or each group's own row (`None`); and the next best. What predictions of these missed when they were measured, they are taken to miss
/// here too.
///
/// # Errors
/// Those of [`super::seconds`].
pub(super) fn choice(
    predictions: &Rc<Predictions>,
    root: Rank,
    bytes: usize,
    row: &TwoLevelRow,
) -> Result<(TwoLevelChoice, Option<NextBest>)> {
    let mut search = Search::new(predictions, root, bytes, row)?;
    search.rows(row)?;
    search.try_choice(None)?;
    let left = (MOST_RANKS / search.members.len()).saturating_sub(search.tried());
    search.others(row, left)?;
    if search.tried() * search.members.len() < MOST_RANKS {
        search.segments()?;
    }
    let best = search.best();
    Ok((best, search.next_to(best)))
}

struct Search<'a> {
    policy: &'a CompiledPolicy,
    members: &'a [Location],
    bytes: usize,
    /// True if about the ranks are there that the rows were made with.
    about_whole: bool,
    /// What the row says.
    own: TwoLevelChoice,
    /// What all rows say, those of the nearest sizes first.
    near: Vec<(TwoLevelChoice, &'a TwoLevelRow)>,
    /// By how much a schedule that no row says must be predicted to be faster, as a share.
    unsure: f64,
    candidates: TwoLevelCandidates<'a>,
    predictions: Rc<Predictions<'a>>,
}

impl<'a> Search<'a> {
    fn new(predictions: &Rc<Predictions<'a>>, root: Rank, bytes: usize, row: &TwoLevelRow) -> Result<Search<'a>> {
        let (policy, members) = (predictions.policy, predictions.members);
        let mut near: Vec<(TwoLevelChoice, &TwoLevelRow)> = Vec::new();
        for row in policy.policy.two_level(ROUTED) {
            near.push((choice_of(row)?, row));
        }
        near.sort_by_key(|(_, row)| row.times_apart(bytes));
        let own = choice_of(row)?;
        let known = policy.policy.collectives.get(ROUTED).into_iter().flat_map(|all| &all.calibration);
        let sharing = |name: &str| inter_group_algorithm(name).is_ok_and(|a| SHARING.contains(&a));
        let known = known.filter(|(name, _)| !sharing(name)).map(|(_, ratios)| ratios);
        let of_rows = near.iter().filter_map(|(_, row)| Some(row.evidence.measured_s? / row.evidence.predicted_s));
        let missed = known.map(|ratios| ratios.at(bytes)).chain(of_rows.take(REACH)).map(|ratio| (ratio - 1.0).abs());
        let unsure = missed.filter(|share| share.is_finite()).fold(0.0, f64::max);
        predictions.replay_at_most(if members.len() >= MANY_RANKS { MOST_EVENTS_AMONG_MANY } else { MOST_EVENTS });
        let (candidates, predictions) = (TwoLevelCandidates::new(Rc::clone(predictions), root, bytes), Rc::clone(predictions));
        Ok(Search { policy, members, bytes, about_whole: about_whole(policy, members), own, near, unsure, candidates, predictions })
    }

    /// What the row says, with any tree, and what rows of near sizes say.
    fn rows(&mut self, row: &TwoLevelRow) -> Result<()> {
        self.try_choice(self.own)?;
        if let Some(own) = self.own {
            for choice in two_level_parameters(self.policy, self.members, own.inter_group, &[own.segment]) {
                self.try_choice(Some(TwoLevelParameters { flow: Flow { in_flight: row.in_flight, ..choice.flow }, ..choice }))?;
            }
        }
        let most = self.tried() + MOST_OF_ROWS;
        for choice in self.near.iter().filter_map(|(choice, _)| *choice).collect::<Vec<_>>() {
            if choice.segment < self.bytes && self.tried() < most && self.has_time() {
                self.try_choice(Some(choice))?;
            }
        }
        Ok(())
    }

    /// Any inter-group algorithm with any tree, in segments such as the row's first, then in others, as many as may be tried.
    fn others(&mut self, row: &TwoLevelRow, most: usize) -> Result<()> {
        let mut left = most;
        for segment in segments_around(row.segment_bytes, self.bytes) {
            for inter_group in INTER_GROUP_ALGORITHMS {
                for choice in two_level_parameters(self.policy, self.members, inter_group, &[segment]).map(Some) {
                    if left == 0 || !self.has_time() {
                        return Ok(());
                    }
                    if !self.candidates.contains(&choice) && !self.is_worse_than_whole(choice) {
                        left -= 1;
                        self.try_choice(choice)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The best in segments twice as long and half as long, as long as that makes it faster.
    fn segments(&mut self) -> Result<()> {
        while let Some(best) = self.best().filter(|choice| choice.segment > 0) {
            for segment in [best.segment / 2, best.segment * 2] {
                if (LEAST_ACROSS..self.bytes).contains(&segment) && self.has_time() {
                    self.try_choice(Some(TwoLevelParameters { segment, flow: Flow::default(), ..best }))?;
                }
            }
            if self.best() == Some(best) {
                break;
            }
        }
        Ok(())
    }

    fn try_choice(&mut self, choice: TwoLevelChoice) -> Result<()> {
        let factor = self.missed(choice) * self.handicap(choice);
        let limit = self.candidates.best().map_or(f64::INFINITY, |best| best.expected / factor);
        self.candidates.add_or(choice, factor, limit, self.of_rows(choice))
    }

    /// What the row of the nearest size that says a schedule tells of it where nothing can be predicted in time, a relay over tens of groups: what it took
    /// there, and in proportion where there is more to send. What no row says is taken never to end.
    fn of_rows(&self, choice: TwoLevelChoice) -> f64 {
        let more = |row: &TwoLevelRow| (self.bytes as f64 / row.at_bytes.max(1) as f64).max(1.0);
        let known = self.near.iter().find(|(known, _)| *known == choice);
        known.map_or(f64::INFINITY, |(_, row)| row.evidence.predicted_s * more(row))
    }

    /// True if more may be predicted.
    fn has_time(&self) -> bool {
        self.predictions.events_left() > 0
    }

    /// True among many ranks of a whole message along a tree of one kind: each group's own (`None`) has the best of all trees between groups and inside them.
    fn is_worse_than_whole(&self, choice: TwoLevelChoice) -> bool {
        let along_a_tree = |c: TwoLevelParameters| ALONG_TREES.contains(&c.inter_group) && (c.segment == 0 || c.segment >= self.bytes);
        self.members.len() >= MANY_RANKS && choice.is_some_and(along_a_tree)
    }

    /// Schedules that were tried, beside each group's own.
    fn tried(&self) -> usize {
        self.candidates.iter().filter(|known| known.choice.is_some()).count()
    }

    /// The one that is expected to be the fastest; of those that no row says, and which are as good, the one in the longest segments.
    fn best(&self) -> TwoLevelChoice {
        let best = self.candidates.best()?;
        if self.in_row(best.choice) {
            return best.choice;
        }
        let length =
            |choice: TwoLevelChoice| choice.map_or(usize::MAX, |choice| if choice.segment == 0 { usize::MAX } else { choice.segment });
        let as_good =
            self.candidates.iter().filter(|c| c.expected <= AS_GOOD * best.expected && choice_name(&c.choice) == choice_name(&best.choice));
        as_good.min_by_key(|c| std::cmp::Reverse(length(c.choice))).and_then(|c| c.choice)
    }

    /// The one that is expected to be the fastest of all others.
    fn next_to(&self, best: TwoLevelChoice) -> Option<NextBest> {
        let best_s = self.candidates.iter().find(|c| c.choice == best)?.expected;
        let others = self.candidates.iter().filter(|c| c.choice != best && c.expected.is_finite());
        let next = others.min_by(|a, b| a.expected.total_cmp(&b.expected))?;
        let words = next.choice.map_or_else(|| "each group as it is best there".into(), |choice| choice.words(self.bytes));
        Some(NextBest { words, margin: (next.expected / best_s - 1.0).max(0.0) }).filter(|next| next.margin.is_finite())
    }

    /// True if the row, or another one of about this size, says it.
    fn in_row(&self, choice: TwoLevelChoice) -> bool {
        self.said_near(choice).next().is_some()
    }

    /// The row, and the rows of about this size, that say a schedule, those of the nearest sizes first: what segments of a message cost is another matter
    /// where there are many times as many.
    fn said_near(&self, choice: TwoLevelChoice) -> impl Iterator<Item = &TwoLevelRow> {
        let is_said = move |row: &TwoLevelRow| choice == self.own || row.times_apart(self.bytes) <= NEAR;
        self.near.iter().filter(move |(known, row)| *known == choice && is_said(row)).map(|(_, row)| *row)
    }

    /// What a prediction of a schedule is multiplied with: what it missed where the row of the schedule was measured, or else the fastest schedule of its inter-group
    /// algorithm.
    fn missed(&self, choice: TwoLevelChoice) -> f64 {
        let of_row = |row: &TwoLevelRow| {
            let ratio = row.evidence.measured_s? / row.evidence.predicted_s;
            // what was predicted too long at another size or among other ranks need not be here
            let elsewhere = row.times_apart(self.bytes) > 1 || !self.about_whole;
            (ratio > 0.0 && ratio.is_finite()).then_some(if elsewhere { ratio.max(1.0) } else { ratio })
        };
        // what one schedule was predicted too long need not hold for others
        let calibrated = || self.calibrated(choice).map(|ratio| ratio.max(1.0));
        self.said_near(choice).filter_map(of_row).next().or_else(calibrated).unwrap_or(1.0)
    }

    /// What predictions of the fastest schedule of an inter-group algorithm missed, if it was measured at about such sizes.
    fn calibrated(&self, choice: TwoLevelChoice) -> Option<f64> {
        let known = self.policy.policy.collectives.get(ROUTED)?.calibration.get(choice_name(&choice))?;
        let near = known.bytes.iter().any(|&at| at.max(self.bytes) / at.min(self.bytes).max(1) <= NEAR);
        near.then(|| known.at(self.bytes))
    }

    /// By how much a schedule must be predicted to be faster. The row's own comes first where it is not clearly beaten. Of what was not measured predictions may
    /// miss as much as of what was: the more they missed, the more a schedule that no row says must win by.
    fn handicap(&self, choice: TwoLevelChoice) -> f64 {
        match choice {
            _ if choice == self.own => MORE_OR_LESS,
            _ if self.in_row(choice) => 1.0,
            _ => 1.0 + LEAST_UNSURE + self.calibrated(choice).map_or(self.unsure, |ratio| (ratio - 1.0).abs() / 2.0),
        }
    }
}

/// The segments that a message of some bytes is tried in: such as a row's first, then half and twice as long, and so on; the whole message (0) last.
fn segments_around(of_row: usize, bytes: usize) -> Vec<usize> {
    let about = (bytes / 8).next_power_of_two().clamp(LEAST_ACROSS, LONGEST_FIRST);
    let first = if of_row > 0 { of_row } else { about };
    let beside = (1..usize::BITS / 2).flat_map(|k| [first >> k, first.saturating_mul(1 << k)]).filter(|&s| s >= LEAST_ACROSS);
    std::iter::once(first).chain(beside).filter(|&s| s < bytes).chain([0]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::members;
    use crate::policy::{GroupPolicy, LinkPolicy, Policy};
    use crate::score::Ratios;
    use std::path::Path;

    /// A relay over tens of groups has no turns that tell what all of it takes, and is too large to be replayed: from other roots its row stands for it.
    #[test]
    fn what_is_too_large_to_be_predicted_takes_what_its_row_says() {
        let mut policy = Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap();
        let names: Vec<String> = (0..32).map(|k| format!("g{k}")).collect();
        let group = |k: usize| GroupPolicy {
            name: names[k].clone(),
            hosts: (0..32).map(|h| format!("g{k}-{h}")).collect(),
            ..policy.groups[0].clone()
        };
        let link = |a: usize, b: usize| LinkPolicy { between: [names[a].clone(), names[b].clone()], ..policy.links[0].clone() };
        let links = (0..32).flat_map(|b| (0..b).map(move |a| (a, b))).map(|(a, b)| link(a, b)).collect();
        (policy.groups, policy.links) = ((0..32).map(group).collect(), links);
        let rows = policy.collectives.get_mut(ROUTED).unwrap();
        let mut row = rows.two_level.last().unwrap().clone();
        (row.inter_group, row.intra_group, row.segment_bytes, row.at_bytes) = ("relay".into(), Some("chain".into()), 8 << 10, 4 << 20);
        (row.evidence.predicted_s, row.evidence.measured_s) = (0.1, None);
        rows.two_level = vec![row.clone()];
        let policy = CompiledPolicy::new(policy).unwrap();
        let members: Vec<Location> = (0..1024).map(|rank| Location { group: rank / 32, position: rank % 32 }).collect();
        let predictions = Rc::new(Predictions::new(&policy, &members));
        let whole_s = predictions.of_choice(500, &None, 3 << 20, f64::INFINITY).unwrap();
        assert!(whole_s > 0.2, "{whole_s}");
        assert_eq!(choice(&predictions, 500, 3 << 20, &row).unwrap().0, choice_of(&row).unwrap());
    }

    /// A line of a rank after the other in 12 KiB, measured at 1 MiB, is predicted to be beaten at 3 MiB by one in 6 KiB along chains, which a row of `says_at` bytes says.
    #[test]
    fn what_is_predicted_to_win_must_win_by_half_of_what_predictions_missed() {
        let is_kept = |ratio: f64, says_at: Option<usize>| {
            let mut policy = Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap();
            let rows = policy.collectives.get_mut(ROUTED).unwrap();
            let mut row =
                TwoLevelRow { inter_group: "line".into(), in_flight: 0, intra_in_flight: 0, ..rows.two_level.last().unwrap().clone() };
            (row.intra_group, row.segment_bytes, row.at_bytes) = (Some("binary".into()), 12 << 10, 1 << 20);
            row.evidence.measured_s = Some(row.evidence.predicted_s * ratio);
            let winner = |at_bytes| TwoLevelRow { intra_group: Some("chain".into()), segment_bytes: 6 << 10, at_bytes, ..row.clone() };
            rows.two_level = says_at.map(winner).into_iter().chain([row.clone()]).collect();
            for inter_group in INTER_GROUP_ALGORITHMS {
                let name = choice_name(&choice_of(&row).unwrap().map(|choice| TwoLevelParameters { inter_group, ..choice }));
                rows.calibration.insert(name.into(), Ratios { bytes: vec![1 << 20], ratio: vec![ratio] });
            }
            let hosts: Vec<String> = policy.groups.iter().flat_map(|group| group.hosts.clone()).collect();
            let members = members(&policy, &hosts).unwrap();
            let policy = CompiledPolicy::new(policy).unwrap();
            let found = choice(&Rc::new(Predictions::new(&policy, &members)), 40, 3 << 20, &row).unwrap();
            found.0 == choice_of(&row).unwrap()
        };
        assert!(!is_kept(1.0, None), "predictions held");
        assert!(is_kept(0.67, None), "they were a third too long");
        assert!(!is_kept(0.67, Some(1 << 20)), "a row says the other one, too");
        assert!(is_kept(0.67, Some(32 << 10)), "of far shorter messages");
    }

    #[test]
    fn segments_are_tried_from_the_rows_outwards() {
        let kib = |sizes: &[usize]| sizes.iter().map(|s| s << 10).collect::<Vec<_>>();
        assert_eq!(segments_around(16 << 10, 100 << 10), kib(&[16, 8, 32, 4, 64, 0]));
        assert_eq!(segments_around(0, 1 << 20), kib(&[64, 32, 128, 16, 256, 8, 512, 4, 0]));
        assert_eq!(segments_around(64 << 10, 20 << 10), kib(&[16, 8, 4, 0]));
        assert_eq!(segments_around(0, 100), [0]);
    }
}
