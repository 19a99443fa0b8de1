//! What predictions of two-level schedules missed at the sizes that were measured so far, and so what is worth measuring at the next one.

use super::across::{Candidate, by_time};
use crate::decide::ALIKE;
use crate::measure::Session;
use crate::plan::{TwoLevelChoice, choice_name};
use std::cmp::{Ordering, Reverse};

/// Schedules expected to take so many times the best one's time are not measured, nor are neighbours of those measured to.
pub(super) const HOPELESS: f64 = 1.3;

/// Where the prediction of a schedule does not hold, neighbours that it finds to take so many times as long are not measured either: what it misses, it misses
/// of both. (Where it is known what predictions of the neighbour miss, those are not measured that are hopeless.)
const FAR_SLOWER: f64 = 2.0;

/// What was measured of schedules at some sizes, the last one first, at each the fastest first: what predictions miss, they miss at the next size too.
#[derive(Default)]
pub(super) struct Missed(Vec<Known>);

struct Known {
    bytes: usize,
    choice: TwoLevelChoice,
    /// Measured over predicted.
    missed: f64,
    /// Measured over the fastest of all.
    behind: f64,
}

impl Missed {
    /// Takes in what was measured at the next size.
    pub fn note(&mut self, session: &Session, bytes: usize, candidates: &[Candidate]) {
        let all = by_time(session, candidates);
        let shortest = all.first().map_or(f64::NAN, |a| a.1);
        let known = |(c, time): (&Candidate, f64)| Known {
            bytes,
            choice: c.choice,
            missed: time / c.predicted.max(f64::MIN_POSITIVE),
            behind: time / shortest,
        };
        self.0.splice(..0, all.into_iter().map(known));
    }

    /// Of the same inter-group algorithm, the one in the nearest segments; of these the one of the last size, with the same trees, and the fastest.
    fn nearest(&self, choice: &TwoLevelChoice) -> Option<&Known> {
        let segment = |c: &TwoLevelChoice| c.map_or(0, |c| c.segment).max(1) as f64;
        let times_apart = |c: &TwoLevelChoice| f64::max(segment(c) / segment(choice), segment(choice) / segment(c));
        let other_trees = |c: &TwoLevelChoice| c.map(|c| c.intra_group.name) != choice.map(|c| c.intra_group.name);
        let alike = self.0.iter().filter(|known| choice_name(&known.choice) == choice_name(choice));
        let distance = |known: &Known| (times_apart(&known.choice), Reverse(known.bytes), other_trees(&known.choice));
        alike.min_by(|a, b| distance(a).partial_cmp(&distance(b)).unwrap_or(Ordering::Equal))
    }

    /// What a prediction of a schedule is multiplied with.
    pub fn missed(&self, choice: &TwoLevelChoice) -> f64 {
        self.nearest(choice).map_or(1.0, |known| known.missed)
    }

    /// True if the same inter-group algorithm was measured in the same segments.
    pub fn knows(&self, choice: &TwoLevelChoice) -> bool {
        self.nearest(choice).is_some_and(|known| known.choice.map(|c| c.segment) == choice.map(|c| c.segment))
    }

    /// What a neighbour of the best schedule may be predicted to take, over what the best is, whose prediction holds or does not.
    pub fn limit(&self, best: &TwoLevelChoice, neighbour: &TwoLevelChoice, holds: bool) -> f64 {
        let knows = self.knows(neighbour);
        let limit = match holds {
            true => 1.0 - ALIKE,
            false if knows => HOPELESS,
            false => FAR_SLOWER,
        };
        limit * if knows { self.missed(best) / self.missed(neighbour) } else { 1.0 }
    }

    /// The best of each inter-group algorithm at the last size that is not hopeless.
    pub fn ahead(&self) -> Vec<TwoLevelChoice> {
        let mut best: Vec<TwoLevelChoice> = Vec::new();
        let last = self.0.first().map_or(0, |known| known.bytes);
        for known in self.0.iter().take_while(|known| known.bytes == last && known.behind <= HOPELESS) {
            if best.iter().all(|b| choice_name(b) != choice_name(&known.choice)) {
                best.push(known.choice);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::bcast;
    use crate::plan::{Flow, TwoLevelParameters};
    use crate::two_level::InterGroupAlgorithm;

    fn of(inter_group: InterGroupAlgorithm) -> TwoLevelParameters {
        let intra_group = bcast::algorithm("flat").unwrap();
        TwoLevelParameters { inter_group, segment: 0, flow: Flow::default(), intra_group, by_speed: false }
    }

    #[test]
    fn what_was_missed_is_of_its_algorithm_and_other_predictions_are_believed() {
        let measured = |inter_group, missed| Known { bytes: 1, choice: Some(of(inter_group)), missed, behind: 1.0 };
        let before = Missed(vec![measured(InterGroupAlgorithm::Star, 1.5), measured(InterGroupAlgorithm::Path, 0.5)]);
        let missed = |inter_group| before.missed(&Some(of(inter_group)));
        let [star, path, relay] = [InterGroupAlgorithm::Star, InterGroupAlgorithm::Path, InterGroupAlgorithm::Relay].map(missed);
        assert_eq!((star, path, relay, before.missed(&None)), (1.5, 0.5, 1.0, 1.0));
    }

    #[test]
    fn in_the_nearest_segments_and_at_the_last_size_it_was_missed_by_as_much() {
        let in_segments = |segment| Some(TwoLevelParameters { segment, ..of(InterGroupAlgorithm::Star) });
        let known = |bytes, segment, missed, behind| Known { bytes, choice: in_segments(segment), missed, behind };
        let before = Missed(vec![
            known(2, 1 << 16, 0.8, 1.0),
            known(2, 1 << 17, 1.6, 2.0),
            known(1, 1 << 16, 3.0, 1.0),
            known(1, 1 << 12, 1.2, 1.3),
        ]);
        let missed = |segment| before.missed(&in_segments(segment));
        assert_eq!([1 << 16, 1 << 18, 1 << 13, 1 << 15].map(missed), [0.8, 1.6, 1.2, 0.8]);
        assert_eq!(before.ahead(), [in_segments(1 << 16)], "at the last size");
        let limit = |segment, holds| before.limit(&in_segments(1 << 16), &in_segments(segment), holds);
        assert_eq!((limit(1 << 17, false), limit(1 << 15, false)), (HOPELESS * 0.8 / 1.6, FAR_SLOWER));
        assert_eq!((limit(1 << 16, true), limit(1 << 15, true)), (1.0 - ALIKE, 1.0 - ALIKE));
    }
}
