//! Closed queueing networks, and wall times of applications by them.
//!
//! Customers are the processes of an application, stations what they wait for. The solvers are mean value analysis and convolution
//! (Reiser, Lavenberg, Journal of the ACM 27, 1980; Buzen, Communications of the ACM 16, 1973; Lazowska, Zahorjan, Graham, Sevcik:
//! Quantitative System Performance, 1984).

mod algorithms;
mod among;
mod app;
mod choices;
mod classes;
mod clocks;
mod computing;
mod convolution;
mod distances;
mod exact;
mod histogram;
mod laws;
mod machine;
mod mpip;
mod observed;
mod partners;
mod profile;
mod run;
mod scale;
mod table;
mod used;
mod wall;
mod wire;

pub use among::{Part, Share, parts};
pub use app::{Active, Application, Intervals, Per, Prediction};
pub use classes::{ClassSolution, Classes, approximate};
pub use computing::{Computing, Weighted};
pub use distances::{Distance, ProfiledDistance};
pub use exact::exact;
pub use histogram::Histogram;
pub use laws::{CallLaw, PartLaw};
pub use machine::{Machine, Spread};
pub use mpip::{Listed, Report, Site, Times};
pub use observed::{Observed, Other, Rows};
pub use partners::{Neighbourhood, Partners, Phase, Rounds};
pub use profile::{Profile, ProfiledSite, report};
pub use run::{Call, Run, Said};
pub use scale::{Form, Guess, Law, Series, balanced};
pub use table::Table;
pub use used::{Alike, ProfiledUse, Use, name_of_uses};
pub use wall::{Components, Seen, Split, Traffic, split};
pub use wire::{Library, Wire, collective, makes_communicator, partners, wire};

use crate::error::{Error, Result};
use serde::Serialize;

/// How a station serves.
#[derive(Debug, Clone, PartialEq)]
pub enum Service {
    /// Everybody at once: nobody waits.
    Delay,
    /// One after the other.
    Queue,
    /// Faster by these factors with 1, 2, ... customers; the last holds for all above.
    LoadDependent(Vec<f64>),
}

impl Service {
    /// Several servers with one queue.
    pub fn servers(count: usize) -> Service {
        Service::LoadDependent((1..=count).map(|j| j as f64).collect())
    }

    /// The factor with so many customers, of which there is at least one.
    fn rate(rates: &[f64], customers: usize) -> f64 {
        rates[customers.min(rates.len()) - 1]
    }
}

/// A station, or several alike ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Station {
    /// Seconds of service that a customer asks of each of them in a cycle.
    pub demand_s: f64,
    /// How many alike ones there are.
    pub count: usize,
    /// How they serve.
    pub service: Service,
}

impl Station {
    /// One station where customers are served one after the other.
    pub fn queue(demand_s: f64) -> Station {
        Station { demand_s, count: 1, service: Service::Queue }
    }
}

/// A closed network with one class of customers.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Seconds that a customer spends outside all stations in a cycle.
    pub think_s: f64,
    /// The stations.
    pub stations: Vec<Station>,
}

/// What customers find at one of alike stations.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Measures {
    /// Seconds there in a cycle, waiting included.
    pub residence_s: f64,
    /// Customers there in the mean.
    pub queue: f64,
    /// The share of time that somebody is there to be served; for a delay, customers in the mean.
    pub utilisation: f64,
}

/// A solved network.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Solution {
    /// Cycles per second, of all customers together.
    pub throughput: f64,
    /// Seconds of a cycle, the thinking left out.
    pub response_s: f64,
    /// By station of the network.
    pub stations: Vec<Measures>,
}

impl Network {
    /// The first thing that is wrong.
    fn check(&self, customers: usize) -> Result<()> {
        let wrong = |reason: String| Err(Error::invalid(format!("solve the queueing network: {reason}")));
        let is_time = |t: f64| t.is_finite() && t >= 0.0;
        if !is_time(self.think_s) {
            return wrong(format!("a think time of {} s is no time", self.think_s));
        }
        for (k, s) in self.stations.iter().enumerate() {
            if !is_time(s.demand_s) {
                return wrong(format!("station {k} has a demand of {} s", s.demand_s));
            }
            if let Service::LoadDependent(rates) = &s.service
                && (rates.is_empty() || rates.iter().any(|r| !r.is_finite() || *r <= 0.0))
            {
                return wrong(format!("station {k} has rates that are not positive"));
            }
        }
        if customers > 0 && self.think_s + self.demand() == 0.0 {
            return wrong("no customer asks for any time".into());
        }
        Ok(())
    }

    /// Seconds of service that a customer asks of all stations in a cycle, at their first rate.
    fn demand(&self) -> f64 {
        self.stations.iter().map(|s| s.count as f64 * s.demand_s).sum()
    }
}
