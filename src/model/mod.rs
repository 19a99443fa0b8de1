//! Point-to-point communication models: one model a file.
//!
//! A model says what a message costs ([`Cost`]), which experiments its parameters need, how they are fitted from samples, and
//! where it comes from. A new model is one file and two lines here.

mod among;
mod compute;
mod hockney;
mod inside;
mod lmo;
mod loggp;
mod logp;
mod losses;
mod plogp;
mod processors;
mod tables;

use crate::error::{Error, Result};
use crate::measure::{Experiment, Samples};
use crate::stats::{self, Estimate, Random};
use crate::topology::{Link, Rank};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

pub use among::Among;
pub use compute::Compute;
pub use inside::Inside;
pub use losses::{Loss, Losses, Lossless};
pub use plogp::TABLE_SIZES;

/// What a message costs on a link, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// The sender's processor is busy.
    pub send_overhead: f64,
    /// The sender's port is busy, from the start of this message to the earliest start of the next.
    pub gap: f64,
    /// The link is busy, from the start of this message to the earliest start of the next to the same receiver. Where it is
    /// not longer than `gap` it delays nothing.
    pub link_gap: f64,
    /// From the send's start until the message is usable at the receiver, both overheads included.
    pub transit: f64,
    /// The last part of `transit`, which runs on the receiver's processor.
    pub recv_overhead: f64,
}

impl Cost {
    /// Of a message that cannot be sent.
    pub const NEVER: Cost = Cost { send_overhead: 0.0, gap: 0.0, link_gap: 0.0, transit: f64::INFINITY, recv_overhead: 0.0 };
}

/// Above so many bytes many MPI libraries let a message wait for its receiver, a handshake: Open MPI over TCP and MPICH do by default.
pub const HANDSHAKE: usize = 64 << 10;

/// What several links share, by number: from one group to another.
pub type Pipe = (usize, usize);

/// Anything that can tell what a message costs.
pub trait CostModel: Send + Sync {
    /// The cost of a message on a link.
    fn cost(&self, link: Link, bytes: usize) -> Cost;

    /// What a message on a link goes through that messages on other links go through too, and how long its bytes keep it busy: all of them
    /// wait there for each other. `None`: nothing that is known.
    fn pipe(&self, _link: Link, _bytes: usize) -> Option<(Pipe, f64)> {
        None
    }

    /// Seconds that the bytes of a message on a link keep the receiver's port busy: as long as it would take to send as many back.
    fn port_in(&self, link: Link, bytes: usize) -> f64 {
        let back = Link { from: link.to, to: link.from };
        (self.cost(back, bytes).gap - self.cost(back, 0).gap).max(0.0)
    }

    /// How many kinds of links there are. On links of one kind messages cost the same, whatever their size, keep ports as long and go through the same:
    /// whoever replays millions of messages asks once for each kind. 0: nobody has sorted them.
    fn kinds(&self) -> usize {
        0
    }

    /// A link's kind, below [`CostModel::kinds`] where that is not 0.
    fn kind(&self, _link: Link) -> usize {
        0
    }

    /// True if messages may be lost: where not, nobody asks of which.
    fn loses(&self) -> bool {
        false
    }

    /// What may happen to a message on a link that meets another sender's at the receiver's port; `None`: nothing.
    fn loss(&self, _link: Link, _bytes: usize) -> Option<Loss> {
        None
    }

    /// Seconds that a message keeps a rank's processor, where the model tells processors apart; elsewhere 0.
    fn processor(&self, _rank: Rank, _bytes: usize) -> f64 {
        0.0
    }

    /// Seconds in which a rank copies so many bytes; models of messages alone take it to be free.
    fn copy(&self, _rank: Rank, _bytes: usize) -> f64 {
        0.0
    }

    /// Seconds in which a rank combines so many bytes; models of messages alone take it to be free.
    fn combine(&self, _rank: Rank, _bytes: usize) -> f64 {
        0.0
    }
}

/// Messages take no time.
pub struct Free;

impl CostModel for Free {
    fn kinds(&self) -> usize {
        1
    }

    fn cost(&self, _: Link, _: usize) -> Cost {
        Cost::default()
    }
}

/// The parameters of a model without their intervals: single values, and tables with a value for each message size or rank.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values {
    /// Single values by name.
    pub scalars: BTreeMap<String, f64>,
    /// Tables by name.
    pub tables: BTreeMap<String, Vec<f64>>,
}

impl Values {
    /// Values from names and numbers.
    pub fn of(scalars: &[(&str, f64)]) -> Values {
        Values { scalars: scalars.iter().map(|&(k, v)| (k.to_string(), v)).collect(), tables: BTreeMap::new() }
    }

    /// Adds a table.
    pub fn table(mut self, name: &str, values: Vec<f64>) -> Values {
        self.tables.insert(name.into(), values);
        self
    }

    /// A single value.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is not there.
    pub fn get(&self, name: &str) -> Result<f64> {
        self.scalars.get(name).copied().ok_or_else(|| Error::invalid(format!("use a model: parameter {name} is missing")))
    }

    /// A table.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is not there, or empty.
    pub fn list(&self, name: &str) -> Result<&[f64]> {
        let table = self.tables.get(name).filter(|table| !table.is_empty());
        table.map(Vec::as_slice).ok_or_else(|| Error::invalid(format!("use a model: table {name} is missing")))
    }
}

/// A table with intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The point estimates.
    pub value: Vec<f64>,
    /// Lower ends of the 95 % intervals.
    pub low: Vec<f64>,
    /// Upper ends.
    pub high: Vec<f64>,
}

/// A fitted model: its name, and its parameters with 95 % confidence intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fitted {
    /// The model's name.
    pub model: String,
    /// Which of the model's estimators made it, if it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimator: Option<String>,
    /// What broke the model's assumptions and was clamped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clamped: Vec<String>,
    /// Single values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Estimate>,
    /// Tables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tables: BTreeMap<String, Table>,
}

impl Fitted {
    /// The point estimates.
    pub fn values(&self) -> Values {
        Values {
            scalars: self.parameters.iter().map(|(k, e)| (k.clone(), e.value)).collect(),
            tables: self.tables.iter().map(|(k, t)| (k.clone(), t.value.clone())).collect(),
        }
    }

    /// What messages cost under it. Links are between positions in the group that it was fitted for.
    ///
    /// # Errors
    /// As [`Model::costs`].
    pub fn costs(&self) -> Result<Box<dyn CostModel>> {
        model(&self.model)?.costs(&self.values())
    }
}

/// The ranks that a model is fitted for.
#[derive(Debug, Clone, PartialEq)]
pub struct RankSet {
    /// By position in the group; ranks of different hosts where there are any.
    pub ranks: Vec<Rank>,
    /// What is known of the inside of the group.
    pub inside: Option<Inside>,
}

impl RankSet {
    /// Ranks of which nothing else is known.
    pub fn new(ranks: Vec<Rank>) -> RankSet {
        RankSet { ranks, inside: None }
    }

    /// The pair that stands for all pairs of a homogeneous group.
    pub fn pair(&self) -> (Rank, Rank) {
        (self.ranks[0], self.ranks[self.ranks.len().min(2) - 1])
    }
}

/// Times by experiment: medians of the samples, or of bootstrap resamples of them.
pub struct Lookup<'a> {
    samples: &'a Samples,
    resampling: Option<RefCell<&'a mut Random>>,
    /// True once a time was looked up whose repetitions differ: elsewhere all resamples are alike.
    varied: Cell<bool>,
}

impl<'a> Lookup<'a> {
    /// Medians of the samples.
    pub fn new(samples: &'a Samples) -> Lookup<'a> {
        Lookup { samples, resampling: None, varied: Cell::new(false) }
    }

    /// Medians of a resample, drawn anew at each look.
    fn resampling(samples: &'a Samples, random: &'a mut Random) -> Lookup<'a> {
        Lookup { samples, resampling: Some(RefCell::new(random)), varied: Cell::new(false) }
    }

    /// The median that was measured: what further experiments are designed by.
    fn measured(&self, experiment: &Experiment) -> Option<f64> {
        self.samples.median(experiment)
    }

    /// The time to estimate from.
    fn time(&self, experiment: &Experiment) -> Option<f64> {
        match &self.resampling {
            None => {
                let seconds = &self.samples.get(experiment)?.seconds;
                self.varied.set(self.varied.get() || seconds.iter().any(|t| *t != seconds[0]));
                stats::median(seconds)
            }
            Some(random) => stats::median(&stats::resample(&self.samples.get(experiment)?.seconds, &mut random.borrow_mut())),
        }
    }
}

/// Parameters, and what had to be clamped; `None` if samples are missing.
pub type Estimated = Option<(Values, Vec<String>)>;

/// One way to estimate a model's parameters.
pub struct Estimator {
    /// Its name; empty if the model has only one.
    pub name: &'static str,
    /// Estimates the parameters.
    pub fit: fn(&RankSet, &Lookup) -> Estimated,
}

/// A model.
pub struct Model {
    /// Name in policies and on the command line.
    pub name: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
    /// Single parameters: name and meaning, with its unit.
    pub scalars: &'static [(&'static str, &'static str)],
    /// Tables: name and meaning.
    pub tables: &'static [(&'static str, &'static str)],
    /// The fewest ranks that it can be fitted on.
    pub least_ranks: usize,
    /// The experiments that are wanted, given what is measured already; called again until all are there.
    pub experiments: fn(&RankSet, &Lookup) -> Vec<Experiment>,
    /// Experiments by which the best of several estimators is chosen.
    pub held_out: fn(&RankSet) -> Vec<Experiment>,
    /// The estimators.
    pub estimators: &'static [Estimator],
    /// Builds the costs from its parameters.
    pub build: fn(&Values) -> Result<Box<dyn CostModel>>,
}

/// Every model, the simplest first.
pub const MODELS: &[&Model] = &[&hockney::MODEL, &logp::MODEL, &loggp::MODEL, &lmo::MODEL, &plogp::MODEL, &tables::MODEL];

/// The model that tells processors from the network.
pub static LMO: &Model = &lmo::MODEL;
/// The model whose terms contention's bounds are in.
pub static PLOGP: &Model = &plogp::MODEL;
/// The model that is closest to what was measured of a pair: between groups nothing but pairs is.
pub static TABLES: &Model = &tables::MODEL;

/// The largest parameter, in seconds or bytes. No network comes near it, and what many messages add up to stays finite.
pub(crate) const LARGEST: f64 = 1e18;

/// Finds a model by name.
///
/// # Errors
/// [`Error::Invalid`] with the names there are.
pub fn model(name: &str) -> Result<&'static Model> {
    MODELS.iter().copied().find(|m| m.name == name).ok_or_else(|| {
        let names: Vec<_> = MODELS.iter().map(|m| m.name).collect();
        Error::invalid(format!("find the model \"{name}\": there are {}", names.join(", ")))
    })
}

impl Model {
    /// What messages cost with these parameters.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a parameter is missing, unknown, negative or above 1e18, or tables differ in length.
    pub fn costs(&self, values: &Values) -> Result<Box<dyn CostModel>> {
        let wrong = |reason: String| Err(Error::invalid(format!("use model {}: {reason}", self.name)));
        let expected = |list: &[(&str, &str)]| list.iter().map(|(n, m)| format!("{n} ({m})")).collect::<Vec<_>>().join(", ");
        let all = format!(
            "it has {}",
            [self.scalars, self.tables].into_iter().filter(|list| !list.is_empty()).map(expected).collect::<Vec<_>>().join("; ")
        );
        if let Some((name, _)) = self.scalars.iter().find(|(n, _)| !values.scalars.contains_key(*n)) {
            return wrong(format!("parameter {name} is missing; {all}"));
        }
        if let Some((name, _)) = self.tables.iter().find(|(n, _)| values.list(n).is_err()) {
            return wrong(format!("table {name} is missing; {all}"));
        }
        let known = |name: &String, list: &[(&str, &str)]| list.iter().any(|(n, _)| n == name);
        let unknown = values.scalars.keys().find(|k| !known(k, self.scalars)).or(values.tables.keys().find(|k| !known(k, self.tables)));
        if let Some(name) = unknown {
            return wrong(format!("there is no parameter {name}; {all}"));
        }
        let numbers =
            values.scalars.iter().map(|(k, v)| (k, *v)).chain(values.tables.iter().flat_map(|(k, t)| t.iter().map(move |v| (k, *v))));
        for (name, v) in numbers {
            if !(0.0..=LARGEST).contains(&v) {
                return wrong(format!("{name} = {v} is no valid value: zero to {LARGEST:e}"));
            }
        }
        let lengths = self.tables.iter().map(|(n, _)| values.list(n).map(<[f64]>::len)).collect::<Result<Vec<_>>>()?;
        if lengths.windows(2).any(|w| w[0] != w[1]) {
            return wrong(format!("its tables differ in length: {lengths:?}"));
        }
        if values.tables.get(plogp::TABLE_SIZES).is_some_and(|sizes| sizes.windows(2).any(|w| w[0] >= w[1])) {
            return wrong(format!("the sizes of table {} must ascend", plogp::TABLE_SIZES));
        }
        (self.build)(values)
    }

    /// The parameters by every estimator, each with intervals from `replicates` bootstrap resamples of the repetitions.
    pub fn fit(&self, rank_set: &RankSet, samples: &Samples, replicates: usize, random: &mut Random) -> Vec<Fitted> {
        if rank_set.ranks.len() < self.least_ranks {
            return Vec::new();
        }
        self.estimators.iter().filter_map(|e| self.estimate(e, rank_set, samples, replicates, random)).collect()
    }

    fn estimate(
        &self,
        estimator: &Estimator,
        rank_set: &RankSet,
        samples: &Samples,
        replicates: usize,
        random: &mut Random,
    ) -> Option<Fitted> {
        let measured = Lookup::new(samples);
        let (point, clamped) = (estimator.fit)(rank_set, &measured)?;
        let replicates = if measured.varied.get() { replicates } else { 0 };
        let again: Vec<Values> = (0..replicates)
            .filter_map(|_| (estimator.fit)(rank_set, &Lookup::resampling(samples, random)).map(|(values, _)| values))
            .collect();
        let scalar = |(name, &value): (&String, &f64)| {
            let all: Vec<f64> = again.iter().filter_map(|v| v.scalars.get(name).copied()).collect();
            (name.clone(), Estimate::from_replicates(value, &all))
        };
        let table = |(name, values): (&String, &Vec<f64>)| {
            let at = |k: usize| {
                let all: Vec<f64> = again.iter().filter_map(|v| v.list(name).ok()?.get(k).copied()).collect();
                Estimate::from_replicates(values[k], &all)
            };
            let cells: Vec<Estimate> = (0..values.len()).map(at).collect();
            let column = |f: fn(&Estimate) -> f64| cells.iter().map(f).collect();
            (name.clone(), Table { value: values.clone(), low: column(|e| e.low), high: column(|e| e.high) })
        };
        Some(Fitted {
            model: self.name.into(),
            estimator: (!estimator.name.is_empty()).then(|| estimator.name.to_string()),
            clamped,
            parameters: point.scalars.iter().map(scalar).collect(),
            tables: point.tables.iter().map(table).collect(),
        })
    }
}

/// How long to wait for an answer that must be there: 1.2 round trips (Kielmann et al.), at least 20 us.
fn delay_ns(round_trip: f64) -> u64 {
    ((1.2 * round_trip).max(20e-6) * 1e9).round() as u64
}

/// A message and an empty answer to it: PRTT(1,0,m).
fn trip(a: Rank, b: Rank, bytes: usize) -> Experiment {
    Experiment::SaturationTrain { a, b, bytes, count: 1, delay_ns: 0 }
}

/// The experiment for or(m) on a pair, once the round trip is known that it must wait for.
fn receive_time(a: Rank, b: Rank, bytes: usize, lookup: &Lookup) -> Option<Experiment> {
    let round_trip = lookup.measured(&trip(a, b, bytes))?;
    Some(Experiment::ReceiveTime { a, b, bytes, delay_ns: delay_ns(round_trip) })
}

/// Messages of a saturation train: fewer of large ones.
fn train_count(bytes: usize) -> usize {
    match bytes {
        0..=65_536 => 16,
        65_537..=524_288 => 4,
        _ => 2,
    }
}

/// or(m): the delayed receive, capped by half the round trip: a receive that met a late message measured the network.
fn receive_overhead(a: Rank, b: Rank, bytes: usize, lookup: &Lookup) -> Option<f64> {
    let round_trip = lookup.time(&trip(a, b, bytes))?;
    Some(lookup.time(&receive_time(a, b, bytes, lookup)?)?.min(round_trip / 2.0))
}

/// The two trains that give the gap, and the gap: `(PRTT(n,0,m) - PRTT(1,0,m)) / (n-1)` (Hoefler et al. 2007).
fn gap_experiments(a: Rank, b: Rank, bytes: usize) -> [Experiment; 2] {
    [Experiment::SaturationTrain { a, b, bytes, count: train_count(bytes), delay_ns: 0 }, trip(a, b, bytes)]
}

fn gap(a: Rank, b: Rank, bytes: usize, lookup: &Lookup) -> Option<f64> {
    let [many, one] = gap_experiments(a, b, bytes);
    Some((lookup.time(&many)? - lookup.time(&one)?) / (train_count(bytes) - 1) as f64)
}

/// How far off a gap may be: half the confidence interval of each train's median, over the messages between.
fn gap_noise(a: Rank, b: Rank, bytes: usize, samples: &Samples) -> f64 {
    gap_experiments(a, b, bytes).iter().map(|e| half_interval(e, samples)).sum::<f64>() / (train_count(bytes) - 1) as f64
}

/// A few repetitions may agree by chance: such a share of their median is in doubt.
const IN_DOUBT: f64 = 0.01;

/// Half the confidence interval of an experiment's median.
fn half_interval(experiment: &Experiment, samples: &Samples) -> f64 {
    let Some(seconds) = samples.get(experiment).map(|s| &s.seconds) else { return 0.0 };
    let half = stats::median_interval(seconds).map_or(0.0, |(low, high)| (high - low) / 2.0);
    let few = seconds.len() < stats::LEAST_FOR_INTERVAL;
    half.max(if few { IN_DOUBT * stats::median(seconds).unwrap_or(0.0) } else { 0.0 })
}

/// Keeps a value at or above zero, and notes it if it was not.
fn not_negative(name: &str, value: f64, clamped: &mut Vec<String>) -> f64 {
    if value < 0.0 {
        clamped.push(format!("{name} came out as {value:.3e} and is taken as 0"));
    }
    value.max(0.0)
}
