//! Which rank takes which place of an algorithm where processors differ: the fastest those that the others wait for.

use crate::collective::{Algorithm, Collective, Parameters, Shape};
use crate::error::Result;
use crate::model::{Cost, CostModel};
use crate::predict::replay;
use crate::schedule::{Action, Program};
use crate::topology::{Link, Rank};

/// Places are told apart by messages of at most so many segments: those of longer ones are used alike.
const FEW_SEGMENTS: usize = 4;

/// The ranks of an algorithm by its places, the root's first: the fastest processors where most is sent and, of those places, where it is sent first; the slowest
/// where nothing is sent and the message comes first. What mirrors another collective has its places. `None` where ranks stay in their order.
///
/// # Errors
/// A schedule that cannot be built.
pub fn by_speed(
    collective: &Collective,
    algorithm: &'static Algorithm,
    parameters: &Parameters,
    costs: &dyn CostModel,
    ranks: usize,
    bytes: usize,
) -> Result<Option<Vec<Rank>>> {
    let Some(algorithm) = collective.places_of(algorithm) else { return Ok(None) };
    // who sends what is the same however much is under way
    let plain = Parameters::of(parameters.segment, parameters.radix);
    let piece = if parameters.segment > 0 { parameters.segment.min(bytes) } else { bytes };
    let mut ordered: Vec<(Rank, u64)> = (1..ranks).map(|rank| (rank, ticks(costs.processor(rank, piece)))).collect();
    ordered.sort_by_key(|o| o.1);
    let few = if algorithm.segmented && piece > 0 { bytes.min(piece.saturating_mul(FEW_SEGMENTS)) } else { bytes };
    let middle = ordered.len() / 2;
    if ordered.first().map(|o| o.1) == ordered.last().map(|o| o.1) {
        return Ok(None);
    }
    let alike = Alike { costs, link: Link { from: ordered[middle].0, to: ordered[middle - 1].0 } };
    let Some(schedule) = algorithm.bounded_schedule(&Shape::new(ranks, 0, few), &plain)? else { return Ok(None) };
    let replayed = replay(&schedule, &alike)?;
    // what a place sends, in seconds of a processor, and when it has heard all
    let place = |(place, program): (usize, &Program)| {
        let sent = |action| {
            if let Action::Send { to, span } = action { alike.cost(Link { from: place, to }, span.len).send_overhead } else { 0.0 }
        };
        (place, ticks(program.actions().map(sent).sum()), ticks(replayed.traces[place].finish()))
    };
    let mut places: Vec<(usize, u64, u64)> = schedule.programs.iter().enumerate().skip(1).map(place).collect();
    places.sort_by(|a, b| b.1.cmp(&a.1).then(if a.1 > 0 { a.2.cmp(&b.2) } else { b.2.cmp(&a.2) }));
    let mut by_place: Vec<Rank> = (0..ranks).collect();
    places.iter().zip(&ordered).for_each(|(place, rank)| by_place[place.0] = rank.0);
    Ok(by_place.iter().enumerate().any(|(place, &rank)| place != rank).then_some(by_place))
}

/// Whole nanoseconds: what differs by less, as in the last digit of sums or of a file, decides nothing.
pub fn ticks(seconds: f64) -> u64 {
    (seconds * 1e9 + 0.5) as u64
}

/// All links as one.
struct Alike<'a> {
    costs: &'a dyn CostModel,
    link: Link,
}

impl CostModel for Alike<'_> {
    fn kinds(&self) -> usize {
        1
    }

    fn cost(&self, _: Link, bytes: usize) -> Cost {
        self.costs.cost(self.link, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::bcast;

    /// Each rank's processor takes so many microseconds for a message, the network 100.
    struct Hosts(Vec<f64>);

    impl CostModel for Hosts {
        fn cost(&self, link: Link, _: usize) -> Cost {
            let [send, receive] = [link.from, link.to].map(|rank| self.0[rank] * 1e-6);
            Cost { send_overhead: send, gap: send, transit: send + 1e-4 + receive, recv_overhead: receive, link_gap: 0.0 }
        }

        fn processor(&self, rank: Rank, _: usize) -> f64 {
            self.0[rank] * 1e-6
        }
    }

    fn places(name: &str, segment: usize, hosts: &[f64]) -> Option<Vec<Rank>> {
        let (algorithm, costs) = (bcast::algorithm(name).unwrap(), Hosts(hosts.to_vec()));
        by_speed(&bcast::COLLECTIVE, algorithm, &Parameters::of(segment, 0), &costs, hosts.len(), 10_000).unwrap()
    }

    #[test]
    fn the_fastest_send_most_and_the_slowest_nothing() {
        // root 0 has 4, 2, 1, and 4 has 6, 5
        let hosts = [80.0, 70.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0];
        assert_eq!(places("binomial", 0, &hosts).unwrap()[..], [0, 1, 3, 6, 2, 7, 4, 5]);
        // nobody but the last sends nothing
        assert_eq!(places("chain", 0, &hosts).unwrap()[..], [0, 2, 3, 4, 5, 6, 7, 1]);
        assert_eq!(places("segmented_chain", 1000, &hosts), places("chain", 0, &hosts));
    }

    #[test]
    fn each_rank_has_one_place_and_the_root_keeps_its_own() {
        let hosts: Vec<f64> = (0..24).map(|k| (k * 7 % 24) as f64 + 1.0).collect();
        for algorithm in bcast::COLLECTIVE.built() {
            let mut found = places(algorithm.name, 1000, &hosts).unwrap();
            assert_eq!(found[0], 0, "{}", algorithm.name);
            found.sort_unstable();
            assert_eq!(found, (0..24).collect::<Vec<_>>(), "{}", algorithm.name);
        }
        assert_eq!(places("binomial", 0, &[3.0; 9]), None, "processors that are alike stay in their order");
        assert_eq!((places("flat", 0, &[3.0]), places("native", 0, &hosts)), (None, None));
    }
}
