//! `collwise run`

use super::Outcome;
use super::export::{Format, written};
use crate::library::{ALL_PRELOADED, is_first_rank};
use crate::policy::{CompiledPolicy, Policy};
use anyhow::{Context, bail};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf, absolute};
use std::process::Command;

/// Run a program that is not changed with adaptive collectives: `collwise run -- mpirun -n 24 ./app`, or `mpirun -n 24 collwise run ./app`.
#[derive(clap::Args, Clone)]
pub struct Args {
    /// The policy, or a folder of policies, of which the one that has a process's host is taken; if not given, what COLLWISE_POLICY names.
    #[arg(long)]
    policy: Option<PathBuf>,
    /// Write a report of what the program calls to this file (COLLWISE_PROFILE).
    #[arg(long)]
    profile: Option<PathBuf>,
    /// The host, and if you like the group, of each rank (COLLWISE_HOSTS).
    #[arg(long)]
    hosts: Option<PathBuf>,
    /// Tune first, over the ranks that the launcher starts, if there is no such policy yet.
    #[arg(long)]
    tune: bool,
    /// With --tune: hosts that may stand in for those that are measured, such as the rest of the partition (see `collwise tune`).
    #[arg(long, requires = "tune", value_name = "[GROUP=]HOSTS")]
    also: Vec<String>,
    /// Use no code of ours in the program: write what the MPI library can carry out by itself beside the policy, and have that read.
    #[arg(long, conflicts_with_all = ["profile", "hosts"])]
    export_only: bool,
    /// With --export-only under MPICH: its shared library (libmpich.so).
    #[arg(long, requires = "export_only")]
    base: Option<PathBuf>,
    /// The launcher with its options and the program, or the program alone.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// What is set, and to what: names of files are of any bytes.
type Variable = (String, OsString);

/// Parts of a name, one after the other.
fn joined<const N: usize>(parts: [&OsStr; N]) -> OsString {
    let mut all = OsString::new();
    parts.iter().for_each(|part| all.push(part));
    all
}

/// Whose options a launcher has.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Launcher {
    /// Open MPI's `mpirun`.
    OpenMpi,
    /// Hydra, of MPICH and Intel MPI.
    Hydra,
    /// One that hands its environment on, such as Slurm's.
    Slurm,
}

impl Launcher {
    /// The launcher that a command begins with; none if it is the program itself.
    fn of(command: &OsStr) -> anyhow::Result<Option<Launcher>> {
        let name = Path::new(command).file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == "srun" {
            return Ok(Some(Launcher::Slurm));
        }
        // as "mpirun.openmpi", and no program that only begins so
        if !["mpirun", "mpiexec", "orterun", "prterun"].contains(&name.split('.').next().unwrap_or_default()) {
            return Ok(None);
        }
        let output = Command::new(command).arg("--version").output().with_context(|| format!("start {}", command.display()))?;
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        match &said {
            _ if ["Open MPI", "OpenRTE", "PRTE", "prte"].iter().any(|known| said.contains(known)) => Ok(Some(Launcher::OpenMpi)),
            _ if ["HYDRA", "Intel(R) MPI"].iter().any(|known| said.contains(known)) => Ok(Some(Launcher::Hydra)),
            _ => bail!(
                "{} is a launcher that is not known, by its --version: put `collwise run` behind it and its options instead",
                command.display()
            ),
        }
    }

    /// The options that set variables on all ranks.
    fn variables(self, variables: &[Variable]) -> Vec<OsString> {
        let option = |(name, value): &Variable| match self {
            Launcher::OpenMpi => vec!["-x".into(), joined([name.as_ref(), OsStr::new("="), value])],
            Launcher::Hydra => vec!["-genv".into(), name.into(), value.clone()],
            Launcher::Slurm => Vec::new(),
        };
        variables.iter().flat_map(option).collect()
    }

    /// Where the program begins behind the launcher's options.
    fn program(self, arguments: &[OsString]) -> anyhow::Result<usize> {
        let mut at = 0;
        while let Some(option) = arguments.get(at).map(|a| a.to_string_lossy()).filter(|a| a.starts_with('-')) {
            let name = option.trim_start_matches('-');
            // a value behind an equals sign is no word of its own
            let words = if option.contains('=') {
                Some(0)
            } else {
                VALUES.iter().find(|(names, _)| names.contains(&name)).map(|(_, words)| *words)
            };
            let words = words.with_context(|| format!("tune first: it is not known whether {option} has a value, and so where the program begins; write it with =, or tune by itself"))?;
            at += 1 + words;
        }
        if at >= arguments.len() {
            bail!("tune first: there is no program behind the launcher's options")
        }
        Ok(at)
    }
}

/// Options of launchers by the words that follow them.
const VALUES: [(&[&str], usize); 3] = [
    (
        &[
            "oversubscribe",
            "allow-run-as-root",
            "bynode",
            "byslot",
            "nolocal",
            "tag-output",
            "report-bindings",
            "display-map",
            "q",
            "v",
            "l",
            "np-per-node",
        ],
        0,
    ),
    (
        &[
            "n",
            "np",
            "c",
            "N",
            "npernode",
            "ppn",
            "perhost",
            "x",
            "H",
            "host",
            "hosts",
            "hostfile",
            "machinefile",
            "f",
            "map-by",
            "bind-to",
            "rank-by",
            "wdir",
            "wd",
            "path",
            "prefix",
            "timeout",
            "ntasks",
            "nodes",
            "w",
            "p",
            "A",
            "t",
        ],
        1,
    ),
    (&["mca", "gmca", "prtemca", "pmca", "genv", "env"], 2),
];

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    // an empty name is none, as for the library itself
    let named = |variable: &str| std::env::var_os(variable).filter(|name| !name.is_empty()).map(PathBuf::from);
    let policy = args.policy.clone().or_else(|| named("COLLWISE_POLICY"));
    let args = &Args { policy, profile: args.profile.clone().or_else(|| named("COLLWISE_PROFILE")), ..args.clone() };
    let launcher = Launcher::of(&args.command[0])?;
    if let (true, Some(policy)) = (args.tune, &args.policy)
        && !policy.exists()
    {
        tune(launcher, args, policy)?;
    }
    let mut variables = if args.export_only { exported(args, launcher)? } else { preloaded(args)? };
    if launcher.is_some() && !args.export_only {
        // each of several programs gets the same
        variables.push((ALL_PRELOADED.into(), "1".into()));
    }
    let mut command = Command::new(&args.command[0]);
    let options = launcher.map(|l| l.variables(&variables)).unwrap_or_default();
    let set_by_user = |argument: &OsString| argument == "LD_PRELOAD" || argument.as_encoded_bytes().starts_with(b"LD_PRELOAD=");
    if launcher.is_some() && !args.export_only && args.command.iter().any(set_by_user) {
        bail!(
            "run {} so: its options set LD_PRELOAD, which would take the place of ours; set it in the environment of collwise instead",
            args.command[0].display()
        );
    }
    command.args(&options);
    // a launcher needs none of this itself, but for one that hands its environment on
    if launcher.is_none_or(|l| l == Launcher::Slurm) {
        command.envs(variables);
    }
    for argument in &args.command[1..] {
        command.arg(argument);
        // each of several programs has options of its own
        if launcher == Some(Launcher::OpenMpi) && argument == ":" {
            command.args(&options);
        }
    }
    let error = command.exec();
    bail!("start {}: {error}", args.command[0].display())
}

/// Measures over the ranks of the same launcher.
fn tune(launcher: Option<Launcher>, args: &Args, policy: &Path) -> anyhow::Result<()> {
    let command = &args.command;
    let Some(launcher) = launcher else {
        bail!(
            "tune {} first: put `collwise run --tune --` before the launcher, since ranks that run cannot start MPI twice",
            policy.display()
        );
    };
    let program = 1 + launcher.program(&command[1..])?;
    let collwise = std::env::current_exe().context("find this program")?;
    let mut tuning = Command::new(&command[0]);
    tuning.args(&command[1..program]).arg(collwise).args(["tune", "-o"]).arg(policy);
    if let Some(hosts) = &args.hosts {
        tuning.arg("--hosts").arg(hosts);
    }
    args.also.iter().for_each(|also| _ = tuning.arg("--also").arg(also));
    eprintln!("collwise: there is no {}: tuning first", policy.display());
    let status = tuning.stdout(std::io::stderr()).status().with_context(|| format!("start {}", command[0].display()))?;
    if !status.success() {
        bail!("tune {} with {} ({status}); the program did not run", policy.display(), command[0].display());
    }
    Ok(())
}

/// What must be set for the preloaded library.
fn preloaded(args: &Args) -> anyhow::Result<Vec<Variable>> {
    let mut variables = vec![("LD_PRELOAD".to_string(), library()?)];
    if args.policy.is_none() && args.profile.is_none() {
        bail!("run {} so: name a policy (--policy, or COLLWISE_POLICY) or a report to write (--profile)", args.command[0].display());
    }
    if let Some(policy) = &args.policy {
        // its errors are said before anything starts: behind a launcher that ends all ranks when one fails, which Slurm does not, by rank 0 alone
        if is_first_rank() || std::env::var_os("SLURM_PROCID").is_some() {
            let files = if policy.is_dir() { Policy::files(policy)? } else { vec![policy.clone()] };
            files.iter().try_for_each(|file| CompiledPolicy::new(Policy::read(file)?).map(drop))?;
        }
        variables.push(named("COLLWISE_POLICY", policy)?);
    }
    if let Some(profile) = &args.profile {
        variables.push(named("COLLWISE_PROFILE", profile)?);
    }
    if let Some(hosts) = &args.hosts {
        variables.push(named("COLLWISE_HOSTS", hosts)?);
    }
    Ok(variables)
}

/// A file that every rank finds, whatever folder it runs in.
fn named(variable: &str, file: &Path) -> anyhow::Result<Variable> {
    let file = absolute(file).with_context(|| format!("find {}", file.display()))?;
    Ok((variable.into(), file.into()))
}

/// The library to preload, as it is installed or built beside this program, with what is preloaded already.
fn library() -> anyhow::Result<OsString> {
    const NAME: &str = "libcollwise_preload.so";
    let program = std::env::current_exe().and_then(std::fs::canonicalize).context("find this program")?;
    let beside = program.parent().unwrap_or(Path::new("/"));
    let places = [beside.join("../lib").join(NAME), beside.join(NAME)];
    let Some(found) = places.iter().find(|place| place.exists()) else {
        bail!("find {NAME} in {} or {}: make install writes it", places[0].display(), beside.display());
    };
    let before = std::env::var_os("LD_PRELOAD").filter(|before| !before.is_empty());
    let found = std::fs::canonicalize(found)?;
    if found.as_os_str().as_encoded_bytes().iter().any(|byte| b" :".contains(byte)) {
        bail!("preload {}: the loader takes blanks and colons for the ends of names; install it elsewhere", found.display());
    }
    Ok(before.map_or(found.clone().into(), |before| joined([found.as_os_str(), OsStr::new(":"), &before])))
}

/// What must be set for the MPI library to do by itself what it can.
fn exported(args: &Args, launcher: Option<Launcher>) -> anyhow::Result<Vec<Variable>> {
    let policy = args.policy.as_ref().context("run with --export-only: name a policy (--policy, or COLLWISE_POLICY)")?;
    let (format, kind) = match launcher {
        Some(Launcher::OpenMpi) => (Format::Openmpi, "openmpi.rules"),
        Some(Launcher::Hydra) => (Format::Mpich, "mpich.json"),
        _ => bail!(
            "run with --export-only: put it before Open MPI's or MPICH's own launcher; for others `collwise export` writes the file, and says what to set"
        ),
    };
    let set = written(policy, format, args.base.as_deref(), &policy.with_extension(kind))?;
    Ok(set.into_iter().map(|(name, value)| (name, value.into())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn the_program_is_found_behind_the_launchers_options() {
        let found = |text: &str| Launcher::OpenMpi.program(&words(text)).map(|at| words(text)[at].clone()).ok();
        assert_eq!(found("-n 24 --oversubscribe ./app -x y"), Some("./app".into()));
        assert_eq!(found("--mca btl tcp,self -x A=1 --map-by=node app"), Some("app".into()));
        assert_eq!(found("app -n 3"), Some("app".into()));
        assert_eq!(found("--something 3 app"), None);
        assert_eq!(found("-n 3"), None);
    }

    #[test]
    fn variables_are_set_as_the_launcher_has_it() {
        let variables = [("A".to_string(), OsString::from("1"))];
        assert_eq!(Launcher::OpenMpi.variables(&variables), ["-x", "A=1"]);
        assert_eq!(Launcher::Hydra.variables(&variables), ["-genv", "A", "1"]);
        assert!(Launcher::Slurm.variables(&variables).is_empty());
    }
}
