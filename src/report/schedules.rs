//! The schedule of a broadcast for sizes and roots: who hears from whom, and what every rank does when, as predicted and as traced.

use super::critical::{Step, critical_path};
use super::picture::{Branch, Gantt, Span, gantt, tree};
use super::tables::{Table, or_dash};
use super::traced::{Kind, Traced, TracedOp};
use super::trees::{branches, parents};
use super::{Block, Chooser, Figure, Inputs, Section, View};
use crate::collective::bcast;
use crate::error::{Error, Result};
use crate::model::CostModel;
use crate::plan::{Location, Plan, PolyModel, everybody, members, plan};
use crate::policy::{CompiledPolicy, Policy};
use crate::predict::replay;
use crate::schedule::{Action, Schedule};
use crate::topology::{Link, Rank};
use crate::units;
use std::collections::BTreeMap;

/// The sizes of the slider.
const SIZES: [usize; 7] = [1, 1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// More ranks than these have rows in common: a screen has no room for more.
const MOST_ROWS: usize = 100;
/// Rows of all pictures of this section: what they take of the page.
const MOST_ROWS_OF_ALL: usize = 1100;
/// So many roots are there to choose from: the first ranks of the largest groups.
const MOST_ROOTS: usize = 4;
/// Operations of all schedules that are replayed: a page is there within seconds.
const MOST_OPERATIONS: usize = 1_500_000;
const KINDS: [&str; 3] = ["sends", "receives", "copies, combines"];

pub(super) fn section(inputs: &Inputs) -> Result<Section> {
    let compiled = inputs.policy;
    let policy = &compiled.policy;
    let everybody = everybody(policy);
    let (mut views, mut left) = (Vec::new(), MOST_OPERATIONS);
    let mut roots = roots(&everybody);
    let fit = MOST_ROWS_OF_ALL / (everybody.len().min(MOST_ROWS) * SIZES.len()).max(1);
    roots.truncate(fit.clamp(1, MOST_ROOTS));
    for (list, &root) in roots.iter().enumerate() {
        for (slider, &bytes) in SIZES.iter().enumerate() {
            let (words, figures) = view(compiled, &everybody, root, bytes, &mut left)?;
            views.push(View { list, slider, words, figures });
        }
    }
    let name = |&root: &Rank| format!("rank {root}, {} ({})", host(policy, everybody[root]), policy.groups[everybody[root].group].name);
    let chooser = Chooser {
        id: "schedule",
        list: ("root".into(), roots.iter().map(name).collect()),
        slider: ("size".into(), SIZES.iter().map(|&bytes| units::bytes(bytes)).collect()),
        views,
    };
    let mut blocks = vec![Block::Chooser(chooser)];
    for traced in inputs.traces {
        blocks.extend(beside(inputs, traced)?);
    }
    if inputs.traces.is_empty() {
        blocks.push(Block::Missing(
            "What ranks did, measured, is shown beside with --trace FOLDER, of a program that ran with COLLWISE_TRACE=FOLDER.".into(),
        ));
    }
    let words = "A broadcast for the size and root that are chosen here: who hears from whom first, what every rank is predicted to do when, and in orange the \
                 operations that its end waits for."
        .into();
    Ok(Section { id: "schedule", title: "The schedule", words, blocks })
}

/// The first rank of each group, the largest groups first.
fn roots(everybody: &[Location]) -> Vec<Rank> {
    let mut groups: Vec<(usize, Rank, usize)> = Vec::new();
    for (rank, at) in everybody.iter().enumerate() {
        match groups.iter_mut().find(|g| g.0 == at.group) {
            Some(group) => group.2 += 1,
            None => groups.push((at.group, rank, 1)),
        }
    }
    // that of the first group is the one that tuning began at
    let first = groups.first().map(|g| g.1);
    groups.sort_by_key(|g| (Some(g.1) != first, std::cmp::Reverse(g.2), g.1));
    groups.into_iter().map(|g| g.1).collect()
}

fn host(policy: &Policy, at: Location) -> String {
    policy.groups[at.group].hosts.get(at.position).cloned().unwrap_or_default()
}

/// The rows of a chart: ranks by group, or several of them.
struct Rows {
    /// The row of each rank.
    of: Vec<usize>,
    /// Their names and groups.
    names: Vec<(String, usize)>,
}

impl Rows {
    fn new(policy: &Policy, members: &[Location]) -> Rows {
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

fn view(compiled: &CompiledPolicy, members: &[Location], root: Rank, bytes: usize, left: &mut usize) -> Result<(String, Vec<Figure>)> {
    let shape = bcast::COLLECTIVE.shape(members.len(), root, bytes);
    let plan = plan(compiled, members, &bcast::COLLECTIVE, &shape)?;
    let takes = or_dash(plan.predicted_s, units::seconds);
    let words =
        format!("{} from rank {root} to {} ranks: {}, predicted to take {takes}.", units::bytes(bytes), members.len(), plan.words());
    if plan.form.has_native() {
        return Ok((format!("{words} The MPI library's own messages are not known."), Vec::new()));
    }
    let segments = match plan.form.segment() {
        0 => 1,
        segment => bytes.div_ceil(segment).max(1),
    };
    if segments * 2 * members.len() > *left {
        return Ok((
            format!(
                "{words} It has too many messages to be drawn here: `collwise explain POLICY --bytes {}` says more.",
                units::bytes(bytes)
            ),
            Vec::new(),
        ));
    }
    let schedule = plan.form.bounded_schedule(&shape)?;
    *left = left.saturating_sub(schedule.ops());
    let figures = Drawn::new(compiled, members, &plan, &schedule, (root, bytes))?.figures(&compiled.policy)?;
    Ok((words, figures))
}

/// A schedule with the times of its operations.
struct Drawn {
    id: String,
    title: String,
    rows: Rows,
    chart: Gantt,
    branches: Vec<Branch>,
    /// By rank: from whom it hears first, when, and when it is done.
    ranks: Vec<(Option<Rank>, f64, f64)>,
    hosts: Vec<String>,
    path: Vec<Step>,
}

impl Drawn {
    fn new(
        compiled: &CompiledPolicy,
        members: &[Location],
        plan: &Plan,
        schedule: &Schedule,
        (root, bytes): (Rank, usize),
    ) -> Result<Drawn> {
        let policy = &compiled.policy;
        let costs = PolyModel::new(compiled, members, plan.form.collective(), bytes)?;
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
        let heard = parents(schedule, |rank, op| replay.traces[rank].end[op]);
        let first = |rank: Rank| {
            let program = &schedule.programs[rank];
            let ends =
                (0..program.len()).filter(|&op| matches!(program.action(op), Action::Recv { .. })).map(|op| replay.traces[rank].end[op]);
            ends.reduce(f64::min).unwrap_or(0.0)
        };
        let ranks = (0..members.len()).map(|rank| (heard[rank], first(rank), replay.traces[rank].finish())).collect();
        let hosts: Vec<String> = members.iter().map(|&m| host(policy, m)).collect();
        let chart = Gantt {
            rows: rows.names.clone(),
            groups: policy.groups.iter().map(|g| g.name.clone()).collect(),
            kinds: KINDS[..if spans.iter().any(|s| s.kind == 2) { 3 } else { 2 }].to_vec(),
            path: path.iter().map(|step| (rows.of[step.rank], step.at_s)).collect(),
            end_s: replay.completion(),
            spans,
        };
        Ok(Drawn {
            id: format!("root{root}-{bytes}"),
            title: format!("{} from rank {root}", units::bytes(bytes)),
            branches: branches(&heard, root, MOST_ROWS, |rank| members[rank].group, |rank| hosts[rank].clone()),
            rows,
            chart,
            ranks,
            hosts,
            path,
        })
    }

    fn figures(&self, policy: &Policy) -> Result<Vec<Figure>> {
        let groups: Vec<String> = policy.groups.iter().map(|g| g.name.clone()).collect();
        let mut from = Table::new(&["rank", "hears first from", "at", "done at", "critical path"]);
        if self.ranks.len() <= MOST_ROWS {
            for (rank, (heard, at, done)) in self.ranks.iter().enumerate() {
                let on = if self.path.iter().any(|s| s.rank == rank) { "yes" } else { "" };
                let heard = or_dash(*heard, |h| format!("{h} {}", self.hosts[h]));
                from.row([format!("{rank} {}", self.hosts[rank]), heard, units::seconds(*at), units::seconds(*done), on.into()]);
            }
        } else {
            from = self.by_rows();
        }
        let mut steps = Table::new(&["step", "rank", "at"]);
        let mut last = None;
        for step in self.path.iter().filter(|s| last.replace(s.rank) != Some(s.rank)).take(MOST_ROWS) {
            steps.row([(steps.rows.len() + 1).to_string(), format!("{} {}", step.rank, self.hosts[step.rank]), units::seconds(step.at_s)]);
        }
        let title = &self.title;
        let tree = Figure {
            id: format!("tree-{}", self.id),
            title: format!("Who hears from whom: {title}"),
            words: "From the left, the rank that each rank hears from first; strong lines cross groups.".into(),
            svg: tree(&self.branches, &groups)?,
            cells: None,
            table: from,
        };
        let chart = Figure {
            id: format!("gantt-{}", self.id),
            title: format!("What ranks do: {title}"),
            words: format!(
                "All done after {}. In each row, sends above and receives below; the table has the critical path.",
                units::seconds(self.chart.end_s)
            ),
            svg: gantt(&self.chart)?,
            cells: None,
            table: steps,
        };
        Ok(vec![tree, chart])
    }

    /// Of many ranks, those that have a row in common.
    fn by_rows(&self) -> Table {
        let mut table = Table::new(&["ranks", "first hears at", "last done at"]);
        for (row, (name, _)) in self.rows.names.iter().enumerate() {
            let own = || self.ranks.iter().enumerate().filter(|(rank, _)| self.rows.of[*rank] == row);
            let first = own().map(|r| r.1.1).fold(f64::INFINITY, f64::min);
            let last = own().map(|r| r.1.2).fold(0.0, f64::max);
            table.row([name.clone(), units::seconds(first), units::seconds(last)]);
        }
        table
    }
}

/// True if each rank sent as many messages to each other one as it does by a schedule.
fn is_of(traced: &Traced, schedule: &Schedule) -> bool {
    let mut sent: BTreeMap<(Rank, Rank), i64> = BTreeMap::new();
    traced.ops.iter().filter(|op| op.kind == Kind::Send).for_each(|op| *sent.entry((op.rank, op.peer)).or_default() += 1);
    for (rank, program) in schedule.programs.iter().enumerate() {
        let to = (0..program.len()).filter_map(|op| program.sends_to(op));
        to.for_each(|to| *sent.entry((rank, to)).or_default() -= 1);
    }
    sent.values().all(|n| *n == 0)
}

/// What a trace measured, beside what is predicted of the same.
fn beside(inputs: &Inputs, traced: &Traced) -> Result<Vec<Block>> {
    let (compiled, policy) = (inputs.policy, &inputs.policy.policy);
    // traces do not say which hosts ranks were on
    let by_samples = inputs.samples.filter(|(settings, _)| settings.hosts.len() == traced.ranks);
    let members = match by_samples {
        Some((settings, _)) => members(policy, &settings.hosts)?,
        None => everybody(policy),
    };
    if members.len() != traced.ranks {
        let (folder, ranks, own) = (&traced.folder, traced.ranks, members.len());
        return Err(Error::invalid(format!(
            "show the traces in {folder}: they are of {ranks} ranks, and the policy and its samples are of {own}"
        )));
    }
    let rows = Rows::new(policy, &members);
    let span = |op: &TracedOp| Span { row: rows.of[op.rank], kind: op.kind as usize, start_s: op.start_s, end_s: op.end_s };
    let spans: Vec<Span> = traced.ops.iter().map(span).collect();
    let end_s = spans.iter().map(|s| s.end_s).fold(0.0, f64::max);
    let mut table = Table::new(&["rank", "first start", "last end", "operations"]);
    for (rank, &at) in members.iter().enumerate().take(MOST_ROWS) {
        let own = || traced.ops.iter().filter(|op| op.rank == rank);
        let (start, end) = own().fold((f64::INFINITY, 0.0f64), |(s, e), op| (s.min(op.start_s), e.max(op.end_s)));
        let time = |t: f64| if t.is_finite() { units::seconds(t) } else { "-".into() };
        table.row([format!("{rank} {}", host(policy, at)), time(start), time(end), own().count().to_string()]);
    }
    let chart = Gantt {
        rows: rows.names.clone(),
        groups: policy.groups.iter().map(|g| g.name.clone()).collect(),
        kinds: KINDS[..if spans.iter().any(|s| s.kind == 2) { 3 } else { 2 }].to_vec(),
        spans,
        path: Vec::new(),
        end_s,
    };
    let from = traced.root.map_or(String::new(), |root| format!(" from rank {root}"));
    let title = format!("{}{from}", units::bytes(traced.bytes));
    let clocks = match traced.clocks_set {
        0 => "by each rank's own clock".to_string(),
        set => format!("by each rank's own clock, of which {set} were set by the first message that the rank heard"),
    };
    let mut blocks = vec![Block::Figure(Figure {
        id: format!("traced-{}", traced.bytes),
        title: format!("What ranks did, traced: {title}"),
        words: format!(
            "The last such call in {} took {}, {clocks}. A receive begins when it is posted.",
            traced.folder,
            units::seconds(end_s)
        ),
        svg: gantt(&chart)?,
        cells: None,
        table,
    })];
    let Some(root) = traced.root else { return Ok(blocks) };
    let shape = bcast::COLLECTIVE.shape(members.len(), root, traced.bytes);
    let plan = plan(compiled, &members, &bcast::COLLECTIVE, &shape)?;
    if plan.form.has_native() {
        return Ok(blocks);
    }
    // what cannot be held in memory cannot be drawn either
    let Ok(schedule) = plan.form.bounded_schedule(&shape) else { return Ok(blocks) };
    // lines of traces do not name the collective: what sends otherwise is no such broadcast, or went by another policy
    if !is_of(traced, &schedule) {
        blocks.push(Block::Missing(format!(
            "Its messages are not those of the policy's broadcast of {title}: there is nothing predicted to hold beside it."
        )));
        return Ok(blocks);
    }
    let figures = Drawn::new(compiled, &members, &plan, &schedule, (root, traced.bytes))?.figures(policy)?;
    let renamed = |f: Figure| Figure { id: format!("predicted-{}", traced.bytes), title: format!("The same, predicted: {title}"), ..f };
    blocks.extend(figures.into_iter().filter(|f| f.id.starts_with("gantt")).map(|f| Block::Figure(renamed(f))));
    Ok(blocks)
}

/// The ranks of a broadcast's schedule, each with from whom it hears first, those of one group as one where they are more than `most`; nothing where nobody
/// knows its messages.
///
/// # Errors
/// As [`plan`].
pub fn first_tree(compiled: &CompiledPolicy, members: &[Location], root: Rank, bytes: usize, most: usize) -> Result<Vec<Branch>> {
    let shape = bcast::COLLECTIVE.shape(members.len(), root, bytes);
    let plan = plan(compiled, members, &bcast::COLLECTIVE, &shape)?;
    if plan.form.has_native() {
        return Ok(Vec::new());
    }
    let schedule = plan.form.bounded_schedule(&shape)?;
    // the order of a program's receives is that of its messages
    let heard = parents(&schedule, |_, op| op as f64);
    Ok(branches(&heard, root, most, |rank| members[rank].group, |rank| host(&compiled.policy, members[rank])))
}
