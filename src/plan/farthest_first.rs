//! In what order a root serves ranks that it sends to itself, over several groups: the farthest first, so that the last message has the shortest way.
//! What the root's port takes is the same in any order (largest delivery time first, as in scheduling jobs with tails on one machine: Jackson 1955).

use crate::collective::{Algorithm, Parameters, Shape};
use crate::decide::ticks;
use crate::model::CostModel;
use crate::topology::{Link, Rank};

/// Ranks in that order, the root first; `None` where they stay in theirs.
pub(super) fn farthest_first(algorithm: &Algorithm, costs: &dyn CostModel, shape: &Shape) -> Option<Vec<Rank>> {
    if !serves_each(algorithm) {
        return None;
    }
    let ranks: Vec<Rank> = (0..shape.ranks).map(|v| shape.absolute(v)).collect();
    let mut order = ranks.clone();
    let far = |&to: &Rank| std::cmp::Reverse(ticks(costs.cost(Link { from: shape.root, to }, shape.bytes).transit));
    order[1..].sort_by_cached_key(far);
    (order != ranks).then_some(order)
}

/// True if the root sends to everybody itself and nobody else sends, so that any order will do.
pub(super) fn serves_each(algorithm: &Algorithm) -> bool {
    // more than the radix of a tree that no other is said of
    const RANKS: usize = 9;
    let shape = Shape::new(RANKS, 0, RANKS);
    let messages = |me| {
        let program = algorithm.program(me, &shape, &Parameters::default())?;
        Some((0..program.len()).filter(|&op| program.sends_to(op).is_some()).count())
    };
    (algorithm.fits)(&shape) && messages(0) == Some(RANKS - 1) && (1..RANKS).all(|me| messages(me) == Some(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{COLLECTIVES, scatter};
    use crate::model::Cost;

    /// Odd ranks are far from even ones.
    struct OddFar;

    impl CostModel for OddFar {
        fn cost(&self, link: Link, _: usize) -> Cost {
            Cost { transit: if (link.from + link.to) % 2 == 1 { 1e-2 } else { 1e-4 }, ..Cost::default() }
        }
    }

    #[test]
    fn a_root_that_serves_each_rank_itself_serves_the_farthest_first() {
        let order = |name: &str, root| farthest_first(scatter::COLLECTIVE.algorithm(name).unwrap(), &OddFar, &Shape::new(6, root, 100));
        assert_eq!(order("flat", 0), Some(vec![0, 1, 3, 5, 2, 4]));
        assert_eq!(order("flat", 3), Some(vec![3, 4, 0, 2, 5, 1]));
        assert_eq!(order("binomial", 0), None, "others wait for who has subtrees");
        assert_eq!(order("native", 0), None);
    }

    #[test]
    fn these_are_the_algorithms_that_do() {
        let all = COLLECTIVES.iter().flat_map(|c| c.built().map(|a| (c.name, a)));
        let found: Vec<String> = all.filter(|(_, a)| serves_each(a)).map(|(of, a)| format!("{of} {}", a.name)).collect();
        assert_eq!(found, ["bcast flat", "bcast segmented_flat", "scatter flat"]);
    }
}
