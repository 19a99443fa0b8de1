//! Wall time of an application at numbers of processes, on placements and on platforms where it was not run.

use super::clocks::solve;
use super::scale::{medians, quantile};
use super::wall::traffic;
use super::{Call, Components, Form, Guess, Law, Machine, Run, Series, Split, Spread, Traffic, split};
use crate::error::{Error, Result};
use serde::Serialize;

/// What is known of an application from its runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Application {
    /// Its runs, by number of processes.
    pub runs: Vec<Run>,
    /// Where their time went.
    pub splits: Vec<Split>,
    /// How its calls scale.
    pub calls: Vec<CallLaw>,
    /// How MPI's active time scales.
    pub active: Active,
    /// How its computing scales.
    pub compute: Series,
}

/// How the calls of one name scale.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallLaw {
    /// The name.
    pub name: String,
    /// Calls of a process.
    pub count: Law,
    /// Bytes of a call; none where it sends none.
    pub bytes: Option<Law>,
}

/// What MPI's active time goes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// The number of processes only.
    Process,
    /// Messages of a process.
    Message,
    /// Bytes that a process sends.
    Byte,
}

/// How MPI's active time scales.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Active {
    /// By a law.
    Law {
        /// What it goes with.
        per: Per,
        /// The law of that.
        law: Law,
    },
    /// None is seen in some runs, where computing in turns explains all: processes and seconds, interpolated between, and as at the next
    /// one beyond.
    Table(Vec<(usize, f64)>),
}

impl Per {
    fn unit(self, traffic: &Traffic) -> f64 {
        match self {
            Per::Process => 1.0,
            Per::Message => traffic.messages,
            Per::Byte => traffic.messages * traffic.message_bytes,
        }
    }
}

/// A predicted run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// Processes.
    pub ranks: usize,
    /// Seconds.
    pub wall_s: f64,
    /// With 95 % probability at least and at most this; none where there were too few runs to tell.
    pub interval_s: Option<(f64, f64)>,
    /// Where the time goes, of the slowest group.
    pub components: Components,
    /// Its messages.
    pub traffic: Traffic,
    /// Fewer or more processes than in any run: the law of computing was followed beyond what was measured.
    pub extrapolated: bool,
    /// Seconds that each group would take if it never waited for another, where their clocks differ.
    pub groups_s: Vec<(String, f64)>,
}

impl Application {
    /// Splits the runs' times and fits how the parts scale.
    ///
    /// # Errors
    /// No run, processes that cannot be placed so, or a run without computing.
    pub fn fit(mut runs: Vec<Run>, machine: &Machine, spread: Spread) -> Result<Application> {
        runs.sort_by_key(|r| r.ranks);
        let splits: Vec<Split> = runs.iter().map(|r| split(r, machine, spread)).collect::<Result<_>>()?;
        Application::of(runs, splits)
    }

    fn of(runs: Vec<Run>, splits: Vec<Split>) -> Result<Application> {
        let of = |value: fn(&Split) -> f64| runs.iter().zip(&splits).map(|(r, s)| (r.ranks, value(s))).collect::<Vec<_>>();
        let compute = Series::new(&of(|s| s.components.compute_s)).ok_or_else(|| match runs.iter().find(|r| r.wall_s <= r.mpi_s) {
            Some(run) => Error::data(format!("fit how computing scales: {} says that all of its time was in MPI", run.file)),
            None => Error::data("fit how an application scales: there is no report"),
        })?;
        let active = active_law(&runs, &splits);
        Ok(Application { calls: call_laws(&runs), active, compute, runs, splits })
    }

    /// The calls at so many processes, and how far they may be off; none where that of one of them is unknown.
    fn calls_at(&self, ranks: usize) -> (Vec<Call>, Option<f64>) {
        let mut spread = Some(0.0f64);
        let mut read = |law: &Law| {
            let guess = law.at(ranks);
            spread = spread.zip(guess.spread).map(|(a, b)| a.max(b));
            guess.value
        };
        let calls = self
            .calls
            .iter()
            .map(|law| {
                let (count, bytes) = (read(&law.count), law.bytes.as_ref().map_or(0.0, &mut read));
                Call { name: law.name.clone(), count, bytes, seconds: 0.0 }
            })
            .collect();
        (if ranks == 1 { Vec::new() } else { calls }, spread)
    }

    /// Predicts the wall time of so many processes.
    ///
    /// # Errors
    /// The processes cannot be placed so, or are not as many as in the only runs there are: these do not tell how anything scales.
    pub fn predict(&self, ranks: usize, machine: &Machine, spread: Spread) -> Result<Prediction> {
        if let [(only, _)] = self.compute.points[..]
            && only != ranks
        {
            return Err(Error::data(format!(
                "predict a run of {ranks} processes: all reports are of {only}; give reports of two numbers of processes at least"
            )));
        }
        let placed = machine.place(ranks, spread)?;
        let (calls, calls_spread) = self.calls_at(ranks);
        let traffic = traffic(&calls, machine, &placed);
        let alone = || self.runs.iter().zip(&self.splits).find(|(r, _)| r.ranks == 1).map_or(0.0, |(_, s)| s.components.active_s);
        let active = match &self.active {
            _ if ranks == 1 => Guess { value: alone(), spread: Some(0.0) },
            Active::Law { per, law } => {
                let guess = law.at(ranks);
                Guess { value: guess.value * per.unit(&traffic), ..guess }
            }
            Active::Table(table) => Guess { value: looked_up(table, ranks), spread: None },
        };
        let margin = if let Active::Table(table) = &self.active { margin(table) } else { None };
        let compute = self.compute.at(ranks);
        let groups = solve(machine, &placed, traffic.switch_s, active.value, compute.value)?;
        let (_, components) = *groups
            .iter()
            .max_by(|a, b| a.1.wall_s().total_cmp(&b.1.wall_s()))
            .ok_or_else(|| Error::invalid("predict a run of no processes"))?;
        let wall_s = components.wall_s();
        let parts = [
            (components.switch_s, calls_spread),
            (
                components.active_s + components.contention_s,
                active.spread.or(margin.map(|m| (m / (components.active_s + components.contention_s)).ln_1p())),
            ),
            (components.compute_s, compute.spread),
        ];
        Ok(Prediction {
            ranks,
            wall_s,
            interval_s: interval(wall_s, &parts),
            components,
            traffic,
            extrapolated: self.compute.is_beyond(ranks),
            groups_s: if groups.len() < 2 {
                Vec::new()
            } else {
                groups.iter().map(|(g, c)| (machine.groups[*g].clone(), c.wall_s())).collect()
            },
        })
    }

    /// Predicts each number of processes from the runs at all others, where there are two others at least.
    ///
    /// # Errors
    /// As [`Application::predict`].
    pub fn left_out(&self, machine: &Machine, spread: Spread) -> Result<Vec<(usize, Option<Prediction>)>> {
        let predict = |ranks: usize| {
            // two other numbers at least, or nothing is known of how it scales
            if self.compute.points.len() < 3 {
                return Ok((ranks, None));
            }
            let others = || (0..self.runs.len()).filter(|&k| self.runs[k].ranks != ranks);
            let (runs, splits) = others().map(|k| (self.runs[k].clone(), self.splits[k].clone())).unzip();
            Application::of(runs, splits)?.predict(ranks, machine, spread).map(|p| (ranks, Some(p)))
        };
        self.compute.points.iter().map(|p| predict(p.0)).collect()
    }

    /// The wall time measured with so many processes: the median of such runs.
    pub fn measured_s(&self, ranks: usize) -> Option<f64> {
        let walls: Vec<f64> = self.runs.iter().filter(|r| r.ranks == ranks).map(|r| r.wall_s).collect();
        crate::stats::median(&walls)
    }
}

/// How the calls scale; runs of one process have nobody to send to.
fn call_laws(runs: &[Run]) -> Vec<CallLaw> {
    let mut names: Vec<&str> = runs.iter().flat_map(|r| r.calls.iter().map(|c| c.name.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    let points = |name: &str, of: fn(&Call) -> f64| -> Vec<(usize, f64)> {
        let several = runs.iter().filter(|r| r.ranks > 1);
        several.filter_map(|r| Some((r.ranks, of(r.calls.iter().find(|c| c.name == name)?)))).filter(|p| p.1 > 0.0).collect()
    };
    let law = |name: &str| {
        Some(CallLaw { name: name.into(), count: Law::fit(&points(name, |c| c.count))?, bytes: Law::fit(&points(name, |c| c.bytes)) })
    };
    names.into_iter().filter_map(law).collect()
}

/// The best law of the active time, by itself or in proportion to what is sent.
fn active_law(runs: &[Run], splits: &[Split]) -> Active {
    let points = |per: Per| -> Vec<(usize, f64)> {
        let several = runs.iter().zip(splits).filter(|(r, _)| r.ranks > 1);
        several.map(|(r, s)| (r.ranks, s.components.active_s / per.unit(&s.traffic))).collect()
    };
    let alone = Law::fit(&points(Per::Process)).map(|law| (Per::Process, law));
    let sent = [Per::Message, Per::Byte].map(|per| Law::of(Form::Constant, &points(per)).map(|law| (per, law)));
    // what is in proportion explains; a law by the number of processes only describes
    let laws = sent.into_iter().chain([alone]).flatten();
    match laws.reduce(|best, law| if law.1.criterion < best.1.criterion - 1e-9 { law } else { best }) {
        Some((per, law)) => Active::Law { per, law },
        None => Active::Table(medians(&points(Per::Process))),
    }
}

/// A value between those of a table, by the logarithm of processes; 0 without any.
fn looked_up(table: &[(usize, f64)], ranks: usize) -> f64 {
    let k = table.partition_point(|p| p.0 < ranks);
    match (k.checked_sub(1).map(|k| table[k]), table.get(k)) {
        (Some(left), Some(right)) => {
            let share = (ranks as f64 / left.0 as f64).ln() / (right.0 as f64 / left.0 as f64).ln();
            left.1 + share * (right.1 - left.1)
        }
        (Some(end), None) => end.1,
        (None, end) => end.map_or(0.0, |e| e.1),
    }
}

/// How far looking up is off at the inner points of a table, had they not been measured, with 95 % probability.
fn margin(table: &[(usize, f64)]) -> Option<f64> {
    let inner = 1..table.len().saturating_sub(1);
    let without = |k: usize| [&table[..k], &table[k + 1..]].concat();
    let squares: f64 = inner.clone().map(|k| (looked_up(&without(k), table[k].0) - table[k].1).powi(2)).sum();
    quantile(inner.len()).map(|t| t * (squares / inner.len() as f64).sqrt())
}

/// The interval of a sum of independent parts.
fn interval(sum: f64, parts: &[(f64, Option<f64>)]) -> Option<(f64, f64)> {
    let (mut below, mut above) = (0.0, 0.0);
    for &(part, spread) in parts.iter().filter(|p| p.0 > 0.0) {
        let spread = spread?;
        below += (part * (1.0 - (-spread).exp())).powi(2);
        above += (part * spread.exp_m1()).powi(2);
    }
    Some(((sum - below.sqrt()).max(0.0), sum + above.sqrt()))
}
