//! Several classes of customers, approximately.

use crate::error::{Error, Result};
use serde::Serialize;

/// A closed network with several classes of customers.
#[derive(Debug, Clone, PartialEq)]
pub struct Classes {
    /// Customers of each class.
    pub customers: Vec<usize>,
    /// Seconds that a customer of each class spends outside all stations in a cycle.
    pub think_s: Vec<f64>,
    /// Seconds of service in a cycle, by class and station.
    pub demand_s: Vec<Vec<f64>>,
    /// By station: true if nobody waits there.
    pub is_delay: Vec<bool>,
}

/// What each class finds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassSolution {
    /// Cycles per second of each class.
    pub throughput: Vec<f64>,
    /// Seconds in a cycle, by class and station, waiting included.
    pub residence_s: Vec<Vec<f64>>,
    /// Customers there in the mean, by class and station.
    pub queue: Vec<Vec<f64>>,
}

impl Classes {
    fn check(&self) -> Result<()> {
        let wrong = |reason: &str| Err(Error::invalid(format!("solve the queueing network: {reason}")));
        let (classes, stations) = (self.customers.len(), self.is_delay.len());
        if self.think_s.len() != classes || self.demand_s.len() != classes || self.demand_s.iter().any(|d| d.len() != stations) {
            return wrong("each class needs a think time and a demand at each station");
        }
        if self.think_s.iter().chain(self.demand_s.iter().flatten()).any(|t| !t.is_finite() || *t < 0.0) {
            return wrong("a time is negative or not finite");
        }
        let idle = |c: usize| self.customers[c] > 0 && self.think_s[c] + self.demand_s[c].iter().sum::<f64>() == 0.0;
        if (0..classes).any(idle) {
            return wrong("a class asks for no time");
        }
        Ok(())
    }

    fn stations(&self) -> usize {
        self.is_delay.len()
    }
}

/// A class's measures, when a customer of it that comes finds these queues.
fn serve(network: &Classes, c: usize, customers: f64, found: &[f64], solution: &mut ClassSolution) {
    let mut cycle = network.think_s[c];
    for (k, residence) in solution.residence_s[c].iter_mut().enumerate() {
        *residence = network.demand_s[c][k] * if network.is_delay[k] { 1.0 } else { 1.0 + found[k] };
        cycle += *residence;
    }
    solution.throughput[c] = customers / cycle;
    for (queue, residence) in solution.queue[c].iter_mut().zip(&solution.residence_s[c]) {
        *queue = solution.throughput[c] * residence;
    }
}

fn empty(classes: usize, stations: usize) -> ClassSolution {
    let table = vec![vec![0.0; stations]; classes];
    ClassSolution { throughput: vec![0.0; classes], residence_s: table.clone(), queue: table }
}

/// Iterations of the approximation end when no queue changes by more than this.
const TOLERANCE: f64 = 1e-10;
/// Iterations at most: it takes tens.
const MOST_ITERATIONS: usize = 100_000;

/// The approximation of Bard (1979) and Schweitzer (1979): a customer that comes finds its own class's queue as it is with one customer
/// less in proportion, and the other classes' queues as they are.
///
/// # Errors
/// Times that are none, or lists that do not match.
pub fn approximate(network: &Classes) -> Result<ClassSolution> {
    network.check()?;
    let (classes, stations) = (network.customers.len(), network.stations());
    let mut solution = empty(classes, stations);
    let mut sums = vec![0.0; stations];
    for c in 0..classes {
        let share = network.customers[c] as f64 / stations.max(1) as f64;
        solution.queue[c].fill(share);
        sums.iter_mut().for_each(|s| *s += share);
    }
    let mut found = vec![0.0; stations];
    for _ in 0..MOST_ITERATIONS {
        let mut change = 0.0f64;
        for c in (0..classes).filter(|&c| network.customers[c] > 0) {
            let customers = network.customers[c] as f64;
            let before = solution.queue[c].clone();
            found.iter_mut().zip(&sums).zip(&before).for_each(|((f, s), q)| *f = s - q / customers);
            serve(network, c, customers, &found, &mut solution);
            for ((sum, queue), before) in sums.iter_mut().zip(&solution.queue[c]).zip(&before) {
                *sum += queue - before;
                change = change.max((queue - before).abs());
            }
        }
        if change < TOLERANCE {
            break;
        }
    }
    Ok(solution)
}
