//! `collwise check`

use super::{Outcome, print, print_json};
use crate::error::Error;
use crate::plan::members;
use crate::platform::Platform;
use crate::policy::Policy;
use std::path::PathBuf;

/// Check a policy file.
#[derive(clap::Args)]
pub struct Args {
    /// The policy.
    policy: PathBuf,
    /// Also check that it is for the hosts of this platform.
    #[arg(long, value_name = "FILE")]
    platform: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let verdict = match Policy::read(&args.policy) {
        Ok(policy) => match &args.platform {
            Some(path) => {
                let hosts = Platform::read(path)?.host_names();
                members(&policy, &hosts).map(|_| policy).map_err(|e| format!("failed to {e}"))
            }
            None => Ok(policy),
        },
        Err(e @ Error::Io { .. }) => return Err(e.into()),
        Err(e) => Err(format!("failed to {e}")),
    };
    let fingerprint = verdict.as_ref().ok().map(Policy::fingerprint).transpose()?.map(|print| format!("{print:016x}"));
    let warnings = verdict.as_ref().map(Policy::warnings).unwrap_or_default();
    if args.json {
        print_json(&serde_json::json!({
            "valid": verdict.is_ok(), "reason": verdict.as_ref().err(), "fingerprint": fingerprint, "warnings": warnings,
        }))?;
    } else if let Ok(policy) = &verdict {
        let rows: usize = policy.groups.iter().map(|g| g.choices.values().map(Vec::len).sum::<usize>()).sum();
        let (name, groups) = (&policy.provenance.platform, policy.groups.len());
        print(&format!("valid: {name}, {groups} groups, {rows} choices, fingerprint {}\n", fingerprint.unwrap_or_default()))?;
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
