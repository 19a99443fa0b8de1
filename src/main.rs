//! The `collwise` command: parse, dispatch, print the error chain, exit code.

use clap::Parser;
use collwise::cli::{Cli, Outcome};
use std::process::ExitCode;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

fn main() -> ExitCode {
    // "debug", or "collwise::tune=debug,warn"
    let wanted = std::env::var("COLLWISE_LOG").ok().and_then(|said| said.parse::<Targets>().ok());
    let filter = wanted.unwrap_or(Targets::new().with_default(tracing::Level::WARN));
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
