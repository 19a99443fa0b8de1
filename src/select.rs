//! Poly-adapt-2: per group and size, the algorithm that the most accurate model says is fastest. What was measured corrects what is
//! predicted.

use crate::collective::{Algorithm, Parameters, Shape, bcast};
use crate::error::{Error, Result};
use crate::fit::Among;
use crate::measure::{Experiment, Session};
use crate::model::{CostModel, Fitted, Inside, Roster};
use crate::predict::completion;
use crate::score::{Experience, ModelScore, Scores, best_model};
use crate::stats;
use serde::{Deserialize, Serialize};

/// The sizes that choices are made at; a choice holds for the sizes near its own, the last one for all larger ones.
pub const SIZES: [usize; 13] =
    [1, 64, 512, 2 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20];
/// Segments below this cost more in overheads than they win in overlap on any network this project knows.
const LEAST_SEGMENT: usize = 512;
/// A message is cut into at most so many segments when choosing.
const MOST_SEGMENTS: usize = 256;
/// So many of the best predicted candidates are measured.
const FINALISTS: usize = 4;

/// Another algorithm must beat the library's own by so much: what medians of a busy machine can be trusted to.
pub const NATIVE_MARGIN: f64 = 0.05;

/// What is known about a group.
#[derive(Clone, Copy)]
pub struct Knowledge<'a> {
    /// The fitted models.
    pub models: &'a [Fitted],
    /// Their scores.
    pub scores: &'a [ModelScore],
    /// The experiment base.
    pub experience: &'a [Experience],
    /// What is known of its inside.
    pub inside: Option<&'a Inside>,
}

/// A candidate with its predicted time.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Its parameters.
    pub parameters: Parameters,
    /// Predicted time, corrected by experience.
    pub predicted: f64,
}

/// A choice: a row of the policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// It holds from this size up to the next row's.
    pub from_bytes: usize,
    /// The size it was made at.
    pub at_bytes: usize,
    /// The model that was trusted.
    pub model: String,
    /// The algorithm.
    pub algorithm: String,
    /// Its segment; 0: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub segment_bytes: usize,
    /// Its radix; 0: none, or the default.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub radix: usize,
    /// Predicted time (for `native`, which no model knows: the measured one).
    pub predicted_s: f64,
    /// Measured time, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_s: Option<f64>,
    /// The next best.
    pub runner_up: String,
    /// How much longer the next best takes, as a share.
    pub margin: f64,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Choice {
    /// The parameters.
    pub fn parameters(&self) -> Parameters {
        Parameters { segment: self.segment_bytes, radix: self.radix }
    }
}

/// Every algorithm with the parameters worth trying for a size: segments of `m / 2^i`.
pub fn all_candidates(bytes: usize) -> Vec<(&'static Algorithm, Parameters)> {
    let mut all = Vec::new();
    for a in bcast::ALGORITHMS.iter().filter(|a| a.builder.is_some()) {
        if a.segmented {
            let halves = (1..20).map(|i| bytes >> i).take_while(|&s| s >= LEAST_SEGMENT && bytes.div_ceil(s) <= MOST_SEGMENTS);
            // the same sizes for neighbouring messages: experience is about algorithms, not about odd segments
            all.extend(halves.map(|s| (*a, Parameters { segment: s.next_multiple_of(64), radix: 0 })));
            if a.name == "split_binary" {
                all.push((*a, Parameters::default()));
            }
        } else if a.radices.is_empty() {
            all.push((*a, Parameters::default()));
        } else {
            all.extend(a.radices.iter().map(|&radix| (*a, Parameters { segment: 0, radix })));
        }
    }
    all
}

/// The predicted times of candidates on some positions of a group, the fastest first. Ties keep the order of the registry.
///
/// # Errors
/// A model that lacks parameters.
pub fn rank_candidates(
    knowledge: Knowledge,
    positions: &[usize],
    root: usize,
    bytes: usize,
    candidates: &[(&'static Algorithm, Parameters)],
) -> Result<(String, Vec<Candidate>)> {
    let name = best_model(knowledge.scores, bytes).map(|s| s.model.clone()).or(knowledge.models.first().map(|f| f.model.clone()));
    let name = name.unwrap_or_default();
    let Some(fitted) = knowledge.models.iter().find(|f| f.model == name) else { return Ok((name, Vec::new())) };
    let inner = fitted.costs_in(knowledge.inside)?;
    let costs = Among { inner: inner.as_ref(), positions: positions.to_vec() };
    let shape = Shape { ranks: positions.len(), root, bytes };
    let mut ranked = Vec::new();
    for &(algorithm, parameters) in candidates {
        ranked.extend(predicted(knowledge, &name, &costs, &shape, algorithm, parameters)?);
    }
    ranked.sort_by(|a, b| a.predicted.total_cmp(&b.predicted));
    // local search around the best segment
    if let Some(best) = ranked.first().filter(|c| c.parameters.segment > 0 && candidates.len() > 8).cloned() {
        for segment in [best.parameters.segment * 3 / 4, best.parameters.segment * 3 / 2].map(|s| s.next_multiple_of(64)) {
            ranked.extend(predicted(knowledge, &name, &costs, &shape, best.algorithm, Parameters { segment, radix: 0 })?);
        }
        ranked.sort_by(|a, b| a.predicted.total_cmp(&b.predicted));
    }
    Ok((name, ranked))
}

fn predicted(
    knowledge: Knowledge,
    model: &str,
    costs: &dyn CostModel,
    shape: &Shape,
    algorithm: &'static Algorithm,
    parameters: Parameters,
) -> Result<Option<Candidate>> {
    let schedule = match algorithm.bounded_schedule(shape, &parameters) {
        Ok(Some(schedule)) => schedule,
        // what nobody can predict is not chosen
        Ok(None) | Err(Error::TooLarge(_)) => return Ok(None),
        Err(e) => return Err(e),
    };
    let experience = knowledge.experience.iter().find(|e| e.algorithm == algorithm.name && e.model == model);
    let predicted = completion(&schedule, costs)? * experience.map_or(1.0, |e| e.at(shape.bytes));
    Ok(Some(Candidate { algorithm, parameters, predicted }))
}

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

/// The geometric mean of two sizes.
fn halfway(a: usize, b: usize) -> usize {
    ((a as f64 * b as f64).sqrt().ceil() as usize).max(1)
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
