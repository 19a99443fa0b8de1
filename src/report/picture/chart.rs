//! Lines and points over two axes, in one panel or in several below each other that share the axis across, with a legend below them.

use super::{Area, At, Drawn, INK, MUTED, RULE, SIZE, Side, WIDTH, as_chart, colour, fill, legend, picture, say, stroke, style};
use crate::error::Result;
use crate::units;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::*;

/// What an axis counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Bytes, by powers of two.
    Bytes,
    /// Seconds, by powers of ten.
    Seconds,
    /// Multiples, by powers.
    Times,
    /// A number of things, by powers of two.
    Count,
    /// Shares, evenly.
    Share,
}

/// An axis.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What it is of, with its unit where labels do not say it.
    pub words: String,
    /// What it counts.
    pub scale: Scale,
}

/// How points of a line look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Joined.
    Line,
    /// Joined, in dashes.
    Dashes,
    /// Dots alone.
    Dots,
    /// Crosses alone.
    Crosses,
    /// Joined dots.
    Both,
}

/// A line of a chart.
#[derive(Debug, Clone)]
pub struct Line {
    /// As the legend says it; empty: it is not there.
    pub name: String,
    /// How many after the first colour its own is; none: ink.
    pub colour: Option<usize>,
    /// How it looks.
    pub shape: Shape,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// Their intervals.
    pub bars: Vec<Bar>,
}

/// An interval.
#[derive(Debug, Clone, Copy)]
pub struct Bar {
    /// Where it is across.
    pub x: f64,
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// A chart among several.
#[derive(Debug, Clone)]
pub struct Panel {
    /// The axis upwards.
    pub up: Axis,
    /// What is drawn.
    pub lines: Vec<Line>,
    /// Values that get a line across.
    pub marks: Vec<f64>,
    /// Its height in points.
    pub height: u32,
    /// At least these values are seen.
    pub within: Option<(f64, f64)>,
}

/// Room for labels of twice their size, which they have on narrow screens.
const LEFT: i32 = 118;
const BELOW: i32 = 58;
const RIGHT: i32 = 30;
/// So many labels have room across, and each so many points of height.
const MOST_ACROSS: usize = 9;
const HIGH: usize = 28;

/// Draws panels below each other.
///
/// # Errors
/// What drawing gives.
pub fn chart(across: &Axis, panels: &[Panel]) -> Result<String> {
    let height: u32 = panels.iter().map(|p| p.height).sum();
    let named = named(panels);
    let (places, below) = legend(named.iter().map(|l| l.name.as_str()), height as i32);
    let drawn = picture((WIDTH, height + below), |area| {
        let xs = panels.iter().flat_map(|p| &p.lines).flat_map(|l| l.points.iter().map(|p| p.0).chain(l.bars.iter().map(|b| b.x)));
        let range = Range::of(across.scale, xs, None, MOST_ACROSS);
        let mut top = 0;
        for (k, panel) in panels.iter().enumerate() {
            let own = area.clone().shrink((0, top), (WIDTH, panel.height));
            draw(&own, across, &range, panel, k + 1 == panels.len())?;
            top += panel.height as i32;
        }
        for (line, at) in named.iter().zip(places) {
            sample(area, line, at)?;
            say(area, &line.name, (at.0 + 30, at.1), Side::Right, SIZE, &INK)?;
        }
        Ok(())
    });
    Ok(as_chart(&drawn?))
}

/// Ends of an axis in the measure that is even along it, and where it has labels.
#[derive(Debug, Clone)]
struct Range {
    scale: Scale,
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Scale {
    /// A value in the measure that is even along the axis.
    fn to(self, value: f64) -> f64 {
        match self {
            Scale::Bytes | Scale::Count => value.max(1.0).log2(),
            Scale::Seconds => value.max(1e-12).log10(),
            Scale::Times => value.max(1e-6).log2(),
            Scale::Share => value,
        }
    }

    fn from(self, even: f64) -> f64 {
        match self {
            Scale::Bytes | Scale::Count | Scale::Times => even.exp2(),
            Scale::Seconds => 10f64.powf(even),
            Scale::Share => even,
        }
    }

    fn label(self, value: f64) -> String {
        match self {
            Scale::Bytes => units::bytes(value.round() as usize),
            Scale::Count => format!("{value:.0}"),
            Scale::Seconds => short_seconds(value),
            Scale::Times if value >= 1.0 => format!("{}x", trimmed(value)),
            Scale::Times => format!("1/{}x", trimmed(1.0 / value)),
            Scale::Share => format!("{:.0} %", value * 100.0),
        }
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Whole numbers of a unit have no digits behind their point on an axis.
fn short_seconds(value: f64) -> String {
    let said = units::seconds(value);
    let Some((number, unit)) = said.split_once(' ') else { return said };
    format!("{} {unit}", if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number })
}

impl Range {
    fn of(scale: Scale, values: impl Iterator<Item = f64>, within: Option<(f64, f64)>, most_ticks: usize) -> Range {
        let seen = values.chain(within.into_iter().flat_map(|(a, b)| [a, b])).filter(|v| v.is_finite());
        let (low, high) = seen.map(|v| scale.to(v)).fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        let room = (0.05 * (high - low)).max(if scale == Scale::Share { 0.02 } else { 0.08 });
        // shares that are never negative begin at none
        let (low, high) = (if scale == Scale::Share && low >= 0.0 { 0.0 } else { low - room }, high + room);
        Range { scale, low, high, ticks: ticks(scale, low, high, most_ticks) }
    }
}

impl Ranged for Range {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + ((value - self.low) / (self.high - self.low) * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.max_num_points() == 0 { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Range {
    fn format(value: &f64) -> String {
        value.to_string()
    }

    fn format_ext(&self, value: &f64) -> String {
        self.scale.label(self.scale.from(*value))
    }
}

/// Where labels are: at round values.
fn ticks(scale: Scale, low: f64, high: f64, most: usize) -> Vec<f64> {
    let steps: &[f64] = match scale {
        Scale::Bytes | Scale::Count => &[1.0, 2.0, 3.0, 4.0, 5.0],
        Scale::Seconds => &[1.0, 2.0, 3.0],
        Scale::Times => &[1.0, 2.0, 4.0],
        Scale::Share => &[0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 1e3, 1e5],
    };
    let at = |step: f64| -> Vec<f64> {
        let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
        (first..=last.min(first + 100)).map(|k| k as f64 * step).collect()
    };
    let mut all = steps.iter().map(|&step| at(step)).find(|t| t.len() <= most).unwrap_or_default();
    if scale == Scale::Times && all.len() < 3 {
        all = at(0.5);
    }
    if scale == Scale::Seconds && all.len() < 3 {
        // less than some decades: 1, 2 and 5 of each
        let decades = (low.floor() as i64..=high.ceil() as i64).map(|d| d as f64);
        all = decades.flat_map(|d| [0.0, 2f64.log10(), 5f64.log10()].map(|t| d + t)).filter(|t| (low..=high).contains(t)).collect();
    }
    all
}

fn draw(area: &Area, across: &Axis, range: &Range, panel: &Panel, last: bool) -> Drawn {
    let values = panel.lines.iter().flat_map(|l| l.points.iter().map(|p| p.1).chain(l.bars.iter().flat_map(|b| [b.low, b.high])));
    let up = Range::of(panel.up.scale, values, panel.within, (panel.height as i32 - 12 - if last { BELOW } else { 8 }) as usize / HIGH);
    let mut chart = ChartBuilder::on(area)
        .margin_top(12)
        .margin_right(RIGHT)
        .x_label_area_size(if last { BELOW } else { 8 })
        .y_label_area_size(LEFT)
        .build_cartesian_2d(range.clone(), up.clone())?;
    let mut mesh = chart.configure_mesh();
    let label = style(Side::Middle, SIZE, &INK);
    mesh.light_line_style(TRANSPARENT).bold_line_style(RULE).axis_style(MUTED).label_style(label.clone()).axis_desc_style(label);
    mesh.x_labels(if last { range.ticks.len().max(1) } else { 0 }).y_labels(up.ticks.len().max(1));
    mesh.max_light_lines(0).y_desc(panel.up.words.as_str());
    if last {
        mesh.x_desc(across.words.as_str());
    }
    mesh.draw()?;
    let place = |x: f64, y: f64| (range.scale.to(x), up.scale.to(y));
    for mark in &panel.marks {
        let y = up.scale.to(*mark);
        chart.draw_series([PathElement::new([(range.low, y), (range.high, y)], MUTED)])?;
    }
    for line in &panel.lines {
        let ink = line.colour.map_or(INK, colour);
        let points: Vec<(f64, f64)> = line.points.iter().filter(|p| p.0.is_finite() && p.1.is_finite()).map(|p| place(p.0, p.1)).collect();
        match line.shape {
            Shape::Line | Shape::Both => _ = chart.draw_series(LineSeries::new(points.iter().copied(), ink.stroke_width(2)))?,
            Shape::Dashes => _ = chart.draw_series(DashedLineSeries::new(points.iter().copied(), 6, 4, ink.stroke_width(2)))?,
            Shape::Dots | Shape::Crosses => {}
        }
        match line.shape {
            Shape::Dots | Shape::Both => _ = chart.draw_series(points.iter().map(|p| Circle::new(*p, 3, ink.filled())))?,
            Shape::Crosses => _ = chart.draw_series(points.iter().map(|p| Cross::new(*p, 4, ink)))?,
            Shape::Line | Shape::Dashes => {}
        }
        for bar in line.bars.iter().filter(|b| b.high.is_finite()) {
            // both ends and what is between: where its middle is nobody asked
            let ((x, low), (_, high)) = (place(bar.x, bar.low), place(bar.x, bar.high));
            let cap = 0.004 * (range.high - range.low);
            let strokes = [[(x, low), (x, high)], [(x - cap, low), (x + cap, low)], [(x - cap, high), (x + cap, high)]];
            chart.draw_series(strokes.map(|ends| PathElement::new(ends, ink)))?;
        }
    }
    Ok(())
}

/// Each name once.
fn named(panels: &[Panel]) -> Vec<&Line> {
    let mut named: Vec<&Line> = Vec::new();
    for line in panels.iter().flat_map(|p| &p.lines).filter(|l| !l.name.is_empty()) {
        if named.iter().all(|n| n.name != line.name) {
            named.push(line);
        }
    }
    named
}

fn sample(area: &Area, line: &Line, (x, y): At) -> Drawn {
    let ink = line.colour.map_or(INK, colour);
    match line.shape {
        Shape::Line | Shape::Both => stroke(area, [(x, y), (x + 22, y)], ink.stroke_width(2))?,
        Shape::Dashes => {
            fill(area, (x, y - 1), (x + 9, y + 1), ink.filled())?;
            fill(area, (x + 13, y - 1), (x + 22, y + 1), ink.filled())?;
        }
        Shape::Dots | Shape::Crosses => {}
    }
    match line.shape {
        Shape::Dots | Shape::Both => area.draw(&Circle::new((x + 11, y), 3, ink.filled()))?,
        Shape::Crosses => area.draw(&Cross::new((x + 11, y), 4, ink))?,
        Shape::Line | Shape::Dashes => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_that_are_never_negative_begin_at_none() {
        let range = |values: &[f64]| Range::of(Scale::Share, values.iter().copied(), None, MOST_ACROSS);
        assert_eq!(range(&[0.0, 0.12]).low, 0.0);
        assert_eq!(range(&[0.02, 0.12]).ticks[0], 0.0);
        assert!(range(&[-0.01, 0.12]).low < -0.01);
    }
}
