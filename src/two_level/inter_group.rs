//! The ways that a message, cut into segments, may take between groups.

use super::InterGroup;
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
}

/// Every kind, in the order in which ties are broken.
pub const INTER_GROUP_ALGORITHMS: [InterGroupAlgorithm; 6] = [
    InterGroupAlgorithm::Star,
    InterGroupAlgorithm::Direct,
    InterGroupAlgorithm::Tree,
    InterGroupAlgorithm::Path,
    InterGroupAlgorithm::Relay,
    InterGroupAlgorithm::Line,
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
        }
    }

    /// True if messages may be cut into segments on it.
    pub fn is_segmented(self) -> bool {
        self != InterGroupAlgorithm::Direct
    }

    /// True if trees inside groups are a part of it.
    pub fn has_trees(self) -> bool {
        self != InterGroupAlgorithm::Line
    }

    /// The inter-group algorithm over the groups of a problem.
    pub fn inter_group(self, problem: &Problem) -> InterGroup {
        match self {
            InterGroupAlgorithm::Star | InterGroupAlgorithm::Direct => InterGroup::Tree(star(problem)),
            InterGroupAlgorithm::Tree => InterGroup::Tree(solve(problem).best.jobs),
            InterGroupAlgorithm::Path => InterGroup::Tree(path(problem)),
            InterGroupAlgorithm::Relay => InterGroup::Relay,
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
        for kind in INTER_GROUP_ALGORITHMS {
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
