//! The report: one page that shows a platform, its models, its choices and what they win, and its pictures one by one.
//!
//! Each section is a file here, which takes what it shows out of the policy and of what else was given, as words, tables and figures; [`picture`] draws
//! them, [`Report::html`] puts them on a page that needs nothing else. The same input gives the same page, byte for byte.

mod applications;
mod beside;
mod changes;
mod choices;
mod critical;
mod decision_maps;
mod drawn;
mod fits;
mod latencies;
mod models;
mod moved;
mod page;
pub mod picture;
mod plans;
mod platform;
mod provenance;
mod regrets;
mod room;
mod schedules;
mod tables;
mod traced;
mod trees;
mod wins;

use crate::bench;
use crate::error::Result;
use crate::measure::{Samples, Settings};
use crate::policy::CompiledPolicy;
use crate::qnm::{Run, Spread};
use rayon::prelude::*;
use serde::Serialize;

pub use latencies::{Latencies, Tile};
pub use schedules::first_tree;
pub use tables::{Cell, Table};
pub use traced::{Kind, Traced, TracedOp};

/// What a report is made of.
pub struct Inputs<'a> {
    /// The policy.
    pub policy: &'a CompiledPolicy,
    /// The command that made it, if its file says it.
    pub made_by: Option<String>,
    /// What was measured for it.
    pub samples: Option<(&'a Settings, &'a Samples)>,
    /// Comparisons with the MPI library, each with its name.
    pub benches: &'a [(String, bench::Report)],
    /// Schedules that were traced.
    pub traces: &'a [Traced],
    /// Runs of an application.
    pub runs: &'a [Run],
    /// Processors of a host that they ran on, and how their processes were placed.
    pub placed: (usize, Spread),
    /// Another policy, with its name.
    pub against: Option<(&'a str, &'a CompiledPolicy)>,
}

/// A report.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// What it is of.
    pub title: String,
    /// What to know at first sight, each with what it is.
    pub facts: Vec<(String, String)>,
    /// Its sections.
    pub sections: Vec<Section>,
    /// Its page has no more bytes, if pictures can give way.
    #[serde(skip)]
    pub most_bytes: usize,
}

/// A section.
#[derive(Debug, Clone, Serialize)]
pub struct Section {
    /// Short, for addresses.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// What to know of it.
    pub words: String,
    /// What it shows.
    pub blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "of")]
pub enum Block {
    /// A picture.
    Figure(Figure),
    /// A table alone.
    Table(Titled),
    /// What is not there, and what gives it.
    Missing(String),
    /// Pictures of which one is chosen.
    Chooser(Chooser),
}

/// A table with its title.
#[derive(Debug, Clone, Serialize)]
pub struct Titled {
    /// The title.
    pub title: String,
    /// What to know of it.
    pub words: String,
    /// The table.
    pub table: Table,
}

/// A picture with what it says.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Its name in addresses, and of its file.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What to see in it.
    pub words: String,
    /// The image.
    pub svg: String,
    /// What pointer and arrow keys find in it.
    pub cells: Option<Cells>,
    /// What it shows, as a table; what that is called.
    pub table: Table,
}

/// Where the cells of a picture are, which are those of its table but for its first column.
#[derive(Debug, Clone, Serialize)]
pub struct Cells {
    /// Their edges across, in the picture's measure.
    pub x: Vec<i32>,
    /// Their edges down.
    pub y: Vec<i32>,
}

/// Pictures of which those of one collective, root and size are seen at a time.
#[derive(Debug, Clone, Serialize)]
pub struct Chooser {
    /// Its name in addresses.
    pub id: &'static str,
    /// The collectives.
    pub collectives: Vec<String>,
    /// The roots.
    pub roots: Vec<String>,
    /// The sizes.
    pub sizes: Vec<String>,
    /// The size that is seen at first.
    pub start: usize,
    /// What is seen, by collective, root and size.
    pub views: Vec<View>,
}

/// What is seen for one of each.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    /// The collective's place in the list.
    pub collective: usize,
    /// The root's; `None`: the collective has none.
    pub root: Option<usize>,
    /// The size's place on the slider; `None`: the collective has none.
    pub size: Option<usize>,
    /// What to know of it.
    pub words: String,
    /// What is seen. It is written by itself.
    #[serde(skip)]
    pub figures: Vec<Figure>,
}

impl View {
    /// True if it is seen before anything is chosen, where sizes start at this place.
    fn is_seen_at_first(&self, start: usize) -> bool {
        self.collective == 0 && self.root.unwrap_or(0) == 0 && self.size.is_none_or(|size| size == start)
    }
}

impl Report {
    /// Makes a report.
    ///
    /// # Errors
    /// The policy lacks what it should have, or samples and runs are of other hosts.
    pub fn of(inputs: &Inputs) -> Result<Report> {
        let policy = &inputs.policy.policy;
        let plans = plans::Plans::new(inputs.policy)?;
        // those that take long side by side: each has times in which it keeps one processor busy only
        let sections: [&(dyn Fn() -> Result<Section> + Sync); 7] = [
            &|| platform::section(inputs),
            &|| models::section(inputs),
            &|| choices::section(inputs, &plans),
            &|| schedules::section(inputs, &plans),
            &|| wins::section(inputs),
            &|| applications::section(inputs),
            &|| provenance::section(inputs),
        ];
        // the first one's error, whoever comes to one first
        let sections = sections.into_par_iter().map(|section| section()).collect::<Vec<Result<Section>>>();
        let sections = sections.into_iter().collect::<Result<Vec<Section>>>()?;
        let most_bytes = room::most_bytes(plans.members().len());
        Ok(Report { title: policy.provenance.platform.clone(), facts: provenance::facts(policy), sections, most_bytes })
    }

    /// All pictures of it that are in the page at first sight, and those that are chosen.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.sections.iter().flat_map(|s| &s.blocks).flat_map(|block| -> Vec<&Figure> {
            match block {
                Block::Figure(figure) => vec![figure],
                Block::Chooser(chooser) => chooser.views.iter().flat_map(|v| &v.figures).collect(),
                Block::Table(_) | Block::Missing(_) => Vec::new(),
            }
        })
    }
}
