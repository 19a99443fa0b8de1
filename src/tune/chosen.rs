//! Which of some schedules that were measured is taken, and what it takes: found by runs that did not choose it.

use crate::decide::{ALIKE, CLEAR_MARGIN, NATIVE_MARGIN, beats_native, is_within_a_call};
use crate::error::Result;
use crate::library::Library;
use crate::measure::{DRIFTED, Experiment, Samples, Session, Settings, Stop, is_crowded};
use crate::stats;

/// What a schedule took in the runs that choose: where some of a field were remeasured in turns only those say which is the fastest, and only by these
/// runs.
pub(super) fn choosing(samples: &Samples, experiment: &Experiment) -> Option<f64> {
    stats::median(runs(samples, experiment)?)
}

fn runs<'a>(samples: &'a Samples, experiment: &Experiment) -> Option<&'a [f64]> {
    let sample = samples.get(experiment)?;
    Some(if sample.remeasured.is_empty() { &sample.seconds } else { &sample.remeasured })
}

/// True if a schedule was remeasured in turns with its rivals.
pub(super) fn is_remeasured(samples: &Samples, experiment: &Experiment) -> bool {
    samples.get(experiment).is_some_and(|sample| !sample.remeasured.is_empty())
}

/// The place of the fastest of some schedules: of those that are too short to be told apart the first one, since the best predicted ones come first.
pub(super) fn fastest(samples: &Samples, rivals: &[Experiment]) -> Option<usize> {
    let some = rivals.iter().any(|e| is_remeasured(samples, e));
    let known = || (0..rivals.len()).filter(|&k| !some || is_remeasured(samples, &rivals[k]));
    let time = |k: usize| choosing(samples, &rivals[k]);
    let (fastest, fastest_s) = known().filter_map(|k| Some((k, time(k)?))).min_by(|a, b| a.1.total_cmp(&b.1))?;
    let slower = |k: usize| Some(stats::is_less(runs(samples, &rivals[fastest])?, runs(samples, &rivals[k])?));
    let as_short = |k: usize| time(k).is_some_and(|time_s| is_within_a_call(fastest_s, time_s)) && slower(k) == Some(false);
    known().find(|&k| k == fastest || as_short(k))
}

/// The places of those that runs do not tell from the fastest: hardly slower, and not in each run.
pub(super) fn as_fast(samples: &Samples, rivals: &[Experiment], fastest: usize) -> Vec<usize> {
    let most = |k: usize| Some(choosing(samples, &rivals[k])? * (1.0 + ALIKE)).zip(slowest(samples, &rivals[k]));
    let Some((limit_s, slowest_s)) = most(fastest) else { return Vec::new() };
    let remeasured = is_remeasured(samples, &rivals[fastest]);
    let is = |k: usize| {
        let overlaps = runs(samples, &rivals[k]).is_some_and(|runs| runs.iter().any(|&time| time <= slowest_s));
        overlaps && choosing(samples, &rivals[k]).is_some_and(|time| time <= limit_s) && is_remeasured(samples, &rivals[k]) == remeasured
    };
    (0..rivals.len()).filter(|&k| is(k)).collect()
}

fn slowest(samples: &Samples, experiment: &Experiment) -> Option<f64> {
    Some(runs(samples, experiment)?.iter().copied().fold(0.0, f64::max))
}

/// The place of the fastest by the first runs of each alone: what is searched next hangs on nothing that comes later, so that a recording, or a resumed
/// session, goes the same way.
pub(super) fn fastest_at_first(samples: &Samples, rivals: &[Experiment]) -> Option<usize> {
    let known = rivals.iter().enumerate().filter_map(|(k, e)| Some((k, stats::median(&samples.get(e)?.seconds)?)));
    known.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(k, _)| k)
}

/// Runs what was chosen again, each in turns with the library's own where that might be preferred, or ours to it; longer, where ours seems to be faster by enough and
/// this did not make sure of it, or where both are too short for as many runs to tell them apart. Then calls in a row of both, where ours is taken and the library's
/// own is not far slower, or where calls alone do not tell them apart.
pub(super) fn confirm(session: &mut Session, chosen: Vec<(Experiment, Experiment)>) -> Result<()> {
    let (mut fields, mut far_apart) = (Vec::new(), Vec::new());
    for (own, native) in &chosen {
        match beside(session.samples(), own, native) {
            Beside::InDoubt => fields.push(vec![own.clone(), native.clone()]),
            Beside::FarApart => far_apart.push(vec![own.clone(), native.clone()]),
            Beside::Nothing => fields.push(vec![own.clone()]),
        }
    }
    session.confirm(CONFIRMED, &fields)?;
    session.confirm_briefly(CONFIRMED, far_apart.clone())?;
    let overlap = Library::of(&session.settings().library).lets_calls_overlap();
    let unsure = |field: &Vec<Experiment>| match &field[..] {
        [own, native] => {
            let found = verdict(session.samples(), session.settings(), own, native);
            found.is_some_and(|v| v.is_unsure() || overlap && v.is_short() && !v.is_refused)
        }
        _ => false,
    };
    let unsure: Vec<Vec<Experiment>> = fields.into_iter().chain(far_apart).filter(unsure).collect();
    session.confirm_longer(CONFIRMED, unsure)?;
    if !overlap {
        return Ok(());
    }
    let near = |(own, native): &(Experiment, Experiment)| {
        let Some(found) = verdict(session.samples(), session.settings(), own, native) else { return false };
        let Verdict { own_s, native_s: Some(native_s), .. } = found else { return false };
        let may_win = found.is_short() && !is_slower(session.samples(), own, native);
        may_win || !found.native && native_s <= MADE_UP_FOR * own_s
    };
    let near = chosen.into_iter().filter(near).map(|(own, native)| vec![own, native]).collect();
    session.in_a_row(IN_A_ROW, near)
}

/// What that is for.
const CONFIRMED: &str = "what was chosen, confirmed";

/// What calls in a row are for.
pub(super) const IN_A_ROW: &str = "what was chosen, in a row";

/// Where one call takes so many times less alone, calls in a row are not run: 1.7 times as long in a row would be made up for.
const MADE_UP_FOR: f64 = 3.0;

/// Calls in a row that take so many times as long as the library's own are slower.
const SLOWER_IN_A_ROW: f64 = 1.03;

/// On a host of more ranks than processors ours must win by so much, alone and in a row. Which of them share a processor is another matter each time that a
/// program starts: among 8 ranks on two processors what took 1.1 times less in a row in one start took up to 1.5 times as long in another one.
const CROWDED: f64 = 1.25;

/// What takes so many times as long as the other one is the slower one, however its runs scatter: running both again would take longest just there.
const FAR_APART: f64 = 2.0;

/// What takes no longer is run beside the library's own whatever was found: the first runs of a race, which are all that a loser has, are up to twice as long
/// as later ones there.
const SHORT_S: f64 = 1e-3;

/// Whether the library's own is run once more beside what was chosen.
#[derive(Debug, PartialEq)]
enum Beside {
    /// One of the two may be faster, whatever was found: where neither beat the other in a race, that takes a quarter, and runs that do not scatter, or more.
    InDoubt,
    /// They are far apart, by few runs of what is [short](SHORT_S).
    FarApart,
    Nothing,
}

fn beside(samples: &Samples, own: &Experiment, native: &Experiment) -> Beside {
    let Some(times) = choosing(samples, own).zip(choosing(samples, native)) else { return Beside::Nothing };
    let stopped = |stop: Stop| [own, native].iter().any(|e| samples.get(e).is_some_and(|sample| sample.stop == stop));
    let (slower, faster) = (times.0.max(times.1), times.0.min(times.1));
    if slower <= DRIFTED * faster || slower <= FAR_APART * faster && stopped(Stop::Budget) && !stopped(Stop::Beaten) {
        Beside::InDoubt
    } else if slower <= SHORT_S {
        Beside::FarApart
    } else {
        Beside::Nothing
    }
}

/// Of fewer runs each no test says that one is faster.
const LEAST_FOR_TEST: usize = 3;

/// What was found of a schedule that was chosen, and of the library's own beside it.
pub(super) struct Verdict {
    pub own_s: f64,
    pub native_s: Option<f64>,
    /// The library's own is taken.
    pub native: bool,
    /// No more runs of each alone are made: ours is slower in a row, by more than one call alone makes up for, or faster by too little on a host that is
    /// [crowded](is_crowded).
    pub is_refused: bool,
    /// It is refused for no more than a few percent in a row: what the library's own loses [from another root](super::other_roots) may make up for that.
    pub is_hardly_refused: bool,
}

impl Verdict {
    /// True if only doubt speaks for the library's own.
    fn is_unsure(&self) -> bool {
        self.native && !self.is_refused && self.native_s.is_some_and(|native| beats_native(self.own_s, native, Some(true)))
    }

    /// True if they are [too short](is_within_a_call) for calls alone to tell them apart.
    fn is_short(&self) -> bool {
        self.native_s.is_some_and(|native_s| is_within_a_call(self.own_s, native_s))
    }
}

/// By the runs that [confirmed](confirm) the choice, where there are some, and by calls in a row.
pub(super) fn verdict(samples: &Samples, settings: &Settings, own: &Experiment, native: &Experiment) -> Option<Verdict> {
    let confirmed = |e: &Experiment| samples.get(e).map_or(&[][..], |sample| &sample.confirmed);
    let time = |e: &Experiment| stats::median(confirmed(e)).or_else(|| choosing(samples, e));
    let (own_s, native_s) = (time(own)?, time(native));
    let runs = (confirmed(own), confirmed(native));
    let clearly = (runs.0.len().min(runs.1.len()) >= LEAST_FOR_TEST).then(|| stats::is_less(runs.0, runs.1));
    let in_a_row = |e: &Experiment| stats::median(&samples.get(e)?.in_a_row);
    let times_as_long = in_a_row(own).zip(in_a_row(native)).map_or(0.0, |(own, native)| own / native);
    // what is lost in a row counts twice: in doubt it is the library's own
    let slower_in_a_row = times_as_long > SLOWER_IN_A_ROW && native_s.is_some_and(|native| times_as_long.powi(2) > native / own_s);
    let wins_by = native_s.map_or(f64::INFINITY, |native| (native / own_s).min(1.0 / times_as_long));
    let crowded = wins_by < CROWDED && is_crowded(settings, &own.ranks());
    let is_refused = slower_in_a_row || crowded;
    let is_hardly_refused = slower_in_a_row && !crowded && times_as_long <= 1.0 + NATIVE_MARGIN;
    let runs_in_a_row = |e: &Experiment| samples.get(e).map_or(&[][..], |sample| &sample.in_a_row);
    let wins = |native_s: f64| match is_within_a_call(own_s, native_s) {
        true => {
            let wins = times_as_long * (1.0 + CLEAR_MARGIN) <= 1.0 && stats::is_less(runs_in_a_row(own), runs_in_a_row(native));
            wins && !is_slower(samples, own, native)
        }
        false => beats_native(own_s, native_s, clearly),
    };
    let native = native_s.is_some_and(|native_s| is_refused || !wins(native_s));
    Some(Verdict { own_s, native_s, native, is_refused, is_hardly_refused })
}

/// True if runs of each alone say that ours is slower, by more than what may be made up for in a row.
fn is_slower(samples: &Samples, own: &Experiment, native: &Experiment) -> bool {
    let confirmed = |e: &Experiment| samples.get(e).map_or(&[][..], |sample| &sample.confirmed);
    let by_more = |(own_s, native_s): (f64, f64)| own_s > native_s * (1.0 + NATIVE_MARGIN);
    let by_more = stats::median(confirmed(own)).zip(stats::median(confirmed(native))).is_some_and(by_more);
    by_more && stats::is_less(confirmed(native), confirmed(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Sample;

    fn settings() -> Settings {
        let text = String::new;
        let (hosts, placement) = (vec!["a".into(), "b".into()], vec!["0".into(); 2]);
        Settings { format: 1, platform: text(), hosts, library: text(), timer: text(), date: text(), build: text(), placement }
    }

    fn experiment(out: usize) -> Experiment {
        Experiment::RoundTrip { a: 0, b: 1, out, back: 0 }
    }

    fn sample(out: usize, seconds: &[f64], stop: Stop) -> Sample {
        let (experiment, seconds) = (experiment(out), seconds.to_vec());
        Sample { experiment, seconds, stop, remeasured: Vec::new(), confirmed: Vec::new(), in_a_row: Vec::new(), clock_error_s: 0.0 }
    }

    fn samples(all: impl IntoIterator<Item = Sample>) -> Samples {
        let mut samples = Samples::default();
        all.into_iter().for_each(|s| samples.insert(s));
        samples
    }

    #[test]
    fn where_some_were_remeasured_only_these_and_these_runs_choose() {
        let rivals: Vec<Experiment> = (0..3).map(experiment).collect();
        let raced = [sample(0, &[1.0], Stop::Precise), sample(1, &[1.1], Stop::Precise), sample(2, &[1.2], Stop::Precise)];
        assert_eq!(fastest(&samples(raced.clone()), &rivals), Some(0));
        let [a, b, c] = raced;
        let (b, c) = (Sample { remeasured: vec![1.4], ..b }, Sample { remeasured: vec![1.3], ..c });
        assert_eq!(fastest(&samples([a, b, c]), &rivals), Some(2));
        assert_eq!(fastest(&Samples::default(), &rivals), None);
    }

    #[test]
    fn what_is_hardly_slower_and_not_in_each_run_is_as_fast() {
        let rivals: Vec<Experiment> = (0..5).map(experiment).collect();
        let of = |out, seconds: &[f64]| sample(out, seconds, Stop::Precise);
        let all = samples([of(0, &[1.0, 1.001]), of(1, &[1.002, 1.003]), of(2, &[1.0, 1.008]), of(3, &[1.0, 1.1]), of(4, &[0.9, 1.1])]);
        assert_eq!(as_fast(&all, &rivals, 0), [0, 2, 4], "one is slower in each run, one by too much");
        let remeasured = Sample { remeasured: vec![1.0], ..of(0, &[1.0]) };
        assert_eq!(as_fast(&samples([remeasured, of(1, &[1.0])]), &rivals, 0), [0], "few runs say little beside many");
    }

    #[test]
    fn the_librarys_own_is_taken_in_doubt() {
        let ms = |times: &[f64]| times.iter().map(|t| t * 1e-3).collect::<Vec<_>>();
        let native = |own: &[f64], native: &[f64]| {
            let of = |out, times: &[f64]| Sample { confirmed: ms(times), ..sample(out, &ms(&[1.0]), Stop::Budget) };
            verdict(&samples([of(0, own), of(1, native)]), &settings(), &experiment(0), &experiment(1)).unwrap().native
        };
        assert!(!native(&[1.0, 1.01, 1.02], &[1.06, 1.07, 1.08]));
        assert!(native(&[1.0, 1.01, 1.02], &[1.021, 1.022, 1.023]), "by too little");
        assert!(native(&[1.0, 0.5, 3.0, 0.8, 2.0], &[1.3, 1.4, 0.6, 2.5, 0.9]), "the median is 1.3 times ours, by chance");
        assert!(native(&[5e-3; 3], &[5.9e-3; 3]), "a call costs more than that");
    }

    #[test]
    fn what_is_slower_in_a_row_is_not_taken() {
        let native = |in_a_row: [&[f64]; 2]| {
            let of = |k: usize, time: f64| Sample { in_a_row: in_a_row[k].to_vec(), ..sample(k, &[time], Stop::Precise) };
            let verdict = verdict(&samples([of(0, 1.0), of(1, 1.5)]), &settings(), &experiment(0), &experiment(1)).unwrap();
            assert!(!verdict.is_unsure(), "more runs of each alone would change nothing");
            verdict.native
        };
        assert!(!native([&[], &[]]) && !native([&[0.5], &[]]), "not known");
        assert!(!native([&[0.5, 0.51, 9.0], &[0.5, 0.5, 0.5]]));
        assert!(!native([&[0.5, 0.6, 0.6], &[0.5, 0.5, 0.5]]), "1.2 times as long, where one alone takes 1.5 times less");
        assert!(native([&[0.5, 0.65, 0.65], &[0.5, 0.5, 0.5]]));
    }

    #[test]
    fn of_what_is_too_short_to_be_told_apart_the_best_predicted_is_taken() {
        let rivals: Vec<Experiment> = (0..3).map(experiment).collect();
        let of = |out, seconds: &[f64]| sample(out, seconds, Stop::Budget);
        let alike = [of(0, &[2.1e-7, 2.9e-7, 3.5e-7]), of(1, &[2.0e-7, 2.8e-7, 3.6e-7]), of(2, &[1.9e-7, 2.7e-7, 3.3e-7])];
        assert_eq!(fastest(&samples(alike), &rivals), Some(0));
        let clear = [of(0, &[3.6e-7, 3.7e-7, 3.8e-7]), of(1, &[2.0e-7, 2.8e-7, 3.3e-7]), of(2, &[1.9e-7, 2.7e-7, 3.2e-7])];
        assert_eq!(fastest(&samples(clear), &rivals), Some(1), "each run of the first one is longer");
        let long = [of(0, &[2.1e-4, 2.9e-4, 3.5e-4]), of(1, &[2.0e-4, 2.8e-4, 3.6e-4]), of(2, &[1.9e-4, 2.7e-4, 3.3e-4])];
        assert_eq!(fastest(&samples(long), &rivals), Some(2));
    }

    #[test]
    fn what_is_too_short_for_calls_alone_is_taken_by_calls_in_a_row() {
        let alone = [&[2.4e-7, 2.9e-7, 3.9e-7][..], &[2.2e-7, 2.6e-7, 4.2e-7]];
        let native = |alone: [&[f64]; 2], in_a_row: [&[f64]; 2]| {
            let of = |k: usize| {
                let (confirmed, in_a_row) = (alone[k].to_vec(), in_a_row[k].to_vec());
                Sample { confirmed, in_a_row, ..sample(k, alone[k], Stop::Budget) }
            };
            verdict(&samples([of(0), of(1)]), &settings(), &experiment(0), &experiment(1)).unwrap().native
        };
        assert!(!native(alone, [&[0.99e-7, 1.0e-7, 1.01e-7], &[1.1e-7, 1.1e-7, 1.2e-7]]));
        assert!(native(alone, [&[], &[]]), "none were made");
        let far = [&[2.0e-7, 2.1e-7, 2.2e-7][..], &[8.0e-7, 8.1e-7, 8.2e-7]];
        assert!(!native(far, [&[0.99e-7, 1.0e-7, 1.01e-7], &[4e-7, 4e-7, 4e-7]]), "four times as long is within a microsecond");
        assert!(native(alone, [&[1.085e-7, 1.085e-7, 1.085e-7], &[1.1e-7, 1.1e-7, 1.2e-7]]), "by too little");
        assert!(native(alone, [&[0.99e-7, 1.0e-7, 1.15e-7], &[1.1e-7, 1.1e-7, 1.2e-7]]), "not clearly");
        let slower = [&[4.0e-7, 4.1e-7, 4.2e-7][..], &[3.0e-7, 3.1e-7, 3.2e-7]];
        let in_a_row = [&[0.99e-7, 1.0e-7, 1.01e-7][..], &[1.1e-7, 1.1e-7, 1.2e-7]];
        assert!(native(slower, in_a_row), "one alone is slower");
        let by = |times: f64| [3.0e-7, 3.001e-7, 3.002e-7].map(|t| t * times);
        assert!(!native([&by(1.04), &by(1.0)], in_a_row) && native([&by(1.06), &by(1.0)], in_a_row), "by how much, in each run");
    }

    #[test]
    fn on_a_crowded_host_ours_is_taken_where_it_wins_by_much_alone_and_in_a_row() {
        let crowded = Settings { hosts: vec!["a".into(); 2], placement: vec!["0".into(); 2], ..settings() };
        let native = |settings: &Settings, alone: f64, in_a_row: f64| {
            let of = |k: usize, time: f64, row: f64| Sample { in_a_row: vec![row], ..sample(k, &[time], Stop::Precise) };
            let samples = samples([of(0, 1.0, 1.0), of(1, alone, in_a_row)]);
            verdict(&samples, settings, &experiment(0), &experiment(1)).unwrap().native
        };
        assert!(!native(&settings(), 1.2, 1.2) && native(&crowded, 1.2, 1.2));
        assert!(native(&crowded, 1.3, 1.2) && native(&crowded, 1.2, 1.3) && !native(&crowded, 1.3, 1.3));
    }

    #[test]
    fn what_is_far_apart_is_not_run_beside_each_other() {
        let of = |out, time: f64, stop| sample(out, &[time; 3], stop);
        let said = |own: Sample, native: Sample| beside(&samples([own, native]), &experiment(0), &experiment(1));
        assert_eq!(said(of(0, 1.0, Stop::Precise), of(1, 1.2, Stop::Beaten)), Beside::InDoubt);
        assert_eq!(said(of(0, 1.0, Stop::Precise), of(1, 1.4, Stop::Precise)), Beside::Nothing);
        assert_eq!(said(of(0, 1.0, Stop::Budget), of(1, 1.4, Stop::Beaten)), Beside::Nothing);
        assert_eq!(said(of(0, 1.0, Stop::Budget), of(1, 1.4, Stop::Budget)), Beside::InDoubt, "they scatter");
        assert_eq!(said(of(0, 1.0, Stop::Budget), of(1, 2.1, Stop::Budget)), Beside::Nothing, "not by as much");
        assert_eq!(said(of(0, 1.4, Stop::Beaten), of(1, 1.0, Stop::Precise)), Beside::Nothing);
        assert_eq!(said(of(0, 1e-5, Stop::Precise), of(1, 1.2e-5, Stop::Beaten)), Beside::InDoubt);
        assert_eq!(said(of(0, 1e-5, Stop::Precise), of(1, 5e-5, Stop::Beaten)), Beside::FarApart, "first runs say little");
        assert_eq!(beside(&samples([of(0, 1.0, Stop::Budget)]), &experiment(0), &experiment(1)), Beside::Nothing, "there is no other");
    }
}
