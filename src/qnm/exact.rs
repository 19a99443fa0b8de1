//! The exact solution for one class of customers.

use super::{Measures, Network, Service, Solution, convolution};
use crate::error::Result;

/// Solves a network for so many customers.
///
/// Without load-dependent stations by mean value analysis, in time `customers * stations`; alike stations count as one. With such
/// stations by convolution, in time `customers^2 * stations`: the recursion of mean value analysis takes one less sums of
/// probabilities there, and loses all digits near saturation.
///
/// # Errors
/// Times that are none, or rates that are not positive.
///
/// ```
/// use collwise::qnm::{Network, Station, exact};
/// // 15 s of thinking and three devices (the example of Lazowska et al. 1984, chapter 6)
/// let network = Network { think_s: 15.0, stations: [0.605, 2.1, 1.35].map(Station::queue).to_vec() };
/// let solution = exact(&network, 3)?;
/// assert!((solution.throughput - 0.152).abs() < 5e-4);
/// # Ok::<(), collwise::error::Error>(())
/// ```
pub fn exact(network: &Network, customers: usize) -> Result<Solution> {
    network.check(customers)?;
    if customers == 0 {
        return Ok(Solution { throughput: 0.0, response_s: 0.0, stations: vec![Measures::default(); network.stations.len()] });
    }
    if network.stations.iter().any(|s| matches!(s.service, Service::LoadDependent(_))) {
        return Ok(convolution::solve(network, customers));
    }
    Ok(mean_value_analysis(network, customers))
}

fn mean_value_analysis(network: &Network, customers: usize) -> Solution {
    let stations = &network.stations;
    let waits: Vec<f64> = stations.iter().map(|s| if s.service == Service::Queue { 1.0 } else { 0.0 }).collect();
    let (mut queue, mut residence) = (vec![0.0; stations.len()], vec![0.0; stations.len()]);
    let (mut throughput, mut response) = (0.0, 0.0);
    for n in 1..=customers {
        response = 0.0;
        for (k, s) in stations.iter().enumerate() {
            residence[k] = s.demand_s * (1.0 + waits[k] * queue[k]);
            response += s.count as f64 * residence[k];
        }
        throughput = n as f64 / (network.think_s + response);
        queue.iter_mut().zip(&residence).for_each(|(q, r)| *q = throughput * r);
    }
    let measures = |k: usize| Measures { residence_s: residence[k], queue: queue[k], utilisation: throughput * stations[k].demand_s };
    Solution { throughput, response_s: response, stations: (0..stations.len()).map(measures).collect() }
}
