//! Where no row fits, the form that is predicted to be the fastest, in a bounded time.

use super::adapted::MORE_OR_LESS;
use super::decided::form_of;
use super::form_flow::busiest_of_all;
use super::forms::{coordinated, with_radices};
use super::segments::{BELOW_HANDSHAKE, few_segments, in_segments_of_all_sizes};
use super::weight::{Beside, Weight};
use super::{Form, Location, NextBest, Plan, PolyModel};
use crate::collective::{Collective, Parameters, Shape, Size};
use crate::error::{Error, Result};
use crate::policy::{CompiledPolicy, TwoLevelRow};
use crate::predict::completion_within;
use crate::schedule::Schedule;
use crate::stats::ROUNDING;
use crate::topology::Rank;
use crate::two_level::{Coordinated, IntraGroup, through};

/// So many operations of candidates are predicted, where no row fits, with one more for each rank and candidate. The first may have as many alone, a few times
/// over, and leaves the others theirs: where the nearest row has a pipeline of short segments, nothing else would be compared with it.
const MOST_PREDICTED: usize = 1 << 19;
const MOST_OF_FIRST: usize = 4 * MOST_PREDICTED;
/// From so many ranks on less is compared before something is decided, since all of them wait for it and each decision takes longer.
pub const MANY_RANKS: usize = 512;
/// Among those it is fewer, and no more for the first and the others together: some 30 ms.
const MOST_AMONG_MANY: usize = 3 << 14;
/// And so many are built to find out how many there are, which takes a fraction of that for each.
const MOST_BUILT: usize = 1 << 21;

/// What has too many operations to be predicted is taken to keep its busiest rank for this share of its time at least.
const BUSY: f64 = 0.25;

/// The form that is predicted to be the fastest, of what rows say, those of near sizes first, the nearest with any tree, and of the algorithms over
/// all ranks in one piece, long blocks in segments too; and the same in segments of other sizes. Where none can be predicted in time it is what the row of
/// the nearest size says.
pub(super) fn fastest(
    policy: &CompiledPolicy,
    members: &[Location],
    collective: &'static Collective,
    shape: &Shape,
) -> Result<Option<Plan>> {
    let costs = PolyModel::new(policy, members, collective, shape.bytes)?;
    let candidates = candidates(&costs, members, collective, shape)?;
    let many = shape.ranks >= MANY_RANKS;
    let (most, most_of_first) = if many { (MOST_AMONG_MANY, MOST_AMONG_MANY) } else { (MOST_PREDICTED, MOST_OF_FIRST) };
    let nearest_row = candidates.first().cloned();
    let mut search = Search {
        costs,
        members,
        shape,
        nearest_row,
        many,
        built: MOST_BUILT,
        beside: Beside::default(),
        left: most,
        tried: Vec::new(),
        best: None,
        next: None,
        led: Vec::new(),
    };
    let (mut seen, mut weighed): (Vec<Form>, Vec<(Weight, Form)>) = (Vec::new(), Vec::new());
    for form in candidates.into_iter().filter(|form| form.fits(shape)) {
        if seen.contains(&form) {
            continue;
        }
        let Some(weight) = search.weigh(&form, if seen.is_empty() { most_of_first } else { most })? else { break };
        seen.push(form.clone());
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
    let nearest = weighed.first().filter(|(_, form)| Some(form) == search.nearest_row.as_ref());
    let nearest = nearest.map(|(weight, form)| (weight.operations > most_of_first, weight.least_s / BUSY, form.clone()));
    for (k, (weight, form)) in weighed.into_iter().enumerate() {
        let first = k == 0 && weight.operations <= most_of_first;
        search.try_form(&weight, form, first)?;
    }
    search.other_segments()?;
    let mut best = search.best;
    if let (Some(best), Some((form, seconds))) = (&mut best, &search.next) {
        best.next = Some(NextBest { words: form.words(), margin: (seconds / best.seconds() - 1.0).max(0.0) });
    }
    let faster = |nearest_s: f64| best.as_ref().is_none_or(|best| nearest_s < best.seconds());
    let unpredicted = nearest.filter(|&(too_large, nearest_s, _)| best.is_none() || (too_large && faster(nearest_s)));
    Ok(unpredicted.map(|(_, _, form)| Plan::predicted(form, None)).or(best))
}

/// The forms that are compared; the first is what the row of the nearest size says.
fn candidates(costs: &PolyModel, members: &[Location], collective: &'static Collective, shape: &Shape) -> Result<Vec<Form>> {
    let policy = costs.policy();
    let mut rows: Vec<&TwoLevelRow> = policy.policy.two_level(collective).iter().collect();
    rows.sort_by_key(|row| (row.times_apart(shape.bytes), row.at_bytes));
    let mut all: Vec<Form> = rows.into_iter().map(|row| form_of(costs, members, collective, row, shape)).collect::<Result<_>>()?;
    let nearest = all.iter().find_map(Form::coordinated).cloned();
    for (nearest, through) in nearest.into_iter().filter_map(|nearest| Some((nearest, through(collective)?))) {
        let trees = (through.inside)().into_iter().flat_map(with_radices);
        let with = |(algorithm, parameters)| Coordinated { inside: IntraGroup { algorithm, parameters }, ..nearest.clone() };
        all.extend(trees.map(with).map(Form::Coordinated));
    }
    all.extend(collective.built().flat_map(with_radices).map(|(a, p)| Form::Flat(collective, a, p)));
    // long blocks that go from rank to rank do so in segments
    if collective.size == Size::Block && shape.bytes > BELOW_HANDSHAKE {
        let segmented = collective.built().filter(|algorithm| algorithm.segmented);
        all.extend(segmented.map(|algorithm| Form::Flat(collective, algorithm, Parameters::of(BELOW_HANDSHAKE, 0))));
    }
    all.extend(through_nearest(policy, members, collective, shape, all.iter().find_map(Form::coordinated)));
    Ok(all)
}

/// What is known while forms are compared.
struct Search<'a> {
    costs: PolyModel<'a>,
    members: &'a [Location],
    shape: &'a Shape,
    /// What the row of the nearest size says.
    nearest_row: Option<Form>,
    /// True among so many ranks that messages are looked at for their first segments.
    many: bool,
    /// So many operations may be built to find out how many there are.
    built: usize,
    beside: Beside,
    /// So many may be predicted.
    left: usize,
    tried: Vec<Form>,
    best: Option<Plan>,
    /// The fastest of the others that were predicted to their end.
    next: Option<(Form, f64)>,
    /// Those that were the best so far when they were predicted, the last one last.
    led: Vec<Form>,
}

impl Search<'_> {
    /// What it takes to predict a form, if that may still be found out; of one with more than `most` operations that it has more.
    fn weigh(&mut self, form: &Form, most: usize) -> Result<Option<Weight>> {
        let weight = form.weight(&self.costs, self.shape, most, self.many, &mut self.beside)?;
        self.built = self.built.saturating_sub(weight.built);
        Ok((self.built > 0).then_some(weight))
    }

    /// Predicts a form, if there is room for it, or if it comes first.
    fn try_form(&mut self, weight: &Weight, form: Form, first: bool) -> Result<()> {
        let charged = if first && !self.many { 0 } else { weight.operations };
        let Some(left) = self.left.checked_sub(charged).or(first.then_some(0)) else { return Ok(()) };
        // what was measured comes first where it is not clearly beaten
        let share = |best: &Plan| if Some(&best.form) == self.nearest_row.as_ref() { MORE_OR_LESS } else { 1.0 };
        let limit_s = self.best.as_ref().map_or(f64::INFINITY, |best| share(best) * best.seconds());
        if weight.least_s > limit_s * ROUNDING {
            return Ok(());
        }
        let form = form.with_flow(&self.costs, self.shape)?;
        if self.tried.contains(&form) {
            return Ok(());
        }
        self.tried.push(form.clone());
        self.left = left;
        let found = seconds(&form, &self.costs, self.members, (self.shape, weight.look), limit_s)?.filter(|s| s.is_finite());
        let Some(seconds) = found else { return Ok(()) };
        if seconds < limit_s {
            self.led.push(form.clone());
            let before = self.best.replace(Plan::predicted(form, Some(seconds)));
            before.into_iter().for_each(|plan| self.lose(plan.seconds(), plan.form));
        } else {
            self.lose(seconds, form);
        }
        Ok(())
    }

    /// Keeps what is not the best, if it is the next best.
    fn lose(&mut self, seconds: f64, form: Form) {
        if self.next.as_ref().is_none_or(|next| seconds < next.1) {
            self.next = Some((form, seconds));
        }
    }

    /// Tries the best one in segments of other sizes, as far as there is room, and the one before it that does something else between coordinators: in some
    /// segments the turns of one go wrong, and not those of the other.
    fn other_segments(&mut self) -> Result<()> {
        let Some(best) = self.led.last().cloned() else { return Ok(()) };
        // among many ranks there is no time for it
        let other = self.led.iter().rev().find(|form| !self.many && !form.is_like(&best)).cloned();
        for leader in std::iter::once(best).chain(other) {
            for form in in_segments_of_all_sizes(&leader, self.shape) {
                let Some(weight) = self.weigh(&form, self.left)? else { break };
                self.try_form(&weight, form, false)?;
            }
        }
        Ok(())
    }
}

/// What a form should take, over all ranks from whichever rank of the root's group; `None` of what is too large to predict. What takes longer than `limit_s`
/// may take for ever.
pub(super) fn seconds(
    form: &Form,
    costs: &PolyModel,
    members: &[Location],
    (shape, look): (&Shape, Option<usize>),
    limit_s: f64,
) -> Result<Option<f64>> {
    let Some(first) = looked_at(form, costs, (shape, look), limit_s)? else { return Ok(None) };
    // over all ranks, who crosses groups hangs on which of its group the root is
    let hangs = first < limit_s && matches!(form, Form::Flat(collective, ..) if collective.rooted);
    if !hangs {
        return Ok(Some(first));
    }
    let other = looked_at(form, costs, (&Shape { root: another(members, shape.root), ..*shape }, look), limit_s)?;
    Ok(other.map(|other| first.max(other)))
}

/// What a form should take from one root. Where it is looked at for its first segments only, with the bytes of so many, the others take what the later half of these
/// takes, or as long as these keep what is busiest, if that is longer: few segments may not meet yet where many do.
pub(super) fn looked_at(form: &Form, costs: &PolyModel, (shape, look): (&Shape, Option<usize>), limit_s: f64) -> Result<Option<f64>> {
    let within = |schedule: &Schedule| completion_within(schedule, costs, limit_s);
    let predicted = || {
        let first = |bytes: usize| form.bounded_schedule(&Shape { bytes, ..*shape });
        let Some(bytes) = look else { return within(&first(shape.bytes)?) };
        let all = first(bytes)?;
        let (few, more) = (within(&first(bytes / 2)?)?, within(&all)?);
        let halves_left = 2.0 * (shape.bytes - bytes) as f64 / bytes as f64;
        Ok(if more < f64::INFINITY { more + (more - few).max(busiest_of_all(&all, costs) / 2.0) * halves_left } else { more })
    };
    match predicted() {
        Err(Error::TooLarge(_)) => Ok(None),
        found => found.map(Some),
    }
}

/// A rank in the middle of a root's group.
pub(super) fn another(members: &[Location], root: Rank) -> Rank {
    let alike: Vec<Rank> = (0..members.len()).filter(|&r| members[r].group == members[root].group).collect();
    alike[alike.len() / 2]
}

/// Over groups with any algorithm between them and in segments that no row may have: as a whole and just below the handshake; with the tree of the nearest
/// row, or the first there is, and with what is no tree.
fn through_nearest(
    policy: &CompiledPolicy,
    members: &[Location],
    collective: &'static Collective,
    shape: &Shape,
    nearest: Option<&Coordinated>,
) -> Vec<Form> {
    let Some(through) = through(collective) else { return Vec::new() };
    let (trees, others): (Vec<_>, Vec<_>) = (through.inside)().into_iter().flat_map(with_radices).partition(|(a, _)| a.tree.is_some());
    let known = nearest.map(|c| (c.inside.algorithm, c.inside.parameters)).filter(|(a, _)| a.tree.is_some());
    let Some(tree) = known.or_else(|| trees.first().copied()) else { return Vec::new() };
    let groups = coordinated(policy, members, collective, shape, tree, tree, 0).groups;
    let segments = if through.segmented { few_segments(collective, (through.longest_message)(&groups, shape)) } else { vec![0] };
    let mut all = Vec::new();
    for inside in std::iter::once(tree).chain(others) {
        for between in (through.between)().into_iter().flat_map(with_radices) {
            let coordinated = |&segment: &usize| coordinated(policy, members, collective, shape, inside, between, segment);
            all.extend(segments.iter().map(coordinated).map(Form::Coordinated));
        }
    }
    all
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
        let members = crate::plan::everybody(&policy.policy);
        let (bytes, segment) = (2 << 20, 32 << 10);
        let mut ratios: Vec<(f64, String)> = Vec::new();
        for collective in ["reduce", "allreduce"].map(|name| collective(name).unwrap()) {
            let shape = collective.shape(members.len(), 0, bytes);
            let costs = PolyModel::new(&policy, &members, collective, bytes).unwrap();
            let through = through(collective).unwrap();
            let inside: Vec<(&'static Algorithm, Parameters)> = (through.inside)().into_iter().flat_map(with_radices).collect();
            let between = (through.between)().into_iter().flat_map(with_radices);
            let mut beside = Beside::default();
            for (k, between) in between.enumerate() {
                let form =
                    Form::Coordinated(coordinated(&policy, &members, collective, &shape, inside[k % inside.len()], between, segment));
                let form = form.with_flow(&costs, &shape).unwrap();
                let look = form.weight(&costs, &shape, usize::MAX, true, &mut beside).unwrap();
                // what ranks beside coordinators do is known from others, and the same
                let alone = form.weight(&costs, &shape, usize::MAX, true, &mut Beside::default()).unwrap();
                assert_eq!((look.operations, look.built, look.least_s), (alone.operations, alone.built, alone.least_s));
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
