//! What the runs of an application show of how its messages go: reports say neither who sends to whom nor which algorithms ran.

use super::algorithms::Algorithm;
use super::choices::{Named, OTHERS};
use super::partners::Rounds;
use super::wall::{beyond, delay_s};
use super::wire::sent;
use super::{Call, CallLaw, Distance, Form, Law, Library, Machine, Neighbourhood, Partners, Phase, Run, Spread, Wire, partners, wire};
use crate::error::Result;
use crate::stats::median;
use serde::Serialize;

/// How the messages of an application go.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Observed {
    /// How the processes lie to each other that the program lets send.
    pub neighbours: Neighbourhood,
    /// How far receivers are, by number of processes, where reports say so.
    #[serde(skip)]
    pub distances: Vec<(usize, Vec<Distance>)>,
    /// Messages of a call to all neighbours that a communicator knows, by its name, where reports say so.
    pub each: Vec<(String, f64)>,
    /// Calls that send along rows of a plane.
    pub rows: Vec<Rows>,
    /// Collectives that take as other algorithms do than those that the library is known to choose.
    pub algorithms: Vec<Other>,
    /// True if what messages to partners take beyond the network is waiting for those that are late now and then.
    #[serde(skip)]
    pub waits_for_partners: bool,
    /// True if waiting that grows as an algorithm's rounds do is taken to be for others' computing: the same on any network.
    #[serde(skip)]
    pub waits_for_computing: bool,
}

/// Calls whose number goes with the rounds of doubling among the processes of a row, as those of matrices that are dealt out to a plane: a
/// process exchanges with those of its row, and what goes to the other side of the diagonal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rows {
    /// The call, without `MPI_`.
    pub call: String,
    /// The how-manieth of its sizes.
    pub size: usize,
    /// The law of their number: a constant, and so many in each round.
    pub law: Law,
}

impl Rows {
    fn of(calls: &CallLaw) -> Option<Rows> {
        let law = &calls.count.law;
        let is_one = law.form == Form::Row && partners(&calls.name) == Some(Partners::Program);
        is_one.then(|| Rows { call: calls.name.clone(), size: calls.size, law: law.clone() })
    }

    /// Messages and bytes of one call.
    fn rounds(&self, ranks: usize, bytes: f64) -> Rounds {
        let across = (self.law.c / self.law.at(ranks).value).min(1.0);
        let to = |partners: Partners, share: f64| Rounds::of(partners, share, share * bytes);
        to(Partners::Row, 1.0 - across).and(to(Partners::Transposed, across))
    }
}

/// An algorithm that explains what a collective took.
#[derive(Debug, Clone, Serialize)]
pub struct Other {
    /// The call, without `MPI_`.
    pub call: String,
    /// The algorithm, in words.
    pub name: &'static str,
    /// Seconds of each of its rounds where it was run, if it would cut such messages into less than elements: then what grows as such rounds do is waiting
    /// for others, for what the network does or for what they compute.
    pub round_s: Option<f64>,
    #[serde(skip)]
    algorithm: Algorithm,
}

impl PartialEq for Other {
    fn eq(&self, other: &Other) -> bool {
        (&self.call, self.name, self.round_s) == (&other.call, other.name, other.round_s)
    }
}

/// Algorithms are not in question that explain times to this factor, in the mean of numbers of processes...
const EXPLAINED: f64 = 1.25;
/// ...and another one is believed that does so, and is off by such a part of what those of the library are, in logarithms.
const BETTER: f64 = 0.6;
/// Algorithms that cut messages into pieces have none of less bytes than an element.
const LEAST_PIECE: f64 = 4.0;
/// With fewer processes most algorithms are alike.
const TELLING: usize = 8;

impl Observed {
    /// From the runs of an application, of which nothing is known but the calls' laws.
    ///
    /// # Errors
    /// The processes cannot be placed so.
    pub fn of(runs: &[Run], calls: &[CallLaw], machine: &Machine, spread: Spread) -> Result<Observed> {
        let distances: Vec<(usize, Vec<Distance>)> =
            runs.iter().filter(|r| !r.distances.is_empty()).map(|r| (r.ranks, r.distances.clone())).collect();
        let most = runs.iter().rev().find(|run| says_most(run));
        let neighbours = most.map_or_else(|| neighbourhood(calls), |run| Neighbourhood::nearest(&run.distances, run.ranks));
        let rows = calls.iter().filter_map(Rows::of).collect();
        let each = calls
            .iter()
            .filter(|call| is_to_neighbours(&call.name))
            .filter_map(|call| Some((call.name.clone(), each(runs, &call.name)?)))
            .collect();
        let seen = Observed { neighbours, distances, each, rows, ..Observed::default() };
        let mut algorithms = Vec::new();
        for (call, others) in calls.iter().filter(|law| law.nth == 0).filter_map(|law| Some((law.name.as_str(), others(&law.name)?))) {
            // processes, a call, its seconds: at least, if those that computed longer were waited for there, and at most
            let mut took: Vec<(Vec<usize>, &Call, (f64, f64))> = Vec::new();
            for run in runs.iter().filter(|r| r.ranks >= TELLING) {
                let own = run.calls.iter().filter(|c| c.name == call && c.said.is_known() && c.count > 0.0 && c.part.is_none());
                for own in own {
                    let least = (own.seconds - run.imbalance_s).max(0.0);
                    took.push((machine.place(run.ranks, spread)?, own, (least / own.count, own.seconds / own.count)));
                }
            }
            let off = |one: &dyn Fn(usize, f64) -> Option<Wire>| {
                let square = |(placed, call, (least, most)): &(Vec<usize>, &Call, (f64, f64))| {
                    let rounds = one(placed.len(), call.bytes).map_or_else(Default::default, |w| w.rounds);
                    let delay_s = delay_s(&rounds, machine, placed, call, &seen);
                    let nearest = delay_s.clamp(*least, *most);
                    if delay_s == nearest { 0.0 } else { (delay_s / nearest).ln().powi(2) }
                };
                (took.iter().map(square).sum::<f64>() / took.len() as f64).sqrt()
            };
            let usual = off(&|ranks, bytes| wire(call, ranks, bytes, machine.library));
            if took.is_empty() || usual <= EXPLAINED.ln() {
                continue;
            }
            let is_possible = |algorithm: Algorithm| {
                took.iter().all(|(placed, call, _)| {
                    let sent = sent(algorithm, placed.len(), call.bytes);
                    call.bytes == 0.0 || sent.bytes >= LEAST_PIECE * sent.messages
                })
            };
            let found = others.iter().map(|&(name, algorithm)| (off(&|ranks, bytes| Some(sent(algorithm, ranks, bytes))), name, algorithm));
            let best = found.reduce(|best, other| if other.0 < best.0 { other } else { best });
            if let Some((_, name, algorithm)) = best.filter(|(off, ..)| *off <= EXPLAINED.ln().min(BETTER * usual)) {
                let (placed, call, _) = &took[took.len() - 1];
                let rounds = sent(algorithm, placed.len(), call.bytes).rounds;
                let round_s = delay_s(&rounds, machine, placed, call, &seen) / rounds.messages();
                let round_s = (!is_possible(algorithm)).then_some(round_s);
                algorithms.push(Other { call: call.name.clone(), name, round_s, algorithm });
            }
        }
        let waits_for_partners = waits_for_partners(runs, machine, spread, &seen)?;
        Ok(Observed { algorithms, waits_for_partners, ..seen })
    }

    /// The steps that messages to partners of a kind go, and how often each: as reports of as many processes say it, where they do.
    pub fn ways(&self, call: &Call, partners: Partners, ranks: usize) -> Vec<(Phase, f64)> {
        let known = self.distances.iter().find(|d| d.0 == ranks && partners == Partners::Program).map(|d| &d.1);
        let own = || known.into_iter().flatten().filter(|d| d.call == call.name);
        // messages of a size are told apart where there are such
        let bytes = call.bytes / self.messages_of(&call.name);
        let of_size = |d: &&Distance| d.messages > 0.0 && (d.bytes / d.messages / bytes.max(1.0)).log2().abs() < 1.0;
        let is_told_apart = own().any(|d| of_size(&d));
        let all = own().filter(|d| !is_told_apart || of_size(d));
        // bytes weigh, where there are any
        let sizes = own().any(|d| d.bytes > 0.0);
        let ways: Vec<(Phase, f64)> = all.map(|d| (d.phase(), if sizes { d.bytes } else { d.messages })).collect();
        if !ways.is_empty() {
            return ways;
        }
        self.neighbours.phases(partners, ranks).into_iter().map(|phase| (phase, 1.0)).collect()
    }

    /// True if reports of so many processes say how far the receivers of such calls are, or a collective's algorithm does.
    pub fn knows_partners(&self, call: &str, ranks: usize) -> bool {
        partners(call) != Some(Partners::Program)
            || self.distances.iter().any(|(of, known)| *of == ranks && known.iter().any(|d| d.call == call))
    }

    /// Messages of a call to partners whom the program, or its communicator, knows.
    fn messages_of(&self, call: &str) -> f64 {
        self.each.iter().find(|each| each.0 == call).map_or(1.0, |each| each.1)
    }

    /// Seconds of a round of a call that does not hang on the network.
    pub fn round_s(&self, call: &str) -> Option<f64> {
        self.waits_for_computing.then_some(())?;
        self.algorithms.iter().find(|o| o.call == call)?.round_s
    }

    /// What a call sends among so many processes, in all of its calls.
    pub fn wire(&self, call: &Call, ranks: usize, library: Library) -> Option<Wire> {
        let ranks = call.part.map_or(ranks, |part| part.ranks);
        let one = match self.algorithms.iter().find(|o| o.call == call.name) {
            Some(other) => sent(other.algorithm, ranks, call.bytes),
            None => wire(&call.name, ranks, call.bytes, library)?,
        };
        let messages = self.messages_of(&call.name);
        let to_each = Wire { messages: one.messages * messages, rounds: Rounds::of(Partners::Program, messages, one.bytes), ..one };
        let one = if messages == 1.0 { one } else { to_each };
        let rows = self.rows.iter().find(|r| (&r.call, r.size) == (&call.name, call.size) && !self.knows_partners(&call.name, ranks));
        let one = rows.map_or(one, |rows| Wire { rounds: rows.rounds(ranks, call.bytes), ..one });
        Some(Wire { messages: one.messages * call.count, bytes: one.bytes * call.count, rounds: one.rounds * call.count })
    }
}

/// What messages to partners take beyond the network is no work of processors if it is less than this share of what each keeps them busy, in the median of
/// runs: it were more for all of them.
const NO_WORK: f64 = 0.25;

/// True if that is waiting, and there is some in most runs.
fn waits_for_partners(runs: &[Run], machine: &Machine, spread: Spread, seen: &Observed) -> Result<bool> {
    let share = |run: &Run| Ok(beyond(run, machine, &machine.place(run.ranks, spread)?, seen).map(|b| b.seconds / b.busy_s));
    let several = runs.iter().filter(|run| run.ranks > 1);
    let shares: Vec<f64> = several.map(share).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    Ok(median(&shares).is_some_and(|share| 0.0 < share && share < NO_WORK))
}

/// True if a run's report says how far the receivers of most of its messages are.
fn says_most(run: &Run) -> bool {
    let said: f64 = run.distances.iter().map(|d| d.messages).sum();
    let all: f64 = run.calls.iter().filter(|c| partners(&c.name) == Some(Partners::Program)).map(|c| c.count).sum();
    said > 0.0 && said >= 0.5 * all * run.ranks as f64
}

fn is_to_neighbours(call: &str) -> bool {
    call.starts_with("Neighbor_") || call.starts_with("Ineighbor_")
}

/// Messages of a call to all neighbours in the mean, by the largest run whose report says how far these are.
fn each(runs: &[Run], call: &str) -> Option<f64> {
    let messages = |run: &Run| run.distances.iter().filter(|d| d.call == call).map(|d| d.messages).sum::<f64>();
    let calls = |run: &Run| run.calls.iter().filter(|c| c.name == call).map(|c| c.count).sum::<f64>() * run.ranks as f64;
    runs.iter().rev().find(|run| messages(run) > 0.0 && calls(run) > 0.0).map(|run| messages(run) / calls(run))
}

/// The algorithms of a call.
fn others(call: &str) -> Option<&'static [Named]> {
    OTHERS.iter().find(|(calls, _)| calls.contains(&call)).map(|o| o.1)
}

/// How the processes lie to each other, by the calls that send to some of them.
fn neighbourhood(calls: &[CallLaw]) -> Neighbourhood {
    let sends = calls.iter().filter(|c| partners(&c.name) == Some(Partners::Program));
    let most = sends.max_by(|a, b| a.count.points[0].1.total_cmp(&b.count.points[0].1));
    most.map_or(Neighbourhood::default(), |c| Neighbourhood::guess(&c.count, c.bytes.as_ref()))
}
