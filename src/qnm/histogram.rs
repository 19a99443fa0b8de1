//! mpiP's table of the time in collectives (its option `-y`), which says among how many processes they are in ranges of powers of two, all up to seven
//! being one.

use super::among::{Part, Share};
use super::scale::balanced;
use super::{Report, Site};
use serde::Serialize;

/// A row of it: the share of all of them in which calls of a name are in such ranges.
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

impl Histogram {
    fn may_be(&self, ranks: usize) -> bool {
        (self.ranks.0..=self.ranks.1).contains(&ranks)
    }
}

/// Among which processes the calls of a site are.
pub(super) fn parts(report: &Report, site: &Site) -> Vec<Share> {
    let all = report.ranks();
    let bytes = site.mean_bytes.or(site.count.map(|count| site.bytes / count)).unwrap_or(0.0);
    let of_call = || report.histogram.iter().filter(|row| row.call == site.call);
    let in_range = |row: &&Histogram| (row.bytes.0..row.bytes.1 + 1.0).contains(&bytes);
    let rows: Vec<&Histogram> =
        if of_call().any(|row| in_range(&row)) { of_call().filter(in_range).collect() } else { of_call().collect() };
    let plane = plane(report);
    let share =
        |row: &Histogram, part: Option<Part>, each: f64| Share { part, calls: row.share * each, seconds: row.share * each, bytes: None };
    let of_row = |row: &&Histogram| match part(row, all, plane) {
        (one, None) => vec![share(row, one, 1.0)],
        (one, other) => vec![share(row, one, 0.5), share(row, other, 0.5)],
    };
    rows.iter().flat_map(of_row).collect()
}

/// A plane that processes lie on.
#[derive(Debug, Clone, Copy)]
struct Plane {
    /// Processes of a row, which are fewer than those of a column, or as many.
    row: usize,
    column: usize,
    /// Others are as likely.
    is_guess: bool,
}

/// The plane of which the rows and columns are what the report says: the most even one, if that is, or the one of the longest columns.
fn plane(report: &Report) -> Option<Plane> {
    let all = report.ranks();
    let is_side = |ranks: usize| ranks > 1 && report.histogram.iter().any(|row| !row.may_be(all) && row.may_be(ranks));
    let rows: Vec<usize> = (2..all).filter(|k| k * k <= all && all.is_multiple_of(*k) && is_side(*k) && is_side(all / k)).collect();
    let even = balanced(all, 2)[1];
    let row = rows.iter().copied().find(|row| *row == even).or(rows.first().copied())?;
    Some(Plane { row, column: all / row, is_guess: rows.len() > 1 })
}

/// The processes of a row's range, and other ones where it may be either; those of a row, which are fewer, are taken to be one after the other.
fn part(said: &Histogram, all: usize, plane: Option<Plane>) -> (Option<Part>, Option<Part>) {
    if said.may_be(all) {
        return (None, None);
    }
    let least = said.ranks.0.clamp(2, all.max(2));
    let range = (least, said.ranks.1.min(all.saturating_sub(1)).max(least));
    let of_plane = plane.filter(|plane| said.may_be(plane.row) || said.may_be(plane.column));
    if let Some(Plane { row, column, is_guess }) = of_plane {
        let range = is_guess.then_some(range);
        let row_part = Part { ranks: row, stride: Some(1).filter(|_| row < column), range };
        let column_part = Part { ranks: column, stride: Some(row), range };
        return match (said.may_be(row), said.may_be(column)) {
            (true, true) if row < column => (Some(row_part), Some(column_part)),
            (true, _) => (Some(row_part), None),
            _ => (Some(column_part), None),
        };
    }
    // lines and planes of space, if they are among them
    let space = balanced(all, 3);
    let sides = space.iter().copied().chain([space[0] * space[1], space[1] * space[2]]).filter(|k| *k > 1 && *k < all && said.may_be(*k));
    let divisor = || (range.0..=range.1.min(all / 2)).rev().find(|k| all.is_multiple_of(*k));
    let middle = ((range.0 * range.1) as f64).sqrt() as usize;
    let ranks = sides.max().or_else(divisor).unwrap_or(middle);
    (Some(Part { ranks, stride: None, range: Some(range) }), None)
}
