//! How messages cross groups: ways that the poly-model predicts to be fast are measured over all ranks, beside the library's own
//! broadcast.

use crate::collective::{Algorithm, Hierarchy, Parameters, bcast};
use crate::error::Result;
use crate::intercluster::{ROUTES, RouteKind};
use crate::measure::{Experiment, Session};
use crate::plan::{self, Member, Way, hierarchy, placement, predict};
use crate::policy::{Across, CompiledPolicy, OWN, Policy};
use crate::select::all_candidates;
use crate::stats;
use crate::topology::Rank;

/// Segments below this cost more in overheads than they win in overlap.
const LEAST_SEGMENT: usize = 4 << 10;
/// The neighbours of each route's best way are measured, and those of the best among them, so many times.
const ROUNDS: usize = 3;
/// A message is cut into at most so many segments.
const MOST_SEGMENTS: usize = 512;
/// The sizes that ways are chosen at; a choice holds for the sizes near its own, the last one for all larger ones.
const SIZES: [usize; 11] = [1, 1 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20];
/// Medians closer than this are told apart only by their intervals.
const NATIVE_MARGIN: f64 = 0.05;

/// Ways expected to take so many times the best one's time are not measured, nor are neighbours of those measured to.
const HOPELESS: f64 = 1.35;

/// Neighbours of a way that is faster than one whose neighbours were measured by less than this share are not measured.
const ALIKE: f64 = 0.01;

/// A way whose first run takes so many times the shortest run at its size is not run again.
const FIRST_RUN: f64 = 1.25;

/// A way with what it makes of a message.
struct Candidate {
    /// None: the whole message, and inside each group what its own row says.
    way: Option<Way>,
    hierarchy: Hierarchy,
    predicted: f64,
}

impl Candidate {
    fn route(&self) -> Option<RouteKind> {
        self.way.map(|w| w.route)
    }
}

/// What the best way of each route taught at one size: what a prediction misses, it misses at the next size too.
#[derive(Default)]
struct Lessons(Vec<Lesson>);

struct Lesson {
    way: Option<Way>,
    /// Measured over predicted.
    ratio: f64,
    /// Measured over the fastest of all.
    behind: f64,
}

impl Lessons {
    fn of(session: &Session, candidates: &[Candidate]) -> Lessons {
        let best = best_of_routes(session, candidates, f64::INFINITY);
        let shortest = best.first().map_or(f64::NAN, |b| b.1);
        let lesson =
            |(c, time): (&Candidate, f64)| Lesson { way: c.way, ratio: time / c.predicted.max(f64::MIN_POSITIVE), behind: time / shortest };
        Lessons(best.into_iter().map(lesson).collect())
    }

    /// What a candidate will take.
    fn expect(&self, candidate: &Candidate) -> f64 {
        let lesson = self.0.iter().find(|l| l.way.map(|w| w.route) == candidate.route());
        candidate.predicted * lesson.map_or(1.0, |l| l.ratio)
    }
}

/// Chooses a way for each size, and says how ranks were placed. `ranks` are the ranks of each group of the policy, in the order of its
/// positions. `exhaustive`: all ways are measured, and every algorithm over all ranks, which no policy uses.
///
/// # Errors
/// The session's.
pub fn choose(session: &mut Session, policy: &Policy, ranks: &[Vec<Rank>], exhaustive: bool) -> Result<(Vec<Across>, String)> {
    let compiled = CompiledPolicy::new(policy.clone())?;
    let mut members = vec![Member { group: 0, position: 0 }; session.ranks()];
    for (group, ranks) in ranks.iter().enumerate() {
        ranks.iter().enumerate().for_each(|(position, &r)| members[r] = Member { group, position });
    }
    let everybody: Vec<Rank> = (0..session.ranks()).collect();
    let native = |bytes: usize| Experiment::Broadcast {
        ranks: everybody.clone(),
        root: 0,
        bytes,
        algorithm: "native".into(),
        parameters: Parameters::default(),
    };
    let has_native = session.has_native();
    let mut by_size: Vec<Vec<Candidate>> = Vec::new();
    let mut lessons = Lessons::default();
    let field = |bytes: usize, candidates: &[Candidate]| {
        let native = has_native.then(|| native(bytes));
        candidates.iter().map(experiment).chain(native).collect::<Vec<Experiment>>()
    };
    for bytes in SIZES {
        let measure = |session: &mut Session, purpose: &str, candidates: &[Candidate]| {
            let field = field(bytes, candidates);
            if exhaustive { session.measure(purpose, &field) } else { session.race(purpose, &[field], Some(FIRST_RUN)) }
        };
        let mut of_size =
            if exhaustive { all_ways(&compiled, &members, bytes)? } else { candidates(&compiled, &members, bytes, &lessons)? };
        measure(session, "ways across groups", &of_size)?;
        // the best of each route is tried with other segments, and the best pipeline with other trees, since their speed is a matter of
        // the processors and ports that ranks share, which predictions know least of; until each is the best of its neighbours
        let segments = segment_sizes(&compiled, bytes);
        let mut tried: Vec<(RouteKind, bool, f64)> = Vec::new();
        for _ in 0..ROUNDS {
            let best = best_of_routes(session, &of_size, HOPELESS);
            let best: Vec<(Way, f64)> = best.into_iter().filter_map(|(c, time)| Some((c.way?, time))).collect();
            for (k, (best, time)) in best.into_iter().enumerate() {
                let known =
                    |&(route, all, before): &(RouteKind, bool, f64)| route == best.route && (all || k > 0) && time > before * (1.0 - ALIKE);
                if tried.iter().any(known) {
                    continue;
                }
                tried.push((best.route, k == 0, time));
                let beside = neighbours(&segments, best.segment).filter(|_| best.route.is_segmented());
                let mut more: Vec<Way> = beside.map(|segment| Way { segment, ..best }).collect();
                if k == 0 && best.route.has_trees() {
                    more.extend(bcast::trees().map(|local| Way { local, ..best }));
                }
                for way in more {
                    let candidate = segmented(&compiled, &members, bytes, way)?;
                    if of_size.iter().all(|c| c.hierarchy != candidate.hierarchy) {
                        of_size.push(candidate);
                    }
                }
            }
            measure(session, "neighbours of the best ways", &of_size)?;
        }
        lessons = Lessons::of(session, &of_size);
        by_size.push(of_size);
    }
    if exhaustive {
        // what one would measure who knows of no groups
        let plain = |bytes: usize| {
            let of = move |(algorithm, parameters): (&Algorithm, Parameters)| (bytes, algorithm.name.to_string(), parameters);
            all_candidates(bytes).into_iter().map(of)
        };
        let plain: Vec<Experiment> = SIZES
            .into_iter()
            .flat_map(plain)
            .map(|(bytes, algorithm, parameters)| Experiment::Broadcast { ranks: everybody.clone(), root: 0, bytes, algorithm, parameters })
            .collect();
        session.measure("every algorithm over all ranks", &plain)?;
        let fields: Vec<Vec<Experiment>> = SIZES.iter().zip(&by_size).map(|(&bytes, of_size)| field(bytes, of_size)).collect();
        session.again("the fastest, once more", &fields)?;
    }
    let mut rows: Vec<Across> =
        SIZES.iter().zip(&by_size).filter_map(|(&bytes, of_size)| row(session, bytes, of_size, &native(bytes))).collect();
    // a row begins half way (in factors) between its size and the one before
    for k in (1..rows.len()).rev() {
        rows[k].from_bytes = ((rows[k - 1].at_bytes as f64 * rows[k].at_bytes as f64).sqrt().ceil() as usize).max(1);
    }
    Ok((rows, placement(&members)))
}

/// The fastest candidate as measured, with its time.
fn fastest<'a>(session: &Session, candidates: &'a [Candidate]) -> Option<(&'a Candidate, f64)> {
    let measured = candidates.iter().filter_map(|c| Some((c, session.samples().median(&experiment(c))?)));
    measured.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// The fastest candidate of each route as measured, the fastest first, without those that take more than so many times the fastest one's.
fn best_of_routes<'a>(session: &Session, candidates: &'a [Candidate], limit: f64) -> Vec<(&'a Candidate, f64)> {
    let measured = candidates.iter().filter_map(|c| Some((c, session.samples().median(&experiment(c))?)));
    let mut measured: Vec<(&Candidate, f64)> = measured.collect();
    measured.sort_by(|a, b| a.1.total_cmp(&b.1));
    let limit = measured.first().map_or(0.0, |m| m.1 * limit);
    let mut best: Vec<(&Candidate, f64)> = Vec::new();
    for (candidate, time) in measured.into_iter().take_while(|m| m.1 <= limit) {
        if best.iter().all(|(b, _)| b.route() != candidate.route()) {
            best.push((candidate, time));
        }
    }
    best
}

/// The next smaller and the next larger segment size; 0 is the whole message.
fn neighbours(sizes: &[usize], segment: usize) -> impl Iterator<Item = usize> {
    let place = sizes.iter().position(|&s| s == segment);
    let beside = place.map_or([None; 2], |k| [k.checked_sub(1), Some(k + 1)]);
    beside.into_iter().flatten().filter_map(|k| sizes.get(k).copied())
}

fn experiment(candidate: &Candidate) -> Experiment {
    Experiment::Hierarchical { hierarchy: candidate.hierarchy.clone() }
}

/// Every way: each route with each tree and each segment, and the whole message.
fn all_ways(policy: &CompiledPolicy, members: &[Member], bytes: usize) -> Result<Vec<Candidate>> {
    let sizes = segment_sizes(policy, bytes);
    let mut all = vec![whole(policy, members, bytes)?];
    for route in ROUTES {
        for local in bcast::trees().filter(|t| route.has_trees() || t.name == "chain") {
            for &segment in sizes.iter().filter(|&&s| s == 0 || route.is_segmented()) {
                all.push(segmented(policy, members, bytes, Way { route, segment, local })?);
            }
        }
    }
    Ok(all)
}

fn segmented(policy: &CompiledPolicy, members: &[Member], bytes: usize, way: Way) -> Result<Candidate> {
    let hierarchy = hierarchy(policy, members, 0, bytes, way)?;
    Ok(Candidate { way: Some(way), predicted: predict(policy, members, &hierarchy)?, hierarchy })
}

fn whole(policy: &CompiledPolicy, members: &[Member], bytes: usize) -> Result<Candidate> {
    let plan = plan::whole(policy, members, 0, bytes)?;
    Ok(Candidate { way: None, hierarchy: plan.hierarchy, predicted: plan.predicted_s })
}

/// The best way of each route as predicted, and the one that was best at the size before, unless they are hopeless.
fn candidates(policy: &CompiledPolicy, members: &[Member], bytes: usize, lessons: &Lessons) -> Result<Vec<Candidate>> {
    let sizes = segment_sizes(policy, bytes);
    let mut found = vec![whole(policy, members, bytes)?];
    for route in ROUTES {
        let mut best: Option<Candidate> = None;
        for local in bcast::trees().filter(|t| route.has_trees() || t.name == "chain") {
            for &segment in sizes.iter().filter(|&&s| s == 0 || route.is_segmented()) {
                let candidate = segmented(policy, members, bytes, Way { route, segment, local })?;
                if best.as_ref().is_none_or(|b| candidate.predicted < b.predicted) {
                    best = Some(candidate);
                }
            }
        }
        found.extend(best);
    }
    // a route of which only poor ways were tried may be better than the lesson says
    let least = |of: &dyn Fn(&Candidate) -> f64| found.iter().map(of).fold(f64::INFINITY, f64::min) * HOPELESS;
    let limits = (least(&|c| c.predicted), least(&|c| lessons.expect(c)));
    found.retain(|c| c.predicted <= limits.0 || lessons.expect(c) <= limits.1);
    for way in lessons.0.iter().filter(|l| l.behind <= HOPELESS).filter_map(|l| l.way).filter(|w| sizes.contains(&w.segment)) {
        found.push(segmented(policy, members, bytes, way)?);
    }
    let mut chosen: Vec<Candidate> = Vec::new();
    for candidate in found {
        if chosen.iter().all(|c| c.hierarchy != candidate.hierarchy) {
            chosen.push(candidate);
        }
    }
    Ok(chosen)
}

/// Segment sizes to try: powers of two, the sizes that the links were measured at (which lie close on both sides of where the library
/// changes its protocol), and the whole message.
fn segment_sizes(policy: &CompiledPolicy, bytes: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = (12..24).map(|i| 1 << i).collect();
    for link in &policy.policy.links {
        sizes.extend(link.model.tables.get("bytes").iter().flat_map(|t| &t.value).map(|&s| s as usize));
    }
    sizes.retain(|&s| s >= LEAST_SEGMENT && s < bytes && bytes.div_ceil(s) <= MOST_SEGMENTS);
    sizes.sort_unstable();
    sizes.dedup();
    // of sizes that differ by less than a tenth, the smaller: it is on the safe side of a limit
    let mut kept: Vec<usize> = Vec::new();
    for s in sizes {
        if kept.last().is_none_or(|&k| s as f64 > k as f64 * 1.1) {
            kept.push(s);
        }
    }
    kept.push(0);
    kept
}

/// The row of a size: the fastest candidate as measured, and whether the library's own is to be preferred.
fn row(session: &Session, bytes: usize, candidates: &[Candidate], native: &Experiment) -> Option<Across> {
    let interval = |e: &Experiment| session.samples().get(e).and_then(|s| stats::median_interval(&s.seconds));
    let (best, time) = fastest(session, candidates)?;
    let rivals = candidates.iter().filter(|c| c.hierarchy != best.hierarchy);
    let rivals = rivals.filter_map(|c| Some((c, session.samples().median(&experiment(c))?)));
    let runner_up = rivals.min_by(|a, b| a.1.total_cmp(&b.1));
    let native_s = session.samples().median(native);
    // adaptive must never be a loss: what is not clearly faster stays with the library
    let clearly = match (interval(&experiment(best)), interval(native)) {
        (Some((_, high)), Some((low, _))) => high < low,
        _ => false,
    };
    Some(Across {
        from_bytes: 0,
        at_bytes: bytes,
        route: best.way.map_or(RouteKind::Tree, |w| w.route),
        segment_bytes: best.way.map_or(0, |w| if w.segment < bytes { w.segment } else { 0 }),
        local: best.way.map_or(OWN, |w| w.local.name).into(),
        predicted_s: best.predicted,
        measured_s: Some(time),
        runner_up: runner_up.map_or("none".into(), |(c, _)| c.way.map_or(OWN.into(), |w| w.words(bytes))),
        margin: runner_up.map_or(0.0, |(_, t)| t / time - 1.0),
        native_s,
        native: native_s.is_some_and(|n| !clearly && time * (1.0 + NATIVE_MARGIN) > n),
    })
}
