//! `collwise export`

mod library;
mod messages;

pub use library::written;

use super::algorithm::{AlgorithmArgs, CollectiveArgs};
use super::{Outcome, print};
use crate::collective::bcast;
use crate::files::write_text;
use crate::platform::{Placement, Platform, simgrid};
use crate::units;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

/// Write a platform, the messages of a collective, or the decisions that an MPI library can carry out, in another tool's format.
#[derive(clap::Args)]
pub struct Args {
    /// The platform for SimGrid; else the policy, for GOAL and DOT if no --algorithm is named.
    #[arg(conflicts_with = "algorithm")]
    file: Option<PathBuf>,
    /// The format.
    #[arg(long, value_enum)]
    to: Format,
    /// SimGrid: the folder to write to, which must exist; this one if not given. Else the file; standard output if not given.
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// GOAL, DOT: size of the message, such as 512KiB.
    #[arg(long, value_parser = units::parse_bytes)]
    bytes: Option<usize>,
    /// GOAL, DOT: the root; of a policy, as a rank of all its ranks group by group.
    #[arg(long, default_value_t = 0)]
    root: usize,
    /// Open MPI: all operations of the program commute. Without it some algorithms of reduce and allreduce are not taken, whose results are wrong for others.
    #[arg(long)]
    all_commute: bool,
    /// MPICH: its shared library (libmpich.so), or a file with its own selection: what the policy does not decide is taken from there.
    #[arg(long, value_name = "PATH")]
    base: Option<PathBuf>,
    /// Open MPI, MPICH: print what was decided and lost as JSON; the file goes to --output.
    #[arg(long, requires = "output")]
    json: bool,
    #[command(flatten)]
    collective: CollectiveArgs,
    #[command(flatten)]
    algorithm: AlgorithmArgs,
}

#[derive(clap::ValueEnum, Clone, Copy)]
pub enum Format {
    /// SimGrid: NAME.xml, and host files NAME.slot.hosts and NAME.node.hosts for ranks placed group by group and round robin.
    Simgrid,
    /// GOAL, the text that LogGOPSim reads: each rank's sends and receives. A limit of messages under way holds for messages larger than
    /// LogGOPSim's -S.
    Goal,
    /// A picture for Graphviz (`dot -Tsvg`): each rank with its host, groups in boxes, and an edge from each rank to each that it sends to, with its bytes, bold between groups;
    /// edges come in the order of their first messages if each message takes the same time.
    Dot,
    /// A rule file for Open MPI 4.1 and 5.0 (coll_tuned_dynamic_rules_filename).
    Openmpi,
    /// The same for Open MPI 6.0, as JSON.
    OpenmpiJson,
    /// A selection file for MPICH 4.0 (MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE).
    Mpich,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let (mpich, openmpi) = (matches!(args.to, Format::Mpich), matches!(args.to, Format::Openmpi | Format::OpenmpiJson));
    let of_libraries = [
        (args.all_commute && !openmpi, "--all-commute is of --to openmpi and openmpi-json"),
        (args.base.is_some() && !mpich, "--base is of --to mpich"),
        (args.json && !openmpi && !mpich, "--json is of --to openmpi, openmpi-json and mpich"),
    ];
    if let Some((_, why)) = of_libraries.into_iter().find(|(wrong, _)| *wrong) {
        bail!("export so: {why}");
    }
    match args.to {
        Format::Simgrid => {
            let file = args.file.as_ref().context("export to SimGrid: give a platform")?;
            if args.bytes.is_some() || args.root > 0 || args.collective.collective != &bcast::COLLECTIVE {
                bail!("export a platform to SimGrid: --bytes, --root and --collective are of GOAL and DOT");
            }
            args.algorithm.chosen(args.collective.collective)?;
            to_simgrid(&Platform::read(file)?, args.output.as_deref().unwrap_or(Path::new(".")))?;
        }
        Format::Goal | Format::Dot => {
            let text = if matches!(args.to, Format::Goal) { messages::goal(args)? } else { messages::dot(args)? };
            match &args.output {
                Some(path) => write_text(path, &text)?,
                None => print(&text)?,
            }
        }
        Format::Openmpi | Format::OpenmpiJson | Format::Mpich => library::run(args)?,
    }
    Ok(Outcome::Done)
}

fn to_simgrid(platform: &Platform, folder: &Path) -> anyhow::Result<()> {
    let path = |end: &str| folder.join(format!("{}.{end}", platform.name));
    let hosts = |placement| {
        let names = platform.host_names();
        platform.place(placement).into_iter().map(|h| names[h].clone() + "\n").collect::<String>()
    };
    write_text(&path("xml"), &simgrid::xml(platform))?;
    write_text(&path("slot.hosts"), &hosts(Placement::Slot))?;
    write_text(&path("node.hosts"), &hosts(Placement::Node))?;
    let n = platform.host_count();
    print(&format!(
        "wrote {} and host files for {n} ranks; run a program on it with\n  smpirun -np {n} -platform {} -hostfile {} {} PROGRAM\n",
        path("xml").display(),
        path("xml").display(),
        path("slot.hosts").display(),
        simgrid::OPTIONS.join(" ")
    ))
}
