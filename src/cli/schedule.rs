//! `collwise schedule`

use super::table::table;
use super::{Outcome, print, print_json};
use crate::files::read_text;
use crate::intercluster::{EXACT_GROUPS, Problem, exact, gantt, lower_bound, solve};
use crate::units;
use std::path::PathBuf;

/// Schedule a broadcast between groups.
#[derive(clap::Args)]
pub struct Args {
    /// TOML with format = 1, root, gap_s, latency_s, local_s and, if you like, local_busy_s.
    file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let problem = Problem::parse(&args.file.display().to_string(), &read_text(&args.file)?)?;
    let solution = solve(&problem);
    let bound = lower_bound(&problem);
    // few groups: prove the optimum
    let (heuristic, best) = match exact(&problem) {
        Some(optimum) if optimum.completion < solution.best.completion => ("exact", optimum),
        _ => (solution.heuristic, solution.best),
    };
    if args.json {
        print_json(&serde_json::json!({
            "best": { "heuristic": heuristic, "completion_s": best.completion, "sends": best.sends },
            "heuristics": solution.completions,
            "lower_bound_s": bound,
        }))?;
        return Ok(Outcome::Done);
    }
    let names: Vec<String> = (0..problem.groups).map(|k| k.to_string()).collect();
    let proven = if problem.groups <= EXACT_GROUPS { ", the optimum" } else { "" };
    let mut rows: Vec<Vec<String>> =
        solution.completions.iter().map(|(n, t)| vec![n.to_string(), units::seconds(*t), format!("{:.3}", t / best.completion)]).collect();
    rows.push(vec![format!("{heuristic} (best)"), units::seconds(best.completion), "1.000".into()]);
    rows.push(vec!["lower bound".into(), units::seconds(bound), format!("{:.3}", bound / best.completion)]);
    let head = format!("{} groups, {}{proven}\n\n", problem.groups, units::seconds(best.completion));
    print(&format!("{head}{}\n{}", gantt(&problem, &best, &names), table(&["heuristic", "completion", "over best"], 1, &rows)))?;
    Ok(Outcome::Done)
}
