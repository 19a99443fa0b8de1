//! Two-level schedules, ranked by what they are predicted to take and by what predictions missed. Tuning ranks so what it measures, and where no row fits
//! it decides what is done.

use super::Predictions;
use super::across::TwoLevelParameters;
use crate::error::{Error, Result};
use crate::policy::PER_GROUP;
use crate::topology::Rank;
use std::rc::Rc;

/// How a message crosses groups, and what is done inside them; `None`: the whole message from group to group, and inside each what its own row says.
pub type TwoLevelChoice = Option<TwoLevelParameters>;

/// The name of its inter-group algorithm in policies.
pub fn choice_name(choice: &TwoLevelChoice) -> &'static str {
    choice.map_or(PER_GROUP, |choice| choice.inter_group.name())
}

/// A choice with its times, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct TwoLevelCandidate {
    /// The choice.
    pub choice: TwoLevelChoice,
    /// As predicted.
    pub predicted: f64,
    /// As expected, with what predictions missed.
    pub expected: f64,
}

/// Candidates for a broadcast of one size from one root.
pub struct TwoLevelCandidates<'a> {
    predictions: Rc<Predictions<'a>>,
    root: Rank,
    bytes: usize,
    all: Vec<TwoLevelCandidate>,
}

impl<'a> TwoLevelCandidates<'a> {
    /// None yet.
    pub fn new(predictions: Rc<Predictions<'a>>, root: Rank, bytes: usize) -> TwoLevelCandidates<'a> {
        TwoLevelCandidates { predictions, root, bytes, all: Vec::new() }
    }

    /// Adds one that is not there yet. `missed`: what is measured over what is predicted, as far as is known. What is too large to be predicted, or
    /// is predicted to take longer than `limit_s`, is expected never to end.
    ///
    /// # Errors
    /// Those of [`super::seconds`].
    pub fn add(&mut self, choice: TwoLevelChoice, missed: f64, limit_s: f64) -> Result<()> {
        self.add_or(choice, missed, limit_s, f64::INFINITY)
    }

    /// As [`Self::add`], but what is too large to be predicted is taken to be predicted to take `unpredicted_s`.
    ///
    /// # Errors
    /// As there.
    pub fn add_or(&mut self, choice: TwoLevelChoice, missed: f64, limit_s: f64, unpredicted_s: f64) -> Result<()> {
        if self.contains(&choice) {
            return Ok(());
        }
        let predicted = match self.predictions.of_choice(self.root, &choice, self.bytes, limit_s) {
            Err(Error::TooLarge(_)) => unpredicted_s,
            found => found?,
        };
        self.all.push(TwoLevelCandidate { choice, predicted, expected: predicted * missed });
        Ok(())
    }

    /// True if it is there.
    pub fn contains(&self, choice: &TwoLevelChoice) -> bool {
        self.all.iter().any(|known| known.choice == *choice)
    }

    /// All of them, as they were added.
    pub fn iter(&self) -> impl Iterator<Item = &TwoLevelCandidate> {
        self.all.iter()
    }

    /// The one that is expected to be the fastest; of equals the first.
    pub fn best(&self) -> Option<&TwoLevelCandidate> {
        self.all.iter().min_by(|a, b| a.expected.total_cmp(&b.expected))
    }

    /// The best with the same inter-group algorithm.
    pub fn best_like(&self, choice: &TwoLevelChoice) -> Option<&TwoLevelCandidate> {
        let alike = self.all.iter().filter(|known| choice_name(&known.choice) == choice_name(choice));
        alike.min_by(|a, b| a.expected.total_cmp(&b.expected))
    }

    /// The best of each inter-group algorithm, in the order in which these were first added.
    pub fn best_of_each(&self) -> Vec<TwoLevelCandidate> {
        let mut best: Vec<TwoLevelCandidate> = Vec::new();
        for candidate in &self.all {
            match best.iter_mut().find(|known| choice_name(&known.choice) == choice_name(&candidate.choice)) {
                Some(known) if candidate.expected < known.expected => *known = *candidate,
                Some(_) => {}
                None => best.push(*candidate),
            }
        }
        best
    }
}
