//! How calls overlap in a program, as far as its report tells.

use crate::collective::Collective;
use crate::qnm::{Report, Times, collective, makes_communicator, partners};

/// Seconds of the wall time that calls take, at most: the longest process's, less what the process that computes longest computes, and the mean in other calls.
/// A process is this long, `in_calls`, in these calls in the mean. Where some are done before others, as in a reduction, what one takes is more than that.
pub fn taken(report: &Report, in_calls: f64) -> f64 {
    let Times { app_s, mpi_s } = report.mean;
    let computing = longest(report, |task| task.app_s - task.mpi_s).unwrap_or(app_s - mpi_s);
    (wall(report) - computing - (mpi_s - in_calls)).max(0.0)
}

/// Seconds of the wall time: those of the process that takes longest, where the report says them by process.
pub fn wall(report: &Report) -> f64 {
    longest(report, |task| task.app_s).unwrap_or(report.mean.app_s)
}

/// The most of all processes.
fn longest(report: &Report, of: impl Fn(&Times) -> f64) -> Option<f64> {
    report.tasks.iter().map(of).reduce(f64::max)
}

/// How many of the calls of a collective begin when all processes are done with what was before. In a rooted one data goes one way: who is done goes on
/// to the next call, and the calls overlap until one goes another way. One begins alone for each of those, and the first one of all.
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
