//! Ranks that do the same, each with peers of its own: most of those at a place in a tree. What one of them does is built once.

use crate::collective::Node;
use crate::error::Result;
use crate::schedule::Program;
use crate::topology::Rank;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::hash::Hash;

/// Programs by what ranks that do the same have in common, each with the peers of the rank that it was built for.
pub(super) struct Same<K>(RefCell<FxHashMap<K, (Vec<Rank>, Program)>>);

impl<K: Hash + Eq> Same<K> {
    pub fn new() -> Same<K> {
        Same(RefCell::default())
    }

    /// The program of a rank with so many peers, as `build` builds it, or as it did for one with `common` in common, whose peers were others, in the same order.
    pub fn program(&self, common: K, peers: Vec<Rank>, build: impl FnOnce() -> Result<Program>) -> Result<Program> {
        if let Some((others, program)) = self.0.borrow().get(&common) {
            let own = |other: Rank| others.iter().position(|&o| o == other).map_or(other, |k| peers[k]);
            return Ok(program.clone().renamed(own));
        }
        let program = build()?.into_shared();
        self.0.borrow_mut().insert(common, (peers, program.clone()));
        Ok(program)
    }
}

/// What the program of a rank hangs on that does the same with each part of a message: whether it has a parent, and in which order its children come, whether they are
/// served in the order of the tree or in that of their positions.
pub(super) type Degree = (bool, Vec<usize>);

impl Node {
    /// See [`Degree`].
    pub(super) fn degree(&self) -> Degree {
        let mut order: Vec<usize> = (0..self.children.len()).collect();
        order.sort_unstable_by_key(|&k| self.children[k]);
        (self.parent.is_some(), order)
    }

    /// The parent and the children, by the names of their positions.
    pub(super) fn peers(&self, names: &[Rank]) -> Vec<Rank> {
        self.parent.iter().chain(&self.children).map(|&position| names[position]).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::collective::{COLLECTIVES, Node, Parameters, bcast};
    use crate::intercluster::Job;
    use crate::two_level::{Coordinated, InterGroup, IntraGroup, TwoLevel, through};

    fn groups() -> Vec<Vec<usize>> {
        vec![(5..18).rev().collect(), vec![0, 3, 1, 2, 4], vec![30], (18..30).collect()]
    }

    /// Algorithms with what may be chosen about them.
    fn with_parameters(algorithm: &'static crate::collective::Algorithm) -> impl Iterator<Item = IntraGroup> {
        let parameters =
            |segment, in_flight, radix| Parameters { segment, in_flight, radix, peers: in_flight / 2, ..Parameters::default() };
        [parameters(0, 0, 0), parameters(500, 4, 3), parameters(64, 2, 5)].into_iter().map(move |p| IntraGroup { algorithm, parameters: p })
    }

    /// A tree may be served in another order than that of its positions.
    #[test]
    fn as_many_children_in_another_order_are_not_the_same() {
        let node = |children: &[usize]| Node { parent: Some(0), children: children.to_vec() };
        assert_eq!(node(&[9, 8, 12]).degree(), node(&[3, 2, 4]).degree());
        assert_ne!(node(&[9, 8, 12]).degree(), node(&[2, 3, 4]).degree());
        assert_ne!(node(&[]).degree(), Node { parent: None, children: vec![] }.degree());
    }

    /// What is built once for several ranks is what each of them has built for itself.
    #[test]
    fn ranks_that_do_the_same_do_what_they_would_do_alone() {
        let (mut programs, mut shared) = (0, 0);
        for through in COLLECTIVES.iter().filter_map(|c| through(c)) {
            let inside = (through.inside)().into_iter().flat_map(with_parameters);
            for (inside, segment) in inside.flat_map(|inside| [0, 300].map(|segment| (inside.clone(), segment))) {
                for between in (through.between)().into_iter().map(IntraGroup::of) {
                    let segment = if through.segmented { segment } else { 0 };
                    let form = Coordinated { collective: through.collective, groups: groups(), inside: inside.clone(), between, segment };
                    let shape = form.shape(1000);
                    if !form.fits(&shape) {
                        continue;
                    }
                    let all = form.programs(shape.ranks, &shape);
                    for rank in 0..shape.ranks {
                        assert_eq!(all(rank).unwrap(), form.program(rank, &shape).unwrap(), "rank {rank}: {form:?}");
                    }
                    programs += shape.ranks;
                }
            }
        }
        let tree = vec![Job::Send { from: 0, to: 1 }, Job::Local(0), Job::Send { from: 1, to: 2 }, Job::Send { from: 0, to: 3 }];
        let hosts = [vec![], groups().iter().map(|ranks| (0..ranks.len()).map(|k| k / 3).collect()).collect()];
        for inside in bcast::ALGORITHMS.iter().copied().flat_map(with_parameters) {
            for inter_group in [InterGroup::Tree(tree.clone()), InterGroup::Relay, InterGroup::Line(vec![0, 2, 1, 3])] {
                for (segment, hosts) in [0, 128].into_iter().flat_map(|segment| hosts.iter().map(move |hosts| (segment, hosts.clone()))) {
                    let other = IntraGroup { parameters: Parameters { in_flight: 7, ..inside.parameters }, ..inside.clone() };
                    let intra_group = vec![inside.clone(), inside.clone(), other.clone(), other];
                    let inter_group = inter_group.clone();
                    let two_level = TwoLevel {
                        bytes: 1000,
                        groups: groups(),
                        hosts,
                        inter_group,
                        segment,
                        in_flight: 3,
                        peers: 1,
                        intra_group,
                        near: Vec::new(),
                    };
                    let all = two_level.schedule(31).unwrap();
                    for (rank, program) in all.programs.iter().enumerate() {
                        assert_eq!(*program, two_level.program(rank).unwrap(), "rank {rank}: {two_level:?}");
                    }
                    shared += all.programs.len();
                }
            }
        }
        assert!(programs > 10_000 && shared > 10_000, "{programs} {shared}");
    }
}
