//! Which candidates there are for a size, and which is predicted to be the fastest: asked by tuning, and at run time where a policy
//! has no row. What was measured corrects what is predicted (poly-adapt-2: per group and size, the algorithm that the most accurate
//! model says is fastest).

mod between;
mod places;
mod rows;
mod wanted;

pub use between::{CLOSE, CLOSE_IN_BLOCKS, ProtocolChange, TO_THE_BYTE, protocol_changes};
pub use places::{by_speed, ticks};
pub use rows::{Made, Row, native_seconds, rows};
pub use wanted::Wanted;

use crate::collective::{Algorithm, Alike, Built, Collective, Parameters, Shape, With};
use crate::error::{Error, Result};
use crate::flow::with_flow;
use crate::model::Among;
use crate::model::{CostModel, Fitted, Inside, Losses, Lossless};
use crate::predict::{Repeats, pipelined};
use crate::schedule::{MOST_SEGMENTS, WINDOW};
pub use crate::score::is_missed;
use crate::score::{Calibration, ModelScore, best_model};
use crate::stats::ROUNDING;
use crate::topology::{Link, Rank};

/// Segments below this cost more in overheads than they win in overlap on any network this project knows.
const LEAST_SEGMENT: usize = 512;
/// And segments below this where they cross groups: the latency of wide-area links is that of many small messages.
pub const LEAST_ACROSS: usize = 4 << 10;
/// What takes so many times as long as the fastest is as good. Of such the one with the longest segments is taken, which has fewest messages: what more
/// of them win, calls lose that neither models nor repetitions see.
pub const AS_GOOD: f64 = 1.01;
/// Candidates have at most so many segments for each rank, within these limits: filling a pipeline, which is at most as long as there are ranks, is then
/// a small part of its time, and more would only take longer to predict.
const MOST_TRIED_EACH: usize = 8;
const MOST_TRIED: (usize, usize) = (MOST_SEGMENTS, 2 * MOST_SEGMENTS);

/// What is faster by less than this share is as good: neither neighbours of it are tried, nor is it found out where exactly it begins to be faster.
pub const ALIKE: f64 = 0.01;

/// Another algorithm must beat the library's own by so much, where no runs were made to tell them apart: what medians of a busy machine can be
/// believed to.
pub const NATIVE_MARGIN: f64 = 0.05;
/// And by so much where such runs were made: as much may differ between what was measured and calls of a program, which follow each other or find
/// caches cold.
pub const CLEAR_MARGIN: f64 = 0.02;
/// What a call alone is not known to in seconds: a run of it begins and ends with clocks and messages of tens of nanoseconds, and finds caches in some state. Who
/// wins by less is told by calls in a row.
const CALL_S: f64 = 1e-6;

/// How many times one size is as large as another one.
pub fn times_apart(a: usize, b: usize) -> usize {
    a.max(b) / a.min(b).max(1)
}

/// True if a way is to be taken instead of the library's own. `clearly`: whether runs that were made to tell them apart, in turns, say that it is
/// faster by more than what noise makes; `None` where there are none. In doubt it is the library's own.
pub fn beats_native(own_s: f64, native_s: f64, clearly: Option<bool>) -> bool {
    let margin = if clearly.is_some() { CLEAR_MARGIN } else { NATIVE_MARGIN };
    own_s + CALL_S < native_s && clearly != Some(false) && own_s * (1.0 + margin) <= native_s
}

/// True if two ways are so close together, and short, that calls alone do not say by how much one of them wins.
pub fn is_within_a_call(a_s: f64, b_s: f64) -> bool {
    (a_s - b_s).abs() <= CALL_S && a_s.min(b_s) * NATIVE_MARGIN <= CALL_S
}

/// How many times one size is as large as another one, exactly: the nearest of some is the one of which this is the least.
pub fn distance(a: usize, b: usize) -> f64 {
    a.max(b) as f64 / a.min(b).max(1) as f64
}

/// What was made at the size that is nearest to this one, if there is one at which the network carries messages alike.
pub fn nearest<T>(made: impl IntoIterator<Item = T>, at: impl Fn(&T) -> usize, bytes: usize, changes: &[ProtocolChange]) -> Option<T> {
    let changes_to = |bytes: usize| changes.iter().filter(|change| change.after <= bytes).count();
    let apart = |of: &T| (changes_to(at(of)) != changes_to(bytes), distance(at(of), bytes));
    let order = |a: (bool, f64), b: (bool, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
    made.into_iter().min_by(|a, b| order(apart(a), apart(b)))
}

/// Of two ways that are short and alike, one seems less than so many times as long by single calls, and what is predicted by them: of 33 each between two ranks of a
/// host medians were 266 to 356 ns, so that two of them are up to 1.8 times apart.
const SCATTERS: f64 = 2.0;

/// True if the library's own is to be taken between sizes that were measured instead of what is predicted to take so long. What is too short for a prediction to tell
/// them apart goes as the nearest size did, unless ours is predicted to be far slower. `taken`: whether the library's own was taken there; `preferred`: though a call of it takes longer alone.
pub fn is_native_between(own_s: f64, native_s: f64, taken: bool, preferred: bool) -> bool {
    match is_within_a_call(own_s, native_s) {
        true => taken || own_s > SCATTERS * native_s,
        false => preferred || !beats_native(own_s, native_s, None),
    }
}

/// Where a row ends that was made at one size and the next one at another: the geometric mean of the two.
pub fn halfway(a: usize, b: usize) -> usize {
    ((a as f64 * b as f64).sqrt().ceil() as usize).max(1)
}

/// Segments are whole multiples of so many bytes: neighbouring messages are cut alike.
const WHOLE: usize = 64;

/// Parameters as they are used for a size where messages may be lost: in segments that are alike, since a last one that is shorter than the others may be of a
/// size that is lost. Where all would be of such a size then, and longer ones were chosen, there are fewer of them.
pub fn even(parameters: Parameters, bytes: usize, losses: Option<&Losses>) -> Parameters {
    let segment = parameters.segment;
    let Some(losses) = losses.filter(|_| (1..bytes).contains(&segment)) else { return parameters };
    let even = |pieces: usize| bytes.div_ceil(pieces).next_multiple_of(WHOLE);
    // rounded up, there may be fewer of them
    let last = |segment: usize| bytes - (bytes.div_ceil(segment) - 1) * segment;
    let pieces = bytes.div_ceil(segment);
    let is_long = |segment: usize| !losses.meet(segment) && !losses.meet(last(segment));
    let longer = || (1..=pieces).rev().map(even).find(|&segment| is_long(segment));
    let found = if segment > losses.to_bytes { longer() } else { None };
    Parameters { segment: found.unwrap_or(even(pieces)), ..parameters }
}

/// The longest [even] segment that is no longer than so many bytes.
pub fn even_part(bytes: usize) -> usize {
    bytes / WHOLE * WHOLE
}

/// What is known about a group.
#[derive(Clone, Copy)]
pub struct Knowledge<'a> {
    /// The fitted models.
    pub models: &'a [Fitted],
    /// Their scores.
    pub scores: &'a [ModelScore],
    /// The experiment base.
    pub calibration: &'a [Calibration],
    /// What is known of its inside.
    pub inside: Option<&'a Inside>,
    /// What was built to predict others.
    pub built: &'a Built,
}

impl Knowledge<'_> {
    /// The model that predicts a collective best at a size, or the first one where none was scored.
    pub fn model(&self, collective: &Collective, bytes: usize) -> Option<&str> {
        best_model(self.scores, collective, bytes).map(|s| s.model.as_str()).or(self.models.first().map(|f| f.model.as_str()))
    }
}

/// A candidate with its predicted time.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Its parameters.
    pub parameters: Parameters,
    /// Predicted time, corrected by calibration.
    pub predicted: f64,
    /// So much of it is for messages that are lost and sent again, in the mean.
    pub late_s: f64,
    /// Which of the ranks takes each place, if not all are in their order.
    pub places: Option<Vec<Rank>>,
}

impl Candidate {
    /// False if its places by speed are the order of ranks: it is another candidate.
    fn is_itself(&self) -> bool {
        !self.parameters.by_speed || self.places.is_some()
    }
}

/// What a rank beside the root does in a candidate that cuts its messages, at most, for the same reason: with blocks of many ranks, or around a ring, it
/// passes on many times as many segments as a message has.
const MOST_OPERATIONS: usize = 4096;

/// Every algorithm of a collective that fits so many ranks, with the parameters worth trying for a size: segments of `m / 2^i`.
pub fn all_candidates(collective: &Collective, ranks: usize, bytes: usize) -> Vec<(&'static Algorithm, Parameters)> {
    let mut all = Vec::new();
    let shape = collective.shape(ranks, 0, bytes);
    let most = most_tried(ranks);
    for a in collective.built().filter(|a| (a.fits)(&shape)) {
        if a.segmented {
            // what cannot be built is no candidate
            let operations = |p: &Parameters| a.program(ranks.min(2) - 1, &shape, p).map(|program| program.len());
            let halves = (1..20).map(|i| bytes >> i).take_while(|&s| s >= LEAST_SEGMENT && bytes.div_ceil(s) <= most);
            // the same sizes for neighbouring messages: calibration is about algorithms, not about odd segments
            let mut cut =
                halves.map(|s| Parameters::of(s.next_multiple_of(64), 0)).filter_map(|p| Some((operations(&p)?, p))).collect::<Vec<_>>();
            // where the pieces are blocks of ranks, long segments cut none
            let whole = if a.whole { None } else { operations(&Parameters::default()) };
            cut.retain(|&(operations, _)| operations > whole.unwrap_or(0) && operations <= MOST_OPERATIONS);
            all.extend(cut.into_iter().map(|(_, p)| (a, p)));
        } else {
            all.extend(a.radices_among(ranks).map(|radix| (a, Parameters::of(0, radix))));
        }
        if a.whole || (!a.segmented && a.radices.is_empty()) {
            all.push((a, Parameters::default()));
        }
    }
    all
}

/// The most segments that are tried among so many ranks.
fn most_tried(ranks: usize) -> usize {
    ranks.saturating_mul(MOST_TRIED_EACH).clamp(MOST_TRIED.0, MOST_TRIED.1)
}

/// As [`all_candidates`], each that has places by speed also with these, if the processors of the ranks differ.
pub fn candidates_by_speed(collective: &Collective, ranks: usize, bytes: usize, unlike: bool) -> Vec<(&'static Algorithm, Parameters)> {
    let by_speed = |(a, p): (&'static Algorithm, Parameters)| {
        std::iter::once((a, p)).chain((unlike && collective.places_of(a).is_some()).then_some((a, Parameters { by_speed: true, ..p })))
    };
    all_candidates(collective, ranks, bytes).into_iter().flat_map(by_speed).collect()
}

/// The ranks by the places that they take.
pub fn placed<T: Copy>(ranks: &[T], places: &Option<Vec<Rank>>) -> Vec<T> {
    places.as_ref().map_or_else(|| ranks.to_vec(), |places| places.iter().map(|&k| ranks[k]).collect())
}

/// The predicted times of candidates on some positions of a group, of which the first is the root, the fastest first. Ties keep the order of the registry.
/// Only what is wanted is there.
///
/// # Errors
/// A model that lacks parameters.
pub fn rank_candidates(
    knowledge: Knowledge,
    collective: &'static Collective,
    positions: &[usize],
    bytes: usize,
    candidates: &[(&'static Algorithm, Parameters)],
    wanted: Wanted,
) -> Result<(String, Vec<Candidate>)> {
    let name = knowledge.model(collective, bytes).unwrap_or_default().to_string();
    let Some(fitted) = knowledge.models.iter().find(|f| f.model == name) else { return Ok((name, Vec::new())) };
    let inner = fitted.costs_in(knowledge.inside)?;
    let costs = Among { inner: inner.as_ref(), positions: positions.to_vec() };
    // what is lost may hang on the last bytes of a part: of whole elements
    let loses = knowledge.inside.is_some_and(Inside::loses);
    let shape = if loses { collective.shape(positions.len(), 0, bytes) } else { Shape::new(positions.len(), 0, bytes) };
    let predict = |with, limit_s| predicted(knowledge, collective, &name, &costs, &shape, with, limit_s);
    let mut ranked = Ranked::default();
    let rank = |ranked: &mut Ranked, place, with: With| -> Result<()> {
        ranked.insert(place, predict(with, wanted.limit_s(&ranked.candidates, with.0))?);
        Ok(())
    };
    // where losses or processors differ, what is fastest hangs on more than on what messages take
    let differs = loses || knowledge.inside.is_some_and(Inside::has_unlike_processors);
    let group = alike(&costs, positions.len(), bytes).filter(|_| !differs && wanted.most() < candidates.len());
    let fastest = group.as_ref().map_or(Vec::new(), |group| knowledge.built.fastest_like(group));
    let likely: Vec<usize> = fastest.iter().filter_map(|known| candidates.iter().position(|c| c == known)).collect();
    let all = likely.is_empty();
    for place in if all { (0..candidates.len()).collect() } else { likely } {
        rank(&mut ranked, place, candidates[place])?;
    }
    if let Some(group) = group.filter(|_| all) {
        knowledge.built.keep_fastest(group, ranked.places.iter().map(|&place| candidates[place]));
    }
    // local search around the best segment
    if let Some(best) = ranked.candidates.first().filter(|c| c.parameters.segment > 0 && candidates.len() > 8).cloned() {
        for segment in [best.parameters.segment * 3 / 4, best.parameters.segment * 3 / 2].map(|s| s.next_multiple_of(64)) {
            let parameters = Parameters { by_speed: best.parameters.by_speed, ..Parameters::of(segment, 0) };
            rank(&mut ranked, candidates.len(), (best.algorithm, parameters))?;
        }
    }
    Ok((name, wanted.among(ranked.candidates)))
}

/// Candidates, the fastest first.
#[derive(Default)]
struct Ranked {
    candidates: Vec<Candidate>,
    /// The place of each in the registry.
    places: Vec<usize>,
}

impl Ranked {
    /// Adds one that could be predicted.
    fn insert(&mut self, place: usize, found: Option<Candidate>) {
        let Some(found) = found else { return };
        let is_before = |(known, before): (&Candidate, &usize)| (known.predicted, *before) <= (found.predicted, place);
        let at = self.candidates.iter().zip(&self.places).take_while(|&known| is_before(known)).count();
        self.candidates.insert(at, found);
        self.places.insert(at, place);
    }
}

/// What tells whether candidates are as good in this group as in another one; `None` of one rank.
fn alike(costs: &dyn CostModel, ranks: usize, bytes: usize) -> Option<Alike> {
    let [none, all] = (ranks > 1).then(|| [0, bytes].map(|bytes| costs.cost(Link { from: 0, to: 1 }, bytes)))?;
    Some(Alike { ranks, bytes, seconds: [none.transit, none.gap, all.transit, all.gap] })
}

/// A candidate with its time; `None` of what cannot be predicted, or takes longer than `limit_s`.
fn predicted(
    knowledge: Knowledge,
    collective: &'static Collective,
    model: &str,
    costs: &dyn CostModel,
    shape: &Shape,
    (algorithm, parameters): (&'static Algorithm, Parameters),
    limit_s: f64,
) -> Result<Option<Candidate>> {
    let loses = knowledge.inside.is_some_and(Inside::loses);
    let parameters = even(parameters, shape.bytes, knowledge.inside.and_then(Inside::losses));
    let places =
        match parameters.by_speed.then(|| by_speed(collective, algorithm, &parameters, costs, shape.ranks, shape.bytes)).transpose() {
            Err(Error::TooLarge(_)) => return Ok(None),
            places => places?.flatten(),
        };
    let costs = &Among { inner: costs, positions: placed(&(0..shape.ranks).collect::<Vec<_>>(), &places) };
    let parameters = with_flow(algorithm, parameters, costs, &(0..shape.ranks).collect::<Vec<_>>(), shape.bytes);
    if algorithm.is_native() {
        return Ok(None);
    }
    let schedule = |bytes: usize| knowledge.built.to_predict(algorithm, &Shape { bytes, ..*shape }, &parameters);
    let repeats = Repeats { segment: collective.repeats(algorithm, &parameters), turn: 1, in_flight: parameters.in_flight };
    let calibration =
        knowledge.calibration.iter().find(|e| e.collective == collective && e.algorithm == algorithm.name && e.model == model);
    let correction = calibration.map_or(1.0, |e| e.at(shape.bytes));
    // what is lost is not corrected
    let limit_s = if loses { f64::INFINITY } else { limit_s / correction * ROUNDING };
    let seconds = |costs: &dyn CostModel| match pipelined(shape.bytes, repeats, costs, limit_s, schedule) {
        // what nobody can predict is not chosen
        Err(Error::TooLarge(_)) => Ok(f64::INFINITY),
        found => found,
    };
    let with_losses = seconds(costs)?;
    let seconds = if loses && with_losses < f64::INFINITY { seconds(&Lossless(costs))?.min(with_losses) } else { with_losses };
    if with_losses == f64::INFINITY {
        return Ok(None);
    }
    let late_s = with_losses - seconds;
    let predicted = seconds * correction + late_s;
    Ok(Some(Candidate { algorithm, parameters, predicted, late_s, places }))
}

/// The same in segments half and twice as long, where these are worth trying.
pub fn in_other_segments(parameters: Parameters, ranks: usize, bytes: usize) -> impl Iterator<Item = Parameters> {
    let both = [parameters.segment / 2, parameters.segment * 2].map(|s| s.next_multiple_of(64));
    let tried = both.into_iter().filter(move |&s| s >= LEAST_SEGMENT && s < bytes && bytes.div_ceil(s) <= most_tried(ranks));
    tried.map(move |segment| Parameters { by_speed: parameters.by_speed, ..Parameters::of(segment, parameters.radix) })
}

/// Twice as many messages under way, if some are held back and so many may be.
pub fn wider(in_flight: usize, pieces: usize) -> Option<usize> {
    (in_flight > 0 && in_flight < pieces).then_some(2 * in_flight).filter(|&more| more <= WINDOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_segments_are_none_that_are_lost_where_longer_ones_were_chosen() {
        let of = |from_bytes, to_bytes| Losses { from_bytes, to_bytes, share: 0.05, wait_s: 0.2 };
        let losses = of(4033, 66_559);
        let segment = |segment: usize, bytes: usize| even(Parameters::of(segment, 0), bytes, Some(&losses)).segment;
        // three of 58 KiB would be, after two of 88,896 B at the largest size of a class, and three of 62 KiB
        assert_eq!((segment(88_896, 178_000), segment(92_864, 190_000)), (89_024, 95_040));
        assert_eq!(segment(68_000, 70_000), 70_016, "the whole message, of which half may be lost");
        // shorter ones than that, and those that may be lost anyhow, are as many as they would be
        assert_eq!((segment(4000, 100_000), segment(8192, 100_000)), (4032, 7744));
        assert_eq!(
            even(Parameters::of(4000, 0), 100_000, Some(&of(4010, 66_559))).segment,
            4032,
            "no whole message in the place of short ones"
        );
        assert_eq!((segment(92_864, 90_000), segment(0, 90_000)), (92_864, 0), "no segments");
        assert_eq!(even(Parameters::of(92_864, 0), 178_000, None).segment, 92_864, "nothing is lost");
        // also where rounding leaves fewer segments than were counted
        for (losses, wanted) in [(of(4033, 66_559), 67_520), (of(4033, 66_559), 126_400), (of(1449, 10_000), 10_048)] {
            for bytes in (100_000..6_000_000).step_by(1009) {
                let one = even(Parameters::of(wanted, 0), bytes, Some(&losses)).segment;
                let rest = bytes - (bytes.div_ceil(one) - 1) * one;
                assert!(!losses.meet(one) && !losses.meet(rest), "{bytes} in {wanted}: {one}, {rest}");
            }
        }
    }

    #[test]
    fn other_segments_are_half_and_twice_as_long_where_they_are_worth_trying() {
        let others = |segment: usize, bytes: usize| {
            let of = Parameters { by_speed: true, ..Parameters::of(segment, 0) };
            in_other_segments(of, 24, bytes).map(|p| (p.segment, p.by_speed)).collect::<Vec<_>>()
        };
        assert_eq!(others(8 << 10, 1 << 20), [(4 << 10, true), (16 << 10, true)]);
        assert_eq!(others(768, 2 << 10), [(1536, true)], "384 bytes are too short");
        assert_eq!(others(4 << 10, 1 << 20), [(8 << 10, true)], "512 segments are too many");
        assert_eq!(others(8 << 10, 12_000), [(4 << 10, true)], "the whole message is no segment");
    }
}
