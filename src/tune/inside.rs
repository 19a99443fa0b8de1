//! What is done inside each group: the best predicted candidates are measured side by side with the library's own broadcast.

use crate::collective::Parameters;
use crate::decide::{Candidate, Knowledge, NATIVE_MARGIN, all_candidates, halfway, rank_candidates};
use crate::error::Result;
use crate::measure::{Experiment, Session};
use crate::model::{Fitted, Roster};
use crate::policy::Choice;
use crate::score::Scores;
use crate::stats;

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
) -> Result<Vec<Vec<Choice>>> {
    let mut finals = Vec::new(); // by group: (size, model, finalists)
    for (k, roster) in rosters.iter().enumerate() {
        let mut of_group = Vec::new();
        if roster.ranks.len() > 1 {
            let knowledge =
                Knowledge { models: &fitted[k], scores: &scores[k].models, experience: &scores[k].of_all, inside: roster.inside.as_ref() };
            let positions: Vec<usize> = (0..roster.ranks.len()).collect();
            for bytes in SIZES {
                let (model, ranked) = rank_candidates(knowledge, &positions, 0, bytes, &all_candidates(bytes))?;
                of_group.push((bytes, model, if exhaustive { ranked } else { finalists(ranked) }));
            }
        }
        finals.push(of_group);
    }
    let native = session.has_native();
    let mut fields = Vec::new();
    for (roster, of_group) in rosters.iter().zip(&finals) {
        for (bytes, _, candidates) in of_group {
            let mut field: Vec<Experiment> =
                candidates.iter().map(|c| experiment(roster, *bytes, c.algorithm.name, c.parameters)).collect();
            if native {
                field.push(experiment(roster, *bytes, "native", Parameters::default()));
            }
            fields.push(field);
        }
    }
    let purpose = "finalists inside groups";
    if exhaustive {
        session.measure(purpose, &fields.concat())?;
        session.again("the fastest, once more", &fields)?;
    } else {
        session.race(purpose, &fields, None)?;
    }
    let mut choices = Vec::new();
    for (roster, of_group) in rosters.iter().zip(&finals) {
        let mut rows: Vec<Choice> =
            of_group.iter().filter_map(|(bytes, model, candidates)| decide(session, roster, *bytes, model, candidates)).collect();
        // a row begins half way (in factors) between its size and the one before
        for k in (1..rows.len()).rev() {
            rows[k].from_bytes = halfway(rows[k - 1].at_bytes, rows[k].at_bytes);
        }
        choices.push(rows);
    }
    Ok(choices)
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

/// A candidate's experiment on a whole group.
fn experiment(roster: &Roster, bytes: usize, algorithm: &str, parameters: Parameters) -> Experiment {
    Experiment::Broadcast { ranks: roster.ranks.clone(), root: 0, bytes, algorithm: algorithm.into(), parameters }
}

fn decide(session: &Session, roster: &Roster, bytes: usize, model: &str, candidates: &[Candidate]) -> Option<Choice> {
    let measured = |name: &str, p: Parameters| stats::median(&session.samples().all(&experiment(roster, bytes, name, p)));
    let mut all: Vec<(String, Parameters, f64, f64)> = Vec::new(); // name, parameters, predicted, measured
    for c in candidates {
        if let Some(m) = measured(c.algorithm.name, c.parameters) {
            all.push((c.algorithm.name.into(), c.parameters, c.predicted, m));
        }
    }
    if let Some(m) = measured("native", Parameters::default()) {
        all.push(("native".into(), Parameters::default(), m, m));
    }
    // the library's own broadcast wins what is within the noise: adaptive must never be a loss
    let handicap = |name: &str, t: f64| if name == "native" { t / (1.0 + NATIVE_MARGIN) } else { t };
    all.sort_by(|a, b| handicap(&a.0, a.3).total_cmp(&handicap(&b.0, b.3)));
    let (name, parameters, predicted, time) = all.first().cloned()?;
    let runner_up = all.get(1);
    Some(Choice {
        from_bytes: 0,
        at_bytes: bytes,
        model: model.into(),
        algorithm: name,
        segment_bytes: parameters.segment,
        radix: parameters.radix,
        predicted_s: predicted,
        measured_s: Some(time),
        runner_up: runner_up.map_or("none".into(), |r| r.0.clone()),
        margin: runner_up.map_or(0.0, |r| stats::margin(r.3, time)),
    })
}
