//! Groups and what lies between them: a circle of groups, as large as they have ranks, and a line a link, as dark as it is slow and as wide as it carries much.

use super::{INK, MUTED, PAPER, SIZE, Side, WIDTH, cut, fill, legend, mark, picture, say, shade, stroke};
use crate::error::Result;
use crate::units;
use plotters::prelude::*;

/// A group.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its ranks.
    pub ranks: usize,
}

/// A link between two of them.
#[derive(Debug, Clone)]
pub struct LinkDrawn {
    /// The groups, by their order.
    pub between: [usize; 2],
    /// Half a round trip of an empty message, in seconds.
    pub latency_s: f64,
    /// What large messages carry in a second; `None`: nobody knows.
    pub bytes_per_s: Option<f64>,
}

/// On narrow screens names of groups are so high, and have so much room; smaller words are left out there, and are in the table.
const LETTER: f64 = 22.0;
const ROOM: i32 = 200;
/// Links have words up to so many.
const WORDS: usize = 40;

/// Draws it, the largest groups with names where there is room, groups in this order around the circle: lines are short where neighbours are near.
///
/// # Errors
/// What drawing gives.
pub fn links(nodes: &[Node], links: &[LinkDrawn], order: &[usize]) -> Result<String> {
    let (centre, radius) = ((WIDTH as f64 / 2.0, 300.0), 225.0);
    let mut turn = vec![0; nodes.len()];
    order.iter().enumerate().for_each(|(at, &k)| turn[k] = at);
    let place = |k: usize| {
        let angle = std::f64::consts::TAU * turn[k] as f64 / nodes.len().max(1) as f64 - std::f64::consts::FRAC_PI_2;
        ((centre.0 + 1.1 * radius * angle.cos()) as i32, (centre.1 + radius * angle.sin()) as i32)
    };
    let bounds = |of: &dyn Fn(&LinkDrawn) -> Option<f64>| {
        links.iter().filter_map(of).fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(v), h.max(v)))
    };
    let latencies = bounds(&|l| Some(l.latency_s));
    let rates = bounds(&|l| l.bytes_per_s);
    let share = |value: f64, (low, high): (f64, f64)| if high > low { (value / low).ln() / (high / low).ln() } else { 0.5 };
    let most = nodes.iter().map(|n| n.ranks).max().unwrap_or(1).max(1) as f64;
    // neighbours do not cover each other
    let half_an_arc = std::f64::consts::PI * radius / nodes.len().max(1) as f64;
    let size = |node: &Node| (6.0 + 20.0 * (node.ranks as f64 / most).sqrt()).min(half_an_arc).max(3.0) as i32;
    let beside = |k: usize| {
        let (x, size) = (place(k).0, size(&nodes[k]));
        if f64::from(x) < centre.0 - 20.0 { (Side::Left, x - size - 6) } else { (Side::Right, x + size + 6) }
    };
    let called = |k: usize| cut(&nodes[k].name, ROOM, LETTER);
    let name = |k: usize| {
        let ((side, from), half) = (beside(k), (called(k).chars().count().max(8) as f64 * LETTER / 3.6) as i32);
        (if side == Side::Left { from - half } else { from + half }, place(k).1, half)
    };
    let mut by_ranks: Vec<usize> = (0..nodes.len()).collect();
    by_ranks.sort_by_key(|&k| std::cmp::Reverse(nodes[k].ranks));
    let mut named: Vec<usize> = Vec::new();
    for k in by_ranks {
        let (x, y, half) = name(k);
        let is_apart = |at: (i32, i32), wide: i32, high: i32| (at.0 - x).abs() > wide + half || (at.1 - y).abs() > high;
        let mut circles = (0..nodes.len()).filter(|&other| other != k).map(|other| (place(other), size(&nodes[other])));
        let mut names = named.iter().map(|&other| name(other));
        if circles.all(|(at, size)| is_apart(at, size, size + 12)) && names.all(|(x, y, half)| is_apart((x, y), half, 28)) {
            named.push(k);
        }
    }
    // who has no room for a name is told by its mark
    let below = if named.len() < nodes.len() { nodes } else { &[] };
    let (places, high) = legend(below.iter().map(|n| n.name.as_str()), 640);
    let svg = picture((WIDTH, 640 + high), |area| {
        let mut sorted: Vec<&LinkDrawn> = links.iter().collect();
        sorted.sort_by(|a, b| b.latency_s.total_cmp(&a.latency_s));
        for link in &sorted {
            let width = link.bytes_per_s.map_or(1, |rate| 1 + (5.0 * share(rate, rates)).round() as u32);
            // neither end of the scale: the one fades on paper, the other in the dark
            let ink = shade(0.15 + 0.6 * share(link.latency_s, latencies));
            stroke(area, link.between.map(place), ink.stroke_width(width))?;
        }
        if links.len() <= WORDS {
            let mut taken: Vec<(i32, i32, i32)> = named.iter().copied().map(name).collect();
            for link in &sorted {
                let [a, b] = link.between.map(place);
                let words = units::seconds(link.latency_s) + &link.bytes_per_s.map_or(String::new(), |rate| format!(", {}", bits(rate)));
                let half = (words.len() as f64 * 2.9) as i32;
                let at = |share: f64| (a.0 + (share * f64::from(b.0 - a.0)) as i32, a.1 + (share * f64::from(b.1 - a.1)) as i32);
                let is_free = |p: &(i32, i32)| taken.iter().all(|t| (t.0 - p.0).abs() > t.2 + half + 6 || (t.1 - p.1).abs() > 17);
                // what finds no room stands in the table
                let Some(p) = [0.5, 0.4, 0.6, 0.3, 0.7, 0.35, 0.65, 0.25, 0.75, 0.2, 0.8].into_iter().map(at).find(is_free) else {
                    continue;
                };
                taken.push((p.0, p.1, half));
                fill(area, (p.0 - half, p.1 - 8), (p.0 + half, p.1 + 8), PAPER.filled())?;
                say(area, &words, p, Side::Middle, 11.0, &INK)?;
            }
        }
        for (k, node) in nodes.iter().enumerate() {
            let (x, y) = place(k);
            let size = size(node);
            mark(area, (x, y), size, k)?;
            if named.contains(&k) {
                let (side, from) = beside(k);
                say(area, &called(k), (from, y - 7), side, SIZE, &INK)?;
                say(
                    area,
                    &if node.ranks == 1 { "1 rank".into() } else { format!("{} ranks", node.ranks) },
                    (from, y + 8),
                    side,
                    11.0,
                    &MUTED,
                )?;
            }
        }
        for (k, (node, (x, y))) in below.iter().zip(places).enumerate() {
            mark(area, (x + 14, y), 6, k)?;
            say(area, &cut(&format!("{} ({})", node.name, node.ranks), 330, SIZE), (x + 30, y), Side::Right, SIZE, &INK)?;
        }
        say(area, "size of a group: ranks; line: wide as it carries much, dark as it is slow", (20, 622), Side::Right, SIZE, &MUTED)
    })?;
    Ok(svg.replacen("<svg ", "<svg class=\"links\" ", 1))
}

/// What goes through in a second, as networks are sold.
pub fn bits(bytes_per_s: f64) -> String {
    let bits = bytes_per_s * 8.0;
    match bits {
        b if b >= 1e9 => format!("{:.1} Gbit/s", b / 1e9),
        b if b >= 1e6 => format!("{:.0} Mbit/s", b / 1e6),
        b => format!("{:.0} kbit/s", b / 1e3),
    }
}
