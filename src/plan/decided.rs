//! What is planned for a collective: what a row says, or where no row fits, what is predicted to be the fastest.

use super::adapted::MORE_OR_LESS;
use super::beyond;
use super::common::{Common, InsideGroups};
use super::decider::Decider;
use super::farthest_first::serves_each;
use super::fastest::{another as another_root, fastest, seconds};
use super::forms::{coordinated, forms, in_bounded_segments};
use super::routed::{Choice, Routed};
use super::{Form, LONGEST_MESSAGE, Location, OWN, PolyModel, placement, stand_in, untuned};
use crate::collective::{Collective, Parameters, Shape};
use crate::decide::placed;
use crate::error::Result;
use crate::policy::{CompiledPolicy, Decision, TwoLevelRow, bounded};
use crate::stats;
use crate::two_level::{has_routes, through_coordinators};
use std::sync::Arc;

/// Above its own size a row holds up to so many times that: rows are made fourfold or nearer, and end halfway between two.
const REACH: usize = 2;

/// In a group whose processors differ, forms through its first rank are tried where all ranks have so many bytes at most: all of them wait while these are
/// replayed, some 50 ms there, and half a second for 4 MiB of each of 150 ranks.
const MOST_TRIED: usize = 8 << 20;

/// A plan.
#[derive(Debug, Clone)]
pub struct Plan {
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
    /// Where it was chosen by prediction over several groups: the next best of what was predicted to its end.
    pub next: Option<NextBest>,
}

/// What was predicted beside what was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct NextBest {
    /// What it does, in words.
    pub words: String,
    /// How much longer it should take, as a share.
    pub margin: f64,
}

/// Plans a collective. The same input gives the same plan on every rank.
///
/// It is decided at one size of a class ([`CompiledPolicy::size_class`]), for all sizes of it and all roots in one group whose processors are alike, so that
/// a new size costs no new decision ([`super::Planner`]); its time is that of the size asked for.
///
/// # Errors
/// The root is outside, the policy lacks a link, or an algorithm that there is not.
pub fn plan(policy: &CompiledPolicy, members: &[Location], collective: &'static Collective, shape: &Shape) -> Result<Plan> {
    Decider::new(policy, members).plan(collective, shape)
}

/// Sizes and roots for which the same is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Class {
    pub collective: &'static Collective,
    /// What stands for it.
    pub shape: Shape,
    /// True if its sizes are above all that were measured; of what does not go along routes, over several groups.
    pub above: bool,
}

/// What is decided for a class.
pub(super) enum Decided {
    /// A form, which is the same from all roots but for who has which part in it.
    Form(Plan),
    /// Routes, on which it hangs on the root who sends to whom.
    Routes(Choice),
}

impl Class {
    /// The one that a shape is in.
    ///
    /// # Errors
    /// The root is outside.
    pub(super) fn of(policy: &CompiledPolicy, members: &[Location], collective: &'static Collective, shape: &Shape) -> Result<Class> {
        let (at, element) = (policy.size_class(collective, shape.bytes), shape.elements.bytes);
        // a root may be in place where others are not, and all must decide alike; of whole elements, and not none where there are some
        let bytes = if shape.bytes == 0 && !has_routes(collective) { 0 } else { (at / element).max(1) * element };
        let first = stand_in(policy, members, collective, shape.root)?;
        // rows were made from the first of the first group
        let another = shape.root != first && members[first].group == 0 && hangs_on_root(collective, policy.two_level(collective, at));
        let root = if another { another_root(members, first) } else { first };
        let over_groups = || policy.policy.two_level(collective).last().map_or(usize::MAX, |row| row.at_bytes);
        let largest = if has_routes(collective) { policy.largest_measured(collective) } else { over_groups() };
        let above = shape.bytes > largest;
        Ok(Class { collective, shape: Shape { bytes, root, in_place: false, ..*shape }, above })
    }
}

/// True if who crosses groups in what a row says hangs on which rank of its group the root is: in a tree over all ranks.
fn hangs_on_root(collective: &'static Collective, row: Option<&TwoLevelRow>) -> bool {
    let tree = |row: &TwoLevelRow| row.intra_group.is_none() && collective.algorithm(&row.inter_group).is_ok_and(|a| !serves_each(a));
    collective.rooted && row.is_some_and(tree)
}

/// Decides what is done for a class. What trees take inside groups may be known.
///
/// # Errors
/// As [`plan`].
pub(super) fn decide(policy: &CompiledPolicy, members: &[Location], class: &Class, inside: &Arc<InsideGroups>) -> Result<Decided> {
    if has_routes(class.collective) {
        let common = Common::knowing(policy, members, Arc::clone(inside));
        return Ok(Decided::Routes(Choice::new(common, class.shape.root, class.shape.bytes, class.above)?));
    }
    Ok(Decided::Form(decide_form(policy, members, class.collective, &class.shape)?))
}

fn decide_form(policy: &CompiledPolicy, members: &[Location], collective: &'static Collective, shape: &Shape) -> Result<Plan> {
    let group = members[0].group;
    // where nothing was tuned of it, nobody knows that the library's own is slower
    let native = Plan::unknown(collective);
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
        let plan = Plan { from_row, decision: Some(decided), ..Plan::predicted(form, predicted_s) };
        return Ok(through_first(policy, members, &plan, shape)?.unwrap_or(plan).or_native(shape));
    }
    let about_whole = |k: usize| policy.is_about_whole(k, members.iter().filter(|m| m.group == k).count());
    let row = policy.two_level(collective, shape.bytes).filter(|_| (0..policy.policy.groups.len()).all(about_whole));
    // an algorithm over all ranks goes by their numbers: where others have these, it crosses groups elsewhere
    let placed = || policy.is_as_measured(collective, members.len(), &placement(members));
    // rows were made with the root in the first group, trees over all ranks from the first of it, and the last one says nothing of much larger sizes
    let from_there = !collective.rooted || members[shape.root].group == 0;
    let first = || members[..shape.root].iter().all(|m| m.group != 0);
    let near = |row: &TwoLevelRow| shape.bytes <= row.at_bytes || row.times_apart(shape.bytes) <= REACH;
    let over_all = |row: &TwoLevelRow| placed() && (first() || !hangs_on_root(collective, Some(row)));
    let holds = |row: &TwoLevelRow| near(row) && (row.intra_group.is_some() || over_all(row));
    if let Some(row) = row.filter(|row| from_there && (holds(row) || is_native(policy, members, collective, row))) {
        let said = from_row(policy, members, collective, row, shape)?;
        // rows are made for operations that commute
        if said.form.fits(shape) {
            return Ok(said);
        }
    }
    Ok(fastest(policy, members, collective, shape)?.unwrap_or(native))
}

/// Where processors of a group differ, what goes through its first rank, up a tree and down again, if that is predicted to be faster than what was decided: what
/// all ranks do alike takes as long as the slowest of them.
fn through_first(policy: &CompiledPolicy, members: &[Location], decided: &Plan, shape: &Shape) -> Result<Option<Plan>> {
    let Some(decision) = &decided.decision else { return Ok(None) };
    let is_large = shape.bytes.saturating_mul(shape.ranks) > MOST_TRIED;
    if !policy.has_unlike_processors(members[0].group) || decided.is_native() || is_large {
        return Ok(None);
    }
    let evidence =
        policy.policy.groups[members[0].group].row(decision.collective, shape.bytes).filter(|_| decided.from_row).map(|r| &r.evidence);
    // of what was not measured predictions may miss as much as of what was
    let missed = evidence.and_then(|known| Some(known.measured_s? / known.predicted_s)).map_or(0.0, |ratio| (ratio - 1.0).abs());
    let limit_s = (MORE_OR_LESS - missed) * decided.seconds();
    let all = forms(policy, members, decision.collective, shape, 1.0)?;
    let found = all.into_iter().find(|plan| plan.form.coordinated().is_some()).filter(|plan| plan.seconds() < limit_s);
    Ok(found.map(|plan| {
        let next = NextBest { words: decided.words(), margin: stats::margin(decided.seconds(), plan.seconds()) };
        Plan { next: Some(next), ..plan }
    }))
}

/// The positions in a group, if all are in one, in the order of ranks from the root on.
fn positions(members: &[Location], shape: &Shape) -> Vec<usize> {
    (0..members.len()).map(|v| members[shape.absolute(v)].position).collect()
}

impl Plan {
    /// The library's own, of which nothing is known.
    fn unknown(collective: &'static Collective) -> Plan {
        Plan::predicted(Form::native(collective), None)
    }

    /// A form that prediction chose.
    pub fn predicted(form: Form, predicted_s: Option<f64>) -> Plan {
        Plan { form, predicted_s, from_row: false, decision: None, too_long: false, next: None }
    }

    /// The routes that it goes along, if it does.
    pub fn routed(&self) -> Option<&Routed> {
        if let Form::Routed(routed) = &self.form { Some(routed) } else { None }
    }

    /// True if everybody calls the library's own.
    pub fn is_native(&self) -> bool {
        self.form.is_native() || self.too_long
    }

    /// What is done, in a line.
    pub fn words(&self) -> String {
        if self.is_native() { OWN.into() } else { self.form.words() }
    }

    /// The time it should take; for ever, where it is not known.
    pub fn seconds(&self) -> f64 {
        self.predicted_s.unwrap_or(f64::INFINITY)
    }

    /// What was decided for a class, for one shape of it: the library's own where that does not fit. Its time stays that of the class.
    ///
    /// # Errors
    /// As [`Form::for_shape`].
    pub(super) fn for_shape(&self, policy: &CompiledPolicy, members: &[Location], class: &Class, shape: &Shape) -> Result<Plan> {
        if let Some(native) = self.native_above(policy, members, class, shape) {
            return Ok(native);
        }
        let form = self.form.for_shape(policy, members, shape)?;
        let too_long = !form.is_native() && form.largest_message(shape) > LONGEST_MESSAGE;
        Ok(Plan { form, too_long, ..self.clone() }.or_native(shape))
    }

    /// The same with its time, which may be that of another size than the one that stands for its class.
    pub(super) fn timed(self, policy: &CompiledPolicy, members: &[Location], class: &Class, shape: &Shape) -> Result<Plan> {
        if let Form::Routed(routed) = self.form {
            let stands = (shape.bytes, shape.root) == (class.shape.bytes, class.shape.root);
            let routed = routed.timed(policy, members, stands)?;
            let native_s = routed.beyond.map(|beyond| beyond.native_at(shape.bytes));
            let timed = Plan { next: self.next, ..Plan::from(routed) };
            return Ok(if self.too_long { Plan { predicted_s: native_s, too_long: true, ..timed } } else { timed });
        }
        let predicted_s = if shape.bytes == class.shape.bytes { self.predicted_s } else { self.seconds_at(policy, members, shape)? };
        // of the library's own instead of it nothing is known
        Ok(Plan { predicted_s: predicted_s.filter(|_| !self.too_long), ..self })
    }

    /// What it should take for a shape of another size than the one that stands for its class.
    fn seconds_at(&self, policy: &CompiledPolicy, members: &[Location], shape: &Shape) -> Result<Option<f64>> {
        if self.predicted_s.is_none() {
            return Ok(None);
        }
        let collective = self.form.collective();
        if let Some(d) = &self.decision {
            let positions = placed(&positions(members, shape), &d.places);
            let d = Decision { parameters: bounded(d.parameters, shape.bytes), ..d.clone() };
            return Ok(Some(policy.decided_seconds(members[0].group, &positions, &d, shape.bytes)?).filter(|s| s.is_finite()));
        }
        match (self.from_row, self.form.is_native()) {
            (true, true) => Ok(native_seconds(policy, collective, shape.bytes)),
            (true, false) => Ok(policy.two_level_seconds(collective, shape.bytes)),
            (false, _) => {
                seconds(&self.form, &PolyModel::new(policy, members, collective, shape.bytes)?, members, (shape, None), f64::INFINITY)
            }
        }
    }

    /// The library's own for a size above all that were measured over several groups, where it was measured at the largest of them among these ranks, and what was
    /// decided for the class is not expected to win by enough: what is faster between ranks that come together may keep their processors and memory busy longer,
    /// which delays whatever else they do.
    fn native_above(&self, policy: &CompiledPolicy, members: &[Location], class: &Class, shape: &Shape) -> Option<Plan> {
        let collective = class.collective;
        if !class.above || has_routes(collective) || self.form.is_native() {
            return None;
        }
        let from_there = !collective.rooted || members[shape.root].group == 0;
        // it was measured with an operation that commutes
        let known =
            policy.policy.two_level(collective).last()?.evidence.native_s.is_some() && (shape.elements.commute || !collective.combines);
        if !known || !from_there || !policy.is_as_measured(collective, members.len(), &placement(members)) {
            return None;
        }
        let native_s = native_seconds(policy, collective, shape.bytes)?;
        let more = shape.bytes as f64 / class.shape.bytes.max(1) as f64;
        let own_s = if self.from_row { policy.two_level_seconds(collective, shape.bytes)? } else { self.seconds() * more };
        let native = || Plan { from_row: true, ..Plan::predicted(Form::native(collective), Some(native_s)) };
        beyond::native_is_taken(native_s, own_s).then(native)
    }

    /// The library's own, where this was made for an operation that commutes and the shape's does not.
    fn or_native(self, shape: &Shape) -> Plan {
        if self.form.fits(shape) { self } else { Plan::unknown(self.form.collective()) }
    }
}

impl From<Routed> for Plan {
    fn from(routed: Routed) -> Plan {
        let (predicted_s, from_row) = (routed.seconds(), routed.from_row);
        Plan { from_row, ..Plan::predicted(Form::Routed(Box::new(routed)), predicted_s) }
    }
}

/// What the library's own takes over all ranks of several groups, between the rows that it was measured for; above them as it goes on there.
pub fn native_seconds(policy: &CompiledPolicy, collective: &'static Collective, bytes: usize) -> Option<f64> {
    let rows = policy.policy.two_level(collective).iter();
    let (sizes, times): (Vec<usize>, Vec<f64>) = rows.filter_map(|row| Some((row.at_bytes, row.evidence.native_s?))).unzip();
    (!sizes.is_empty()).then(|| stats::extended(&sizes, &times, bytes.max(sizes[0])))
}

/// True if a row has the library's own run among these ranks: those that it was measured with, in their order. Where no algorithm over all ranks was faster
/// than it, in any order: what one takes by other numbers is predicted alone, and what the library's own takes not even that.
fn is_native(policy: &CompiledPolicy, members: &[Location], collective: &'static Collective, row: &TwoLevelRow) -> bool {
    let in_any_order = row.intra_group.is_none() && members.len() == policy.policy.provenance.ranks;
    row.native && (in_any_order || policy.is_as_measured(collective, members.len(), &placement(members)))
}

/// The form that a row says, with the library's own where that is to run over all ranks.
fn from_row(
    policy: &CompiledPolicy,
    members: &[Location],
    collective: &'static Collective,
    row: &TwoLevelRow,
    shape: &Shape,
) -> Result<Plan> {
    let native = row.evidence.native_s.filter(|_| is_native(policy, members, collective, row));
    if native.is_some() {
        return Ok(Plan { from_row: true, ..Plan::predicted(Form::native(collective), native) });
    }
    let predicted_s = policy.two_level_seconds(collective, shape.bytes);
    let costs = PolyModel::new(policy, members, collective, shape.bytes)?;
    Ok(Plan { from_row: true, ..Plan::predicted(form_of(&costs, members, collective, row, shape)?, predicted_s) })
}

/// The form that a row says, with what follows from the links where it says nothing.
///
/// # Errors
/// An algorithm that there is not, or the policy lacks a link.
pub(super) fn form_of(
    costs: &PolyModel,
    members: &[Location],
    collective: &'static Collective,
    row: &TwoLevelRow,
    shape: &Shape,
) -> Result<Form> {
    let algorithm = collective.algorithm(&row.inter_group)?;
    let Some(inside) = &row.intra_group else { return Form::Flat(collective, algorithm, row.parameters()).with_flow(costs, shape) };
    let through = through_coordinators(collective)?;
    let inside = (through.inside(inside)?, row.intra_parameters());
    let between = (algorithm, Parameters { segment: 0, ..row.parameters() });
    let coordinated = coordinated(costs.policy(), members, collective, shape, inside, between, row.segment_bytes);
    Form::Coordinated(in_bounded_segments(coordinated, shape)?).with_flow(costs, shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::collective;
    use crate::policy::Policy;
    use std::path::Path;

    #[test]
    fn above_what_was_measured_the_librarys_own_runs_unless_it_takes_clearly_longer() {
        let [alltoall, allreduce] = ["alltoall", "allreduce"].map(|name| collective(name).unwrap());
        // the library's own takes so many times as long as what rows say, at the largest size and at all others
        let policy = |of: &'static Collective, at_last: f64, before: f64| {
            let mut policy = Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap();
            let rows = &mut policy.collectives.get_mut(of).unwrap().two_level;
            let last = rows.len() - 1;
            for (k, row) in rows.iter_mut().enumerate() {
                let times = if k == last { at_last } else { before };
                row.evidence.native_s = Some(times * row.evidence.measured_s.unwrap_or(row.evidence.predicted_s));
            }
            policy
        };
        let decided = |policy: &Policy, of: &'static Collective, times: usize, leave_out: usize, commute: bool| {
            let members: Vec<Location> = crate::plan::everybody(policy).into_iter().skip(leave_out).collect();
            let shape = of.shape(members.len(), 0, times * policy.two_level(of).last().unwrap().at_bytes);
            let shape = Shape { elements: crate::schedule::Elements { commute, ..shape.elements }, ..shape };
            plan(&CompiledPolicy::new(policy.clone()).unwrap(), &members, of, &shape).unwrap()
        };
        let near = policy(alltoall, 1.1, 1.1);
        let at = decided(&near, alltoall, 1, 0, true);
        assert!(!at.is_native(), "it was measured there");
        let above = decided(&near, alltoall, 2, 0, true);
        assert!(above.is_native() && above.seconds() > 1.8 * at.seconds(), "{:?} {:?}", above.predicted_s, at.predicted_s);
        assert!(!decided(&policy(alltoall, 1.4, 1.4), alltoall, 2, 0, true).is_native(), "it takes clearly longer");
        assert!(!decided(&near, alltoall, 2, 1, true).is_native(), "nobody knows what it takes among these ranks");
        let mut unknown = near;
        unknown.collectives.get_mut(alltoall).unwrap().two_level.last_mut().unwrap().evidence.native_s = None;
        assert!(!decided(&unknown, alltoall, 2, 0, true).is_native(), "it was measured at smaller sizes alone");
        // it grows faster: what counts is the size that is asked for
        let growing = policy(allreduce, 1.2, 1.0);
        assert_eq!([2, 64].map(|times| decided(&growing, allreduce, times, 0, true).is_native()), [false, false]);
        let alike = policy(allreduce, 1.2, 1.2);
        assert_eq!([1, 2, 64].map(|times| decided(&alike, allreduce, times, 0, true).is_native()), [false, true, true]);
        let other = decided(&alike, allreduce, 2, 0, false);
        assert!(!other.is_native() || other.predicted_s.is_none(), "nobody knows what it takes for operations that do not commute");
    }

    #[test]
    fn the_librarys_own_that_nothing_over_all_ranks_beats_runs_in_any_order_of_them() {
        let mut policy = Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap();
        let alltoall = collective("alltoall").unwrap();
        let row = policy.collectives.get_mut(alltoall).unwrap().two_level.last_mut().unwrap();
        assert!(row.intra_group.is_none());
        (row.native, row.evidence.native_s) = (true, Some(0.02));
        let mut members = crate::plan::everybody(&policy);
        let policy = CompiledPolicy::new(policy).unwrap();
        let is_native = |members: &[Location], bytes: usize| {
            plan(&policy, members, alltoall, &alltoall.shape(members.len(), 0, bytes)).unwrap().is_native()
        };
        assert!(is_native(&members, 32 << 10));
        members.sort_by_key(|m| (m.position, m.group));
        assert!(is_native(&members, 32 << 10));
        // another row's, and some of them
        assert!(!is_native(&members, 1 << 10) && !is_native(&members[1..], 32 << 10));
    }
}
