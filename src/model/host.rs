//! Groups of hosts that carry several ranks each: what two ranks of one host send each other does not pass the group's network.

use super::{Cost, CostModel, Fitted};
use crate::error::Result;
use crate::topology::Link;

/// Who shares a host in a group, and what messages between them cost.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedHosts {
    /// The host of each position, by number.
    hosts: Vec<usize>,
    /// Fitted on two ranks of one host.
    model: Fitted,
}

impl SharedHosts {
    /// From the host of each position by name.
    pub fn new(hosts: &[String], model: Fitted) -> SharedHosts {
        SharedHosts { hosts: numbers(hosts), model }
    }
}

/// Each host's number: the position at which it is named first.
pub fn numbers(hosts: &[String]) -> Vec<usize> {
    let mut first = std::collections::HashMap::new();
    hosts.iter().enumerate().map(|(k, name)| *first.entry(name).or_insert(k)).collect()
}

impl Fitted {
    /// What messages cost in a group whose network this model describes.
    ///
    /// # Errors
    /// As [`Fitted::costs`].
    pub fn costs_with(&self, shared: Option<&SharedHosts>) -> Result<Box<dyn CostModel>> {
        let network = self.costs()?;
        let Some(SharedHosts { hosts, model }) = shared else { return Ok(network) };
        Ok(Box::new(Tiers { network, host: model.costs()?, hosts: hosts.clone() }))
    }
}

/// A group's network, and its hosts.
struct Tiers {
    network: Box<dyn CostModel>,
    host: Box<dyn CostModel>,
    hosts: Vec<usize>,
}

impl CostModel for Tiers {
    fn cost(&self, link: Link, bytes: usize) -> Cost {
        if self.hosts[link.from] == self.hosts[link.to] {
            // fitted on a pair, whichever it was
            self.host.cost(Link { from: 0, to: 1 }, bytes)
        } else {
            self.network.cost(link, bytes)
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
        assert_eq!(numbers(&names), [0, 1, 0, 3, 1]);
        let costs = hockney(1e-3).costs_with(Some(&SharedHosts::new(&names, hockney(1e-6)))).unwrap();
        let transit = |from, to| costs.cost(Link { from, to }, 8).transit;
        assert_eq!((transit(0, 2), transit(4, 1)), (1e-6, 1e-6));
        assert_eq!((transit(0, 1), transit(2, 4), transit(3, 0)), (1e-3, 1e-3, 1e-3));
    }
}
