//! How calls overlap in a program, as far as its report tells.

use crate::collective::Collective;
use crate::qnm::{Report, Site, Times, collective, makes_communicator, partners};
use rustc_hash::FxHashMap;

/// Seconds of the wall time in which the process that computes longest does not compute: calls take no more of it, whoever waits where.
pub fn not_computing(report: &Report) -> f64 {
    let Times { app_s, mpi_s } = report.mean;
    wall(report) - longest(report, |task| task.app_s - task.mpi_s).unwrap_or(app_s - mpi_s)
}

/// Seconds of the wall time: those of the process that takes longest, where the report says them by process.
pub fn wall(report: &Report) -> f64 {
    longest(report, |task| task.app_s).unwrap_or(report.mean.app_s)
}

/// The most of all processes.
fn longest(report: &Report, of: impl Fn(&Times) -> f64) -> Option<f64> {
    report.tasks.iter().map(of).reduce(f64::max)
}

/// Seconds of a call at a site, which was called so often in all, on the process that is there longest: no call took more of the wall time. That of all processes
/// in the mean, where the report does not list them.
pub fn longest_call(site: &Site, count: f64) -> f64 {
    let mut by_task: FxHashMap<usize, f64> = FxHashMap::default();
    site.by_task.iter().for_each(|(task, seconds)| *by_task.entry(*task).or_default() += seconds);
    let most_s = by_task.values().copied().fold(0.0, f64::max);
    f64::max(most_s * by_task.len() as f64, site.seconds) / count
}

/// How many of the calls of a collective begin when all processes are done with what was before. In a rooted one data goes one way: who is done goes on
/// to the next call, and the calls overlap until one is made in which processes wait for others. One begins alone for each of those (in what order they come
/// reports do not tell), and the first one of all. All do, where a report does not say how many of those there are.
pub fn share_alone(report: &Report, of: &Collective) -> f64 {
    let goes = |c: &Collective| c.rooted.then(|| c.root_begins());
    if !of.rooted {
        return 1.0;
    }
    let (mut alike, mut others) = (0.0, report.ranks() as f64);
    for site in report.sites.iter().filter(|site| partners(&site.call).is_some() || makes_communicator(&site.call)) {
        let is_alike = collective(&site.call).is_some_and(|c| goes(c) == goes(of));
        *if is_alike { &mut alike } else { &mut others } += site.count.unwrap_or(if is_alike { 0.0 } else { f64::INFINITY });
    }
    if others < alike { others / alike } else { 1.0 }
}
