//! Packing experiments into batches that share no host: what runs side by side must not disturb each other.

use super::Experiment;
use std::collections::BTreeSet;

/// Packs experiments, in order, each into the first batch where none of its hosts is in use. Gives the positions.
pub fn pack(experiments: &[Experiment], hosts: &[String], side_by_side: bool) -> Vec<Vec<usize>> {
    if !side_by_side {
        return (0..experiments.len()).map(|k| vec![k]).collect();
    }
    let mut batches: Vec<(BTreeSet<&str>, Vec<usize>)> = Vec::new();
    // batches before this one have no free host left worth looking for: keeps packing linear for many experiments
    let mut first_open = 0;
    for (k, experiment) in experiments.iter().enumerate() {
        let used: BTreeSet<&str> = experiment.ranks().iter().map(|&r| hosts.get(r).map_or("", String::as_str)).collect();
        match batches[first_open..].iter_mut().find(|(busy, _)| busy.is_disjoint(&used)) {
            Some((busy, members)) => {
                busy.extend(used);
                members.push(k);
            }
            None => batches.push((used, vec![k])),
        }
        while batches.len() - first_open > 256 {
            first_open += 1;
        }
    }
    batches.into_iter().map(|(_, members)| members).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn rounds_of_pairs_stay_rounds() {
        let hosts: Vec<String> = (0..10).map(|k| format!("h{k}")).collect();
        let pairs = crate::topology::pair_rounds(10).into_iter().flatten();
        let all: Vec<Experiment> = pairs.map(|(a, b)| Experiment::RoundTrip { a, b, out: 0, back: 0 }).collect();
        assert_eq!(pack(&all, &hosts, true).len(), 9);
    }
}
