//! The command line: one subcommand a file, which reads, calls the library and writes.

mod accuracy;
mod algorithm;
mod app;
#[cfg(feature = "mpi")]
mod bench;
mod check;
mod clocks;
mod compare;
mod discover;
mod explain;
mod export;
mod generate;
mod list;
mod predict;
mod reasons;
mod report;
mod run;
mod schedule;
mod source;
mod table;
mod terminal;
mod tune;

use clap::{Parser, Subcommand};
use std::io::Write;

/// Adaptive MPI collectives for platforms that are not uniform.
#[derive(Parser)]
#[command(name = "collwise", version, about, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure latencies and group alike ranks; write the platform.
    Discover(discover::Args),
    /// Measure, group, fit, score and select; write the policy.
    Tune(tune::Args),
    /// Check a policy file.
    Check(check::Args),
    /// Say what would run for a size, and why.
    Explain(explain::Args),
    /// Predict times, of a policy or of one algorithm under one model.
    Predict(predict::Args),
    /// Compare the models: choices per group and size, and each model's errors.
    Compare(compare::Args),
    /// Say how well the collectives that tuning measured were predicted.
    Accuracy(accuracy::Args),
    /// Compare adaptive collectives with the MPI library's, in one run under mpirun.
    #[cfg(feature = "mpi")]
    Bench(bench::Args),
    /// Say where the wall time of an application goes, and what it will be elsewhere, from reports of mpiP.
    App(app::Args),
    /// Write one page that shows a platform, its models, its choices and what they win.
    Report(report::Args),
    /// Run a program that is not changed with adaptive collectives.
    Run(run::Args),
    /// Schedule a broadcast between groups.
    Schedule(schedule::Args),
    /// Write a platform, or the messages of a collective, in another tool's format.
    Export(export::Args),
    /// Draw a random platform of several sites.
    Generate(generate::Args),
    /// List the models, algorithms, grouping methods and schedule heuristics there are.
    List(list::Args),
}

/// How a command ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It did what it was asked.
    Done,
    /// It checked something, and the answer is no.
    Negative,
    /// It failed, and why is said already, by one rank of those that failed alike.
    Failed,
}

impl Cli {
    /// Runs the command.
    ///
    /// # Errors
    /// What failed, as a fragment after "failed to".
    pub fn run(self) -> anyhow::Result<Outcome> {
        match self.command {
            Command::Discover(args) => discover::run(&args),
            Command::Tune(args) => tune::run(&args),
            Command::Check(args) => check::run(&args),
            Command::Explain(args) => explain::run(&args),
            Command::Predict(args) => predict::run(&args),
            Command::Compare(args) => compare::run(&args),
            Command::Accuracy(args) => accuracy::run(&args),
            #[cfg(feature = "mpi")]
            Command::Bench(args) => bench::run(&args),
            Command::App(args) => app::run(&args),
            Command::Report(args) => report::run(&args),
            Command::Run(args) => run::run(&args),
            Command::Schedule(args) => schedule::run(&args),
            Command::Export(args) => export::run(&args),
            Command::Generate(args) => generate::run(&args),
            Command::List(args) => list::run(&args),
        }
    }
}

/// Prints to standard output; a reader that went away (`| head`) is no error.
fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(anyhow::anyhow!("print the result: {e}")),
        _ => Ok(()),
    }
}

/// Prints a value as JSON.
fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(value)?))
}
