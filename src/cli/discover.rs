//! `collwise discover`

use super::source::{GroupingArgs, SourceArgs};
use super::table::table;
use super::terminal::{heat, joins, shows_pictures};
use super::{Outcome, print, print_json};
use crate::cluster::GroupQuality;
use crate::discover::{Discovery, discover, discover_matrix};
use crate::files::{check_writable, read_text, write_text};
use crate::names;
use crate::topology::parse_matrix;
use crate::units;
use std::path::PathBuf;

/// Measure latencies and group alike ranks.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    grouping: GroupingArgs,
    /// Group this square matrix of seconds (CSV) instead of measuring.
    #[arg(long, value_name = "FILE")]
    matrix: Option<PathBuf>,
    /// Write the platform here.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print no picture, which only a terminal gets.
    #[arg(long)]
    plain: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let output = args.output.as_deref();
    let found = match &args.matrix {
        Some(path) => {
            let (method, bound) = args.grouping.method()?;
            output.map(check_writable).transpose()?;
            let file = path.display().to_string();
            let matrix = parse_matrix(&file, &read_text(path)?)?;
            Some((discover_matrix(&matrix, method, bound), names::of_file(path), format!("grouped from the matrix {file}")))
        }
        None => args.source.measure(output, &[], |session, declared| {
            let (method, bound) = args.grouping.method()?;
            let found = discover(session, declared, method, bound)?;
            let s = session.settings();
            Ok((found, s.platform.clone(), format!("measured with {} on {}", s.library, s.date)))
        })?,
    };
    let Some((discovery, name, source)) = found else { return Ok(Outcome::Done) };
    if let Some(path) = output {
        write_text(path, &discovery.platform(&name, &source).to_toml()?)?;
    }
    if args.json {
        print_json(&discovery)?
    } else {
        print(&describe(&discovery, usize::MAX))?;
        if shows_pictures(args.plain) {
            let groups: Vec<(&str, usize)> = discovery.groups.iter().map(|g| (g.name.as_str(), g.ranks.len())).collect();
            let seconds = |a: usize, b: usize| if a == b { discovery.groups[a].latency_s } else { Some(discovery.between_s[a][b]) };
            print(&format!("\n{}\n{}", heat(&groups, seconds), joins(&groups, |a, b| discovery.between_s[a][b])))?;
        }
    }
    Ok(Outcome::Done)
}

/// The groups, so many of them at most, and how sure they are.
pub fn describe(discovery: &Discovery, most: usize) -> String {
    let ratio = |r: Option<f64>| r.map_or("-".into(), |r| format!("{r:.2}"));
    let row = |(g, q): (&crate::discover::FoundGroup, &GroupQuality)| {
        let latency = g.latency_s.map_or("-".into(), units::seconds);
        vec![g.name.clone(), g.ranks.len().to_string(), latency, ratio(q.worst_ratio), ratio(q.p90_p10_ratio), ratio(q.separation)]
    };
    let rows: Vec<Vec<String>> = discovery.groups.iter().zip(&discovery.quality.groups).take(most).map(row).collect();
    let mut text = table(&["group", "ranks", "latency", "worst ratio", "p90/p10", "separation"], 1, &rows);
    if discovery.groups.len() > most {
        text += &format!("and {} more groups, which --verbose lists\n", discovery.groups.len() - most);
    }
    if let Some((rounds, probes)) = discovery.quality.sampled {
        text += &format!("\nsampled: {rounds} rounds of pairs, at most {probes} probes of one host\n");
    }
    if let Some(ratio) = discovery.quality.side_by_side_ratio {
        text.push_str(&format!("\npairs side by side take {ratio:.2} times what they take alone\n"));
    }
    text
}
