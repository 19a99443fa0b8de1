//! What a trace measured, to stand beside what is predicted of the same.

use super::drawn::{Done, KINDS, Rows, called, done};
use super::picture::{Gantt, Span, gantt};
use super::traced::{Kind, Traced, TracedOp};
use super::{Figure, Inputs};
use crate::collective::{Collective, bcast};
use crate::error::{Error, Result};
use crate::plan::{Location, everybody, members};
use crate::policy::Policy;
use crate::schedule::Schedule;
use crate::topology::Rank;
use crate::units;
use std::collections::BTreeMap;

/// A traced call among ranks of the policy.
pub(super) struct Call<'a> {
    pub traced: &'a Traced,
    /// Who took part.
    pub members: Vec<Location>,
    /// What it was; of older versions, which do not say it, it may be a broadcast.
    pub collective: &'static Collective,
    /// Its root, or the first rank where it has none; `None`: it is not known.
    pub root: Option<Rank>,
}

impl Call<'_> {
    /// # Errors
    /// It is of hosts that the policy has not, or does not say its hosts and is of another number of ranks than the policy.
    pub fn of<'a>(inputs: &Inputs, traced: &'a Traced) -> Result<Call<'a>> {
        let policy = &inputs.policy.policy;
        // traces of older versions do not say which hosts ranks were on
        let by_samples = || inputs.samples.map(|(settings, _)| &settings.hosts).filter(|hosts| hosts.len() == traced.ranks);
        let members = match traced.hosts.as_ref().or_else(by_samples) {
            Some(hosts) => members(policy, hosts)?,
            None => everybody(policy),
        };
        if members.len() != traced.ranks {
            let (folder, ranks, own) = (&traced.folder, traced.ranks, members.len());
            return Err(Error::invalid(format!(
                "show the traces in {folder}: they are of {ranks} ranks, do not say on which hosts, and the policy is of {own}; trace the run again, or give with --samples what a \
                 tuning over the {ranks} measured, which says where they are"
            )));
        }
        let collective = traced.collective.unwrap_or(&bcast::COLLECTIVE);
        Ok(Call { traced, members, collective, root: if collective.rooted { traced.root } else { Some(0) } })
    }

    /// When it ended.
    pub fn end_s(&self) -> f64 {
        self.traced.ops.iter().map(|op| op.end_s).fold(0.0, f64::max)
    }

    /// True if each rank sent as many messages to each other one as it does by a schedule.
    pub fn is_of(&self, schedule: &Schedule) -> bool {
        let mut sent: BTreeMap<(Rank, Rank), i64> = BTreeMap::new();
        self.traced.ops.iter().filter(|op| op.kind == Kind::Send).for_each(|op| *sent.entry((op.rank, op.peer)).or_default() += 1);
        for (rank, program) in schedule.programs.iter().enumerate() {
            let to = (0..program.len()).filter_map(|op| program.sends_to(op));
            to.for_each(|to| *sent.entry((rank, to)).or_default() -= 1);
        }
        sent.values().all(|n| *n == 0)
    }

    /// What ranks did, with a time axis up to then at least.
    pub fn figure(&self, policy: &Policy, until_s: f64) -> Result<Figure> {
        let (traced, end_s) = (self.traced, self.end_s());
        let rows = Rows::new(policy, &self.members);
        let span = |op: &TracedOp| Span { row: rows.of[op.rank], kind: op.kind as usize, start_s: op.start_s, end_s: op.end_s };
        let spans: Vec<Span> = traced.ops.iter().map(span).collect();
        let from = traced.root.map_or(String::new(), |root| format!(" from rank {root}"));
        let unnamed = || format!("{}{from}", units::bytes(traced.bytes));
        let title = traced.collective.map_or_else(unnamed, |c| called(c, traced.bytes, self.root.unwrap_or_default()));
        let clocks = match traced.clocks_set {
            0 => "by each rank's own clock".to_string(),
            set => format!("by each rank's own clock, of which {set} were set by messages that were there before they were sent"),
        };
        let table = Done::table(&rows, &done(&spans, rows.names.len()));
        let chart = Gantt {
            groups: policy.groups.iter().map(|g| g.name.clone()).collect(),
            kinds: KINDS[..if spans.iter().any(|s| s.kind == 2) { 3 } else { 2 }].to_vec(),
            rows: rows.names,
            spans,
            path: Vec::new(),
            end_s: end_s.max(until_s),
        };
        Ok(Figure {
            id: format!(
                "traced-{}{}-{}",
                self.collective.name,
                traced.root.map_or(String::new(), |root| format!("-root{root}")),
                traced.bytes
            ),
            title: format!("What ranks did, traced: {title}"),
            words: format!(
                "The last such call in {} took {}, {clocks}. A receive begins when it is posted; paler is what has pauses that are too many to be drawn.",
                traced.folder,
                units::seconds(end_s)
            ),
            svg: gantt(&chart)?,
            cells: None,
            table,
        })
    }
}
