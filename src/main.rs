//! The `collwise` command: parse, dispatch, print the error chain, exit code.

use clap::Parser;
use collwise::cli::{Cli, Outcome};
use collwise::library::is_first_rank;
use std::process::ExitCode;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

fn main() -> ExitCode {
    let filter = match std::env::var("COLLWISE_LOG").ok().filter(|said| !said.is_empty()).map(|said| (wanted(&said), said)) {
        Some((Some(wanted), _)) => wanted,
        Some((None, said)) => {
            // of many ranks one says it
            if is_first_rank() {
                eprintln!(
                    "collwise: COLLWISE_LOG={said} is no level (error, warn, info, debug, trace), nor such as \"collwise::tune=debug,warn\""
                );
            }
            return ExitCode::FAILURE;
        }
        None => Targets::new().with_default(LevelFilter::WARN),
    };
    let printed = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).without_time();
    tracing_subscriber::registry().with(printed.with_filter(filter)).init();
    match Cli::parse().run() {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Negative) => ExitCode::from(3),
        Ok(Outcome::Failed) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("collwise: failed to {e:#}");
            ExitCode::FAILURE
        }
    }
}

/// Which events are told: of each module at the level that is said of it, of all others at the level that stands alone, or warnings. A word that is no level would
/// be the name of a module, all of whose events are told.
fn wanted(said: &str) -> Option<Targets> {
    let is_level = |word: &str| !word.is_empty() && word.parse::<LevelFilter>().is_ok();
    let parts: Vec<&str> = said.split(',').map(str::trim).collect();
    let is_one = |part: &&str| part.split_once('=').map_or(is_level(part), |(module, level)| !module.is_empty() && is_level(level));
    let targets: Targets = parts.iter().all(is_one).then(|| parts.join(",").parse().ok()).flatten()?;
    Some(if parts.iter().any(|part| is_level(part)) { targets } else { targets.with_default(LevelFilter::WARN) })
}
