//! Collectives over all groups that have forms: those predicted to be fast are measured beside the library's own.

use super::chosen::{Verdict, choosing, confirm, fastest, verdict};
use super::rows::row_of_routes;
use crate::collective::{Collective, NUMBER, Parameters, Shape, Size};
use crate::decide::{self, ALIKE, AS_GOOD, CLOSE, CLOSE_IN_BLOCKS, Made, halfway, native_seconds, rows};
use crate::error::Result;
use crate::measure::{Experiment, Session};
use crate::plan::{Form, Kind, Plan, forms};
use crate::plan::{Location, protocol_changes_of};
use crate::policy::{CompiledPolicy, Evidence, NO_OTHER, Policy, TwoLevelRow};
use crate::schedule::pieces;
use crate::stats;
use crate::two_level::{Coordinated, has_routes};
use std::collections::BTreeMap;

/// So many of the best predicted forms are measured, and the best one of each [kind](Kind) is, and of those with a star inside groups.
const FINALISTS: usize = 6;
/// But no star that is predicted to take more than so many times the fastest: it is a bet where messages are short.
const STAR: f64 = 1.25;
/// What is predicted to take so many times the fastest of its [kind](Kind) is not among them, and not predicted to its end.
const HOPELESS: f64 = 2.0;
/// The sizes that forms of the other collectives over groups are chosen at: of messages, or of blocks for each rank, from one number on, fourfold, since
/// each has hundreds of forms, which take long to predict over all ranks. A choice holds for the sizes near its own, the last one for all larger ones.
const FORM_SIZES: [usize; 8] = [8, 1 << 10, 8 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];

/// Chooses forms for each of some collectives that has them.
///
/// # Errors
/// The session's.
pub fn choose(
    session: &mut Session,
    policy: &Policy,
    members: &[Location],
    collectives: &[&'static Collective],
) -> Result<BTreeMap<&'static Collective, Vec<TwoLevelRow>>> {
    let compiled = CompiledPolicy::new(policy.clone())?;
    let mut sizes: Vec<(usize, &'static Collective)> = Vec::new();
    for &collective in collectives.iter().filter(|c| !has_routes(c)) {
        sizes.extend(collective.tuned_sizes(&FORM_SIZES, members.len()).into_iter().map(|bytes| (bytes, collective)));
    }
    // from small to large, whatever the collective: TCP's windows, which large messages open for all that come later, are then more like what programs find that
    // send such messages
    sizes.sort_by_key(|(bytes, _)| *bytes);
    let mut all: BTreeMap<&'static Collective, Vec<OfSize>> = BTreeMap::new();
    for (bytes, collective) in sizes {
        let shape = collective.shape(members.len(), 0, bytes);
        let finalists = finalists(forms(&compiled, members, collective, &shape, HOPELESS)?);
        let Some(found) = of_size(session, &compiled, members, collective, &shape, finalists)? else { continue };
        let of_sizes = all.entry(collective).or_default();
        if let Some(below) = of_sizes.last()
            && let Some((bytes, mut forms)) = between(&compiled, members, collective, [below, &found])?
        {
            let shape = collective.shape(members.len(), 0, bytes);
            // recordings know those of their time
            forms.retain(|plan| session.can_measure() || session.samples().get(&plan.form.experiment(&shape)).is_some());
            if !forms.is_empty() {
                of_sizes.extend(of_size(session, &compiled, members, collective, &shape, forms)?);
            }
        }
        of_sizes.push(found);
    }
    all.into_iter().map(|(collective, of_sizes)| Ok((collective, rows_of(&compiled, members, collective, &of_sizes)?))).collect()
}

/// Sizes further apart than this have one between them at which another form may be the fastest.
const FAR_APART: usize = 2;

/// What takes so much longer than what was taken at a size may be faster between it and the next one.
const NEARLY: f64 = 0.1;

/// What is measured in the middle between two sizes that are far apart, where another form is predicted to be clearly faster than what was taken at either: that
/// form, and those with what took [nearly](NEARLY) as long, since what is predicted to be the fastest may have been measured not to be at these sizes.
fn between(
    policy: &CompiledPolicy,
    members: &[Location],
    collective: &'static Collective,
    pair: [&OfSize; 2],
) -> Result<Option<(usize, Vec<Plan>)>> {
    let [low, high] = pair.map(|size| size.row.at_bytes);
    if low == 0 || high / low <= FAR_APART {
        return Ok(None);
    }
    // reductions are measured with whole numbers
    let middle = halfway(low, high) / NUMBER * NUMBER;
    let shape = collective.shape(members.len(), 0, middle);
    let Some(best) = forms(policy, members, collective, &shape, HOPELESS)?.into_iter().next() else { return Ok(None) };
    let about = |form: &Form| if form.fits(&shape) { form.about(policy, members, &shape) } else { Ok(f64::INFINITY) };
    let (mut taken_s, mut near): (f64, Vec<Plan>) = (f64::INFINITY, Vec::new());
    for measured in pair.map(|size| &size.measured) {
        let limit_s = measured.first().map_or(0.0, |taken| taken.1 * (1.0 + NEARLY));
        for (k, (plan, _)) in measured.iter().enumerate().filter(|(_, (_, time))| *time <= limit_s) {
            let seconds = about(&plan.form)?;
            if k == 0 {
                taken_s = taken_s.min(seconds);
            }
            if seconds.is_finite() && near.iter().all(|known| known.form != plan.form) {
                near.push(Plan::predicted(plan.form.clone(), Some(seconds)));
            }
        }
    }
    near.retain(|plan| plan.form != best.form);
    Ok((best.seconds() * (1.0 + ALIKE) < taken_s).then(|| (middle, [vec![best], near].concat())))
}

/// The forms that were measured for a size, the first one to be taken, and the row that was made of it.
struct OfSize {
    measured: Vec<(Plan, f64)>,
    row: TwoLevelRow,
}

/// Measures the forms of a size; `None` if none was.
fn of_size(
    session: &mut Session,
    policy: &CompiledPolicy,
    members: &[Location],
    collective: &'static Collective,
    shape: &Shape,
    mut forms: Vec<Plan>,
) -> Result<Option<OfSize>> {
    let mut experiments: Vec<Experiment> = forms.iter().map(|plan| plan.form.experiment(shape)).collect();
    let native = Form::Flat(collective, collective.native(), Parameters::default()).experiment(shape);
    let purpose = if collective.sized() { "forms over all groups" } else { "collectives without a message" };
    let others = if session.has_native() { vec![native.clone()] } else { Vec::new() };
    session.race(purpose, &[[&experiments[..], &others].concat()])?;
    // models do not know what more under way is good for
    let fastest = fastest(session.samples(), &experiments);
    let more = fastest.map(|k| wider(policy, members, &forms[k].form, shape)).transpose()?.flatten();
    if let Some(more) = more.filter(|more| forms.iter().all(|plan| plan.form != more.form)) {
        experiments.push(more.form.experiment(shape));
        forms.push(more);
        session.race(purpose, &[[&experiments[..], &others].concat()])?;
    }
    let found = forms.into_iter().zip(&experiments).filter_map(|(plan, e)| Some((plan, e, choosing(session.samples(), e)?)));
    let mut found: Vec<(Plan, &Experiment, f64)> = found.collect();
    found.sort_by(|a, b| a.2.total_cmp(&b.2));
    let Some(least) = found.first().map(|fastest| fastest.2) else { return Ok(None) };
    let as_good = 0..found.iter().take_while(|f| f.2 <= least * AS_GOOD).count();
    let longest = as_good.min_by_key(|&k| std::cmp::Reverse(segment(&found[k].0.form))).unwrap_or(0);
    found[..=longest].rotate_right(1);
    let (best, fastest, time) = &found[0];
    confirm(session, vec![((*fastest).clone(), native.clone())])?;
    let Some(Verdict { own_s, native_s, native, .. }) = verdict(session.samples(), session.settings(), fastest, &native) else {
        return Ok(None);
    };
    let runner_up = found.get(1);
    let evidence = Evidence {
        predicted_s: best.seconds(),
        measured_s: Some(own_s),
        native_s,
        runner_up: runner_up.map_or(NO_OTHER.into(), |r| r.0.form.words()),
        margin: runner_up.map_or(0.0, |r| stats::margin(r.2, *time).max(0.0)),
    };
    let row = row_of(&best.form, 0, shape.bytes, evidence, native);
    Ok(Some(OfSize { measured: found.into_iter().map(|(plan, _, time)| (plan, time)).collect(), row }))
}

/// The same with twice as much under way between coordinators, where that is held back.
fn wider(policy: &CompiledPolicy, members: &[Location], form: &Form, shape: &Shape) -> Result<Option<Plan>> {
    let Form::Coordinated(c) = form else { return Ok(None) };
    let Some(in_flight) = decide::wider(c.between.parameters.in_flight, pieces(shape.bytes, c.segment)) else { return Ok(None) };
    let mut wider = c.clone();
    wider.between.parameters.in_flight = in_flight;
    let form = Form::Coordinated(wider);
    let predicted_s = Some(form.about(policy, members, shape)?);
    Ok(Some(Plan::predicted(form, predicted_s)))
}

/// Rows for all sizes: those that were made, and others between them where another form is predicted to be the best.
fn rows_of(
    policy: &CompiledPolicy,
    members: &[Location],
    collective: &'static Collective,
    of_sizes: &[OfSize],
) -> Result<Vec<TwoLevelRow>> {
    if !collective.sized() {
        return Ok(of_sizes.iter().map(|s| s.row.clone()).collect());
    }
    let made = of_sizes.iter().map(|s| Made {
        bytes: s.row.at_bytes,
        taken: s.measured.first().filter(|_| !s.row.native).map(|(plan, _)| plan.form.clone()),
        measured: s.measured.iter().map(|(plan, time)| (plan.form.clone(), plan.seconds(), *time)).collect(),
        native_s: s.row.evidence.native_s,
    });
    let made: Vec<Made<Form>> = made.collect();
    let predict = |form: &Form, bytes: usize, _: f64| form.about(policy, members, &collective.shape(members.len(), 0, bytes));
    let close = if collective.size == Size::Block { CLOSE_IN_BLOCKS } else { CLOSE };
    let found = rows(&made, &protocol_changes_of(policy, of_sizes.last().map_or(0, |s| s.row.at_bytes)), close, predict, Form::is_like)?;
    let row = |row: crate::decide::Row<Form>| {
        let nearest = of_sizes.iter().min_by_key(|s| s.row.at_bytes.abs_diff(row.at))?;
        if nearest.row.at_bytes == row.at {
            return Some(TwoLevelRow { from_bytes: row.from, ..nearest.row.clone() });
        }
        // where the library's own runs over all, some of the ranks do what is done near
        let (form, native) = match &row.taken {
            Some(form) => (form, false),
            None => (&nearest.measured.first()?.0.form, true),
        };
        let native_s = native_seconds(&made, row.at);
        let evidence = Evidence { predicted_s: row.seconds, native_s, runner_up: NO_OTHER.into(), ..Evidence::default() };
        Some(row_of(form, row.from, row.at, evidence, native))
    };
    Ok(found.into_iter().filter_map(row).collect())
}

fn row_of(form: &Form, from_bytes: usize, at_bytes: usize, evidence: Evidence, native: bool) -> TwoLevelRow {
    let row = TwoLevelRow { from_bytes, at_bytes, evidence, native, ..TwoLevelRow::default() };
    match form {
        Form::Flat(_, algorithm, p) | Form::Placed(_, algorithm, p, _) => TwoLevelRow {
            inter_group: algorithm.name.into(),
            radix: p.radix,
            segment_bytes: p.segment,
            in_flight: p.in_flight,
            peers: p.peers,
            ..row
        },
        Form::Coordinated(c) => TwoLevelRow {
            inter_group: c.between.algorithm.name.into(),
            radix: c.between.parameters.radix,
            segment_bytes: c.segment,
            in_flight: c.between.parameters.in_flight,
            intra_in_flight: c.inside.parameters.in_flight,
            intra_group: Some(c.inside.algorithm.name.into()),
            intra_radix: c.inside.parameters.radix,
            ..row
        },
        Form::Routed(routed) => row_of_routes(&routed.decided, from_bytes, at_bytes, row.evidence, native),
    }
}

/// Bytes of a form's segments.
fn segment(form: &Form) -> usize {
    if form.segment() == 0 { usize::MAX } else { form.segment() }
}

/// The best forms, the best of each kind among them, and at most two that are one algorithm over all ranks: they should be different bets. A star has the fewest steps, and
/// is what the textbook's form has.
fn finalists(mut forms: Vec<Plan>) -> Vec<Plan> {
    let is_flat = |plan: &Plan| plan.form.kind() == Kind::Flat;
    let before = |all: &[Plan], k: usize| all[..k].iter().filter(|plan| is_flat(plan) && plan.form.is_like(&all[k].form)).count();
    let bets: Vec<bool> = (0..forms.len()).map(|k| before(&forms, k) < 2).collect();
    let mut bets = bets.into_iter();
    forms.retain(|_| bets.next().unwrap_or(true));
    let first = [Kind::Flat, Kind::ByCounterparts, Kind::InSegments, Kind::InOnePiece]
        .map(|of| forms.iter().position(|plan| plan.form.kind() == of));
    let near_s = STAR * forms.first().map_or(0.0, Plan::seconds);
    let star = forms.iter().position(|plan| plan.seconds() <= near_s && plan.form.coordinated().is_some_and(is_star));
    let wanted = |k: usize| k < FINALISTS || first.contains(&Some(k)) || star == Some(k);
    forms.into_iter().enumerate().filter(|(k, _)| wanted(*k)).map(|(_, plan)| plan).collect()
}

/// True if all ranks of each group send to its coordinator.
fn is_star(c: &Coordinated) -> bool {
    c.groups.iter().all(|ranks| c.inside.algorithm.is_star(ranks.len(), c.inside.parameters.radix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{allreduce, alltoall, scatter};
    use std::path::Path;

    /// Open MPI goes by Bruck's algorithm up to 200 bytes a block, which is slow between sites.
    #[test]
    fn between_sizes_the_librarys_own_is_taken_where_it_is_fast_for_sure() {
        let policy = CompiledPolicy::new(Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap()).unwrap();
        let members: Vec<Location> = (0..policy.policy.groups.len()).map(|group| Location { group, position: 0 }).collect();
        let of_size = |bytes: usize, own_s: f64, native_s: f64| {
            let shape = alltoall::COLLECTIVE.shape(members.len(), 0, bytes);
            let plan = forms(&policy, &members, &alltoall::COLLECTIVE, &shape, HOPELESS).unwrap().swap_remove(0);
            let evidence = Evidence { measured_s: Some(own_s), native_s: Some(native_s), ..Evidence::default() };
            let row = row_of(&plan.form, 0, bytes, evidence, native_s < own_s);
            OfSize { measured: vec![(plan, own_s)], row }
        };
        let made = [of_size(8, 9.3e-3, 26e-3), of_size(1 << 10, 8.9e-3, 8.5e-3), of_size(32 << 10, 10.5e-3, 10e-3)];
        let rows = rows_of(&policy, &members, &alltoall::COLLECTIVE, &made).unwrap();
        let at = |bytes: usize| rows.iter().rfind(|row| row.from_bytes <= bytes).unwrap().native;
        assert_eq!([8, 64, 512, 1 << 10, 10 << 10].map(at), [false, false, false, true, true]);
    }

    #[test]
    fn between_two_sizes_what_took_nearly_as_long_at_one_is_measured_too() {
        let policy = CompiledPolicy::new(Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap()).unwrap();
        let members = crate::plan::everybody(&policy.policy);
        let all = |bytes: usize| {
            let shape = alltoall::COLLECTIVE.shape(members.len(), 0, bytes);
            forms(&policy, &members, &alltoall::COLLECTIVE, &shape, HOPELESS).unwrap()
        };
        // what is predicted to be the slowest was the fastest, then what is next to it
        let of_size = |bytes: usize, times: [f64; 3]| {
            let measured: Vec<(Plan, f64)> = all(bytes).into_iter().rev().zip(times).collect();
            OfSize { row: row_of(&measured[0].0.form, 0, bytes, Evidence::default(), false), measured }
        };
        let (low, high) = (of_size(8 << 10, [1.0, 1.09, 1.11]), of_size(32 << 10, [2.0, 3.0, 3.0]));
        let unlike = |k: usize| high.measured[0].0.form != low.measured[k].0.form;
        assert!(unlike(1) && unlike(2));
        let (middle, found) = between(&policy, &members, &alltoall::COLLECTIVE, [&low, &high]).unwrap().unwrap();
        assert_eq!(middle, 16 << 10);
        assert_eq!(found[0].form, all(middle)[0].form, "what is predicted to be the fastest");
        let is_there = |size: &OfSize, k: usize| found.iter().any(|plan| plan.form == size.measured[k].0.form);
        assert!(is_there(&low, 0) && is_there(&low, 1) && is_there(&high, 0));
        assert!(!is_there(&low, 2) && !is_there(&high, 1), "they took too long");
        assert!(between(&policy, &members, &alltoall::COLLECTIVE, [&of_size(16 << 10, [1.0; 3]), &high]).unwrap().is_none(), "near");
    }

    /// What is predicted to be the fastest may have several steps inside groups: one of one step is measured too.
    #[test]
    fn a_star_is_measured_too() {
        let policy = CompiledPolicy::new(Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap()).unwrap();
        let members = crate::plan::everybody(&policy.policy);
        let shape = allreduce::COLLECTIVE.shape(members.len(), 0, 8);
        let all = forms(&policy, &members, &allreduce::COLLECTIVE, &shape, HOPELESS).unwrap();
        let star = all.iter().position(|plan| plan.form.coordinated().is_some_and(is_star)).unwrap();
        let star = all[star].form.clone();
        assert!(all[..FINALISTS].iter().all(|plan| plan.form != star), "it is among the best here");
        assert!(finalists(all).iter().any(|plan| plan.form == star), "{}", star.words());
    }

    #[test]
    fn what_has_more_under_way_is_predicted_as_such() {
        let policy = CompiledPolicy::new(Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap()).unwrap();
        let members: Vec<Location> = (0..policy.policy.groups.len()).map(|group| Location { group, position: 0 }).collect();
        let shape = allreduce::COLLECTIVE.shape(members.len(), 0, 1 << 20);
        let in_segments = |plan: Plan| if let Form::Coordinated(c) = plan.form { Some(c).filter(|c| c.segment > 0) } else { None };
        let mut narrow =
            forms(&policy, &members, &allreduce::COLLECTIVE, &shape, HOPELESS).unwrap().into_iter().find_map(in_segments).unwrap();
        narrow.between.parameters.in_flight = 2;
        let narrow = Form::Coordinated(narrow);
        let (wide, seconds) =
            (wider(&policy, &members, &narrow, &shape).unwrap().unwrap(), narrow.seconds(&policy, &members, &shape).unwrap());
        assert_eq!(wide.predicted_s, Some(wide.form.seconds(&policy, &members, &shape).unwrap()));
        assert!(wide.seconds() < seconds, "{} s for {seconds} s", wide.seconds());
    }

    #[test]
    fn what_serves_the_farthest_first_is_measured_so() {
        let algorithm = scatter::COLLECTIVE.fallback;
        let form = Form::Placed(&scatter::COLLECTIVE, algorithm, Parameters::default(), vec![0, 2, 1]);
        assert_eq!(form.experiment(&scatter::COLLECTIVE.shape(3, 0, 1000)).ranks(), [0, 2, 1]);
        assert_eq!(row_of(&form, 0, 1000, Evidence::default(), false).inter_group, algorithm.name);
    }
}
