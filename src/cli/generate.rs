//! `collwise generate`

use super::{Outcome, print};
use crate::files::write_text;
use crate::platform::generate::{Wanted, generate};
use std::path::PathBuf;

/// Draw a random platform of several sites.
#[derive(clap::Args)]
pub struct Args {
    /// Number of sites.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(2..=200))]
    sites: u16,
    /// Number of hosts, at least two a site.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(4..=100_000))]
    hosts: u32,
    /// The same seed gives the same platform.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write it here instead of printing it.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let platform = generate(Wanted { sites: args.sites.into(), hosts: args.hosts as usize, seed: args.seed })?;
    let text = platform.to_toml()?;
    match &args.output {
        Some(path) => write_text(path, &text)?,
        None => print(&text)?,
    }
    Ok(Outcome::Done)
}
