//! Buzen's convolution, in logarithms: sums of positive terms only, whatever the number of customers and however close to saturation.

use super::{Measures, Network, Service, Solution, Station};

/// Solves a network for at least one customer.
pub fn solve(network: &Network, customers: usize) -> Solution {
    let stations = &network.stations;
    let factors: Vec<Vec<f64>> = stations.iter().map(|s| factor(s, s.count, customers)).collect();
    // what comes before each station, and what after: a station's own share is found without dividing it out again
    let mut before = vec![delay(network.think_s, customers)];
    for f in &factors {
        before.push(convolve(&before[before.len() - 1], f));
    }
    let all = &before[factors.len()];
    let throughput = (all[customers - 1] - all[customers]).exp();
    let mut found = vec![Measures::default(); factors.len()];
    let mut after = delay(0.0, customers);
    for (k, station) in stations.iter().enumerate().rev().filter(|(_, s)| s.count > 0) {
        let alike = factor(station, station.count - 1, customers);
        let others = convolve(&convolve(&before[k], &after), &alike);
        let own = factor(station, 1, customers);
        let probability = |j: usize| (own[j] + others[customers - j] - all[customers]).exp();
        let queue = (1..=customers).map(|j| j as f64 * probability(j)).sum::<f64>();
        let utilisation = if station.service == Service::Delay { queue } else { (1..=customers).map(probability).sum() };
        found[k] = Measures { residence_s: queue / throughput, queue, utilisation };
        after = convolve(&after, &factors[k]);
    }
    Solution { throughput, response_s: customers as f64 / throughput - network.think_s, stations: found }
}

/// ln of the factor of so many stations like this one, by the number of customers there.
fn factor(station: &Station, count: usize, customers: usize) -> Vec<f64> {
    match &station.service {
        Service::Delay => delay(station.demand_s * count as f64, customers),
        Service::Queue => queues(station.demand_s, count, customers),
        Service::LoadDependent(rates) => {
            let mut one = vec![0.0; customers + 1];
            (1..=customers).for_each(|j| one[j] = one[j - 1] + (station.demand_s / Service::rate(rates, j)).ln());
            power(one, count, customers)
        }
    }
}

/// `count` equal factors, by squaring.
fn power(mut base: Vec<f64>, mut count: usize, customers: usize) -> Vec<f64> {
    let mut product = delay(0.0, customers);
    while count > 0 {
        if count % 2 == 1 {
            product = convolve(&product, &base);
        }
        count /= 2;
        if count > 0 {
            base = convolve(&base, &base);
        }
    }
    product
}

/// ln(t^j / j!).
fn delay(time: f64, customers: usize) -> Vec<f64> {
    let mut f = vec![0.0; customers + 1];
    (1..=customers).for_each(|j| f[j] = f[j - 1] + time.ln() - (j as f64).ln());
    f
}

/// ln(D^j * C(count + j - 1, j)): so many ways there are to spread j customers over the queues.
fn queues(demand: f64, count: usize, customers: usize) -> Vec<f64> {
    let mut f = vec![0.0; customers + 1];
    (1..=customers).for_each(|j| f[j] = f[j - 1] + demand.ln() + ((count + j - 1) as f64 / j as f64).ln());
    f
}

fn convolve(a: &[f64], b: &[f64]) -> Vec<f64> {
    // where one is that of nothing at all (1, 0, 0, ...), the other stays
    if b[1..].iter().all(|x| *x == f64::NEG_INFINITY) {
        return a.to_vec();
    }
    if a[1..].iter().all(|x| *x == f64::NEG_INFINITY) {
        return b.to_vec();
    }
    let sum = |n: usize| {
        let term = |j: usize| a[j] + b[n - j];
        let largest = (0..=n).map(term).fold(f64::NEG_INFINITY, f64::max);
        if largest == f64::NEG_INFINITY { largest } else { largest + (0..=n).map(|j| (term(j) - largest).exp()).sum::<f64>().ln() }
    };
    (0..a.len()).map(sum).collect()
}
