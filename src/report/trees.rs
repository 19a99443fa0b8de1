//! The tree of a schedule: from whom each rank hears first.

use super::picture::Branch;
use crate::schedule::{Action, Schedule};
use crate::topology::Rank;

/// The rank that each rank hears from first, by the times of its receives; `None` for the root, and who hears from nobody.
pub fn parents(schedule: &Schedule, end: impl Fn(Rank, usize) -> f64) -> Vec<Option<Rank>> {
    let of = |rank: Rank| {
        let program = &schedule.programs[rank];
        let heard = (0..program.len())
            .filter_map(|op| if let Action::Recv { from, .. } = program.action(op) { Some((end(rank, op), from)) } else { None });
        heard.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, from)| from)
    };
    (0..schedule.ranks()).map(of).collect()
}

/// Ranks as they are drawn: one by one or, where they are more than `most`, those of one group as one that hear from each other.
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
    while let Some((rank, above)) = stack.pop() {
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
    }
    all
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
