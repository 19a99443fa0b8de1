//! Packing experiments into batches that share no host, since what runs side by side must not disturb each other; and what each rank does
//! when several batches run one after the other.

use super::Experiment;
use crate::topology::Rank;
use petgraph::unionfind::UnionFind;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// So many parts of a rank, barriers among them, are made ready at a time, for their memory: who plays the first of these may be late for it.
pub(super) const READY: usize = 64;

/// Batches so far back are full: whoever looks for a free place in them finds none, and would look at all.
const OPEN: usize = 256;

/// Packs experiments, in order, each into the first batch where none of its hosts is in use. Gives the positions.
pub fn pack(experiments: &[Experiment], hosts: &[String], side_by_side: bool) -> Vec<Vec<usize>> {
    if !side_by_side {
        return (0..experiments.len()).map(|k| vec![k]).collect();
    }
    let number = numbers(hosts);
    let mut batches: Vec<Vec<usize>> = Vec::new();
    // of each host, the batches that it takes part in, by the bits of words
    let mut busy: Vec<Vec<u64>> = vec![Vec::new(); hosts.len() + 1];
    for (k, experiment) in experiments.iter().enumerate() {
        let used: Vec<usize> = experiment.ranks().iter().map(|&r| number.get(r).copied().unwrap_or(hosts.len())).collect();
        let first_open = batches.len().saturating_sub(OPEN);
        let taken = |word: usize| used.iter().map(|&host| busy[host].get(word).copied().unwrap_or(0)).fold(0, |all, word| all | word);
        let free = |word: usize| !taken(word) & if word == first_open / 64 { u64::MAX << (first_open % 64) } else { u64::MAX };
        let place = (first_open / 64..).map(|word| (word, free(word))).find(|(_, free)| *free != 0);
        let place = place.map_or(batches.len(), |(word, free)| word * 64 + free.trailing_zeros() as usize).min(batches.len());
        if place == batches.len() {
            batches.push(Vec::new());
        }
        batches[place].push(k);
        for host in used {
            let words = &mut busy[host];
            words.resize(words.len().max(place / 64 + 1), 0);
            words[place / 64] |= 1 << (place % 64);
        }
    }
    batches
}

/// A number for the host of each rank.
fn numbers(hosts: &[String]) -> Vec<usize> {
    let mut first = FxHashMap::default();
    hosts.iter().enumerate().map(|(rank, host)| *first.entry(host).or_insert(rank)).collect()
}

/// What a rank does in its turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// It plays its part in an experiment, once more before it counts if it must warm up.
    Play {
        /// What is played.
        experiment: Experiment,
        /// A run that does not count comes first.
        warm_up: bool,
        /// All its ranks come from a collective that they began in the same way, timed by the same one: nobody is late.
        follows: bool,
    },
    /// It waits until these ranks, itself among them, have come so far.
    Barrier(Vec<Rank>),
}

/// What each rank does so that batches run one after the other on every host. A rank's own order is enough where no other rank of its host
/// takes part, and nobody waits for batches far away. Otherwise those who share hosts, straight or over others, meet after each batch; they
/// need not before another collective of the same ranks and root, which nobody begins before the root does.
pub fn parts(batches: &[Vec<Experiment>], hosts: &[String], mut warms_up: impl FnMut(&Experiment) -> bool) -> BTreeMap<Rank, Vec<Part>> {
    let mut parts: BTreeMap<Rank, Vec<Part>> = BTreeMap::new();
    // all that was handed out, and by rank what it plays last
    let (mut handed_out, mut last): (Vec<&Experiment>, FxHashMap<Rank, usize>) = (Vec::new(), FxHashMap::default());
    let circles = circles(batches, hosts);
    for (k, batch) in batches.iter().enumerate() {
        for experiment in batch {
            let ranks = experiment.ranks();
            let before = last.get(&ranks[0]).copied();
            let of = |e: &Experiment| (e.is_collective(), e.begins_together(), e.timer());
            let is_same = |before: &Experiment| experiment.is_collective() && of(before) == of(experiment) && before.ranks() == ranks;
            // whoever makes the next ones ready may be late
            let comes = |r: &Rank| last.get(r).copied() == before && parts.get(r).is_some_and(|parts| !parts.len().is_multiple_of(READY));
            let follows = before.is_some_and(|before| is_same(handed_out[before])) && ranks.iter().all(comes);
            let part = Part::Play { experiment: experiment.clone(), warm_up: warms_up(experiment), follows };
            for r in ranks {
                parts.entry(r).or_default().push(part.clone());
                last.insert(r, handed_out.len());
            }
            handed_out.push(experiment);
        }
        let Some(next) = batches.get(k + 1) else { break };
        for circle in circles.iter().filter(|circle| !goes_on(circle, batch, next)) {
            for &r in circle {
                parts.entry(r).or_default().push(Part::Barrier(circle.clone()));
                last.remove(&r);
            }
        }
    }
    parts
}

/// The ranks that take part and are bound by shared hosts, where several are of one host.
fn circles(batches: &[Vec<Experiment>], hosts: &[String]) -> Vec<Vec<Rank>> {
    let host = |r: Rank| hosts.get(r).map_or("", String::as_str);
    let (mut bound, mut on_host) = (UnionFind::<Rank>::new(hosts.len()), BTreeMap::<&str, BTreeSet<Rank>>::new());
    for ranks in batches.iter().flatten().map(Experiment::ranks) {
        ranks.iter().for_each(|&r| {
            bound.union(ranks[0], r);
            on_host.entry(host(r)).or_default().insert(r);
        });
    }
    for ranks in on_host.values() {
        for (&a, &b) in ranks.iter().zip(ranks.iter().skip(1)) {
            bound.union(a, b);
        }
    }
    let mut circles: BTreeMap<Rank, Vec<Rank>> = BTreeMap::new();
    on_host.values().flatten().for_each(|&r| circles.entry(bound.find(r)).or_default().push(r));
    let shared = |circle: &[Rank]| circle.iter().any(|&r| on_host[host(r)].len() > 1);
    let mut circles: Vec<Vec<Rank>> = circles.into_values().filter(|circle| shared(circle)).collect();
    circles.iter_mut().for_each(|circle| circle.sort_unstable());
    circles
}

/// True if a whole circle is in one collective of two batches, with the same root.
fn goes_on(circle: &[Rank], batch: &[Experiment], next: &[Experiment]) -> bool {
    let of_all = |batch: &[Experiment]| {
        let experiment = batch.iter().find(|e| e.is_collective() && e.ranks().contains(&circle[0]))?;
        let mut ranks = experiment.ranks();
        let root = ranks[experiment.timer()];
        ranks.sort_unstable();
        (ranks == circle).then_some(root)
    };
    of_all(batch).is_some_and(|root| of_all(next) == Some(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(a: Rank, b: Rank) -> Experiment {
        Experiment::RoundTrip { a, b, out: 0, back: 0 }
    }

    fn broadcast(ranks: &[Rank], bytes: usize) -> Experiment {
        let (ranks, algorithm) = (ranks.to_vec(), "flat".to_string());
        Experiment::Collective {
            collective: &crate::collective::bcast::COLLECTIVE,
            ranks,
            root: 0,
            bytes,
            algorithm,
            parameters: Default::default(),
        }
    }

    #[test]
    fn ranks_of_one_host_meet_and_others_go_on() {
        let hosts: Vec<String> = ["a", "a", "a", "b", "c"].iter().map(|s| s.to_string()).collect();
        // rank 1 must not start on host a before rank 0 is through; ranks 3 and 4 meet nobody
        let of = parts(&[vec![pair(0, 2), pair(3, 4)], vec![pair(1, 2), pair(4, 3)]], &hosts, |_| true);
        let play = |a, b| Part::Play { experiment: pair(a, b), warm_up: true, follows: false };
        let circle = Part::Barrier(vec![0, 1, 2]);
        assert_eq!(of[&0], [play(0, 2), circle.clone()]);
        assert_eq!(of[&1], [circle.clone(), play(1, 2)]);
        assert_eq!(of[&2], [play(0, 2), circle, play(1, 2)]);
        assert_eq!(of[&3], [play(3, 4), play(4, 3)]);
        // host b is bound to host a by an experiment: its rank meets too
        let of = parts(&[vec![pair(0, 3)], vec![pair(1, 2)]], &hosts, |_| true);
        assert_eq!(of[&3], [play(0, 3), Part::Barrier(vec![0, 1, 2, 3])]);
    }

    #[test]
    fn whoever_comes_from_the_same_collective_is_not_asked_for() {
        let hosts: Vec<String> = ["a", "b", "c"].iter().map(|s| s.to_string()).collect();
        let barrier = |ranks: &[Rank]| Experiment::Collective {
            collective: &crate::collective::barrier::COLLECTIVE,
            ranks: ranks.to_vec(),
            root: 0,
            bytes: 0,
            algorithm: "flat".into(),
            parameters: Default::default(),
        };
        let all = barrier(&[0, 1, 2]);
        let follow = |experiments: &[Experiment]| {
            let batches: Vec<Vec<Experiment>> = experiments.iter().map(|e| vec![e.clone()]).collect();
            let last = parts(&batches, &hosts, |_| true)[&0].last().cloned();
            matches!(last, Some(Part::Play { follows: true, .. }))
        };
        assert!(!follow(std::slice::from_ref(&all)) && follow(&[all.clone(), all.clone()]));
        assert!(!follow(&[all.clone(), barrier(&[1, 2]), all.clone()]), "two of them may be late");
        assert!(!follow(&[all.clone(), barrier(&[0, 2, 1])]) && !follow(&[all.clone(), barrier(&[1, 0, 2])]));
        assert!(follow(&[broadcast(&[0, 1, 2], 1), broadcast(&[0, 1, 2], 2)]), "the root begins both");
        let so_many = |parts: usize| follow(&vec![broadcast(&[0, 1, 2], 1); parts]);
        assert_eq!([READY, READY + 1, READY + 2].map(so_many), [true, false, true], "then the next ones are made ready");
        assert!(!follow(&[broadcast(&[0, 2, 1], 1), broadcast(&[0, 1, 2], 1)]) && !follow(&[pair(0, 1), broadcast(&[0, 1], 1)]));
        assert!(!follow(&[broadcast(&[0, 1, 2], 1), all.clone()]) && !follow(&[all, broadcast(&[0, 1, 2], 1)]), "a root begins these");
    }

    #[test]
    fn collectives_of_the_same_ranks_follow_each_other() {
        let hosts: Vec<String> = ["a", "a", "a"].iter().map(|s| s.to_string()).collect();
        let barriers =
            |batches: &[Vec<Experiment>]| parts(batches, &hosts, |_| true)[&0].iter().filter(|p| matches!(p, Part::Barrier(_))).count();
        assert_eq!(barriers(&[vec![broadcast(&[0, 1, 2], 1)], vec![broadcast(&[0, 2, 1], 2)]]), 0, "the root begins both");
        assert_eq!(barriers(&[vec![broadcast(&[0, 1, 2], 1)], vec![broadcast(&[1, 0, 2], 2)]]), 1, "another root");
        assert_eq!(barriers(&[vec![broadcast(&[0, 1, 2], 1)], vec![broadcast(&[0, 1], 2)]]), 1, "rank 2 may still be busy");
    }

    #[test]
    fn batches_share_no_host_and_lose_nothing() {
        let hosts: Vec<String> = ["a", "a", "b", "c", "d", "d"].iter().map(|s| s.to_string()).collect();
        let all: Vec<Experiment> = (0..6).flat_map(|a| (a + 1..6).map(move |b| Experiment::RoundTrip { a, b, out: 0, back: 0 })).collect();
        let batches = pack(&all, &hosts, true);
        let mut seen: Vec<usize> = batches.iter().flatten().copied().collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..all.len()).collect::<Vec<_>>());
        for batch in &batches {
            let used: Vec<BTreeSet<&str>> = batch.iter().map(|&k| all[k].ranks().iter().map(|&r| hosts[r].as_str()).collect()).collect();
            let total: usize = used.iter().map(BTreeSet::len).sum();
            assert_eq!(total, used.iter().flatten().collect::<BTreeSet<_>>().len(), "{batch:?}");
        }
        assert!(batches.len() < all.len());
        assert_eq!(pack(&all, &hosts, false).len(), all.len());
    }

    #[test]
    fn each_goes_into_the_first_batch_that_has_its_hosts_free() {
        let hosts: Vec<String> = (0..40).map(|k| format!("h{}", k / 2)).collect();
        let all: Vec<Experiment> = (0..900).map(|k| pair(k * 7 % 40, (k * 7 + 1 + k * k % 39) % 40)).collect();
        let mut batches: Vec<(BTreeSet<&str>, Vec<usize>)> = Vec::new();
        for (k, experiment) in all.iter().enumerate() {
            let used: BTreeSet<&str> = experiment.ranks().iter().map(|&r| hosts[r].as_str()).collect();
            let open = batches.len().saturating_sub(OPEN);
            match batches[open..].iter_mut().find(|(busy, _)| busy.is_disjoint(&used)) {
                Some((busy, members)) => {
                    busy.extend(used);
                    members.push(k);
                }
                None => batches.push((used, vec![k])),
            }
        }
        assert_eq!(pack(&all, &hosts, true), batches.into_iter().map(|(_, members)| members).collect::<Vec<_>>());
    }

    #[test]
    fn rounds_of_pairs_stay_rounds() {
        let hosts: Vec<String> = (0..10).map(|k| format!("h{k}")).collect();
        let pairs = crate::topology::pair_rounds(10).into_iter().flatten();
        let all: Vec<Experiment> = pairs.map(|(a, b)| Experiment::RoundTrip { a, b, out: 0, back: 0 }).collect();
        assert_eq!(pack(&all, &hosts, true).len(), 9);
    }
}
