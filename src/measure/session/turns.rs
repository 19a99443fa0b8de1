//! Experiments that take turns: groups that disturb each other, and rivals.

use super::Uplinks;
use crate::measure::Experiment;
use std::collections::BTreeMap;

/// Fields that may run side by side, one lot after the other: where groups take turns, of which each rank has a number, those inside each, and those between
/// them.
pub(super) fn in_turn(fields: Vec<Vec<Experiment>>, group_of: Option<&[usize]>) -> Vec<Vec<Vec<Experiment>>> {
    let Some(group_of) = group_of else { return vec![fields] };
    let mut lots: BTreeMap<Option<usize>, Vec<Vec<Experiment>>> = BTreeMap::new();
    for field in fields {
        let mut groups = field[0].ranks().into_iter().map(|rank| group_of.get(rank).copied());
        let first = groups.next().flatten();
        lots.entry(first.filter(|_| groups.all(|group| group == first))).or_default().push(field);
    }
    lots.into_values().collect()
}

/// True if an experiment is between ranks of several uplinks.
pub(super) fn crosses(experiment: &Experiment, uplinks: &Uplinks) -> bool {
    let (ranks, of_rank) = (experiment.ranks(), &uplinks.of_rank);
    ranks.iter().any(|&rank| of_rank.get(rank) != of_rank.get(ranks[0]))
}

/// Of each lot fields apart from those that go over uplinks, and whether they do, if it is known which rank has which.
pub(super) fn crossing_apart(lots: Vec<Vec<Vec<Experiment>>>, uplinks: Option<&Uplinks>) -> Vec<(Vec<Vec<Experiment>>, bool)> {
    let Some(uplinks) = uplinks else { return lots.into_iter().map(|lot| (lot, false)).collect() };
    let parted = lots.into_iter().flat_map(|lot| {
        let (crossing, inside): (Vec<_>, Vec<_>) = lot.into_iter().partition(|field| crosses(&field[0], uplinks));
        [(inside, false), (crossing, true)]
    });
    parted.filter(|(fields, _)| !fields.is_empty()).collect()
}

/// How many turns of rivals take about as long as handing them out, which is a message to everybody, but at most twice as many as so many turns before, which
/// took `took_s` in all, and their runs `ran_s`, one after the other: where many run side by side it is one. What is beaten meanwhile runs for nothing.
pub(super) fn turns_as_long(turns: usize, took_s: f64, ran_s: f64) -> usize {
    ((turns as f64 * (took_s / ran_s.max(f64::MIN_POSITIVE) - 1.0)) as usize).min(2 * turns)
}

/// Fields of one each.
pub(super) fn alone(experiments: &[Experiment]) -> Vec<Vec<Experiment>> {
    experiments.iter().map(|e| vec![e.clone()]).collect()
}

/// How many batches of whole fields come to about so many batches of experiments, one at least.
pub(super) fn whole_fields(batches: &[Vec<usize>], fields: &[Vec<Experiment>], experiments: usize) -> usize {
    let mut so_far = 0;
    let fits = |batch: &&Vec<usize>| {
        so_far += batch.iter().map(|&k| fields[k].len()).max().unwrap_or(0);
        so_far <= experiments
    };
    batches.iter().take_while(fits).count().max(1)
}

#[cfg(test)]
mod tests {
    use super::super::super::samples::fixtures::settings;
    use super::super::super::{Experiment, Probe, Runs, Session, Settings, StopRule};
    use crate::error::Result;
    use crate::stats;
    use rand::Rng;

    /// Six hosts; each run takes about a millisecond, which scatters, and handing out ten.
    struct FarAway {
        random: stats::Random,
        handed_out: Vec<Vec<Experiment>>,
        elapsed_s: f64,
    }

    impl Probe for FarAway {
        fn settings(&self) -> Settings {
            Settings { hosts: (0..6).map(|k| format!("h{k}")).collect(), ..settings() }
        }

        fn run(&mut self, batches: &[Vec<Experiment>], repetitions: usize) -> Result<Vec<Runs>> {
            self.handed_out.push(batches.concat());
            let once = |random: &mut stats::Random| 1e-3 * (1.0 + random.random::<f64>());
            let all: Vec<Runs> = batches
                .iter()
                .flatten()
                .map(|_| Runs { seconds: (0..repetitions).map(|_| once(&mut self.random)).collect(), clock_error_s: 0.0 })
                .collect();
            self.elapsed_s += 1e-2 + all.iter().flat_map(|runs| &runs.seconds).sum::<f64>();
            Ok(all)
        }

        fn has_native(&self) -> bool {
            false
        }

        fn elapsed(&self) -> f64 {
            self.elapsed_s
        }
    }

    #[test]
    fn groups_take_turns_and_what_is_between_them_is_by_itself() {
        let group_of = vec![0, 0, 1, 1, 2, 2];
        let pair = |(a, b)| Experiment::RoundTrip { a, b, out: 8, back: 8 };
        let wanted: Vec<Experiment> = [(0, 1), (2, 3), (4, 5), (0, 3), (1, 4)].map(pair).to_vec();
        let lots = |turns: bool| {
            let mut probe = FarAway { random: stats::random(1), handed_out: Vec::new(), elapsed_s: 0.0 };
            let mut session = Session::new(&mut probe);
            if turns {
                session.take_turns(group_of.clone());
            }
            session.measure("all", &wanted).unwrap();
            assert_eq!(session.samples().iter().count(), wanted.len());
            drop(session);
            probe.handed_out
        };
        let kind = |e: &Experiment| Some(group_of[e.ranks()[0]]).filter(|first| e.ranks().iter().all(|&rank| group_of[rank] == *first));
        assert!(lots(true).iter().all(|lot| lot.iter().all(|e| kind(e) == kind(&lot[0]))));
        assert!(lots(false)[0].len() == wanted.len(), "side by side all are handed out at once");
    }

    #[test]
    fn as_many_turns_are_handed_out_as_take_no_longer_than_that() {
        let mut probe = FarAway { random: stats::random(2), handed_out: Vec::new(), elapsed_s: 0.0 };
        let mut session = Session::new(&mut probe).rule(StopRule { most: 31, precision: 0.05, ..StopRule::default() });
        session
            .race("two that nobody tells apart", &[(0..2).map(|out| Experiment::RoundTrip { a: 0, b: 1, out, back: 0 }).collect()])
            .unwrap();
        assert!(session.samples().iter().all(|sample| sample.seconds.len() > 12));
        drop(session);
        let turns: Vec<usize> = probe.handed_out.iter().map(|lot| lot.len() / 2).collect();
        assert!(turns[..3] == [2, 1, 2] && turns[3] > 2 && turns[3] <= 4, "ten milliseconds are some three turns of two: {turns:?}");
    }
}
