//! What is done inside each group: the best predicted candidates are measured side by side with the library's own broadcast.

use crate::collective::{Algorithm, COLLECTIVES, Collective, Parameters};
use crate::decide::{Candidate, Knowledge, all_candidates, beats_native, halfway, rank_candidates, wider};
use crate::error::Result;
use crate::measure::{Experiment, Session};
use crate::model::{Fitted, Roster};
use crate::policy::Choice;
use crate::schedule::pieces;
use crate::score::Scores;
use crate::stats;
use std::collections::BTreeMap;

/// The sizes that choices are made at; a choice holds for the sizes near its own, the last one for all larger ones.
pub const SIZES: [usize; 13] =
    [1, 64, 512, 2 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20];
/// So many of the best predicted candidates are measured.
const FINALISTS: usize = 4;

/// Chooses for all groups at all sizes: the best predicted candidates are measured side by side with the library's own broadcast,
/// and the best measured one is taken. `exhaustive`: all candidates are measured.
///
/// # Errors
/// The session's, or a model that lacks parameters.
pub fn choose(
    session: &mut Session,
    rosters: &[Roster],
    fitted: &[Vec<Fitted>],
    scores: &mut [Scores],
    exhaustive: bool,
) -> Result<Vec<BTreeMap<&'static Collective, Vec<Choice>>>> {
    let mut finals: Vec<Vec<Field>> = Vec::new(); // by group
    for (k, roster) in rosters.iter().enumerate() {
        let mut of_group = Vec::new();
        if roster.ranks.len() > 1 {
            let knowledge =
                Knowledge { models: &fitted[k], scores: &scores[k].models, experience: &scores[k].of_all, inside: roster.inside.as_ref() };
            let positions: Vec<usize> = (0..roster.ranks.len()).collect();
            for collective in COLLECTIVES {
                for bytes in collective.sizes(&SIZES) {
                    let all = all_candidates(collective, bytes);
                    let (model, ranked) = rank_candidates(knowledge, collective, &positions, bytes, &all)?;
                    of_group.push(Field {
                        collective,
                        bytes,
                        model,
                        candidates: with_windows(if exhaustive { ranked } else { finalists(ranked) }, bytes),
                    });
                }
            }
        }
        finals.push(of_group);
    }
    let native = session.has_native();
    let fields: Vec<Vec<Experiment>> =
        rosters.iter().zip(&finals).flat_map(|(roster, of_group)| of_group.iter().map(|f| f.experiments(roster, native))).collect();
    let purpose = "finalists inside groups";
    if exhaustive {
        session.measure(purpose, &fields.concat())?;
        session.again("the fastest, once more", &fields)?;
    } else {
        session.race(purpose, &fields, None)?;
    }
    let mut choices = Vec::new();
    for (roster, of_group) in rosters.iter().zip(&finals) {
        let mut rows: BTreeMap<&'static Collective, Vec<Choice>> = BTreeMap::new();
        for field in of_group {
            rows.entry(field.collective).or_default().extend(decide(session, roster, field));
        }
        for rows in rows.values_mut() {
            // a row begins half way (in factors) between its size and the one before
            for k in (1..rows.len()).rev() {
                rows[k].from_bytes = halfway(rows[k - 1].at_bytes, rows[k].at_bytes);
            }
        }
        choices.push(rows);
    }
    Ok(choices)
}

/// The candidates of a collective in a group at a size.
struct Field {
    collective: &'static Collective,
    bytes: usize,
    /// The model that ranked them.
    model: String,
    candidates: Vec<Candidate>,
}

impl Field {
    /// The experiments on the whole group, with the library's own if there is one.
    fn experiments(&self, roster: &Roster, native: bool) -> Vec<Experiment> {
        let native = native.then(|| self.experiment(roster, self.collective.native(), Parameters::default()));
        self.candidates.iter().map(|c| self.experiment(roster, c.algorithm, c.parameters)).chain(native).collect()
    }

    fn experiment(&self, roster: &Roster, algorithm: &Algorithm, parameters: Parameters) -> Experiment {
        let (collective, bytes, ranks) = (self.collective, self.bytes, roster.ranks.clone());
        Experiment::Collective { collective, ranks, root: 0, bytes, algorithm: algorithm.name.into(), parameters }
    }
}

/// The best candidates, but at most two of one algorithm: they should be different bets.
fn finalists(ranked: Vec<Candidate>) -> Vec<Candidate> {
    let mut kept: Vec<Candidate> = Vec::new();
    for c in ranked {
        if kept.len() < FINALISTS && kept.iter().filter(|k| k.algorithm.name == c.algorithm.name).count() < 2 {
            kept.push(c);
        }
    }
    kept
}

/// The best segmented candidate also with twice and four times as many messages under way: models know what a link wants, but not what a
/// receiver that is late wants to find there.
fn with_windows(mut candidates: Vec<Candidate>, bytes: usize) -> Vec<Candidate> {
    let best = candidates.iter().find(|c| c.parameters.in_flight > 0).cloned();
    candidates.extend(best.into_iter().flat_map(|best| {
        let more = wider(best.parameters.in_flight, pieces(bytes, best.parameters.segment));
        more.map(move |in_flight| Candidate { parameters: Parameters { in_flight, ..best.parameters }, ..best.clone() })
    }));
    candidates
}

fn decide(session: &Session, roster: &Roster, field: &Field) -> Option<Choice> {
    let measured = |a: &Algorithm, p: Parameters| stats::median(&session.samples().all(&field.experiment(roster, a, p)));
    let mut all: Vec<(&'static Algorithm, Parameters, f64, f64)> = Vec::new(); // with the times predicted and measured
    all.extend(
        field.candidates.iter().filter_map(|c| Some((c.algorithm, c.parameters, c.predicted, measured(c.algorithm, c.parameters)?))),
    );
    let native = field.collective.native();
    all.extend(measured(native, Parameters::default()).map(|m| (native, Parameters::default(), m, m)));
    // the library's own wins what is within the noise: adaptive must never be a loss
    all.sort_by(|a, b| a.3.total_cmp(&b.3));
    if let Some(k) = all.iter().position(|c| c.0.is_native())
        && !beats_native(all[0].3, all[k].3, false)
    {
        let native = all.remove(k);
        all.insert(0, native);
    }
    let (algorithm, parameters, predicted, time) = all.first().copied()?;
    let runner_up = all.get(1);
    Some(Choice {
        from_bytes: 0,
        at_bytes: field.bytes,
        model: field.model.clone(),
        algorithm: algorithm.name.into(),
        segment_bytes: parameters.segment,
        radix: parameters.radix,
        in_flight: parameters.in_flight,
        predicted_s: predicted,
        measured_s: Some(time),
        runner_up: runner_up.map_or("none".into(), |r| r.0.name.into()),
        margin: runner_up.map_or(0.0, |r| stats::margin(r.3, time)),
    })
}
