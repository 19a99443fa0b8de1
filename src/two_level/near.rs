//! Links that want fewer messages under way than those of the wide area: where messages share a port, what is too many ends late, all of it at once.

use super::TwoLevel;
use crate::collective::Node;
use crate::schedule::Program;
use serde::{Deserialize, Serialize};

/// What is near each other in a broadcast over groups: sites, or groups of sites.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Near {
    /// Messages under way to each peer of the same site but of another group, in each lane; where one algorithm goes over all ranks, to each peer of the same site.
    pub in_flight: usize,
    /// The site of each group, in their order; where one algorithm goes over all ranks, which are one group, of each rank.
    pub sites: Vec<usize>,
}

impl TwoLevel {
    /// Messages under way between the coordinators of two groups.
    pub(super) fn in_flight_between(&self, group: usize, other: usize) -> usize {
        self.near(group, other).unwrap_or(self.in_flight)
    }

    /// As many as are under way inside the smallest site that has both, which are groups, or ranks of one algorithm over all.
    fn near(&self, one: usize, other: usize) -> Option<usize> {
        self.near.iter().find(|near| near.sites[one] == near.sites[other]).map(|near| near.in_flight)
    }

    fn has_near_ranks(&self) -> bool {
        self.groups.len() == 1 && !self.near.is_empty()
    }

    /// What a position does by one algorithm over all ranks, with as much under way to each peer as the link to it wants.
    pub(super) fn in_windows(&self, program: Program, position: usize) -> Program {
        let levels = self.near.iter().rev().filter(|_| self.has_near_ranks());
        levels.fold(program, |program, near| program.with_in_flight_to(|peer| near.sites[peer] == near.sites[position], near.in_flight))
    }

    /// How near the peers of a position are, where one algorithm goes over all ranks.
    pub(super) fn near_peers(&self, position: usize, node: &Node) -> Vec<Option<usize>> {
        let peers = node.parent.iter().chain(&node.children).filter(|_| self.has_near_ranks());
        peers.map(|&peer| self.near(position, peer)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{Parameters, bcast};
    use crate::intercluster::Job;
    use crate::schedule::check;
    use crate::two_level::{InterGroup, IntraGroup};

    /// Checks that each message says how many are under way as `window` does of its ends, and that both kinds are there.
    fn check_windows(two_level: &TwoLevel, ranks: usize, window: impl Fn(usize, usize) -> usize) {
        two_level.validate(ranks).unwrap();
        let schedule = two_level.schedule(ranks).unwrap();
        check(&schedule, &two_level.specification(ranks)).unwrap();
        let mut met = Vec::new();
        for (me, program) in schedule.programs.iter().enumerate() {
            assert_eq!(*program, two_level.program(me).unwrap(), "{two_level:?}, rank {me}");
            for (op, (peer, _)) in (0..program.len()).filter_map(|op| Some((op, program.message(op)?))) {
                assert_eq!(program.in_flight_said(op), window(me, peer), "{two_level:?}: {me} and {peer}");
                met.push(window(me, peer));
            }
        }
        assert!(met.contains(&2) && met.contains(&9), "{two_level:?}");
    }

    #[test]
    fn one_algorithm_over_all_ranks_has_a_window_for_each_link() {
        for algorithm in bcast::ALGORITHMS.iter().copied().filter(|a| a.segmented) {
            let parameters = Parameters { in_flight: 9, ..Parameters::of(64, 0) };
            let over_all = TwoLevel {
                bytes: 10_000,
                groups: vec![vec![6, 0, 1, 2, 3, 4, 5]],
                hosts: Vec::new(),
                inter_group: InterGroup::Tree(Vec::new()),
                segment: 0,
                in_flight: 0,
                near: vec![
                    Near { in_flight: 2, sites: vec![1, 0, 0, 0, 1, 1, 2] },
                    Near { in_flight: 4, sites: vec![1, 0, 0, 0, 1, 1, 1] },
                ],
                peers: 0,
                intra_group: vec![IntraGroup { algorithm, parameters }],
            };
            check_windows(&over_all, 7, |a, b| match (a < 3, b < 3) {
                (false, false) if a == 5 || b == 5 => 4,
                (near, other) if near == other => 2,
                _ => 9,
            });
            let near = vec![Near { in_flight: 2, sites: vec![0] }];
            assert!(TwoLevel { near, ..over_all }.validate(7).unwrap_err().to_string().contains("sites"), "{}", algorithm.name);
        }
    }

    #[test]
    fn coordinators_of_one_site_have_fewer_messages_under_way() {
        let send = |from, to| Job::Send { from, to };
        let tree = InterGroup::Tree(vec![send(0, 1), send(1, 2), send(0, 3)]);
        for inter_group in [tree, InterGroup::Relay, InterGroup::Line(vec![0, 1, 3, 2])] {
            let parameters = Parameters { in_flight: 5, ..Parameters::default() };
            let two_level = TwoLevel {
                bytes: 1000,
                groups: vec![vec![0, 1], vec![2], vec![3, 4, 5], vec![6]],
                hosts: Vec::new(),
                inter_group,
                segment: 100,
                in_flight: 9,
                near: vec![Near { in_flight: 2, sites: vec![0, 0, 1, 1] }],
                peers: 0,
                intra_group: vec![IntraGroup { algorithm: bcast::CHAIN, parameters }; 4],
            };
            let (groups, sites) = ([0, 0, 1, 2, 2, 2, 3], [0, 0, 0, 1, 1, 1, 1]);
            check_windows(&two_level, 7, |a, b| match (groups[a] == groups[b], sites[a] == sites[b]) {
                (true, _) => 5,
                (_, true) => 2,
                _ => 9,
            });
            for sites in [vec![0; 3], vec![0; 7]] {
                let said = TwoLevel { near: vec![Near { in_flight: 2, sites }], ..two_level.clone() }.validate(7).unwrap_err();
                assert!(said.to_string().contains("sites"), "{said}");
            }
        }
    }
}
