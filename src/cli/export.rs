//! `collwise export`

use super::{Outcome, print};
use crate::files::write_text;
use crate::platform::{Placement, Platform, simgrid};
use std::path::PathBuf;

/// Write a platform in another tool's format.
#[derive(clap::Args)]
pub struct Args {
    /// The platform.
    platform: PathBuf,
    /// The format.
    #[arg(long, value_enum)]
    to: Format,
    /// The folder to write to; it must exist.
    #[arg(short, long, value_name = "FOLDER", default_value = ".")]
    output: PathBuf,
}

#[derive(clap::ValueEnum, Clone, Copy)]
enum Format {
    /// SimGrid: NAME.xml, and host files NAME.slot.hosts and NAME.node.hosts for ranks placed group by group and round robin.
    Simgrid,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let platform = Platform::read(&args.platform)?;
    let Format::Simgrid = args.to;
    let path = |end: &str| args.output.join(format!("{}.{end}", platform.name));
    let hosts = |placement| {
        let names = platform.host_names();
        platform.place(placement).into_iter().map(|h| names[h].clone() + "\n").collect::<String>()
    };
    write_text(&path("xml"), &simgrid::xml(&platform))?;
    write_text(&path("slot.hosts"), &hosts(Placement::Slot))?;
    write_text(&path("node.hosts"), &hosts(Placement::Node))?;
    let n = platform.host_count();
    print(&format!(
        "wrote {} and host files for {n} ranks; run a program on it with\n  smpirun -np {n} -platform {} -hostfile {} {} PROGRAM\n",
        path("xml").display(),
        path("xml").display(),
        path("slot.hosts").display(),
        simgrid::OPTIONS.join(" ")
    ))?;
    Ok(Outcome::Done)
}
