//! A square matrix as a heat map in log scale, its groups beside it on the left, the dendrogram of its rows on the right.

use super::{Area, At, Drawn, INK, MARK, MUTED, PAPER, SIZE, Side, UNKNOWN, WIDTH, cut, fill, picture, say, shade, stroke};
use crate::error::Result;
use crate::units;
use plotters::prelude::*;

/// Two nodes of a dendrogram that are joined: rows come first, in their order, then one node a merge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Merge {
    /// One node.
    pub left: usize,
    /// The other.
    pub right: usize,
    /// At which latency, in seconds.
    pub height: f64,
}

/// A heat map.
#[derive(Debug, Clone, Default)]
pub struct Heat {
    /// Values by row and column; `None`: nobody knows it.
    pub values: Vec<Vec<Option<f64>>>,
    /// The groups' names and how many rows each has, from the top.
    pub groups: Vec<(String, usize)>,
    /// What joins the rows.
    pub merges: Vec<Merge>,
    /// For each group the latency up to which hosts are alike to it.
    pub bounds: Vec<Option<f64>>,
    /// True if values are shares from 0 to 1 and not seconds.
    pub shares: bool,
}

/// A picture, and where its cells begin and end.
#[derive(Debug, Clone)]
pub struct HeatPicture {
    /// The image.
    pub svg: String,
    /// Edges of its cells, across and down alike but for where they begin.
    pub edges: [Vec<i32>; 2],
}

const LEFT: i32 = 160;
const TOP: i32 = 14;
const SIDE: i32 = 560;
const TREE: i32 = 210;

/// Draws it.
///
/// # Errors
/// What drawing gives.
pub fn heat(map: &Heat) -> Result<HeatPicture> {
    let n = map.values.len().max(1);
    let edge = |k: usize| (k as i64 * i64::from(SIDE) / n as i64) as i32;
    let edges = [LEFT, TOP].map(|from| (0..=n).map(|k| from + edge(k)).collect::<Vec<i32>>());
    let known = || map.values.iter().flatten().flatten().copied();
    let (low, high) = if map.shares { (0.0, 1.0) } else { known().fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(v), h.max(v))) };
    let range = (low, high);
    let svg = picture((WIDTH, (TOP + SIDE + 66) as u32), |area| {
        cells(area, map, range, &edges)?;
        groups(area, map, &edges)?;
        if !map.merges.is_empty() {
            dendrogram(area, map, &edges[1])?;
        }
        scale(area, map, range)
    })?;
    Ok(HeatPicture { svg, edges })
}

/// Where a value is between the least and the largest.
fn share(map: &Heat, value: f64, (low, high): (f64, f64)) -> f64 {
    if map.shares {
        return value;
    }
    let span = (high / low).ln();
    if span > 1e-9 { (value / low).ln() / span } else { 0.0 }
}

/// Neighbours of one colour are one rectangle: as wide as they go, then as high.
fn cells(area: &Area, map: &Heat, range: (f64, f64), [xs, ys]: &[Vec<i32>; 2]) -> Drawn {
    let colour = |v: &Option<f64>| v.map_or(UNKNOWN, |v| shade(share(map, v, range)));
    let colours: Vec<Vec<RGBColor>> = map.values.iter().map(|row| row.iter().map(colour).collect()).collect();
    let n = colours.len();
    let mut done = vec![vec![false; n]; n];
    for i in 0..n {
        for j in 0..n {
            if done[i][j] {
                continue;
            }
            let own = colours[i][j];
            let wide = (j..n).take_while(|&k| colours[i][k] == own && !done[i][k]).count();
            let high = (i..n).take_while(|&r| (j..j + wide).all(|k| colours[r][k] == own && !done[r][k])).count();
            done[i..i + high].iter_mut().for_each(|row| row[j..j + wide].fill(true));
            fill(area, (xs[j], ys[i]), (xs[j + wide], ys[i + high]), own.filled())?;
        }
    }
    Ok(())
}

/// Letters on narrow screens are so high, and names of groups so far apart at least.
const LETTER: f64 = 17.0;
const APART: i32 = 18;

/// Where names of groups with these middles are: there, or as near as there is room.
fn apart(middles: &[i32]) -> Vec<i32> {
    let mut at = middles.to_vec();
    for k in 1..at.len() {
        at[k] = at[k].max(at[k - 1] + APART);
    }
    let mut below = TOP + SIDE - APART / 2;
    for y in at.iter_mut().rev() {
        *y = (*y).min(below);
        below = *y - APART;
    }
    at
}

/// Where the names of groups are, which begin and end there; the largest have one first, and the others as long as none is farther from its group than names
/// are from each other.
fn names(groups: &[(i32, i32)]) -> Vec<Option<i32>> {
    let mut by_size: Vec<usize> = (0..groups.len()).collect();
    by_size.sort_by_key(|&k| std::cmp::Reverse(groups[k].1 - groups[k].0));
    let middle = |&k: &usize| (groups[k].0 + groups[k].1) / 2;
    let (mut named, mut at): (Vec<usize>, Vec<i32>) = (Vec::new(), Vec::new());
    for k in by_size {
        let mut more = named.clone();
        more.insert(more.partition_point(|&other| other < k), k);
        let middles: Vec<i32> = more.iter().map(middle).collect();
        let places = apart(&middles);
        if places.iter().zip(&middles).all(|(y, middle)| (y - middle).abs() <= APART) {
            (named, at) = (more, places);
        }
    }
    let mut places = vec![None; groups.len()];
    named.into_iter().zip(at).for_each(|(k, y)| places[k] = Some(y));
    places
}

/// A name and a bracket for each group, and lines between them.
fn groups(area: &Area, map: &Heat, [xs, ys]: &[Vec<i32>; 2]) -> Drawn {
    let mut first = 0;
    let mut ends = Vec::new();
    for (_, rows) in &map.groups {
        ends.push((ys[first], ys[first + rows]));
        first += rows;
    }
    first = 0;
    for ((name, rows), (&(from, to), place)) in map.groups.iter().zip(ends.iter().zip(names(&ends))) {
        if first > 0 {
            stroke(area, [(xs[0], from), (xs[0] + SIDE, from)], PAPER.stroke_width(1))?;
            stroke(area, [(xs[first], ys[0]), (xs[first], ys[0] + SIDE)], PAPER.stroke_width(1))?;
        }
        stroke(area, [(LEFT - 6, from + 1), (LEFT - 6, to - 1)], MUTED.stroke_width(2))?;
        if let Some(y) = place {
            stroke(area, [(LEFT - 7, (from + to) / 2), (LEFT - 15, y)], MUTED)?;
            say(area, &cut(name, LEFT - 22, LETTER), (LEFT - 18, y), Side::Left, SIZE, &INK)?;
        }
        first += rows;
    }
    Ok(())
}

/// What is joined at which latency, and each group's bound.
fn dendrogram(area: &Area, map: &Heat, ys: &[i32]) -> Drawn {
    let (left, n) = (LEFT + SIDE + 10, map.values.len());
    let heights = || map.merges.iter().map(|m| m.height).chain(map.bounds.iter().flatten().copied()).filter(|h| *h > 0.0);
    let (low, high) = heights().fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
    let (low, high) = (low / 1.6, high * 1.15);
    let x = |h: f64| if h <= low { left } else { left + ((h / low).ln() / (high / low).ln() * f64::from(TREE)) as i32 };
    let mut nodes: Vec<At> = (0..n).map(|k| (left, (ys[k] + ys[k + 1]) / 2)).collect();
    for merge in &map.merges {
        let (a, b, at) = (nodes[merge.left], nodes[merge.right], x(merge.height));
        stroke(area, [a, (at, a.1), (at, b.1), b], INK)?;
        nodes.push((at, (a.1 + b.1) / 2));
    }
    let mut first = 0;
    for ((_, rows), bound) in map.groups.iter().zip(&map.bounds) {
        if let Some(bound) = bound {
            stroke(area, [(x(*bound), ys[first] + 1), (x(*bound), ys[first + rows] - 1)], MARK.stroke_width(2))?;
        }
        first += rows;
    }
    let below = TOP + SIDE;
    stroke(area, [(left, below + 4), (left + TREE, below + 4)], MUTED)?;
    for value in ticks(low, high) {
        stroke(area, [(x(value), below + 4), (x(value), below + 9)], MUTED)?;
        say(area, &units::seconds(value).replace(".00", "").replace(".0", ""), (x(value), below + 18), Side::Middle, SIZE, &INK)?;
    }
    say(area, "joined at this latency", (left, below + 36), Side::Right, SIZE, &INK)?;
    fill(area, (left, below + 50), (left + 14, below + 52), MARK.filled())?;
    say(area, "alike up to here", (left + 20, below + 52), Side::Right, SIZE, &INK)
}

/// Round values of an axis, which have room beside each other: powers of ten, or less than three of these, 1, 2 and 5 of each.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let of = |steps: &[f64]| -> Vec<f64> {
        let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let all = decades.flat_map(|exponent| steps.iter().map(move |step| step * 10f64.powi(exponent)).collect::<Vec<_>>());
        all.filter(|value| (low..=high).contains(value)).collect()
    };
    let [decades, finer] = [of(&[1.0]), of(&[1.0, 2.0, 5.0])];
    // more than four touch each other
    if decades.len() < 3 && finer.len() <= 4 { finer } else { decades }
}

/// Which colour is which value.
fn scale(area: &Area, map: &Heat, range: (f64, f64)) -> Drawn {
    const PARTS: i32 = 41;
    let (left, top, width) = (LEFT, TOP + SIDE + 12, 320);
    // of one value there is one colour
    let parts = if !map.shares && share(map, range.1, range) == 0.0 { 5 } else { PARTS };
    for k in 0..parts {
        let own = shade(if parts < PARTS { 0.0 } else { f64::from(k) / f64::from(PARTS - 1) }).filled();
        fill(area, (left + k * width / PARTS, top), (left + (k + 1) * width / PARTS, top + 12), own)?;
    }
    let value = |share: f64| match map.shares {
        true => format!("{:.0} %", share * 100.0),
        false => units::seconds(range.0 * (range.1 / range.0).powf(share)),
    };
    if map.shares || range.0.is_finite() {
        let mut last = String::new();
        for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let (at, words) = (left + (share * f64::from(width)) as i32, value(share));
            // what is rounded to the same is there once
            if words != last {
                say(area, &words, (at, top + 22), Side::Middle, SIZE, &INK)?;
            }
            last = words;
        }
    }
    let words = if map.shares { "share of pairs that were measured" } else { "latency: half a round trip of an empty message" };
    say(area, words, (left, top + 40), Side::Right, SIZE, &INK)?;
    if map.values.iter().flatten().any(Option::is_none) {
        fill(area, (left + width + 20, top), (left + width + 34, top + 12), UNKNOWN.filled())?;
        say(area, "one host, or unknown", (left + width + 40, top + 6), Side::Right, SIZE, &INK)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups of one row at the end have names too, none over another; of many as many have one as there is room for, all over the map.
    #[test]
    fn names_keep_apart_near_their_groups() {
        for (sizes, least) in [(vec![200, 190, 120, 38, 6, 6], 6), (vec![6; 93], 25), (vec![560], 1)] {
            let mut groups: Vec<(i32, i32)> = Vec::new();
            for size in sizes {
                let from = groups.last().map_or(TOP, |group| group.1);
                groups.push((from, from + size));
            }
            let found = names(&groups);
            let at: Vec<i32> = found.iter().flatten().copied().collect();
            assert!(at.len() >= least && at.windows(2).all(|two| two[1] - two[0] >= APART), "{at:?}");
            let near = |((from, to), y): (&(i32, i32), &Option<i32>)| y.is_none_or(|y| ((from + to) / 2 - y).abs() <= APART);
            assert!(groups.iter().zip(&found).all(near), "{found:?}");
        }
    }

    #[test]
    fn an_axis_has_as_many_labels_as_there_is_room_for() {
        let all = |low, high| ticks(low, high).iter().map(|t| units::seconds(*t)).collect::<Vec<_>>();
        assert_eq!(all(93e-6, 206e-6), ["100 us", "200 us"]);
        assert_eq!(all(17e-6, 10.1e-3), ["100 us", "1.00 ms", "10.0 ms"]);
        assert_eq!(all(40e-6, 4e-3), ["100 us", "1.00 ms"]);
    }
}
