//! What is done in a collective that has forms: what a row says, or where no row fits, the form that is predicted to be the fastest.

use super::adapted::MORE_OR_LESS;
use super::form_flow::busiest_of_all;
use super::forms::{coordinated, in_bounded_segments, with_radices};
use super::segments::{BELOW_HANDSHAKE, few_segments};
use super::weight::Weight;
use super::{Form, LONGEST_MESSAGE, Location, PolyModel, placement, stand_in, untuned};
use crate::collective::{Collective, Parameters, Shape, Size};
use crate::decide::placed;
use crate::error::{Error, Result};
use crate::policy::{CompiledPolicy, Decision, TwoLevelRow, bounded};
use crate::predict::completion_within;
use crate::stats::{self, ROUNDING};
use crate::topology::Rank;
use crate::two_level::{Coordinated, IntraGroup, through};

/// A form, with what it should take.
#[derive(Debug, Clone)]
pub struct FormPlan {
    /// What is done.
    pub form: Form,
    /// The time it should take, in seconds; `None` of the library's own where it was not measured, and of what takes too long to predict.
    pub predicted_s: Option<f64>,
    /// True if it was measured over about these ranks; else it was chosen by prediction.
    pub from_row: bool,
    /// What was decided among the ranks of one group, if all are in one.
    pub decision: Option<Decision>,
    /// True if a message of it might be longer than [`LONGEST_MESSAGE`], so that everybody calls the library's own instead.
    pub too_long: bool,
}

/// Plans a collective that has these forms. The same input gives the same plan on every rank. It is decided at one size of a class
/// ([`CompiledPolicy::size_class`]), for all sizes of it and all roots in one group whose processors are alike; its time is that of the size asked for.
///
/// # Errors
/// The root is outside, the policy lacks a link, or an algorithm that there is not.
pub fn plan_form(policy: &CompiledPolicy, members: &[Location], collective: &'static Collective, shape: &Shape) -> Result<FormPlan> {
    let asked = class_of(policy, members, collective, shape)?;
    let plan = decide_form(policy, members, collective, &asked)?.for_shape(policy, members, collective, shape)?;
    let predicted_s = if shape.bytes == asked.bytes { plan.predicted_s } else { plan.seconds_at(policy, members, collective, shape)? };
    // of the library's own instead of it nothing is known
    Ok(FormPlan { predicted_s: predicted_s.filter(|_| !plan.too_long), ..plan })
}

/// The shape that stands for the class of another one.
///
/// # Errors
/// The root is outside.
pub(super) fn class_of(policy: &CompiledPolicy, members: &[Location], collective: &'static Collective, shape: &Shape) -> Result<Shape> {
    let (at, element) = (policy.size_class(collective, shape.bytes), shape.elements.bytes);
    // a root may be in place where others are not, and all must decide alike; of whole elements, and not none where there are some
    let bytes = if shape.bytes == 0 { 0 } else { (at / element).max(1) * element };
    Ok(Shape { bytes, root: stand_in(policy, members, collective, shape.root)?, in_place: false, ..*shape })
}

/// Decides what is done for a shape.
///
/// # Errors
/// As [`plan_form`].
pub(super) fn decide_form(
    policy: &CompiledPolicy,
    members: &[Location],
    collective: &'static Collective,
    shape: &Shape,
) -> Result<FormPlan> {
    let group = members[0].group;
    // where nothing was tuned of it, nobody knows that the library's own is slower
    let native = FormPlan::unknown(collective);
    // (what a barrier without rows does is predicted)
    if collective.sized() && untuned(policy, members, collective) {
        return Ok(native);
    }
    if members.iter().all(|m| m.group == group) {
        let decided = policy.decide(collective, group, &positions(members, shape), shape.bytes)?;
        // positions are in the order of ranks from the root on
        let order = |places: Vec<usize>| places.into_iter().map(|v| shape.absolute(v)).collect();
        // where what is lost hangs on who sends when, the ranks from the root on do what was decided for them
        let in_turn = || (collective.rooted && policy.loses(group)).then(|| (0..members.len()).collect());
        let form = match decided.places.clone().or_else(in_turn).filter(|_| shape.elements.commute || !collective.combines) {
            Some(places) => Form::Placed(collective, decided.algorithm, decided.parameters, order(places)),
            None => Form::Flat(collective, decided.algorithm, decided.parameters),
        };
        let predicted_s = Some(decided.predicted_s).filter(|s| s.is_finite());
        let from_row = decided.from_row;
        return Ok(FormPlan { from_row, decision: Some(decided), ..FormPlan::predicted(form, predicted_s) }.or_native(collective, shape));
    }
    let about_whole = |k: usize| policy.is_about_whole(k, members.iter().filter(|m| m.group == k).count());
    let row = policy.two_level(collective, shape.bytes).filter(|_| (0..policy.policy.groups.len()).all(about_whole));
    // an algorithm over all ranks goes by their numbers: where others have these, it crosses groups elsewhere
    let placed = || policy.is_as_measured(collective, members.len(), &placement(members));
    // rows were made with the root in the first group
    let from_there = !collective.rooted || members[shape.root].group == 0;
    if let Some(row) = row.filter(|row| from_there && (row.intra_group.is_some() || placed())) {
        let said = from_row(policy, members, collective, row, shape)?;
        // rows are made for operations that commute
        if said.form.fits(shape) {
            return Ok(said);
        }
    }
    Ok(predicted(policy, members, collective, shape)?.unwrap_or(native))
}

/// So many operations of candidates are predicted, where no row fits, with one more for each rank and candidate. The first may have as many alone, a few times
/// over.
const MOST_PREDICTED: usize = 1 << 19;
const MOST_OF_FIRST: usize = 4 * MOST_PREDICTED;
/// Among so many ranks it is fewer, and no more for the first: some 40 ms, for which all of them wait.
const MANY_RANKS: usize = 512;
const MOST_AMONG_MANY: usize = 3 << 15;
/// And so many are built to find out how many there are, which takes a fraction of that for each.
const MOST_BUILT: usize = 1 << 21;

/// What has too many operations to be predicted is taken to keep its busiest rank for this share of its time at least.
const BUSY: f64 = 0.25;

/// The form that is predicted to be the fastest, of what rows say, those of near sizes first, the nearest with any tree, and of the algorithms over
/// all ranks in one piece, long blocks in segments too. Where none can be predicted in time it is what the row of the nearest size says.
fn predicted(policy: &CompiledPolicy, members: &[Location], collective: &'static Collective, shape: &Shape) -> Result<Option<FormPlan>> {
    let mut rows: Vec<&TwoLevelRow> = policy.policy.two_level(collective).iter().collect();
    rows.sort_by_key(|row| (row.times_apart(shape.bytes), row.at_bytes));
    let costs = PolyModel::new(policy, members, collective, shape.bytes)?;
    let mut candidates: Vec<Form> = rows.into_iter().map(|row| form_of(&costs, members, collective, row, shape)).collect::<Result<_>>()?;
    let nearest = candidates.iter().find_map(Form::coordinated).cloned();
    for (nearest, through) in nearest.into_iter().filter_map(|nearest| Some((nearest, through(collective)?))) {
        let trees = (through.trees)().into_iter().flat_map(with_radices);
        let with = |(algorithm, parameters)| Coordinated { inside: IntraGroup { algorithm, parameters }, ..nearest.clone() };
        candidates.extend(trees.map(with).map(Form::Coordinated));
    }
    candidates.extend(collective.built().flat_map(with_radices).map(|(a, p)| Form::Flat(collective, a, p)));
    // long blocks that go from rank to rank do so in segments
    if collective.size == Size::Block && shape.bytes > BELOW_HANDSHAKE {
        let segmented = collective.built().filter(|algorithm| algorithm.segmented);
        candidates.extend(segmented.map(|algorithm| Form::Flat(collective, algorithm, Parameters::of(BELOW_HANDSHAKE, 0))));
    }
    candidates.extend(through_nearest(policy, members, collective, shape, candidates.iter().find_map(Form::coordinated)));
    let nearest_row = candidates.first().cloned();
    let many = shape.ranks >= MANY_RANKS;
    let (most, most_of_first) = if many { (MOST_AMONG_MANY, MOST_AMONG_MANY) } else { (MOST_PREDICTED, MOST_OF_FIRST) };
    let (mut left, mut seen, mut weighed): (usize, Vec<Form>, Vec<(Weight, Form)>) = (MOST_BUILT, Vec::new(), Vec::new());
    for form in candidates.into_iter().filter(|form| form.fits(shape)) {
        if seen.contains(&form) {
            continue;
        }
        let weight = form.weight(&costs, shape, if seen.is_empty() { most_of_first } else { most }, many)?;
        seen.push(form.clone());
        left = left.saturating_sub(weight.built);
        if left == 0 {
            break;
        }
        weighed.push((weight, form));
    }
    // after the first one as many are predicted as can be: through coordinators, in long segments, most of them; or those that may be the fastest
    let unlikely = |weight: &Weight| if many { weight.least_s } else { 0.0 };
    if let Some((_, others)) = weighed.split_first_mut() {
        let by_form = |form: &Form| form.coordinated().is_none();
        others.sort_by(|(a, f), (b, g)| {
            let likely = || unlikely(a).total_cmp(&unlikely(b));
            by_form(f).cmp(&by_form(g)).then_with(likely).then(a.operations.cmp(&b.operations))
        });
    }
    let nearest = weighed.first().filter(|(_, form)| Some(form) == nearest_row.as_ref());
    let nearest = nearest.map(|(weight, form)| (weight.operations > most_of_first, weight.least_s / BUSY, form.clone()));
    let (mut best, mut left, mut tried): (Option<FormPlan>, usize, Vec<Form>) = (None, most, Vec::new());
    for (k, (weight, form)) in weighed.into_iter().enumerate() {
        let first = k == 0 && weight.operations <= most_of_first;
        let Some(rest) = left.checked_sub(weight.operations).or(first.then_some(0)) else { continue };
        // what was measured comes first where it is not clearly beaten
        let limit_s = best
            .as_ref()
            .map_or(f64::INFINITY, |best| if Some(&best.form) == nearest_row.as_ref() { MORE_OR_LESS } else { 1.0 } * best.seconds());
        if weight.least_s > limit_s * ROUNDING {
            continue;
        }
        let form = form.with_flow(&costs, shape)?;
        if tried.contains(&form) {
            continue;
        }
        tried.push(form.clone());
        left = rest;
        let Some(predicted_s) = seconds(&form, &costs, members, (shape, weight.look), limit_s)? else { continue };
        if predicted_s < limit_s {
            best = Some(FormPlan::predicted(form, Some(predicted_s)));
        }
    }
    let faster = |nearest_s: f64| best.as_ref().is_none_or(|best| nearest_s < best.seconds());
    let unpredicted = nearest.filter(|&(too_large, nearest_s, _)| best.is_none() || (too_large && faster(nearest_s)));
    Ok(unpredicted.map(|(_, _, form)| FormPlan::predicted(form, None)).or(best))
}

/// What a form should take; `None` of what is too large to predict. What takes longer than `limit_s` may take for ever. Where it is looked at for its first
/// segments only, with the bytes of so many, the others take what the later half of these takes, or as long as these keep what is busiest, if that is longer: few
/// segments may not meet yet where many do.
fn seconds(
    form: &Form,
    costs: &PolyModel,
    members: &[Location],
    (shape, look): (&Shape, Option<usize>),
    limit_s: f64,
) -> Result<Option<f64>> {
    let predicted = |shape: &Shape| {
        let first = |bytes: usize| form.bounded_schedule(&Shape { bytes, ..*shape });
        let Some(bytes) = look else { return completion_within(&first(shape.bytes)?, costs, limit_s) };
        let all = first(bytes)?;
        let (few, more) = (completion_within(&first(bytes / 2)?, costs, limit_s)?, completion_within(&all, costs, limit_s)?);
        let halves_left = 2.0 * (shape.bytes - bytes) as f64 / bytes as f64;
        Ok(if more < f64::INFINITY { more + (more - few).max(busiest_of_all(&all, costs) / 2.0) * halves_left } else { more })
    };
    let first = match predicted(shape) {
        Err(Error::TooLarge(_)) => return Ok(None),
        found => found?,
    };
    // over all ranks, who crosses groups hangs on which of its group the root is
    let hangs = first < limit_s && matches!(form, Form::Flat(collective, ..) if collective.rooted);
    let other = || predicted(&Shape { root: another(members, shape.root), ..*shape });
    Ok(Some(if hangs { first.max(other()?) } else { first }))
}

/// The positions in a group, if all are in one, in the order of ranks from the root on.
fn positions(members: &[Location], shape: &Shape) -> Vec<usize> {
    (0..members.len()).map(|v| members[shape.absolute(v)].position).collect()
}

/// A rank in the middle of a root's group.
fn another(members: &[Location], root: Rank) -> Rank {
    let alike: Vec<Rank> = (0..members.len()).filter(|&r| members[r].group == members[root].group).collect();
    alike[alike.len() / 2]
}

/// Through coordinators with any algorithm between them and in segments that no row may have: as a whole and just below the handshake; with the tree of the
/// nearest row, or the first there is.
fn through_nearest(
    policy: &CompiledPolicy,
    members: &[Location],
    collective: &'static Collective,
    shape: &Shape,
    nearest: Option<&Coordinated>,
) -> Vec<Form> {
    let Some(through) = through(collective) else { return Vec::new() };
    let known = nearest.map(|c| (c.inside.algorithm, c.inside.parameters));
    let Some(inside) = known.or_else(|| (through.trees)().into_iter().flat_map(with_radices).next()) else { return Vec::new() };
    let groups = coordinated(policy, members, collective, shape, inside, inside, 0).groups;
    let segments = if through.segmented { few_segments(collective, (through.longest_message)(&groups, shape)) } else { vec![0] };
    let between = (through.between)().into_iter().flat_map(with_radices);
    let with = |between| {
        let coordinated = move |&segment: &usize| coordinated(policy, members, collective, shape, inside, between, segment);
        segments.iter().map(coordinated).map(Form::Coordinated).collect::<Vec<_>>()
    };
    between.flat_map(with).collect()
}

impl FormPlan {
    /// The library's own, of which nothing is known.
    fn unknown(collective: &'static Collective) -> FormPlan {
        FormPlan::predicted(Form::native(collective), None)
    }

    /// A form that prediction chose.
    pub fn predicted(form: Form, predicted_s: Option<f64>) -> FormPlan {
        FormPlan { form, predicted_s, from_row: false, decision: None, too_long: false }
    }

    /// True if everybody calls the library's own.
    pub fn is_native(&self) -> bool {
        self.form.is_native() || self.too_long
    }

    /// The time it should take; for ever, where it is not known.
    pub fn seconds(&self) -> f64 {
        self.predicted_s.unwrap_or(f64::INFINITY)
    }

    /// What was decided for a class, for one shape of it: the library's own where that does not fit. Its time stays that of the class.
    ///
    /// # Errors
    /// As [`Form::for_shape`].
    pub(super) fn for_shape(
        &self,
        policy: &CompiledPolicy,
        members: &[Location],
        collective: &'static Collective,
        shape: &Shape,
    ) -> Result<FormPlan> {
        let form = self.form.for_shape(policy, members, shape)?;
        let too_long = !form.is_native() && form.largest_message(shape) > LONGEST_MESSAGE;
        let FormPlan { predicted_s, from_row, .. } = *self;
        Ok(FormPlan { form, predicted_s, from_row, decision: self.decision.clone(), too_long }.or_native(collective, shape))
    }

    /// What it should take for a shape of another size than the one that stands for its class.
    fn seconds_at(
        &self,
        policy: &CompiledPolicy,
        members: &[Location],
        collective: &'static Collective,
        shape: &Shape,
    ) -> Result<Option<f64>> {
        if self.predicted_s.is_none() {
            return Ok(None);
        }
        if let Some(d) = &self.decision {
            let positions = placed(&positions(members, shape), &d.places);
            let d = Decision { parameters: bounded(d.parameters, shape.bytes), ..d.clone() };
            return Ok(Some(policy.decided_seconds(members[0].group, &positions, &d, shape.bytes)?).filter(|s| s.is_finite()));
        }
        match (self.from_row, self.form.is_native()) {
            (true, true) => Ok(native_seconds(policy, collective, shape.bytes)),
            (true, false) => Ok(Some(policy.two_level_seconds(collective, shape.bytes))),
            (false, _) => {
                seconds(&self.form, &PolyModel::new(policy, members, collective, shape.bytes)?, members, (shape, None), f64::INFINITY)
            }
        }
    }

    /// The library's own, where this was made for an operation that commutes and the shape's does not.
    fn or_native(self, collective: &'static Collective, shape: &Shape) -> FormPlan {
        if self.form.fits(shape) { self } else { FormPlan::unknown(collective) }
    }
}

/// What the library's own takes over all ranks of several groups, between the rows that it was measured for.
fn native_seconds(policy: &CompiledPolicy, collective: &'static Collective, bytes: usize) -> Option<f64> {
    let rows = policy.policy.two_level(collective).iter();
    let (sizes, times): (Vec<usize>, Vec<f64>) = rows.filter_map(|row| Some((row.at_bytes, row.evidence.native_s?))).unzip();
    (!sizes.is_empty()).then(|| stats::interpolate(&sizes, &times, bytes.max(sizes[0])))
}

/// The form that a row says, with the library's own where that is to run over all ranks.
fn from_row(
    policy: &CompiledPolicy,
    members: &[Location],
    collective: &'static Collective,
    row: &TwoLevelRow,
    shape: &Shape,
) -> Result<FormPlan> {
    let as_measured = || policy.is_as_measured(collective, members.len(), &placement(members));
    let native = row.evidence.native_s.filter(|_| row.native && as_measured());
    if native.is_some() {
        return Ok(FormPlan { from_row: true, ..FormPlan::predicted(Form::native(collective), native) });
    }
    let predicted_s = Some(policy.two_level_seconds(collective, shape.bytes));
    let costs = PolyModel::new(policy, members, collective, shape.bytes)?;
    Ok(FormPlan { from_row: true, ..FormPlan::predicted(form_of(&costs, members, collective, row, shape)?, predicted_s) })
}

/// The form that a row says, with what follows from the links where it says nothing.
///
/// # Errors
/// An algorithm that there is not, or the policy lacks a link.
fn form_of(costs: &PolyModel, members: &[Location], collective: &'static Collective, row: &TwoLevelRow, shape: &Shape) -> Result<Form> {
    let algorithm = collective.algorithm(&row.inter_group)?;
    let Some(inside) = &row.intra_group else { return Form::Flat(collective, algorithm, row.parameters()).with_flow(costs, shape) };
    let through = through(collective).ok_or_else(|| Error::invalid(format!("{} does not go through coordinators", collective.one())))?;
    let inside = (through.tree(inside)?, row.intra_parameters());
    let between = (algorithm, Parameters { segment: 0, ..row.parameters() });
    let coordinated = coordinated(costs.policy(), members, collective, shape, inside, between, row.segment_bytes);
    Form::Coordinated(in_bounded_segments(coordinated, shape)?).with_flow(costs, shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{Algorithm, collective};
    use crate::policy::Policy;
    use std::path::Path;

    /// Among many ranks pipelines are not replayed to their end.
    #[test]
    fn the_first_segments_tell_what_all_of_them_take() {
        let policy = CompiledPolicy::new(Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap()).unwrap();
        let of = |(group, g): (usize, &crate::policy::GroupPolicy)| (0..g.hosts.len()).map(move |position| Location { group, position });
        let members: Vec<Location> = policy.policy.groups.iter().enumerate().flat_map(of).collect();
        let (bytes, segment) = (2 << 20, 32 << 10);
        let mut ratios: Vec<(f64, String)> = Vec::new();
        for collective in ["reduce", "allreduce"].map(|name| collective(name).unwrap()) {
            let shape = collective.shape(members.len(), 0, bytes);
            let costs = PolyModel::new(&policy, &members, collective, bytes).unwrap();
            let through = through(collective).unwrap();
            let inside: Vec<(&'static Algorithm, Parameters)> = (through.trees)().into_iter().flat_map(with_radices).collect();
            let between = (through.between)().into_iter().flat_map(with_radices);
            for (k, between) in between.enumerate() {
                let form =
                    Form::Coordinated(coordinated(&policy, &members, collective, &shape, inside[k % inside.len()], between, segment));
                let form = form.with_flow(&costs, &shape).unwrap();
                let look = form.weight(&costs, &shape, usize::MAX, true).unwrap();
                let seconds = |look| seconds(&form, &costs, &members, (&shape, look), f64::INFINITY).unwrap().unwrap();
                let (seen, whole) = (seconds(Some(look.look.unwrap())), seconds(None));
                assert!(look.least_s <= whole, "{}: {} s at least, {whole} s", form.words(), look.least_s);
                ratios.push((seen / whole, form.words()));
            }
        }
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        let within = |range: std::ops::RangeInclusive<f64>| ratios.iter().filter(|(ratio, _)| range.contains(ratio)).count();
        // where coordinators exchange many messages for a segment, few segments miss how these meet
        assert!(ratios.len() > 10 && within(0.5..=1.5) == ratios.len() && 4 * within(0.8..=1.1) >= 3 * ratios.len(), "{ratios:?}");
    }
}
