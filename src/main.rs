//! The `collwise` command: parse, dispatch, print the error chain, exit code.

use clap::Parser;
use collwise::cli::{Cli, Outcome};
use std::process::ExitCode;

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_env("COLLWISE_LOG").unwrap_or_else(|_| "warn".into()))
        .with_writer(std::io::stderr)
        .without_time()
        .init();
    match Cli::parse().run() {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Negative) => ExitCode::from(3),
        Err(e) => {
            eprintln!("collwise: failed to {e:#}");
            ExitCode::FAILURE
        }
    }
}
