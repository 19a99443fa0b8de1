//! What begins with a run that does not count: where a path between two ranks has not carried as much yet, and where runs are so short that
//! caches matter.

use super::Experiment;
use crate::error::Result;
use crate::schedule::Action;
use crate::topology::Rank;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

/// Runs that take longer than so many seconds need no warm caches, once their paths are warm.
const NO_WARM_CACHES_S: f64 = 1e-3;

/// What a new connection sends before it hears anything from the other side, 10 segments of Ethernet (RFC 6928): no window has to grow for that.
const INITIAL_WINDOW: usize = 10 * 1460;

/// What a first run warms: connections and their windows between two ranks, or all that one collective uses.
type Path = (Vec<Rank>, Option<Experiment>);

/// What is known of the paths that were measured.
#[derive(Default)]
pub(super) struct Warmth {
    paths: FxHashMap<Path, Carried>,
    /// From one rank to another: the most bytes that were sent in one run.
    pairs: FxHashMap<(Rank, Rank), usize>,
    /// Collectives that ranks ran by the library's own.
    native: FxHashSet<Option<(&'static str, Vec<Rank>)>>,
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
    /// What one message of each size takes at least: a bound from so many in a row.
    message_s: BTreeMap<(usize, usize), f64>,
}

impl Default for Carried {
    fn default() -> Carried {
        Carried { bytes: 0, messages: 0, shortest_s: f64::INFINITY, message_s: BTreeMap::new() }
    }
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
        let warm = self.paths.entry(path(experiment)).or_default();
        let mut carried = experiment.bytes() <= warm.bytes && experiment.messages() <= warm.messages;
        (warm.bytes, warm.messages) = (warm.bytes.max(experiment.bytes()), warm.messages.max(experiment.messages()));
        let shortest_s = warm.shortest_s;
        let is_long = |seconds: f64| (NO_WARM_CACHES_S..f64::INFINITY).contains(&seconds);
        let is_long = is_long(shortest_s)
            || self.shorter(experiment).is_some_and(is_long)
            || self.back_s(experiment).is_some_and(is_long)
            || experiment.is_collective() && self.is_far(&experiment.ranks(), experiment.bytes());
        // what a message between two ranks warms is warm for their collectives
        if is_new || !carried {
            let carries = self.carries(experiment)?;
            carried = if experiment.is_collective() { carries } else { carried };
        }
        // overheads are short, but between runs that wait for a long way caches get cold whatever ran first
        Ok(!carried || !is_long)
    }

    /// What an experiment took.
    pub fn took(&mut self, experiment: &Experiment, seconds: f64) {
        if is_overhead(experiment) {
            return;
        }
        self.paths.entry(path(experiment)).and_modify(|warm| {
            warm.shortest_s = warm.shortest_s.min(seconds);
            if !experiment.is_collective() && experiment.delay_s() == 0.0 {
                let messages = experiment.messages().max(1);
                // out and back
                let each_s = seconds / (2 * messages) as f64;
                let least = warm.message_s.entry((experiment.bytes(), messages)).or_insert(f64::INFINITY);
                *least = least.min(each_s);
            }
        });
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

    /// What the shortest experiment of the other one of two ranks took: the way back is as long.
    fn back_s(&self, experiment: &Experiment) -> Option<f64> {
        let (mut ranks, of) = path(experiment);
        ranks.reverse();
        (of.is_none() && ranks.len() == 2).then(|| self.paths.get(&(ranks, None))).flatten().map(|path| path.shortest_s)
    }

    /// True if all that some ranks do together with so many bytes takes long, since a message of no more to one of them does.
    fn is_far(&self, ranks: &[Rank], bytes: usize) -> bool {
        let pair = |of: &Rank| self.paths.get(&(vec![ranks[0], *of], None)).or_else(|| self.paths.get(&(vec![*of, ranks[0]], None)));
        // messages in a row share latencies, and an answer is as long as a message at most: each of these bounds is less than one takes alone
        let is_long = |path: &Carried| path.message_s.range(..=(bytes, usize::MAX)).any(|(_, &seconds)| seconds >= NO_WARM_CACHES_S);
        ranks.iter().filter_map(pair).any(is_long)
    }

    /// Notes what each pair of ranks is sent in a run; true if each was sent as much in a run before, or no more than needs no window. Of the
    /// library's own nobody knows: the same ranks ran it before, of whatever size, and of a run that is slow for a cold path another one tells.
    fn carries(&mut self, experiment: &Experiment) -> Result<bool> {
        if experiment.is_native() {
            return Ok(!self.native.insert(collective(experiment)));
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
            all &= matches!(&most, Entry::Occupied(most) if bytes <= (*most.get()).max(INITIAL_WINDOW));
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
        assert!(ask(&broadcast("flat", 100_000, 0), 2e-3), "nothing was sent yet");
        assert!(!ask(&broadcast("flat", 100_000, 0), 2e-3));
        assert!(!ask(&broadcast("segmented_flat", 100_000, 100), 2e-3), "as many bytes to the same ranks, in other pieces");
        assert!(ask(&broadcast("chain", 100_000, 0), 2e-3), "other pairs");
        assert!(ask(&broadcast("flat", 100_001, 0), 2e-3), "more bytes");
        assert!(!ask(&broadcast("segmented_chain", 100_000, 100), 0.5e-3), "broadcasts over these ranks take long");
        assert!(ask(&broadcast("segmented_chain", 100_000, 200), 2e-3), "now one was short");
        let short = |bytes| broadcast("native", bytes, 0);
        assert!(ask(&short(100_001), 2e-3) && !ask(&short(100_001), 2e-3), "what it sends is not known");
        let long = |bytes| Experiment::Collective {
            collective: &bcast::COLLECTIVE,
            ranks: vec![2, 5],
            root: 0,
            bytes,
            algorithm: "native".into(),
            parameters: Parameters::default(),
        };
        assert!(ask(&long(10), 2e-3) && !ask(&long(100_000), 2e-3), "it is long and ran before");
    }

    #[test]
    fn where_a_pair_is_far_apart_collectives_need_no_warm_caches() {
        for (way_s, warms_up) in [(1.5e-3, true), (2.5e-3, false)] {
            let mut warmth = Warmth::default();
            for b in [5, 7, 9] {
                let trip = Experiment::RoundTrip { a: b, b: 2, out: 0, back: 0 };
                let train = Experiment::SaturationTrain { a: b, b: 2, bytes: 0, count: 16, delay_ns: 0 };
                let way_s = if b == 9 { way_s } else { 1e-4 };
                for (e, took) in [(trip, way_s), (train, way_s + 1e-4)] {
                    warmth.warms_up(&e).unwrap();
                    warmth.took(&e, took);
                }
            }
            assert_eq!(warmth.warms_up(&broadcast("flat", 1, 0)).unwrap(), warms_up);
        }
    }

    #[test]
    fn where_a_pair_takes_long_for_so_many_bytes_collectives_of_as_many_need_no_warm_caches() {
        let mut warmth = Warmth::default();
        for (a, b, bytes, took) in
            [(2, 5, 1000, 1e-4), (2, 7, 1000, 1e-4), (2, 9, 1000, 1e-4), (2, 5, 100_000, 9e-3), (2, 7, 100_000, 9e-3)]
        {
            let train = Experiment::SaturationTrain { a, b, bytes, count: 4, delay_ns: 0 };
            assert!(warmth.warms_up(&train).unwrap());
            warmth.took(&train, took);
        }
        let mut warms_up = |bytes| warmth.warms_up(&broadcast("flat", bytes, 0)).unwrap();
        assert!(warms_up(100_000), "one path carried less");
        assert!(!warms_up(100_000), "a message takes 1.1 ms and nothing of the collective is known");
        assert!(warms_up(1000), "short ones do");
    }

    #[test]
    fn what_pairs_sent_each_other_is_warm_for_collectives_and_little_needs_no_window() {
        let mut warmth = Warmth::default();
        let mut ask = |e: &Experiment| {
            let warms_up = warmth.warms_up(e).unwrap();
            warmth.took(e, 2e-3);
            warms_up
        };
        assert!(ask(&broadcast("flat", 1, 0)));
        assert!(!ask(&broadcast("flat", INITIAL_WINDOW, 0)), "it is sent at once");
        for b in [5, 7, 9] {
            assert!(ask(&Experiment::SaturationTrain { a: 2, b, bytes: 100_000, count: 2, delay_ns: 0 }));
        }
        assert!(!ask(&broadcast("flat", 200_000, 0)) && ask(&broadcast("chain", 200_000, 0)), "others sent nothing");
    }

    #[test]
    fn pairs_are_warm_for_what_they_carried_and_overheads_where_the_way_is_long() {
        let mut warmth = Warmth::default();
        let trip = |out| Experiment::RoundTrip { a: 0, b: 1, out, back: 0 };
        let mut ask = |e: &Experiment| {
            let warms_up = warmth.warms_up(e).unwrap();
            warmth.took(e, 5e-3);
            warms_up
        };
        assert_eq!([trip(10), trip(10), trip(9), trip(11)].map(|e| ask(&e)), [true, false, false, true]);
        let overhead = Experiment::SendTime { a: 0, b: 1, bytes: 5 };
        assert!(!ask(&overhead), "the way is long");
        let back = Experiment::RoundTrip { a: 1, b: 0, out: 9, back: 0 };
        assert!(ask(&back) && !ask(&back));
        let (near, overhead) = (Experiment::RoundTrip { a: 0, b: 2, out: 9, back: 0 }, Experiment::SendTime { a: 0, b: 2, bytes: 5 });
        assert!(warmth.warms_up(&near).unwrap());
        warmth.took(&near, 5e-5);
        assert!(warmth.warms_up(&overhead).unwrap() && warmth.warms_up(&overhead).unwrap());
    }
}
