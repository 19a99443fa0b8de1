//! Experiments that race each other: what is clearly slower than another of its field is not repeated.

use super::Experiment;
use crate::stats;
use rustc_hash::FxHashMap;

/// Fewer runs than this tell nothing: one may be disturbed.
const LEAST: usize = 2;

/// A median must lie so many standard errors above another's. Many rivals are compared after every turn, and the best of twelve may be lost by
/// that in one race of fifty at most: see the test.
const CLEARLY: f64 = 3.2;

/// Runs made in other rounds compare only when they are so far apart: from one round to a later one a network drifts by some percent.
pub const DRIFTED: f64 = 1.25;

/// A normal distribution's median of absolute values, and what a difference of two adds: the deviation is the median difference over this.
const MEDIAN_DIFFERENCE: f64 = stats::NORMAL_QUARTILE * std::f64::consts::SQRT_2;

/// Experiments that race each other.
#[derive(Default)]
pub(super) struct Rivals {
    /// The fields of each: it may run in several.
    fields_of: FxHashMap<Experiment, Vec<usize>>,
    fields: Vec<Field>,
}

/// Experiments of which the fastest is wanted.
struct Field {
    /// The seconds of each one's runs, a round each, all since the same round.
    runs: FxHashMap<Experiment, Vec<f64>>,
    /// The lowest median of runs that were made before these rounds.
    before: f64,
}

impl Rivals {
    /// Adds a field, with the medians of those that ran before.
    pub fn add(&mut self, experiments: &[Experiment], known: impl Iterator<Item = f64>) {
        let field = self.fields.len();
        experiments.iter().for_each(|e| self.fields_of.entry(e.clone()).or_default().push(field));
        self.fields.push(Field { runs: FxHashMap::default(), before: known.fold(f64::INFINITY, f64::min) });
    }

    /// So many turns of experiments that run so often at least are made before any of them can be beaten: nothing is lost by making them at once.
    pub fn sure_turns(&self, least: usize) -> usize {
        if self.fields.is_empty() { least } else { least.min(LEAST) }
    }

    /// New rounds begin: what ran so far, in a field that shares experiments with those to come, ran before.
    pub fn begin(&mut self) {
        for field in &mut self.fields {
            let known = field.runs.drain().filter(|(_, runs)| runs.len() >= LEAST).map(|(_, runs)| upper_median(&runs));
            field.before = known.fold(field.before, f64::min);
        }
    }

    pub fn note(&mut self, experiment: &Experiment, seconds: &[f64]) {
        for &field in self.fields_of.get(experiment).into_iter().flatten() {
            self.fields[field].runs.insert(experiment.clone(), seconds.to_vec());
        }
    }

    /// True if in each of its fields another one is clearly faster.
    pub fn beat(&self, experiment: &Experiment, seconds: &[f64]) -> bool {
        let Some(fields) = self.fields_of.get(experiment) else { return false };
        fields.iter().all(|&f| {
            let mut rivals: Vec<&[f64]> = self.fields[f].runs.values().map(Vec::as_slice).collect();
            rivals.sort_by(|a, b| a.iter().partial_cmp(b.iter()).unwrap_or(std::cmp::Ordering::Equal));
            is_beaten(seconds, &rivals, self.fields[f].before)
        })
    }
}

/// True if runs are clearly slower than those of one of the rivals in the same rounds, or far slower than what ran in others. How much the times of
/// all scatter tells what is clear; of an even number of runs the one in the middle that speaks against it counts.
fn is_beaten(seconds: &[f64], rivals: &[&[f64]], before: f64) -> bool {
    let deviation = deviation(rivals);
    let slower = |rival: &&[f64]| {
        let rounds = seconds.len().min(rival.len());
        let error = deviation * (2.0 / rounds as f64).sqrt();
        rounds >= LEAST && lower_median(&seconds[..rounds]) > upper_median(&rival[..rounds]) * (CLEARLY * error).exp()
    };
    // who is precise enough runs no more
    let done = rivals.iter().filter(|rival| rival.len() >= LEAST && rival.len() < seconds.len()).map(|rival| upper_median(rival));
    let far = DRIFTED * done.fold(before, f64::min);
    seconds.len() >= LEAST && (lower_median(seconds) > far || rivals.iter().any(slower))
}

/// The relative standard deviation of one run, from the differences of each one's successive runs: neither drift nor single outliers count. Of few
/// differences the largest.
fn deviation(all: &[&[f64]]) -> f64 {
    let difference = |pair: &[f64]| (pair[0] > 0.0 && pair[1] > 0.0).then(|| (pair[1] / pair[0]).ln().abs());
    let found: Vec<f64> = all.iter().flat_map(|runs| runs.windows(2).filter_map(difference)).collect();
    let typical = if found.len() < stats::LEAST_FOR_INTERVAL { 1.0 } else { 0.5 };
    stats::quantile(&found, typical).unwrap_or(0.0) / MEDIAN_DIFFERENCE
}

fn lower_median(seconds: &[f64]) -> f64 {
    middle(seconds, seconds.len().saturating_sub(1) / 2)
}

fn upper_median(seconds: &[f64]) -> f64 {
    middle(seconds, seconds.len() / 2)
}

fn middle(seconds: &[f64], at: usize) -> f64 {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(at).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    fn of(bytes: usize) -> Experiment {
        Experiment::RoundTrip { a: 0, b: 1, out: bytes, back: 0 }
    }

    #[test]
    fn what_is_clearly_slower_is_not_repeated() {
        let mut rivals = Rivals::default();
        rivals.add(&[of(0), of(1), of(2)], std::iter::empty());
        rivals.note(&of(0), &[1.0]);
        assert!(!rivals.beat(&of(1), &[9.0]), "one run says nothing");
        assert!(!rivals.beat(&of(1), &[9.0, 9.0]), "one run of the other says nothing");
        rivals.note(&of(0), &[1.0, 1.01, 1.02]);
        assert!(rivals.beat(&of(1), &[1.2, 1.2]));
        assert!(!rivals.beat(&of(1), &[1.2, 1.0]), "one of two may be disturbed");
        rivals.note(&of(0), &[1.0, 1.3, 1.1, 1.2]);
        assert!(!rivals.beat(&of(2), &[1.25, 1.5, 1.6, 1.9]), "the times scatter");
        assert!(!rivals.beat(&of(9), &[2.0, 2.0, 2.0, 2.0]), "not in the field");
        rivals.add(&[of(3)], [1.0].into_iter());
        assert!(!rivals.beat(&of(3), &[1.2, 1.2]), "that may be drift");
        assert!(rivals.beat(&of(3), &[1.3, 1.3]));
    }

    #[test]
    fn only_runs_of_the_same_rounds_compare() {
        let mut rivals = Rivals::default();
        rivals.add(&[of(0), of(1)], std::iter::empty());
        rivals.add(&[of(0), of(2)], std::iter::empty());
        // precise after three rounds; then all gets slower
        rivals.note(&of(0), &[1.0, 1.0, 1.0]);
        assert!(!rivals.beat(&of(1), &[1.001, 1.0, 1.0, 1.1, 1.1, 1.1, 1.1]), "in the same rounds they are alike");
        assert!(rivals.beat(&of(1), &[1.05, 1.05, 1.05]));
        assert!(rivals.beat(&of(1), &[1.0, 1.0, 1.3, 1.3, 1.3]), "nothing drifts by so much");
        rivals.begin();
        assert!(!rivals.beat(&of(2), &[1.1, 1.1, 1.1]), "its rival ran in its other field, before");
        assert!(rivals.beat(&of(2), &[1.3, 1.3, 1.3]));
    }

    /// Twelve candidates, the k-th 3 k % slower than the first, with 10 % noise and 5 % of the runs three times as long.
    #[test]
    fn the_best_of_twelve_is_kept() {
        let mut random = stats::random(6);
        let (races, mut lost, mut runs) = (2000, 0, 0);
        for _ in 0..races {
            let mut rivals = Rivals::default();
            let all: Vec<Experiment> = (0..12).map(of).collect();
            rivals.add(&all, std::iter::empty());
            let mut open: Vec<(usize, Vec<f64>)> = (0..12).map(|k| (k, Vec::new())).collect();
            for _turn in 0..31 {
                for (k, seconds) in &mut open {
                    let normal =
                        (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt() * (std::f64::consts::TAU * random.random::<f64>()).cos();
                    let spike = if random.random::<f64>() < 0.05 { 3.0 } else { 1.0 };
                    seconds.push((1.0 + 0.03 * *k as f64) * (0.1 * normal).exp() * spike);
                    runs += 1;
                }
                open.iter().for_each(|(k, seconds)| rivals.note(&all[*k], seconds));
                open.retain(|(k, seconds)| !rivals.beat(&all[*k], seconds));
            }
            lost += usize::from(open.iter().all(|(k, _)| *k != 0));
        }
        println!("lost in {lost} of {races}, {} runs a race of at most {}", runs / races, 12 * 31);
        assert!(lost <= races / 50, "the best is lost in {lost} of {races}");
        assert!(runs < races * 12 * 31 / 2, "racing saves half of the runs: {runs}");
    }
}
