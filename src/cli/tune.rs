//! `collwise tune`

use super::clocks::clocks;
use super::discover::describe;
use super::explain::{classes, or_dash, short, span};
use super::source::{GroupingArgs, SourceArgs};
use super::table::{GROUPS_ON_A_SCREEN, percent_or_dash, table};
use super::{Outcome, print, print_json, report};
use crate::collective::{COLLECTIVES, Collective, collective};
use crate::error::{Error, Result};
use crate::files::{check_writable, write_text};
use crate::library::Library;
use crate::measure::{ClockErrors, Spent};
use crate::plan::{everybody, plan};
use crate::policy::{Also, CompiledPolicy, Policy};
use crate::tune::{TuneOptions, tune};
use crate::two_level::has_routes;
use crate::units;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Measure, group, fit, score and select; write the policy.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    grouping: GroupingArgs,
    /// Write the policy here. Samples of MPI are kept beside it, and measuring goes on from them after an interrupt; those of --platform are kept
    /// where --samples says, and nowhere without it.
    #[arg(short, long, value_name = "FILE", default_value = "policy.toml")]
    output: PathBuf,
    /// Measure every candidate, and not only those predicted to be fast: what the predictions save, and what they cost.
    #[arg(long)]
    exhaustive: bool,
    /// The collectives to tune; all others, and those of a size that no row is for, are left to the MPI library.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_values_t = tuned())]
    collectives: Vec<String>,
    /// Hosts that are like those of a group and may stand in for them, such as the rest of a partition: the group has them in `also`. Without
    /// GROUP= of the only group there is.
    #[arg(long, value_name = "[GROUP=]HOSTS", value_parser = Also::parse)]
    also: Vec<Also>,
    /// Write a page about it, as `collwise report` does, with what was measured.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print what was decided inside each group too, what each stage of measuring took, and how far off clocks may have been.
    #[arg(long)]
    verbose: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut source = args.source.clone();
    source.samples_beside = Some(args.output.clone());
    if let Some(page) = &args.report {
        let samples = source.samples_file()?;
        report::keeps(
            page,
            [Some(&args.output), args.source.platform.as_ref(), samples.as_ref()].into_iter().flatten().map(PathBuf::as_path),
        )?;
    }
    // over MPI the rank that drives says what is wrong, once
    let simulated = if source.platform.is_some() { collectives(&args.collectives)? } else { Vec::new() };
    // written while MPI still runs: some libraries hang or crash when they end
    let tuned = source.measure(Some(&args.output), &simulated, |session, declared| {
        args.report.as_deref().map(check_writable).transpose()?;
        let (method, bound) = args.grouping.method()?;
        let collectives = collectives(&args.collectives)?;
        let options = TuneOptions { declared, method, bound, collectives: &collectives, exhaustive: args.exhaustive };
        let (discovery, mut policy) = tune(session, options)?;
        for also in &args.also {
            // what was measured is kept
            if let Err(e) = policy.add_also(also) {
                eprintln!(
                    "collwise: warning: failed to {e}; without them the policy is written: add the line also = [...] to a [[group]] of it"
                );
            }
        }
        let head = head(&policy);
        write_text(&args.output, &format!("{head}{}", policy.to_toml()?))?;
        if let Some(path) = &args.report {
            // the policy is there; a page can be written later
            let settings = session.settings().clone();
            if let Err(e) = report::write(path, policy.clone(), report::made_by(&head), Some((&settings, session.samples())), &[]) {
                eprintln!("collwise: warning: failed to {e}; `collwise report` writes it of the policy");
            }
        }
        Ok((discovery, policy, session.spent().to_vec(), session.samples().clock_errors()))
    })?;
    let Some((discovery, policy, spent, errors)) = tuned else { return Ok(Outcome::Done) };
    if args.json {
        print_json(&policy)?;
    } else {
        let (inside, stages) = if args.verbose { (inside(&policy), stages(&spent, errors)) } else { Default::default() };
        let over_all = over_all(&policy, args.verbose)?;
        let most = if args.verbose { usize::MAX } else { GROUPS_ON_A_SCREEN };
        print(&format!("{}\n{inside}{over_all}{stages}{}", describe(&discovery, most), total(&policy, &args.output, args.verbose)))?;
    }
    Ok(Outcome::Done)
}

/// The names of all that can be tuned.
fn tuned() -> Vec<String> {
    COLLECTIVES.iter().filter(|c| c.tuned).map(|c| c.name.to_string()).collect()
}

/// Collectives by their names, each once.
fn collectives(names: &[String]) -> Result<Vec<&'static Collective>> {
    let mut all: Vec<&'static Collective> = Vec::new();
    for name in names {
        let found = collective(name)?;
        if !found.tuned {
            return Err(Error::invalid(format!("tune {name}: its schedules can be predicted and exported, and are not run yet")));
        }
        if !all.contains(&found) {
            all.push(found);
        }
    }
    Ok(all)
}

/// The comment that opens a policy file.
fn head(policy: &Policy) -> String {
    let p = &policy.provenance;
    // a library may say anything, and so may arguments: each stays on its line of the comment
    let one_line = |text: &str| text.replace(char::is_control, " ");
    let command: Vec<String> = std::env::args_os().skip(1).map(|a| one_line(&a.to_string_lossy())).collect();
    let launcher = match Library::of(&p.library) {
        Library::Simulator => String::new(),
        Library::Smpi => format!("smpi/smpirun.sh platforms/{}.toml slot ", p.platform),
        Library::OpenMpi | Library::Mpich | Library::Other => format!("mpirun -n {} ", p.ranks),
    };
    let made_by = format!("Made by: {launcher}collwise {}", command.join(" "));
    let what = format!("What collwise decided for {} ({} ranks, {}), and why.", p.platform, p.ranks, one_line(&p.library));
    let how = "`collwise explain FILE --bytes 64KiB` says what runs for a size; `collwise check FILE` checks it after an edit.";
    [&what, &made_by, how].map(comment).concat() + "\n"
}

/// A comment, in lines that are not long.
fn comment(text: &str) -> String {
    const WIDTH: usize = 140;
    let mut lines = vec!["#".to_string()];
    for word in text.split(' ') {
        if let Some(line) = lines.last_mut().filter(|line| line.len() + word.len() < WIDTH) {
            *line += &format!(" {word}");
        } else {
            lines.push(format!("#   {word}"));
        }
    }
    lines.join("\n") + "\n"
}

/// What was decided inside each group for each collective, and why.
fn inside(policy: &Policy) -> String {
    let tuned = |collective: &&'static Collective| policy.groups.iter().any(|g| !g.rows(collective).is_empty());
    COLLECTIVES.iter().copied().filter(tuned).map(|collective| inside_of(policy, collective)).collect()
}

fn inside_of(policy: &Policy, collective: &'static Collective) -> String {
    let mut rows = Vec::new();
    for g in &policy.groups {
        for r in g.rows(collective) {
            let segment = if r.segment_bytes > 0 { units::bytes(r.segment_bytes) } else { "-".into() };
            let e = &r.evidence;
            let measured = e.measured_s.map_or("-".into(), units::seconds);
            let why = vec![r.model.clone(), units::seconds(e.predicted_s), measured, e.runner_up.clone(), percent_or_dash(Some(e.margin))];
            rows.push([vec![g.name.clone(), units::bytes(r.from_bytes), r.algorithm.clone(), segment], why].concat());
        }
    }
    let header = ["group", "from", "algorithm", "segment", "model", "predicted", "measured", "runner-up", "slower by"];
    format!("{} inside groups:\n{}\n", collective.name, table(&header, 3, &rows))
}

/// What was decided over all groups, in short: of a broadcast for all sizes, of others too if `verbose`, else what they take.
fn over_all(policy: &Policy, verbose: bool) -> anyhow::Result<String> {
    let compiled = CompiledPolicy::new(policy.clone())?;
    let members = everybody(policy);
    let mut text = String::new();
    // the broadcast first, and one group's rows too
    let by_name = policy.collectives.keys().chain(policy.groups.iter().flat_map(|g| g.choices.keys())).copied();
    let mut collectives: Vec<&Collective> = by_name.collect::<BTreeSet<_>>().into_iter().collect();
    collectives.sort_by_key(|c| (!has_routes(c), c.sized(), c.name));
    for collective in collectives {
        if has_routes(collective) {
            text += &format!(
                "broadcast over all groups:\n{}\n",
                short(&compiled, &members, (collective, 0), &classes(&compiled, &members, collective, 0)?)?
            );
            continue;
        }
        if collective.sized() {
            let classes = classes(&compiled, &members, collective, 0)?;
            text += &match verbose {
                true => format!("{} over all groups:\n{}\n", collective.name, short(&compiled, &members, (collective, 0), &classes)?),
                false => format!("{}: {}\n", collective.name, span(&classes)),
            };
            continue;
        }
        let plan = plan(&compiled, &members, collective, &collective.shape(members.len(), 0, 0))?;
        text += &format!("{}: {}, takes {}\n", collective.name, plan.words(), or_dash(plan.predicted_s));
    }
    Ok(text + "\n")
}

/// What each stage of measuring took, and how far off clocks may have been.
fn stages(spent: &[Spent], errors: Option<ClockErrors>) -> String {
    let share = |s: &Spent| vec![s.purpose.clone(), s.experiments.to_string(), units::seconds(s.seconds)];
    let rows: Vec<Vec<String>> = spent.iter().map(share).collect();
    format!("{}\n{}", table(&["what", "experiments", "took"], 1, &rows), clocks(errors))
}

/// What measuring took, and where the result is.
fn total(policy: &Policy, path: &Path, verbose: bool) -> String {
    let took = units::seconds(policy.provenance.measuring_s);
    let what_for = if verbose { "" } else { " (--verbose says what for)" };
    format!("measured for {took}{what_for}\npolicy written to {}\n", path.display())
}
