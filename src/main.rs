//! The `collwise` command: parse, dispatch, print the error chain, exit code.

use clap::Parser;
use collwise::cli::{Cli, Outcome};
use std::process::ExitCode;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

fn main() -> ExitCode {
    let filter = match std::env::var("COLLWISE_LOG").ok().filter(|said| !said.is_empty()).map(|said| (wanted(&said), said)) {
        Some((Some(wanted), _)) => wanted,
        Some((None, said)) => {
            eprintln!(
                "collwise: COLLWISE_LOG={said} is no level (error, warn, info, debug, trace), nor such as \"collwise::tune=debug,warn\""
            );
            return ExitCode::FAILURE;
        }
        None => Targets::new().with_default(tracing::Level::WARN),
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

/// Which events are told: a level, or levels by module. A word alone would be the name of a module, all of whose events are told.
fn wanted(said: &str) -> Option<Targets> {
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    let is_one = |part: &str| part.split_once('=').map_or(is_level(part), |(_, level)| is_level(level));
    said.split(',').all(is_one).then(|| said.parse().ok()).flatten()
}
