//! `collwise list`

use super::table::table;
use super::{Outcome, print, print_json};
use crate::cluster::METHODS;
use crate::collective::COLLECTIVES;
use crate::intercluster::HEURISTICS;
use crate::model::MODELS;

/// List what there is.
#[derive(clap::Args)]
pub struct Args {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut all: Vec<[String; 4]> = Vec::new();
    let mut add = |kind: &str, name: &str, summary: &str, citation: &str| all.push([kind, name, summary, citation].map(String::from));
    for m in MODELS {
        let parameters: Vec<&str> = m.scalars.iter().chain(m.tables).map(|(n, _)| *n).collect();
        add("model", m.name, &format!("parameters {}", parameters.join(", ")), m.citation);
    }
    for c in COLLECTIVES.iter().copied() {
        for a in c.algorithms {
            let takes = [(a.segmented, "--segment"), (!a.radices.is_empty(), "--radix")];
            let takes: Vec<&str> = takes.into_iter().filter(|t| t.0).map(|t| t.1).collect();
            let takes = if takes.is_empty() { String::new() } else { format!("; takes {}", takes.join(", ")) };
            add(c.name, a.name, &format!("{}{takes}", a.summary), a.citation);
        }
    }
    METHODS.iter().for_each(|m| add("grouping", m.name, m.summary, m.citation));
    HEURISTICS.iter().for_each(|h| add("schedule", h.name, h.summary, h.citation));
    if args.json {
        let entry = |[kind, name, summary, citation]: &[String; 4]| serde_json::json!({ "kind": kind, "name": name, "summary": summary, "citation": citation });
        print_json(&all.iter().map(entry).collect::<Vec<_>>())?;
    } else {
        print(&table(&["kind", "name", "what it is", "source"], 4, &all.iter().map(|r| r.to_vec()).collect::<Vec<_>>()))?;
    }
    Ok(Outcome::Done)
}
