//! `collwise bench`

use super::algorithm::CollectiveArgs;
use super::table::table;
use super::{Outcome, print, print_json};
use crate::bench::{ADAPTIVE, Report, Settings};
use crate::files::read_text;
use crate::platform::Platform;
use crate::policy::{CompiledPolicy, Policy};
use crate::stats;
use crate::units;
use std::path::PathBuf;

/// Compare adaptive collectives with the MPI library's, in one run under mpirun.
#[derive(clap::Args)]
pub struct Args {
    /// The policy.
    policy: PathBuf,
    /// Sizes, separated by commas; 1, 1KiB, 16KiB, 64KiB, 256KiB, 1MiB and 4MiB if not given.
    #[arg(long, value_parser = units::parse_bytes, value_delimiter = ',')]
    bytes: Vec<usize>,
    #[command(flatten)]
    collective: CollectiveArgs,
    /// Roots, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "0")]
    roots: Vec<usize>,
    /// Repetitions.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repetitions: u32,
    /// Repetitions before them, which open connections and let TCP's windows grow.
    #[arg(long, default_value_t = 3)]
    warm_ups: u32,
    /// Calls of each repetition, one right after the other: with several, the time of each at the rate of a loop without other work.
    #[arg(long, default_value_t = 1, value_name = "CALLS", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    in_a_row: u32,
    /// Compare with each of Open MPI's algorithms too.
    #[arg(long)]
    all: bool,
    /// The platform whose groups the two-level broadcast takes, instead of the policy's.
    #[arg(long, value_name = "FILE")]
    platform: Option<PathBuf>,
    /// Write a page about the policy and this comparison, as `collwise report` does.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What is compared where no sizes are given.
const SIZES: [usize; 7] = [1, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    if let Some(page) = &args.report {
        super::report::keeps(page, [args.policy.as_path()])?;
    }
    let show = |report: Report| -> anyhow::Result<Outcome> {
        if let Some(path) = &args.report {
            let made_by = super::report::made_by(&read_text(&args.policy)?);
            super::report::write(path, Policy::read(&args.policy)?, made_by, None, &[("this run".into(), report.clone())])?;
        }
        if args.json {
            print_json(&report)?;
        } else {
            print(&text(&report, &CompiledPolicy::new(Policy::read(&args.policy)?)?))?;
        }
        Ok(if report.rows.iter().any(|r| r.wrong > 0) { Outcome::Negative } else { Outcome::Done })
    };
    super::source::compare(|| asked(args), show)
}

/// What is compared, under which policy.
fn asked(args: &Args) -> anyhow::Result<(Policy, Settings)> {
    let collective = args.collective.collective;
    args.roots.iter().try_for_each(|&root| args.collective.check_root(root))?;
    let settings = Settings {
        collective,
        sizes: if args.bytes.is_empty() { collective.sizes(&SIZES) } else { args.collective.sizes(&args.bytes)? },
        roots: args.roots.clone(),
        repetitions: args.repetitions as usize,
        warm_ups: args.warm_ups as usize,
        in_a_row: args.in_a_row as usize,
        forced: args.all,
        platform: args.platform.as_ref().map(|p| Platform::read(p)).transpose()?,
    };
    Ok((Policy::read(&args.policy)?, settings))
}

fn text(report: &Report, policy: &CompiledPolicy) -> String {
    let names = report.contestants();
    let mut header = vec!["root", "bytes", "bound"];
    header.extend(names.iter().map(String::as_str));
    let bound = |root, bytes| report.bound(policy, root, bytes);
    let cell = |root, bytes, name: &String| {
        let Some(row) = report.row(root, bytes, name) else { return "-".to_string() };
        let [low, median, high] = row.quartiles();
        let wrong = if row.wrong > 0 { format!(" WRONG {}", row.wrong) } else { String::new() };
        format!("{} ±{:.0}%{wrong}", units::seconds(median), (high - low) / 2.0 / median * 100.0)
    };
    let mut rows = Vec::new();
    for (root, bytes) in report.cases() {
        let mut row = vec![root.to_string(), units::bytes(bytes), bound(root, bytes).map_or("-".into(), units::seconds)];
        row.extend(names.iter().map(|n| cell(root, bytes, n)));
        rows.push(row);
    }
    let mut out = format!("{} ranks, {}\n\n{}\n", report.hosts.len(), report.library, table(&header, 0, &rows));
    for rival in names.iter().filter(|n| *n != ADAPTIVE) {
        let all = report.cases().into_iter().filter_map(|(root, bytes)| report.speedup(root, bytes, ADAPTIVE, rival));
        out += &summary(&format!("adaptive over {rival}"), &all.collect::<Vec<_>>());
    }
    let medians = |root, bytes| {
        let others = names.iter().filter(|n| *n != ADAPTIVE).filter_map(move |n| Some(report.row(root, bytes, n)?.quartiles()[1]));
        others.reduce(f64::min)
    };
    let own = |root, bytes| report.row(root, bytes, ADAPTIVE).map(|r| r.quartiles()[1]);
    let best = report.cases().into_iter().filter_map(|(root, bytes)| Some(medians(root, bytes)? / own(root, bytes)?));
    out += &summary("adaptive over the best of the others", &best.collect::<Vec<_>>());
    let above = report.cases().into_iter().filter_map(|(root, bytes)| Some(own(root, bytes)? / bound(root, bytes)?));
    let above: Vec<f64> = above.collect();
    if !above.is_empty() {
        let all: Vec<String> = above.iter().map(|x| format!("{x:.2}")).collect();
        out += &format!("adaptive over the bound: {}\n", all.join(" "));
    }
    out
}

fn summary(what: &str, ratios: &[f64]) -> String {
    let (low, high) = ratios.iter().fold((f64::INFINITY, 0.0f64), |(l, h), &r| (l.min(r), h.max(r)));
    let mean = stats::geometric_mean(ratios).unwrap_or(f64::NAN);
    format!("{what}: {low:.2} to {high:.2} times faster, geometric mean {mean:.2}\n")
}
