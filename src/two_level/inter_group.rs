//! The ways that a message, cut into segments, may take between groups.

use super::InterGroup;
use crate::collective::{Algorithm, bcast};
use crate::error::{Error, Result};
use crate::intercluster::{Job, Problem, solve};

/// A kind of inter-group algorithm. Which one is best depends on what limits the sends: with a link of its own to each group the root serves all
/// at once; where one port carries them all, every copy that the root need not send is a gain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InterGroupAlgorithm {
    /// The root sends to every other coordinator.
    Star,
    /// The root sends to every other coordinator, and to more ranks of the groups that would be done last: over a long way, a message that
    /// is short costs less than the hops inside a group.
    Direct,
    /// The best tree of the portfolio for one segment.
    Tree,
    /// From each coordinator to the nearest one that has not got it: the longest way, on which each sends once.
    Path,
    /// The segments are dealt out to the coordinators, and each passes its share on to the rest.
    Relay,
    /// One chain through all ranks, along the path.
    Line,
    /// One algorithm over all ranks, group after group: what is best where groups differ by their processors more than by their network.
    OverAll,
}

/// Every kind, in the order in which ties are broken.
pub const INTER_GROUP_ALGORITHMS: [InterGroupAlgorithm; 7] = [
    InterGroupAlgorithm::Star,
    InterGroupAlgorithm::Direct,
    InterGroupAlgorithm::Tree,
    InterGroupAlgorithm::Path,
    InterGroupAlgorithm::Relay,
    InterGroupAlgorithm::Line,
    InterGroupAlgorithm::OverAll,
];

/// Finds a kind by name.
///
/// # Errors
/// [`Error::Invalid`] with the names there are.
pub fn inter_group_algorithm(name: &str) -> Result<InterGroupAlgorithm> {
    INTER_GROUP_ALGORITHMS.into_iter().find(|a| a.name() == name).ok_or_else(|| {
        let names = INTER_GROUP_ALGORITHMS.map(InterGroupAlgorithm::name).join(", ");
        Error::invalid(format!("find the inter-group algorithm \"{name}\": there are {names}"))
    })
}

impl InterGroupAlgorithm {
    /// Its name in policies.
    pub fn name(self) -> &'static str {
        match self {
            InterGroupAlgorithm::Star => "star",
            InterGroupAlgorithm::Direct => "direct",
            InterGroupAlgorithm::Tree => "tree",
            InterGroupAlgorithm::Path => "path",
            InterGroupAlgorithm::Relay => "relay",
            InterGroupAlgorithm::Line => "line",
            InterGroupAlgorithm::OverAll => "over_all",
        }
    }

    /// True if trees inside groups are a part of it.
    pub fn has_trees(self) -> bool {
        !matches!(self, InterGroupAlgorithm::Line | InterGroupAlgorithm::OverAll)
    }

    /// True if what broadcasts inside groups take makes a difference to it.
    pub fn counts_inside(self) -> bool {
        matches!(self, InterGroupAlgorithm::Star | InterGroupAlgorithm::Direct | InterGroupAlgorithm::Tree)
    }

    /// True if a broadcast can go so: with this algorithm inside groups (or over all ranks), and in segments or not.
    pub fn goes_with(self, inside: &Algorithm, in_segments: bool) -> bool {
        match self {
            InterGroupAlgorithm::OverAll if in_segments => inside.segmented,
            InterGroupAlgorithm::OverAll => inside.builder.is_some() && (inside.whole || (!inside.segmented && inside.radices.is_empty())),
            InterGroupAlgorithm::Direct => inside.tree.is_some() && !in_segments,
            InterGroupAlgorithm::Line => *inside == *bcast::CHAIN,
            _ => inside.tree.is_some(),
        }
    }

    /// The inter-group algorithm over the groups of a problem.
    pub fn inter_group(self, problem: &Problem) -> InterGroup {
        match self {
            InterGroupAlgorithm::Star | InterGroupAlgorithm::Direct => InterGroup::Tree(star(problem)),
            InterGroupAlgorithm::Tree => InterGroup::Tree(solve(problem).best.jobs),
            InterGroupAlgorithm::Path => InterGroup::Tree(path(problem)),
            InterGroupAlgorithm::Relay => InterGroup::Relay,
            // there is one group
            InterGroupAlgorithm::OverAll => InterGroup::Tree(Vec::new()),
            InterGroupAlgorithm::Line => {
                let to = |job: Job| if let Job::Send { to, .. } = job { Some(to) } else { None };
                InterGroup::Line(std::iter::once(problem.root).chain(path(problem).into_iter().filter_map(to)).collect())
            }
        }
    }
}

/// The group that is done last when served first is served first.
fn star(problem: &Problem) -> Vec<Job> {
    let root = problem.root;
    let mut others: Vec<usize> = (0..problem.groups).filter(|&g| g != root).collect();
    let rest = |g: usize| problem.latency(root, g) + problem.local[g];
    others.sort_by(|&a, &b| rest(b).total_cmp(&rest(a)).then(a.cmp(&b)));
    others.into_iter().map(|to| Job::Send { from: root, to }).collect()
}

fn path(problem: &Problem) -> Vec<Job> {
    let mut left: Vec<usize> = (0..problem.groups).filter(|&g| g != problem.root).collect();
    let (mut from, mut jobs) = (problem.root, Vec::new());
    while let Some(k) = (0..left.len()).min_by(|&a, &b| problem.transfer(from, left[a]).total_cmp(&problem.transfer(from, left[b]))) {
        let to = left.remove(k);
        jobs.push(Job::Send { from, to });
        from = to;
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_reaches_every_group_once_from_one_that_has_it() {
        let n = 5;
        let far = |k: usize| ((k * 7919) % 13 + 1) as f64;
        let problem = Problem {
            groups: n,
            root: 2,
            gap: (0..n * n).map(|k| far(k) / 10.0).collect(),
            latency: (0..n * n).map(|k| far(k + 3)).collect(),
            local: vec![1.0; n],
            local_busy: vec![0.1; n],
        };
        for kind in INTER_GROUP_ALGORITHMS.into_iter().filter(|&kind| kind != InterGroupAlgorithm::OverAll) {
            let reached = match kind.inter_group(&problem) {
                InterGroup::Relay => continue,
                InterGroup::Line(order) => order,
                InterGroup::Tree(jobs) => {
                    let mut reached = vec![2];
                    for job in jobs {
                        if let Job::Send { from, to } = job {
                            assert!(reached.contains(&from), "{kind:?}: {from} to {to}");
                            reached.push(to);
                        }
                    }
                    reached
                }
            };
            let once: std::collections::BTreeSet<usize> = reached.iter().copied().collect();
            assert_eq!((reached[0], reached.len(), once.len()), (2, n, n), "{kind:?}");
        }
    }
}
