//! What a model of one pair does not say of its group: ranks that share a host do not pass the group's network, messages to several hosts
//! may share a port or not, processors may differ, and take time for what no message is part of.

use super::compute::{Compute, Computing, of_position};
use super::losses::{Losing, Losses};
use super::processors::{PAIR, Processors};
use super::{Cost, CostModel, Fitted, LMO};
use crate::error::Result;
use crate::topology::{Link, Rank};

/// The inside of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Inside {
    /// The host of each position, by number.
    hosts: Vec<usize>,
    /// Fitted on two ranks of one host, where some ranks share hosts and some do not.
    host: Option<Fitted>,
    /// How much of its gap a message keeps its sender from sending to another host: 1 where one port carries all.
    port_sharing: f64,
    /// Where they differ.
    processors: Option<Processors>,
    /// What copying and combining takes: one for all positions, or one for each; none where nobody measured it.
    compute: Vec<Compute>,
    /// What its network loses, with the seconds that it takes a byte, where that is known.
    losses: Option<(Losses, Option<f64>)>,
}

impl Inside {
    /// From the host of each position by name, and the models of the group; of copying and combining nothing is known.
    pub fn new(hosts: &[String], host: Option<Fitted>, port_sharing: f64, models: &[Fitted]) -> Inside {
        let mut first = std::collections::HashMap::new();
        let hosts: Vec<usize> = hosts.iter().enumerate().map(|(k, name)| *first.entry(name).or_insert(k)).collect();
        let processors = Processors::unlike(models, &hosts);
        Inside { hosts, host, port_sharing, processors, compute: Vec::new(), losses: None }
    }

    /// The same where it is known what copying and combining takes: one for all positions, or one for each.
    pub fn with_compute(self, compute: Vec<Compute>) -> Inside {
        Inside { compute, ..self }
    }

    /// The same where its network loses something; `models`: those of the group.
    pub fn with_losses(self, losses: Option<Losses>, models: &[Fitted]) -> Inside {
        let lmo = models.iter().find(|m| m.model == LMO.name);
        let inverse_bandwidth = lmo.and_then(|lmo| Some(lmo.parameters.get("inverse_b")?.value));
        Inside { losses: losses.map(|losses| (losses, inverse_bandwidth)), ..self }
    }

    /// True if its network loses something.
    pub fn loses(&self) -> bool {
        self.losses.is_some()
    }

    /// What its network loses, if it does.
    pub fn losses(&self) -> Option<&Losses> {
        self.losses.as_ref().map(|(losses, _)| losses)
    }

    /// What copying and combining takes at a position, if that is known.
    pub fn compute(&self, position: Rank) -> Option<&Compute> {
        of_position(&self.compute, position)
    }

    /// True if the processors of its hosts differ for sure.
    pub fn has_unlike_processors(&self) -> bool {
        self.processors.is_some()
    }

    /// How much longer a message keeps the processor of a position than that of the first; 0 where they are alike.
    pub fn beyond_first(&self, position: Rank, bytes: usize) -> f64 {
        self.processors.as_ref().map_or(0.0, |processors| processors.seconds(position, bytes) - processors.seconds(0, bytes))
    }

    /// The host of a position, by number. Positions beyond those that were measured are of further hosts, each with as many positions as its like.
    pub fn host(&self, position: Rank) -> usize {
        host_of(&self.hosts, position)
    }
}

/// [`Inside::host`], from the host of each position that was measured.
pub(super) fn host_of(hosts: &[usize], position: Rank) -> usize {
    let measured = hosts.len().max(1);
    hosts.get(position % measured).copied().unwrap_or(0) + position / measured * measured
}

impl Fitted {
    /// What messages cost in a group of which this model describes a pair, and what processors take beside them.
    ///
    /// # Errors
    /// As [`Fitted::costs`].
    pub fn costs_in(&self, inside: Option<&Inside>) -> Result<Box<dyn CostModel>> {
        let network = self.costs()?;
        let Some(Inside { hosts, host, port_sharing, processors, compute, losses }) = inside else { return Ok(network) };
        let network: Box<dyn CostModel> = match processors {
            Some(processors) if self.has_processors_of_its_pair() => Box::new(Unlike { network, processors: processors.clone() }),
            _ => network,
        };
        let messages: Box<dyn CostModel> = if host.is_none() && *port_sharing == 1.0 {
            network
        } else {
            let host = host.as_ref().map(Fitted::costs).transpose()?;
            Box::new(Tiers { network, host, hosts: hosts.clone(), port_sharing: *port_sharing })
        };
        let computing = Box::new(Computing { messages, compute: compute.clone() });
        Ok(match losses.clone() {
            Some((losses, inverse_bandwidth)) => Box::new(Losing { messages: computing, losses, hosts: hosts.clone(), inverse_bandwidth }),
            None => computing,
        })
    }
}

impl Cost {
    /// The cost on one of several links that share a port only in part: the link is busy for its gap, the port for so much of it.
    pub fn sharing_a_port(self, port_sharing: f64) -> Cost {
        let gap = (self.gap * port_sharing).max(self.send_overhead.min(self.gap));
        Cost { gap, link_gap: self.link_gap.max(self.gap), ..self }
    }
}

/// A group's network, and its hosts.
struct Tiers {
    network: Box<dyn CostModel>,
    host: Option<Box<dyn CostModel>>,
    hosts: Vec<usize>,
    port_sharing: f64,
}

impl Tiers {
    /// The model of messages inside a host, if both ends are on one.
    fn inside_host(&self, link: Link) -> Option<&dyn CostModel> {
        self.host.as_deref().filter(|_| host_of(&self.hosts, link.from) == host_of(&self.hosts, link.to))
    }
}

impl CostModel for Tiers {
    fn kinds(&self) -> usize {
        if self.host.is_none() { self.network.kinds() } else { 0 }
    }

    fn kind(&self, link: Link) -> usize {
        self.network.kind(link)
    }

    fn cost(&self, link: Link, bytes: usize) -> Cost {
        match self.inside_host(link) {
            // fitted on a pair, whichever it was
            Some(host) => host.cost(Link { from: 0, to: 1 }, bytes),
            None => self.network.cost(link, bytes).sharing_a_port(self.port_sharing),
        }
    }

    fn port_in(&self, link: Link, bytes: usize) -> f64 {
        match self.inside_host(link) {
            Some(host) => host.port_in(Link { from: 0, to: 1 }, bytes),
            None => self.network.port_in(link, bytes) * self.port_sharing,
        }
    }

    fn processor(&self, rank: Rank, bytes: usize) -> f64 {
        self.network.processor(rank, bytes)
    }
}

/// The measured tables of the first pair, with each position's own processor.
struct Unlike {
    network: Box<dyn CostModel>,
    processors: Processors,
}

impl CostModel for Unlike {
    fn cost(&self, link: Link, bytes: usize) -> Cost {
        let known = self.network.cost(PAIR, bytes);
        let [first, second, sender, receiver] = [PAIR.from, PAIR.to, link.from, link.to].map(|p| self.processors.seconds(p, bytes));
        let port = self.processors.port(bytes);
        // what neither processors nor bandwidth explain, as a library's handshakes
        let beyond = (known.gap - first.max(second).max(port)).max(0.0);
        // both overheads are measured on the first of the pair
        let (send_overhead, recv_overhead) =
            ((known.send_overhead + sender - first).max(0.0), (known.recv_overhead + receiver - first).max(0.0));
        Cost {
            send_overhead,
            gap: port.max(sender) + beyond,
            transit: (known.transit + sender - first + receiver - second).max(send_overhead + recv_overhead),
            recv_overhead,
            ..known
        }
    }

    fn port_in(&self, _: Link, bytes: usize) -> f64 {
        self.processors.port(bytes)
    }

    fn processor(&self, rank: Rank, bytes: usize) -> f64 {
        self.processors.seconds(rank, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Table;
    use crate::stats::Estimate;

    fn hockney(alpha: f64) -> Fitted {
        let parameter = |value| Estimate { value, low: value, high: value };
        Fitted {
            model: "hockney".into(),
            estimator: None,
            clamped: Vec::new(),
            parameters: [("alpha_s".to_string(), parameter(alpha)), ("beta_s_per_byte".to_string(), parameter(0.0))].into(),
            tables: Default::default(),
        }
    }

    #[test]
    fn ranks_of_one_host_do_not_pass_the_network() {
        let names = ["a", "b", "a", "c", "b"].map(String::from);
        let costs = hockney(1e-3).costs_in(Some(&Inside::new(&names, Some(hockney(1e-6)), 1.0, &[]))).unwrap();
        let transit = |from, to| costs.cost(Link { from, to }, 8).transit;
        assert_eq!((transit(0, 2), transit(4, 1)), (1e-6, 1e-6));
        assert_eq!((transit(0, 1), transit(2, 4), transit(3, 0)), (1e-3, 1e-3, 1e-3));
        // beyond those that were measured: another host with two ranks, like the first
        assert_eq!((transit(5, 7), transit(0, 5), transit(0, 10), transit(5, 10)), (1e-6, 1e-3, 1e-3, 1e-3));
    }

    #[test]
    fn links_that_share_no_port_take_their_gap_each() {
        let port = Cost { send_overhead: 1.0, gap: 8.0, transit: 9.0, ..Cost::default() };
        let fanned = port.sharing_a_port(0.25);
        assert_eq!((fanned.gap, fanned.link_gap, fanned.transit), (2.0, 8.0, 9.0));
        // the processor still sends one after the other
        assert_eq!(port.sharing_a_port(0.01).gap, 1.0);
    }

    #[test]
    fn where_processors_differ_each_position_pays_for_its_own() {
        // the third position takes three times as long as the pair; the fourth was not there
        let table = |value: &[f64]| Table { value: value.to_vec(), low: value.to_vec(), high: value.to_vec() };
        let mut lmo = hockney(0.0);
        lmo.model = "lmo".into();
        let exact = |value| Estimate { value, low: value, high: value };
        lmo.parameters = [("L".to_string(), exact(1e-4)), ("inverse_b".to_string(), exact(8e-9))].into();
        lmo.tables = [("C".to_string(), table(&[1e-5, 1e-5, 3e-5])), ("t".to_string(), table(&[2e-9, 2e-9, 6e-9]))].into();
        let inside = Inside::new(&["a", "b", "c", "d"].map(String::from), None, 1.0, std::slice::from_ref(&lmo));
        assert!(inside.has_unlike_processors());
        let mut pair = hockney(0.0);
        (pair.model, pair.parameters) = ("tables".into(), Default::default());
        let columns = [("bytes", [0.0, 1e6]), ("os", [1e-5, 2e-3]), ("or", [1e-5, 2e-3]), ("g", [3e-5, 9e-3]), ("transit", [2e-4, 1.3e-2])];
        pair.tables = columns.map(|(name, values)| (name.to_string(), table(&values))).into();
        let own = pair.costs_in(Some(&inside)).unwrap();
        let cost = |from, to| own.cost(Link { from, to }, 1000);
        let parts = |c: Cost| [c.send_overhead, c.gap, c.link_gap, c.transit, c.recv_overhead];
        let both = parts(cost(0, 1)).into_iter().zip(parts(pair.costs().unwrap().cost(PAIR, 1000)));
        both.for_each(|(own, measured)| assert!((own - measured).abs() < 1e-12, "{own} and {measured}"));
        let more = 2e-5 + 4e-9 * 1000.0;
        assert!((cost(2, 1).gap - cost(0, 1).gap - (3.6e-5 - 1.2e-5)).abs() < 1e-12, "{:?}", [cost(0, 1), cost(2, 1)]);
        assert!((cost(2, 1).transit - cost(0, 1).transit - more).abs() < 1e-12);
        assert!((cost(0, 2).transit - cost(0, 1).transit - more).abs() < 1e-12);
        assert!((cost(2, 1).send_overhead - cost(0, 1).send_overhead - more).abs() < 1e-12);
        assert!((own.processor(3, 1000) - (5e-5 / 3.0 + 1e-8 / 3.0 * 1000.0)).abs() < 1e-12);
        // all others say what they were fitted to
        assert_eq!(hockney(2e-4).costs_in(Some(&inside)).unwrap().cost(Link { from: 2, to: 0 }, 9).transit, 2e-4);
        assert_eq!(
            lmo.costs_in(Some(&inside)).unwrap().cost(Link { from: 2, to: 0 }, 9),
            lmo.costs().unwrap().cost(Link { from: 2, to: 0 }, 9)
        );
        lmo.tables.insert("C".into(), table(&[2.5e-5, 2.5e-5, 3e-5]));
        assert!(!Inside::new(&["a".into()], None, 1.0, &[lmo]).has_unlike_processors());
    }
}
