//! Bounds on throughput that need no solution.

use super::{Network, Service};
use crate::error::{Error, Result};
use serde::Serialize;

/// Between these lies the throughput.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bounds {
    /// At least.
    pub low: f64,
    /// At most.
    pub high: f64,
}

/// Balanced job bounds for so many customers (Zahorjan, Sevcik, Eager, Galler, Communications of the ACM 25, 1982; Lazowska et al. 1984,
/// table 5.2), which lie within the asymptotic ones.
///
/// # Errors
/// Times that are none, or a load-dependent station, for which these bounds do not hold.
pub fn bounds(network: &Network, customers: usize) -> Result<Bounds> {
    network.check(customers)?;
    if network.stations.iter().any(|s| matches!(s.service, Service::LoadDependent(_))) {
        return Err(Error::invalid("bound the throughput: a station is load-dependent; solve the network instead"));
    }
    let of = |service: Service| network.stations.iter().filter(move |s| s.service == service && s.count > 0);
    let think = network.think_s + of(Service::Delay).map(|s| s.count as f64 * s.demand_s).sum::<f64>();
    let demand: f64 = of(Service::Queue).map(|s| s.count as f64 * s.demand_s).sum();
    let largest = of(Service::Queue).map(|s| s.demand_s).fold(0.0, f64::max);
    let mean = demand / of(Service::Queue).map(|s| s.count).sum::<usize>().max(1) as f64;
    let n = customers as f64;
    if customers == 0 || demand == 0.0 {
        let exact = if customers == 0 { 0.0 } else { n / think };
        return Ok(Bounds { low: exact, high: exact });
    }
    let low = n / (demand + think + (n - 1.0) * largest / (1.0 + think / (n * demand)));
    let high = (n / (demand + think + (n - 1.0) * mean / (1.0 + think / demand))).min(1.0 / largest);
    Ok(Bounds { low, high })
}
