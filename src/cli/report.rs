//! `collwise report`

use super::app::Placed;
use super::{Outcome, print};
use crate::bench;
use crate::error::{Error, Result};
use crate::files::{check_writable, named_once, read_text, regular_path, write_text};
use crate::measure::{Samples, Settings};
use crate::plan::members;
use crate::policy::{CompiledPolicy, Policy};
use crate::qnm::{self, Spread};
use crate::report::{Inputs, Report, Traced};
use anyhow::Context;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Write one page that shows a platform, its models, its choices and what they win.
#[derive(clap::Args)]
pub struct Args {
    /// The policy.
    policy: PathBuf,
    /// The samples beside it: what was measured stands beside what is predicted.
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// What `collwise bench --json` printed; several stand side by side.
    #[arg(long, value_name = "RESULTS")]
    bench: Vec<PathBuf>,
    /// A folder of traces, of a program that ran with COLLWISE_TRACE=FOLDER.
    #[arg(long, value_name = "FOLDER")]
    trace: Option<PathBuf>,
    /// Reports of mpiP of an application, at several numbers of processes.
    #[arg(long, value_name = "REPORT", num_args = 1..)]
    app: Vec<PathBuf>,
    /// Processors of a host, where the application ran.
    #[arg(long, default_value_t = 1, requires = "app", value_parser = clap::value_parser!(u32).range(1..=1024))]
    cores: u32,
    /// How its processes were placed on hosts.
    #[arg(long, value_enum, default_value_t = Placed::Block, requires = "app")]
    placement: Placed,
    /// Another policy: what this one does otherwise is shown.
    #[arg(long, value_name = "OLD")]
    against: Option<PathBuf>,
    /// Write the page here.
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Write each picture into this folder too, as SVG.
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let text = read_text(&args.policy)?;
    let policy = compiled(&args.policy, &text)?;
    check_writable(&args.output)?;
    let read = [&args.policy].into_iter().chain(&args.samples).chain(&args.bench).chain(&args.app).chain(&args.against);
    keeps(&args.output, read.map(PathBuf::as_path))?;
    if let Some(folder) = &args.svg {
        std::fs::create_dir_all(folder).with_context(|| format!("make the folder {} for pictures", folder.display()))?;
    }
    let samples = args.samples.as_ref().map(|path| Samples::read(path, false)).transpose()?;
    named_once(&args.bench)?;
    let benches = names(&args.bench)
        .into_iter()
        .zip(&args.bench)
        .map(|(name, path)| Ok((name, bench::Report::read(path)?)))
        .collect::<Result<Vec<_>>>()?;
    for (path, (_, bench)) in args.bench.iter().zip(&benches) {
        members(&policy.policy, &bench.hosts).with_context(|| format!("show {}: it is not of the policy's hosts", path.display()))?;
    }
    let traces = args.trace.as_ref().map_or(Ok(Vec::new()), |folder| Traced::read_folder(folder))?;
    let runs = qnm::Report::read_all(&args.app)?.iter().map(qnm::Run::of).collect::<Result<Vec<_>>>()?;
    let old =
        args.against.as_ref().map(|path| Ok::<_, Error>((path.display().to_string(), compiled(path, &read_text(path)?)?))).transpose()?;
    if let Some((name, old)) = &old {
        let hosts = |policy: &CompiledPolicy| policy.policy.groups.iter().flat_map(|g| g.hosts.clone()).collect::<BTreeSet<_>>();
        anyhow::ensure!(!hosts(old).is_disjoint(&hosts(&policy)), "compare with {name}: it has none of the policy's hosts");
    }
    let report = Report::of(&Inputs {
        policy: &policy,
        made_by: made_by(&text),
        samples: samples.as_ref().map(|(settings, samples)| (settings, samples)),
        benches: &benches,
        traces: &traces,
        runs: &runs,
        placed: (args.cores as usize, args.placement.into()),
        against: old.as_ref().map(|(name, policy)| (name.as_str(), policy)),
    })?;
    write_text(&args.output, &report.html()?)?;
    let mut said = format!("report written to {}\n", args.output.display());
    if let Some(folder) = &args.svg {
        let pictures = write_pictures(folder, &report)?;
        said += &format!("{pictures} pictures written to {}\n", folder.display());
    }
    print(&said)?;
    Ok(Outcome::Done)
}

/// Refuses a page that would take the place of what it is made of, or of what was just measured.
///
/// # Errors
/// It is one of these files.
pub fn keeps<'a>(page: &Path, others: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    // devices keep nothing
    let Some(own) = regular_path(page)? else { return Ok(()) };
    match others.into_iter().find(|other| regular_path(other).is_ok_and(|other| other.as_ref() == Some(&own))) {
        Some(other) => Err(Error::invalid(format!("write the page to {}: that is {}; name another file", page.display(), other.display()))),
        None => Ok(()),
    }
}

/// Writes the page of a policy that was just made or used, with what was measured then.
///
/// # Errors
/// As [`Report::of`], or the file cannot be written.
pub fn write(
    path: &Path,
    policy: Policy,
    made_by: Option<String>,
    samples: Option<(&Settings, &Samples)>,
    benches: &[(String, bench::Report)],
) -> Result<()> {
    let policy = CompiledPolicy::new(policy)?;
    let report = Report::of(&Inputs {
        policy: &policy,
        made_by,
        samples,
        benches,
        traces: &[],
        runs: &[],
        placed: (1, Spread::Block),
        against: None,
    })?;
    write_text(path, &report.html()?)
}

fn compiled(path: &Path, text: &str) -> Result<CompiledPolicy> {
    CompiledPolicy::new(Policy::parse(&path.display().to_string(), text)?)
}

/// The names of files without their folders and endings, as far as these tell them apart; else as they were given.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let own = |path: &PathBuf| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_alone = |path: &&PathBuf| paths.iter().filter(|other| own(other) == own(path)).count() == 1;
    paths.iter().map(|path| Some(path).filter(is_alone).map_or_else(|| path.display().to_string(), own)).collect()
}

/// The command that a policy's opening comment names.
pub fn made_by(text: &str) -> Option<String> {
    let mut comment = text.lines().map_while(|line| line.strip_prefix('#')).skip_while(|line| !line.starts_with(" Made by: "));
    let first = comment.next()?.strip_prefix(" Made by: ")?.to_string();
    // a long one goes on in lines that are set in
    Some(comment.take_while(|line| line.starts_with("   ")).fold(first, |all, line| all + " " + line.trim_start()))
}

/// Writes each picture into a folder, which is made; gives how many there are.
fn write_pictures(folder: &Path, report: &Report) -> Result<usize> {
    let mut names = BTreeSet::new();
    for figure in report.figures() {
        let mut name = figure.id.clone();
        while !names.insert(name.clone()) {
            name += "-again";
        }
        write_text(&folder.join(format!("{name}.svg")), &figure.svg)?;
    }
    Ok(names.len())
}
