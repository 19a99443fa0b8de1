//! What is done inside each group: the best predicted candidates are measured side by side with the library's own.

use super::chosen::{Verdict, choosing, confirm, fastest, fastest_at_first, verdict};
use super::{Group, HOLDS, ROUNDS};
use crate::collective::{Algorithm, Collective, Parameters};
use crate::decide::{
    ALIKE, CLOSE, Candidate, Knowledge, Made, ProtocolChange, Row, TO_THE_BYTE, Wanted, candidates_by_speed, even, in_other_segments,
    placed, protocol_changes, rank_candidates, rows, wider,
};
use crate::error::Result;
use crate::measure::{Experiment, Session};
use crate::model::{Among, Inside, RankSet};
use crate::plan::LONG;
use crate::policy::{Choice, Evidence, NO_OTHER, bounded};
use crate::predict::may_lose;
use crate::schedule::pieces;
use crate::stats;
use crate::topology::{Link, Rank};
use std::collections::BTreeMap;

/// The sizes that choices inside a group are made at, where short messages differ too: what latencies hide between groups is seen there. A choice holds
/// for the sizes near its own, the first and the last one for all beyond. The first is that of one number: shorter is hardly anything, and what libraries do with a
/// single byte says little (Open MPI 4.1 gathers two of them in 630 ns, and two of two bytes in 120).
pub const CHOICE_SIZES: [usize; 13] =
    [8, 64, 256, 2 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, LONG[0], LONG[1]];
/// So many of the best predicted candidates are measured, at most two of one algorithm: they should be different bets.
const FINALISTS: Wanted = Wanted::Different(4, 2);

/// Chooses for all groups, for these collectives, at all sizes: the best predicted candidates are measured side by side with the library's own,
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
                for bytes in collective.tuned_sizes(&CHOICE_SIZES, positions.len()) {
                    let all = candidates_by_speed(collective, positions.len(), bytes, unlike);
                    let wanted = if exhaustive { Wanted::Fastest(usize::MAX) } else { FINALISTS };
                    let (model, ranked) = rank_candidates(knowledge, collective, &positions, bytes, &all, wanted)?;
                    of_group.push(Field {
                        collective,
                        bytes,
                        model,
                        candidates: with_windows(ranked, bytes),
                        loses: rank_set.inside.as_ref().is_some_and(Inside::loses),
                    });
                }
            }
        }
        finals.push(of_group);
    }
    let native = session.has_native();
    let fields: Vec<Vec<Experiment>> =
        groups.iter().zip(&finals).flat_map(|(group, of_group)| of_group.iter().map(|f| f.rivals(&group.rank_set, native))).collect();
    let late: Vec<Experiment> =
        groups.iter().zip(&finals).flat_map(|(group, of_group)| of_group.iter().flat_map(|f| f.late(&group.rank_set))).collect();
    session.measure_roughly(LATE, &late)?;
    let purpose = "finalists inside groups";
    if exhaustive {
        session.measure(purpose, &fields.concat())?;
        session.remeasure("the fastest, remeasured", &fields)?;
    } else {
        session.race(purpose, &fields)?;
        adopt(session, groups, &mut finals)?;
        improve(session, groups, &mut finals)?;
        make_sure(session, groups, &finals)?;
    }
    let taken_of = |(rank_set, field): (&RankSet, &Field)| {
        let experiments = field.experiments(rank_set, false);
        field.fastest(session, &experiments, false).map(|k| (experiments[k].clone(), field.native(rank_set)))
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

/// What they do is measured so often that they are told apart by what they take where nothing is lost.
const LATE: &str = "finalists that lose something";

/// In groups that lose something the fastest of each field of which nothing should be lost, but may be, runs until it is sure that nothing is, or
/// another one is the fastest.
fn make_sure(session: &mut Session, groups: &[Group], finals: &[Vec<Field>]) -> Result<()> {
    loop {
        let mut unsure: Vec<Experiment> = Vec::new();
        for (group, of_group) in groups.iter().zip(finals) {
            for field in of_group.iter().filter(|field| field.loses) {
                let experiments = field.experiments(&group.rank_set, false);
                let fastest = field.fastest(session, &experiments, false).filter(|&k| field.candidates[k].late_s == 0.0);
                let Some(experiment) = fastest.map(|k| &experiments[k]).filter(|e| !session.is_sure(e)) else { continue };
                if field.may_lose(experiment, group)? {
                    unsure.push(experiment.clone());
                }
            }
        }
        if unsure.is_empty() {
            return Ok(());
        }
        session.make_sure("the fastest, where messages are lost", unsure)?;
    }
}

/// What other algorithm is the fastest at the size before or after is tried, whatever is predicted of it, and then at the next, until nothing is new: what a model misses of an
/// algorithm at one size it misses at others too.
fn adopt(session: &mut Session, groups: &[Group], finals: &mut [Vec<Field>]) -> Result<()> {
    for _ in CHOICE_SIZES {
        let of_field = |group: &Group, of_group: &[Field], k: usize| {
            let beside = [k.checked_sub(1), Some(k + 1)].into_iter().flatten().filter_map(|k| of_group.get(k));
            of_group[k].adopted(group, beside, session)
        };
        let of_group = |(group, of_group): (&Group, &Vec<Field>)| (0..of_group.len()).map(|k| of_field(group, of_group, k)).collect();
        let more = groups.iter().zip(&*finals).map(of_group).collect::<Result<_>>()?;
        if !race_more("finalists inside groups", session, groups, finals, more)? {
            break;
        }
    }
    Ok(())
}

/// Adds these to the fields of each group, and races those that got some; false if none did.
fn race_more(
    purpose: &str,
    session: &mut Session,
    groups: &[Group],
    finals: &mut [Vec<Field>],
    more: Vec<Vec<Vec<Candidate>>>,
) -> Result<bool> {
    let (mut open, mut late) = (Vec::new(), Vec::new());
    for ((group, of_group), more) in groups.iter().zip(finals).zip(more) {
        for (field, more) in of_group.iter_mut().zip(more).filter(|(_, more)| !more.is_empty()) {
            field.candidates.extend(more);
            open.push(field.rivals(&group.rank_set, session.has_native()));
            late.extend(field.late(&group.rank_set));
        }
    }
    session.measure_roughly(LATE, &late)?;
    session.race(purpose, &open)?;
    Ok(!open.is_empty())
}

/// The fastest of each field is tried in other segments and with more under way, until it is the best of its neighbours. Where [predictions hold](Field::holds),
/// only those are tried that they find faster.
fn improve(session: &mut Session, groups: &[Group], finals: &mut [Vec<Field>]) -> Result<()> {
    for _ in 0..ROUNDS {
        let of_group = |(group, of_group): (&Group, &Vec<Field>)| {
            of_group.iter().map(|field| field.neighbours(session, &group.rank_set, group.knowledge())).collect::<Result<_>>()
        };
        let more = groups.iter().zip(&*finals).map(of_group).collect::<Result<_>>()?;
        race_more("neighbours of the fastest inside groups", session, groups, finals, more)?;
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
    let loses = knowledge.inside.is_some_and(Inside::loses);
    let predict = |&(name, parameters): &Taken, bytes: usize, _: f64| {
        let parameters = bounded(parameters, bytes);
        let candidate = (collective.algorithm(name)?, even(parameters, bytes, knowledge.inside.and_then(Inside::losses)));
        let (_, ranked) = rank_candidates(knowledge, collective, &positions, bytes, &[candidate], Wanted::All)?;
        // what nobody can predict is not chosen
        Ok(ranked.first().map_or(f64::INFINITY, |c| c.predicted))
    };
    if loses {
        made.extend(predicted_between(collective, knowledge, &positions, &made)?);
        made.sort_by_key(|made| made.bytes);
    }
    let mut choices = Vec::new();
    let close = if loses { TO_THE_BYTE } else { CLOSE };
    for row in rows(&made, &protocol_changes_of(knowledge)?, close, predict, |a, b| a.0 == b.0)? {
        choices.push(match taken.iter().find(|c| c.at_bytes == row.at) {
            Some(choice) => Choice { from_bytes: row.from, ..choice.clone() },
            None => between(collective, knowledge, &row),
        });
    }
    Ok(choices)
}

/// Where messages are lost another way is the best at each size that makes some longer than those that are lost: so many times as large as the next one is
/// each size that is looked at between those that choices were made at.
const DENSE: f64 = 1.19;

/// What is predicted to be the fastest between the sizes that choices were made at.
fn predicted_between(
    collective: &'static Collective,
    knowledge: Knowledge,
    positions: &[usize],
    made: &[Made<Taken>],
) -> Result<Vec<Made<Taken>>> {
    let unlike = knowledge.inside.is_some_and(Inside::has_unlike_processors);
    let mut found = Vec::new();
    for pair in made.windows(2) {
        let next = |&bytes: &usize| Some((bytes as f64 * DENSE).ceil() as usize);
        for bytes in std::iter::successors(next(&pair[0].bytes), next).take_while(|&bytes| bytes < pair[1].bytes) {
            let candidates = candidates_by_speed(collective, positions.len(), bytes, unlike);
            let (_, ranked) = rank_candidates(knowledge, collective, positions, bytes, &candidates, Wanted::Fastest(1))?;
            let taken = ranked.first().map(|c| (c.algorithm.name, c.parameters));
            found.push(Made { bytes, taken, measured: Vec::new(), native_s: None });
        }
    }
    Ok(found)
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
        evidence: Evidence { predicted_s: row.seconds, runner_up: NO_OTHER.into(), ..Evidence::default() },
    }
}

/// Where the group's network changes, by any of its models.
fn protocol_changes_of(knowledge: Knowledge) -> Result<Vec<ProtocolChange>> {
    let mut all = Vec::new();
    for fitted in knowledge.models {
        let costs = fitted.costs_in(knowledge.inside)?;
        all.extend(protocol_changes(|bytes| costs.cost(Link { from: 0, to: 1 }, bytes).transit, CHOICE_SIZES[CHOICE_SIZES.len() - 1]));
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
    /// True if the group's network loses something.
    loses: bool,
}

impl Field {
    /// The experiments on the whole group, with the library's own if there is one.
    fn experiments(&self, rank_set: &RankSet, native: bool) -> Vec<Experiment> {
        let native = native.then(|| self.native(rank_set));
        self.candidates.iter().map(|c| self.experiment(rank_set, c)).chain(native).collect()
    }

    /// Those that are repeated until the fastest is known: of which nothing should be lost.
    fn rivals(&self, rank_set: &RankSet, native: bool) -> Vec<Experiment> {
        let native = native.then(|| self.native(rank_set));
        self.candidates.iter().filter(|c| c.late_s == 0.0).map(|c| self.experiment(rank_set, c)).chain(native).collect()
    }

    /// Those of which something should be lost: to know how much takes longer than anything else.
    fn late(&self, rank_set: &RankSet) -> Vec<Experiment> {
        self.candidates.iter().filter(|c| c.late_s > 0.0).map(|c| self.experiment(rank_set, c)).collect()
    }

    /// The place of the fastest; `at_first`: by the first runs of each alone.
    fn fastest(&self, session: &Session, experiments: &[Experiment], at_first: bool) -> Option<usize> {
        if !self.loses {
            let fastest = if at_first { fastest_at_first } else { fastest };
            return fastest(session.samples(), experiments);
        }
        let known = (0..experiments.len()).filter_map(|k| Some((k, self.in_the_mean(session, &experiments[k], k, at_first)?)));
        known.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(k, _)| k)
    }

    /// What a candidate takes in the mean of many runs, in a group that loses something: of what is lost in one run of seven no median knows, and what is known
    /// to lose may have been lucky in a few.
    fn in_the_mean(&self, session: &Session, experiment: &Experiment, k: usize, at_first: bool) -> Option<f64> {
        let (sample, candidate) = (session.samples().get(experiment)?, &self.candidates[k]);
        if candidate.late_s > 0.0 {
            return Some(sample.seconds.iter().copied().fold(f64::INFINITY, f64::min).max(candidate.predicted));
        }
        stats::mean(&if at_first { sample.seconds.clone() } else { [&sample.seconds[..], &sample.remeasured].concat() })
    }

    /// True if something of an experiment may be lost, if not all is predicted to the last microsecond.
    fn may_lose(&self, experiment: &Experiment, group: &Group) -> Result<bool> {
        let Some(fitted) = group.policy.models.iter().find(|f| f.model == self.model) else { return Ok(false) };
        let costs = fitted.costs_in(group.rank_set.inside.as_ref())?;
        let position = |rank: &Rank| group.rank_set.ranks.iter().position(|r| r == rank);
        let positions = experiment.ranks().iter().filter_map(position).collect();
        may_lose(&experiment.schedule()?, &Among { inner: costs.as_ref(), positions })
    }

    /// True if the fastest takes what was predicted, and what was measured in other segments too: that of the fastest may hold by chance. Of a segment size the
    /// first candidate is the one that was predicted, others have more under way; what is lost now and then is in no median.
    fn holds(&self, session: &Session, experiments: &[Experiment], fastest: usize) -> bool {
        let same = |a: &Candidate, b: &Candidate| a.algorithm == b.algorithm && a.parameters.segment == b.parameters.segment;
        let is_off = |k: usize| {
            let predicted = self.candidates[k].predicted;
            session.samples().median(&experiments[k]).is_some_and(|time| (time - predicted).abs() > HOLDS * predicted)
        };
        let of = &self.candidates[fastest];
        let others = (0..experiments.len()).filter(|&k| {
            let (one, before) = (&self.candidates[k], &self.candidates[..k]);
            one.algorithm == of.algorithm && one.late_s == 0.0 && !same(one, of) && !before.iter().any(|b| same(b, one))
        });
        of.late_s > 0.0 || !std::iter::once(fastest).chain(others).any(is_off)
    }

    /// What is the fastest in fields beside, of other algorithms than here, and not a candidate yet.
    fn adopted<'a>(&self, group: &Group, beside: impl Iterator<Item = &'a Field>, session: &Session) -> Result<Vec<Candidate>> {
        let rank_set = &group.rank_set;
        let fastest = |field: &'a Field| Some(&field.candidates[field.fastest(session, &field.experiments(rank_set, false), true)?]);
        let experiments = self.experiments(rank_set, false);
        let Some(own) = self.fastest(session, &experiments, true).map(|k| self.candidates[k].algorithm) else { return Ok(Vec::new()) };
        let others = beside.filter(|field| field.collective == self.collective).filter_map(fastest);
        let others = others.filter(|c| c.algorithm != own && (c.parameters.segment == 0 || c.parameters.segment < self.bytes));
        let positions: Vec<usize> = (0..rank_set.ranks.len()).collect();
        let (mut found, mut known) = (Vec::new(), experiments);
        for other in others {
            let wanted = [(other.algorithm, bounded(other.parameters, self.bytes))];
            let (_, predicted) = rank_candidates(group.knowledge(), self.collective, &positions, self.bytes, &wanted, Wanted::All)?;
            // as it won, to all peers at once or to one at a time
            let as_it_won = |c: Candidate| Candidate { parameters: Parameters { peers: other.parameters.peers, ..c.parameters }, ..c };
            for candidate in predicted.into_iter().map(as_it_won) {
                let experiment = self.experiment(rank_set, &candidate);
                // a recording has what was tried when it was made
                if !known.contains(&experiment) && (session.can_measure() || session.samples().get(&experiment).is_some()) {
                    known.push(experiment);
                    found.push(candidate);
                }
            }
        }
        Ok(found)
    }

    /// What is next to the fastest and not a candidate yet.
    fn neighbours(&self, session: &Session, rank_set: &RankSet, knowledge: Knowledge) -> Result<Vec<Candidate>> {
        let experiments = self.experiments(rank_set, false);
        let fastest = self.fastest(session, &experiments, true).map(|k| (k, &self.candidates[k]));
        let Some((at, fastest)) = fastest.filter(|(_, c)| c.parameters.segment > 0) else { return Ok(Vec::new()) };
        let limit = if self.holds(session, &experiments, at) { fastest.predicted * (1.0 - ALIKE) } else { f64::INFINITY };
        let positions: Vec<usize> = (0..rank_set.ranks.len()).collect();
        let segments = in_other_segments(fastest.parameters, positions.len(), self.bytes).map(|p| (fastest.algorithm, p));
        let (_, mut found) =
            rank_candidates(knowledge, self.collective, &positions, self.bytes, &segments.collect::<Vec<_>>(), Wanted::All)?;
        // models do not know what more under way is good for
        let more = wider(fastest.parameters.in_flight, pieces(self.bytes, fastest.parameters.segment));
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

/// The best segmented candidate also with twice as many messages under way (if that wins, its neighbours are tried), and the best one that would send to
/// one peer at a time also to all at once: models know what a link wants, but neither what a receiver that is late wants to find there nor how flows share a port.
fn with_windows(mut candidates: Vec<Candidate>, bytes: usize) -> Vec<Candidate> {
    let best = candidates.iter().find(|c| c.parameters.in_flight > 0).cloned();
    let one_peer = candidates.iter().find(|c| c.parameters.peers > 0).cloned();
    candidates.extend(one_peer.map(|c| Candidate { parameters: Parameters { peers: 0, ..c.parameters }, ..c }));
    candidates.extend(best.and_then(|best| {
        let in_flight = wider(best.parameters.in_flight, pieces(bytes, best.parameters.segment))?;
        Some(Candidate { parameters: Parameters { in_flight, ..best.parameters }, ..best })
    }));
    candidates
}

/// The choice at a size, and what is known there for choices between sizes.
fn decide(session: &Session, rank_set: &RankSet, field: &Field) -> Option<(Choice, Made<Taken>)> {
    let samples = session.samples();
    let experiments = field.experiments(rank_set, false);
    let best = field.fastest(session, &experiments, false)?;
    let verdict = verdict(samples, session.settings(), &experiments[best], &field.native(rank_set))?;
    let taken = |k: usize| (field.candidates[k].algorithm.name, field.candidates[k].parameters);
    let time = |k: usize| {
        if field.loses {
            field.in_the_mean(session, &experiments[k], k, false)
        } else if k == best {
            Some(verdict.own_s)
        } else {
            choosing(samples, &experiments[k])
        }
    };
    let native = (field.collective.native().name, Parameters::default());
    let ((algorithm, parameters), predicted_s, time_s) = match verdict.native_s.filter(|_| verdict.native) {
        Some(native_s) => (native, native_s, native_s),
        None => (taken(best), field.candidates[best].predicted, time(best)?),
    };
    let runner_up = runner_up(session, field, &experiments, best, &verdict);
    let choice = Choice {
        from_bytes: 0,
        at_bytes: field.bytes,
        algorithm: algorithm.into(),
        segment_bytes: parameters.segment,
        radix: parameters.radix,
        in_flight: parameters.in_flight,
        peers: parameters.peers,
        by_speed: parameters.by_speed,
        irregular: false,
        holds: String::new(),
        model: field.model.clone(),
        evidence: Evidence {
            predicted_s,
            measured_s: Some(time_s),
            native_s: None,
            runner_up: runner_up.as_ref().map_or(NO_OTHER.into(), |r| r.0.clone()),
            margin: runner_up.as_ref().map_or(0.0, |r| r.1),
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
fn runner_up(session: &Session, field: &Field, experiments: &[Experiment], best: usize, verdict: &Verdict) -> Option<(String, f64)> {
    let words = |k: usize| field.candidates[k].algorithm.words(&field.candidates[k].parameters);
    let peers = |k: usize| field.candidates[k].parameters.peers;
    // what differs from the best in that alone
    let name = |k: usize| match peers(k) {
        same if same == peers(best) || words(k) != words(best) => words(k),
        0 => format!("{} to all peers at once", words(k)),
        few => format!("{} to {few} at a time", words(k)),
    };
    let native_s = verdict.native_s;
    if verdict.native {
        return Some((name(best), stats::margin(verdict.own_s, native_s?)));
    }
    let time = |k: usize| choosing(session.samples(), &experiments[k]);
    let behind = |k: usize| Some((name(k), stats::margin(time(k)?, time(best)?)));
    let others = (0..experiments.len()).filter(|&k| k != best).filter_map(behind);
    let native = native_s.map(|t| (field.collective.native().name.to_string(), stats::margin(t, verdict.own_s)));
    others.chain(native).min_by(|a, b| a.1.total_cmp(&b.1))
}
