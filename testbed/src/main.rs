//! `gridemu`: a multi-site grid on one machine.
//!
//! Each site, or each host, is a network namespace with a TUN device; a router in user space gives every packet the latency and the
//! rate of the way that it takes. Real MPI programs run over real TCP; nothing about them is changed but how they wait.

mod calibrate;
mod launch;
mod netem;
mod nodes;
mod packet;
mod router;
mod stats;
mod sys;
mod up;
mod ways;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Emulate a multi-site grid on one machine.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Say whether this machine can; exit with 1 if not.
    Check,
    /// Bring a platform up.
    Up(up::Options),
    /// Take it down.
    Down,
    /// Run an MPI job on it.
    Mpirun(launch::Job),
    /// Run a command on one of its nodes.
    Exec {
        /// The node.
        node: String,
        /// The command.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
    /// Print the router's counters since the last time.
    Stats,
    /// Route in this process (what `up` starts).
    #[command(hide = true)]
    Route(up::Options),
    /// Stand in for ssh (what launchers start).
    #[command(hide = true)]
    Agent {
        /// Options of ssh, which are passed over; the host; the command.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("gridemu: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    match Cli::parse().command {
        Command::Check => match up::obstacle() {
            None => println!("this machine can emulate a grid"),
            Some(why) => anyhow::bail!("{why}"),
        },
        Command::Up(_) => {
            let options: Vec<String> = std::env::args().skip_while(|a| a != "up").skip(1).collect();
            up::up(&options)?;
            let network = std::fs::read_to_string(up::state("network"))?;
            println!("up: {} nodes; {network}", up::nodes_up()?.len() - 1);
        }
        Command::Down => up::down()?,
        Command::Mpirun(job) => launch::run(&job)?,
        Command::Exec { node, command } => launch::exec(&node, &command)?,
        Command::Stats => print!("{}", up::stats()?),
        Command::Route(options) => up::route(&options)?,
        Command::Agent { arguments } => launch::agent(&arguments)?,
    }
    Ok(())
}
