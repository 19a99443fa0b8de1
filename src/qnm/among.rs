//! Among which processes collectives are: all, or those of a communicator of some, as far as a report says.

use super::histogram;
use super::used::name_of_uses;
use super::{Report, Site, Use};
use serde::Serialize;

/// The processes of communicators of some; of those that divide all there are as many as cover all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Part {
    /// Processes of each.
    pub ranks: usize,
    /// Ranks between one and the next; none where that is not known.
    pub stride: Option<usize>,
    /// The least and the most that they may be, where their number is a guess.
    pub range: Option<(usize, usize)>,
}

impl Part {
    /// So many, so far apart.
    pub fn new(ranks: usize, stride: Option<usize>) -> Part {
        Part { ranks, stride, range: None }
    }

    /// Ranks between members: one after the other and as far apart as can be, where it is not known.
    pub fn strides(self, all: usize) -> Vec<usize> {
        self.stride.map_or_else(|| vec![1, (all / self.ranks).max(1)], |stride| vec![stride])
    }

    /// The first of the communicators, of everything by rank; none where it is not known which ranks it has, or there are not so many.
    pub fn first<T: Clone>(self, all: &[T]) -> Option<Vec<T>> {
        let stride = self.stride?;
        (0..self.ranks).map(|k| all.get(k * stride).cloned()).collect()
    }
}

/// Calls of a site that are among the same processes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Their processes; none are all.
    pub part: Option<Part>,
    /// How many of the site's calls they are.
    pub calls: f64,
    /// How much of its time they took.
    pub seconds: f64,
    /// Bytes of a call, where they are not those of all calls of the site.
    pub bytes: Option<f64>,
}

/// Among which processes the calls of a site are; a part of one sends nothing. A report that says nothing of it says all.
pub fn parts(report: &Report, site: &Site) -> Vec<Share> {
    let found = if report.is_own() { by_uses(report, site) } else { histogram::parts(report, site) };
    let sum = |of: fn(&Share) -> f64| found.iter().map(of).sum::<f64>();
    let (calls, seconds) = (sum(|share| share.calls), sum(|share| share.seconds));
    if calls <= 0.0 {
        return vec![Share { part: None, calls: 1.0, seconds: 1.0, bytes: None }];
    }
    let of_all = |share: &Share| {
        let calls = share.calls / calls;
        Share { calls, seconds: if seconds > 0.0 { share.seconds / seconds } else { calls }, ..*share }
    };
    found.iter().map(of_all).collect()
}

/// True where a report says of a call among which processes it is.
pub fn is_said(report: &Report, call: &str) -> bool {
    let name = name_of_uses(call);
    report.histogram.iter().any(|row| row.call == call) || report.is_own() && report.uses.iter().any(|used| used.collective == name)
}

/// As our own reports say it.
fn by_uses(report: &Report, site: &Site) -> Vec<Share> {
    let name = name_of_uses(&site.call);
    // their sites are ranges of sizes
    let size = site.place.split(':').next().unwrap_or_default();
    let own = report.uses.iter().filter(|used| used.collective == name && used.size == size);
    let share = |used: &Use| {
        let part = (used.ranks < report.ranks()).then(|| Part::new(used.ranks, used.stride));
        let calls = used.calls * used.processes.unwrap_or(1) as f64;
        Share { part, calls, seconds: calls * used.seconds, bytes: Some(used.bytes) }
    };
    own.map(share).collect()
}
