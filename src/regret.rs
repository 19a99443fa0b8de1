//! Regret: how much longer the chosen algorithm takes than the best that could be run, on a simulated platform where everything
//! can be run.

use crate::collective::{Algorithm, Collective, Parameters, Shape};
use crate::decide::{by_speed, candidates_by_speed, placed};
use crate::error::{Error, Result};
use crate::model::Among;
use crate::plan::{Form, LONG, Location, PolyModel, forms, in_all_segments, plan, two_level, two_level_parameters, unlike_processors};
use crate::policy::CompiledPolicy;
use crate::schedule::{Program, Schedule};
use crate::sim::{Disturbance, Simulator};
use crate::stats::Random;
use crate::topology::Rank;
use crate::two_level::{INTER_GROUP_ALGORITHMS, has_routes};
use crate::units;
use rand::{Rng, SeedableRng};
use serde::Serialize;

/// One call of a collective that nothing was chosen for.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Case {
    /// The group, or how the ranks were taken from all.
    pub place: String,
    /// How many ranks.
    pub ranks: usize,
    /// The root among them.
    pub root: Rank,
    /// Size.
    pub bytes: usize,
    /// What was chosen.
    pub chosen: String,
    /// Its true time.
    pub chosen_s: f64,
    /// What would have been best.
    pub best: String,
    /// Its true time.
    pub best_s: f64,
    /// `chosen_s / best_s - 1`; `None` where that is no number: the best took no time at all.
    pub regret: Option<f64>,
}

/// Sizes that no choice is made at.
pub const BYTES: [usize; 8] = [20, 300, 1500, 6000, 40_000, 200_000, 700_000, 2_500_000];

/// The regret of a policy in every group of a simulated platform that it has rows for, at held-out sizes and rank counts. `members`: the places of the
/// simulator's ranks in the policy.
///
/// # Errors
/// A simulation that fails, which valid schedules do not.
pub fn regret(policy: &CompiledPolicy, simulator: &Simulator, members: &[Location], collective: &'static Collective) -> Result<Vec<Case>> {
    regret_noting(policy, simulator, members, collective, |_| ())
}

/// As [`regret`]; `note` hears after each case how many are done.
///
/// # Errors
/// Those of [`regret`].
pub fn regret_noting(
    policy: &CompiledPolicy,
    simulator: &Simulator,
    members: &[Location],
    collective: &'static Collective,
    mut note: impl FnMut(usize),
) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for g in (0..policy.policy.groups.len()).filter(|&g| !policy.policy.groups[g].rows(collective).is_empty()) {
        let ranks: Vec<Rank> = (0..members.len()).filter(|&r| members[r].group == g).collect();
        for p in held_out_counts(ranks.len()) {
            for bytes in collective.sizes(&BYTES) {
                let shape = collective.shape(p, 0, bytes);
                cases.push(case(policy, simulator, members, &ranks[..p], collective, &shape)?);
                note(cases.len());
            }
        }
    }
    Ok(cases)
}

/// How many cases [`regret`] has.
pub fn held_out_cases(policy: &CompiledPolicy, members: &[Location], collective: &'static Collective) -> usize {
    let groups = policy.policy.groups.iter().enumerate().filter(|(_, g)| !g.rows(collective).is_empty());
    let counts = groups.map(|(k, _)| held_out_counts(members.iter().filter(|m| m.group == k).count()).len());
    counts.sum::<usize>() * collective.sizes(&BYTES).len()
}

/// All ranks of a group (where only the sizes are held out), and counts that no broadcast was measured at.
fn held_out_counts(n: usize) -> Vec<usize> {
    let mut counts = vec![n, n.saturating_sub(1), 3 * n / 4, n / 3];
    counts.retain(|&p| p >= 2 && (p == n || !crate::score::rank_counts(n).contains(&p)));
    counts.dedup();
    counts
}

fn case(
    policy: &CompiledPolicy,
    simulator: &Simulator,
    members: &[Location],
    ranks: &[Rank],
    collective: &'static Collective,
    shape: &Shape,
) -> Result<Case> {
    let (bytes, group) = (shape.bytes, members[ranks[0]].group);
    let positions: Vec<usize> = ranks.iter().map(|&r| members[r].position).collect();
    let decision = policy.decide(collective, group, &positions, bytes)?;
    let chosen = decision.algorithm.schedule(shape, &decision.parameters);
    let native =
        || Error::data(format!("simulate {}: the simulator has no library with {} of its own", decision.algorithm.name, collective.one()));
    let name = words(decision.algorithm, &decision.parameters);
    let mut best = Best::new(simulator, ranks, name.clone());
    best.against(|| name.clone(), &chosen.ok_or_else(native)?, &placed(ranks, &decision.places))?;
    let chosen_s = best.seconds;
    let members: Vec<Location> = ranks.iter().map(|&r| members[r]).collect();
    best.against_every_algorithm(collective, shape, policy, &members)?;
    let place = policy.policy.groups[group].name.clone();
    Ok(Case { place, root: 0, ranks: ranks.len(), bytes, chosen: name, ..best.case(chosen_s) })
}

fn words(algorithm: &Algorithm, parameters: &Parameters) -> String {
    let by_speed = if parameters.by_speed { " by speed" } else { "" };
    let segment = if parameters.segment > 0 { format!(" in {}", units::bytes(parameters.segment)) } else { String::new() };
    format!("{}{by_speed}{segment}", algorithm.name)
}

/// What takes longer than so many times the best is not tried in other segments, and of the others so many of the fastest are.
const FAST: f64 = 1.5;
const MOST_FAST: usize = 12;

/// So many runs are made where they differ by chance: of nine, the luckiest of a hundred candidates that lose a message in one run of five lost none.
const RUNS: u64 = 50;
/// What takes longer than asked for in the mean of so many is not run on.
const FEW_RUNS: u64 = 9;

/// The fastest schedule over some ranks that was simulated so far.
struct Best<'a> {
    simulator: &'a Simulator,
    ranks: &'a [Rank],
    name: String,
    seconds: f64,
}

impl<'a> Best<'a> {
    fn new(simulator: &'a Simulator, ranks: &'a [Rank], name: String) -> Best<'a> {
        Best { simulator, ranks, name, seconds: f64::INFINITY }
    }

    /// What a schedule takes over these of the simulator's ranks, if that is no longer than `limit_s`.
    fn run(&self, schedule: &Schedule, ranks: &[Rank], limit_s: f64) -> Result<Option<f64>> {
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        let place = |r: Rank| sorted.partition_point(|&other| other < r);
        let mut placed = Schedule { programs: vec![Program::new(); ranks.len()] };
        for (me, program) in schedule.programs.iter().enumerate() {
            placed.programs[place(ranks[me])] = program.clone().renamed(|r| place(ranks[r]));
        }
        let run = |seed: u64, limit_s: f64| -> Result<(Option<f64>, bool)> {
            let mut chance = Disturbance::new(Default::default(), seed);
            let seconds = self.simulator.finish_among(&sorted, &placed, &mut chance, limit_s)?;
            Ok((seconds, chance.chances() > 0))
        };
        let (first, by_chance) = run(0, limit_s)?;
        if !by_chance {
            return Ok(first);
        }
        // where TCP loses messages by chance, the mean of some runs is what users wait for: a median hides what is lost in four of nine
        let mut times = Vec::new();
        for (runs, seed) in [FEW_RUNS, RUNS].into_iter().flat_map(|runs| (0..runs).map(move |seed| (runs, seed))) {
            if seed < times.len() as u64 {
                continue;
            }
            let left_s = limit_s * runs as f64 - times.iter().sum::<f64>();
            let (Some(seconds), _) = run(seed, left_s)? else { return Ok(None) };
            times.push(seconds);
        }
        Ok(crate::stats::mean(&times).filter(|&mean| mean <= limit_s))
    }

    fn against(&mut self, name: impl FnOnce() -> String, schedule: &Schedule, ranks: &[Rank]) -> Result<()> {
        self.within(self.seconds, name, schedule, ranks).map(drop)
    }

    /// As [`Best::against`], with what it takes, if that is no longer than `limit_s`.
    fn within(&mut self, limit_s: f64, name: impl FnOnce() -> String, schedule: &Schedule, ranks: &[Rank]) -> Result<Option<f64>> {
        let seconds = self.run(schedule, ranks, limit_s)?;
        if let Some(seconds) = seconds.filter(|&seconds| seconds < self.seconds) {
            (self.name, self.seconds) = (name(), seconds);
        }
        Ok(seconds)
    }

    /// Every form that predictions put first among its kin; and those through coordinators that turn out to be fast, in segments of all sizes, whatever is
    /// predicted of these.
    fn against_every_form(
        &mut self,
        collective: &'static Collective,
        shape: &Shape,
        policy: &CompiledPolicy,
        members: &[Location],
    ) -> Result<()> {
        let mut fast: Vec<(f64, Form)> = Vec::new();
        for plan in forms(policy, members, collective, shape, f64::INFINITY)? {
            let found = self.within(FAST * self.seconds, || plan.form.words(), &plan.form.schedule(shape)?, self.ranks)?;
            fast.extend(found.map(|seconds| (seconds, plan.form)).filter(|(_, form)| matches!(form, Form::Coordinated(_))));
        }
        fast.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut tried: Vec<Form> = fast.iter().map(|(_, form)| form.clone()).collect();
        for (_, form) in fast.into_iter().take(MOST_FAST) {
            for form in in_all_segments(policy, members, &form, shape)? {
                if !tried.contains(&form) {
                    self.against(|| form.words(), &form.schedule(shape)?, self.ranks)?;
                    tried.push(form);
                }
            }
        }
        Ok(())
    }

    /// Every algorithm over the ranks, in their order and by the speed of their processors, which a policy knows by their places.
    fn against_every_algorithm(
        &mut self,
        collective: &Collective,
        shape: &Shape,
        policy: &CompiledPolicy,
        members: &[Location],
    ) -> Result<()> {
        let costs = PolyModel::new(policy, members, collective, shape.bytes)?;
        // the root first
        let order: Vec<usize> = (0..shape.ranks).map(|k| shape.absolute(k)).collect();
        let among = Among { inner: &costs, positions: order.clone() };
        let ranks: Vec<Rank> = order.iter().map(|&k| self.ranks[k]).collect();
        let shape = Shape { root: 0, ..*shape };
        let unlike = unlike_processors(policy, members);
        for (algorithm, parameters) in candidates_by_speed(collective, shape.ranks, shape.bytes, unlike) {
            if !(algorithm.fits)(&shape) {
                continue;
            }
            let Some(schedule) = algorithm.schedule(&shape, &parameters) else { continue };
            let places =
                if parameters.by_speed { by_speed(collective, algorithm, &parameters, &among, shape.ranks, shape.bytes)? } else { None };
            self.against(|| words(algorithm, &parameters), &schedule, &placed(&ranks, &places))?;
        }
        Ok(())
    }

    /// What is known of a case then.
    fn case(self, chosen_s: f64) -> Case {
        let regret = crate::stats::excess(chosen_s, self.seconds);
        Case { chosen_s, best: self.name, best_s: self.seconds, regret, ..Case::default() }
    }
}

/// The segments that schedules over groups are tried with.
const SEGMENTS: [usize; 8] = [0, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10];

/// The largest message that is drawn: the largest that choices are made at.
const LARGEST: f64 = LONG[1] as f64;

/// The regret of a policy where users meet it: calls of a collective with any size, from any root, among all of a simulated platform's ranks (placed by slot or
/// dealt out), or some of them. Half of the sizes lie on both sides of where a row begins, the others are drawn log-uniform up to 4 MiB.
/// Each is compared with every schedule over groups, in segments of powers of two (of other collectives than the broadcast: every form, and the fast ones in
/// segments of all sizes), and with every algorithm over all its ranks. `members`: the places of the simulator's ranks in the policy.
///
/// # Errors
/// As [`regret`].
pub fn met(
    policy: &CompiledPolicy,
    simulator: &Simulator,
    members: &[Location],
    collective: &'static Collective,
    cases: usize,
    seed: u64,
) -> Result<Vec<Case>> {
    met_noting(policy, simulator, members, collective, (cases, seed), |_| ())
}

/// As [`met`], of so many cases with this seed; `note` hears after each how many are done.
///
/// # Errors
/// Those of [`met`].
pub fn met_noting(
    policy: &CompiledPolicy,
    simulator: &Simulator,
    members: &[Location],
    collective: &'static Collective,
    (cases, seed): (usize, u64),
    mut note: impl FnMut(usize),
) -> Result<Vec<Case>> {
    let mut random = Random::seed_from_u64(seed);
    let edges = edges(policy, collective);
    let mut one = |k: usize| {
        let case = draw(&mut random, collective, &edges, members).and_then(|drawn| meet(policy, simulator, members, collective, &drawn));
        note(k + 1);
        case
    };
    (0..cases).map(&mut one).collect()
}

/// The sizes at which rows begin, and those just below.
fn edges(policy: &CompiledPolicy, collective: &'static Collective) -> Vec<usize> {
    let across = policy.policy.two_level(collective).iter().map(|r| r.from_bytes);
    let inside = policy.policy.groups.iter().flat_map(|g| g.rows(collective)).map(|r| r.from_bytes);
    let mut edges: Vec<usize> = across.chain(inside).filter(|&from| from > 1).flat_map(|from| [from - 1, from]).collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// A call that a user meets.
struct Drawn {
    place: &'static str,
    /// Ranks of the simulator.
    ranks: Vec<Rank>,
    root: Rank,
    bytes: usize,
}

fn draw(random: &mut Random, collective: &Collective, edges: &[usize], members: &[Location]) -> Result<Drawn> {
    let n = members.len();
    if n < 2 {
        return Err(Error::invalid(format!("draw calls among {n} ranks")));
    }
    let mut ranks: Vec<Rank> = (0..n).collect();
    let place = match random.random_range(0..4) {
        0 => {
            // dealt out: the first of each group, then the second
            let before = |r: Rank| members[..r].iter().filter(|m| m.group == members[r].group).count();
            ranks.sort_by_key(|&r| (before(r), members[r].group));
            "dealt out"
        }
        1 => {
            let some = random.random_range(2..=n);
            while ranks.len() > some {
                ranks.remove(random.random_range(0..ranks.len()));
            }
            "some of them"
        }
        _ => "all, by group",
    };
    let bytes = match edges.get(random.random_range(0..2 * edges.len().max(1))) {
        Some(&edge) if edge as f64 <= LARGEST => edge,
        _ => LARGEST.powf(random.random_range(0.0..1.0)) as usize,
    };
    let root = random.random_range(0..ranks.len());
    Ok(Drawn { place, root: if collective.rooted { root } else { 0 }, ranks, bytes: if collective.sized() { bytes } else { 0 } })
}

fn meet(
    policy: &CompiledPolicy,
    simulator: &Simulator,
    members: &[Location],
    collective: &'static Collective,
    drawn: &Drawn,
) -> Result<Case> {
    let Drawn { place, ranks, root, bytes } = drawn;
    let (root, bytes) = (*root, *bytes);
    let members: Vec<Location> = ranks.iter().map(|&r| members[r]).collect();
    let shape = collective.shape(ranks.len(), root, bytes);
    let plan = plan(policy, &members, collective, &shape)?;
    let (chosen, schedule) = (plan.words(), plan.form.schedule(&shape)?);
    let mut best = Best::new(simulator, ranks, chosen.clone());
    best.against(|| chosen.clone(), &schedule, ranks)?;
    let chosen_s = best.seconds;
    if !has_routes(collective) {
        best.against_every_form(collective, &shape, policy, &members)?;
        if unlike_processors(policy, &members) {
            best.against_every_algorithm(collective, &shape, policy, &members)?;
        }
    } else {
        let segments: Vec<usize> = SEGMENTS.into_iter().filter(|&s| s < bytes).collect();
        for choice in
            INTER_GROUP_ALGORITHMS.into_iter().flat_map(|inter_group| two_level_parameters(policy, &members, inter_group, &segments))
        {
            best.against(|| choice.words(bytes), &two_level(policy, &members, root, bytes, choice)?.schedule(members.len())?, ranks)?;
        }
        best.against_every_algorithm(collective, &shape, policy, &members)?;
    }
    Ok(Case { place: (*place).into(), root, ranks: ranks.len(), bytes, chosen, ..best.case(chosen_s) })
}
