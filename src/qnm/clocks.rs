//! Processors of several speeds: each group of them is a class of customers.

use super::wall::{contention, turns};
use super::{Classes, Components, Machine, approximate};
use crate::error::Result;

/// The components of each group of processors with a clock of its own; of all together, where all are alike. Given are all but
/// contention, those of processors as of a clock of 1.
///
/// # Errors
/// Times that are none.
pub fn solve(machine: &Machine, placed: &[usize], given: &Components) -> Result<Vec<(usize, Components)>> {
    let Components { switch_s, waiting_s, active_s, compute_s, .. } = *given;
    let loads = machine.loads(placed);
    let mut groups: Vec<usize> = loads.keys().map(|n| machine.group(*n)).collect();
    groups.sort_unstable();
    groups.dedup();
    let clock = |g: usize| machine.clock.get(g).copied().unwrap_or(1.0);
    let parts = |g: usize, active_s: f64, contention_s: f64| Components {
        switch_s,
        waiting_s: waiting_s / clock(g),
        contention_s,
        active_s,
        compute_s: compute_s / clock(g),
    };
    if groups.iter().all(|&g| clock(g) == clock(groups[0])) {
        let parts = parts(groups[0], active_s / clock(groups[0]), 0.0);
        let contention_s = contention(machine, placed, &parts)?;
        return Ok(vec![(groups[0], Components { contention_s, ..parts })]);
    }
    if machine.is_crowded(placed) {
        let taking_turns = |&g: &usize| -> Result<(usize, Components)> {
            let own: Vec<usize> = placed.iter().copied().filter(|n| machine.group(*n) == g).collect();
            let parts = parts(g, active_s / clock(g), 0.0);
            Ok((g, Components { contention_s: turns(machine, &own, &parts)?, ..parts }))
        };
        return groups.iter().map(taking_turns).collect();
    }
    // MPI's work is asked of all ranks' nodes, alike
    let asked: Vec<f64> =
        loads.iter().map(|(n, ranks)| active_s * *ranks as f64 / placed.len() as f64 / clock(machine.group(*n))).collect();
    // a node of several processors is one that is as fast as they are together, and a delay (Seidmann, Schweitzer, Shalev-Oren, Large
    // Scale Systems 12, 1987)
    let servers = machine.cores as f64;
    let work: f64 = asked.iter().sum();
    let delay = work * (servers - 1.0) / servers;
    let network = Classes {
        customers: groups.iter().map(|&g| placed.iter().filter(|n| machine.group(**n) == g).count()).collect(),
        think_s: groups.iter().map(|&g| (compute_s + waiting_s) / clock(g) + switch_s + delay).collect(),
        demand_s: groups.iter().map(|_| asked.iter().map(|t| t / servers).collect()).collect(),
        is_delay: vec![false; loads.len()],
    };
    let solution = approximate(&network)?;
    let waits = |c: usize| (solution.residence_s[c].iter().sum::<f64>() + delay - work).max(0.0);
    Ok(groups.iter().enumerate().map(|(c, &g)| (g, parts(g, work, waits(c)))).collect())
}
