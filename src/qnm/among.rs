//! Among which processes collectives are: all, or those of a communicator of some, as far as a report says.

use super::used::name_of_uses;
use super::{Report, Site};
use serde::Serialize;

/// The processes of communicators of some, of which there are as many as cover all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Part {
    /// Processes of each.
    pub ranks: usize,
    /// Ranks between one and the next; none where that is not known.
    pub stride: Option<usize>,
}

impl Part {
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

/// A row of mpiP's table of the time in collectives (its option `-y`): the share of all of them in which calls of a name are in such ranges.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Histogram {
    /// Without `MPI_`.
    pub call: String,
    /// Of the time in MPI.
    pub share: f64,
    /// The least and the largest number of processes.
    pub ranks: (usize, usize),
    /// The least and the most bytes.
    pub bytes: (f64, f64),
}

impl Histogram {
    /// A row's words: `Allreduce 68.5 0 - 7 8 - 15`; none where they are others.
    pub fn of(words: &[&str]) -> Option<Histogram> {
        let [call, share, least, "-", most, smallest, "-", largest] = words else { return None };
        let (smallest, largest): (f64, f64) = (smallest.parse().ok()?, largest.parse().ok()?);
        // mpiP writes ranges from 2 GiB on as negative numbers
        let bytes = if smallest < 0.0 { (f64::from(1u32 << 31), f64::INFINITY) } else { (smallest, largest) };
        Some(Histogram {
            call: call.to_string(),
            share: share.parse().ok().filter(|s: &f64| s.is_finite() && *s >= 0.0)?,
            ranks: (least.parse().ok()?, most.parse().ok()?),
            bytes,
        })
    }
}

/// The largest divisor of a number in a range, other than 1 and itself.
fn divisor(of: usize, (least, most): (usize, usize)) -> Option<usize> {
    (least.max(2)..=most.min(of / 2)).rev().find(|k| of.is_multiple_of(*k))
}

/// Among which processes the calls of a site are, and what share of them; none are all processes, and a part of one sends nothing. A report that says nothing of it says all.
pub fn parts(report: &Report, site: &Site) -> Vec<(Option<Part>, f64)> {
    let found = if report.is_own() { by_uses(report, site) } else { by_histogram(report, site) };
    let all: f64 = found.iter().map(|(_, share)| share).sum();
    if all > 0.0 { found.into_iter().map(|(part, share)| (part, share / all)).collect() } else { vec![(None, 1.0)] }
}

/// As our own reports say it.
fn by_uses(report: &Report, site: &Site) -> Vec<(Option<Part>, f64)> {
    let name = name_of_uses(&site.call);
    // their sites are ranges of sizes
    let size = site.place.split(':').next().unwrap_or_default();
    let own = report.uses.iter().filter(|used| used.collective == name && used.size == size);
    let part = |ranks: usize, stride: Option<usize>| (ranks < report.ranks()).then_some(Part { ranks, stride });
    own.map(|used| (part(used.ranks, used.stride), used.calls * used.processes.unwrap_or(1) as f64)).collect()
}

/// As mpiP's histogram says it: ranges of powers of two, all up to seven being one.
fn by_histogram(report: &Report, site: &Site) -> Vec<(Option<Part>, f64)> {
    let all = report.ranks();
    let bytes = site.mean_bytes.or(site.count.map(|count| site.bytes / count)).unwrap_or(0.0);
    let of_call = || report.histogram.iter().filter(|row| row.call == site.call);
    let in_range = |row: &&Histogram| (row.bytes.0..row.bytes.1 + 1.0).contains(&bytes);
    let rows: Vec<&Histogram> =
        if of_call().any(|row| in_range(&row)) { of_call().filter(in_range).collect() } else { of_call().collect() };
    let is_all = |row: &Histogram| (row.ranks.0..=row.ranks.1).contains(&all);
    // rows and columns of a plane: the one tells the other
    let columns = report.histogram.iter().filter(|row| !is_all(row)).filter_map(|row| divisor(all, row.ranks)).max();
    let is_row = |row: &&Histogram| columns.is_some_and(|k| (row.ranks.0..=row.ranks.1).contains(&(all / k)) && !is_all(row));
    let has_rows = report.histogram.iter().any(|row| is_row(&row) && columns.is_none_or(|k| row.ranks.1 < k));
    let part = |row: &Histogram| {
        let divisor = divisor(all, row.ranks).filter(|_| !is_all(row))?;
        Some(match columns {
            // those of a row, which are fewer, are taken to be one after the other
            Some(k) if has_rows && is_row(&row) => Part { ranks: all / k, stride: Some(1) },
            Some(k) if has_rows && divisor == k => Part { ranks: k, stride: Some(all / k) },
            _ => Part { ranks: divisor, stride: None },
        })
    };
    rows.into_iter().map(|row| (part(row), row.share)).collect()
}
