//! Which of a library's algorithms is predicted to be the fastest over all ranks of a policy, by size.

use super::library::{Choice, LibraryAlgorithm, Target};
use crate::collective::{COLLECTIVES, Collective, NUMBER, Parameters, Shape};
use crate::decide::{AS_GOOD, LEAST_ACROSS, beats_native, halfway};
use crate::error::{Error, Result};
use crate::library::Library;
use crate::plan::{Location, PolyModel, placement, plan};
use crate::policy::CompiledPolicy;
use crate::predict::{Repeats, pipelined};
use serde::Serialize;
use std::collections::BTreeSet;

/// Segments worth trying, up to what is more than any pipeline wants; where groups are crossed, from [`LEAST_ACROSS`] on.
const SEGMENTS: [usize; 9] = [1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10];

/// What a library is told of a collective, on communicators of one number of ranks.
#[derive(Debug, Clone)]
pub struct Decisions {
    /// The collective.
    pub collective: &'static Collective,
    /// The number of ranks; communicators of any other number are left to the library.
    pub ranks: usize,
    /// What it is told, from size to size, the first from 0 on. Sizes are those of the policy: of a message, or of one block.
    pub rules: Vec<Rule>,
}

impl Decisions {
    /// True if the library is told anything.
    pub fn is_told(&self) -> bool {
        self.rules.iter().any(|rule| rule.choice.is_some())
    }

    /// The rule for a size.
    pub fn at(&self, bytes: usize) -> Option<&Rule> {
        self.rules.iter().rev().find(|rule| rule.from_bytes <= bytes)
    }

    /// Sizes at which something else may hold: where each rule begins, and the last before it.
    pub(super) fn edges(&self) -> impl Iterator<Item = usize> {
        self.rules.iter().flat_map(|rule| [rule.from_bytes.saturating_sub(1), rule.from_bytes, rule.from_bytes + 1])
    }

    /// Numbers of ranks at which something else may hold.
    pub(super) fn sizes_of_communicators(&self) -> [usize; 5] {
        [2, self.ranks - 1, self.ranks, self.ranks + 1, 2 * self.ranks]
    }

    /// What communicators of so many ranks do at a size.
    pub(super) fn among(&self, ranks: usize, bytes: usize) -> Option<Choice> {
        if ranks == self.ranks { self.at(bytes)?.choice } else { None }
    }
}

/// What a library is told from a size on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// It holds from this size up to the next rule's.
    pub from_bytes: usize,
    /// What it does; `None`: it decides by itself.
    pub choice: Option<Choice>,
}

/// What became of a class of sizes of the policy.
#[derive(Debug, Clone, Serialize)]
pub struct Class {
    /// It begins at this size.
    pub from_bytes: usize,
    /// The size that stands for it, at which times are.
    pub at_bytes: usize,
    /// What the policy does.
    pub policy: String,
    /// What that takes, in seconds, as far as it is known.
    pub policy_s: Option<f64>,
    /// What the library was measured to take by itself, in seconds, if it was.
    pub native_s: Option<f64>,
    /// What the library is told to do; `None`: it decides by itself.
    pub exported: Option<String>,
    /// What that is predicted to take, in seconds.
    pub exported_s: Option<f64>,
    /// Why the library is told nothing.
    pub why: Option<&'static str>,
}

const NATIVE: &str = "the policy has the library's own here";
const NOT_FASTER: &str = "nothing that it can be told is clearly faster than what it was measured to take by itself";
const WRONG: &str = "what is right for any operation is slower than what it may do by itself (see --all-commute)";
const NO_CHOICE: &str = "of no two of its algorithms the messages are known";
const NONE_FITS: &str = "nothing that it can be told is safe, or some of it is too large to be predicted";
const ONE_FOR_ALL: &str = "it can be told one algorithm for all sizes, and none is near the fastest at all of them";

/// One algorithm for all sizes may take so many times as long as the fastest at each; else the library, which changes algorithms by itself, may do better.
const NEAR_AT_ALL_SIZES: f64 = 1.1;
/// The policy's classes of sizes are divided where these are wider: what the library's algorithms do changes elsewhere than what the policy does.
const WIDE: usize = 4;
/// Sizes up to this take what an empty message takes, about.
const SHORT: usize = 256;

/// What to tell a library of each collective that the policy has rows for, and what became of each class of sizes. `commute`: all operations of the program
/// do.
///
/// # Errors
/// Those of planning and predicting; a policy of one rank, which communicates with nobody.
pub fn decide(policy: &CompiledPolicy, members: &[Location], target: &Target, commute: bool) -> Result<Vec<(Decisions, Vec<Class>)>> {
    if members.len() < 2 {
        return Err(Error::invalid(format!("export for {}: the policy is of one rank, which communicates with nobody", target.name)));
    }
    let tuned = COLLECTIVES.iter().copied().filter(|c| !policy.policy.size_classes(c).is_empty());
    tuned.map(|collective| Search { policy, members, target, collective, commute }.decide()).collect()
}

struct Search<'a> {
    policy: &'a CompiledPolicy,
    members: &'a [Location],
    target: &'a Target,
    collective: &'static Collective,
    commute: bool,
}

/// What was found for a class.
struct Found {
    class: Class,
    /// Every choice that was looked at, with its time; none where the library is to be left alone.
    all: Vec<(Choice, f64)>,
    taken: Option<(Choice, f64)>,
}

impl Search<'_> {
    fn decide(&self) -> Result<(Decisions, Vec<Class>)> {
        let mut found: Vec<Found> = Vec::new();
        for (from, at) in self.classes() {
            let before = found.last().and_then(|f| f.taken).map(|(choice, _)| choice);
            found.push(self.of_class(from, at, before)?);
        }
        if (self.target.one_for_all_sizes)(self.collective) {
            take_one(&mut found);
        }
        let mut rules: Vec<Rule> = Vec::new();
        for f in &mut found {
            f.class.exported = f.taken.map(|(choice, _)| choice.words());
            f.class.exported_s = f.taken.map(|(_, seconds)| seconds);
            let choice = f.taken.map(|(choice, _)| choice);
            if rules.last().is_none_or(|last| last.choice != choice) {
                rules.push(Rule { from_bytes: f.class.from_bytes, choice });
            }
        }
        let decisions = Decisions { collective: self.collective, ranks: self.members.len(), rules };
        Ok((decisions, found.into_iter().map(|f| f.class).collect()))
    }

    /// Where each class of sizes begins, the first at 0, with the size that stands for it.
    fn classes(&self) -> Vec<(usize, usize)> {
        let (policy, first) = (&self.policy.policy, self.members[0].group);
        let across = policy.two_level(self.collective).iter().map(|row| (row.from_bytes, row.at_bytes));
        let inside = policy.groups[first].rows(self.collective).iter().map(|row| (row.from_bytes, row.at_bytes));
        let one_group = self.members.iter().all(|m| m.group == first);
        let mut of_policy: Vec<(usize, usize)> = if one_group { inside.collect() } else { across.collect() };
        if of_policy.is_empty() {
            of_policy = policy.size_classes(self.collective);
        }
        let largest = of_policy.last().map_or(0, |last| last.1);
        let steps = std::iter::successors(Some(SHORT), |size| size.checked_mul(WIDE)).take_while(|&size| size < largest);
        let blocks = Some(self.members.len() * NUMBER).filter(|&least| self.collective.combines && least < largest);
        let begins: BTreeSet<usize> = of_policy.iter().skip(1).map(|class| class.0).chain(steps).chain(blocks).chain([0]).collect();
        let class = |&from: &usize| {
            let end = begins.range(from + 1..).next().copied();
            let made = of_policy.iter().map(|class| class.1).find(|at| *at >= from && end.is_none_or(|end| *at < end));
            (from, made.unwrap_or_else(|| end.map_or(from.max(largest), |end| halfway(from.max(1), end) / NUMBER * NUMBER).max(from)))
        };
        begins.iter().map(class).collect()
    }

    /// What is best for a class; what is taken before it stays where it is as good.
    fn of_class(&self, from_bytes: usize, at_bytes: usize, before: Option<Choice>) -> Result<Found> {
        let shape = self.collective.shape(self.members.len(), 0, at_bytes);
        let plan = plan(self.policy, self.members, self.collective, &shape)?;
        let mut class = Class {
            from_bytes,
            at_bytes,
            policy: plan.words(),
            policy_s: plan.predicted_s,
            native_s: self.native_seconds(at_bytes),
            exported: None,
            exported_s: None,
            why: None,
        };
        let no_choice = (self.target.algorithms)(self.collective).is_empty().then_some(NO_CHOICE);
        class.why = no_choice.or(plan.is_native().then_some(NATIVE));
        if class.why.is_some() {
            return Ok(Found { class, all: Vec::new(), taken: None });
        }
        let (all, by_itself_s) = self.predicted(&shape, from_bytes)?;
        let least = all.iter().map(|c| c.1).fold(f64::INFINITY, f64::min);
        let fastest = all.iter().find(|c| c.1 == least).copied();
        let same = all.iter().find(|c| Some(c.0) == before && c.1 <= least * AS_GOOD).copied();
        let taken = same.or(fastest);
        class.why = match (taken, class.native_s) {
            (None, _) => Some(NONE_FITS),
            (Some((_, own_s)), _) if own_s > by_itself_s * AS_GOOD => Some(WRONG),
            (Some((_, own_s)), Some(native_s)) if !beats_native(own_s, native_s, None) => Some(NOT_FASTER),
            _ => None,
        };
        let taken = taken.filter(|_| class.why.is_none());
        Ok(Found { all: if taken.is_some() { all } else { Vec::new() }, class, taken })
    }

    fn least_segment(&self) -> usize {
        let one_group = self.members.iter().all(|m| m.group == self.members[0].group);
        if one_group { SEGMENTS[0] } else { LEAST_ACROSS }
    }

    /// What the library itself was measured to take, if the policy was measured with it, over the ranks in this order.
    fn native_seconds(&self, bytes: usize) -> Option<f64> {
        let measured = Library::of(&self.policy.policy.provenance.library) == self.target.library;
        let as_measured = measured && self.policy.is_as_measured(self.collective, self.members.len(), &placement(self.members));
        self.policy.two_level(self.collective, bytes).filter(|_| as_measured)?.evidence.native_s
    }

    /// All that the library can be told, with what it takes; and the least that anything takes that it cannot be told, but may do by itself.
    fn predicted(&self, shape: &Shape, from_bytes: usize) -> Result<(Vec<(Choice, f64)>, f64)> {
        let costs = PolyModel::new(self.policy, self.members, self.collective, shape.bytes)?;
        let mut all = Vec::new();
        let (mut least, mut by_itself_s) = (f64::INFINITY, f64::INFINITY);
        for library in (self.target.algorithms)(self.collective) {
            let algorithm = library.algorithm;
            let safe = self.commute || self.target.knows_commuting || !library.commuting;
            let few = library.blocks && from_bytes < shape.ranks * NUMBER;
            if few || !(library.fits)(shape.ranks) || !(algorithm.fits)(shape) {
                continue;
            }
            // by itself it cuts nothing into segments
            for choice in choices(library, algorithm.exchanges_halves, self.least_segment(), (shape, from_bytes))
                .into_iter()
                .filter(|c| safe || c.segment == 0)
            {
                let parameters = Parameters::of(choice.segment, choice.fan_out);
                let of = |bytes: usize| {
                    let part = Shape { bytes, ..*shape };
                    let schedule = algorithm.bounded_schedule(&part, &parameters)?;
                    schedule.ok_or_else(|| Error::invalid(format!("predict {}: its messages are not known", library.name)))
                };
                let repeats = Repeats { segment: self.collective.repeats(algorithm, &parameters), turn: 1, in_flight: 0 };
                // one for all sizes may be far from the fastest at some
                let limit = if (self.target.one_for_all_sizes)(self.collective) { f64::INFINITY } else { least * AS_GOOD };
                match pipelined(shape.bytes, repeats, &costs, limit, of) {
                    Ok(seconds) if !safe => by_itself_s = by_itself_s.min(seconds),
                    Ok(seconds) if seconds.is_finite() => {
                        least = least.min(seconds);
                        all.push((choice, seconds));
                    }
                    // what nobody can predict may be the fastest
                    Err(Error::TooLarge(_)) if choice.segment == 0 => return Ok((Vec::new(), f64::INFINITY)),
                    Ok(_) | Err(Error::TooLarge(_)) => {}
                    Err(e) => return Err(e),
                }
            }
        }
        Ok((all, by_itself_s))
    }
}

/// An algorithm with all that can be chosen about it.
fn choices(algorithm: &'static LibraryAlgorithm, halves: bool, least: usize, (shape, from_bytes): (&Shape, usize)) -> Vec<Choice> {
    // Open MPI sends halves that are shorter than a segment along a chain instead
    let longest = if halves { from_bytes / 2 } else { shape.bytes.saturating_sub(1) };
    let segments = SEGMENTS.into_iter().filter(|&s| algorithm.segmented && (least..=longest).contains(&s));
    let fan_outs = algorithm.fan_outs.iter().copied().filter(|&f| f + 1 < shape.ranks);
    let fan_outs: Vec<usize> = if algorithm.fan_outs.is_empty() { vec![0] } else { fan_outs.collect() };
    let all = std::iter::once(0).chain(segments);
    all.flat_map(|segment| fan_outs.iter().map(move |&fan_out| Choice { algorithm, segment, fan_out })).collect()
}

/// Takes one choice for all classes: the one that misses the fastest the least where it misses it most.
fn take_one(found: &mut [Found]) {
    let missed = |f: &Found, choice: &Choice| {
        let least = f.all.iter().map(|c| c.1).fold(f64::INFINITY, f64::min);
        f.all.iter().find(|c| c.0 == *choice).map_or(f64::INFINITY, |c| c.1 / least)
    };
    let worst = |choice: &Choice| found.iter().map(|f| missed(f, choice)).fold(0.0, f64::max);
    let first = found.first().map_or(&[][..], |f| &f.all);
    let best = first.iter().map(|c| c.0).min_by(|a, b| worst(a).total_cmp(&worst(b))).filter(|c| worst(c) <= NEAR_AT_ALL_SIZES);
    for f in found {
        f.taken = best.and_then(|best| f.all.iter().find(|c| c.0 == best).copied());
        if f.taken.is_none() && f.class.why.is_none() {
            f.class.why = Some(ONE_FOR_ALL);
        }
    }
}
