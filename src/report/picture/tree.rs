//! Who hears from whom: from the left, a column a step, a circle a rank or several of one group.

use super::{INK, RULE, SIZE, Side, WIDTH, cut, legend, mark, picture, say, stroke};
use crate::error::Result;
use plotters::prelude::*;

/// A rank, or several of one group that hear from each other or from the same.
#[derive(Debug, Clone)]
pub struct Branch {
    /// Its name; empty: it has no room.
    pub name: String,
    /// Its group.
    pub group: usize,
    /// How many ranks it is.
    pub ranks: usize,
    /// From whom it hears first; itself for the root.
    pub parent: usize,
}

const MARGIN: i32 = 24;

/// Draws it. Parents come before those that hear from them.
///
/// # Errors
/// What drawing gives.
pub fn tree(branches: &[Branch], groups: &[String]) -> Result<String> {
    let n = branches.len();
    let mut depth = vec![0i32; n];
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); n];
    for k in 1..n {
        depth[k] = depth[branches[k].parent] + 1;
        children[branches[k].parent].push(k);
    }
    let rows = leaves_first(&children);
    let leaves = children.iter().filter(|c| c.is_empty()).count().max(1) as i32;
    let deepest = depth.iter().copied().max().unwrap_or(0).max(1);
    let step = (900 / leaves).clamp(9, 30);
    let height = (MARGIN + step * leaves).max(50);
    let named: Vec<(usize, &str)> =
        groups.iter().enumerate().filter(|(k, _)| branches.iter().any(|b| b.group == *k)).map(|(k, name)| (k, name.as_str())).collect();
    let (places, high) = legend(named.iter().map(|(_, name)| *name), height + 8);
    // a chain has no room for names behind each other
    let room = (WIDTH as i32 - 2 * MARGIN - 110) / deepest;
    let svg = picture((WIDTH, (height + 14) as u32 + high), |area| {
        let place = |k: usize| (MARGIN + depth[k] * room, MARGIN + (rows[k] * f64::from(step)) as i32);
        for k in 1..n {
            let (from, to) = (place(branches[k].parent), place(k));
            let bend = from.0 + room.min(24) / 2;
            let way = if from.1 == to.1 { vec![from, to] } else { vec![from, (bend, from.1), (bend, to.1), to] };
            let crosses = branches[branches[k].parent].group != branches[k].group;
            stroke(area, way, if crosses { INK.stroke_width(2) } else { RULE.stroke_width(1) })?;
        }
        for (k, branch) in branches.iter().enumerate() {
            let (x, y) = place(k);
            let size = (3.0 + (branch.ranks as f64).sqrt()).min(f64::from(step) / 2.0 - 0.5).max(3.0) as i32;
            mark(area, (x, y), size, branch.group)?;
            let free = if children[k].is_empty() { 110 } else { room - 14 };
            // between rows there is room for words only where these are high
            if !branch.name.is_empty() && free > 50 && (children[k].is_empty() || step >= 16) {
                // above the line where others hear from it
                let y = if children[k].is_empty() { y } else { y - 8 };
                say(area, &cut(&branch.name, free, 10.0), (x + size + 4, y), Side::Right, 10.0, &INK)?;
            }
        }
        for ((k, name), (x, y)) in named.iter().zip(places) {
            mark(area, (x + 14, y), 5, *k)?;
            say(area, &cut(name, WIDTH as i32 / 2, SIZE), (x + 30, y), Side::Right, SIZE, &INK)?;
        }
        Ok(())
    })?;
    Ok(svg.replacen("<svg ", "<svg class=\"tree\" ", 1))
}

/// The row of each, by leaves from above; whoever has others is in their middle.
fn leaves_first(children: &[Vec<usize>]) -> Vec<f64> {
    let (mut rows, mut next) = (vec![0.0; children.len()], 0.0);
    let mut stack = vec![(0usize, false)];
    while let Some((k, done)) = stack.pop() {
        if children.is_empty() {
            break;
        }
        match (children[k].is_empty(), done) {
            (true, _) => {
                rows[k] = next;
                next += 1.0;
            }
            (false, false) => {
                stack.push((k, true));
                stack.extend(children[k].iter().rev().map(|&c| (c, false)));
            }
            (false, true) => rows[k] = (rows[children[k][0]] + rows[children[k][children[k].len() - 1]]) / 2.0,
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_groups_have_names() {
        let groups: Vec<String> = (0..30).map(|k| format!("group-{k}-of-thirty")).collect();
        let branches: Vec<Branch> = (0..30).map(|group| Branch { name: String::new(), group, ranks: 1, parent: 0 }).collect();
        let svg = tree(&branches, &groups).unwrap();
        assert!(groups.iter().all(|name| svg.contains(&format!(">{name}<"))));
    }
}
