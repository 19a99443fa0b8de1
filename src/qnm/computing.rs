//! How the time outside MPI scales with the number of processes.

use super::scale::{DIGITS, EXACT, Form, Guess, Law, Series, medians, squares};
use crate::stats::{NORMAL_QUARTILE, median};
use serde::Serialize;

/// The time outside MPI of a process: interpolated between runs, and by laws beyond.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Computing {
    /// Where it was run, and the law that fits best.
    pub series: Series,
    /// The laws whose mean is followed for fewer processes than in any run, best first; behind them c/P as at the least number that was run.
    pub below: Vec<Weighted>,
    /// The same for more processes; where runs of several numbers kept all processors of a node busy, the laws of these.
    pub above: Vec<Weighted>,
}

/// A law, and how much of a say it has among others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Weighted {
    /// The law.
    pub law: Law,
    /// Its weight; those of all laws add up to 1.
    pub weight: f64,
}

/// Laws of work that a process alone has, too: those of its neighbours are none.
const LAWS: [Form; 8] = [Form::Constant, Form::Inverse, Form::Logarithm, Form::Borders, Form::Sides, Form::Side, Form::Power, Form::Offset];

impl Computing {
    /// From positive seconds at so many processes, and those of them that kept all processors of a node busy; `None` without any.
    ///
    /// What a law says to 1 % it says alone. Where runs differ by chance, several laws fit about as well and part ways beyond: each weighs as its Bayesian criterion says
    /// (Buckland, Burnham and Augustin, Biometrics 53, 1997). Processes that come to share a node's memory and clock slow each other
    /// until all its processors are busy, which is no law of the program: more processes than that follow runs where it is so already. And where values times
    /// processes differ by no more than chance, what is nearest tells most: laws of few numbers that chance moved part ways fast.
    pub fn fit(values: &[(usize, f64)], busy: &[(usize, f64)]) -> Option<Computing> {
        let series = Series::by_one_of(&LAWS, values)?;
        if series.law.deviation <= EXACT {
            let laws = vec![Weighted { law: series.law.clone(), weight: 1.0 }];
            return Some(Computing { series, below: laws.clone(), above: laws });
        }
        let (least, most) = (series.points[0].0, series.points[series.points.len() - 1].0);
        let below = weighted(&LAWS, values);
        let above = or_of_busy(&below, busy);
        Some(Computing { below: or_divided(below, least, values, busy), above: or_divided(above, most, values, busy), series })
    }

    /// The seconds at so many processes.
    pub fn at(&self, ranks: usize) -> Guess {
        if !self.series.is_beyond(ranks) {
            return self.series.at(ranks);
        }
        let guess = average(if ranks < self.series.points[0].0 { &self.below } else { &self.above }, ranks);
        // how runs of two numbers scatter does not tell how far off a law is
        if self.series.points.len() > 2 { guess } else { Guess { spread: None, ..guess } }
    }
}

/// These laws with so much of what say each has.
fn share(laws: &[Weighted], of: f64) -> impl Iterator<Item = Weighted> + '_ {
    laws.iter().map(move |law| Weighted { weight: of * law.weight, ..law.clone() })
}

/// These laws of all runs, and those of runs that kept all processors of a node busy, as far as these fit their runs better than one parameter more may. Two
/// numbers tell no law.
fn or_of_busy(all: &[Weighted], busy: &[(usize, f64)]) -> Vec<Weighted> {
    if medians(busy).len() < 3 {
        return all.to_vec();
    }
    let own = weighted(&LAWS, busy);
    let n = busy.len() as f64;
    let criterion = |law: &Law, more: f64| {
        let squares = squares(busy.iter().map(|v| (v.1 / law.at(v.0).value).ln()));
        n * (squares / n).max(DIGITS * DIGITS).ln() + (law.form.free() as f64 + more) * n.ln()
    };
    let likely = 1.0 / (1.0 + ((criterion(&own[0].law, 1.0) - criterion(&all[0].law, 0.0)) / 2.0).exp());
    let mut laws: Vec<Weighted> = share(all, 1.0 - likely).chain(share(&own, likely)).collect();
    laws.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    laws
}

/// These laws, and behind them c/P as in the runs on so many processes, by how likely it is that what there is to do is divided.
fn or_divided(laws: Vec<Weighted>, ranks: usize, values: &[(usize, f64)], busy: &[(usize, f64)]) -> Vec<Weighted> {
    let likely = is_divided(ranks, values, busy);
    let runs: Vec<(usize, f64)> = values.iter().filter(|v| v.0 == ranks).copied().collect();
    let divided = Law::of(Form::Inverse, &runs).map(|law| Weighted { law, weight: likely });
    share(&laws, 1.0 - likely).chain(divided).collect()
}

/// All runs of a number of processes may meet alike what those of other numbers do not, as a shared node's clock and memory: up to so many times what
/// runs of one number differ by. Means of MG and LAMMPS on 2, 4 and 8 processes differ by 0.4 to 1.7 times that (standard deviations; docs/wall-clock.md).
const ALIKE: f64 = 2.0;

/// Processes that keep all processors of a node busy slow each other by no more than this: MG and LAMMPS by up to 1.3 in the mean (docs/wall-clock.md).
const MOST_SLOWER: f64 = 1.5;

/// How likely it is, beside any other law, that what there is to do is divided among so many processes and others: values times processes differ by no more
/// than chance makes those of one number differ, and [`ALIKE`] as much. Numbers that keep all processors of a node busy are slowed by each other, as others
/// are not: each kind is looked at by itself, if it tells of these processes, and one may be [`MOST_SLOWER`]. One run of each number tells nothing.
fn is_divided(ranks: usize, values: &[(usize, f64)], busy: &[(usize, f64)]) -> f64 {
    let is_busy = |ranks: usize| busy.iter().any(|b| b.0 == ranks);
    let points = medians(values);
    // one of each number is its median or nearest to it; a median of the others bears with a run that something else slowed
    let from_median = |(ranks, value): &(usize, f64)| points.iter().find(|p| p.0 == *ranks).map(|p| (value / p.1).ln().abs());
    let mut scatter: Vec<f64> = values.iter().filter_map(from_median).collect();
    scatter.sort_by(f64::total_cmp);
    let Some(scatter) = median(&scatter[points.len()..]) else { return 0.0 };
    let chance = (scatter / NORMAL_QUARTILE).powi(2) * (ALIKE * ALIKE + points.len() as f64 / values.len() as f64);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let off = |values: &[f64]| squares(values.iter().map(|y| y - mean(values)));
    let of = |kind: bool| points.iter().filter(|p| is_busy(p.0) == kind).map(|p| (p.1 * p.0 as f64).ln()).collect::<Vec<f64>>();
    let [alone, together] = [of(false), of(true)];
    let off = match if is_busy(ranks) { together.len() } else { alone.len() } {
        0 | 1 => off(&[alone, together].concat()),
        _ if alone.is_empty() || together.is_empty() => off(&alone) + off(&together),
        _ => off(&alone) + off(&together) + ((mean(&together) - mean(&alone)).abs() - MOST_SLOWER.ln()).max(0.0).powi(2),
    };
    (-off / (2.0 * chance).max(f64::MIN_POSITIVE)).exp()
}

/// The laws of these forms, best first. Of those that are the same at all values the simplest has the say of them all, as of those of two numbers where
/// it was run on two: each can be what both are.
fn weighted(forms: &[Form], values: &[(usize, f64)]) -> Vec<Weighted> {
    let mut laws: Vec<Law> = Vec::new();
    let numbers = medians(values).len();
    for law in forms.iter().filter_map(|form| Law::of(*form, values)) {
        let meets = |other: &Law| values.iter().all(|v| (law.at(v.0).value / other.at(v.0).value).ln().abs() < 1e-9);
        let is_same = |other: &Law| meets(other) || [&law, other].iter().all(|law| law.form.free() >= numbers && numbers > 1);
        if !laws.iter().any(is_same) {
            laws.push(law);
        }
    }
    laws.sort_by(|a, b| a.criterion.total_cmp(&b.criterion));
    let weight = |law: &Law| ((laws[0].criterion - law.criterion) / 2.0).exp();
    let all: f64 = laws.iter().map(weight).sum();
    laws.iter().map(|law| Weighted { law: law.clone(), weight: weight(law) / all }).collect()
}

/// The mean of laws by their weights, and how far it may be off: as each law may, and as they differ. None where the best one cannot tell.
fn average(laws: &[Weighted], ranks: usize) -> Guess {
    let said = |law: &Weighted| law.law.at(ranks).value.ln();
    let mean = laws.iter().map(|law| law.weight * said(law)).sum::<f64>();
    let spread = |law: &Weighted| {
        // a law that cannot tell how far it is off is at least as unsure as the best one
        let sure = if law.law.quantile().is_some() { law } else { &laws[0] };
        Some(law.weight * sure.law.at(ranks).spread?.hypot(sure.law.quantile()? * (said(law) - mean)))
    };
    Guess { value: mean.exp(), spread: laws.iter().map(spread).sum() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three runs of each number of processes that are off by so much.
    fn runs(numbers: &[usize], noise: f64, seconds: impl Fn(usize) -> f64) -> Vec<(usize, f64)> {
        let off = |k: usize, p: usize| 1.0 + noise * [0.9, -1.0, 0.2][(k + p) % 3];
        numbers.iter().flat_map(|&p| (0..3).map(move |k| (p, k))).map(|(p, k)| (p, seconds(p) * off(k, p))).collect()
    }

    fn off(computing: &Computing, ranks: usize, seconds: f64) -> f64 {
        (computing.at(ranks).value / seconds).ln().abs()
    }

    /// Runs that follow one law to the digit are followed as by that law.
    #[test]
    fn exact_runs_follow_their_law() {
        let amdahl = |p: usize| 0.5 + 8.0 / p as f64;
        let all = runs(&[1, 2, 4, 8], 0.0, amdahl);
        let computing = Computing::fit(&all, &all[3..]).unwrap();
        assert_eq!((computing.series.law.form, computing.below.len(), computing.above.len()), (Form::Offset, 1, 1));
        assert!(off(&computing, 32, amdahl(32)) < 1e-3, "{:?}", computing.at(32));
    }

    /// Of laws that fit about as well each has a say, and the interval holds what each of them says.
    #[test]
    fn laws_that_fit_as_well_share_the_say() {
        let values = [(1, 2.03), (1, 2.35), (2, 1.28), (2, 1.01), (4, 0.68), (4, 0.63)];
        let computing = Computing::fit(&values, &[]).unwrap();
        let says = |form| computing.below.iter().find(|law| law.law.form == form).map(|law| law.law.at(16).value).unwrap();
        let (least, most, guess) = (says(Form::Inverse), says(Form::Offset), computing.at(16));
        assert!((least..most).contains(&guess.value), "{least} to {most}: {guess:?}");
        let spread = guess.spread.unwrap().exp();
        assert!((guess.value / spread..guess.value * spread).contains(&least) && most < guess.value * spread, "{guess:?}");
        assert!((computing.below.iter().map(|law| law.weight).sum::<f64>() - 1.0).abs() < 1e-12);
    }

    /// The longer side of a plane of 1, 2 or 3 is 1, 2 and 3: that law has no say beside the simpler one.
    #[test]
    fn laws_that_are_the_same_where_it_was_run_have_one_say() {
        let computing = Computing::fit(&runs(&[1, 2, 3], 0.03, |p| 1.0 / p as f64), &[]).unwrap();
        assert!(computing.below.iter().all(|law| law.law.form != Form::Side), "{:?}", computing.below);
        assert!(off(&computing, 8, 0.125) < 0.1, "{:?}", computing.at(8));
        // a line and a power both go through two points
        let computing = Computing::fit(&runs(&[1, 2], 0.03, |p| 1.0 / (p as f64).sqrt()), &[]).unwrap();
        assert!(computing.below.iter().all(|law| law.law.form != Form::Offset), "{:?}", computing.below);
        assert!(off(&computing, 16, 0.25) < 0.3, "{:?}", computing.at(16));
    }

    /// Two processors: a second process slows the first, and a third to eighth have no more to slow.
    #[test]
    fn processes_slow_each_other_until_all_processors_are_busy() {
        let shared = |p: usize| if p == 1 { 1.0 } else { 1.25 / p as f64 };
        let all = runs(&[1, 2, 4], 0.03, shared);
        let computing = Computing::fit(&all, &all[3..]).unwrap();
        assert!(off(&computing, 8, shared(8)) < 0.03, "{:?}", computing.at(8));
        assert!(off(&Computing::fit(&all, &[]).unwrap(), 8, shared(8)) > 0.1, "as if it were the program's own");
        // between runs as before
        assert_eq!((computing.at(2), computing.at(3)), (computing.series.at(2), computing.series.at(3)));
        // of three numbers a law
        let amdahl = |p: usize| (if p == 1 { 1.0 } else { 1.25 }) * (0.2 + 1.0 / p as f64);
        let all = runs(&[1, 2, 4, 8], 0.02, amdahl);
        let computing = Computing::fit(&all, &all[3..]).unwrap();
        assert!(off(&computing, 32, amdahl(32)) < 0.1, "{:?}", computing.at(32));
    }

    /// A little more difference between runs that kept all processors busy changes what is said of more processes a little.
    #[test]
    fn there_is_no_cliff_between_divided_work_and_other() {
        let at = |more: f64| {
            let all = runs(&[1, 2, 4], 0.03, |p| [1.0, 1.1, 1.1 * more][p / 2] / p as f64);
            Computing::fit(&all, &all[3..]).unwrap().at(8).value * 8.0
        };
        let totals: Vec<f64> = (0..60).map(|k| at(1.0 + 0.01 * k as f64)).collect();
        assert!(totals.windows(2).all(|pair| (pair[1] / pair[0]).ln().abs() < 0.04), "{totals:?}");
        assert!((totals[0] / 1.1).ln().abs() < 0.02 && totals[59] > 1.1 * 1.6, "{totals:?}");
    }

    /// However well runs of two numbers agree, that tells no law.
    #[test]
    fn beyond_two_numbers_it_is_not_known_how_far_off_a_prediction_is() {
        let computing = Computing::fit(&runs(&[4, 8], 0.02, |p| 0.1 + 0.9 / p as f64), &[]).unwrap();
        assert!(computing.at(16).spread.is_none() && computing.at(2).spread.is_none());
        assert!(Computing::fit(&runs(&[2, 4, 8], 0.02, |p| 0.1 + 0.9 / p as f64), &[]).unwrap().at(16).spread.is_some());
    }

    /// What two numbers of processes deny is not believed: work that is not divided stays so, also by one run of each.
    #[test]
    fn work_that_is_not_divided_stays_so() {
        for (of_each, noise) in [(3, 0.03), (1, 0.03)] {
            let all = runs(&[1, 2, 4], noise, |_| 1.0);
            let all: Vec<_> = all.chunks(3).flat_map(|own| own[..of_each].to_vec()).collect();
            let computing = Computing::fit(&all, &all[of_each..]).unwrap();
            assert!(off(&computing, 8, 1.0) < 0.1, "{:?}", computing.at(8));
        }
        // two numbers near each other do not deny what all others say
        let all = runs(&[1, 2, 4, 8, 9], 0.02, |_| 1.0);
        let computing = Computing::fit(&all, &all[9..]).unwrap();
        assert!(off(&computing, 64, 1.0) < 0.03, "{:?}", computing.at(64));
        let all = runs(&[1, 8, 9], 0.02, |_| 1.0);
        let computing = Computing::fit(&all, &all[3..]).unwrap();
        assert!(off(&computing, 64, 1.0) < 0.1, "{:?}", computing.at(64));
        // one run that something else slowed tells nothing of chance
        let amdahl = |p: usize| 0.1 + 0.9 / p as f64;
        let mut all = runs(&[1, 2, 4, 8], 0.01, amdahl);
        all[1].1 *= 1.5;
        let divided = Computing::fit(&all, &[]).unwrap().above.pop().unwrap();
        assert!(divided.law.form == Form::Inverse && divided.weight < 1e-3, "{divided:?}");
        // where processors that are busy slow nothing, all runs tell of it beside those
        let amdahl = |p: usize| 0.2 + 0.8 / p as f64;
        let all = runs(&[1, 2, 4, 8], 0.05, amdahl);
        let guess = Computing::fit(&all, &all[3..]).unwrap().at(64);
        assert!((guess.value / amdahl(64)).ln().abs() < guess.spread.unwrap(), "{guess:?}");
        let amdahl = |p: usize| 0.3 + 1.0 / p as f64;
        let all = runs(&[1, 2, 4], 0.03, amdahl);
        let computing = Computing::fit(&all, &all[3..]).unwrap();
        assert!(off(&computing, 8, amdahl(8)) < 0.15, "{:?}", computing.at(8));
        // a small part that is not divided shows where runs differ little, or the interval holds it
        for (part, noise, at_most) in [(0.05, 0.015, 0.05), (0.02, 0.015, 0.3)] {
            let amdahl = |p: usize| part + (1.0 - part) / p as f64;
            let all = runs(&[1, 2, 4, 8], noise, amdahl);
            let computing = Computing::fit(&all, &all[9..]).unwrap();
            let guess = computing.at(64);
            assert!(off(&computing, 64, amdahl(64)) < at_most, "{guess:?} for {}", amdahl(64));
            assert!(off(&computing, 64, amdahl(64)) < guess.spread.unwrap(), "{guess:?} for {}", amdahl(64));
        }
    }
}
