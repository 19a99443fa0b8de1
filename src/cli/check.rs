//! `collwise check`

use super::reasons::share_hosts;
use super::table::table;
use super::{Outcome, print, print_json};
use crate::error::Error;
use crate::plan::members;
use crate::platform::Platform;
use crate::policy::Policy;
use crate::topology::{Declared, Rank};
use std::path::PathBuf;

/// Check a policy file.
#[derive(clap::Args)]
pub struct Args {
    /// The policy.
    policy: PathBuf,
    /// Also check that it is for the hosts of this platform.
    #[arg(long, value_name = "FILE")]
    platform: Option<PathBuf>,
    /// Also check that it is for these hosts, a line HOST for each rank, and say where each rank is placed: as which host of which group.
    #[arg(long, value_name = "FILE", conflicts_with = "platform")]
    hosts: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Where a rank is placed.
#[derive(serde::Serialize)]
struct Placed {
    rank: Rank,
    host: String,
    group: String,
    /// The host of the group that it is, or stands in for.
    placed_as: String,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let platform = args.platform.as_deref().map(Platform::read).transpose()?.map(|platform| platform.host_names());
    let hosts = args.hosts.as_deref().map(Declared::read).transpose()?.map(|declared| declared.hosts);
    let verdict = match Policy::read(&args.policy) {
        Ok(policy) => placed(&policy, platform.or(hosts).unwrap_or_default()).map(|placed| (policy, placed)),
        Err(e @ Error::Io { .. }) => return Err(e.into()),
        Err(e) => Err(e),
    };
    let verdict = verdict.map_err(|e| format!("failed to {e}"));
    let fingerprint = verdict.as_ref().ok().map(|(policy, _)| policy.fingerprint()).transpose()?.map(|print| format!("{print:016x}"));
    let warnings = verdict.as_ref().map(|(policy, placed)| [policy.warnings(), placed.1.clone()].concat()).unwrap_or_default();
    if args.json {
        let placed = verdict.as_ref().ok().map(|(_, placed)| &placed.0).filter(|_| args.hosts.is_some());
        print_json(&serde_json::json!({
            "valid": verdict.is_ok(), "reason": verdict.as_ref().err(), "fingerprint": fingerprint, "warnings": warnings, "placed": placed,
        }))?;
    } else if let Ok((policy, placed)) = &verdict {
        let rows: usize = policy.groups.iter().map(|g| g.choices.values().map(Vec::len).sum::<usize>()).sum();
        let (name, groups) = (&policy.provenance.platform, policy.groups.len());
        let placed = if args.hosts.is_some() { format!("\n{}", words(&placed.0)) } else { String::new() };
        print(&format!("valid: {name}, {groups} groups, {rows} choices, fingerprint {}\n{placed}", fingerprint.unwrap_or_default()))?;
    }
    warnings.iter().for_each(|warning| eprintln!("collwise: warning: {warning}"));
    match verdict {
        Ok(_) => Ok(Outcome::Done),
        Err(reason) => {
            eprintln!("collwise: {reason}");
            Ok(Outcome::Negative)
        }
    }
}

/// Where ranks on these hosts are placed, and what to know of it.
fn placed(policy: &Policy, hosts: Vec<String>) -> crate::error::Result<(Vec<Placed>, Vec<String>)> {
    let members = members(policy, &hosts)?;
    let warnings = share_hosts(policy, &hosts, &members);
    let of = |((rank, host), at): ((Rank, String), crate::plan::Location)| {
        let group = &policy.groups[at.group];
        Placed { rank, host, group: group.name.clone(), placed_as: group.hosts[at.position % group.hosts.len()].clone() }
    };
    Ok((hosts.into_iter().enumerate().zip(members).map(of).collect(), warnings))
}

/// A line for each rank.
fn words(placed: &[Placed]) -> String {
    let row = |p: &Placed| vec![p.rank.to_string(), p.host.clone(), p.group.clone(), p.placed_as.clone()];
    table(&["rank", "host", "group", "as"], 4, &placed.iter().map(row).collect::<Vec<_>>())
}
