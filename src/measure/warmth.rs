//! What begins with a run that does not count: where a path between two ranks has not carried as much yet, and where runs are so short that
//! caches matter.

use super::Experiment;
use crate::error::Result;
use crate::schedule::Action;
use crate::topology::Rank;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

/// Runs that take longer than so many seconds need no warm caches, once their paths are warm.
const NO_WARM_CACHES_S: f64 = 1e-3;

/// What a first run warms: connections and their windows between two ranks, or all that one collective uses.
type Path = (Vec<Rank>, Option<Experiment>);

/// What is known of the paths that were measured.
#[derive(Default)]
pub(super) struct Warmth {
    paths: FxHashMap<Path, Carried>,
    /// From one rank to another: the most bytes that a collective sent in one run.
    pairs: FxHashMap<(Rank, Rank), usize>,
    /// What the shortest run of a collective over some ranks took, by size.
    shortest_s: FxHashMap<(&'static str, Vec<Rank>), BTreeMap<usize, f64>>,
}

/// What a path has carried.
struct Carried {
    /// The largest message.
    bytes: usize,
    /// Most messages in a row.
    messages: usize,
    /// What the shortest experiment took.
    shortest_s: f64,
}

fn path(experiment: &Experiment) -> Path {
    (experiment.ranks(), experiment.is_collective().then(|| experiment.clone()))
}

/// What a sender or receiver spends, which is short and says nothing of the path.
fn is_overhead(experiment: &Experiment) -> bool {
    matches!(experiment, Experiment::SendTime { .. } | Experiment::ReceiveTime { .. })
}

/// The collective over its ranks, in whatever order.
fn collective(experiment: &Experiment) -> Option<(&'static str, Vec<Rank>)> {
    let mut ranks = experiment.ranks();
    ranks.sort_unstable();
    experiment.collective().map(|c| (c.name, ranks))
}

impl Warmth {
    /// True if an experiment that runs now begins with a run that does not count.
    ///
    /// # Errors
    /// An algorithm that there is not.
    pub fn warms_up(&mut self, experiment: &Experiment) -> Result<bool> {
        let is_new = !self.paths.contains_key(&path(experiment));
        let warm = self.paths.entry(path(experiment)).or_insert(Carried { bytes: 0, messages: 0, shortest_s: f64::INFINITY });
        let mut carried = experiment.bytes() <= warm.bytes && experiment.messages() <= warm.messages;
        (warm.bytes, warm.messages) = (warm.bytes.max(experiment.bytes()), warm.messages.max(experiment.messages()));
        let is_long = |seconds: f64| (NO_WARM_CACHES_S..f64::INFINITY).contains(&seconds);
        let is_long = is_long(warm.shortest_s) || self.shorter(experiment).is_some_and(is_long);
        if is_new && experiment.is_collective() {
            carried = self.carries(experiment)?;
        }
        Ok(is_overhead(experiment) || !carried || !is_long)
    }

    /// What an experiment took.
    pub fn took(&mut self, experiment: &Experiment, seconds: f64) {
        if is_overhead(experiment) {
            return;
        }
        self.paths.entry(path(experiment)).and_modify(|warm| warm.shortest_s = warm.shortest_s.min(seconds));
        if let Some(of) = collective(experiment) {
            let shortest = self.shortest_s.entry(of).or_default().entry(experiment.bytes()).or_insert(f64::INFINITY);
            *shortest = shortest.min(seconds);
        }
    }

    /// What the same collective took at least over the same ranks, at the largest size that is no larger: this one is hardly shorter.
    fn shorter(&self, experiment: &Experiment) -> Option<f64> {
        let by_size = self.shortest_s.get(&collective(experiment)?)?;
        by_size.range(..=experiment.bytes()).next_back().map(|(_, seconds)| *seconds)
    }

    /// Notes what each pair of ranks is sent in a run of a collective; true if each was sent as much in a run before. Of the library's own nobody
    /// knows.
    fn carries(&mut self, experiment: &Experiment) -> Result<bool> {
        if experiment.is_native() {
            return Ok(false);
        }
        let ranks = experiment.ranks();
        let mut sent: FxHashMap<(Rank, Rank), usize> = FxHashMap::default();
        for (from, program) in experiment.schedule()?.programs.iter().enumerate() {
            for action in program.actions() {
                if let Action::Send { to, span } = action {
                    *sent.entry((ranks[from], ranks[to])).or_default() += span.len;
                }
            }
        }
        let mut all = true;
        for (pair, bytes) in sent {
            let most = self.pairs.entry(pair);
            all &= matches!(&most, Entry::Occupied(most) if *most.get() >= bytes);
            let most = most.or_default();
            *most = bytes.max(*most);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{Parameters, bcast};

    fn broadcast(algorithm: &str, bytes: usize, segment: usize) -> Experiment {
        let (ranks, parameters) = (vec![2, 5, 7, 9], Parameters::of(segment, 0));
        Experiment::Collective { collective: &bcast::COLLECTIVE, ranks, root: 0, bytes, algorithm: algorithm.into(), parameters }
    }

    #[test]
    fn a_collective_warms_up_where_a_path_carried_less_or_runs_are_short() {
        let mut warmth = Warmth::default();
        let mut ask = |e: &Experiment, took: f64| {
            let warms_up = warmth.warms_up(e).unwrap();
            warmth.took(e, took);
            warms_up
        };
        assert!(ask(&broadcast("flat", 1000, 0), 2e-3), "nothing was sent yet");
        assert!(!ask(&broadcast("flat", 1000, 0), 2e-3));
        assert!(!ask(&broadcast("segmented_flat", 1000, 100), 2e-3), "as many bytes to the same ranks, in other pieces");
        assert!(ask(&broadcast("chain", 1000, 0), 2e-3), "other pairs");
        assert!(ask(&broadcast("flat", 1001, 0), 2e-3), "more bytes");
        assert!(!ask(&broadcast("segmented_chain", 1000, 100), 0.5e-3), "broadcasts over these ranks take long");
        assert!(ask(&broadcast("segmented_chain", 1000, 200), 2e-3), "now one was short");
        assert!(ask(&broadcast("native", 1001, 0), 2e-3) && !ask(&broadcast("native", 1001, 0), 2e-3), "what it sends is not known");
    }

    #[test]
    fn pairs_are_warm_for_what_they_carried_and_overheads_always_warm_up() {
        let mut warmth = Warmth::default();
        let trip = |out| Experiment::RoundTrip { a: 0, b: 1, out, back: 0 };
        let mut ask = |e: &Experiment| {
            let warms_up = warmth.warms_up(e).unwrap();
            warmth.took(e, 5e-3);
            warms_up
        };
        assert_eq!([trip(10), trip(10), trip(9), trip(11)].map(|e| ask(&e)), [true, false, false, true]);
        let overhead = Experiment::SendTime { a: 0, b: 1, bytes: 5 };
        assert!(ask(&overhead) && ask(&overhead));
    }
}
