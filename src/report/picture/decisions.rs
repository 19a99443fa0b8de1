//! A decision map: sizes across, ranks down; each cell says what is done, in the colour of its algorithm, the fainter the less the next best is behind, and a frame
//! where none is known.

use super::{
    Area, At, COLOURED, Drawn, INK, MUTED, PAPER, RULE, SIZE, Side, UNKNOWN, WIDTH, colour, cut, fill, legend, mark, picture, say, stroke,
};
use crate::error::Result;
use plotters::prelude::*;

/// What is done for a size among some ranks.
#[derive(Debug, Clone, Default)]
pub struct Decided {
    /// The algorithm, or two, of which the first gives the colour; none: it was not decided.
    pub algorithm: Vec<String>,
    /// Segment and window, or nothing.
    pub segment: String,
    /// How much longer the next best takes, as a share; `None`: no other is known.
    pub margin: Option<f64>,
}

/// A map.
#[derive(Debug, Clone, Default)]
pub struct Decisions {
    /// The sizes, in words.
    pub columns: Vec<String>,
    /// Name of the group, of the ranks, and what is decided by size; nothing where nothing was.
    pub rows: Vec<(String, String, Vec<Option<Decided>>)>,
}

const LEFT: i32 = 150;
const TOP: i32 = 26;
const ROW: i32 = 40;
/// The strongest that a colour is below words: on it these stand out 4.5 to one, in light and dark.
pub(super) const STRONGEST: f64 = 0.5;
const NOT_DECIDED: &str = "not decided";

/// How the names of algorithms begin that cut messages into segments.
pub const SEGMENTED: &str = "segmented_";

/// The algorithm that one is in segments, or itself: both have one colour.
pub fn family(algorithm: &str) -> &str {
    algorithm.trim_start_matches(SEGMENTED)
}

/// The edges of its cells, across and down.
pub fn edges(map: &Decisions) -> [Vec<i32>; 2] {
    let n = map.columns.len().max(1) as i32;
    let width = ((WIDTH as i32 - LEFT - 4) / n).min(160);
    [(0..=n).map(|k| LEFT + k * width).collect(), (0..=map.rows.len() as i32).map(|k| TOP + k * ROW).collect()]
}

/// Draws it; `algorithms` are the [families](family) of all there are, which have a colour each as far as there are some.
///
/// # Errors
/// What drawing gives.
pub fn decisions(map: &Decisions, algorithms: &[String]) -> Result<(String, [Vec<i32>; 2])> {
    let [xs, ys] = edges(map);
    // where a narrow screen has no room for words in cells, colours have names all the same
    let (places, high) = legend(algorithms.iter().map(String::as_str), ys[ys.len() - 1] + 24);
    let svg = picture((WIDTH, (TOP + ROW * map.rows.len() as i32 + 24) as u32 + high), |area| {
        for (column, words) in map.columns.iter().enumerate() {
            say(area, words, ((xs[column] + xs[column + 1]) / 2, TOP - 12), Side::Middle, SIZE, &INK)?;
        }
        for (k, (name, ranks, cells)) in map.rows.iter().enumerate() {
            let (from, to) = (ys[k], ys[k + 1]);
            if k == 0 || map.rows[k - 1].0 != *name {
                stroke(area, [(4, from), (xs[xs.len() - 1], from)], RULE)?;
                // which on narrow screens has larger letters
                say(area, &cut(name, LEFT - 50, SIZE), (6, from + 12), Side::Right, SIZE, &INK)?;
            }
            say(area, ranks, (6, from + 28), Side::Right, SIZE, &MUTED)?;
            for (column, cell) in cells.iter().enumerate() {
                let (left, right) = (xs[column] + 1, xs[column + 1] - 1);
                let Some(cell) = cell else {
                    fill(area, (left, from + 1), (right, to - 1), UNKNOWN.mix(0.5).filled())?;
                    continue;
                };
                let middle = (left + right) / 2;
                let Some(first) = cell.algorithm.first() else {
                    say(area, NOT_DECIDED, (middle, (from + to) / 2), Side::Middle, 9.5, &MUTED)?;
                    continue;
                };
                let place = algorithms.iter().position(|a| family(first) == a);
                coloured(area, (left, from + 1), (right, to - 1), place.map_or(INK, colour), cell.margin)?;
                if let Some(k) = place.filter(|&k| k >= COLOURED) {
                    mark(area, (right - 7, from + 8), 4, k)?;
                }
                let lines: Vec<&String> = cell.algorithm.iter().chain(Some(&cell.segment).filter(|s| !s.is_empty())).collect();
                for (line, words) in lines.iter().enumerate() {
                    let y = (from + to) / 2 + (22 * line as i32 - 11 * (lines.len() as i32 - 1)) / 2;
                    say(area, &cut(words, right - left, 9.5), (middle, y), Side::Middle, 9.5, &INK)?;
                }
            }
        }
        let below = "colour: algorithm, in segments or not; the fainter, the closer is the next best (faintest: within 1 %, full: 30 % and more); frame: no other is known";
        say(area, below, (LEFT, ys[ys.len() - 1] + 13), Side::Right, 11.0, &MUTED)?;
        for (k, (name, (x, y))) in algorithms.iter().zip(places).enumerate() {
            fill(area, (x, y - 8), (x + 22, y + 8), colour(k).mix(STRONGEST).filled())?;
            if k >= COLOURED {
                mark(area, (x + 15, y - 1), 4, k)?;
            }
            say(area, name, (x + 30, y), Side::Right, SIZE, &INK)?;
        }
        Ok(())
    })?;
    Ok((svg.replacen("<svg ", "<svg class=\"map\" ", 1), [xs, ys]))
}

/// The width of a frame.
const FRAME: i32 = 3;

/// A cell of a colour: full where the next best is far behind, a frame where none is known.
fn coloured(area: &Area, from: At, to: At, colour: RGBColor, margin: Option<f64>) -> Drawn {
    fill(area, from, to, colour.mix(margin.map_or(STRONGEST, weight)).filled())?;
    if margin.is_none() {
        fill(area, (from.0 + FRAME, from.1 + FRAME), (to.0 - FRAME, to.1 - FRAME), PAPER.filled())?;
    }
    Ok(())
}

/// How strong the colour of a margin is. Words on it stay legible in light and dark.
fn weight(margin: f64) -> f64 {
    let (faintest, full) = (0.14, STRONGEST);
    let share = (margin / 0.3).clamp(0.0, 1.0).sqrt();
    ((faintest + (full - faintest) * share) * 50.0).round() / 50.0
}
