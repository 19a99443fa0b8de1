//! Wall time of an application at numbers of processes, on placements and on platforms where it was not run.

use super::among::Part;
use super::clocks::solve;
use super::laws::{CallLaw, Kind, call_law, call_laws, kinds};
use super::scale::EXACT;
use super::wall::{size, traffic};
use super::{
    Call, Components, Computing, Form, Guess, Law, Machine, Neighbourhood, Observed, Partners, Run, Said, Series, Split, Spread, Table,
    Traffic, split,
};
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
    /// How its messages go.
    pub observed: Observed,
    /// Processes of the fullest node, in the runs.
    pub crowd: usize,
    /// How much of the network's delays is seen, by kind of call.
    pub seen: Vec<(Option<String>, Table)>,
    /// Waiting for processes that compute longer, as a share of computing.
    pub waiting: Table,
    /// How MPI's active time scales, with waiting for partners that are late now and then.
    pub active: Active,
    /// The share of that which is such waiting, on any network.
    pub late: Table,
    /// Seconds that processors are busy with a message, as the platform says that it was run on: with an empty one, and with each byte more.
    pub overhead_s: (Table, Table),
    /// Seconds of a message to anyone, where it was run.
    #[serde(skip)]
    pub message_s: Table,
    /// How its computing scales.
    pub compute: Computing,
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
    /// By none, or there is none in some runs, where the network or computing in turns explains all.
    Table(Table),
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
    /// The same of each part of it.
    pub component_intervals_s: Intervals,
    /// Its messages.
    pub traffic: Traffic,
    /// Fewer or more processes than in any run: the law of computing was followed beyond what was measured.
    pub extrapolated: bool,
    /// Seconds that each group would take if it never waited for another, where their clocks differ.
    pub groups_s: Vec<(String, f64)>,
}

/// Intervals of the parts of wall time; none where there were too few runs to tell.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Intervals {
    /// On the network.
    pub switch_s: Option<(f64, f64)>,
    /// In MPI, waiting for processes that compute longer.
    pub waiting_s: Option<(f64, f64)>,
    /// In MPI, waiting for a processor: as unsure as being at work there.
    pub contention_s: Option<(f64, f64)>,
    /// In MPI, at work.
    pub active_s: Option<(f64, f64)>,
    /// Outside MPI.
    pub compute_s: Option<(f64, f64)>,
}

impl Application {
    /// Splits the runs' times and fits how the parts scale.
    ///
    /// # Errors
    /// No run, processes that cannot be placed so, or a run without computing.
    pub fn fit(mut runs: Vec<Run>, machine: &Machine, spread: Spread) -> Result<Application> {
        runs.sort_by_key(|r| r.ranks);
        let mut runs = told_apart(&divided(&runs));
        let laws = call_laws(&runs);
        let observed = Observed::of(&runs, &laws, machine, spread)?;
        for run in &mut runs {
            size(run, &laws, machine, spread, &observed)?;
        }
        let splits: Vec<Split> = runs.iter().map(|r| split(r, machine, spread, &observed)).collect::<Result<_>>()?;
        let fullest = |run: &Run| Ok(crowd(machine, &machine.place(run.ranks, spread)?));
        let crowd = runs.iter().map(fullest).collect::<Result<Vec<_>>>()?.into_iter().max().unwrap_or(1);
        let of = |value: fn(&Split) -> f64| runs.iter().zip(&splits).map(|(r, s)| (r.ranks, value(s))).collect::<Vec<_>>();
        let computing = of(|s| s.components.compute_s);
        let is_busy = |ranks: usize| Ok(machine.is_busy(&machine.place(ranks, spread)?));
        let kept = computing.iter().map(|value| Ok(is_busy(value.0)?.then_some(*value))).collect::<Result<Vec<_>>>()?;
        let busy: Vec<(usize, f64)> = kept.into_iter().flatten().collect();
        let compute = Computing::fit(&computing, &busy).ok_or_else(|| match runs.iter().find(|r| r.wall_s <= r.mpi_s) {
            Some(run) => Error::data(format!("fit how computing scales: {} says that all of its time was in MPI", run.file)),
            None => Error::data("fit how an application scales: there is no report"),
        })?;
        let busy = |run: &Run| {
            let placed = machine.place(run.ranks, spread)?;
            let empty_s = machine.overhead_s(&placed, 0.0);
            Ok(((run.ranks, empty_s), (run.ranks, (machine.overhead_s(&placed, OVERHEAD_BYTES) - empty_s) / OVERHEAD_BYTES)))
        };
        let (empty, byte): (Vec<_>, Vec<_>) = runs.iter().map(busy).collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let overhead_s = (Table::new(&empty), Table::new(&byte));
        let message = |run: &Run| Ok((run.ranks, message_s(machine, &machine.place(run.ranks, spread)?)));
        let messages = runs.iter().filter(|run| run.ranks > 1).map(message).collect::<Result<Vec<_>>>()?;
        let waiting = Table::by_number(&of(|s| (s.components.waiting_s - s.late_s) / s.components.compute_s.max(f64::MIN_POSITIVE)));
        // a process alone has no partners
        let share = |s: &Split| s.late_s / (s.late_s + s.components.active_s).max(f64::MIN_POSITIVE);
        let late: Vec<(usize, f64)> = runs.iter().zip(&splits).filter(|(r, _)| r.ranks > 1).map(|(r, s)| (r.ranks, share(s))).collect();
        Ok(Application {
            calls: call_laws(&runs),
            observed,
            crowd,
            seen: seen_tables(&runs, &splits),
            waiting,
            active: active_law(&runs, &splits),
            late: Table::new(&late),
            overhead_s,
            message_s: Table::new(&messages),
            compute,
            runs,
            splits,
        })
    }

    /// The calls at so many processes, and how far they may be off; none where that of one of them is unknown.
    fn calls_at(&self, ranks: usize) -> (Vec<Call>, Option<f64>) {
        let (mut spread, mut is_known) = (Some(0.0f64), true);
        let mut read = |series: &Series| {
            let guess = series.at(ranks);
            spread = spread.zip(guess.spread).map(|(a, b)| a.max(b));
            guess.value
        };
        let calls = self
            .calls
            .iter()
            .filter(|law| law.is_called(ranks))
            .map(|law| {
                is_known &= law.said != Said::Nobody;
                let (count, bytes) = (read(&law.count), law.bytes.as_ref().map_or(0.0, &mut read));
                let part = law.part.as_ref().map(|part| part.at(ranks));
                Call { name: law.name.clone(), count, bytes, said: law.said, part, nth: law.nth, size: law.size, seconds: 0.0 }
            })
            .collect();
        (if ranks == 1 { Vec::new() } else { calls }, spread.filter(|_| is_known))
    }

    /// The number of processes whose laws calls of a kind follow at another one: where these change between two, that of the fewer.
    fn lawful(&self, kind: &Option<String>, ranks: usize) -> usize {
        let own = self.calls.iter().filter(|c| kind.as_ref().is_none_or(|name| c.name == *name));
        let breaks = own.flat_map(|c| [Some(&c.count), c.bytes.as_ref()]).flatten().flat_map(Series::breaks);
        breaks.filter(|(before, after)| (before + 1..*after).contains(&ranks)).map(|b| b.0).min().unwrap_or(ranks)
    }

    /// Predicts the wall time of so many processes.
    ///
    /// # Errors
    /// The processes cannot be placed so, or are not as many as in the only runs there are: these do not tell how anything scales.
    pub fn predict(&self, ranks: usize, machine: &Machine, spread: Spread) -> Result<Prediction> {
        if let [(only, _)] = self.compute.series.points[..]
            && only != ranks
        {
            return Err(Error::data(format!(
                "predict a run of {ranks} processes: all reports are of {only}; give reports of two numbers of processes at least"
            )));
        }
        let placed = machine.place(ranks, spread)?;
        let (calls, calls_spread) = self.calls_at(ranks);
        let seen = |kind: &Option<String>| self.seen.iter().find(|s| s.0 == *kind).map(|s| (&s.1, self.lawful(kind, ranks)));
        let sent = |calls: &[Call], observed: &Observed| {
            let (traffic, delays) = traffic(calls, machine, &placed, observed);
            let share = |kind: &Option<String>| seen(kind).map_or(1.0, |(shares, ranks)| shares.at(ranks));
            let switch_s = delays.iter().fold(0.0, |all, (kind, delay_s)| all + delay_s * share(kind));
            (Traffic { switch_s, ..traffic }, delays)
        };
        let (traffic, delays) = sent(&calls, &self.observed);
        // where partners lie matters as soon as some are on one node, and not as in the runs
        let is_guessed = crowd(machine, &placed) != self.crowd && calls.iter().any(|call| !self.observed.knows_partners(&call.name, ranks));
        let guesses = Neighbourhood::ALL.into_iter().filter(|_| is_guessed);
        let elsewhere = guesses.map(|neighbours| sent(&calls, &Observed { neighbours, ..self.observed.clone() }).0.switch_s);
        let least_and_most = |other: (f64, f64), s: f64| (other.0.min(s), other.1.max(s));
        let (least_s, most_s) = elsewhere.fold((traffic.switch_s, traffic.switch_s), least_and_most);
        // parts of which a range is known may be as small and as large as that
        let resized = |to: fn((usize, usize)) -> usize| {
            let part = |part: Part| Part { ranks: part.range.map_or(part.ranks, to), ..part };
            calls.iter().map(|call| Call { part: call.part.map(part), ..call.clone() }).collect::<Vec<_>>()
        };
        let in_ranges = [resized(|range| range.0), resized(|range| range.1)].map(|calls| sent(&calls, &self.observed).0.switch_s);
        let of_parts = in_ranges.into_iter().fold((traffic.switch_s, traffic.switch_s), least_and_most);
        // what is not explained by the network of the runs may be the network all the same, and change as it does
        let at_home: Vec<(usize, f64)> = self.runs.iter().zip(&self.splits).map(|(r, s)| (r.ranks, s.traffic.switch_s)).collect();
        let changes = (traffic.switch_s / Table::new(&at_home).at(ranks)).ln();
        let is_elsewhere = (message_s(machine, &placed) / self.message_s.at(ranks)).ln().abs() > OTHER.ln();
        let margin = |(kind, delay_s): &(Option<String>, f64)| seen(kind).and_then(|(shares, ranks)| Some(delay_s * shares.margin(ranks)?));
        let seen_margin = delays.iter().map(margin).sum::<Option<f64>>();
        let alone = || self.runs.iter().zip(&self.splits).find(|(r, _)| r.ranks == 1).map_or(0.0, |(_, s)| s.components.active_s);
        let active = match &self.active {
            _ if ranks == 1 => Guess { value: alone(), spread: Some(0.0) },
            Active::Law { per, law } => {
                let guess = law.at(ranks);
                Guess { value: guess.value * per.unit(&traffic), ..guess }
            }
            Active::Table(table) => Guess { value: table.at(ranks), spread: None },
        };
        let margin = if let Active::Table(table) = &self.active { table.margin(ranks) } else { None };
        let per_byte = (machine.overhead_s(&placed, OVERHEAD_BYTES) - machine.overhead_s(&placed, 0.0)) / OVERHEAD_BYTES;
        // what MPI does for a message takes as long as the platforms say of their processors, where both do
        let busy_s = self.overhead_s.0.at(ranks) + self.overhead_s.1.at(ranks) * traffic.message_bytes;
        let busy_there_s = machine.overhead_s(&placed, 0.0) + per_byte * traffic.message_bytes;
        let slower = if busy_s > 0.0 && busy_there_s > 0.0 && traffic.messages > 0.0 { busy_there_s / busy_s } else { 1.0 };
        let late = if ranks == 1 { 0.0 } else { self.late.at(ranks) };
        let late_s = late * active.value;
        let active = Guess { value: (active.value - late_s) * slower, ..active };
        let margin = margin.map(|m| m * (late + (1.0 - late) * slower));
        let compute = self.compute.at(ranks);
        let imbalance_s = self.waiting.at(ranks) * compute.value;
        let waiting_s = imbalance_s + late_s;
        let given =
            Components { switch_s: traffic.switch_s, waiting_s, contention_s: 0.0, active_s: active.value, compute_s: compute.value };
        let groups = solve(machine, &placed, &given)?;
        let (_, components) = *groups
            .iter()
            .max_by(|a, b| a.1.wall_s().total_cmp(&b.1.wall_s()))
            .ok_or_else(|| Error::invalid("predict a run of no processes"))?;
        let wall_s = components.wall_s();
        let relative = |margin: f64, part: f64| (margin / part).ln_1p();
        let of_active = components.active_s + components.contention_s;
        let changed = |part: f64| if changes.is_finite() { part * changes.exp_m1() } else { 0.0 };
        let less_or_more = |part: f64| (changed(part).min(0.0).abs(), changed(part).max(0.0));
        // waiting may be for what others compute, and the same on any network
        let late_elsewhere = Observed { waits_for_computing: true, ..self.observed.clone() };
        let of_waiting = least_and_most((traffic.switch_s, traffic.switch_s), sent(&calls, &late_elsewhere).0.switch_s);
        let around = |(least_s, most_s): (f64, f64)| (traffic.switch_s - least_s, most_s - traffic.switch_s);
        let guessed = [around((least_s, most_s)), around(of_parts), around(of_waiting), less_or_more(of_active)];
        let seen_spread = seen_margin.map(|m| relative(m, components.switch_s));
        let active_spread = active.spread.or(margin.map(|m| relative(m, of_active + late_s)));
        let imbalance_spread = self.waiting.margin(ranks).map(|m| relative(m * compute.value, imbalance_s));
        let elsewhere = |part: f64| (if is_elsewhere { part } else { 0.0 }, Some(ELSEWHERE.ln_1p()));
        let parts = [
            (components.switch_s, calls_spread),
            (components.switch_s, seen_spread),
            (of_active + late_s, active_spread),
            (components.compute_s, compute.spread),
            elsewhere(wall_s),
            (imbalance_s, imbalance_spread),
        ];
        let of_part = |part: f64, spread: Option<f64>, guessed: &[(f64, f64)]| interval(part, &[(part, spread), elsewhere(part)], guessed);
        let network = [(components.switch_s, calls_spread), (components.switch_s, seen_spread), elsewhere(components.switch_s)];
        let waits = [(imbalance_s, imbalance_spread), (late_s, active_spread), elsewhere(components.waiting_s)];
        let component_intervals_s = Intervals {
            switch_s: interval(components.switch_s, &network, &guessed[..3]),
            waiting_s: interval(components.waiting_s, &waits, &[]),
            contention_s: of_part(components.contention_s, active_spread, &[less_or_more(components.contention_s)]),
            active_s: of_part(components.active_s, active_spread, &[less_or_more(components.active_s)]),
            compute_s: of_part(components.compute_s, compute.spread, &[]),
        };
        Ok(Prediction {
            ranks,
            wall_s,
            interval_s: interval(wall_s, &parts, &guessed),
            components,
            component_intervals_s,
            traffic,
            extrapolated: self.compute.series.is_beyond(ranks),
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
            if self.compute.series.points.len() < 3 {
                return Ok((ranks, None));
            }
            // also who sends to whom, and by which algorithms, is of the others
            let others = self.runs.iter().filter(|run| run.ranks != ranks).cloned().collect();
            Application::fit(others, machine, spread)?.predict(ranks, machine, spread).map(|p| (ranks, Some(p)))
        };
        self.compute.series.points.iter().map(|p| predict(p.0)).collect()
    }

    /// The wall time measured with so many processes: the median of such runs.
    pub fn measured_s(&self, ranks: usize) -> Option<f64> {
        let walls: Vec<f64> = self.runs.iter().filter(|r| r.ranks == ranks).map(|r| r.wall_s).collect();
        crate::stats::median(&walls)
    }
}

/// The runs, with calls of which one report does not say among which processes they are as in another one of as many processes, if that does.
fn divided(runs: &[Run]) -> Vec<Run> {
    let divide = |run: &Run| {
        let mut divided = run.clone();
        runs.iter().filter(|other| other.ranks == run.ranks && *other != run).for_each(|other| divided.divide_as(other));
        divided
    };
    runs.iter().map(divide).collect()
}

/// The runs, with calls of one name and several sizes told apart where these are the same in all runs, as many, and each follows laws, but
/// all together do not.
fn told_apart(runs: &[Run]) -> Vec<Run> {
    let [merged, apart] = [false, true].map(|apart| runs.iter().map(|run| run.told_apart(|_| apart)).collect::<Vec<Run>>());
    let several = || apart.iter().filter(|r| r.ranks > 1);
    let is_exact = |series: &Series| series.points.len() >= LAWFUL && series.law.deviation <= EXACT;
    let is_lawful =
        |runs: &[Run], kind: Kind| call_law(runs, kind).is_some_and(|law| is_exact(&law.count) && law.bytes.as_ref().is_none_or(is_exact));
    let all = kinds(&apart);
    let is_told_apart = |call: &Call| {
        let mut sizes = several().map(|run| run.calls.iter().filter(|c| c.kind() == call.kind()).count()).filter(|n| *n > 0);
        let first = sizes.next().unwrap_or(0);
        let mut own = all.iter().filter(|kind| kind.0 == call.kind());
        sizes.all(|n| n == first) && own.all(|kind| is_lawful(&apart, *kind)) && !is_lawful(&merged, (call.kind(), 0))
    };
    runs.iter().map(|run| run.told_apart(is_told_apart)).collect()
}

/// How much of the delays of each kind of call is seen, by number of processes.
fn seen_tables(runs: &[Run], splits: &[Split]) -> Vec<(Option<String>, Table)> {
    let mut kinds: Vec<Option<String>> = splits.iter().flat_map(|s| s.seen.iter().map(|k| k.call.clone())).collect();
    kinds.sort();
    kinds.dedup();
    let shares = |kind: &Option<String>| -> Vec<(usize, f64)> {
        let several = runs.iter().zip(splits).filter(|(r, _)| r.ranks > 1);
        several.filter_map(|(r, s)| Some((r.ranks, s.seen.iter().find(|k| k.call == *kind)?.share))).collect()
    };
    kinds.into_iter().map(|kind| (kind.clone(), Table::new(&shares(&kind)))).collect()
}

/// The best law of the active time, by itself or in proportion to what is sent; none where what lies between runs is nearer to them.
fn active_law(runs: &[Run], splits: &[Split]) -> Active {
    let points = |per: Per| -> Vec<(usize, f64)> {
        let several = runs.iter().zip(splits).filter(|(r, _)| r.ranks > 1);
        several.map(|(r, s)| (r.ranks, (s.components.active_s + s.late_s) / per.unit(&s.traffic))).collect()
    };
    // two values fit any law of two numbers, also one that goes nowhere
    let by_ranks = points(Per::Process);
    let few = by_ranks.len() < LAWFUL;
    let alone = if few { Law::of(Form::Constant, &by_ranks) } else { Law::fit(&by_ranks) };
    let alone = alone.map(|law| (Per::Process, law));
    let sent = [Per::Message, Per::Byte].map(|per| Law::of(Form::Constant, &points(per)).map(|law| (per, law)));
    // what is in proportion explains; a law by the number of processes only describes
    let laws = sent.into_iter().chain([alone]).flatten();
    match laws.reduce(|best, law| if law.1.criterion < best.1.criterion - 1e-9 { law } else { best }) {
        Some((per, law)) if !few || law.deviation <= EXACT => Active::Law { per, law },
        _ => Active::Table(Table::new(&points(Per::Process))),
    }
}

/// Where messages take so many times as long as in the runs, or as little, the network is another one, or processes lie otherwise.
const OTHER: f64 = 1.25;
/// So much predictions are off there beside what is known to be unsure: of 44 of programs that others wrote all but two were within it (docs/wall-clock.md).
const ELSEWHERE: f64 = 0.08;

/// So many numbers of processes tell a law from chance.
const LAWFUL: usize = 3;

/// Messages of so many bytes tell what each of them keeps processors busy.
const OVERHEAD_BYTES: f64 = 65_536.0;

/// Times a prediction that its interval may reach above it.
const WIDEST: f64 = 10.0;

/// Seconds of a message to anyone.
fn message_s(machine: &Machine, placed: &[usize]) -> f64 {
    machine.message_s(placed, Partners::Anyone, Neighbourhood::default(), OVERHEAD_BYTES)
}

/// Processes of the fullest node.
fn crowd(machine: &Machine, placed: &[usize]) -> usize {
    machine.loads(placed).into_values().max().unwrap_or(0)
}

/// The interval of a sum of independent parts, which may be so much less and so much more by what is guessed.
fn interval(sum: f64, parts: &[(f64, Option<f64>)], guessed: &[(f64, f64)]) -> Option<(f64, f64)> {
    let squares = |of: fn(&(f64, f64)) -> f64| guessed.iter().map(|g| of(g).powi(2)).sum::<f64>();
    let (mut below, mut above) = (squares(|g| g.0), squares(|g| g.1));
    for &(part, spread) in parts.iter().filter(|p| p.0 > 0.0) {
        let spread = spread?;
        below += (part * (1.0 - (-spread).exp())).powi(2);
        above += (part * spread.exp_m1()).powi(2);
    }
    // of nothing
    if sum == 0.0 && above == 0.0 {
        return Some((0.0, 0.0));
    }
    // so wide an interval says nothing
    (above.sqrt() < WIDEST * sum).then(|| ((sum - below.sqrt()).max(0.0), sum + above.sqrt()))
}
