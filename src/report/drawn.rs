//! A schedule as it is drawn: the tree of its ranks, and what every rank does when, as predicted.

use super::Figure;
use super::critical::{Step, critical_path};
use super::picture::{Branch, Gantt, Span, gantt, tree};
use super::tables::{Table, or_dash};
use super::trees::{Tree, branches, last_receivers, parents, spread};
use crate::collective::{Collective, Shape};
use crate::error::Result;
use crate::model::CostModel;
use crate::plan::{Location, Plan, PolyModel};
use crate::policy::{CompiledPolicy, Policy};
use crate::predict::replay;
use crate::schedule::{Action, Schedule};
use crate::topology::{Link, Rank};
use crate::units;
use std::collections::BTreeSet;

/// More ranks than these have rows in common: a screen has no room for more.
pub(super) const MOST_ROWS: usize = 100;
/// So many ranks are named that those of one row have to do with.
const MOST_NAMED: usize = 4;
pub(super) const KINDS: [&str; 3] = ["sends", "receives", "copies, combines"];

const HEARS: [&str; 3] = ["From the left, the rank that each rank hears from first", "hears first from", "at"];
const SENDS: [&str; 3] = ["From the left, the rank that each rank sends to last", "sends last to", "done at"];
const SPREADS: [&str; 3] =
    ["From the left, how the ranks hear of the first one: each from the rank that told it first", "hears of rank 0 from", "at"];

pub(super) fn host(policy: &Policy, at: Location) -> String {
    policy.groups[at.group].hosts.get(at.position).cloned().unwrap_or_default()
}

/// A collective of a size, from its root if it has one.
pub(super) fn called(collective: &Collective, bytes: usize, root: Rank) -> String {
    let size = if collective.sized() { format!(" of {}", units::bytes(bytes)) } else { String::new() };
    let way = if collective.root_begins() { "from" } else { "to" };
    let root = if collective.rooted { format!(" {way} rank {root}") } else { String::new() };
    format!("{}{size}{root}", collective.name)
}

/// The rows of a chart: ranks by group, or several of them.
pub(super) struct Rows {
    /// The row of each rank.
    pub of: Vec<usize>,
    /// Their names and groups.
    pub names: Vec<(String, usize)>,
}

impl Rows {
    pub fn new(policy: &Policy, members: &[Location]) -> Rows {
        let mut order: Vec<Rank> = (0..members.len()).collect();
        order.sort_by_key(|&rank| (members[rank].group, rank));
        let step = members.len().div_ceil(MOST_ROWS).max(1);
        let (mut of, mut names) = (vec![0; members.len()], Vec::new());
        for group in order.chunk_by(|&a, &b| members[a].group == members[b].group) {
            for ranks in group.chunks(step) {
                ranks.iter().for_each(|&rank| of[rank] = names.len());
                let name = |rank: Rank| format!("{rank} {}", host(policy, members[rank]));
                let words =
                    if ranks.len() == 1 { name(ranks[0]) } else { format!("{} to {}", name(ranks[0]), name(ranks[ranks.len() - 1])) };
                names.push((words, members[ranks[0]].group));
            }
        }
        Rows { of, names }
    }
}

/// What a row of a chart does: when it starts first and ends last, and how many operations it has.
#[derive(Clone, Copy)]
pub(super) struct Done {
    start_s: f64,
    end_s: f64,
    operations: usize,
}

/// Of so many rows.
pub(super) fn done(spans: &[Span], rows: usize) -> Vec<Done> {
    let mut all = vec![Done { start_s: f64::INFINITY, end_s: 0.0, operations: 0 }; rows];
    for span in spans {
        let own = &mut all[span.row];
        *own = Done { start_s: own.start_s.min(span.start_s), end_s: own.end_s.max(span.end_s), operations: own.operations + 1 };
    }
    all
}

impl Done {
    /// A row for each.
    pub fn table(rows: &Rows, all: &[Done]) -> Table {
        let mut table = Table::new(&["rank", "first start", "last end", "operations"]);
        for ((name, _), own) in rows.names.iter().zip(all) {
            let time = |t: f64| or_dash(Some(t).filter(|_| own.operations > 0), units::seconds);
            table.row([name.clone(), time(own.start_s), time(own.end_s), own.operations.to_string()]);
        }
        table
    }
}

/// Its host, and of several of a host which one.
fn name_in_tree(hosts: &[String], rank: Rank) -> String {
    let of_host = || hosts.iter().filter(|host| **host == hosts[rank]);
    if of_host().nth(1).is_some() { format!("{} rank {rank}", hosts[rank]) } else { hosts[rank].clone() }
}

/// A schedule with the times of its operations.
pub(super) struct Drawn {
    id: String,
    title: String,
    rows: Rows,
    chart: Gantt,
    /// When the last rank is done.
    end_s: f64,
    /// What its rows do.
    done: Vec<Done>,
    branches: Vec<Branch>,
    /// By rank: whom it hangs on in the tree, and when it heard from it, or has sent to it.
    ranks: Tree,
    hosts: Vec<String>,
    /// Which tree it is, in words: what is in its picture, and in its table what is of the other rank, and when.
    tree: [&'static str; 3],
}

impl Drawn {
    /// Of a schedule that is the plan's for a shape.
    pub(super) fn new(compiled: &CompiledPolicy, members: &[Location], plan: &Plan, schedule: &Schedule, shape: &Shape) -> Result<Drawn> {
        let (collective, bytes, root) = (plan.form.collective(), shape.bytes, shape.root);
        let policy = &compiled.policy;
        let costs = PolyModel::new(compiled, members, collective, bytes)?;
        let replay = replay(schedule, &costs)?;
        let (rows, mut spans) = (Rows::new(policy, members), Vec::new());
        for (rank, program) in schedule.programs.iter().enumerate() {
            let trace = &replay.traces[rank];
            for op in 0..program.len() {
                let (start, end, size) = (trace.start[op], trace.end[op], program.bytes(op));
                let (kind, start_s, end_s) = match program.action(op) {
                    // as long as its port is busy with it
                    Action::Send { to, .. } => (0, start, start + costs.cost(Link { from: rank, to }, size).gap.max(end - start)),
                    Action::Recv { from, .. } => {
                        let link = Link { from, to: rank };
                        let busy = costs.cost(link, size).recv_overhead.max(costs.port_in(link, size));
                        (1, (end - busy).max(0.0), end)
                    }
                    Action::Copy { .. } | Action::Combine { .. } | Action::Delay { .. } => (2, start, end),
                };
                spans.push(Span { row: rows.of[rank], kind, start_s, end_s });
            }
        }
        let path = critical_path(schedule, &replay, &costs);
        let end = |rank: Rank, op: usize| replay.traces[rank].end[op];
        let (ranks, tree) = if collective.root_begins() {
            (parents(schedule, end), HEARS)
        } else if collective.rooted {
            (last_receivers(schedule, root, end), SENDS)
        } else {
            (spread(schedule, &replay, root), SPREADS)
        };
        let hangs_on: Vec<Option<Rank>> = ranks.iter().map(|at| at.map(|(other, _)| other)).collect();
        let hosts: Vec<String> = members.iter().map(|&m| host(policy, m)).collect();
        let chart = Gantt {
            rows: rows.names.clone(),
            groups: policy.groups.iter().map(|g| g.name.clone()).collect(),
            kinds: KINDS[..if spans.iter().any(|s| s.kind == 2) { 3 } else { 2 }].to_vec(),
            path: path.iter().map(|step: &Step| (rows.of[step.rank], step.at_s)).collect(),
            end_s: replay.completion(),
            spans,
        };
        Ok(Drawn {
            id: match collective.rooted {
                true => format!("{}-root{root}-{bytes}", collective.name),
                false => format!("{}-{bytes}", collective.name),
            },
            title: called(collective, bytes, root),
            branches: branches(&hangs_on, root, MOST_ROWS, |rank| members[rank].group, |rank| name_in_tree(&hosts, rank)),
            done: done(&chart.spans, rows.names.len()),
            rows,
            chart,
            end_s: replay.completion(),
            ranks,
            hosts,
            tree,
        })
    }

    /// When the last rank is done.
    pub(super) fn end_s(&self) -> f64 {
        self.end_s
    }

    /// With a time axis up to then, as what it stands beside.
    pub(super) fn up_to(mut self, end_s: f64) -> Drawn {
        self.chart.end_s = self.end_s.max(end_s);
        self
    }

    pub(super) fn figures(&self, policy: &Policy) -> Result<Vec<Figure>> {
        let groups: Vec<String> = policy.groups.iter().map(|g| g.name.clone()).collect();
        let mut from = Table::new(&["rank", self.tree[1], self.tree[2]]);
        if self.ranks.len() <= MOST_ROWS {
            for (rank, at) in self.ranks.iter().enumerate() {
                let other = or_dash(*at, |(other, _)| format!("{other} {}", self.hosts[other]));
                from.row([format!("{rank} {}", self.hosts[rank]), other, or_dash(*at, |(_, at)| units::seconds(at))]);
            }
        } else {
            from = self.by_rows();
        }
        let mut did = Done::table(&self.rows, &self.done);
        did.header.push("critical path".into());
        for (row, cells) in did.rows.iter_mut().enumerate() {
            let mut steps = self.chart.path.iter().filter(|step| step.0 == row);
            cells.push(steps.next().map_or(String::new(), |step| format!("from {}", units::seconds(step.1))).into());
        }
        let title = &self.title;
        let tree = Figure {
            id: format!("tree-{}", self.id),
            title: format!("The tree: {title}"),
            words: format!("{}; strong lines cross groups.", self.tree[0]),
            svg: tree(&self.branches, &groups)?,
            cells: None,
            table: from,
        };
        let chart = Figure {
            id: format!("gantt-{}", self.id),
            title: format!("What ranks do: {title}"),
            words: format!(
                "All done after {}. In each row, sends above and receives below, and paler what has pauses that are too many to be drawn; the table says from when rows \
                 are on the critical path.",
                units::seconds(self.end_s)
            ),
            svg: gantt(&self.chart)?,
            cells: None,
            table: did,
        };
        Ok(vec![tree, chart])
    }

    /// Of many ranks, those that have a row in common.
    fn by_rows(&self) -> Table {
        let mut table = Table::new(&["ranks", self.tree[1], &format!("the first {}", self.tree[2])]);
        for (row, (name, _)) in self.rows.names.iter().enumerate() {
            let own = || self.ranks.iter().enumerate().filter(|(rank, _)| self.rows.of[*rank] == row).filter_map(|(_, at)| *at);
            let others: BTreeSet<Rank> = own().map(|(other, _)| other).collect();
            let named: Vec<String> = others.iter().take(MOST_NAMED).map(|&other| format!("{other} {}", self.hosts[other])).collect();
            let more = if others.len() > MOST_NAMED { format!(" and {} more", others.len() - MOST_NAMED) } else { String::new() };
            let first = own().map(|(_, at)| at).reduce(f64::min);
            table.row([name.clone(), or_dash(first, |_| named.join(", ") + &more), or_dash(first, units::seconds)]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::COLLECTIVES;
    use crate::plan::{everybody, plan};
    use std::path::Path;

    /// Nobody hears before who tells it does, and who sends last to another one says when, whether it receives or not.
    #[test]
    fn trees_say_when() {
        let policy = Policy::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("policies/hcl16.toml")).unwrap();
        let compiled = CompiledPolicy::new(policy).unwrap();
        let members = everybody(&compiled.policy);
        let mut trees = 0;
        for collective in COLLECTIVES.iter().copied().filter(|c| c.sized() && c.tuned) {
            let shape = collective.shape(members.len(), 0, 1 << 20);
            let plan = plan(&compiled, &members, collective, &shape).unwrap();
            let Ok(schedule) = plan.form.bounded_schedule(&shape) else { continue };
            let drawn = Drawn::new(&compiled, &members, &plan, &schedule, &shape).unwrap();
            if drawn.ranks.iter().all(Option::is_none) {
                continue;
            }
            trees += 1;
            for (rank, at) in drawn.ranks.iter().enumerate().skip(1) {
                let (other, at) = at.unwrap_or_else(|| panic!("{}: rank {rank} has to do with nobody", collective.name));
                assert!(0.0 < at && at <= drawn.end_s, "{}: rank {rank} at {at}", collective.name);
                let told = drawn.ranks[other].map_or(0.0, |heard| heard.1);
                assert!(
                    drawn.tree == SENDS || told < at,
                    "{}: rank {rank} hears at {at} from {other}, which does at {told}",
                    collective.name
                );
            }
        }
        assert!(trees >= 6, "{trees} trees");
    }
}
