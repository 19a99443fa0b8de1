//! How much is under way at once, where a choice does not say it: as much as keeps links and ports busy, and no more.

use crate::collective::{Algorithm, Parameters};
use crate::model::{Cost, CostModel};
use crate::schedule::WINDOW;
use crate::topology::{Link, Rank};

/// Messages go to one peer after the other where waiting for the end of one costs at most this share of the time that it keeps the port busy.
/// Messages to several peers at once share the port, and where they share it fairly all end when the last one does: of two, the first a whole
/// message too late.
const WAIT_SHARE: f64 = 0.1;

impl Cost {
    /// How many messages must be under way to one receiver for the link never to wait for the next one: the delay of one, over the time from
    /// one to the next, which is bandwidth times delay counted in messages. At least two, so that one can follow the other at once.
    pub fn in_flight(&self) -> usize {
        (self.transit / self.gap.max(self.link_gap)).ceil().max(2.0) as usize
    }
}

/// [`Cost::in_flight`] of messages of some bytes among ranks, as many as the most demanding link wants of those from the first rank to each
/// other and from each to the next; 0 for one rank.
pub fn in_flight(costs: &dyn CostModel, ranks: &[Rank], bytes: usize) -> usize {
    held_back(wanted(costs, ranks, bytes))
}

/// How many messages of some bytes the most demanding link inside groups of ranks wants under way; `None` where each is one rank.
pub fn wanted_inside(costs: &dyn CostModel, groups: &[Vec<Rank>], bytes: usize) -> Option<usize> {
    groups.iter().filter_map(|ranks| wanted(costs, ranks, bytes)).max()
}

/// How many messages the most demanding link among ranks wants under way, of those that [`in_flight`] looks at.
fn wanted(costs: &dyn CostModel, ranks: &[Rank], bytes: usize) -> Option<usize> {
    links(ranks).map(|link| costs.cost(link, bytes).in_flight()).max()
}

/// To how many peers at once messages of some bytes go among ranks: to one, where on all those links hardly anything is lost by waiting for a
/// message's end; 0 (all) elsewhere.
pub fn peers(costs: &dyn CostModel, ranks: &[Rank], bytes: usize) -> usize {
    let waits_little = |link| {
        let (cost, empty) = (costs.cost(link, bytes), costs.cost(link, 0));
        // models without a gap of its own say that nothing is lost, whatever the latency
        cost.transit <= (1.0 + WAIT_SHARE) * cost.gap && empty.transit <= WAIT_SHARE * cost.transit
    };
    usize::from(ranks.len() > 1 && links(ranks).all(waits_little))
}

/// From the first rank to each other, and from each to the next.
fn links(ranks: &[Rank]) -> impl Iterator<Item = Link> + '_ {
    let from_first = ranks.iter().skip(1).map(|&to| Link { from: ranks[0], to });
    from_first.chain(ranks.windows(2).map(|pair| Link { from: pair[0], to: pair[1] }))
}

/// What a program is told of the messages that the most demanding link wants under way: nothing (0) where it wants more than are waited for
/// anyway, since a longer wait than the link's own would only be lost.
pub fn held_back(wanted: Option<usize>) -> usize {
    wanted.filter(|&messages| messages <= WINDOW).unwrap_or(0)
}

/// True if so many messages under way, which are some, are fewer than others, of which 0 says nothing.
pub fn are_fewer(messages: usize, others: usize) -> bool {
    messages > 0 && (others == 0 || messages < others)
}

/// Parameters with what they leave open of the messages under way.
pub fn with_flow(algorithm: &Algorithm, parameters: Parameters, costs: &dyn CostModel, ranks: &[Rank], bytes: usize) -> Parameters {
    let mut filled = parameters;
    let piece = if parameters.segment > 0 { parameters.segment.min(bytes) } else { bytes };
    if parameters.segment > 0 && parameters.in_flight == 0 {
        filled.in_flight = in_flight(costs, ranks, piece);
    }
    if parameters.peers == 0 && algorithm.branches(ranks.len()) {
        filled.peers = peers(costs, ranks, piece);
    }
    filled
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::collective::bcast;

    /// 50 us, 100 MB/s.
    pub(crate) struct Lan;

    impl CostModel for Lan {
        fn cost(&self, _: Link, bytes: usize) -> Cost {
            let gap = 1e-8 * bytes as f64;
            Cost { gap, transit: gap + 5e-5, ..Cost::default() }
        }
    }

    #[test]
    fn large_messages_go_to_one_peer_after_the_other() {
        let of = |name: &str, segment, bytes| {
            let algorithm = bcast::algorithm(name).unwrap();
            let filled = with_flow(algorithm, Parameters::of(segment, 0), &Lan, &[0, 1, 2, 3], bytes);
            (filled.in_flight, filled.peers)
        };
        // a tenth of 500 us is the latency
        assert_eq!(of("binomial", 0, 51_000), (0, 1));
        assert_eq!(of("binomial", 0, 44_000), (0, 0));
        assert_eq!(of("segmented_binary", 1_000, 1 << 20), (6, 0));
        assert_eq!(of("segmented_binary", 100_000, 1 << 20), (2, 1));
        assert_eq!(of("chain", 0, 1 << 20), (0, 0), "it has one peer");
    }
}
