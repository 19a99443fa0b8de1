//! How messages cross groups: schedules that the poly-model predicts to be fast are measured over all ranks, beside the library's own
//! broadcast.

use super::bound::Floor;
use super::chosen::{Verdict, choosing, confirm, is_remeasured, verdict};
use super::missed::{HOPELESS, Missed};
use super::other_roots::{Pair, better_elsewhere};
use super::rows::{OfSize, between_sizes, choice_at, row_of_routes};
use super::segments::{PIECES, neighbours, pipeline, segment_sizes};
use super::taken::taken;
use super::{HOLDS, ROUNDS};
use crate::collective::Parameters;
use crate::decide::{ALIKE, LEAST_ACROSS, all_candidates, wider};
use crate::error::Result;
use crate::measure::{Experiment, Session};
use crate::plan::{
    self, Flow, LONG, Location, Predictions, TwoLevelCandidate, TwoLevelCandidates, TwoLevelChoice, TwoLevelParameters, choice_name,
    least_between, two_level,
};
use crate::policy::{CompiledPolicy, Evidence, NO_OTHER, PER_GROUP, Policy, TwoLevelRow};
use crate::schedule::{WINDOW, pieces};
use crate::score::Ratios;
use crate::stats;
use crate::topology::Rank;
use crate::two_level::{INTER_GROUP_ALGORITHMS, InterGroupAlgorithm, ROUTED, TwoLevel};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The sizes that broadcasts over groups are chosen at, doubled where schedules change, which is between 8 KiB and 1 MiB; a choice holds for the sizes
/// near its own, the last one for all larger ones. Below 1 KiB latencies between groups are all that counts.
pub(super) const BCAST_SIZES: [usize; 11] =
    [1, 1 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, LONG[0], LONG[1]];

/// Where predictions do not hold, other trees and windows are tried with whatever takes no longer than so many times the fastest: they win a few percent.
const RIVAL: f64 = 1.05;

/// The best schedules of routes within so much of the fastest are remeasured: a few runs do not tell them apart.
const CLOSE: f64 = 0.02;
/// What that is for.
const REMEASURE: &str = "the fastest, remeasured";

/// A schedule with what it makes of a message.
pub(super) struct Candidate {
    pub choice: TwoLevelChoice,
    pub two_level: TwoLevel,
    pub predicted: f64,
}

impl Candidate {
    fn inter_group(&self) -> Option<InterGroupAlgorithm> {
        self.choice.map(|w| w.inter_group)
    }
}

/// Chooses a schedule for each size, and says what predictions of each inter-group algorithm missed. `exhaustive`: all schedules are
/// measured, and every algorithm over all ranks, which no policy uses.
///
/// # Errors
/// The session's.
pub fn choose(
    session: &mut Session,
    policy: &Policy,
    members: &[Location],
    exhaustive: bool,
) -> Result<(Vec<TwoLevelRow>, BTreeMap<String, Ratios>)> {
    let compiled = CompiledPolicy::new(policy.clone())?;
    let predictions = Rc::new(Predictions::new(&compiled, members));
    let search = Search { policy: &compiled, members, predictions, has_native: session.has_native() };
    let by_size = if exhaustive { search.exhaustively(session)? } else { search.by_prediction(session)? };
    let taken = by_size.iter().map(|of_size| taken(session, &compiled, members, of_size)).collect::<Result<Vec<_>>>()?;
    let all = || BCAST_SIZES.iter().zip(&by_size).zip(&taken).filter_map(|((&bytes, of_size), taken)| Some((bytes, of_size, (*taken)?)));
    let first = |(bytes, of_size, taken): (usize, &Vec<Candidate>, usize)| (experiment(&of_size[taken]), search.native(bytes, 0));
    confirm(session, all().map(first).collect())?;
    let pair = |of: (usize, &Vec<Candidate>, usize)| Ok((first(of), search.at_last(of.0, &of.1[of.2])?));
    let ours = if search.has_native { better_elsewhere(session, &all().map(pair).collect::<Result<Vec<_>>>()?)? } else { Vec::new() };
    let of_sizes = all().enumerate().filter_map(|(k, (bytes, of_size, taken))| {
        let made = made(session, bytes, of_size, taken, &search.native(bytes, 0))?;
        let elsewhere = ours.get(k).is_some_and(|&ours| ours);
        Some(OfSize { row: TwoLevelRow { native: made.row.native && !elsewhere, ..made.row }, elsewhere, ..made })
    });
    let made: Vec<OfSize> = of_sizes.collect();
    Ok((between_sizes(&search.predictions, 0, &made)?, calibration(session, &by_size)))
}

/// What predictions of the fastest schedule of each inter-group algorithm missed.
fn calibration(session: &Session, by_size: &[Vec<Candidate>]) -> BTreeMap<String, Ratios> {
    let mut all: BTreeMap<String, Ratios> = BTreeMap::new();
    for (&bytes, candidates) in BCAST_SIZES.iter().zip(by_size) {
        for (candidate, time) in best_of_each(session, candidates, f64::INFINITY) {
            let ratio = time / candidate.predicted;
            if ratio.is_finite() && ratio > 0.0 {
                let of = all.entry(choice_name(&candidate.choice).into()).or_default();
                of.bytes.push(bytes);
                of.ratio.push(ratio);
            }
        }
    }
    all
}

/// The fastest of all, if its own prediction holds, is tried in its next segments also where these are predicted to take so many times as long: what a message costs that crosses several groups
/// is predicted to a tenth (under SMPI half as long segments took 7 % less where 6 % more was predicted).
const NEXT_SEGMENTS: f64 = 1.1;

/// The search for the fastest schedule at each size.
struct Search<'a> {
    policy: &'a CompiledPolicy,
    members: &'a [Location],
    predictions: Rc<Predictions<'a>>,
    has_native: bool,
}

impl Search<'_> {
    /// Candidates by size, predicted to be fast or close to those that were.
    fn by_prediction(&self, session: &mut Session) -> Result<Vec<Vec<Candidate>>> {
        let mut before = Missed::default();
        let mut by_size: Vec<Vec<Candidate>> = Vec::new();
        let mut floor = Floor::default();
        for bytes in BCAST_SIZES {
            let mut candidates = self.candidates(bytes, &before)?;
            self.race(session, "two-level schedules", bytes, &candidates)?;
            floor.rise(least_between(self.policy, self.members, 0, bytes));
            if !floor.is_near(least(session, &candidates)) {
                self.improve(session, bytes, &before, &mut candidates)?;
                floor.found(least(session, &candidates));
            }
            before.note(session, bytes, &candidates);
            by_size.push(candidates);
        }
        // a schedule first met at a large size may be the best one at smaller sizes too
        for k in (1..BCAST_SIZES.len()).rev() {
            let bytes = BCAST_SIZES[k - 1];
            let choice = fastest(session, &by_size[k]).and_then(|(c, _)| c.choice).filter(|w| w.segment < bytes);
            if let Some(choice) = choice
                && self.add(&mut by_size[k - 1], bytes, choice, f64::INFINITY)?
            {
                self.race(session, "two-level schedules", bytes, &by_size[k - 1])?;
            }
        }
        let close: Vec<Vec<Experiment>> = by_size.iter().map(|of_size| undecided(session, of_size)).collect();
        session.remeasure(REMEASURE, &close)?;
        Ok(by_size)
    }

    /// Every schedule at every size, and what one would measure who knows of no groups.
    fn exhaustively(&self, session: &mut Session) -> Result<Vec<Vec<Candidate>>> {
        let by_size = BCAST_SIZES.iter().map(|&bytes| self.candidates_at(bytes)).collect::<Result<Vec<_>>>()?;
        let fields: Vec<Vec<Experiment>> = BCAST_SIZES.iter().zip(&by_size).map(|(&bytes, of_size)| self.field(bytes, of_size)).collect();
        for field in &fields {
            session.measure("two-level schedules", field)?;
        }
        let of = |bytes: usize| {
            all_candidates(ROUTED, self.members.len(), bytes).into_iter().map(move |(algorithm, parameters)| (bytes, algorithm, parameters))
        };
        let plain: Vec<Experiment> = BCAST_SIZES.into_iter().flat_map(of).map(|(b, a, p)| self.over_all(b, 0, a.name, p)).collect();
        session.measure("every algorithm over all ranks", &plain)?;
        session.remeasure(REMEASURE, &fields)?;
        Ok(by_size)
    }

    /// The best of each inter-group algorithm is tried with other segments, and the fastest of all with more under way too, until each is the best of its
    /// neighbours; then the fastest with other trees, all others in the tree that won, and the fastest in other flows, since the speed of these is a matter of the
    /// processors and ports that ranks share, which predictions know least of. Where the prediction holds, only those are tried that it finds faster, of the fastest of all also its [next segments](NEXT_SEGMENTS); where it
    /// does not, with all that are near the fastest.
    fn improve(&self, session: &mut Session, bytes: usize, before: &Missed, candidates: &mut Vec<Candidate>) -> Result<()> {
        const PURPOSE: &str = "neighbours of the best two-level schedules";
        let segments = segment_sizes(self.policy, bytes);
        let mut tried: Vec<(InterGroupAlgorithm, bool, f64)> = Vec::new();
        for _ in 0..ROUNDS {
            let best = best_ways(session, candidates, HOPELESS);
            let least = best.first().map_or(f64::NAN, |b| b.2);
            for (k, (best, predicted, time)) in best.into_iter().enumerate() {
                let holds = holds(predicted, time);
                let leads = k == 0 || !holds && time <= least * RIVAL;
                let known = |&(inter_group, all, before): &(InterGroupAlgorithm, bool, f64)| {
                    inter_group == best.inter_group && (all || !leads) && time > before * (1.0 - ALIKE)
                };
                if tried.iter().any(known) {
                    continue;
                }
                tried.push((best.inter_group, leads, time));
                let limit = |choice: TwoLevelParameters| predicted * before.limit(&Some(best), &Some(choice), holds);
                let in_segments = |&s: &usize| best.inter_group.goes_with(best.intra_group, s > 0);
                // between whole messages and pipelines lies what is slower than both
                let pipeline = pipeline(&segments, bytes).filter(|_| !holds && pieces(bytes, best.segment) < PIECES / 2);
                let next = if k == 0 && holds { predicted * NEXT_SEGMENTS } else { 0.0 };
                let segments =
                    neighbours(&segments, best.segment).map(|segment| (segment, next)).chain(pipeline.map(|segment| (segment, 0.0)));
                for (segment, least) in segments.filter(|(segment, _)| in_segments(segment)) {
                    let choice = TwoLevelParameters { segment, flow: Flow { in_flight: 0, intra_in_flight: 0, ..best.flow }, ..best };
                    self.add(candidates, bytes, choice, limit(choice).max(least))?;
                }
                // what one wins tells whether two would
                if let Some(in_flight) = wider(best.flow.in_flight, pieces(bytes, best.segment)).filter(|_| leads) {
                    let choice = TwoLevelParameters { flow: Flow { in_flight, ..best.flow }, ..best };
                    self.add(candidates, bytes, choice, limit(choice))?;
                }
            }
            self.race(session, PURPOSE, bytes, candidates)?;
        }
        for (k, (best, predicted, time)) in best_ways(session, candidates, RIVAL).into_iter().enumerate() {
            let holds = holds(predicted, time);
            if k > 0 && holds {
                continue;
            }
            // predictions know the trees inside groups less well than what one algorithm does over all ranks
            let hopeless = if best.inter_group == InterGroupAlgorithm::OverAll { predicted * HOPELESS } else { f64::INFINITY };
            for choice in plan::two_level_parameters(self.policy, self.members, best.inter_group, &[best.segment]) {
                let choice = TwoLevelParameters { flow: Flow { in_flight: best.flow.in_flight, ..choice.flow }, ..choice };
                let limit = predicted * before.limit(&Some(best), &Some(choice), holds);
                self.add(candidates, bytes, choice, limit.min(hopeless))?;
            }
        }
        self.race(session, PURPOSE, bytes, candidates)?;
        let best = best_ways(session, candidates, HOPELESS);
        for &(other, predicted, time) in best.iter().skip(1) {
            let TwoLevelParameters { intra_group, segment, .. } = best[0].0;
            let has_trees = other.inter_group != InterGroupAlgorithm::OverAll && other.inter_group.goes_with(intra_group, segment > 0);
            if has_trees && !holds(predicted, time) {
                let choice = TwoLevelParameters { intra_group, segment, flow: Flow::default(), ..other };
                self.add(candidates, bytes, choice, f64::INFINITY)?;
            }
        }
        self.race(session, PURPOSE, bytes, candidates)?;
        for (k, (choice, predicted, time)) in best_ways(session, candidates, RIVAL).into_iter().enumerate() {
            let holds = holds(predicted, time);
            let limit = predicted * before.limit(&Some(choice), &Some(choice), holds);
            let wanted = |flow: &Flow| k == 0 || !holds && flow.in_flight == WINDOW;
            for flow in self.other_flows(bytes, choice)?.into_iter().filter(wanted) {
                self.add(candidates, bytes, TwoLevelParameters { flow, ..choice }, limit)?;
            }
        }
        self.race(session, PURPOSE, bytes, candidates)
    }

    /// The next larger window inside groups, and none at all: ranks that wait for a processor are late by more than links are, and a window
    /// that only keeps links busy stalls behind them. And sends to one peer after the other, or to all at once.
    fn other_flows(&self, bytes: usize, choice: TwoLevelParameters) -> Result<Vec<Flow>> {
        let (flow, two_level) = (choice.flow, two_level(self.policy, self.members, 0, bytes, choice)?);
        let piece = if choice.segment > 0 { choice.segment } else { bytes };
        if piece < LEAST_ACROSS {
            // it is gone when it has begun
            return Ok(Vec::new());
        }
        let inside = two_level.intra_group.iter().map(|local| local.parameters);
        let (window, one_peer) = (inside.clone().map(|p| p.in_flight).max().unwrap_or(0), inside.clone().any(|p| p.peers == 1));
        let mut others = Vec::new();
        if choice.inter_group.has_trees() {
            let wider = wider(window, pieces(bytes, choice.segment));
            others.extend(wider.map(|intra_in_flight| Flow { intra_in_flight, ..flow }));
            others.push(Flow { peers: usize::from(flow.peers == 0), ..flow });
        }
        if choice.segment > 0 && (choice.inter_group.has_trees() || !two_level.near.is_empty()) {
            others.push(Flow { in_flight: WINDOW, intra_in_flight: WINDOW, ..flow });
        }
        if two_level.groups.iter().any(|ranks| choice.intra_group.branches(ranks.len())) {
            others.push(Flow { intra_peers: Some(usize::from(!one_peer)), ..flow });
        }
        Ok(others)
    }

    /// Adds a schedule; false if one of the candidates does the same, or it is predicted to take longer than the limit.
    fn add(&self, candidates: &mut Vec<Candidate>, bytes: usize, choice: TwoLevelParameters, limit_s: f64) -> Result<bool> {
        let (choice, two_level) = in_segments(self.policy, self.members, bytes, choice)?;
        if candidates.iter().any(|c| c.two_level == two_level) {
            return Ok(false);
        }
        let predicted = self.predictions.within(&two_level, limit_s)?;
        let is_wanted = predicted <= limit_s;
        candidates.extend(is_wanted.then_some(Candidate { choice: Some(choice), two_level, predicted }));
        Ok(is_wanted)
    }

    fn race(&self, session: &mut Session, purpose: &str, bytes: usize, candidates: &[Candidate]) -> Result<()> {
        session.race(purpose, &[self.field(bytes, candidates)])
    }

    /// The candidates, and the library's own broadcast.
    fn field(&self, bytes: usize, candidates: &[Candidate]) -> Vec<Experiment> {
        let native = self.has_native.then(|| self.native(bytes, 0));
        candidates.iter().map(experiment).chain(native).collect()
    }

    fn native(&self, bytes: usize, root: Rank) -> Experiment {
        self.over_all(bytes, root, ROUTED.native().name, Parameters::default())
    }

    fn over_all(&self, bytes: usize, root: Rank, algorithm: &str, parameters: Parameters) -> Experiment {
        let (collective, ranks) = (ROUTED, (0..self.members.len()).collect());
        Experiment::Collective { collective, ranks, root, bytes, algorithm: algorithm.into(), parameters }
    }

    /// The same schedule from the last rank, which is no group's first one mostly, and the library's own from there.
    fn at_last(&self, bytes: usize, candidate: &Candidate) -> Result<Pair> {
        let root = self.members.len() - 1;
        let two_level = match candidate.choice {
            Some(choice) => two_level(self.policy, self.members, root, bytes, choice)?,
            None => plan::whole(self.policy, self.members, root, bytes)?.two_level,
        };
        Ok((Experiment::TwoLevel { two_level }, self.native(bytes, root)))
    }

    /// Every schedule: each inter-group algorithm with each tree and each segment, and the whole message.
    fn candidates_at(&self, bytes: usize) -> Result<Vec<Candidate>> {
        let sizes = segment_sizes(self.policy, bytes);
        let mut all = vec![whole(self.policy, self.members, bytes)?];
        for inter_group in INTER_GROUP_ALGORITHMS {
            for choice in plan::two_level_parameters(self.policy, self.members, inter_group, &sizes) {
                all.push(self.candidate(bytes, Some(choice))?);
            }
        }
        Ok(all)
    }

    /// A schedule with what it makes of a message.
    fn candidate(&self, bytes: usize, choice: TwoLevelChoice) -> Result<Candidate> {
        let Some(choice) = choice else { return whole(self.policy, self.members, bytes) };
        let (choice, two_level) = in_segments(self.policy, self.members, bytes, choice)?;
        let predicted = self.predictions.within(&two_level, f64::INFINITY)?;
        Ok(Candidate { choice: Some(choice), two_level, predicted })
    }

    /// The best schedule of each inter-group algorithm as predicted, and the one that was best at the size before, unless they are hopeless.
    fn candidates(&self, bytes: usize, before: &Missed) -> Result<Vec<Candidate>> {
        // long segments first: they are predicted in the least time, and what takes longer is not predicted to its end
        let sizes: Vec<usize> = segment_sizes(self.policy, bytes).into_iter().rev().collect();
        let mut all = TwoLevelCandidates::new(Rc::clone(&self.predictions), 0, bytes);
        all.add(None, before.missed(&None), f64::INFINITY)?;
        for inter_group in INTER_GROUP_ALGORITHMS {
            for choice in plan::two_level_parameters(self.policy, self.members, inter_group, &sizes).map(Some) {
                let missed = before.missed(&choice);
                let limits = hopeless(&all.best_of_each());
                // longer than another of the same, or hopeless in both senses
                let limit =
                    all.best_like(&choice).map_or(f64::INFINITY, |best| best.expected / missed).min(f64::max(limits.0, limits.1 / missed));
                all.add(choice, missed, limit)?;
            }
        }
        // an inter-group algorithm of which only poor schedules were tried may be better than these said
        let found = all.best_of_each();
        let limits = hopeless(&found);
        let hopeful = found.iter().filter(|c| c.expected <= limits.1 || c.predicted <= limits.0 && !before.knows(&c.choice));
        let ahead = before.ahead().into_iter().filter(|choice| choice.is_some_and(|choice| sizes.contains(&choice.segment)));
        let mut chosen: Vec<Candidate> = Vec::new();
        for choice in hopeful.map(|c| c.choice).chain(ahead) {
            let candidate = self.candidate(bytes, choice)?;
            if chosen.iter().all(|c| c.two_level != candidate.two_level) {
                chosen.push(candidate);
            }
        }
        Ok(chosen)
    }
}

/// The candidates as measured, with their times, the fastest first.
pub(super) fn by_time<'a>(session: &Session, candidates: &'a [Candidate]) -> Vec<(&'a Candidate, f64)> {
    let measured = candidates.iter().filter_map(|c| Some((c, session.samples().median(&experiment(c))?)));
    let mut measured: Vec<(&Candidate, f64)> = measured.collect();
    measured.sort_by(|a, b| a.1.total_cmp(&b.1));
    measured
}

/// The fastest candidate as measured, with its time.
fn fastest<'a>(session: &Session, candidates: &'a [Candidate]) -> Option<(&'a Candidate, f64)> {
    by_time(session, candidates).into_iter().next()
}

fn least(session: &Session, candidates: &[Candidate]) -> f64 {
    fastest(session, candidates).map_or(0.0, |(_, time)| time)
}

/// The fastest candidate of each inter-group algorithm as measured, the fastest first, without those that take more than so many times the fastest one's.
fn best_of_each<'a>(session: &Session, candidates: &'a [Candidate], limit: f64) -> Vec<(&'a Candidate, f64)> {
    let measured = by_time(session, candidates);
    let limit = measured.first().map_or(0.0, |m| m.1 * limit);
    let mut best: Vec<(&Candidate, f64)> = Vec::new();
    for (candidate, time) in measured.into_iter().take_while(|m| m.1 <= limit) {
        if best.iter().all(|(b, _)| b.inter_group() != candidate.inter_group()) {
            best.push((candidate, time));
        }
    }
    best
}

/// The parameters of the fastest schedule on each way between groups, what it was predicted to take and what it takes, as [`best_of_each`]; without those by another
/// inter-group algorithm that go the same way, whose neighbours are the same.
fn best_ways(session: &Session, candidates: &[Candidate], limit: f64) -> Vec<(TwoLevelParameters, f64, f64)> {
    let mut best: Vec<(&Candidate, f64)> = Vec::new();
    for (candidate, time) in best_of_each(session, candidates, limit) {
        let (way, groups) = (&candidate.two_level.inter_group, &candidate.two_level.groups);
        let is_same = |(other, _): &(&Candidate, f64)| other.two_level.inter_group == *way && other.two_level.groups == *groups;
        if candidate.choice.is_some() && !best.iter().any(is_same) {
            best.push((candidate, time));
        }
    }
    best.into_iter().filter_map(|(c, time)| Some((c.choice?, c.predicted, time))).collect()
}

/// The schedules too close to the fastest one to be told from it by a few runs: of which each run was slower than all of the fastest, that is told. Where no
/// run of any of them tells it from the others, it does not matter which is taken.
fn undecided(session: &Session, candidates: &[Candidate]) -> Vec<Experiment> {
    let mut best: Vec<Experiment> = best_of_each(session, candidates, 1.0 + CLOSE).into_iter().map(|(c, _)| experiment(c)).collect();
    let runs = |e: &Experiment| session.samples().get(e).map_or(&[][..], |sample| &sample.seconds);
    let slowest = best.first().map_or(0.0, |e| runs(e).iter().copied().fold(0.0, f64::max));
    best.retain(|e| runs(e).iter().any(|&time| time <= slowest));
    if best.len() > 1 && !are_alike(best.iter().flat_map(runs)) { best } else { Vec::new() }
}

/// True if the longest run takes hardly longer than the shortest.
fn are_alike<'a>(runs: impl Iterator<Item = &'a f64>) -> bool {
    let (shortest, longest) = runs.fold((f64::INFINITY, 0.0), |(least, most), &time| (f64::min(least, time), f64::max(most, time)));
    longest <= shortest * (1.0 + ALIKE)
}

/// True if a schedule takes what was predicted.
fn holds(predicted: f64, time: f64) -> bool {
    (time - predicted).abs() <= HOLDS * predicted
}

pub(super) fn experiment(candidate: &Candidate) -> Experiment {
    Experiment::TwoLevel { two_level: candidate.two_level.clone() }
}

/// What a schedule in segments makes of a message, and the schedule with what it says of the messages under way.
fn in_segments(
    policy: &CompiledPolicy,
    members: &[Location],
    bytes: usize,
    choice: TwoLevelParameters,
) -> Result<(TwoLevelParameters, TwoLevel)> {
    let two_level = two_level(policy, members, 0, bytes, choice)?;
    let inside = two_level.intra_group[0].parameters.in_flight;
    let in_flight = if choice.inter_group == InterGroupAlgorithm::OverAll { inside } else { two_level.in_flight };
    Ok((TwoLevelParameters { flow: Flow { in_flight, ..choice.flow }, ..choice }, two_level))
}

fn whole(policy: &CompiledPolicy, members: &[Location], bytes: usize) -> Result<Candidate> {
    let plan = plan::whole(policy, members, 0, bytes)?;
    Ok(Candidate { choice: None, two_level: plan.two_level, predicted: plan.predicted_s })
}

/// Above these a prediction, or what is expected, is hopeless.
fn hopeless(found: &[TwoLevelCandidate]) -> (f64, f64) {
    let least = |of: fn(&TwoLevelCandidate) -> f64| found.iter().map(of).fold(f64::INFINITY, f64::min) * HOPELESS;
    (least(|c| c.predicted), least(|c| c.expected))
}

/// What was measured at a size, with the row of what is taken, which says whether the library's own is to be preferred.
fn made<'a>(session: &Session, bytes: usize, candidates: &'a [Candidate], taken: usize, native: &Experiment) -> Option<OfSize<'a>> {
    let samples = session.samples();
    let experiments: Vec<Experiment> = candidates.iter().map(experiment).collect();
    let (best, time) = (&candidates[taken], choosing(samples, &experiments[taken])?);
    let Verdict { own_s, native_s, native, .. } = verdict(samples, session.settings(), &experiments[taken], native)?;
    let mut others: Vec<(usize, f64)> =
        (0..experiments.len()).filter(|&k| k != taken).filter_map(|k| Some((k, choosing(samples, &experiments[k])?))).collect();
    others.sort_by(|a, b| a.1.total_cmp(&b.1));
    // who lost by few runs before others were told from each other by more may look faster than these
    let rival = |k: usize| is_remeasured(samples, &experiments[k]) == is_remeasured(samples, &experiments[taken]);
    let runner_up = others.iter().find(|(k, _)| rival(*k));
    let evidence = Evidence {
        predicted_s: best.predicted,
        measured_s: Some(own_s),
        native_s,
        runner_up: runner_up.map_or(NO_OTHER.into(), |(k, _)| candidates[*k].choice.map_or(PER_GROUP.into(), |w| w.words(bytes))),
        margin: runner_up.map_or(0.0, |(_, t)| stats::margin(*t, time)),
    };
    let measured = std::iter::once((best, own_s)).chain(others.iter().map(|&(k, t)| (&candidates[k], t))).collect();
    Some(OfSize { measured, elsewhere: false, row: row_of_routes(&choice_at(best, bytes), 0, bytes, evidence, native) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_within_a_percent_are_alike() {
        assert!(are_alike([1.0, 1.009, 1.004].iter()) && !are_alike([1.0, 1.011, 1.0].iter()));
    }
}
