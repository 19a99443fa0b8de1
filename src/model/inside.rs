//! What a model of one pair does not say of its group: ranks that share a host do not pass the group's network, and messages to several hosts
//! may share a port or not.

use super::{Cost, CostModel, Fitted};
use crate::error::Result;
use crate::topology::Link;

/// The inside of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Inside {
    /// The host of each position, by number.
    hosts: Vec<usize>,
    /// Fitted on two ranks of one host, where some ranks share hosts and some do not.
    host: Option<Fitted>,
    /// How much of its gap a message keeps its sender from sending to another host: 1 where one port carries all.
    port_sharing: f64,
}

impl Inside {
    /// From the host of each position by name.
    pub fn new(hosts: &[String], host: Option<Fitted>, port_sharing: f64) -> Inside {
        let mut first = std::collections::HashMap::new();
        let hosts = hosts.iter().enumerate().map(|(k, name)| *first.entry(name).or_insert(k)).collect();
        Inside { hosts, host, port_sharing }
    }

    /// The host of each position, by number.
    pub fn hosts(&self) -> &[usize] {
        &self.hosts
    }
}

impl Fitted {
    /// What messages cost in a group of which this model describes a pair.
    ///
    /// # Errors
    /// As [`Fitted::costs`].
    pub fn costs_in(&self, inside: Option<&Inside>) -> Result<Box<dyn CostModel>> {
        let network = self.costs()?;
        let Some(Inside { hosts, host, port_sharing }) = inside.filter(|i| i.host.is_some() || i.port_sharing != 1.0) else {
            return Ok(network);
        };
        let host = host.as_ref().map(Fitted::costs).transpose()?;
        Ok(Box::new(Tiers { network, host, hosts: hosts.clone(), port_sharing: *port_sharing }))
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

impl CostModel for Tiers {
    fn cost(&self, link: Link, bytes: usize) -> Cost {
        match &self.host {
            // fitted on a pair, whichever it was
            Some(host) if self.hosts[link.from] == self.hosts[link.to] => host.cost(Link { from: 0, to: 1 }, bytes),
            _ => self.network.cost(link, bytes).sharing_a_port(self.port_sharing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let costs = hockney(1e-3).costs_in(Some(&Inside::new(&names, Some(hockney(1e-6)), 1.0))).unwrap();
        let transit = |from, to| costs.cost(Link { from, to }, 8).transit;
        assert_eq!((transit(0, 2), transit(4, 1)), (1e-6, 1e-6));
        assert_eq!((transit(0, 1), transit(2, 4), transit(3, 0)), (1e-3, 1e-3, 1e-3));
    }

    #[test]
    fn links_that_share_no_port_take_their_gap_each() {
        let port = Cost { send_overhead: 1.0, gap: 8.0, transit: 9.0, ..Cost::default() };
        let fanned = port.sharing_a_port(0.25);
        assert_eq!((fanned.gap, fanned.link_gap, fanned.transit), (2.0, 8.0, 9.0));
        // the processor still sends one after the other
        assert_eq!(port.sharing_a_port(0.01).gap, 1.0);
    }
}
