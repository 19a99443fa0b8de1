//! What is done inside each group: the best predicted candidates are measured side by side with the library's own broadcast.

use super::chosen::{Verdict, choosing, confirm, fastest, fastest_at_first, mostly, verdict};
use super::{Group, HOLDS};
use crate::collective::{Algorithm, Collective, Parameters};
use crate::decide::{
    ALIKE, Candidate, Knowledge, Leap, Made, Row, candidates_by_speed, in_other_segments, is_missed, leaps, placed, rank_candidates, rows,
    times_apart, wider,
};
use crate::error::Result;
use crate::measure::{Experiment, Session};
use crate::model::{Inside, RankSet};
use crate::policy::{Choice, Evidence, bounded};
use crate::schedule::pieces;
use crate::stats;
use crate::topology::{Link, Rank};
use std::collections::BTreeMap;

/// The sizes that choices are made at; a choice holds for the sizes near its own, the last one for all larger ones.
pub const SIZES: [usize; 13] =
    [1, 64, 512, 2 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20];
/// So many of the best predicted candidates are measured.
const FINALISTS: usize = 4;
/// The neighbours of the fastest are measured, and those of the fastest among them, so many times.
const ROUNDS: usize = 3;

/// Chooses for all groups, for these collectives, at all sizes: the best predicted candidates are measured side by side with the library's own broadcast,
/// and the best measured one is taken. `exhaustive`: all candidates are measured.
///
/// # Errors
/// The session's, or a model that lacks parameters.
pub fn choose(
    session: &mut Session,
    collectives: &[&'static Collective],
    groups: &[Group],
    exhaustive: bool,
) -> Result<Vec<BTreeMap<&'static Collective, Vec<Choice>>>> {
    let mut finals: Vec<Vec<Field>> = Vec::new(); // by group
    for group in groups {
        let (mut of_group, rank_set) = (Vec::new(), &group.rank_set);
        if rank_set.ranks.len() > 1 {
            let knowledge = group.knowledge();
            let positions: Vec<usize> = (0..rank_set.ranks.len()).collect();
            let unlike = rank_set.inside.as_ref().is_some_and(Inside::has_unlike_processors);
            for &collective in collectives {
                for bytes in collective.tuned_sizes(&SIZES, positions.len()) {
                    let all = candidates_by_speed(collective, positions.len(), bytes, unlike);
                    let (model, ranked) = rank_candidates(knowledge, collective, &positions, bytes, &all)?;
                    of_group.push(Field {
                        collective,
                        bytes,
                        model,
                        candidates: with_windows(if exhaustive { different(ranked).collect() } else { finalists(ranked) }, bytes),
                        lossy: false,
                    });
                }
            }
        }
        finals.push(of_group);
    }
    let native = session.has_native();
    let fields: Vec<Vec<Experiment>> =
        groups.iter().zip(&finals).flat_map(|(group, of_group)| of_group.iter().map(|f| f.experiments(&group.rank_set, native))).collect();
    let purpose = "finalists inside groups";
    if exhaustive {
        session.measure(purpose, &fields.concat())?;
        session.remeasure("the fastest, remeasured", &fields)?;
    } else {
        session.race(purpose, &fields)?;
        improve(session, groups, &mut finals)?;
        let again = |(group, of_group): (&Group, &Vec<Field>)| {
            let missed = of_group.iter().filter(|field| field.missed(session, &group.rank_set).is_some());
            missed.map(|field| field.experiments(&group.rank_set, false)).collect::<Vec<_>>()
        };
        let again: Vec<Vec<Experiment>> = groups.iter().zip(&finals).flat_map(again).collect();
        session.remeasure("remeasured, where predictions failed", &again)?;
        make_sure(session, groups, &mut finals)?;
    }
    let taken_of = |(rank_set, field): (&RankSet, &Field)| {
        let experiments = field.experiments(rank_set, false);
        field.fastest(session, rank_set, &experiments).map(|k| (experiments[k].clone(), field.native(rank_set)))
    };
    let taken = groups.iter().zip(&finals).flat_map(|(group, of_group)| of_group.iter().map(|field| (&group.rank_set, field)));
    let taken = taken.filter_map(taken_of).collect();
    confirm(session, taken)?;
    let mut choices = Vec::new();
    for (group, of_group) in groups.iter().zip(&finals) {
        let mut rows: BTreeMap<&'static Collective, Vec<Choice>> = BTreeMap::new();
        for of_collective in of_group.chunk_by(|a, b| a.collective == b.collective) {
            rows.insert(of_collective[0].collective, rows_of(session, group, of_collective)?);
        }
        choices.push(rows);
    }
    Ok(choices)
}

/// In groups where something was lost, the fastest of each field runs until it is sure that nothing is of it, or another one is the fastest.
fn make_sure(session: &mut Session, groups: &[Group], finals: &mut [Vec<Field>]) -> Result<()> {
    for (group, of_group) in groups.iter().zip(&mut *finals) {
        let lossy = of_group.iter().any(|field| field.missed(session, &group.rank_set).is_some());
        of_group.iter_mut().for_each(|field| field.lossy = lossy);
    }
    loop {
        let fastest = |(rank_set, field): (&RankSet, &Field)| {
            let experiments = field.experiments(rank_set, false);
            let fastest = field.fastest(session, rank_set, &experiments).filter(|_| field.lossy);
            fastest.map(|k| experiments[k].clone()).filter(|e| !session.is_sure(e))
        };
        let fields = groups.iter().zip(&*finals).flat_map(|(group, of_group)| of_group.iter().map(|field| (&group.rank_set, field)));
        let unsure: Vec<Experiment> = fields.filter_map(fastest).collect();
        if unsure.is_empty() {
            return Ok(());
        }
        session.make_sure("the fastest, where messages are lost", unsure)?;
    }
}

/// Where some take a multiple of what was predicted, what is predicted to beat those is measured too. Then the fastest of each field is tried in other
/// segments and with more under way, until it is the best of its neighbours. Where its prediction holds, only those are tried that it finds faster.
fn improve(session: &mut Session, groups: &[Group], finals: &mut [Vec<Field>]) -> Result<()> {
    type Search = fn(&Field, &Session, &RankSet, Knowledge) -> Result<Vec<Candidate>>;
    let widen: (&str, Search) = ("others, where predictions failed", Field::others);
    let next: (&str, Search) = ("neighbours of the fastest inside groups", Field::neighbours);
    for (purpose, search) in std::iter::once(widen).chain([next; ROUNDS]) {
        let mut open = Vec::new();
        for (group, of_group) in groups.iter().zip(&mut *finals) {
            for field in of_group {
                let more = search(field, session, &group.rank_set, group.knowledge())?;
                if !more.is_empty() {
                    field.candidates.extend(more);
                    open.push(field.experiments(&group.rank_set, session.has_native()));
                }
            }
        }
        session.race(purpose, &open)?;
    }
    Ok(())
}

/// What is taken: its name and parameters.
type Taken = (&'static str, Parameters);

/// The rows of a collective in a group, from its fields at all sizes.
fn rows_of(session: &Session, group: &Group, fields: &[Field]) -> Result<Vec<Choice>> {
    let (rank_set, knowledge, collective) = (&group.rank_set, group.knowledge(), fields[0].collective);
    let mut made: Vec<Made<Taken>> = Vec::new();
    let mut taken: Vec<Choice> = Vec::new();
    for field in fields {
        let Some((choice, own)) = decide(session, rank_set, field) else { continue };
        made.push(own);
        taken.push(choice);
    }
    let positions: Vec<usize> = (0..rank_set.ranks.len()).collect();
    let predict = |&(name, parameters): &Taken, bytes: usize, _: f64| {
        let candidate = (collective.algorithm(name)?, bounded(parameters, bytes));
        let (_, ranked) = rank_candidates(knowledge, collective, &positions, bytes, &[candidate])?;
        // what nobody can predict is not chosen
        Ok(ranked.first().map_or(f64::INFINITY, |c| c.predicted))
    };
    let mut choices = Vec::new();
    for row in rows(&made, &leaps_of(knowledge)?, predict, |a, b| a.0 == b.0)? {
        choices.push(match taken.iter().find(|c| c.at_bytes == row.at) {
            Some(choice) => Choice { from_bytes: row.from, ..choice.clone() },
            None => {
                let nearest = taken.iter().min_by_key(|c| (times_apart(c.at_bytes, row.at), c.at_bytes));
                let irregular = nearest.is_some_and(Choice::is_irregular);
                let other = |c: &&Choice| row.taken.is_none_or(|taken| taken.0 != c.holds);
                let holds = nearest.filter(other).map(|c| c.holds.clone()).unwrap_or_default();
                Choice { irregular: irregular && holds.is_empty(), holds, ..between(collective, knowledge, &row) }
            }
        });
    }
    Ok(choices)
}

/// A row between two sizes that choices were made at.
fn between(collective: &'static Collective, knowledge: Knowledge, row: &Row<Taken>) -> Choice {
    let (algorithm, parameters) = row.taken.unwrap_or((collective.native().name, Parameters::default()));
    Choice {
        from_bytes: row.from,
        at_bytes: row.at,
        model: knowledge.model(collective, row.at).unwrap_or_default().into(),
        algorithm: algorithm.into(),
        segment_bytes: parameters.segment,
        radix: parameters.radix,
        in_flight: parameters.in_flight,
        peers: parameters.peers,
        by_speed: parameters.by_speed,
        irregular: false,
        holds: String::new(),
        evidence: Evidence { predicted_s: row.seconds, runner_up: "none".into(), ..Evidence::default() },
    }
}

/// Where the group's network changes, by any of its models.
fn leaps_of(knowledge: Knowledge) -> Result<Vec<Leap>> {
    let mut all = Vec::new();
    for fitted in knowledge.models {
        let costs = fitted.costs_in(knowledge.inside)?;
        all.extend(leaps(|bytes| costs.cost(Link { from: 0, to: 1 }, bytes).transit, SIZES[SIZES.len() - 1]));
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// The candidates of a collective in a group at a size.
struct Field {
    collective: &'static Collective,
    bytes: usize,
    /// The model that ranked them.
    model: String,
    candidates: Vec<Candidate>,
    /// True if something was lost in the group.
    lossy: bool,
}

impl Field {
    /// The experiments on the whole group, with the library's own if there is one.
    fn experiments(&self, rank_set: &RankSet, native: bool) -> Vec<Experiment> {
        let native = native.then(|| self.native(rank_set));
        self.candidates.iter().map(|c| self.experiment(rank_set, c)).chain(native).collect()
    }

    /// What most runs take of the slowest of those that models missed by a multiple, if there are such.
    fn missed(&self, session: &Session, rank_set: &RankSet) -> Option<f64> {
        let time = |c: &Candidate| mostly(session.samples(), &self.experiment(rank_set, c)).filter(|&time| is_missed(c.predicted, time));
        self.candidates.iter().filter_map(time).max_by(f64::total_cmp)
    }

    /// The place of the fastest; in the mean, where models missed some by a multiple.
    fn fastest(&self, session: &Session, rank_set: &RankSet, experiments: &[Experiment]) -> Option<usize> {
        if self.lossy || self.missed(session, rank_set).is_some() {
            let means = self.in_the_mean(session, experiments).into_iter().enumerate().filter_map(|(k, mean)| Some((k, mean?)));
            means.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(k, _)| k)
        } else {
            fastest(session.samples(), experiments)
        }
    }

    /// True if messages of a candidate were lost in one of some runs.
    fn has_lost(&self, k: usize, runs: &[f64]) -> bool {
        runs.iter().any(|&time| is_missed(self.candidates[k].predicted, time))
    }

    /// What each candidate takes in the mean of all its runs: of what is lost in one run of seven no median knows. What was lost of an algorithm's messages of
    /// two sizes is lost of those between them, whose few runs may have been lucky: what losses took is shared by all of them.
    fn in_the_mean(&self, session: &Session, experiments: &[Experiment]) -> Vec<Option<f64>> {
        let of = |e: &Experiment| session.samples().get(e).map_or(Vec::new(), |s| [&s.seconds[..], &s.remeasured].concat());
        let runs: Vec<Vec<f64>> = experiments.iter().map(of).collect();
        let least = |k: usize| runs[k].iter().copied().fold(f64::INFINITY, f64::min);
        let piece = |k: usize| if self.candidates[k].parameters.segment > 0 { self.candidates[k].parameters.segment } else { self.bytes };
        let lost = |k: usize| self.has_lost(k, &runs[k]);
        let time = |k: usize| {
            let kin = (0..experiments.len()).filter(|&j| self.candidates[j].algorithm == self.candidates[k].algorithm);
            let sizes = || kin.clone().filter(|&j| lost(j)).map(piece);
            let between = sizes().min().zip(sizes().max()).filter(|&(low, high)| (low..=high).contains(&piece(k)));
            let Some((low, high)) = between else { return stats::mean(&runs[k]) };
            let alike = kin.filter(|&j| (low..=high).contains(&piece(j)));
            let late: Vec<f64> = alike.flat_map(|j| runs[j].iter().map(move |time| (j, time))).map(|(j, time)| time - least(j)).collect();
            Some(least(k) + stats::mean(&late)?).filter(|time| time.is_finite())
        };
        (0..experiments.len()).map(time).collect()
    }

    /// Where models missed some by a multiple: of each algorithm the one that they predict to be the fastest, the one with the shortest segments, of which
    /// networks that lose messages lose least, and those in segments of other sizes that they predict to be faster than the fastest so far.
    fn others(&self, session: &Session, rank_set: &RankSet, knowledge: Knowledge) -> Result<Vec<Candidate>> {
        let Some(missed) = self.missed(session, rank_set) else { return Ok(Vec::new()) };
        let experiments = self.experiments(rank_set, false);
        let positions: Vec<usize> = (0..rank_set.ranks.len()).collect();
        let unlike = rank_set.inside.as_ref().is_some_and(Inside::has_unlike_processors);
        let mut all = candidates_by_speed(self.collective, positions.len(), self.bytes, unlike);
        // just below where messages begin to be lost
        let shorter = |segment: usize| (segment * 3 / 4).next_multiple_of(64);
        let cut: Vec<_> = all.iter().copied().filter(|(_, p)| p.segment > 0).collect();
        all.extend(cut.into_iter().map(|(a, p)| (a, Parameters { segment: shorter(p.segment), ..p })));
        let (_, ranked) = rank_candidates(knowledge, self.collective, &positions, self.bytes, &all)?;
        let ranked: Vec<Candidate> = different(ranked).filter(|c| c.predicted < missed).collect();
        let fastest = fastest_at_first(session.samples(), &experiments, true);
        let least = fastest.and_then(|k| stats::mean(&session.samples().get(&experiments[k])?.seconds)).unwrap_or(missed);
        let mut found: Vec<Candidate> = Vec::new();
        for algorithm in self.collective.built() {
            let of_it = || ranked.iter().filter(|c| c.algorithm == algorithm);
            let cut = || of_it().filter(|c| c.parameters.segment > 0);
            let shortest = cut().min_by_key(|c| c.parameters.segment);
            for c in of_it().take(1).chain(shortest).chain(cut().filter(|c| c.predicted < least)) {
                let experiment = self.experiment(rank_set, c);
                if !experiments.contains(&experiment) && found.iter().all(|f| self.experiment(rank_set, f) != experiment) {
                    found.push(c.clone());
                }
            }
        }
        Ok(found)
    }

    /// Where models missed some by a multiple, the fastest of the other algorithms, in one piece, of which they missed nothing; empty if there is none.
    fn holding(&self, means: &[Option<f64>], best: usize) -> String {
        let missed = |algorithm: &Algorithm| {
            let of_it =
                (0..means.len()).filter(|&k| self.candidates[k].algorithm == algorithm && self.candidates[k].parameters.segment == 0);
            let times = of_it.filter_map(|k| Some((self.candidates[k].predicted, means[k]?)));
            let times: Vec<(f64, f64)> = times.collect();
            let held = times.iter().all(|&(predicted, time)| !is_missed(predicted, time));
            times.iter().map(|t| t.1).min_by(f64::total_cmp).filter(|_| held)
        };
        let taken = &self.candidates[best];
        let others = self.collective.built().filter(|&a| a != taken.algorithm || taken.parameters.segment > 0);
        let held = others.filter_map(|a| Some((a, missed(a)?))).min_by(|a, b| a.1.total_cmp(&b.1));
        held.map(|held| held.0.name.into()).unwrap_or_default()
    }

    /// What is next to the fastest and not a candidate yet.
    fn neighbours(&self, session: &Session, rank_set: &RankSet, knowledge: Knowledge) -> Result<Vec<Candidate>> {
        let experiments = self.experiments(rank_set, false);
        let fastest = fastest_at_first(session.samples(), &experiments, self.missed(session, rank_set).is_some());
        let fastest = fastest.map(|k| (&self.candidates[k], session.samples().median(&experiments[k])));
        let Some((fastest, Some(time))) = fastest.filter(|(c, _)| c.parameters.segment > 0) else { return Ok(Vec::new()) };
        let holds = (time - fastest.predicted).abs() <= HOLDS * fastest.predicted;
        let limit = if holds { fastest.predicted * (1.0 - ALIKE) } else { f64::INFINITY };
        let positions: Vec<usize> = (0..rank_set.ranks.len()).collect();
        let segments = in_other_segments(fastest.parameters, positions.len(), self.bytes).map(|p| (fastest.algorithm, p));
        let (_, mut found) = rank_candidates(knowledge, self.collective, &positions, self.bytes, &segments.collect::<Vec<_>>())?;
        // models do not know what more under way is good for
        let more = wider(fastest.parameters.in_flight, pieces(self.bytes, fastest.parameters.segment)).take(1).filter(|&more| more > 0);
        found.extend(more.map(|in_flight| Candidate { parameters: Parameters { in_flight, ..fastest.parameters }, ..fastest.clone() }));
        found.retain(|c| c.predicted <= limit && !experiments.contains(&self.experiment(rank_set, c)));
        Ok(found)
    }

    fn experiment(&self, rank_set: &RankSet, candidate: &Candidate) -> Experiment {
        let ranks = placed(&rank_set.ranks, &candidate.places);
        self.among(ranks, candidate.algorithm, Parameters { by_speed: false, ..candidate.parameters })
    }

    fn native(&self, rank_set: &RankSet) -> Experiment {
        self.among(rank_set.ranks.clone(), self.collective.native(), Parameters::default())
    }

    fn among(&self, ranks: Vec<Rank>, algorithm: &Algorithm, parameters: Parameters) -> Experiment {
        let (collective, bytes) = (self.collective, self.bytes);
        Experiment::Collective { collective, ranks, root: 0, bytes, algorithm: algorithm.name.into(), parameters }
    }
}

/// Without those whose places by speed are their order.
fn different(ranked: Vec<Candidate>) -> impl Iterator<Item = Candidate> {
    ranked.into_iter().filter(|c| !c.parameters.by_speed || c.places.is_some())
}

/// The best candidates, but at most two of one algorithm: they should be different bets.
fn finalists(ranked: Vec<Candidate>) -> Vec<Candidate> {
    let mut kept: Vec<Candidate> = Vec::new();
    for c in different(ranked) {
        if kept.len() < FINALISTS && kept.iter().filter(|k| k.algorithm.name == c.algorithm.name).count() < 2 {
            kept.push(c);
        }
    }
    kept
}

/// The best segmented candidate also with twice and four times as many messages under way, and the best one that would send to one peer at a
/// time also to all at once: models know what a link wants, but neither what a receiver that is late wants to find there nor how flows share a port.
fn with_windows(mut candidates: Vec<Candidate>, bytes: usize) -> Vec<Candidate> {
    let best = candidates.iter().find(|c| c.parameters.in_flight > 0).cloned();
    let one_peer = candidates.iter().find(|c| c.parameters.peers > 0).cloned();
    candidates.extend(one_peer.map(|c| Candidate { parameters: Parameters { peers: 0, ..c.parameters }, ..c }));
    candidates.extend(best.into_iter().flat_map(|best| {
        let more = wider(best.parameters.in_flight, pieces(bytes, best.parameters.segment));
        more.map(move |in_flight| Candidate { parameters: Parameters { in_flight, ..best.parameters }, ..best.clone() })
    }));
    candidates
}

/// The choice at a size, and what is known there for choices between sizes.
fn decide(session: &Session, rank_set: &RankSet, field: &Field) -> Option<(Choice, Made<Taken>)> {
    let samples = session.samples();
    let experiments = field.experiments(rank_set, false);
    let best = field.fastest(session, rank_set, &experiments)?;
    let lost = |k: usize| samples.get(&experiments[k]).is_some_and(|s| field.has_lost(k, &s.seconds) || field.has_lost(k, &s.remeasured));
    let irregular = field.missed(session, rank_set).is_some() || (field.lossy && (0..experiments.len()).any(lost));
    let verdict = verdict(samples, &experiments[best], &field.native(rank_set))?;
    let taken = |k: usize| (field.candidates[k].algorithm.name, field.candidates[k].parameters);
    let means = field.in_the_mean(session, &experiments);
    // what is lost in some runs is lost in none or in all by their median, and is not told between sizes
    let time = |k: usize| {
        if irregular {
            means[k]
        } else if k == best {
            Some(verdict.own_s)
        } else {
            choosing(samples, &experiments[k])
        }
    };
    let native = (field.collective.native().name, Parameters::default());
    let ((algorithm, parameters), predicted_s, time_s) = match verdict.native_s.filter(|_| verdict.native) {
        Some(native_s) => (native, native_s, native_s),
        None => (taken(best), field.candidates[best].predicted, verdict.own_s),
    };
    let runner_up = runner_up(session, field, &experiments, best, &verdict);
    let holds = if irregular { field.holding(&means, best) } else { String::new() };
    let choice = Choice {
        from_bytes: 0,
        at_bytes: field.bytes,
        algorithm: algorithm.into(),
        segment_bytes: parameters.segment,
        radix: parameters.radix,
        in_flight: parameters.in_flight,
        peers: parameters.peers,
        by_speed: parameters.by_speed,
        irregular: irregular && holds.is_empty(),
        holds,
        model: field.model.clone(),
        evidence: Evidence {
            predicted_s,
            measured_s: Some(time_s),
            native_s: None,
            runner_up: runner_up.map_or("none".into(), |r| r.0.into()),
            margin: runner_up.map_or(0.0, |r| r.1),
        },
    };
    let made = Made {
        bytes: field.bytes,
        taken: (!verdict.native).then(|| taken(best)),
        measured: (0..experiments.len()).filter_map(|k| Some((taken(k), field.candidates[k].predicted, time(k)?))).collect(),
        native_s: verdict.native_s,
    };
    Some((choice, made))
}

/// What would be done if what is taken could not be, and how much longer it takes: the library's own by the runs beside it, another candidate by the
/// runs that chose.
fn runner_up(session: &Session, field: &Field, experiments: &[Experiment], best: usize, verdict: &Verdict) -> Option<(&'static str, f64)> {
    let name = |k: usize| field.candidates[k].algorithm.name;
    let native_s = verdict.native_s;
    if verdict.native {
        return Some((name(best), stats::margin(verdict.own_s, native_s?)));
    }
    let time = |k: usize| choosing(session.samples(), &experiments[k]);
    let behind = |k: usize| Some((name(k), stats::margin(time(k)?, time(best)?)));
    let others = (0..experiments.len()).filter(|&k| k != best).filter_map(behind);
    let native = native_s.map(|t| (field.collective.native().name, stats::margin(t, verdict.own_s)));
    others.chain(native).min_by(|a, b| a.1.total_cmp(&b.1))
}
