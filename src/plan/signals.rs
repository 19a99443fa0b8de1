//! Collectives without a message: one algorithm over all ranks, or through the coordinators of the groups.

use super::{Location, PolyModel, group_ranks, placement};
use crate::collective::{Algorithm, Collective, Parameters, Shape};
use crate::decide::all_candidates;
use crate::error::{Error, Result};
use crate::policy::{CompiledPolicy, TwoLevelRow};
use crate::predict::completion;
use crate::schedule::{Program, Schedule};
use crate::topology::Rank;
use crate::two_level::{Coordinated, IntraGroup};

/// A way to do a collective without a message.
#[derive(Debug, Clone)]
pub enum SignalWay {
    /// One algorithm over all ranks; or the library's own.
    Flat(&'static Collective, &'static Algorithm, Parameters),
    /// Through coordinators.
    Coordinated(Coordinated),
}

/// A way, with what it should take.
#[derive(Debug, Clone)]
pub struct SignalPlan {
    /// What is done.
    pub way: SignalWay,
    /// The time it should take, in seconds.
    pub predicted_s: f64,
    /// True if it was measured over about these ranks; else it was chosen by prediction.
    pub from_row: bool,
}

impl SignalWay {
    /// Its name and its parts'.
    pub fn words(&self) -> String {
        let one = |name: &str, radix: usize| if radix == 0 { name.to_string() } else { format!("{name} of radix {radix}") };
        match self {
            SignalWay::Flat(_, algorithm, parameters) => one(algorithm.name, parameters.radix),
            SignalWay::Coordinated(c) => {
                let part = |l: &IntraGroup| one(&l.algorithm, l.parameters.radix);
                format!("{} between coordinators, {} inside", part(&c.between), part(&c.inside))
            }
        }
    }

    /// True if everybody calls the library's own.
    pub fn is_native(&self) -> bool {
        matches!(self, SignalWay::Flat(_, algorithm, _) if algorithm.is_native())
    }

    /// What a rank of so many sends and receives.
    ///
    /// # Errors
    /// An algorithm that there is not, or the library's own, whose messages are not known.
    pub fn program(&self, me: Rank, ranks: usize) -> Result<Program> {
        match self {
            SignalWay::Flat(_, algorithm, parameters) => {
                let shape = Shape::new(ranks, 0, 0);
                let program = algorithm.program(me, &shape, parameters);
                program.ok_or_else(|| Error::invalid(format!("build the program of {}: its messages are not known", algorithm.name)))
            }
            SignalWay::Coordinated(coordinated) => coordinated.program(me),
        }
    }

    /// The programs of all ranks.
    ///
    /// # Errors
    /// As [`SignalWay::program`].
    pub fn schedule(&self, ranks: usize) -> Result<Schedule> {
        Ok(Schedule { programs: (0..ranks).map(|me| self.program(me, ranks)).collect::<Result<_>>()? })
    }
}

/// Every way there is over several groups, with what it should take, the fastest first.
///
/// # Errors
/// The policy lacks a link, or an algorithm that there is not.
pub fn signal_ways(policy: &CompiledPolicy, members: &[Location], collective: &'static Collective) -> Result<Vec<SignalPlan>> {
    let costs = PolyModel::new(policy, members, 0)?;
    let flat = all_candidates(collective, 0);
    let mut ways: Vec<SignalWay> = flat.iter().map(|&(a, p)| SignalWay::Flat(collective, a, p)).collect();
    for inside in flat.iter().filter(|(a, _)| a.tree.is_some()) {
        ways.extend(flat.iter().map(|between| SignalWay::Coordinated(coordinated(members, collective, inside, between))));
    }
    let predicted = |way: SignalWay| {
        let predicted_s = completion(&way.schedule(members.len())?, &costs)?;
        Ok(SignalPlan { way, predicted_s, from_row: false })
    };
    let mut ways: Vec<SignalPlan> = ways.into_iter().map(predicted).collect::<Result<_>>()?;
    ways.sort_by(|a, b| a.predicted_s.total_cmp(&b.predicted_s));
    Ok(ways)
}

fn coordinated(
    members: &[Location],
    collective: &'static Collective,
    inside: &(&'static Algorithm, Parameters),
    between: &(&'static Algorithm, Parameters),
) -> Coordinated {
    let intra_group =
        |(algorithm, parameters): &(&Algorithm, Parameters)| IntraGroup { algorithm: algorithm.name.into(), parameters: *parameters };
    let groups = group_ranks(members, 0).into_iter().map(|(_, ranks)| ranks).collect();
    Coordinated { collective, groups, inside: intra_group(inside), between: intra_group(between) }
}

/// Plans a collective without a message. The same input gives the same plan on every rank.
///
/// # Errors
/// A collective that has a message, or as [`signal_ways`].
pub fn plan_signals(policy: &CompiledPolicy, members: &[Location], collective: &'static Collective) -> Result<SignalPlan> {
    if collective.sized() {
        return Err(Error::invalid(format!("plan a {} without its message", collective.name)));
    }
    let group = members[0].group;
    if members.iter().all(|m| m.group == group) {
        let positions: Vec<usize> = members.iter().map(|m| m.position).collect();
        let decided = policy.decide(collective, group, &positions, 0)?;
        let way = SignalWay::Flat(collective, decided.algorithm, decided.parameters);
        return Ok(SignalPlan { way, predicted_s: decided.predicted_s, from_row: decided.from_row });
    }
    let about_whole = |k: usize| policy.is_about_whole(k, members.iter().filter(|m| m.group == k).count());
    let row = policy.two_level(collective, 0).filter(|_| (0..policy.policy.groups.len()).all(about_whole));
    if let Some(row) = row {
        return from_row(policy, members, collective, row);
    }
    let ways = signal_ways(policy, members, collective)?;
    ways.into_iter().next().ok_or_else(|| Error::invalid(format!("plan a {}: it has no algorithm", collective.name)))
}

fn from_row(policy: &CompiledPolicy, members: &[Location], collective: &'static Collective, row: &TwoLevelRow) -> Result<SignalPlan> {
    let of = |name: &str, parameters: Parameters| Ok((collective.algorithm(name)?, parameters));
    let as_measured = || policy.is_as_measured(collective, members.len(), &placement(members));
    let native = row.evidence.native_s.filter(|_| row.native && as_measured());
    if let Some(predicted_s) = native {
        return Ok(SignalPlan {
            way: SignalWay::Flat(collective, collective.native(), Parameters::default()),
            predicted_s,
            from_row: true,
        });
    }
    let between = of(&row.inter_group, row.parameters())?;
    let way = match &row.intra_group {
        None => SignalWay::Flat(collective, between.0, between.1),
        Some(inside) => SignalWay::Coordinated(coordinated(members, collective, &of(inside, row.intra_parameters())?, &between)),
    };
    Ok(SignalPlan { way, predicted_s: row.evidence.measured_s.unwrap_or(row.evidence.predicted_s), from_row: true })
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
        let way = SignalWay::Flat(barrier, barrier.native(), Parameters::default());
        let said = way.schedule(4).unwrap_err().to_string();
        assert!(said.contains("build the program of native"), "{said}");
    }

    #[test]
    fn every_way_does_what_the_collective_is_for_and_the_plan_is_the_fastest() {
        let policy = CompiledPolicy::new(Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap()).unwrap();
        let of = |(group, g): (usize, &crate::policy::GroupPolicy)| (0..g.hosts.len()).map(move |position| Location { group, position });
        let everybody: Vec<Location> = policy.policy.groups.iter().enumerate().flat_map(of).collect();
        // some of the hosts, in an order of their own
        let some: Vec<Location> = (0..25).map(|k| everybody[(k * 31 + 7) % everybody.len()]).collect();
        for collective in COLLECTIVES.into_iter().filter(|c| !c.sized()) {
            for members in [&everybody, &some] {
                let ranks = members.len();
                let specification = (collective.specification)(&Shape::new(ranks, 0, 0));
                let ways = signal_ways(&policy, members, collective).unwrap();
                for plan in &ways {
                    check(&plan.way.schedule(ranks).unwrap(), &specification).unwrap_or_else(|e| panic!("{}: {e}", plan.way.words()));
                }
                let plan = plan_signals(&policy, members, collective).unwrap();
                assert!(plan.from_row == (ranks == everybody.len()) && !plan.way.is_native());
                // what was measured may differ from what is predicted
                assert!(plan.predicted_s <= ways[0].predicted_s * 1.2, "{} takes {}", plan.way.words(), plan.predicted_s);
            }
        }
    }
}
