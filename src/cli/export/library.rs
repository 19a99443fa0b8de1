//! `collwise export` for an MPI library: the file, and what was lost on the way.

use super::super::table::{percent, table};
use super::super::{print, print_json};
use super::{Args, Format};
use crate::collective::{Collective, allreduce, bcast, reduce};
use crate::export::{Class, Decisions, Target, decide, mpich, openmpi, openmpi_json};
use crate::files::{read_bytes, write_text};
use crate::library::Library;
use crate::plan::{Location, everybody, placement};
use crate::policy::{CompiledPolicy, Policy};
use crate::units;
use anyhow::{Context, bail};
use std::path::Path;

/// What became of a policy.
#[derive(serde::Serialize)]
struct Report<'a> {
    library: &'static str,
    /// Communicators of so many ranks are told something; all others decide by themselves.
    ranks: usize,
    environment: Vec<(String, String)>,
    warnings: Vec<String>,
    collectives: Vec<OfCollective<'a>>,
}

#[derive(serde::Serialize)]
struct OfCollective<'a> {
    collective: &'static Collective,
    classes: &'a [Class],
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    if args.bytes.is_some()
        || args.root > 0
        || args.collective.collective != &bcast::COLLECTIVE
        || args.algorithm.chosen(args.collective.collective)?.is_some()
    {
        bail!(
            "export to an MPI library: all collectives and sizes of a policy are; --bytes, --root, --collective and --algorithm are of GOAL and DOT"
        );
    }
    let path = args.file.as_ref().context("export to an MPI library: give a policy")?;
    let Exported { compiled, members, target, decided, text } = Exported::of(path, args.to, args.base.as_deref(), args.all_commute)?;
    let decisions: Vec<Decisions> = decided.iter().map(|(decisions, _)| decisions.clone()).collect();
    match &args.output {
        Some(output) => write_text(output, &text)?,
        None => print(&text)?,
    }
    // ranks may run in any folder
    let file = args.output.as_deref().map_or_else(|| Ok("FILE".into()), std::path::absolute)?;
    let report = Report {
        library: target.name,
        ranks: members.len(),
        environment: environment(target, &file, &decisions),
        warnings: warnings(target, &compiled, &members, &decisions, args.all_commute),
        collectives: decided.iter().map(|(d, classes)| OfCollective { collective: d.collective, classes }).collect(),
    };
    if args.json {
        return print_json(&report);
    }
    eprint!("{}", words(&report)?);
    Ok(())
}

/// What a library is told of a policy.
struct Exported {
    compiled: CompiledPolicy,
    members: Vec<Location>,
    target: &'static Target,
    decided: Vec<(Decisions, Vec<Class>)>,
    text: String,
}

impl Exported {
    fn of(policy: &Path, to: Format, base: Option<&Path>, all_commute: bool) -> anyhow::Result<Exported> {
        let compiled = CompiledPolicy::new(Policy::read(policy)?)?;
        let members = everybody(&compiled.policy);
        let target = if matches!(to, Format::Mpich) { &mpich::TARGET } else { &openmpi::TARGET };
        let decided = decide(&compiled, &members, target, all_commute)?;
        let decisions: Vec<Decisions> = decided.iter().map(|(decisions, _)| decisions.clone()).collect();
        let text = match to {
            Format::Mpich => {
                let base = base.context(
                    "export to MPICH: give --base, its shared library (libmpich.so): a file takes the place of all that it selects by itself, and must have the rest from there",
                )?;
                let built_in = mpich::Tree::of_library(&read_bytes(base)?).with_context(|| format!("read {}", base.display()))?;
                mpich::write(&decisions, &built_in)?
            }
            Format::OpenmpiJson => openmpi_json::write(&decisions)?,
            _ => openmpi::write(&decisions, &format!("{} by {}", compiled.policy.provenance.platform, compiled.policy.provenance.made_by))?,
        };
        Ok(Exported { compiled, members, target, decided, text })
    }
}

/// Writes a policy's decisions for a library to a file, and says what must be set with it.
pub fn written(policy: &Path, to: Format, base: Option<&Path>, file: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let exported = Exported::of(policy, to, base, false)?;
    write_text(file, &exported.text)?;
    let decisions: Vec<Decisions> = exported.decided.into_iter().map(|(decisions, _)| decisions).collect();
    Ok(environment(exported.target, &std::path::absolute(file)?, &decisions))
}

fn environment(target: &Target, file: &Path, decisions: &[Decisions]) -> Vec<(String, String)> {
    if target.library == Library::Mpich {
        return mpich::environment(file, decisions);
    }
    openmpi::environment(file).into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

/// What whoever uses the file must know.
fn warnings(target: &Target, policy: &CompiledPolicy, members: &[Location], decisions: &[Decisions], commute: bool) -> Vec<String> {
    let openmpi = target.library == Library::OpenMpi;
    let told = |collective: &Collective| decisions.iter().any(|d| d.collective == collective && d.is_told());
    let segmented = |d: &Decisions| d.rules.iter().any(|rule| rule.choice.is_some_and(|c| c.segment > 0));
    let mut all = vec![
        "rules hold for ranks in the order of the policy's hosts, group by group; in another order messages cross groups elsewhere"
            .to_string(),
    ];
    if openmpi && decisions.iter().any(|d| d.collective == &bcast::COLLECTIVE && segmented(d)) {
        all.push(
            "broadcasts go in segments: a program whose ranks give one broadcast different counts and datatypes, which MPI allows, waits for ever or gets wrong data (open-mpi/ompi issue 1763)"
                .into(),
        );
    }
    let one: Vec<&str> = decisions.iter().map(|d| d.collective).filter(|c| (target.one_for_all_sizes)(c)).map(|c| c.name).collect();
    if !one.is_empty() {
        all.push(format!("{} have one algorithm for all sizes: with several, ranks may choose unlike and wait for ever", one.join(", ")));
    }
    if openmpi && !commute && (told(&reduce::COLLECTIVE) || told(&allreduce::COLLECTIVE)) {
        all.push("reduce and allreduce are told only what is right for any operation: if all operations of the program commute, say --all-commute".into());
    }
    if openmpi && commute {
        all.push("reduce and allreduce are wrong for operations that do not commute: --all-commute said that there are none".into());
    }
    let elsewhere = |d: &Decisions| !policy.is_as_measured(d.collective, members.len(), &placement(members));
    if decisions.iter().any(elsewhere) {
        all.push("the policy was measured over ranks in another order, so that what the library took by itself is not compared".into());
    }
    if policy.policy.groups.iter().any(|g| g.hosts.windows(2).any(|two| two[0] == two[1])) {
        all.push("hosts have several ranks: the library is told not to treat them apart, in these and all communicators".into());
    }
    all
}

/// The report in words.
fn words(report: &Report) -> anyhow::Result<String> {
    let mut rows = Vec::new();
    let mut left = Vec::new();
    for OfCollective { collective, classes } in &report.collectives {
        let alike: Vec<&[Class]> = classes.chunk_by(|a, b| (&a.exported, a.why) == (&b.exported, b.why)).collect();
        for same in alike {
            let Some(exported) = &same[0].exported else {
                left.push(format!("{} from {}: {}", collective.name, units::bytes(same[0].from_bytes), same[0].why.unwrap_or_default()));
                continue;
            };
            // where most is lost
            let lost = |class: &Class| Some(class.exported_s? / class.policy_s? - 1.0);
            let worst = same.iter().max_by(|a, b| lost(a).unwrap_or(0.0).total_cmp(&lost(b).unwrap_or(0.0))).context("a class")?;
            let seconds = |s: Option<f64>| s.map_or("-".into(), units::seconds);
            rows.push(vec![
                collective.name.to_string(),
                units::bytes(same[0].from_bytes),
                exported.clone(),
                worst.policy.clone(),
                units::bytes(worst.at_bytes),
                seconds(worst.exported_s),
                seconds(worst.policy_s),
                lost(worst).map_or("-".into(), percent),
            ]);
        }
    }
    let mut out = format!("\nnothing is told: {} decides all by itself\n", report.library);
    if !rows.is_empty() {
        out = format!(
            "\ncommunicators of {} ranks do this, all others what {} decides by itself (each row at the size at which most is lost):\n",
            report.ranks, report.library
        );
        out += &table(&["collective", "from", report.library, "the policy", "at", "takes", "takes", "lost"], 4, &rows);
    }
    if !left.is_empty() {
        out += &format!("\n{} decides by itself:\n", report.library);
        left.iter().for_each(|line| out += &format!("  {line}\n"));
    }
    out += "\nwith it must be set for every rank:\n";
    report.environment.iter().for_each(|(name, value)| out += &format!("  {name}={value}\n"));
    report.warnings.iter().for_each(|warning| out += &format!("collwise: {warning}\n"));
    Ok(out)
}
