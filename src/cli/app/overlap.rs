//! How calls overlap in a program, as far as its report tells.

use crate::collective::Collective;
use crate::qnm::{Report, Site, Times, collective, makes_communicator, partners};

/// Computing that differs by less is alike: reports give times to three digits.
const ALIKE: f64 = 0.01;

/// Seconds of the wall time that calls take: what it leaves the process that computes longest beside its computing and its other calls. `by_task` are seconds
/// of each in these calls, where the report lists them; a process is `mean_s` in them in the mean.
pub fn taken(report: &Report, by_task: &[f64], mean_s: f64) -> f64 {
    let computing = |task: &Times| task.app_s - task.mpi_s;
    let Some(longest_s) = report.tasks.iter().map(computing).reduce(f64::max).filter(|_| by_task.len() == report.tasks.len()) else {
        return mean_s;
    };
    let busiest = report.tasks.iter().zip(by_task).filter(|(task, _)| computing(task) >= longest_s - ALIKE * task.app_s);
    // those that are done before others wait for them at the end
    busiest.map(|(task, in_calls)| wall(report) - task.app_s + in_calls).fold(0.0, f64::max)
}

/// Seconds of the wall time: those of the process that takes longest, where the report says them by process.
pub fn wall(report: &Report) -> f64 {
    report.tasks.iter().map(|task| task.app_s).reduce(f64::max).unwrap_or(report.mean.app_s)
}

/// Seconds of a call at a site on the process that is there longest, so much of its time being these calls: no call took more of the wall time. That of all processes
/// in the mean, where the report does not list them.
pub fn longest_call(site: &Site, count: f64) -> f64 {
    let callers = site.by_task.iter().filter(|seconds| **seconds > 0.0).count().max(1) as f64;
    let longest_s = site.by_task.iter().copied().fold(0.0, f64::max);
    f64::max(longest_s * callers, site.seconds) / count
}

/// How many of the calls of a collective begin when all processes are done with what was before. In a rooted one data goes one way: who is done goes on
/// to the next call, and the calls overlap until one is made in which processes wait for others. One begins alone for each of those (in what order they come
/// reports do not tell), and the first one of all.
pub fn share_alone(report: &Report, of: &Collective) -> f64 {
    let goes = |c: &Collective| c.rooted.then(|| c.root_begins());
    if !of.rooted {
        return 1.0;
    }
    let (mut alike, mut others) = (0.0, report.ranks() as f64);
    for site in report.sites.iter().filter(|site| partners(&site.call).is_some() || makes_communicator(&site.call)) {
        let is_alike = collective(&site.call).is_some_and(|c| goes(c) == goes(of));
        *if is_alike { &mut alike } else { &mut others } += site.count.unwrap_or(0.0);
    }
    if others < alike { others / alike } else { 1.0 }
}
