//! The ways that a message, cut into segments, may take between groups.

use super::{Job, Problem, solve};
use serde::{Deserialize, Serialize};

/// A kind of route. Which one is best depends on what limits the sends: with a link of its own to each group the root serves all
/// at once; where one port carries them all, every copy that the root need not send is a gain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RouteKind {
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
}

/// Every kind, in the order in which ties are broken.
pub const ROUTES: [RouteKind; 5] = [RouteKind::Star, RouteKind::Direct, RouteKind::Tree, RouteKind::Path, RouteKind::Relay];

impl RouteKind {
    /// Its name in policies.
    pub fn name(self) -> &'static str {
        match self {
            RouteKind::Star => "star",
            RouteKind::Direct => "direct",
            RouteKind::Tree => "tree",
            RouteKind::Path => "path",
            RouteKind::Relay => "relay",
        }
    }

    /// True if messages may be cut into segments on it.
    pub fn is_segmented(self) -> bool {
        self != RouteKind::Direct
    }

    /// The coordinators' jobs; `None` where they differ from segment to segment.
    pub fn jobs(self, problem: &Problem) -> Option<Vec<Job>> {
        match self {
            RouteKind::Star | RouteKind::Direct => Some(star(problem)),
            RouteKind::Tree => Some(solve(problem).best.jobs),
            RouteKind::Path => Some(path(problem)),
            RouteKind::Relay => None,
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
        for route in ROUTES {
            let Some(jobs) = route.jobs(&problem) else { continue };
            let mut reached = vec![2];
            for job in jobs {
                if let Job::Send { from, to } = job {
                    assert!(reached.contains(&from) && !reached.contains(&to), "{route:?}: {from} to {to}");
                    reached.push(to);
                }
            }
            assert_eq!(reached.len(), n, "{route:?}");
        }
    }
}
