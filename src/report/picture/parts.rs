//! What a whole is made of: stacked bars beside each other, in pairs.

use super::{INK, MUTED, RULE, SIZE, Side, WIDTH, as_chart, colour, fill, legend, picture, say, stroke};
use crate::error::Result;
use plotters::prelude::*;

/// A pair of bars.
#[derive(Debug, Clone)]
pub struct Stack {
    /// What stands below it.
    pub name: String,
    /// The parts of the left one; none: it is not there.
    pub left: Option<Vec<f64>>,
    /// The parts of the right one.
    pub right: Option<Vec<f64>>,
    /// The intervals of these, as far as they are known.
    pub bars: Vec<Option<(f64, f64)>>,
}

const LEFT: i32 = 80;
const TOP: i32 = 20;
const HIGH: i32 = 280;
/// An interval makes the axis end at so many times what was measured at most: wider ones are cut.
const MOST: f64 = 2.0;

/// Draws bars as shares of the left one of each pair, or of the right one where that is alone.
///
/// # Errors
/// What drawing gives.
pub fn parts(stacks: &[Stack], kinds: &[&str], below: &str) -> Result<String> {
    let whole = |s: &Stack| s.left.as_ref().or(s.right.as_ref()).map_or(1.0, |p| p.iter().sum::<f64>()).max(f64::MIN_POSITIVE);
    let highest =
        stacks.iter().flat_map(|s| [&s.left, &s.right].into_iter().flatten().map(|p| p.iter().sum::<f64>() / whole(s)).collect::<Vec<_>>());
    // the ends of intervals too, unless these say next to nothing
    let until = |s: &Stack| -> f64 {
        let ends = |k: usize| Some(s.right.as_ref()?.iter().take(k).sum::<f64>() + s.bars[k]?.1);
        (0..s.bars.len()).filter_map(ends).fold(0.0, f64::max) / whole(s)
    };
    let top = highest.chain(stacks.iter().map(|s| until(s).min(MOST))).fold(1.0, f64::max) * 1.05;
    let y = |share: f64| TOP + HIGH - (share / top * f64::from(HIGH)) as i32;
    let across = WIDTH as i32 - LEFT - 16;
    let (places, high) = legend(kinds.iter().copied(), TOP + HIGH + 62);
    let wide = (across / stacks.len().max(1) as i32).min(140);
    let drawn = picture((WIDTH, (TOP + HIGH + 62) as u32 + high), |area| {
        // eight lines at most
        let step = [0.25, 0.5, 1.0, 2.0].into_iter().find(|step| top / step <= 8.0).unwrap_or((top / 8.0).ceil());
        for line in 0..=(top / step) as i32 {
            let share = f64::from(line) * step;
            stroke(area, [(LEFT, y(share)), (LEFT + across, y(share))], RULE)?;
            say(area, &format!("{:.0} %", share * 100.0), (LEFT - 8, y(share)), Side::Left, SIZE, &INK)?;
        }
        for (k, stack) in stacks.iter().enumerate() {
            let (from, mut bars) = (LEFT + wide * k as i32 + wide / 8, Vec::new());
            for (side, parts) in [(0, &stack.left), (1, &stack.right)] {
                let (mut sum, left) = (0.0, from + side * (wide * 3 / 8 + 1));
                for (kind, part) in parts.iter().flatten().enumerate() {
                    let (low, high) = (y(sum / whole(stack)), y((sum + part) / whole(stack)));
                    if low > high {
                        fill(area, (left, high), (left + wide * 3 / 8 - 1, low), colour(kind).filled())?;
                    }
                    if let Some(&Some((least, most))) = stack.bars.get(kind).filter(|_| side == 1) {
                        // beside each other: parts that take little end near each other
                        let x = left + (wide * 3 / 8) * (kind as i32 + 1) / (kinds.len() as i32 + 1);
                        bars.push((x, y((sum + least) / whole(stack)), y((sum + most).min(top * whole(stack)) / whole(stack))));
                    }
                    sum += part;
                }
            }
            for (x, low, high) in bars {
                for ends in [[(x, low), (x, high)], [(x - 3, low), (x + 3, low)], [(x - 3, high), (x + 3, high)]] {
                    stroke(area, ends, INK.stroke_width(1))?;
                }
            }
            say(area, &stack.name, (from + wide * 3 / 8, TOP + HIGH + 16), Side::Middle, SIZE, &INK)?;
        }
        say(area, below, (LEFT, TOP + HIGH + 46), Side::Right, SIZE, &MUTED)?;
        for (kind, (words, (x, y))) in kinds.iter().zip(places).enumerate() {
            fill(area, (x + 10, y - 6), (x + 22, y + 6), colour(kind).filled())?;
            say(area, words, (x + 30, y), Side::Right, SIZE, &INK)?;
        }
        Ok(())
    });
    Ok(as_chart(&drawn?))
}
