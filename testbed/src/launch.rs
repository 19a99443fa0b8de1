//! Starting MPI jobs on the platform that is up.

use crate::nodes::{MANAGER, deal};
use crate::sys;
use crate::up::{PREFIX, nodes_up, state};
use anyhow::{Context, Result, bail, ensure};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// How ranks are dealt out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// Group by group.
    Slot,
    /// Round robin over the groups.
    Node,
}

/// The MPI library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Library {
    /// Open MPI's mpirun.
    Openmpi,
    /// MPICH's Hydra; only with a node for each host, since ranks of one node use shared memory.
    Mpich,
}

/// A job.
#[derive(clap::Args)]
pub struct Job {
    /// Number of ranks.
    #[arg(short)]
    n: usize,
    /// How ranks are dealt out.
    #[arg(long, value_enum, default_value = "slot")]
    by: By,
    /// The MPI library.
    #[arg(long, value_enum, default_value = "openmpi")]
    library: Library,
    /// Run ranks in a real-time class (SCHED_RR, priority 2), so that other programs do not disturb them.
    #[arg(long)]
    real_time: bool,
    /// Options of the launcher, then the program and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<String>,
}

/// The variable that tells agents to use a real-time class.
const REAL_TIME: &str = "GRIDEMU_REAL_TIME";

/// Runs a job in place of this process.
pub fn run(job: &Job) -> Result<()> {
    let nodes = nodes_up()?;
    let dealt = deal(&nodes, job.n, job.by == By::Node)?;
    let file = state(&format!("hostfile-{}", std::process::id()));
    let line = |(name, slots): &(String, usize)| match job.library {
        Library::Openmpi => format!("{name} slots={slots}\n"),
        Library::Mpich => format!("{name}:{slots}\n"),
    };
    std::fs::write(&file, dealt.iter().map(line).collect::<String>())?;
    let me = std::env::current_exe()?;
    let block = preload()?;
    let (me, file, n) = (me.display().to_string(), file.display().to_string(), job.n.to_string());
    let mut command = match job.library {
        Library::Openmpi => {
            let by = if job.by == By::Node { "node" } else { "slot" };
            let mut c = Command::new(first_of(&["mpirun.openmpi", "mpirun"])?);
            c.args(["--allow-run-as-root", "--hostfile", &file, "-np", &n, "--bind-to", "none", "--map-by", by]);
            c.args(["--mca", "plm_rsh_agent", &format!("{me} agent"), "--mca", "plm_rsh_no_tree_spawn", "1"]);
            c.args(["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "10.77.0.0/16"]);
            c.args(["--mca", "oob_tcp_if_include", "10.77.0.0/16", "--mca", "mpi_yield_when_idle", "1"]);
            c.args(["-x", &format!("LD_PRELOAD={}", block.display())]);
            c
        }
        Library::Mpich => {
            let mut c = Command::new(first_of(&["mpiexec.hydra", "mpiexec"])?);
            c.args(["-launcher", "ssh", "-launcher-exec", &agent_script(&me)?, "-f", &file, "-n", &n, "-bind-to", "none"]);
            c.args(["-genv", "UCX_TLS", "tcp,self", "-genv", "UCX_NET_DEVICES", "wan", "-genv", "UCX_WARN_UNUSED_ENV_VARS", "n"]);
            c.args(["-genv", "LD_PRELOAD", &block.display().to_string()]);
            c
        }
    };
    if job.real_time {
        command.env(REAL_TIME, "1");
    }
    enter(MANAGER)?;
    Err(command.args(&job.command).exec()).context("start the job")
}

/// Hydra takes a program and no arguments.
fn agent_script(me: &str) -> Result<String> {
    use std::os::unix::fs::PermissionsExt;
    let path = state("agent.sh");
    let quoted = me.replace('\'', r"'\''");
    std::fs::write(&path, format!("#!/bin/sh\nexec '{quoted}' agent \"$@\"\n"))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(path.display().to_string())
}

/// The library that lets waiting ranks sleep; it lies beside this program.
fn preload() -> Result<PathBuf> {
    let folder = std::env::current_exe()?.parent().map(PathBuf::from).unwrap_or_default();
    let path = folder.join("libgridemu_block.so");
    if !path.exists() {
        bail!("find {}: build it with `cargo build --release -p collwise-testbed`", path.display());
    }
    Ok(path)
}

fn first_of(programs: &[&str]) -> Result<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let there = |program: &&&str| path.split(':').any(|folder| std::path::Path::new(folder).join(program).exists());
    programs.iter().find(there).map(|p| p.to_string()).with_context(|| format!("find {} in PATH", programs.join(" or ")))
}

fn enter(node: &str) -> Result<()> {
    sys::enter_network(&format!("{PREFIX}{node}")).with_context(|| format!("enter the node {node}"))?;
    sys::own_host(node, &state("hosts").display().to_string()).with_context(|| format!("make {node} a host of its own"))
}

/// Runs a command on a node in place of this process.
pub fn exec(node: &str, command: &[String]) -> Result<()> {
    let nodes = nodes_up()?;
    ensure!(nodes.iter().any(|n| n.name == node), "run a command on {}: there is no such node", collwise::names::shown(node));
    enter(node)?;
    let (program, arguments) = command.split_first().context("run a command: none is given")?;
    Err(Command::new(program).args(arguments).exec()).with_context(|| format!("run {program}"))
}

/// What launchers run in place of ssh: `agent [OPTIONS] HOST COMMAND...`.
pub fn agent(arguments: &[String]) -> Result<()> {
    let arguments: Vec<&String> = arguments.iter().skip_while(|a| a.starts_with('-')).collect();
    let (host, command) = arguments.split_first().context("start a daemon: no host is given")?;
    if std::env::var_os(REAL_TIME).is_some() {
        sys::set_scheduler(libc::SCHED_RR, sys::RANK_PRIORITY).context("use a real-time class")?;
    }
    let text: Vec<&str> = command.iter().map(|c| c.as_str()).collect();
    exec(host, &["/bin/sh".into(), "-c".into(), text.join(" ")])
}
