//! `collwise app`: wall times of applications, from reports of mpiP.

mod collectives;
mod fit;
mod overlap;
mod picture;
mod predict;
mod whatif;

use super::Outcome;
use super::table::percent;
use crate::platform::Platform;
use crate::policy::{CompiledPolicy, Policy};
use crate::qnm::{Application, Library, Machine, Report, Run, Said, Spread};
use crate::units;
use anyhow::{Context, bail};
use clap::Subcommand;
use std::path::PathBuf;

/// Say where the wall time of an application goes, and what it will be elsewhere, from reports of mpiP.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Say which collectives were called, how they were done, and what they took and should have taken.
    Collectives(collectives::Args),
    /// Split the wall time of runs, and fit how the parts scale.
    Fit(fit::Args),
    /// Predict the wall time at other numbers of processes, on other placements and platforms.
    Predict(predict::Args),
    /// Say how much wall time tuned collectives would save.
    Whatif(whatif::Args),
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    match &args.command {
        Command::Collectives(args) => collectives::run(args),
        Command::Fit(args) => fit::run(args),
        Command::Predict(args) => predict::run(args),
        Command::Whatif(args) => whatif::run(args),
    }
}

/// The reports, and where they were made.
#[derive(clap::Args)]
pub struct Runs {
    /// Reports of mpiP 3 of one application, at one or several numbers of processes.
    #[arg(required = true)]
    reports: Vec<PathBuf>,
    /// Bytes that a process sends in a call of which the reports do not say them, such as Alltoallv=64KiB; with /P behind it, of all
    /// processes together.
    #[arg(long, value_name = "CALL=BYTES", value_parser = call_bytes)]
    bytes: Vec<CallBytes>,
    #[command(flatten)]
    place: Place,
}

/// What the user says of the bytes of calls of a name.
#[derive(Debug, Clone)]
struct CallBytes {
    call: String,
    bytes: usize,
    /// Of all processes together.
    shared: bool,
}

fn call_bytes(text: &str) -> Result<CallBytes, String> {
    let (call, bytes) = text.split_once('=').ok_or("write CALL=BYTES, such as Alltoallv=64KiB")?;
    let own = bytes.strip_suffix("/P");
    let bytes = units::parse_bytes(own.unwrap_or(bytes)).map_err(|e| e.to_string())?;
    Ok(CallBytes { call: call.strip_prefix("MPI_").unwrap_or(call).into(), bytes, shared: own.is_some() })
}

/// A machine.
#[derive(clap::Args)]
pub struct Place {
    /// The platform where the reports were made: its latencies and bandwidths are the network's.
    #[arg(long, conflicts_with_all = ["policy", "latency", "bandwidth"])]
    platform: Option<PathBuf>,
    /// A policy tuned there: its models are the network's.
    #[arg(long, conflicts_with_all = ["latency", "bandwidth"])]
    policy: Option<PathBuf>,
    /// Half a round trip between two processes, such as 50us.
    #[arg(long, value_parser = units::parse_seconds, requires = "bandwidth")]
    latency: Option<f64>,
    /// What goes between two processes in a second, such as 125MB.
    #[arg(long, value_parser = units::parse_bytes, requires = "latency")]
    bandwidth: Option<usize>,
    /// The number of nodes, with --latency; as many as needed, if not given.
    #[arg(long, requires = "latency", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    nodes: Option<u32>,
    /// Processors of a node.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    cores: u32,
    /// How processes were placed on nodes.
    #[arg(long, value_enum, default_value_t = Placed::Block)]
    placement: Placed,
    /// The MPI library, which chooses the algorithms of collectives; if not given, the policy's, or Open MPI.
    #[arg(long, value_enum)]
    library: Option<Mpi>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mpi {
    /// Open MPI 4.1.
    Openmpi,
    /// MPICH.
    Mpich,
}

impl From<Mpi> for Library {
    fn from(mpi: Mpi) -> Library {
        match mpi {
            Mpi::Openmpi => Library::OpenMpi,
            Mpi::Mpich => Library::Mpich,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Placed {
    /// Each node is filled before the next.
    Block,
    /// Round robin over all nodes.
    Cyclic,
    /// One on each node.
    OnePerNode,
}

impl From<Placed> for Spread {
    fn from(placed: Placed) -> Spread {
        match placed {
            Placed::Block => Spread::Block,
            Placed::Cyclic => Spread::Cyclic,
            Placed::OnePerNode => Spread::OnePerNode,
        }
    }
}

impl Runs {
    /// Reads all reports; warns of two applications at once.
    fn read(&self) -> anyhow::Result<Vec<Run>> {
        let mut runs: Vec<Run> = Report::read_all(&self.reports)?.iter().map(Run::of).collect::<Result<_, _>>()?;
        for CallBytes { call, bytes, shared } in &self.bytes {
            let of_call = |run: &Run| *bytes as f64 / if *shared { run.ranks as f64 } else { 1.0 };
            // of all runs, also where one comes before
            let set = runs.iter_mut().map(|run| run.set_bytes(call, of_call(run)));
            if set.filter(|set| *set).count() == 0 {
                bail!("use --bytes {call}: no report has calls of that name of which it does not say the bytes");
            }
        }
        warn(&runs);
        if let Some(other) = runs.iter().find(|r| r.program() != runs[0].program()) {
            tracing::warn!("{} is a report of \"{}\", {} of \"{}\"", runs[0].file, runs[0].command, other.file, other.command);
        }
        Ok(runs)
    }
}

/// Says how much of the bytes and of the time in MPI a report does not list, or count.
fn warn_unlisted(file: &str, (bytes, time): (f64, f64)) {
    if bytes.max(time) > 0.005 {
        let (bytes, time) = (percent(bytes), percent(time));
        tracing::warn!(
            "{file} does not list, or count, all call sites: {bytes} of the bytes and {time} of the time in MPI are at others, which are taken to be alike"
        );
    }
}

/// Says what reports do not tell.
fn warn(runs: &[Run]) {
    runs.iter().for_each(|run| warn_unlisted(&run.file, run.unlisted));
    let unsaid = |run: &Run| {
        run.calls.iter().filter(|c| run.ranks > 1 && matches!(c.said, Said::Match | Said::Time)).map(|c| c.name.clone()).collect::<Vec<_>>()
    };
    let mut names: Vec<String> = runs.iter().flat_map(unsaid).collect();
    names.sort();
    names.dedup();
    for name in names {
        let files = runs.iter().filter(|run| unsaid(run).contains(&name)).map(|run| run.file.as_str()).collect::<Vec<_>>();
        let matching = runs.iter().any(|run| run.calls.iter().any(|c| c.name == name && c.said == Said::Match));
        if matching {
            tracing::warn!(
                "{} say{} not what calls of MPI_{name} sent: taken to be what as many calls that go with them do, if --bytes {name}=N does not say it",
                files.join(", "),
                if files.len() == 1 { "s" } else { "" }
            );
            continue;
        }
        let is_known = runs.iter().any(|run| run.calls.iter().any(|c| c.name == name && c.said.is_known()));
        let taken = if is_known { "as in the other reports, where these tell, or else " } else { "" };
        tracing::warn!(
            "{} say{} not what calls of MPI_{name} sent: taken to be {taken}what their time allows, if --bytes {name}=N does not say it",
            files.join(", "),
            if files.len() == 1 { "s" } else { "" }
        );
    }
}

/// Fits; says of which calls nothing tells what they sent.
fn fitted(runs: Vec<Run>, machine: &Machine, spread: Spread) -> anyhow::Result<Application> {
    let app = Application::fit(runs, machine, spread)?;
    for call in app.calls.iter().filter(|call| call.said == Said::Nobody) {
        tracing::warn!(
            "the time of calls of MPI_{name} does not tell what they sent: they are all within nodes, or take no longer than empty messages do; \
             taken to be nothing, if --bytes {name}=N does not say it",
            name = call.name
        );
    }
    Ok(app)
}

/// Reads a policy, for its models.
pub fn policy(path: Option<&PathBuf>) -> anyhow::Result<Option<CompiledPolicy>> {
    Ok(path.map(|p| CompiledPolicy::new(Policy::read(p)?)).transpose()?)
}

impl Place {
    /// The machine; a policy was read before.
    fn machine<'a>(&self, policy: Option<&'a CompiledPolicy>) -> anyhow::Result<Machine<'a>> {
        let cores = self.cores as usize;
        let mut machine = match (policy, &self.platform, self.latency, self.bandwidth) {
            (Some(policy), ..) => Machine::of_policy(policy, cores)?,
            (_, Some(path), ..) => Machine::of_platform(&Platform::read(path)?, cores)?,
            (_, _, Some(latency), Some(bandwidth)) => Machine::alike(cores, self.nodes.map(|n| n as usize), latency, bandwidth as f64)?,
            _ => {
                bail!("say what a message takes: give --platform or --policy of where the reports were made, or --latency and --bandwidth")
            }
        };
        machine.library = self.library.map_or(machine.library, Library::from);
        Ok(machine)
    }
}

/// Reads GROUP=RATIO pairs into a machine.
fn set_clocks(machine: &mut Machine, pairs: &[String]) -> anyhow::Result<()> {
    for pair in pairs {
        let (name, ratio) = pair.split_once('=').with_context(|| format!("read --clock {pair}: write GROUP=RATIO"))?;
        let ratio: f64 =
            ratio.parse().ok().filter(|r| *r > 0.0 && *r < 1e6).with_context(|| format!("read --clock {pair}: \"{ratio}\" is no ratio"))?;
        let group = machine.groups.iter().position(|g| g == name);
        let group = group.with_context(|| format!("read --clock {pair}: the groups are {}", machine.groups.join(", ")))?;
        machine.clock[group] = ratio;
    }
    Ok(())
}
