//! All forms that a collective may have over several groups, but routes ([`super::two_level_parameters`]).

use super::decided::Plan;
use super::fastest::looked_at;
use super::members::host_by_host;
use super::segments::{few_segments, in_segment, segments};
use super::weight::Beside;
use super::{Form, Kind, Location, MANY_RANKS, PolyModel, group_ranks};
use crate::collective::{Algorithm, Collective, Parameters, Shape};
use crate::decide::all_candidates;
use crate::error::Result;
use crate::policy::{CompiledPolicy, bounded};
use crate::topology::Rank;
use crate::two_level::{Coordinated, IntraGroup, first_rank, through};
use std::collections::BTreeMap;

/// So many of the best through coordinators are tried in segments of all sizes.
const MOST_REFINED: usize = 8;

/// So many operations of forms of a [kind](Kind) are predicted among many ranks, which takes about a second.
const MOST_OF_KIND: usize = 1 << 22;

/// Every form that fits over several groups, with what it should take, the fastest first. Of each [kind](Kind) those are left out that should take more than
/// `hopeless` times the fastest, as soon as that is seen, and among many ranks what there is no time for; unless that is infinite.
///
/// # Errors
/// The policy lacks a link, or an algorithm that there is not.
pub fn forms(
    policy: &CompiledPolicy,
    members: &[Location],
    collective: &'static Collective,
    shape: &Shape,
    hopeless: f64,
) -> Result<Vec<Plan>> {
    let costs = PolyModel::new(policy, members, collective, shape.bytes)?;
    let mut search = Search { costs, shape, hopeless, of_kind: BTreeMap::new(), beside: Beside::default() };
    let mut predicted = |form: Form| search.predicted(form).transpose();
    let by_time = |all: &mut Vec<Plan>| {
        all.sort_by(|a, b| a.seconds().total_cmp(&b.seconds()));
        // of few coordinators some algorithms are one
        all.dedup_by(|b, a| a.seconds().to_bits() == b.seconds().to_bits() && a.form.is_alike_inside(&b.form));
    };
    let flat = all_candidates(collective, members.len(), shape.bytes).into_iter();
    let mut all: Vec<Plan> = flat.filter_map(|(a, p)| predicted(Form::Flat(collective, a, p))).collect::<Result<_>>()?;
    if let Some(through) = through(collective) {
        let groups = groups_of(policy, members, shape);
        let longest = (through.longest_message)(&groups, shape);
        let segments = if through.segmented { segments(collective, longest) } else { vec![0] };
        let few = few_segments(collective, longest);
        let (first, rest): (Vec<usize>, Vec<usize>) = segments.iter().partition(|s| few.contains(s));
        let mut between: Vec<_> = (through.between)().into_iter().flat_map(with_radices).collect();
        // one coordinator has nobody to send to
        between.truncate(if groups.len() > 1 { usize::MAX } else { 1 });
        let mut best: Vec<Plan> = Vec::new();
        for inside in (through.inside)().into_iter().flat_map(with_radices) {
            for &between in &between {
                let with = |&segment: &_| Form::Coordinated(coordinated(policy, members, collective, shape, inside, between, segment));
                let mut found: Vec<Plan> = first.iter().map(with).filter_map(&mut predicted).collect::<Result<_>>()?;
                all.extend(found.iter().cloned());
                by_time(&mut found);
                best.extend(found.into_iter().take(1));
            }
        }
        by_time(&mut best);
        for plan in best.into_iter().take(MOST_REFINED) {
            let Form::Coordinated(coordinated) = plan.form else { continue };
            let with = |&segment: &usize| in_segment(&coordinated, segment);
            all.extend(rest.iter().map(with).filter_map(&mut predicted).collect::<Result<Vec<_>>>()?);
        }
    }
    by_time(&mut all);
    Ok(all)
}

/// The search for the fastest forms.
struct Search<'a> {
    costs: PolyModel<'a>,
    shape: &'a Shape,
    hopeless: f64,
    of_kind: BTreeMap<Kind, OfKind>,
    beside: Beside,
}

/// What is known of forms of a kind.
struct OfKind {
    /// What takes longer is hopeless.
    limit_s: f64,
    /// So many operations may be predicted yet.
    left: usize,
}

impl Search<'_> {
    /// A form with what it should take, unless it does not fit, is hopeless, or there is no time for it.
    fn predicted(&mut self, form: Form) -> Result<Option<Plan>> {
        if !form.fits(self.shape) {
            return Ok(None);
        }
        let form = form.with_flow(&self.costs, self.shape)?;
        let known = self.of_kind.entry(form.kind()).or_insert(OfKind { limit_s: f64::INFINITY, left: MOST_OF_KIND });
        let is_many = self.shape.ranks >= MANY_RANKS && self.hopeless < f64::INFINITY;
        let mut look = None;
        if is_many {
            let weight = form.weight(&self.costs, self.shape, known.left, true, &mut self.beside)?;
            if weight.least_s > known.limit_s || weight.operations > known.left {
                return Ok(None);
            }
            (known.left, look) = (known.left - weight.operations, weight.look);
        }
        // what nobody can predict is not chosen
        let Some(seconds) = looked_at(&form, &self.costs, (self.shape, look), known.limit_s)? else { return Ok(None) };
        if seconds > known.limit_s {
            return Ok(None);
        }
        known.limit_s = known.limit_s.min(self.hopeless * seconds);
        Ok(Some(Plan::predicted(form, Some(seconds))))
    }
}

impl Form {
    /// What it should take, among many ranks about, as it is compared by [`forms`]; for ever, if it is too large to predict.
    ///
    /// # Errors
    /// As [`Form::program`].
    pub fn about(&self, policy: &CompiledPolicy, members: &[Location], shape: &Shape) -> Result<f64> {
        let costs = PolyModel::new(policy, members, self.collective(), shape.bytes)?;
        let look =
            if shape.ranks >= MANY_RANKS { self.weight(&costs, shape, MOST_OF_KIND, true, &mut Beside::default())?.look } else { None };
        Ok(looked_at(self, &costs, (shape, look), f64::INFINITY)?.unwrap_or(f64::INFINITY))
    }
}

/// The same in as many segments as the longest of its messages may have.
///
/// # Errors
/// A collective that does not go through coordinators.
pub(super) fn in_bounded_segments(coordinated: Coordinated, shape: &Shape) -> Result<Coordinated> {
    let segment = bounded(Parameters::of(coordinated.segment, 0), coordinated.longest_message(shape)?).segment;
    Ok(Coordinated { segment, ..coordinated })
}

/// An algorithm with each of its radices, in one piece: what is cut into segments is cut for all levels.
pub(super) fn with_radices(algorithm: &'static Algorithm) -> Vec<(&'static Algorithm, Parameters)> {
    match algorithm.radices {
        _ if algorithm.segmented => Vec::new(),
        [] => vec![(algorithm, Parameters::default())],
        radices => radices.iter().map(|&radix| (algorithm, Parameters::of(0, radix))).collect(),
    }
}

/// The groups that a shape goes through, each host by host where ranks need not be combined in their order.
pub(super) fn groups_of(policy: &CompiledPolicy, members: &[Location], shape: &Shape) -> Vec<Vec<Rank>> {
    let mut groups: Vec<Vec<Rank>> = group_ranks(members, first_rank(shape)).into_iter().map(|(_, ranks)| ranks).collect();
    if shape.elements.commute {
        groups.iter_mut().for_each(|ranks| host_by_host(policy, members, ranks));
    }
    groups
}

pub(super) fn coordinated(
    policy: &CompiledPolicy,
    members: &[Location],
    collective: &'static Collective,
    shape: &Shape,
    inside: (&'static Algorithm, Parameters),
    between: (&'static Algorithm, Parameters),
    segment: usize,
) -> Coordinated {
    let part = |(algorithm, parameters)| IntraGroup { algorithm, parameters };
    Coordinated { collective, groups: groups_of(policy, members, shape), inside: part(inside), between: part(between), segment }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{COLLECTIVES, Size, collective};
    use crate::model::Free;
    use crate::plan::plan;
    use crate::plan::segments::BELOW_HANDSHAKE;
    use crate::policy::Policy;
    use crate::predict::EVENTS;
    use crate::schedule::check;
    use crate::two_level::has_routes;
    use std::path::Path;

    #[test]
    fn the_librarys_own_has_no_program_and_says_so() {
        let barrier = COLLECTIVES.iter().copied().find(|c| !c.sized()).unwrap();
        let form = Form::native(barrier);
        let said = form.schedule(&Shape::new(4, 0, 0)).unwrap_err().to_string();
        assert!(said.contains("build the program of native"), "{said}");
    }

    /// Ranks in groups of these sizes, one after the other.
    fn in_groups(sizes: &[usize]) -> Vec<Location> {
        sizes.iter().enumerate().flat_map(|(group, &ranks)| (0..ranks).map(move |position| Location { group, position })).collect()
    }

    /// Every pair of algorithms that goes through coordinators, in segments or not, and every algorithm over all ranks.
    fn all_forms(members: &[Location], collective: &'static Collective, shape: &Shape, segment: usize) -> Vec<Form> {
        let groups: Vec<Vec<Rank>> = group_ranks(members, first_rank(shape)).into_iter().map(|(_, ranks)| ranks).collect();
        let mut all: Vec<Form> = collective.built().flat_map(with_radices).map(|(a, p)| Form::Flat(collective, a, p)).collect();
        if let Some(through) = through(collective) {
            for inside in (through.inside)().into_iter().flat_map(with_radices) {
                for between in (through.between)().into_iter().flat_map(with_radices) {
                    let segment = if through.segmented { segment } else { 0 };
                    let part = |(algorithm, parameters)| IntraGroup { algorithm, parameters };
                    let (groups, inside, between) = (groups.clone(), part(inside), part(between));
                    all.push(Form::Coordinated(Coordinated { collective, groups, inside, between, segment }));
                }
            }
        }
        all.retain(|form| form.fits(shape));
        all
    }

    #[test]
    fn operations_are_estimated_whatever_the_groups_are() {
        for sizes in [&[16, 16, 16, 16][..], &[32, 32], &[3, 40, 1, 20], &[20, 1, 1]] {
            let members = in_groups(sizes);
            for collective in COLLECTIVES.iter().copied().filter(|c| !has_routes(c)) {
                let bytes = if collective.sized() { 4096 } else { 0 };
                for (root, segment) in [(0, 0), (members.len() - 1, 1024)] {
                    let shape = collective.shape(members.len(), if collective.rooted { root } else { 0 }, bytes);
                    // known or not, each is estimated alike
                    let mut beside = Beside::default();
                    for form in all_forms(&members, collective, &shape, segment) {
                        let real = form.schedule(&shape).unwrap().ops();
                        let weighed = |beside: &mut Beside| form.weight(&Free, &shape, usize::MAX, false, beside).unwrap().operations;
                        let counted = weighed(&mut beside) - members.len();
                        assert_eq!(weighed(&mut Beside::default()) - members.len(), counted);
                        let ratio = counted as f64 / real as f64;
                        let said = || format!("{sizes:?} {} of {root}: {}", collective.name, form.words());
                        assert!((0.4..=2.0).contains(&ratio), "{}: {ratio} of {real}", said());
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_pass_coordinators_in_no_more_segments_than_other_messages() {
        let (members, bytes) = (in_groups(&[16; 4]), 16 << 20);
        for collective in COLLECTIVES.iter().copied().filter(|c| !has_routes(c) && c.size == Size::Block) {
            let shape = collective.shape(members.len(), 0, bytes);
            for form in all_forms(&members, collective, &shape, BELOW_HANDSHAKE) {
                let Some(c) = form.coordinated().map(|c| in_bounded_segments(c.clone(), &shape).unwrap()) else { continue };
                assert_eq!(c.segment, c.longest_message(&shape).unwrap() / 1024, "{} {}", collective.name, form.words());
                if collective.rooted {
                    let messages = c.program(c.groups[1][0], &shape).unwrap().messages() + c.program(0, &shape).unwrap().messages();
                    assert!(messages <= 3 * 1024 + 32, "{} {}: {messages}", collective.name, form.words());
                }
            }
        }
    }

    #[test]
    fn every_form_does_what_the_collective_is_for_and_the_plan_is_the_fastest() {
        let policy = CompiledPolicy::new(Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap()).unwrap();
        let everybody = crate::plan::everybody(&policy.policy);
        // some of the hosts, in an order of their own
        let some: Vec<Location> = (0..25).map(|k| everybody[(k * 31 + 7) % everybody.len()]).collect();
        let forms_of = |members: &[Location], collective: &'static Collective, shape: &Shape| {
            let all = forms(&policy, members, collective, shape, f64::INFINITY).unwrap();
            for plan in &all {
                let said = || format!("{} {shape:?}: {}", collective.name, plan.form.words());
                check(&plan.form.schedule(shape).unwrap(), &(collective.specification)(shape))
                    .unwrap_or_else(|e| panic!("{}: {e}", said()));
            }
            all
        };
        // where nothing was tuned, inside a group neither, the library's own runs
        let inside: Vec<Location> = (0..5).map(|position| Location { group: 0, position }).collect();
        for collective in COLLECTIVES.iter().copied().filter(|c| !has_routes(c) && policy.policy.two_level(c).is_empty()) {
            for members in [&inside, &everybody] {
                assert!(plan(&policy, members, collective, &collective.shape(members.len(), 0, 1000)).unwrap().form.is_native());
            }
        }
        // every form from several roots, in place and not, and for odd sizes
        let few: Vec<Location> = (0..11).map(|k| everybody[(k * 17 + 3) % everybody.len()]).collect();
        for collective in COLLECTIVES.iter().copied().filter(|c| !has_routes(c)) {
            for (k, bytes) in [0, 1, 13, 1000, 12_001].into_iter().enumerate().filter(|(_, bytes)| collective.sized() || *bytes == 0) {
                for (root, in_place) in [(0, k % 2 == 0), (3 + k, true), (10, false)] {
                    let root = if collective.rooted { root } else { 0 };
                    let all = forms_of(&few, collective, &Shape { in_place, ..collective.shape(few.len(), root, bytes) });
                    let is_through = all.iter().any(|plan| matches!(plan.form, Form::Coordinated(_)));
                    assert_eq!(is_through, through(collective).is_some(), "{} through coordinators", collective.name);
                }
            }
        }
        for collective in COLLECTIVES.iter().copied().filter(|c| c.tuned && !has_routes(c)) {
            for (members, bytes) in [(&everybody, 8), (&some, 8), (&some, 40_008)] {
                let ranks = members.len();
                let shape = collective.shape(ranks, 0, if collective.sized() { bytes } else { 0 });
                let all = forms_of(members, collective, &shape);
                let plan = plan(&policy, members, collective, &shape).unwrap();
                if policy.policy.two_level(collective).is_empty() {
                    assert!(plan.form.is_native());
                    continue;
                }
                assert!(plan.from_row == (ranks == everybody.len()) && !plan.form.is_native());
                // what was measured may differ from what is predicted
                assert!(plan.seconds() <= all[0].seconds() * 1.2, "{} takes {}", plan.form.words(), plan.seconds());
            }
        }
    }

    #[test]
    fn what_is_hopeless_is_left_out_and_the_best_of_each_kind_stays() {
        let policy = CompiledPolicy::new(Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap()).unwrap();
        let members = in_groups(&[6, 5, 4, 1, 5, 4]);
        for collective in ["reduce", "allreduce", "allgather", "alltoall"].map(|name| collective(name).unwrap()) {
            for bytes in [8, 40_008] {
                let shape = collective.shape(members.len(), 0, bytes);
                let [all, some] = [f64::INFINITY, 1.5].map(|hopeless| forms(&policy, &members, collective, &shape, hopeless).unwrap());
                let of =
                    |all: &[Plan], kind: Kind| all.iter().find(|plan| plan.form.kind() == kind).map(|p| (p.form.clone(), p.predicted_s));
                for kind in [Kind::Flat, Kind::ByCounterparts, Kind::InSegments, Kind::InOnePiece] {
                    assert_eq!(of(&some, kind), of(&all, kind), "{} of {bytes} bytes", collective.name);
                }
                assert!(some.len() < all.len() && some.iter().all(|plan| all.iter().any(|of_all| of_all.form == plan.form)));
            }
        }
    }

    /// All of them, to their end, are 76 million events.
    #[test]
    fn among_many_ranks_forms_are_searched_in_bounded_time() {
        let mut policy = Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap();
        // a group of one has no model of its inside
        let several = policy.groups.iter_mut().filter(|g| g.hosts.len() > 1);
        several.for_each(|g| g.hosts = (0..110).map(|k| format!("{}-{k}", g.name)).collect());
        let sizes: Vec<usize> = policy.groups.iter().map(|g| g.hosts.len()).collect();
        let (policy, members) = (CompiledPolicy::new(policy).unwrap(), in_groups(&sizes));
        let (reduce, before) = (collective("reduce").unwrap(), EVENTS.get());
        let shape = reduce.shape(members.len(), 0, 1 << 20);
        let found = forms(&policy, &members, reduce, &shape, 2.0).unwrap();
        let events = EVENTS.get() - before;
        let whole = found[0].form.seconds(&policy, &members, &shape).unwrap();
        println!("{} forms, {events} events, {} s for {whole}", found.len(), found[0].seconds());
        assert!(events < 10_000_000, "{events} events");
        assert!((0.5..=1.5).contains(&(found[0].seconds() / whole)), "{} s for {whole}", found[0].seconds());
    }

    #[test]
    fn a_group_is_passed_through_host_by_host_however_ranks_are_dealt() {
        let mut policy = Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap();
        // 20 positions of 5 hosts
        policy.groups[0].hosts.iter_mut().enumerate().for_each(|(position, host)| *host = format!("node-{}", position / 4));
        let policy = CompiledPolicy::new(policy).unwrap();
        let dealt: Vec<Location> = (0..20).map(|k| Location { group: 0, position: k % 5 * 4 + k / 5 }).collect();
        let allreduce = COLLECTIVES.iter().copied().find(|c| c.combines && !c.rooted).unwrap();
        let groups = groups_of(&policy, &dealt, &allreduce.shape(20, 0, 8));
        let hosts: Vec<usize> = groups[0].iter().map(|&rank| dealt[rank].position / 4).collect();
        assert_eq!(groups[0][0], 0);
        assert!(hosts.is_sorted(), "{hosts:?}");
        // a root of another host comes first with those beside it
        let reduce = COLLECTIVES.iter().copied().find(|c| c.combines && c.rooted).unwrap();
        let shape = reduce.shape(20, 13, 8);
        let hosts: Vec<usize> = groups_of(&policy, &dealt, &shape)[0].iter().map(|&rank| dealt[rank].position / 4).collect();
        assert_eq!(hosts, [3, 3, 3, 3, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4]);
        // ranks in their order where they are combined in it
        let shape = Shape { elements: crate::schedule::Elements { commute: false, ..shape.elements }, ..shape };
        assert!(groups_of(&policy, &dealt, &shape)[0].is_sorted());
    }

    /// Where the ranks of each group follow each other, what goes through coordinators keeps their order, as the check proves; where they do not, nothing
    /// goes there.
    #[test]
    fn operations_that_do_not_commute_go_through_coordinators_where_groups_are_in_order() {
        let policy = CompiledPolicy::new(Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap()).unwrap();
        let inside = |group: usize, ranks: usize| (0..ranks).map(move |position| Location { group, position });
        let in_order: Vec<Location> = inside(2, 4).chain(inside(0, 5)).chain(inside(1, 2)).collect();
        let dealt: Vec<Location> = (0..11).map(|k| Location { group: k % 3, position: k / 3 }).collect();
        for collective in COLLECTIVES.iter().copied().filter(|c| c.combines && through(c).is_some()) {
            for (k, (root, bytes)) in [(0, 8), (3, 1000), (4, 30_008), (6, 13), (10, 2000)].into_iter().enumerate() {
                let root = if collective.rooted { root } else { 0 };
                let shape = Shape { in_place: k % 2 == 0, ..collective.shape(11, root, bytes) };
                let shape = Shape { elements: crate::schedule::Elements { commute: false, ..shape.elements }, ..shape };
                let all = forms(&policy, &in_order, collective, &shape, f64::INFINITY).unwrap();
                let through: Vec<&Form> = all.iter().map(|p| &p.form).filter(|f| matches!(f, Form::Coordinated(_))).collect();
                assert!(through.len() > 3, "{} of {bytes} bytes goes through coordinators in {} ways", collective.name, through.len());
                for plan in &all {
                    check(&plan.form.schedule(&shape).unwrap(), &(collective.specification)(&shape))
                        .unwrap_or_else(|e| panic!("{} {shape:?}: {}: {e}", collective.name, plan.form.words()));
                }
                let flat = forms(&policy, &dealt, collective, &shape, f64::INFINITY).unwrap();
                assert!(flat.iter().all(|plan| matches!(plan.form, Form::Flat(..))));
            }
        }
    }
}
