//! What it wins: comparisons with the MPI library's own, of one run or several.

use super::picture::{Axis, Bar, Line, Panel, Scale, Shape, chart};
use super::tables::{self, Table, or_dash};
use super::{Block, Figure, Inputs, Section};
use crate::bench::{ADAPTIVE, Report, Row, TWO_LEVEL};
use crate::collective::{NATIVE, collective};
use crate::error::Result;
use crate::policy::CompiledPolicy;
use crate::stats;
use crate::topology::Rank;
use crate::units;

/// What all others are compared with.
const LIBRARY: &str = NATIVE;
/// More forced algorithms than the colours tell apart are in the table only, but for the fastest.
const MOST_LINES: usize = 7;

pub(super) fn section(inputs: &Inputs) -> Result<Section> {
    let mut blocks = Vec::new();
    for (k, (name, report)) in inputs.benches.iter().enumerate() {
        let mut roots: Vec<Rank> = report.rows.iter().map(|r| r.root).collect();
        roots.sort_unstable();
        roots.dedup();
        for root in roots {
            blocks.push(Block::Figure(figure(inputs.policy, (k + 1, name, report), root)?));
        }
    }
    if blocks.is_empty() {
        blocks.push(Block::Missing(
            "No comparison is given: `mpirun ... collwise bench POLICY --json > bench.json` makes one (--all adds the library's algorithms one by one), and \
             --bench bench.json shows it here; given several times, runs stand side by side."
                .into(),
        ));
    }
    let words = "How many times faster than the MPI library's own, in one run, turn by turn: medians of the ratios of neighbouring calls, bars from the first \
                 to the third quartile."
        .into();
    Ok(Section { id: "wins", title: "What it wins", words, blocks })
}

/// How a contestant is called here.
fn named(contestant: &str) -> String {
    match contestant {
        ADAPTIVE => "collwise".into(),
        TWO_LEVEL => "plain two-level".into(),
        other => tables::named(other).into(),
    }
}

/// Quartiles of how many times faster one is than another, by neighbouring calls.
fn ratios(own: &Row, other: &Row) -> Option<[f64; 3]> {
    let all: Vec<f64> = own.seconds.iter().zip(&other.seconds).filter(|(a, b)| **a > 0.0 && **b > 0.0).map(|(a, b)| b / a).collect();
    Some([stats::quantile(&all, 0.25)?, stats::median(&all)?, stats::quantile(&all, 0.75)?])
}

fn figure(policy: &CompiledPolicy, (k, name, report): (usize, &str, &Report), root: Rank) -> Result<Figure> {
    let mut sizes: Vec<usize> = report.rows.iter().filter(|r| r.root == root).map(|r| r.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let contestants = report.contestants();
    let baseline = if contestants.iter().any(|c| c == LIBRARY) { LIBRARY.to_string() } else { contestants[contestants.len() - 1].clone() };
    let over = |bytes: usize, of: &str| ratios(report.row(root, bytes, of)?, report.row(root, bytes, &baseline)?);
    // ours and the plain form first, then the fastest
    let mut shown: Vec<&String> = contestants.iter().filter(|c| **c != baseline).collect();
    let mean =
        |c: &str| stats::geometric_mean(&sizes.iter().filter_map(|&bytes| Some(over(bytes, c)?[1])).collect::<Vec<_>>()).unwrap_or(0.0);
    let order = |c: &str| [ADAPTIVE, TWO_LEVEL].iter().position(|known| *known == c).unwrap_or(2);
    shown.sort_by(|a, b| order(a).cmp(&order(b)).then(mean(b).total_cmp(&mean(a))));
    let left_out = shown.len().saturating_sub(MOST_LINES);
    let mut lines: Vec<Line> = Vec::new();
    for (k, contestant) in shown.iter().take(MOST_LINES).enumerate() {
        let found: Vec<(f64, [f64; 3])> = sizes.iter().filter_map(|&bytes| Some((bytes.max(1) as f64, over(bytes, contestant)?))).collect();
        lines.push(Line {
            name: named(contestant),
            colour: Some(k),
            shape: if *contestant == ADAPTIVE { Shape::Both } else { Shape::Line },
            points: found.iter().map(|(x, q)| (*x, q[1])).collect(),
            bars: found.iter().map(|(x, q)| Bar { x: *x, low: q[0], high: q[2] }).collect(),
        });
    }
    let of_bound = |bytes: usize| Some(report.row(root, bytes, &baseline)?.quartiles()[1] / report.bound(policy, root, bytes)?);
    let bounds: Vec<(f64, f64)> = sizes.iter().filter_map(|&bytes| Some((bytes.max(1) as f64, of_bound(bytes)?))).collect();
    let bound_words = if bounds.is_empty() {
        " No bound is told: it is of one message or vector that goes from group to group."
    } else {
        " The bound is the least that links allow by the policy's models: latencies, and the bytes over the links from all other groups to the farthest."
    };
    if !bounds.is_empty() {
        lines.push(Line { name: "bound".into(), colour: None, shape: Shape::Dashes, points: bounds, bars: Vec::new() });
    }
    // what all are compared with is as fast as itself
    let ends = [sizes.first(), sizes.last()].into_iter().flatten().map(|&bytes| (bytes.max(1) as f64, 1.0)).collect();
    lines.push(Line { name: named(&baseline), colour: None, shape: Shape::Line, points: ends, bars: Vec::new() });
    let known = collective(&report.collective).ok();
    let is_sized = known.is_none_or(|c| c.sized());
    let mut table = Table::new(&["bytes", "bound"]);
    table.header.extend(contestants.iter().map(|c| named(c)));
    for &bytes in &sizes {
        let cell = |contestant: &String| {
            let Some(row) = report.row(root, bytes, contestant) else { return "-".to_string() };
            let [low, median, high] = row.quartiles().map(units::seconds);
            let times = over(bytes, contestant).filter(|_| *contestant != baseline).map_or(String::new(), |q| format!(", {:.2}x", q[1]));
            let wrong = if row.wrong > 0 { format!(", wrong bytes {} times", row.wrong) } else { String::new() };
            format!("{median} ({low} to {high}){times}{wrong}")
        };
        let size = if is_sized { units::bytes(bytes) } else { "no message".into() };
        let own = [size, or_dash(report.bound(policy, root, bytes), units::seconds)];
        table.row(own.into_iter().chain(contestants.iter().map(cell)));
    }
    let what = match known {
        Some(c) if c.rooted && !c.root_begins() => format!("{} to rank {root} of {}", c.name, report.hosts.len()),
        Some(c) if !c.rooted => format!("{} among {} ranks", c.name, report.hosts.len()),
        Some(c) => format!("{} from rank {root} of {}", c.name, report.hosts.len()),
        // older comparisons do not say of what
        None => format!("collective from rank {root} of {}", report.hosts.len()),
    };
    let more = if left_out > 0 { format!(" {left_out} slower algorithms are in the table only.") } else { String::new() };
    let up = Axis { words: "times faster".into(), scale: Scale::Times };
    let panel = Panel { up, lines, marks: Vec::new(), height: 360, within: Some((1.0, 1.0)) };
    Ok(Figure {
        id: format!("wins-{k}-root{root}"),
        title: format!("{what}: {name}"),
        words: format!(
            "{}. Times faster than {}.{more}{} In the table, medians with quartiles.",
            report.library,
            named(&baseline),
            bound_words
        ),
        svg: chart(&Axis { words: "size of the message".into(), scale: Scale::Bytes }, &[panel])?,
        cells: None,
        table,
    })
}
