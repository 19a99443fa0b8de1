//! The tree of a schedule: from whom each rank hears first, or whom it tells last.

use super::picture::Branch;
use crate::predict::Replay;
use crate::schedule::{Action, Schedule};
use crate::topology::Rank;
use rustc_hash::FxHashMap;

/// Of each rank, another one and when: none for the root, and for who has to do with nobody.
pub type Tree = Vec<Option<(Rank, f64)>>;

/// The rank that each rank hears from first, by the times of its receives.
pub fn parents(schedule: &Schedule, end: impl Fn(Rank, usize) -> f64) -> Tree {
    let of = |rank: Rank| {
        let program = &schedule.programs[rank];
        let heard = (0..program.len())
            .filter_map(|op| if let Action::Recv { from, .. } = program.action(op) { Some((end(rank, op), from)) } else { None });
        heard.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(at, from)| (from, at))
    };
    (0..schedule.ranks()).map(of).collect()
}

/// The rank that each rank sends to last, and when it has.
pub fn last_receivers(schedule: &Schedule, root: Rank, end: impl Fn(Rank, usize) -> f64) -> Tree {
    let last = |rank: Rank| {
        let program = &schedule.programs[rank];
        (0..program.len()).rev().find_map(|op| Some((program.sends_to(op)?, end(rank, op)))).filter(|_| rank != root)
    };
    (0..schedule.ranks()).map(last).collect()
}

/// The rank that each rank hears of `first` from: the sender of the first message that left after its sender had heard of it.
pub fn spread(schedule: &Schedule, replay: &Replay, first: Rank) -> Tree {
    let mut sent: FxHashMap<(Rank, Rank), Vec<f64>> = FxHashMap::default();
    for (from, program) in schedule.programs.iter().enumerate() {
        let sends = (0..program.len()).filter_map(|op| Some((program.sends_to(op)?, replay.traces[from].start[op])));
        sends.for_each(|(to, start)| sent.entry((from, to)).or_default().push(start));
    }
    let mut messages: Vec<(f64, f64, Rank, Rank)> = Vec::new();
    for (to, program) in schedule.programs.iter().enumerate() {
        let mut heard: FxHashMap<Rank, usize> = FxHashMap::default();
        for op in 0..program.len() {
            let Action::Recv { from, .. } = program.action(op) else { continue };
            // the k-th message from one rank to another is the k-th that this one receives from it
            let k = heard.entry(from).or_default();
            if let Some(start) = sent.get(&(from, to)).and_then(|all| all.get(*k)) {
                messages.push((replay.traces[to].end[op], *start, from, to));
            }
            *k += 1;
        }
    }
    messages.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)).then((a.2, a.3).cmp(&(b.2, b.3))));
    let (mut hears_at, mut from_whom) = (vec![f64::INFINITY; schedule.ranks()], vec![None; schedule.ranks()]);
    hears_at[first] = 0.0;
    for (end, start, from, to) in messages {
        if hears_at[from] <= start && end < hears_at[to] {
            (hears_at[to], from_whom[to]) = (end, Some(from));
        }
    }
    from_whom.into_iter().zip(hears_at).map(|(from, at)| Some((from?, at))).collect()
}

/// Ranks as they are drawn: one by one or, where they are more than `most`, those of one group as one that hear from each other, and in as many levels as have room.
pub fn branches(
    parents: &[Option<Rank>],
    root: Rank,
    most: usize,
    group: impl Fn(Rank) -> usize,
    name: impl Fn(Rank) -> String,
) -> Vec<Branch> {
    let mut children: Vec<Vec<Rank>> = vec![Vec::new(); parents.len()];
    for (rank, parent) in parents.iter().enumerate().filter(|(rank, _)| *rank != root) {
        // who hears from nobody hangs on the root
        children[parent.filter(|&p| p != rank).unwrap_or(root)].push(rank);
    }
    let by_group = parents.len() > most;
    let mut all = vec![Branch { name: name(root), group: group(root), ranks: 1, parent: 0 }];
    // ranks, each with the branch that it hears from
    let mut stack: Vec<(Rank, usize)> = children[root].iter().rev().map(|&c| (c, 0)).collect();
    let mut seen = vec![false; parents.len()];
    seen[root] = true;
    // who was not reached hangs on the root too
    while let Some((rank, above)) = stack.pop().or_else(|| Some((seen.iter().position(|seen| !seen)?, 0))) {
        if std::mem::replace(&mut seen[rank], true) {
            continue;
        }
        let own = if by_group && all[above].group == group(rank) {
            all[above].ranks += 1;
            above
        } else {
            all.push(Branch { name: name(rank), group: group(rank), ranks: 1, parent: above });
            all.len() - 1
        };
        stack.extend(children[rank].iter().rev().map(|&c| (c, own)));
    }
    if by_group {
        merge_siblings(&mut all);
        all.iter_mut().filter(|b| b.ranks > 1).for_each(|b| b.name = format!("{} and {} more", b.name, b.ranks - 1));
        cut_off(&mut all, most);
    }
    all
}

/// As many levels of branches as have `most` together, one at least; how many ranks are farther is said with whom they hang on.
fn cut_off(all: &mut Vec<Branch>, most: usize) {
    if all.len() <= most {
        return;
    }
    let mut depth = vec![0usize; all.len()];
    for k in 1..all.len() {
        depth[k] = depth[all[k].parent] + 1;
    }
    let mut sorted = depth.clone();
    sorted.sort_unstable();
    let deepest = sorted[most].saturating_sub(1).max(1);
    let (mut kept, mut place): (Vec<Branch>, Vec<usize>) = (Vec::new(), vec![0; all.len()]);
    let mut farther = vec![0; all.len()];
    for (k, branch) in all.iter().enumerate() {
        let parent = place[branch.parent];
        if depth[k] > deepest {
            farther[parent] += branch.ranks;
            place[k] = parent;
        } else {
            place[k] = kept.len();
            kept.push(Branch { parent, ..branch.clone() });
        }
    }
    let named = kept.iter_mut().zip(farther).filter(|(_, ranks)| *ranks > 0);
    named.for_each(|(branch, ranks)| branch.name += &format!(" ({ranks} farther)"));
    *all = kept;
}

/// Leaves of one group that hear from one branch are one.
fn merge_siblings(all: &mut Vec<Branch>) {
    let has_children: Vec<bool> = (0..all.len()).map(|k| all.iter().enumerate().any(|(j, b)| j > 0 && b.parent == k)).collect();
    let mut kept: Vec<Branch> = Vec::new();
    let (mut place, mut leaf) = (vec![0; all.len()], std::collections::BTreeMap::new());
    for (k, branch) in all.iter().enumerate() {
        let parent = place[branch.parent];
        if k > 0 && !has_children[k] {
            if let Some(&at) = leaf.get(&(parent, branch.group)) {
                let first: &mut Branch = &mut kept[at];
                first.ranks += branch.ranks;
                place[k] = at;
                continue;
            }
            leaf.insert((parent, branch.group), kept.len());
        }
        place[k] = kept.len();
        kept.push(Branch { parent, ..branch.clone() });
    }
    *all = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks that hear across groups at every step, as in Bruck's allgather, have no more room than others.
    #[test]
    fn trees_of_many_ranks_have_room() {
        let (ranks, groups, most) = (3000, 60, 100);
        let binomial = |rank: Rank| (rank > 0).then(|| rank & (rank - 1));
        let parents: Vec<Option<Rank>> = (0..ranks).map(binomial).collect();
        let drawn = branches(&parents, 0, most, |rank| rank % groups, |rank| rank.to_string());
        assert!((most / 4..=most).contains(&drawn.len()), "{} branches", drawn.len());
        // of each branch's group, and the others by their number
        let number = |b: &Branch, word: &str| {
            b.name
                .split([' ', '('])
                .zip(b.name.split([' ', '(']).skip(1))
                .find(|(_, w)| w.starts_with(word))
                .map_or(0, |(n, _)| n.parse().unwrap())
        };
        assert!(drawn.iter().all(|b| b.ranks <= ranks / groups && b.ranks == 1 + number(b, "more")), "{drawn:?}");
        assert_eq!(drawn.iter().map(|b| b.ranks + number(b, "farther")).sum::<usize>(), ranks);
        assert!(drawn.iter().enumerate().all(|(k, b)| k == 0 || b.parent < k));
        // few are all drawn
        assert_eq!(branches(&parents[..most], 0, most, |rank| rank % groups, |rank| rank.to_string()).len(), most);
    }
}
