//! Marks of things that are more than there are colours: where colours repeat, shapes differ.

use super::{Area, At, COLOURED, Drawn, PAPER, colour};
use plotters::prelude::*;

/// So many marks differ: discs, squares, diamonds and triangles, each filled and as an outline, in all colours.
pub const MARKS: usize = 8 * COLOURED;

/// Draws the mark of the one that comes so many after the first, so large from its middle.
pub(super) fn mark(area: &Area, (x, y): At, size: i32, k: usize) -> Drawn {
    let (ink, round) = (colour(k), k % MARKS / COLOURED);
    let corners = match round / 2 {
        0 => {
            area.draw(&Circle::new((x, y), size, ink.filled()))?;
            let inside = if round % 2 == 1 {
                Circle::new((x, y), inner(size), PAPER.filled())
            } else {
                Circle::new((x, y), size, PAPER.stroke_width(1))
            };
            return Ok(area.draw(&inside)?);
        }
        1 => |size: i32| [(-1, -1), (1, -1), (1, 1), (-1, 1)].map(|(dx, dy)| (dx * size * 7 / 8, dy * size * 7 / 8)).to_vec(),
        2 => |size: i32| vec![(0, -size - 1), (size + 1, 0), (0, size + 1), (-size - 1, 0)],
        _ => |size: i32| vec![(0, -size - 1), (size + 1, size), (-size - 1, size)],
    };
    let shape = |size: i32| corners(size).into_iter().map(|(dx, dy)| (x + dx, y + dy)).collect::<Vec<At>>();
    area.draw(&Polygon::new(shape(size), ink.filled()))?;
    if round % 2 == 1 {
        area.draw(&Polygon::new(shape(inner(size)), PAPER.filled()))?;
    }
    Ok(())
}

/// What is left free in an outline.
fn inner(size: i32) -> i32 {
    (size - 2).max(size / 2).max(1)
}

#[cfg(test)]
mod tests {
    use super::super::picture;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn marks_differ_as_far_as_is_said() {
        let of = |k: usize| picture((40, 40), |area| mark(area, (20, 20), 6, k)).unwrap();
        assert_eq!((0..MARKS).map(of).collect::<BTreeSet<String>>().len(), MARKS);
        assert_eq!(of(MARKS), of(0));
    }
}
