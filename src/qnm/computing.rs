//! How the time outside MPI scales with the number of processes.

use super::scale::{EXACT, Form, Guess, Law, Series, medians};
use serde::Serialize;

/// The time outside MPI of a process: interpolated between runs, and by laws beyond.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Computing {
    /// Where it was run, and the law that fits best.
    pub series: Series,
    /// All possible laws, each with its weight; their mean is followed beyond the runs.
    pub laws: Vec<(Law, f64)>,
    /// The same for more processes than in any run, where runs of several numbers of processes kept all processors busy.
    pub busy: Vec<(Law, f64)>,
}

/// Laws of work that a process alone has, too: those of its neighbours are none.
const LAWS: [Form; 8] = [Form::Constant, Form::Inverse, Form::Logarithm, Form::Borders, Form::Sides, Form::Side, Form::Power, Form::Offset];

impl Computing {
    /// From positive seconds at so many processes, on so many processors; `None` without any.
    ///
    /// Where runs differ by chance, several laws fit about as well and part ways beyond: each weighs as its Bayesian criterion says
    /// (Buckland, Burnham and Augustin, Biometrics 53, 1997). Processes that come to share a node's memory and clock slow each other
    /// until all processors are busy, which is no law of the program: more processes than that follow runs where it is so already.
    pub fn fit(values: &[(usize, f64)], processors: usize) -> Option<Computing> {
        let series = Series::by_one_of(&LAWS, values)?;
        let busy: Vec<(usize, f64)> = values.iter().filter(|v| v.0 >= processors).copied().collect();
        let busy = match medians(&busy).len() {
            _ if series.law.deviation <= EXACT => Vec::new(),
            0 | 1 => Vec::new(),
            // two numbers do not tell what work is there more than once from chance
            2 => weighted(&[Form::Inverse], &busy),
            _ => weighted(&LAWS, &busy),
        };
        Some(Computing { laws: weighted(&LAWS, values), busy, series })
    }

    /// The seconds at so many processes.
    pub fn at(&self, ranks: usize) -> Guess {
        let more = ranks > self.series.points[0].0;
        match &self.busy[..] {
            _ if !self.series.is_beyond(ranks) => self.series.at(ranks),
            busy if more && !busy.is_empty() => mean(busy, ranks),
            _ => mean(&self.laws, ranks),
        }
    }
}

/// The laws of these forms, best first, and their weights, which add up to 1.
fn weighted(forms: &[Form], values: &[(usize, f64)]) -> Vec<(Law, f64)> {
    let mut laws: Vec<Law> = forms.iter().filter_map(|form| Law::of(*form, values)).collect();
    laws.sort_by(|a, b| a.criterion.total_cmp(&b.criterion));
    let weight = |law: &Law| ((laws[0].criterion - law.criterion) / 2.0).exp();
    let all: f64 = laws.iter().map(weight).sum();
    laws.iter().map(|law| (law.clone(), weight(law) / all)).collect()
}

/// The mean of laws by their weights, and how far it may be off: as each law may, and as they differ. None where the best one cannot tell.
fn mean(laws: &[(Law, f64)], ranks: usize) -> Guess {
    let guesses: Vec<(Guess, f64)> = laws.iter().map(|(law, weight)| (law.at(ranks), *weight)).collect();
    let mean = guesses.iter().map(|(guess, weight)| weight * guess.value.ln()).sum::<f64>();
    let spread = |(guess, weight): &(Guess, f64)| weight * guess.spread.unwrap_or(0.0).hypot(guess.value.ln() - mean);
    let best = guesses.first().and_then(|(best, _)| best.spread);
    Guess { value: mean.exp(), spread: best.map(|_| guesses.iter().map(spread).sum()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs that follow one law to the digit are followed as by that law.
    #[test]
    fn exact_runs_follow_their_law() {
        let amdahl = |p: usize| 0.5 + 8.0 / p as f64;
        let computing = Computing::fit(&[1, 2, 4, 8].map(|p| (p, amdahl(p))), 2).unwrap();
        assert_eq!((computing.series.law.form, computing.busy.len()), (Form::Offset, 0));
        assert!((computing.at(32).value / amdahl(32)).ln().abs() < 1e-3, "{:?}", computing.at(32));
    }

    /// Of laws that fit about as well each has a say, and the interval holds what each of them says.
    #[test]
    fn laws_that_fit_as_well_share_the_say() {
        let runs = [(1, 2.03), (1, 2.35), (2, 1.28), (2, 1.01), (4, 0.68), (4, 0.63)];
        let computing = Computing::fit(&runs, 64).unwrap();
        let says = |form| computing.laws.iter().find(|(law, _)| law.form == form).map(|(law, _)| law.at(16).value).unwrap();
        let (least, most, guess) = (says(Form::Inverse), says(Form::Offset), computing.at(16));
        assert!((least..most).contains(&guess.value), "{least} to {most}: {guess:?}");
        let spread = guess.spread.unwrap().exp();
        assert!((guess.value / spread..guess.value * spread).contains(&least) && most < guess.value * spread, "{guess:?}");
        assert!((computing.laws.iter().map(|(_, weight)| weight).sum::<f64>() - 1.0).abs() < 1e-12);
    }

    /// Two processors: a second process slows the first, and a third to eighth have no more to slow.
    #[test]
    fn processes_slow_each_other_until_all_processors_are_busy() {
        let runs = [(1, 1.0), (1, 1.03), (2, 0.6), (2, 0.62), (4, 0.31), (4, 0.3)];
        let computing = Computing::fit(&runs, 2).unwrap();
        assert!((computing.at(8).value / 0.1525).ln().abs() < 0.02, "{:?}", computing.at(8));
        // between runs and for fewer these are followed as before
        assert_eq!((computing.at(2), computing.at(3)), (computing.series.at(2), computing.series.at(3)));
    }
}
