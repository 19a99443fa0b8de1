//! Collectives over several groups in one of two forms: one algorithm over all ranks, or through the coordinators of the groups. (The broadcast has
//! inter-group algorithms of its own.)

use super::{Location, PolyModel, group_ranks, placement};
use crate::collective::{Algorithm, Collective, Parameters, Shape, bcast};
use crate::decide::all_candidates;
use crate::error::{Error, Result};
use crate::policy::{CompiledPolicy, TwoLevelRow, bounded};
use crate::predict::completion;
use crate::schedule::{Program, Schedule};
use crate::topology::Rank;
use crate::two_level::{Coordinated, IntraGroup, through};
use crate::units;

/// True if a collective is planned in one of these forms.
pub fn by_form(collective: &Collective) -> bool {
    *collective != bcast::COLLECTIVE
}

/// A form of a collective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// One algorithm over all ranks; or the library's own.
    Flat(&'static Collective, &'static Algorithm, Parameters),
    /// Through coordinators.
    Coordinated(Coordinated),
}

/// A form, with what it should take.
#[derive(Debug, Clone)]
pub struct FormPlan {
    /// What is done.
    pub form: Form,
    /// The time it should take, in seconds.
    pub predicted_s: f64,
    /// True if it was measured over about these ranks; else it was chosen by prediction.
    pub from_row: bool,
}

/// Segments that pass through coordinators are tried from this size on, doubled, as far as a message has at most [`MOST_SEGMENTS`]: shorter ones cost
/// more in overheads than they win on wide-area links.
const LEAST_SEGMENT: usize = 8 << 10;
/// More would only take longer to predict.
const MOST_SEGMENTS: usize = 256;
/// Segments of just below 64 KiB are tried too: above, many libraries shake hands.
const BELOW_HANDSHAKE: usize = 63 << 10;

impl Form {
    /// Its name and its parts'.
    pub fn words(&self) -> String {
        let one = |name: &str, parameters: &Parameters| {
            let radix = if parameters.radix == 0 { String::new() } else { format!(" of radix {}", parameters.radix) };
            let segment = if parameters.segment == 0 { String::new() } else { format!(" in {}", units::bytes(parameters.segment)) };
            format!("{name}{radix}{segment}")
        };
        match self {
            Form::Flat(_, algorithm, parameters) => one(algorithm.name, parameters),
            Form::Coordinated(c) => {
                let part = |l: &IntraGroup| one(l.algorithm.name, &l.parameters);
                let segment = if c.segment == 0 { String::new() } else { format!(", in {}", units::bytes(c.segment)) };
                format!("{} between coordinators, {} inside{segment}", part(&c.between), part(&c.inside))
            }
        }
    }

    /// The library's own.
    fn native(collective: &'static Collective) -> Form {
        Form::Flat(collective, collective.native(), Parameters::default())
    }

    /// True if what predictions of one miss tells of the other: the same algorithms, whatever their parameters.
    pub fn is_like(&self, other: &Form) -> bool {
        match (self, other) {
            (Form::Flat(_, a, _), Form::Flat(_, b, _)) => a == b,
            (Form::Coordinated(a), Form::Coordinated(b)) => a.between.algorithm == b.between.algorithm,
            _ => false,
        }
    }

    /// True if everybody calls the library's own.
    pub fn is_native(&self) -> bool {
        matches!(self, Form::Flat(_, algorithm, _) if algorithm.is_native())
    }

    /// True if it does what a shape asks for.
    pub fn fits(&self, shape: &Shape) -> bool {
        match self {
            Form::Flat(_, algorithm, _) => (algorithm.fits)(shape),
            Form::Coordinated(coordinated) => coordinated.fits(shape),
        }
    }

    /// How many lanes its programs have, at most.
    pub fn lanes(&self) -> usize {
        match self {
            Form::Flat(_, algorithm, _) => algorithm.lanes,
            Form::Coordinated(coordinated) => coordinated.lanes(),
        }
    }

    /// What a rank sends and receives.
    ///
    /// # Errors
    /// An algorithm that there is not, or the library's own, whose messages are not known.
    pub fn program(&self, me: Rank, shape: &Shape) -> Result<Program> {
        match self {
            Form::Flat(_, algorithm, parameters) => {
                let program = algorithm.program(me, shape, &bounded(*parameters, shape.bytes));
                program.ok_or_else(|| Error::invalid(format!("build the program of {}: its messages are not known", algorithm.name)))
            }
            Form::Coordinated(coordinated) => coordinated.program(me, shape),
        }
    }

    /// How many operations all ranks have together, about: as if each had as many as the first and one in the middle have in the mean.
    fn operations(&self, shape: &Shape) -> Result<usize> {
        let two = self.program(0, shape)?.len() + self.program(shape.ranks / 2, shape)?.len();
        Ok(two.saturating_mul(shape.ranks) / 2)
    }

    /// The programs of all ranks.
    ///
    /// # Errors
    /// As [`Form::program`].
    pub fn schedule(&self, shape: &Shape) -> Result<Schedule> {
        Ok(Schedule { programs: (0..shape.ranks).map(|me| self.program(me, shape)).collect::<Result<_>>()? })
    }

    /// What it should take.
    ///
    /// # Errors
    /// The policy lacks a link, or as [`Form::program`].
    pub fn seconds(&self, policy: &CompiledPolicy, members: &[Location], shape: &Shape) -> Result<f64> {
        completion(&self.schedule(shape)?, &PolyModel::new(policy, members, shape.bytes)?)
    }
}

/// Every form that fits over several groups, with what it should take, the fastest first.
///
/// # Errors
/// The policy lacks a link, or an algorithm that there is not.
pub fn forms(policy: &CompiledPolicy, members: &[Location], collective: &'static Collective, shape: &Shape) -> Result<Vec<FormPlan>> {
    let costs = PolyModel::new(policy, members, shape.bytes)?;
    let flat = all_candidates(collective, members.len(), shape.bytes);
    let mut all: Vec<Form> = flat.iter().map(|&(a, p)| Form::Flat(collective, a, p)).collect();
    if let Some(through) = through(collective) {
        let between = between(&flat);
        for inside in (through.trees)().into_iter().flat_map(with_radices) {
            let with = |&(between, segment): &_| Form::Coordinated(coordinated(members, collective, shape.root, inside, between, segment));
            let segments = if through.segmented { segments(shape.bytes) } else { vec![0] };
            let pairs: Vec<_> = between.iter().flat_map(|&b| segments.iter().map(move |&s| (b, s))).collect();
            all.extend(pairs.iter().map(with));
        }
    }
    all.retain(|form| form.fits(shape));
    let predicted = |form: Form| {
        let predicted_s = completion(&form.schedule(shape)?, &costs)?;
        Ok(FormPlan { form, predicted_s, from_row: false })
    };
    let mut all: Vec<FormPlan> = all.into_iter().map(predicted).collect::<Result<_>>()?;
    all.sort_by(|a, b| a.predicted_s.total_cmp(&b.predicted_s));
    Ok(all)
}

/// What coordinators may do, in one piece: what is cut into segments is cut for all levels.
fn between(flat: &[(&'static Algorithm, Parameters)]) -> Vec<(&'static Algorithm, Parameters)> {
    flat.iter().copied().filter(|(_, parameters)| parameters.segment == 0).collect()
}

/// A tree with each of its radices.
fn with_radices(tree: &'static Algorithm) -> Vec<(&'static Algorithm, Parameters)> {
    match tree.radices {
        [] => vec![(tree, Parameters::default())],
        radices => radices.iter().map(|&radix| (tree, Parameters::of(0, radix))).collect(),
    }
}

/// Segments worth trying.
fn segments(bytes: usize) -> Vec<usize> {
    let doubled = (0..).map(|k| LEAST_SEGMENT << k).take_while(|&s| s < bytes).chain([BELOW_HANDSHAKE]);
    let mut all: Vec<usize> = doubled.filter(|&s| s < bytes && bytes.div_ceil(s) <= MOST_SEGMENTS).collect();
    all.push(0);
    all.sort_unstable();
    all
}

fn coordinated(
    members: &[Location],
    collective: &'static Collective,
    root: Rank,
    inside: (&'static Algorithm, Parameters),
    between: (&'static Algorithm, Parameters),
    segment: usize,
) -> Coordinated {
    let part = |(algorithm, parameters)| IntraGroup { algorithm, parameters };
    let groups = group_ranks(members, root).into_iter().map(|(_, ranks)| ranks).collect();
    Coordinated { collective, groups, inside: part(inside), between: part(between), segment }
}

/// Plans a collective that has these forms. The same input gives the same plan on every rank.
///
/// # Errors
/// As [`forms`].
pub fn plan_form(policy: &CompiledPolicy, members: &[Location], collective: &'static Collective, shape: &Shape) -> Result<FormPlan> {
    let group = members[0].group;
    if members.iter().all(|m| m.group == group) {
        let positions: Vec<usize> = members.iter().map(|m| m.position).collect();
        let decided = policy.decide(collective, group, &positions, shape.bytes)?;
        let form = Form::Flat(collective, decided.algorithm, decided.parameters);
        return Ok(FormPlan { form, predicted_s: decided.predicted_s, from_row: decided.from_row }.or_native(collective, shape));
    }
    let about_whole = |k: usize| policy.is_about_whole(k, members.iter().filter(|m| m.group == k).count());
    let row = policy.two_level(collective, shape.bytes).filter(|_| (0..policy.policy.groups.len()).all(about_whole));
    // an algorithm over all ranks goes by their numbers: where others have these, it crosses groups elsewhere
    let placed = || policy.is_as_measured(collective, members.len(), &placement(members));
    if let Some(row) = row.filter(|row| row.intra_group.is_some() || placed()) {
        return Ok(from_row(policy, members, collective, row, shape)?.or_native(collective, shape));
    }
    // where nothing was tuned of it, nobody knows that the library's own is slower
    let native = FormPlan { form: Form::native(collective), predicted_s: 0.0, from_row: false };
    if policy.policy.two_level(collective).is_empty() {
        return Ok(native);
    }
    Ok(predicted(policy, members, collective, shape)?.unwrap_or(native))
}

/// So many operations of candidates are predicted, where no row fits: some 50 ms.
const MOST_PREDICTED: usize = 1 << 19;

/// The form that is predicted to be the fastest, of what rows say, those of near sizes first, the nearest with any tree, and of the algorithms over
/// all ranks where no two pairs of these share what is between two groups.
fn predicted(policy: &CompiledPolicy, members: &[Location], collective: &'static Collective, shape: &Shape) -> Result<Option<FormPlan>> {
    let mut rows: Vec<&TwoLevelRow> = policy.policy.two_level(collective).iter().collect();
    let apart = |row: &TwoLevelRow| (row.at_bytes.max(shape.bytes) / row.at_bytes.min(shape.bytes).max(1), row.at_bytes);
    rows.sort_by_key(|row| apart(row));
    let mut candidates: Vec<Form> = rows.into_iter().map(|row| form_of(members, collective, row, shape)).collect::<Result<_>>()?;
    let nearest = candidates.iter().find_map(|form| if let Form::Coordinated(c) = form { Some(c.clone()) } else { None });
    for (nearest, through) in nearest.into_iter().filter_map(|nearest| Some((nearest, through(collective)?))) {
        let trees = (through.trees)().into_iter().flat_map(with_radices);
        let with = |(algorithm, parameters)| Coordinated { inside: IntraGroup { algorithm, parameters }, ..nearest.clone() };
        candidates.extend(trees.map(with).map(Form::Coordinated));
    }
    let flat = all_candidates(collective, members.len(), shape.bytes);
    candidates.extend(between(&flat).into_iter().map(|(a, p)| Form::Flat(collective, a, p)));
    // what messages of several pairs share between two groups is not known
    let sharing = collective.sized() && group_ranks(members, shape.root).iter().filter(|(_, ranks)| ranks.len() > 1).count() > 1;
    if sharing && through(collective).is_some() {
        candidates.retain(|form| matches!(form, Form::Coordinated(_)));
    }
    let costs = PolyModel::new(policy, members, shape.bytes)?;
    let (mut best, mut left, mut seen): (Option<FormPlan>, usize, Vec<&Form>) = (None, MOST_PREDICTED, Vec::new());
    for form in &candidates {
        if seen.contains(&form) || !form.fits(shape) {
            continue;
        }
        seen.push(form);
        // the first one is predicted, whatever it takes
        let Some(rest) = left.checked_sub(form.operations(shape)?).or(best.is_none().then_some(0)) else { continue };
        left = rest;
        let predicted_s = completion(&form.schedule(shape)?, &costs)?;
        if best.as_ref().is_none_or(|best| predicted_s < best.predicted_s) {
            best = Some(FormPlan { form: form.clone(), predicted_s, from_row: false });
        }
    }
    Ok(best)
}

impl FormPlan {
    /// The library's own, where this was made for an operation that commutes and the shape's does not.
    fn or_native(self, collective: &'static Collective, shape: &Shape) -> FormPlan {
        if self.form.fits(shape) { self } else { FormPlan { form: Form::native(collective), ..self } }
    }
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
    if let Some(predicted_s) = native {
        return Ok(FormPlan { form: Form::native(collective), predicted_s, from_row: true });
    }
    let predicted_s = policy.two_level_seconds(collective, shape.bytes);
    Ok(FormPlan { form: form_of(members, collective, row, shape)?, predicted_s, from_row: true })
}

/// The form that a row says.
///
/// # Errors
/// An algorithm that there is not.
pub fn form_of(members: &[Location], collective: &'static Collective, row: &TwoLevelRow, shape: &Shape) -> Result<Form> {
    let algorithm = collective.algorithm(&row.inter_group)?;
    let Some(inside) = &row.intra_group else { return Ok(Form::Flat(collective, algorithm, row.parameters())) };
    let through = through(collective).ok_or_else(|| Error::invalid(format!("a {} does not go through coordinators", collective.name)))?;
    let inside = (through.tree(inside)?, row.intra_parameters());
    let between = (algorithm, Parameters { segment: 0, ..row.parameters() });
    // so many segments as a message may have
    let segment = bounded(row.parameters(), shape.bytes).segment;
    Ok(Form::Coordinated(coordinated(members, collective, shape.root, inside, between, segment)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::COLLECTIVES;
    use crate::policy::Policy;
    use crate::schedule::check;
    use std::path::Path;

    #[test]
    fn the_librarys_own_has_no_program_and_says_so() {
        let barrier = COLLECTIVES.into_iter().find(|c| !c.sized()).unwrap();
        let form = Form::native(barrier);
        let said = form.schedule(&Shape::new(4, 0, 0)).unwrap_err().to_string();
        assert!(said.contains("build the program of native"), "{said}");
    }

    #[test]
    fn every_form_does_what_the_collective_is_for_and_the_plan_is_the_fastest() {
        let policy = CompiledPolicy::new(Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap()).unwrap();
        let of = |(group, g): (usize, &crate::policy::GroupPolicy)| (0..g.hosts.len()).map(move |position| Location { group, position });
        let everybody: Vec<Location> = policy.policy.groups.iter().enumerate().flat_map(of).collect();
        // some of the hosts, in an order of their own
        let some: Vec<Location> = (0..25).map(|k| everybody[(k * 31 + 7) % everybody.len()]).collect();
        for collective in COLLECTIVES.into_iter().filter(|&c| c.tuned && c != &bcast::COLLECTIVE) {
            for (members, bytes) in [(&everybody, 8), (&some, 8), (&some, 40_008)] {
                let ranks = members.len();
                let shape = collective.shape(ranks, 0, if collective.sized() { bytes } else { 0 });
                let specification = (collective.specification)(&shape);
                let all = forms(&policy, members, collective, &shape).unwrap();
                for plan in &all {
                    check(&plan.form.schedule(&shape).unwrap(), &specification).unwrap_or_else(|e| panic!("{}: {e}", plan.form.words()));
                }
                let plan = plan_form(&policy, members, collective, &shape).unwrap();
                if policy.policy.two_level(collective).is_empty() {
                    assert!(plan.form.is_native());
                    continue;
                }
                assert!(plan.from_row == (ranks == everybody.len()) && !plan.form.is_native());
                // what was measured may differ from what is predicted
                assert!(plan.predicted_s <= all[0].predicted_s * 1.2, "{} takes {}", plan.form.words(), plan.predicted_s);
            }
        }
    }
}
