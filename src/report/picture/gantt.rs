//! What ranks do over time: a row a rank, or a row for several, and the critical path over them.

use super::{INK, MARK, MUTED, RULE, SIZE, Side, UNKNOWN, WIDTH, colour, cut, fill, picture, say, stroke};
use crate::error::Result;
use crate::units;
use plotters::prelude::*;

/// A span of time in which a row does one thing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Which row.
    pub row: usize,
    /// What: a position in [`Gantt::kinds`].
    pub kind: usize,
    /// From this time, in seconds.
    pub start_s: f64,
    /// To this time.
    pub end_s: f64,
}

/// A chart.
#[derive(Debug, Clone, Default)]
pub struct Gantt {
    /// The rows' names and groups, from the top.
    pub rows: Vec<(String, usize)>,
    /// The groups' names.
    pub groups: Vec<String>,
    /// What is done, in words.
    pub kinds: Vec<&'static str>,
    /// Who does what when.
    pub spans: Vec<Span>,
    /// The rows and times through which the path goes that the last end waits for.
    pub path: Vec<(usize, f64)>,
    /// The end of the time axis, in seconds.
    pub end_s: f64,
}

const LEFT: i32 = 130;
const RIGHT: i32 = 16;
const TOP: i32 = 24;
/// A group's name has room in so many points.
const NAMED: i32 = 11;
/// Where it is drawn.
const ACROSS: i32 = WIDTH as i32 - LEFT - RIGHT;

/// A picture has no more rectangles: where pipelines would have thousands, those of one kind are joined over their pauses, and paler by what of them are pauses.
const MOST_SPANS: usize = 450;

/// What one row does of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bar {
    row: usize,
    kind: usize,
    from: i32,
    to: i32,
    /// So many of its points are no pause.
    busy: i32,
}

/// As pale as a bar may be: the shortest message is to be seen in it.
const PALEST: f64 = 0.2;

/// Where it begins, in points: times are on the axis.
fn across(chart: &Gantt, t: f64) -> i32 {
    LEFT + (t / chart.end_s.max(f64::MIN_POSITIVE) * f64::from(ACROSS)).round() as i32
}

/// All spans in points, those of one kind on one row that begin at one point as one, and what takes less than a point as a point; in order. There may be hundreds of
/// thousands: none is sorted.
fn bars(chart: &Gantt) -> Vec<Bar> {
    let kinds = chart.spans.iter().map(|s| s.kind + 1).max().unwrap_or(0);
    let points = ACROSS as usize + 1;
    // by row, kind and where they begin, where the longest ends
    let mut ends = vec![i32::MIN; chart.rows.len() * kinds * points];
    for span in &chart.spans {
        let (from, to) = (across(chart, span.start_s), across(chart, span.end_s));
        let end = &mut ends[(span.row * kinds + span.kind) * points + (from - LEFT).clamp(0, ACROSS) as usize];
        *end = to.max(from + 1).max(*end);
    }
    let all = ends.into_iter().enumerate().filter(|(_, end)| *end > i32::MIN);
    let bar = |(k, to): (usize, i32)| {
        let from = LEFT + (k % points) as i32;
        Bar { row: k / points / kinds, kind: k / points % kinds, from, to, busy: to - from }
    };
    all.map(bar).collect()
}

/// Those of one kind on one row with less than so many points of the picture between them are one.
fn joined(bars: Vec<Bar>, pause: i32) -> Vec<Bar> {
    let mut joined: Vec<Bar> = Vec::new();
    for bar in bars {
        match joined.last_mut() {
            Some(last) if last.row == bar.row && last.kind == bar.kind && bar.from <= last.to + pause => {
                // what both are busy with counts once
                last.busy += (bar.busy - (last.to - bar.from).max(0)).max(0);
                last.to = last.to.max(bar.to);
            }
            _ => joined.push(bar),
        }
    }
    joined
}

/// The same with pauses as short as may be.
fn few(chart: &Gantt) -> Vec<Bar> {
    let mut pause = 1;
    let mut all = joined(bars(chart), pause);
    while all.len() > MOST_SPANS.max(3 * chart.rows.len()) && pause <= ACROSS {
        pause *= 2;
        all = joined(all, pause);
    }
    all
}

/// Draws it.
///
/// # Errors
/// What drawing gives.
pub fn gantt(chart: &Gantt) -> Result<String> {
    let n = chart.rows.len().max(1) as i32;
    // few ranks get high rows, many as low ones as can be seen
    let row = (600 / n).clamp(6, 22);
    // each group has room for its name: colours repeat
    let least = chart.rows.chunk_by(|a, b| a.1 == b.1).map(<[_]>::len).min().unwrap_or(1);
    let row = if least > 1 { row } else { row.max(NAMED) };
    let height = TOP + row * n;
    let x = |t: f64| across(chart, t);
    picture((WIDTH, (height + 48) as u32), |area| {
        for k in 0..=4 {
            let t = chart.end_s * f64::from(k) / 4.0;
            stroke(area, [(x(t), TOP), (x(t), height)], RULE)?;
            let side = if k == 4 { Side::Left } else { Side::Middle };
            say(area, &units::seconds(t), (x(t), TOP - 10), side, SIZE, &INK)?;
        }
        let mut first = 0;
        while first < chart.rows.len() {
            let group = chart.rows[first].1;
            let rows = chart.rows[first..].iter().take_while(|r| r.1 == group).count();
            let (from, to) = (TOP + row * first as i32, TOP + row * (first + rows) as i32);
            stroke(area, [(LEFT - 6, from + 1), (LEFT - 6, to - 1)], colour(group).stroke_width(4))?;
            if to - from >= NAMED || rows == chart.rows.len() {
                say(area, &cut(&chart.groups[group], LEFT - 20, SIZE), (LEFT - 14, (from + to) / 2), Side::Left, SIZE, &INK)?;
            }
            stroke(area, [(LEFT, to), (LEFT + ACROSS, to)], RULE)?;
            first += rows;
        }
        let kinds = chart.kinds.len().max(1) as i32;
        for Bar { row: at, kind, from, to, busy } in few(chart) {
            let top = TOP + row * at as i32 + 1;
            let share = f64::from(busy) / f64::from((to - from).max(1));
            // what a rank sends and what it waits for are halves of its row
            let (part, high) = (kind as i32 * (row - 1) / kinds, ((row - 1) / kinds).max(1));
            fill(area, (from, top + part), (to, top + part + high), ink(kind).mix(share.clamp(PALEST, 1.0)).filled())?;
        }
        let places: Vec<_> = chart.path.iter().map(|&(at, t)| (x(t), TOP + row * at as i32 + row / 2)).collect();
        if places.len() > 1 {
            stroke(area, thinned(places), MARK.stroke_width(2))?;
        }
        let mut left = LEFT;
        for (kind, words) in chart.kinds.iter().enumerate() {
            fill(area, (left, height + 14), (left + 16, height + 24), ink(kind).filled())?;
            say(area, words, (left + 22, height + 19), Side::Right, SIZE, &INK)?;
            left += 40 + words.len() as i32 * 7;
        }
        if !chart.path.is_empty() {
            stroke(area, [(left, height + 19), (left + 16, height + 19)], MARK.stroke_width(2))?;
            say(area, "critical path", (left + 22, height + 19), Side::Right, SIZE, &INK)?;
        }
        say(area, "time from the first start; down: ranks by group", (LEFT, height + 38), Side::Right, 11.0, &MUTED)
    })
}

fn ink(kind: usize) -> RGBColor {
    [colour(0), colour(1), colour(2), UNKNOWN][kind.min(3)]
}

/// Without places that repeat, and without those between two others of a line along one row.
fn thinned(places: Vec<(i32, i32)>) -> Vec<(i32, i32)> {
    let mut out: Vec<(i32, i32)> = Vec::new();
    for place in places {
        if out.last() == Some(&place) {
            continue;
        }
        let n = out.len();
        if n >= 2 && out[n - 1].1 == place.1 && out[n - 2].1 == place.1 {
            out[n - 1] = place;
        } else {
            out.push(place);
        }
    }
    out
}
